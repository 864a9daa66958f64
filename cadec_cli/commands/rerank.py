"""`cadec rerank`: n-best lists of any toolkit, chosen in context; for people who script experiments."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cadec_cli.commands.flags import flags_of
from cadec_cli.commands.translate import Bundle_, ComputeType, Device, Threads
from cadec_cli.method.options import TranslationOptions


@flags_of("bundle's", search=TranslationOptions)
def rerank(
    flags: dict[str, Any],
    nbest_lists: Annotated[
        Path, typer.Argument(metavar="NBEST", help="N-best lists: JSON lines, or Moses' and Marian's |||.")
    ],
    context_file: Annotated[
        Path | None, typer.Option(help="Target sentences, one a line, that come before the first document.")
    ] = None,
    feature: Annotated[
        str, typer.Option(help="The feature of ||| lines that is log p(y|x), as F0; else their last field.")
    ] = "",
    json_lines: Annotated[
        bool, typer.Option("--json", help="An object a sentence, with every score; else the text alone.")
    ] = False,
    bundle: Bundle_ = None,
    device: Device = "auto",
    compute_type: ComputeType = "int8",
    threads: Threads = 0,
) -> None:
    """Choose from n-best lists by the D-LM: one sentence a line out, a blank line between documents.

    Reads what `cadec translate --json` writes: {"source", "hypotheses": [{"text", "log_prob"}, …]}.

    Example: cadec rerank nbest.jsonl --search lattice --temperature 4

    Example: cadec rerank marian.nbest --feature F0 --json
    """
    import dataclasses
    import json
    import sys

    from cadec_cli.bundle.loading import Models, default_options
    from cadec_cli.bundle.opening import Bundle, find_bundle
    from cadec_cli.commands.translation_run import records
    from cadec_cli.decoding.nbest_files import read_nbest
    from cadec_cli.decoding.search.lattice import Path as SearchPath
    from cadec_cli.decoding.snapshot import Snapshot
    from cadec_cli.decoding.translator import Translator
    from cadec_cli.errors import CadecError
    from cadec_cli.files import read_lines
    from cadec_cli.method.context import Context
    from cadec_cli.method.hypotheses import GivenLists, NBest

    opened = Bundle.open(find_bundle(bundle))
    options = dataclasses.replace(default_options(opened), **flags)
    if options.search not in ("rerank", "lattice"):
        raise CadecError(
            "n-best lists can be searched by rerank or lattice", "`cadec beam` is a command of its own"
        )
    documents: list[list[str]] = [[]]
    lists: list[NBest] = []
    for item in read_nbest(nbest_lists, opened.target, feature=feature):
        if item is None:
            documents.append([])
        else:
            documents[-1].append(str(len(lists)))
            lists.append(item)
    documents = [document for document in documents if document]
    models = Models(opened, device=device, compute_type=compute_type, threads=threads)
    translator = Translator.load(models, options, GivenLists(lists))
    start = Snapshot.at_start(len(documents))
    if context_file is not None:
        sentences = tuple(tuple(opened.lm_pipeline.encode(line)) for line in read_lines(context_file) if line)
        start.documents[0].beam = [SearchPath(context=Context(sentences))]
    found = sorted(
        translator.translate_documents(documents, start=start), key=lambda one: (one.document, one.sentence)
    )
    for number, translation in enumerate(found):
        if json_lines:
            lines = [json.dumps(record, ensure_ascii=False) for record in records(translation)]
        else:
            lines = ["", translation.text] if number and translation.sentence == 0 else [translation.text]
        sys.stdout.writelines(f"{line}\n" for line in lines)
