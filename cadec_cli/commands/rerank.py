"""`cadec rerank`: n-best lists of any toolkit, chosen in context; for people who script experiments."""

import itertools
from pathlib import Path
from typing import Annotated, Any

import typer

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.method.options import TranslationOptions
from cadec_cli.terminal.flags import (
    After,
    BundleOption,
    ComputeType,
    Device,
    MaxInput,
    TargetLanguage,
    Threads,
    flags_of,
)


@flags_of("bundle's", search=TranslationOptions)
def rerank(
    flags: dict[str, Any],
    nbest_lists: Annotated[
        Path,
        typer.Argument(metavar="NBEST", help="N-best lists: JSON lines, or Moses' and Marian's |||."),
    ],
    after: After = None,
    feature: Annotated[
        str,
        typer.Option(
            help="Feature of ||| lists that is log p(y|x), e.g. F0. [dim]\\[default: the last field][/dim]",
            show_default=False,
        ),
    ] = "",
    json_lines: Annotated[
        bool, typer.Option("--json", help="Write one JSON object per sentence, with all scores.")
    ] = False,
    max_input: MaxInput = MAX_INPUT_BYTES,
    bundle: BundleOption = None,
    target_language: TargetLanguage = None,
    device: Device = "auto",
    compute_type: ComputeType = "int8",
    threads: Threads = 0,
) -> None:
    """Choose from n-best lists in context; writes one sentence per line, a blank line between documents.

    Reads what `cadec translate --json` writes: {"source", "hypotheses": [{"text", "log_prob"}, …]}.

    Example: cadec rerank nbest.jsonl --search lattice --temperature 4 --after last-episode.ru.srt

    Example: cadec rerank marian.nbest --feature F0 --json
    """
    from cadec_cli.bundle.load import default_options
    from cadec_cli.decoding.protection.defects import judge_for
    from cadec_cli.decoding.translator import choose
    from cadec_cli.jobs.json_output import json_bytes
    from cadec_cli.jobs.nbest_files import read_documents
    from cadec_cli.method.context import Context
    from cadec_cli.method.options import with_flags
    from cadec_cli.terminal.inputs import initial_context, open_models
    from cadec_cli.terminal.outputs import write_result
    from cadec_cli.text.documents import document_lines

    models = open_models(
        bundle, device=device, compute_type=compute_type, threads=threads, target_language=target_language
    )
    options = with_flags(default_options(models.bundle), flags)
    language = models.languages.source_code
    documents = read_documents(nbest_lists, feature=feature, most=max_input)
    before = initial_context(after, models, options, max_input)
    translations = choose(
        documents,
        models,
        options,
        contexts=[before, *(Context() for _ in documents[1:])],
        language=language,
        placing=lambda: models.translation if models.bundle.has_translation else None,
    )
    chosen = sorted(
        translations,
        key=lambda translation: (translation.document, translation.sentence),
    )
    if json_lines:
        for piece in json_bytes(chosen, judge_for(options, language)):
            write_result(piece)
        return
    by_document = itertools.groupby(chosen, key=lambda translation: translation.document)
    for line in document_lines((one.text for one in document) for _, document in by_document):
        write_result(line.encode())
