"""`cadec tune`: how much the document language model should have to say, found on a development set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cadec_cli.commands.choices import one_of
from cadec_cli.commands.shared_flags import (
    PROTOCOLS,
    BundleOption,
    ComputeType,
    Device,
    Force,
    SourceLanguage,
    TargetLanguage,
    Threads,
)
from cadec_cli.method.objectives import OBJECTIVES

if TYPE_CHECKING:
    from cadec_cli.evaluation.tuning.grid import Point, Setting
    from cadec_cli.method.options import DecodingDefaults

# Tried unless others are given; of objectives without T-scaling in the paper, the weight.
TEMPERATURES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
WEIGHTS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)


def tune(
    source: Annotated[
        Path, typer.Argument(help="Development set: one sentence per line, a blank line between documents.")
    ],
    reference: Annotated[Path, typer.Option("--ref", "-r", help="Its translation, line by line.")],
    bundle: BundleOption = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    objective: Annotated[
        str | None,
        one_of(
            OBJECTIVES,
            "--objective",
            help=f"What is maximised: {', '.join(OBJECTIVES)}. [dim]\\[default: the bundle's][/dim]",
        ),
    ] = None,
    temperature: Annotated[
        list[float] | None,
        typer.Option("--temperature", "-T", help="A temperature T to try. Can be repeated."),
    ] = None,
    weight: Annotated[
        list[float] | None,
        typer.Option("--weight", "-w", help="A weight of the D-LM (β) to try. Can be repeated."),
    ] = None,
    protocol: Annotated[
        str,
        one_of(
            PROTOCOLS,
            "--protocol",
            help="best: highest BLEU; strongest: largest D-LM influence whose BLEU is not below "
            "the sentence-level baseline.",
        ),
    ] = "best",
    context: Annotated[
        int | None,
        typer.Option(help="Number of sentences of context. [dim]\\[default: the bundle's][/dim]", min=0),
    ] = None,
    nbest: Annotated[
        int | None,
        typer.Option(help="Number of hypotheses per sentence. [dim]\\[default: the bundle's][/dim]", min=2),
    ] = None,
    split: Annotated[
        bool, typer.Option("--split", help="Split lines into sentences, as translate does without --lines.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Directory for curve.json and curve.png.")
    ] = None,
    force: Force = False,
    plot: Annotated[bool, typer.Option(help="Draw curve.png (needs matplotlib).")] = True,
    save: Annotated[bool, typer.Option(help="Write the choice into the bundle.")] = True,
    device: Device = "auto",
    compute_type: ComputeType = "int8",
    threads: Threads = 0,
) -> None:
    """Find the temperature (T) or the weight (β) that translates a development set best by reranking.

    All values are tried at once: n-best lists and context-free scores are computed one time only. The several
    weights of bayes are found together, one after the other until nothing gets better (three rounds at most).

    Example: cadec tune dev.en --ref dev.ru --bundle en-ru -o tuning

    Example: cadec tune dev.en --ref dev.ru --objective shallow-fusion --protocol strongest --no-save

    Example: cadec tune dev.en --ref dev.ru --objective bayes --bundle en-ru
    """
    import dataclasses
    import os

    from cadec_cli import console
    from cadec_cli.bundle.manifest import MANIFEST, save_defaults
    from cadec_cli.bundle.opening import find_bundle
    from cadec_cli.commands.outputs import check_outputs
    from cadec_cli.commands.progress import bars
    from cadec_cli.commands.views.figures import tuning_table
    from cadec_cli.commands.views.translations import stdout_console
    from cadec_cli.commands.wiring import open_models
    from cadec_cli.errors import CadecError, UsageError, typed
    from cadec_cli.evaluation.aligned import read_aligned
    from cadec_cli.evaluation.tuning.coordinates import coordinate_search
    from cadec_cli.evaluation.tuning.grid import Setting, choose, prepared
    from cadec_cli.evaluation.tuning.plot import plot_tuning
    from cadec_cli.files import write_json, writing
    from cadec_cli.method import objectives
    from cadec_cli.plotting import require_matplotlib

    if output is not None:
        drawn = [output / "curve.png"] if plot else []
        check_outputs([output / "curve.json", *drawn], inputs=[source, reference], force=force)
    if output is not None and plot:
        require_matplotlib(instead="--no-plot")
    directory = find_bundle(bundle)
    models = open_models(
        directory,
        device=device,
        compute_type=compute_type,
        threads=threads,
        source_language=source_language,
        target_language=target_language,
    )
    opened = models.bundle
    if save and not os.access(directory / MANIFEST, os.W_OK):
        raise CadecError(f"{directory} can't be written to", "--no-save only reports the choice")
    name = objective or opened.defaults.objective
    formula = objectives.objective(name)
    if not formula.weights:
        tunable = [name for name, known in objectives.OBJECTIVES.items() if known.weights]
        raise UsageError(f"{name} has nothing to tune", f"these have: {', '.join(tunable)}")
    together = "lm" not in formula.weights  # several weights, none of them the D-LM's
    if together and (weight or protocol != "best" or len(temperature or ()) > 1):
        raise UsageError(
            f"the weights of {name} are found together, by BLEU and at one temperature",
            "leave out --weight and --protocol, and give one --temperature at most",
        )
    default_temperatures = TEMPERATURES if name == "c-score" and not weight else (1.0,)
    default_weights = (1.0,) if name == "c-score" else WEIGHTS
    start = Setting((temperature or [1.0])[0], named=tuple(formula.weights.items()))
    settings = (
        [start]
        if together
        else [
            Setting(tried, weighed)
            for weighed in dict.fromkeys(weight or default_weights)
            for tried in dict.fromkeys(temperature or default_temperatures)
        ]
    )
    for setting in settings:  # all that could not be saved is refused before the work, not after it
        with typed():
            _changed(opened.defaults, name, setting, context, nbest)
    if output is not None:
        with writing(output):
            output.mkdir(parents=True, exist_ok=True)
    sources, references = read_aligned([source, reference], warn=console.warn)
    with bars() as counted:
        development = prepared(
            models,
            sources.documents,
            references.documents,
            name,
            settings,
            context=opened.defaults.context if context is None else context,
            nbest=nbest or opened.defaults.nbest,
            split_language=models.languages.source_code if split else None,
            counted=counted,
        )
        if together:
            level, points = coordinate_search(
                development, formula.weights, start.temperature, counted=counted
            )
        else:
            level, points = development.points(settings, counted)
    try:
        choice: Point | None = choose(protocol, level, points)
    except CadecError as error:
        choice, reason = None, error
    stdout_console().print(tuning_table(name, level, points, choice))
    if choice is not None and save:
        save_defaults(directory, _changed(opened.defaults, name, choice.setting, context, nbest))
        console.note(f"written into {directory}; `cadec convert {directory} --temperature …` changes it")
    if output is not None:
        curve = {
            "bundle": opened.name,
            "objective": name,
            "protocol": protocol,
            "sentence_level": dataclasses.asdict(level),
            "points": [dataclasses.asdict(point) for point in points],
            "choice": dataclasses.asdict(choice) if choice is not None else None,
        }
        write_json(output / "curve.json", curve)
        if plot and not together:  # of several weights there is no curve
            plot_tuning(level, points, choice, f"{name} on {source.name}", output / "curve.png")
    if choice is None:
        raise reason


def _changed(
    defaults: DecodingDefaults, name: str, setting: Setting, context: int | None, nbest: int | None
) -> DecodingDefaults:
    """The bundle's defaults with what was found, and with what it was found for."""
    import dataclasses

    return dataclasses.replace(
        defaults,
        objective=name,
        weight=setting.weights,
        temperature=setting.temperature,
        context=defaults.context if context is None else context,
        nbest=nbest or defaults.nbest,
    )
