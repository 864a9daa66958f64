"""`cadec bench`: what context costs, as ratios within one run."""

from pathlib import Path
from typing import Annotated

import typer

from cadec_cli.commands.shared_flags import Threads


def bench(
    bundle: Annotated[
        Path | None,
        typer.Option("--bundle", "-b", help="Measure the networks of this bundle instead of random ones."),
    ] = None,
    documents: Annotated[int, typer.Option(help="Number of documents translated in step.", min=1)] = 8,
    sentences: Annotated[int, typer.Option(help="Number of sentences per document.", min=1)] = 6,
    threads: Threads = 0,
    json_lines: Annotated[bool, typer.Option("--json", help="Write one JSON object per figure.")] = False,
) -> None:
    """Measure scoring and translation: by default the paper's sizes, random weights, int8, B = 20, context 3.

    Run it on an idle machine. Figures are ratios of speeds; what is compared runs in turns.

    Example: cadec bench
    """
    import json
    import sys

    import torch

    from cadec_cli import console
    from cadec_cli.bundle.opening import Bundle
    from cadec_cli.commands.views.figures import speed_table
    from cadec_cli.commands.views.translations import stdout_console
    from cadec_cli.errors import CadecError
    from cadec_cli.evaluation.benchmark import Networks, measure
    from cadec_cli.workers import available_cores

    torch.set_num_threads(threads or available_cores())
    if bundle is None:
        networks = Networks.random()
    else:
        opened = Bundle.open(bundle)
        if opened.translation_settings is not None or opened.language_settings is not None:
            raise CadecError(
                f"{bundle} has pretrained models, and this measures networks of ours, stepped by the beam",
                f"`python -m bench pretrained {bundle}` in a checkout measures those",
            )
        networks = Networks.of(opened.translation_network(), opened.lm_network())
    ratios = measure(networks, documents=documents, sentences=sentences, note=console.note)
    if json_lines:
        for ratio in ratios:
            sys.stdout.write(json.dumps(ratio.as_json()) + "\n")
        return
    stdout_console().print(speed_table(ratios))
