"""`cadec bench`: the cost of context, as ratios of speeds within one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.terminal.flags import MaxInput, Threads

if TYPE_CHECKING:
    from cadec_cli.evaluation.benchmark import Networks, SpeedRatio


def bench(
    bundle: Annotated[
        Path | None,
        typer.Option("--bundle", "-b", help="Measure the networks of this bundle instead of random ones."),
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(
            help="Measure the bundle's own translation of this file against --search sentence.",
            show_default=False,
        ),
    ] = None,
    documents: Annotated[int, typer.Option(help="Number of documents translated in step.", min=1)] = 8,
    sentences: Annotated[int, typer.Option(help="Number of sentences per document.", min=1)] = 6,
    max_input: MaxInput = MAX_INPUT_BYTES,
    threads: Threads = 0,
    json_lines: Annotated[bool, typer.Option("--json", help="Write one JSON object per figure.")] = False,
) -> None:
    """Measure scoring and translation: by default the paper's sizes, random weights, int8, B = 20, context 3.

    Run it on an idle machine. Figures are ratios of speeds; the systems that are compared run in turns.

    Example: cadec bench

    Example: cadec bench --text film.srt
    """
    import json
    import sys

    import torch

    from cadec_cli.evaluation.benchmark import measure
    from cadec_cli.models.int8.kernels import level
    from cadec_cli.parallel import available_cores
    from cadec_cli.terminal import console
    from cadec_cli.terminal.views.evaluation import speed_table
    from cadec_cli.terminal.views.translations import stdout_console

    torch.set_num_threads(threads or available_cores())
    between = level() or "torch"
    console.note(
        "between products: " + ("torch's own operations" if between == "torch" else f"compiled for {between}")
    )
    if text is not None:
        ratios = [_of_text(text, bundle, threads, max_input)]
    else:
        ratios = measure(_networks(bundle), documents=documents, sentences=sentences, note=console.note)
    if json_lines:
        for ratio in ratios:
            sys.stdout.write(json.dumps({**ratio.as_json(), "between products": between}) + "\n")
        return
    stdout_console().print(speed_table(ratios))


def _of_text(text: Path, bundle: Path | None, threads: int, most: int) -> SpeedRatio:
    """Measure the translation of a file, read as `cadec translate` reads it, with the bundle's defaults."""
    from cadec_cli.bundle.load import default_options
    from cadec_cli.evaluation.benchmark.speed import translating_text
    from cadec_cli.jobs.model_request import ModelRequest
    from cadec_cli.terminal import console
    from cadec_cli.terminal.run_job import open_models
    from cadec_cli.text.formats import read_text_file

    models = open_models(ModelRequest(bundle, device="cpu", compute_type="int8", threads=threads))
    options = default_options(models.bundle)
    language = models.languages.source_code
    file = read_text_file(text, language=language, encoding="utf-8", tags=options.protect, most=most)
    console.note("translating …")
    return translating_text(models, options, [one.texts for one in file.documents], language)


def _networks(bundle: Path | None) -> Networks:
    """The networks of a bundle, or random ones."""
    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.errors import CadecError
    from cadec_cli.evaluation.benchmark import Networks

    if bundle is None:
        return Networks.random()
    opened = Bundle.open(bundle)
    models = [part for part in ("nmt", "lm") if part in opened.manifest.parts]
    if not all(map(opened.trained_here, models)):
        raise CadecError(
            f"{bundle} has pretrained models, and this measures networks trained with cadec",
            f"--text measures any bundle; so does `python -m bench pretrained {bundle}` in a checkout",
        )
    return Networks.of(opened.translation_network(), opened.lm_network())
