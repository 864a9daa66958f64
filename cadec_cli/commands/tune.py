"""`cadec tune`: finds the influence of the document language model on a development set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.terminal.flags import (
    MODELS,
    PROTOCOLS,
    ContextSize,
    Force,
    MaxInput,
    Objective,
    Retrieved,
    list_size,
    model_flags,
    one_of,
    temperatures,
)

if TYPE_CHECKING:
    from cadec_cli.bundle.load import LoadedModels
    from cadec_cli.evaluation.tuning.search import Trial
    from cadec_cli.evaluation.tuning.trials import ContrastiveTest


@model_flags()
def tune(
    source: Annotated[
        Path, typer.Argument(help="Development set: one sentence per line, a blank line between documents.")
    ],
    reference: Annotated[Path, typer.Option("--ref", "-r", help="Its translation, line by line.")],
    models: ModelRequest = MODELS,
    objective: Objective = None,
    temperature: Annotated[
        list[float] | None,
        temperatures(
            "A temperature T to try. Can be repeated. With this alone, the weight of c-score stays."
        ),
    ] = None,
    weight: Annotated[
        list[float] | None,
        typer.Option(
            "--weight",
            "-w",
            help="A weight of the D-LM (β) to try. Can be repeated. With this alone, T of c-score stays.",
        ),
    ] = None,
    protocol: Annotated[
        str,
        one_of(
            PROTOCOLS,
            "--protocol",
            help="best: highest BLEU, if it is more than noise (p < 0.05); strongest: largest D-LM "
            "influence whose BLEU is not below the sentence-level baseline.",
        ),
    ] = "best",
    context: ContextSize = None,
    retrieve: Retrieved = None,
    nbest: Annotated[int | None, list_size(2)] = None,
    contrastive: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="SET",
            help="A contrastive set: report the accuracy of every setting too, and draw pareto.png. "
            "Can be repeated.",
        ),
    ] = None,
    split: Annotated[
        bool, typer.Option("--split", help="Split lines into sentences, as translate does without --lines.")
    ] = False,
    max_input: MaxInput = MAX_INPUT_BYTES,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Directory for curve.json and its pictures.")
    ] = None,
    force: Force = False,
    plot: Annotated[bool, typer.Option(help="Draw curve.png and pareto.png (needs matplotlib).")] = True,
    save: Annotated[
        bool | None,
        typer.Option(
            "--save/--no-save",
            help="Write the choice into the bundle, and the limits of translation lengths if it has none "
            "yet. The bundle that comes with cadec is never changed. "
            "[dim]\\[default: save][/dim]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Find the temperature (T) or the weight (β) that translates a development set best by reranking.

    N-best lists and context-free scores are computed once for all values. For c-score, T and the weight are
    tried together, in 36 settings. The weights of bayes are optimised in turn until nothing improves, for
    three rounds at most.

    The bundle's present setting is tried too. It stays unless the best BLEU is significantly higher (paired
    bootstrap over lines, p < 0.05).

    Example: cadec tune dev.en --ref dev.ru --bundle en-ru -o tuning

    Example: cadec tune dev.en --ref dev.ru --contrastive deixis_dev.json -o tuning

    Example: cadec tune dev.en --ref dev.ru --objective shallow-fusion --protocol strongest --no-save

    Example: cadec tune dev.en --ref dev.ru --objective bayes --bundle en-ru
    """
    import dataclasses

    from cadec_cli.bundle.find import find_bundle
    from cadec_cli.engines.protocols import check_temperatures, fixed_temperature
    from cadec_cli.errors import CadecError, as_usage_error
    from cadec_cli.evaluation.aligned import read_aligned
    from cadec_cli.evaluation.tuning.plot import draw_tuning
    from cadec_cli.evaluation.tuning.search import changed_defaults, trial_of
    from cadec_cli.evaluation.tuning.trials import may_save, run_tuning, save_choice, save_learnt_lengths
    from cadec_cli.fs.atomic import write_errors, write_json
    from cadec_cli.jobs.outputs import check_outputs
    from cadec_cli.plotting import require_matplotlib
    from cadec_cli.terminal import console
    from cadec_cli.terminal.console import progress_bars
    from cadec_cli.terminal.run_job import open_job
    from cadec_cli.terminal.views.contrastive import wide_console
    from cadec_cli.terminal.views.evaluation import tuning_table

    if output is not None:
        drawn = ["curve.png", *(["pareto.png"] if contrastive else [])] if plot else []
        written = [output / name for name in ("curve.json", *drawn)]
        check_outputs(written, inputs=[source, reference, *(contrastive or [])], force=force)
    if output is not None and plot:
        require_matplotlib(instead="--no-plot")
    directory = find_bundle(models.bundle)
    saved = may_save(directory, save)
    asked = {"context": context, "retrieve": retrieve, "nbest": nbest}
    job = open_job(dataclasses.replace(models, bundle=directory), asked)
    defaults = job.bundle.defaults
    with as_usage_error():
        check_temperatures(job.loaded.reader, temperature or ())
        fixed = fixed_temperature(job.loaded.reader)
        trial = trial_of(
            defaults, objective or defaults.objective, temperature or (), weight or (), protocol, fixed
        )
        for setting in trial.settings:  # a setting that can't be saved is refused before the work
            changed_defaults(defaults, trial.objective, setting, context, nbest, retrieve)
    test = _contrastive_test(job.loaded, contrastive, trial, context, max_input) if contrastive else None
    if output is not None:
        with write_errors(output):
            output.mkdir(parents=True, exist_ok=True)
    sources, references = read_aligned([source, reference], warn=console.warn, most=max_input)
    console.note(f"{trial.objective}: {len(trial.settings)} settings, {trial.present} at present")
    with progress_bars() as counted:
        tuning = run_tuning(
            job,
            sources.documents,
            references.documents,
            trial,
            protocol,
            split=split,
            contrastive=test,
            counted=counted,
        )
    wide_console().print(tuning_table(tuning))
    if tuning.choice is not None:
        setting = tuning.choice.setting
        chosen = changed_defaults(defaults, trial.objective, setting, context, nbest, retrieve)
        save_choice(directory, defaults, chosen, saved, console.note)
    if saved:
        pairs = zip(sources.sentences, references.sentences, strict=True)
        save_learnt_lengths(job, list(pairs), console.note)
    if output is not None:
        write_json(output / "curve.json", tuning.record(job.bundle.name))
        if plot:
            draw_tuning(tuning, source.name, output)
    if isinstance(tuning.decision, CadecError):
        raise tuning.decision


def _contrastive_test(
    models: LoadedModels, sets: Sequence[Path], trial: Trial, context: int | None, most: int
) -> ContrastiveTest:
    """Read the given contrastive sets, and prepare the models at all temperatures of the trial."""
    from cadec_cli.evaluation.contrastive.scoring import contrastive_models
    from cadec_cli.evaluation.contrastive.sets import read_set
    from cadec_cli.evaluation.tuning.trials import ContrastiveTest
    from cadec_cli.method.options import ScoringOptions
    from cadec_cli.terminal import console
    from cadec_cli.terminal.views.contrastive import left_out

    read = tuple(read_set(path, most=most) for path in sets)
    for one in read:
        if one.left_out:
            console.note(left_out(one))
    names = ["sentence", trial.objective]
    _, scored = contrastive_models(models, names, None, ScoringOptions(trial.temperatures), context)
    return ContrastiveTest(scored, read)
