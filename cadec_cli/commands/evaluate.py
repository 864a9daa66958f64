"""`cadec evaluate`: measures translations, and compares them with baselines."""

from pathlib import Path
from typing import Annotated

import typer

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.terminal.flags import BundleOption, Device, MaxInput, Threads, one_of

_TEXT = "Text"
_TEST = "Significance"
_PMI = "PMI"


def evaluate(
    hypotheses: Annotated[
        Path,
        typer.Argument(metavar="HYP", help="Translations, one per line, a blank line between documents."),
    ],
    reference: Annotated[
        Path | None,
        typer.Option("--ref", "-r", help="The reference; not needed for --pmi or --consistency alone."),
    ] = None,
    baselines: Annotated[
        list[Path] | None,
        typer.Option("--baseline", help="Translations to compare HYP with. Can be repeated."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--src", help="The source, for --consistency and the correlation of --pmi."),
    ] = None,
    json_lines: Annotated[bool, typer.Option("--json", help="Write one JSON object per system.")] = False,
    language: Annotated[
        str | None,
        typer.Option(
            "--language",
            "-l",
            help="Language for multi-BLEU's tokeniser, e.g. ru. [dim]\\[default: that of --bundle][/dim]",
            rich_help_panel=_TEXT,
        ),
    ] = None,
    tokenized: Annotated[
        bool,
        typer.Option(
            "--tokenized",
            help="The text is already tokenised: multi-BLEU does not tokenise it again.",
            rich_help_panel=_TEXT,
        ),
    ] = False,
    tokenize: Annotated[
        str, typer.Option(help="sacreBLEU tokeniser for BLEU: 13a, intl, zh, char …", rich_help_panel=_TEXT)
    ] = "13a",
    lowercase: Annotated[
        bool, typer.Option("--lowercase", help="Ignore case.", rich_help_panel=_TEXT)
    ] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of all files.", rich_help_panel=_TEXT)] = "utf-8",
    max_input: MaxInput = MAX_INPUT_BYTES,
    by: Annotated[
        str, one_of(("sentence", "document"), "--by", help="What the bootstrap resamples.", panel=_TEST)
    ] = "sentence",
    samples: Annotated[
        int, typer.Option(help="Number of bootstrap samples.", min=1, rich_help_panel=_TEST)
    ] = 1000,
    seed: Annotated[
        int, typer.Option(help="Random seed for the bootstrap.", min=0, rich_help_panel=_TEST)
    ] = 1,
    pmi: Annotated[
        bool,
        typer.Option(
            "--pmi",
            help="Report mean PMI with the preceding sentences, by the bundle's D-LM.",
            rich_help_panel=_PMI,
        ),
    ] = False,
    consistency: Annotated[
        bool,
        typer.Option(
            "--consistency",
            help="Report how often a name or term that recurs in a document is rendered as the last time; "
            "needs --src.",
        ),
    ] = False,
    bundle: BundleOption = None,
    source_lm: Annotated[
        Path | None,
        typer.Option(help="A bundle with a D-LM of the source language, for --src.", rich_help_panel=_PMI),
    ] = None,
    context: Annotated[
        int,
        typer.Option(
            help="Number of preceding sentences that count as context.", min=1, rich_help_panel=_PMI
        ),
    ] = 3,
    device: Device = "auto",
    threads: Threads = 0,
) -> None:
    """Measure translations: BLEU, chrF, multi-BLEU, PMI, consistency; baselines by paired bootstrap test.

    Differences are HYP minus the baseline, with a 95 % interval; p is two-sided. multi-BLEU is that of
    multi-bleu.perl, on text tokenised by Moses. Mean PMI, and its correlation with the source's (Pearson's R,
    Spearman's ρ), leave out sentences without context. Consistency counts the clear cases only, and lists
    the words whose rendering changes.

    Example: cadec evaluate ours.ru --ref dev.ru --baseline sentence-level.ru --by document -l ru

    Example: cadec evaluate ours.ru --pmi --bundle en-ru --src dev.en --source-lm lm-en

    Example: cadec evaluate ours.ru --consistency --src dev.en --baseline sentence-level.ru --by document
    """
    if reference is None and not (pmi or consistency):
        raise typer.BadParameter(
            "BLEU and chrF need a reference; --pmi and --consistency do not", param_hint="--ref"
        )
    if consistency and source is None:
        raise typer.BadParameter("--consistency needs the source", param_hint="--src")
    if source_lm is not None and (source is None or not pmi):
        raise typer.BadParameter("it is for the PMI of the source: --pmi --src", param_hint="--source-lm")
    if source is not None and source_lm is None and not consistency:
        raise typer.BadParameter(
            "the source is read by --consistency, and by --pmi with --source-lm", param_hint="--src"
        )
    if pmi and tokenized:
        raise typer.BadParameter("--pmi reads text as people write it", param_hint="--tokenized")

    import json
    import sys

    from cadec_cli.bundle.find import find_bundle
    from cadec_cli.bundle.manifest import read_manifest
    from cadec_cli.evaluation.quality import comparison as quality
    from cadec_cli.terminal import console
    from cadec_cli.terminal.console import progress_bar
    from cadec_cli.terminal.views import evaluation as views

    texts = quality.read_texts(
        hypotheses,
        baselines or (),
        reference,
        source,
        encoding=encoding,
        warn=console.warn,
        most=max_input,
    )
    if reference is not None and not tokenized and language is None:
        if bundle is not None or pmi:
            language = read_manifest(find_bundle(bundle)).target_language
        else:
            console.note("no multi-BLEU: it needs --language for its tokeniser, or --tokenized")
    strings = quality.StringOptions(language, tokenized, tokenize, lowercase)
    models = None
    if pmi:
        models = quality.PMIOptions.open(
            find_bundle(bundle), source_lm, context=context, device=device, threads=threads
        )
    evaluation = quality.evaluate(
        texts,
        strings,
        models,
        quality.Sampling(by, samples, seed),
        consistency=quality.ConsistencyOptions(target=language or "") if consistency else None,
        counted=progress_bar,
        warn=console.warn,
    )
    if json_lines:
        for record in views.records(evaluation):
            sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
    else:
        views.show(evaluation)
