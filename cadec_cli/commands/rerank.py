"""`cadec rerank`: n-best lists of any toolkit, chosen in context; for people who script experiments."""

import itertools
from pathlib import Path
from typing import Annotated, Any

import typer

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.method.options import TranslationOptions
from cadec_cli.terminal.flags import MODELS, After, MaxInput, flags_of, model_flags


@flags_of("bundle's", search=TranslationOptions)
@model_flags("source_language")
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
    models: ModelRequest = MODELS,
) -> None:
    """Choose from n-best lists in context; writes one sentence per line, a blank line between documents.

    Reads what `cadec translate --json` writes: {"source", "hypotheses": [{"text", "log_prob"}, …]}.

    Example: cadec rerank nbest.jsonl --search lattice --temperature 4 --after last-episode.ru.srt

    Example: cadec rerank marian.nbest --feature F0 --json
    """
    from cadec_cli.jobs.json_lines import json_bytes, read_documents
    from cadec_cli.terminal import run_job
    from cadec_cli.terminal.console import write_result
    from cadec_cli.text.documents import document_lines

    job = run_job.open_job(models, flags, after=after, most=max_input)
    chosen = job.choose(read_documents(nbest_lists, feature=feature, most=max_input))
    if json_lines:
        for piece in json_bytes(chosen, job.judge):
            write_result(piece)
        return
    by_document = itertools.groupby(chosen, key=lambda translation: translation.document)
    for line in document_lines((one.text for one in document) for _, document in by_document):
        write_result(line.encode())
