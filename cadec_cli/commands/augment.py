"""`cadec augment`: more training data, made by models."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from cadec_cli.commands.app import new_app
from cadec_cli.commands.shared_flags import (
    BundleOption,
    ComputeType,
    Device,
    Force,
    SourceLanguage,
    TargetLanguage,
    Threads,
)

augment_app = new_app("Make training data with models.")


@augment_app.callback()
def augment() -> None:
    """Make training data with models."""


Documents = Annotated[
    list[Path],
    typer.Argument(
        help="Texts in the target language, one sentence per line, a blank line between documents.",
        show_default=False,
    ),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="File to write: translation TAB sentence.", show_default=False)
]
Beam = Annotated[int, typer.Option(help="Beam size.", min=1)]
Seed = Annotated[int, typer.Option(help="Random seed of what is drawn.")]
Temperature = Annotated[
    float,
    typer.Option(
        help="Sampling temperature: 1 draws words as the model finds them likely, less favours likely ones.",
        min=0.01,
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue an interrupted run; same files and options.")
]
Encoding = Annotated[str, typer.Option(help="Encoding of the documents.")]


@augment_app.command("back-translate")
def back_translate(
    documents: Documents,
    output: Output,
    bundle: BundleOption = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    beam: Beam = 4,
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw translations at random instead: more varied, less exact.")
    ] = False,
    temperature: Temperature = 1.0,
    seed: Seed = 1,
    resume: Resume = False,
    force: Force = False,
    encoding: Encoding = "utf-8",
    device: Device = "auto",
    compute_type: ComputeType = "int8",
    threads: Threads = 0,
) -> None:
    """Translate target-side documents back, into pairs to train an S-NMT of the other direction on.

    The bundle's S-NMT translates from the language of the documents; its D-LM is not needed. Document
    boundaries stay.

    Example: cadec augment back-translate plays.ru.txt --bundle ru-en -o pseudo.tsv

    Example: cadec prepare text pseudo.tsv --columns 1,2 -p en -p ru -o pseudo
    """
    from cadec_cli.commands.wiring import open_models

    check_output(documents, output, force=force, resume=resume)
    models = open_models(
        bundle,
        device=device,
        compute_type=compute_type,
        threads=threads,
        source_language=source_language,
        target_language=target_language,
    )
    model = models.translation
    write_pairs(
        documents,
        output,
        {
            "bundle": models.bundle.manifest.identity,
            "languages": str(models.languages),
            "beam": str(beam),
            "sample": f"{sample} {seed} {temperature}",
            "compute type": compute_type,
        },
        lambda done: model.sampler(seed + done, temperature) if sample else model.best(beam),
        what="back-translate",
        resume=resume,
        encoding=encoding,
    )


@augment_app.command("round-trip")
def round_trip(
    documents: Documents,
    output: Output,
    bundle: BundleOption = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    sample: Annotated[
        bool,
        typer.Option(help="Draw the translations into the source language at random, not by beam search."),
    ] = True,
    temperature: Temperature = 0.5,
    beam: Beam = 4,
    seed: Seed = 1,
    resume: Resume = False,
    force: Force = False,
    encoding: Encoding = "utf-8",
    device: Device = "auto",
    compute_type: ComputeType = "int8",
    threads: Threads = 0,
) -> None:
    """Translate target-side documents into the source language and back, into pairs to train DocRepair on.

    The bundle needs a backward model (`cadec convert --back`). The way back is by beam search, as
    translations will be that are to be repaired. Document boundaries stay.

    Example: cadec augment round-trip plays.ru.txt --bundle en-ru -o trips.tsv

    Example: cadec prepare text trips.tsv --columns 1,2 -p ru -p ru --lines -o trips
    """
    from cadec_cli.commands.wiring import open_models
    from cadec_cli.errors import CadecError

    check_output(documents, output, force=force, resume=resume)
    models = open_models(
        bundle,
        device=device,
        compute_type=compute_type,
        threads=threads,
        source_language=source_language,
        target_language=target_language,
    )

    def translation(done: int) -> Callable[[Sequence[str]], list[str]]:
        reverse = models.backward
        if reverse is None:
            raise CadecError(
                f"{models.bundle.directory} has no backward model, which begins the round trip",
                "add one with `cadec convert BUNDLE --back REVERSE`, a bundle of the other direction",
            )
        forward = models.translation.best(beam)
        there = reverse.sampler(seed + done, temperature) if sample else reverse.best(beam)
        return lambda texts: forward(there(texts))

    write_pairs(
        documents,
        output,
        {
            "bundle": models.bundle.manifest.identity,
            "languages": str(models.languages),
            "round trip": f"{sample} {seed} {temperature} {beam}",
            "compute type": compute_type,
        },
        translation,
        what="round trip",
        resume=resume,
        encoding=encoding,
    )


def check_output(documents: list[Path], output: Path, *, force: bool, resume: bool) -> None:
    """Refuse what is not there, and what would be lost."""
    from cadec_cli.commands.outputs import check_outputs
    from cadec_cli.decoding.back_translation import PairFile
    from cadec_cli.errors import CadecError, UsageError
    from cadec_cli.places import is_stream

    if resume and is_stream(output):
        raise UsageError("--resume needs a file as --output: nothing is kept beside a stream")
    for path in documents:
        if not path.is_file():
            raise CadecError(f"no such file: {path}")
    # What unfinished work wrote last is its own.
    goes_on = resume and PairFile(output, {}).part.exists()
    check_outputs([output], inputs=documents, force=force or goes_on)


def write_pairs(
    documents: list[Path],
    output: Path,
    origin: dict[str, str],
    translation: Callable[[int], Callable[[Sequence[str]], list[str]]],
    *,
    what: str,
    resume: bool,
    encoding: str,
) -> None:
    """Pair every line with what it is translated to; `translation` is told how many lines are done."""
    from cadec_cli import console
    from cadec_cli.decoding.back_translation import PairFile, input_lines, paired
    from cadec_cli.files import sha256

    pairs = PairFile(output, {**origin, "documents": " ".join(sha256(path) for path in documents)})
    done = pairs.done(resume=resume)
    total = sum(1 for _ in input_lines(documents, encoding))  # whatever is wrong with them is found here
    translate = translation(done.lines)
    if done.damage:
        console.warn(done.damage)
        pairs.mend(input_lines(documents, encoding), translate, done)
    lines = console.track(input_lines(documents, encoding), what, total)
    for _ in range(done.lines):
        next(lines, None)
    if done.lines:
        console.note(f"{done.lines - done.lost:,} of {total:,} lines are done already")
    pairs.write(paired(lines, translate), done.lines)
    console.note(f"{output}: {total:,} lines")
