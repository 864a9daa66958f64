"""`cadec evaluate`: how good translations are, and whether they are better than others."""

from pathlib import Path
from typing import Annotated

import typer

from cadec_cli.commands.translate import Bundle_, Device, Threads

_TEXT = "Text"
_TEST = "Significance"
_PMI = "PMI"


def evaluate(
    hypotheses: Annotated[
        Path,
        typer.Argument(metavar="HYP", help="Translations, one a line, a blank line between documents."),
    ],
    reference: Annotated[
        Path | None, typer.Option("--ref", "-r", help="The reference; not needed for --pmi alone.")
    ] = None,
    baselines: Annotated[
        list[Path] | None,
        typer.Option("--baseline", help="Translations to compare HYP with. Can be repeated."),
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--src", help="The source, for the correlation of --pmi.")
    ] = None,
    json_lines: Annotated[bool, typer.Option("--json", help="An object a system.")] = False,
    language: Annotated[
        str | None,
        typer.Option(
            "--language", "-l", help="For multi-BLEU's tokens; else the bundle's.", rich_help_panel=_TEXT
        ),
    ] = None,
    tokenized: Annotated[
        bool,
        typer.Option(
            "--tokenized", help="For multi-BLEU the text is tokenised already.", rich_help_panel=_TEXT
        ),
    ] = False,
    tokenize: Annotated[
        str, typer.Option(help="sacreBLEU's tokeniser for BLEU: 13a, intl, zh, char …", rich_help_panel=_TEXT)
    ] = "13a",
    lowercase: Annotated[
        bool, typer.Option("--lowercase", help="Capitals do not count.", rich_help_panel=_TEXT)
    ] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of all files.", rich_help_panel=_TEXT)] = "utf-8",
    by: Annotated[
        str, typer.Option(help="What is resampled: sentence or document.", rich_help_panel=_TEST)
    ] = "sentence",
    samples: Annotated[
        int, typer.Option(help="Samples of the paired bootstrap.", min=1, rich_help_panel=_TEST)
    ] = 1000,
    seed: Annotated[int, typer.Option(help="Of the samples.", min=0, rich_help_panel=_TEST)] = 1,
    pmi: Annotated[
        bool,
        typer.Option(
            "--pmi", help="Mean PMI with the sentences before, by the bundle's D-LM.", rich_help_panel=_PMI
        ),
    ] = False,
    bundle: Bundle_ = None,
    source_lm: Annotated[
        Path | None,
        typer.Option(help="A bundle whose D-LM is of the source language, for --src.", rich_help_panel=_PMI),
    ] = None,
    context: Annotated[int, typer.Option(help="Sentences of context.", min=1, rich_help_panel=_PMI)] = 3,
    device: Device = "auto",
    threads: Threads = 0,
) -> None:
    """Measure translations: BLEU, chrF, multi-BLEU and PMI, with a paired bootstrap test against baselines.

    Differences are HYP less the baseline, with a 95 % interval; p is two-sided. multi-BLEU is that of
    multi-bleu.perl, on text tokenised by Moses. Mean PMI, and its correlation with the source's (Pearson's R,
    Spearman's ρ), leave out sentences without context.

    Example: cadec evaluate ours.ru --ref dev.ru --baseline sentence-level.ru --by document -l ru

    Example: cadec evaluate ours.ru --pmi --bundle en-ru --src dev.en --source-lm lm-en
    """
    if by not in ("sentence", "document"):
        raise typer.BadParameter("it is sentence or document", param_hint="--by")
    if reference is None and not pmi:
        raise typer.BadParameter("BLEU and chrF need a reference; --pmi does not", param_hint="--ref")
    if (source is None) != (source_lm is None):
        raise typer.BadParameter("--src and --source-lm go together", param_hint="--src")
    if source is not None and not pmi:
        raise typer.BadParameter("the source is compared by --pmi", param_hint="--src")
    if pmi and tokenized:
        raise typer.BadParameter("--pmi reads text as people write it", param_hint="--tokenized")

    from cadec_cli.commands.evaluation_run import EvaluationRun

    run = EvaluationRun(
        hypotheses=hypotheses,
        reference=reference,
        baselines=tuple(baselines or ()),
        source=source,
        language=language,
        tokenized=tokenized,
        tokenize=tokenize,
        lowercase=lowercase,
        encoding=encoding,
        by=by,
        samples=samples,
        seed=seed,
        pmi=pmi,
        bundle=bundle,
        source_lm=source_lm,
        context=context,
        device=device,
        threads=threads,
    )
    if json_lines:
        run.print_json()
    else:
        run.print_table()
