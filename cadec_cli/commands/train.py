"""`cadec train …`: text pipelines and models."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cadec_cli.terminal.app import new_app
from cadec_cli.terminal.flags import Force, complete_from, flags_of
from cadec_cli.training.kinds import KINDS, Kind
from cadec_cli.training.presets import BleuOptions, TrainingOptions

train_app = new_app("Train a text pipeline, an S-NMT or a D-LM.")

Inputs = Annotated[list[Path], typer.Argument(help="Text files, compressed or not; - is standard input.")]
Language = Annotated[str, typer.Option("--language", "-l", help="Language code, e.g. en, ru, de.")]
Column = Annotated[
    int,
    typer.Option(help="Take this column of tab-separated files, counted from 1; 0 takes whole lines.", min=0),
]
Encoding = Annotated[str, typer.Option(help="Encoding of the input.")]
Processes = Annotated[int, typer.Option(help="Number of processes; 0 means one per core.", min=0)]


@train_app.command("truecaser")
def truecaser(
    inputs: Inputs,
    output: Annotated[Path, typer.Option("--output", "-o", help="The truecaser, a JSON file.")],
    language: Language,
    column: Column = 0,
    encoding: Encoding = "utf-8",
    processes: Processes = 0,
    force: Force = False,
) -> None:
    """Train a truecaser: learn which words are normally lower-case.

    Example: cadec train truecaser plays.txt.xz -l ru -o truecaser.json
    """
    from cadec_cli.data.preparation import tokenised_lines
    from cadec_cli.errors import CadecError
    from cadec_cli.fs.atomic import atomic_file
    from cadec_cli.jobs.outputs import check_outputs
    from cadec_cli.terminal import console
    from cadec_cli.text.moses import Truecaser
    from cadec_cli.text.pipeline import truecaser_json

    check_outputs([output], inputs=inputs, force=force)
    lines = tokenised_lines(inputs, language, column=column, encoding=encoding, processes=processes)
    trained = Truecaser.train(line.split() for line in console.track(lines, "truecaser"))
    if not trained.lowered:
        raise CadecError("this text has no word that is normally lower-case", "is the input empty?")
    with atomic_file(output) as stream:
        stream.write(truecaser_json(trained))
    console.note(f"{len(trained.lowered):,} words are normally lower-case: {output}")


@train_app.command("tokenizer")
def tokenizer(
    inputs: Inputs,
    output: Annotated[Path, typer.Option("--output", "-o", help="The text pipeline, a directory.")],
    language: Language,
    vocab_size: Annotated[int, typer.Option(help="Number of pieces in the vocabulary.", min=10)] = 16_000,
    truecaser: Annotated[
        Path | None, typer.Option(help="A trained truecaser; without it, one is trained on the same text.")
    ] = None,
    byte_fallback: Annotated[
        bool, typer.Option(help="Keep 256 pieces for bytes, so that every character can be written.")
    ] = True,
    placeholders: Annotated[
        bool,
        typer.Option(
            "--placeholders",
            help="Keep pieces for placeholders, which an S-NMT learns to copy (see prepare text).",
        ),
    ] = False,
    max_lines: Annotated[
        int, typer.Option(help="Lines of each file to train on, from its start.", min=1)
    ] = 2_000_000,
    column: Column = 0,
    encoding: Encoding = "utf-8",
    processes: Processes = 0,
    seed: Annotated[int, typer.Option(help="Random seed for SentencePiece's sampling.")] = 1,
    force: Force = False,
) -> None:
    """Train the text pipeline of a language: truecaser and SentencePiece unigram model.

    Example: cadec train tokenizer plays.txt.xz jokes.txt.xz -l ru -o pipelines/ru
    """
    import itertools
    import tempfile

    from cadec_cli.data.preparation import tokenised_lines
    from cadec_cli.fs.atomic import check_marker
    from cadec_cli.jobs.outputs import check_outputs
    from cadec_cli.terminal import console
    from cadec_cli.text.languages import check_language
    from cadec_cli.text.moses import Truecaser
    from cadec_cli.text.pipeline import FILES, TextPipeline, load_truecaser
    from cadec_cli.text.subwords import train_subwords

    check_language(language)
    check_outputs([output], inputs=[*inputs, truecaser], force=force, directories=True)
    check_marker(output, FILES[0])
    known = load_truecaser(truecaser) if truecaser else None
    # Tokenised once and kept on disk, because two models are trained on it.
    with tempfile.TemporaryFile("w+", encoding="utf-8") as tokenised:
        for path in inputs:
            lines = tokenised_lines([path], language, column=column, encoding=encoding, processes=processes)
            for line in console.track(itertools.islice(lines, max_lines), f"tokenise {path.name}"):
                tokenised.write(line + "\n")
        tokenised.seek(0)
        casing = known or Truecaser.train(line.split() for line in tokenised)
        tokenised.seek(0)
        cased = (" ".join(casing.truecase(line.split())) for line in tokenised)
        subwords = train_subwords(
            console.track(cased, "subwords"),
            vocabulary_size=vocab_size,
            byte_fallback=byte_fallback,
            placeholders=placeholders,
            seed=seed,
        )
    pipeline = TextPipeline(language, casing, subwords)
    pipeline.save(output)
    console.note(f"{len(pipeline):,} pieces for {language}: {output} ({pipeline.checksum[:12]})")


Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        "-d",
        help="A corpus from `cadec prepare`. DIR=2 counts it twice per epoch, DIR=0.5 half. Can be repeated.",
        show_default=False,
    ),
]
Dev = Annotated[
    list[Path] | None,
    typer.Option("--dev", help="A corpus to evaluate on. Can be repeated.", show_default=False),
]
Output = Annotated[
    Path,
    typer.Option("--output", "-o", help="The run, a directory: checkpoints, metrics and finally model/."),
]
Preset = Annotated[
    str,
    typer.Option(
        "--preset",
        "-p",
        metavar="<tiny|small|paper|FILE>",
        help="Preset for model size and length of training, or a TOML file.",
        autocompletion=complete_from(("tiny", "small", "paper")),
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue the run in --output exactly where it stopped.")
]
StartFrom = Annotated[
    str | None,
    typer.Option(
        "--start-from",
        help="A model or run to take initial weights from. A D-LM can also start from a pretrained language "
        "model.",
    ),
]
# How long processes wait for a pretrained model that the first one fetches and reads.
ORIGIN_SECONDS = 3600
Plot = Annotated[bool, typer.Option("--plot", help="Draw the loss curves to curves.png at the end.")]


def _add(kind: Kind) -> None:
    """Add `cadec train KIND`, with a flag for everything that can be chosen about it."""
    panels: dict[str, type[Any]] = {
        "training": TrainingOptions,
        "data": kind.data_options,
        "model": kind.config,
    }
    if kind.bleu is not None:
        panels["evaluation"] = BleuOptions
    if kind.fine_tuning is not None:
        panels["fine_tuning"] = kind.fine_tuning

    @train_app.command(kind.name, help=kind.help)
    @flags_of("preset's", **panels)
    def train(
        output: Output,
        flags: dict[str, Any],
        data: Data = None,
        dev: Dev = None,
        preset: Preset = "small",
        resume: Resume = False,
        start_from: StartFrom = None,
        plot: Plot = False,
    ) -> None:
        from cadec_cli.errors import UsageError
        from cadec_cli.terminal import console
        from cadec_cli.terminal.views.training import TrainingView
        from cadec_cli.training.training_run import carry_out, check_inputs, continued_run, new_run

        pipeline = flags.pop("pipeline", None)  # its present path, which is not a setting of the run
        if resume and start_from is not None:
            raise UsageError("a continued run has weights of its own", "leave out --start-from")
        if not resume:
            check_inputs(data or [], dev or [])
        chosen, origin = _resolve_start(kind, output, start_from, resume)
        if resume:
            run = continued_run(chosen, output, flags)
        else:
            run = new_run(
                chosen,
                output,
                data=data or [],
                dev=dev or [],
                preset=preset,
                flags=flags,
                start_from=origin,
                note=console.note,
            )
        if carry_out(run, output, pipeline=pipeline, plot=plot, reporter=TrainingView()).interrupted:
            raise typer.Exit(130)


def _resolve_start(
    kind: Kind, output: Path, start_from: str | None, resume: bool
) -> tuple[Kind, Path | None]:
    """The kind to train and the model to start from; a pretrained model is stored with the run."""
    from cadec_cli.bundle.parts import is_pretrained
    from cadec_cli.models.pretrained_settings import ORIGIN, is_fine_tuning

    origin = output / ORIGIN
    if kind.fine_tuning is None:
        return kind, Path(start_from) if start_from else None
    from cadec_cli.training.fine_tuning import fine_tuning_kind

    if resume:
        return (fine_tuning_kind(origin) if is_fine_tuning(output) else kind), None
    if start_from is None or not is_pretrained(kind.name, start_from):
        return kind, Path(start_from) if start_from else None
    _keep_origin(start_from, origin)
    return fine_tuning_kind(origin), origin


def _keep_origin(start_from: str, origin: Path) -> None:
    """Store a pretrained model with the run, which starts from it; only one of several processes writes."""
    import os
    import time

    from cadec_cli.errors import CadecError
    from cadec_cli.fs.atomic import atomic_directory
    from cadec_cli.models.pretrained_settings import LANGUAGE_SETTINGS
    from cadec_cli.terminal import console
    from cadec_cli.training.training_run import check_new
    from converters.language.huggingface import open_language_model

    check_new(origin.parent)
    started = time.time()
    if os.environ.get("RANK", "0") != "0":  # set by torchrun; the first process writes
        written = origin / LANGUAGE_SETTINGS
        while not (written.is_file() and written.stat().st_mtime >= started - 1):
            if time.time() - started > ORIGIN_SECONDS:
                raise CadecError(f"the first process did not write {origin}")
            time.sleep(0.2)
        return
    found = open_language_model(start_from, no_context={}, note=console.note)
    with atomic_directory(origin, marker=LANGUAGE_SETTINGS) as part:
        found.write(part, link=found.directory is not None)


for _kind in KINDS.values():
    _add(_kind)
