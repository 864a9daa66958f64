"""`cadec train …`: text pipelines and models."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cadec_cli.commands.app import new_app
from cadec_cli.commands.flags import flags_of
from cadec_cli.training.options import (
    DocumentLMSize,
    PairOptions,
    TrainingOptions,
    TransformerSize,
    WindowOptions,
)

train_app = new_app("Train a text pipeline, an S-NMT or a D-LM.")

Inputs = Annotated[list[Path], typer.Argument(help="Text files, compressed or not; - is standard input.")]
Language = Annotated[str, typer.Option("--language", "-l", help="Its code: en, ru, de …")]
Column = Annotated[int, typer.Option(help="Take this column of tab-separated files, counted from 1.", min=0)]
Encoding = Annotated[str, typer.Option(help="Encoding of the input.")]
Processes = Annotated[int, typer.Option(help="Processes; 0 is one a core.", min=0)]


@train_app.command("truecaser")
def truecaser(
    inputs: Inputs,
    output: Annotated[Path, typer.Option("--output", "-o", help="The truecaser, a JSON file.")],
    language: Language,
    column: Column = 0,
    encoding: Encoding = "utf-8",
    processes: Processes = 0,
) -> None:
    """Learn which words are usually written small.

    Example: cadec train truecaser plays.txt.xz -l ru -o truecaser.json
    """
    from cadec_cli import console
    from cadec_cli.data.corpora import tokenised_lines
    from cadec_cli.errors import CadecError
    from cadec_cli.files import whole_file
    from cadec_cli.text.moses import Truecaser
    from cadec_cli.text.pipeline import truecaser_json

    lines = tokenised_lines(inputs, language, column=column, encoding=encoding, processes=processes)
    trained = Truecaser.train(line.split() for line in console.track(lines, "truecaser"))
    if not trained.lowered:
        raise CadecError("there is no word in this text that is usually written small", "is the input empty?")
    with whole_file(output) as stream:
        stream.write(truecaser_json(trained))
    console.note(f"{len(trained.lowered):,} words are usually written small: {output}")


@train_app.command("tokenizer")
def tokenizer(
    inputs: Inputs,
    output: Annotated[Path, typer.Option("--output", "-o", help="The text pipeline, a directory.")],
    language: Language,
    vocab_size: Annotated[int, typer.Option(help="Pieces of the vocabulary.", min=10)] = 16_000,
    truecaser: Annotated[
        Path | None, typer.Option(help="A trained truecaser; without it one is trained on the same text.")
    ] = None,
    byte_fallback: Annotated[
        bool, typer.Option(help="Keep 256 pieces for bytes, so that every character can be written.")
    ] = True,
    max_lines: Annotated[
        int, typer.Option(help="Lines to train on, the first of each file.", min=1)
    ] = 2_000_000,
    column: Column = 0,
    encoding: Encoding = "utf-8",
    processes: Processes = 0,
    seed: Annotated[int, typer.Option(help="Of SentencePiece's sampling.")] = 1,
) -> None:
    """Train the text pipeline of a language: truecaser and SentencePiece unigram model.

    Example: cadec train tokenizer plays.txt.xz jokes.txt.xz -l ru -o pipelines/ru
    """
    import itertools
    import tempfile

    from cadec_cli import console
    from cadec_cli.data.corpora import tokenised_lines
    from cadec_cli.text.moses import Truecaser
    from cadec_cli.text.pipeline import TextPipeline, load_truecaser
    from cadec_cli.text.subwords import train_subwords

    known = load_truecaser(truecaser) if truecaser else None
    # Tokenised once, kept on disk: two models are learnt from it.
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
        help="A corpus from `cadec prepare`; DIR=2 counts it twice an epoch, DIR=0.5 half.",
        show_default=False,
    ),
]
Dev = Annotated[list[Path] | None, typer.Option("--dev", help="A corpus to evaluate on.", show_default=False)]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="The run: checkpoints, metrics and at last model/.")
]
Preset = Annotated[str, typer.Option("--preset", "-p", help="tiny, small, paper, or a TOML file.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in --output, exactly where it was.")]
StartFrom = Annotated[
    Path | None,
    typer.Option(
        "--start-from", help="A model or run to take the first weights from, to go on with other data."
    ),
]
Plot = Annotated[bool, typer.Option("--plot", help="Draw the curves to curves.png at the end.")]


@train_app.command("lm")
@flags_of(training=TrainingOptions, windows=WindowOptions, model=DocumentLMSize)
def lm(
    output: Output,
    flags: dict[str, Any],
    data: Data = None,
    dev: Dev = None,
    preset: Preset = "small",
    resume: Resume = False,
    start_from: StartFrom = None,
    plot: Plot = False,
) -> None:
    """Train a D-LM, the document language model of the target language.

    Example: cadec train lm --data plays --data jokes=0.5 --dev plays-dev -o runs/lm --preset small
    """
    from cadec_cli.commands.training_run import LM_OPTIONS, start

    start(
        "lm",
        LM_OPTIONS,
        data=data or [],
        dev=dev or [],
        output=output,
        preset=preset,
        flags=flags,
        resume=resume,
        start_from=start_from,
        plot=plot,
    )


@train_app.command("nmt")
@flags_of(training=TrainingOptions, pairs=PairOptions, model=TransformerSize)
def nmt(
    output: Output,
    flags: dict[str, Any],
    data: Data = None,
    dev: Dev = None,
    preset: Preset = "small",
    resume: Resume = False,
    start_from: StartFrom = None,
    plot: Plot = False,
    pipeline: Annotated[
        Path | None, typer.Option(help="The target language's text pipeline; needed for --stop-on bleu.")
    ] = None,
) -> None:
    """Train an S-NMT, the sentence-level translation model.

    Example: cadec train nmt --data pairs --dev pairs-dev -o runs/nmt --preset small
    """
    from cadec_cli.commands.training_run import NMT_OPTIONS, start

    start(
        "nmt",
        NMT_OPTIONS,
        data=data or [],
        dev=dev or [],
        output=output,
        preset=preset,
        flags=flags,
        resume=resume,
        start_from=start_from,
        plot=plot,
        pipeline=pipeline,
    )
