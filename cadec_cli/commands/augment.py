"""`cadec augment`: more training data, made by models."""

from pathlib import Path
from typing import Annotated

import typer

from cadec_cli.commands.app import new_app
from cadec_cli.commands.shared_flags import (
    BundleOption,
    ComputeType,
    Device,
    SourceLanguage,
    TargetLanguage,
    Threads,
)

augment_app = new_app("Make training data with models.")


@augment_app.callback()
def augment() -> None:
    """Make training data with models."""


@augment_app.command("back-translate")
def back_translate(
    documents: Annotated[
        list[Path],
        typer.Argument(
            help="Texts in the language to be translated into, one sentence per line, a blank line between "
            "documents.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File to write: translation TAB sentence.", show_default=False),
    ],
    bundle: BundleOption = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    beam: Annotated[int, typer.Option(help="Beam size.", min=1)] = 4,
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw translations at random instead: more varied, less exact.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Random seed for --sample.")] = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run; same files and options.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an output that exists.")] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of the documents.")] = "utf-8",
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
    from cadec_cli import console
    from cadec_cli.commands.wiring import open_models
    from cadec_cli.decoding.back_translation import PairFile, input_lines, paired
    from cadec_cli.errors import CadecError
    from cadec_cli.files import sha256

    for path in documents:
        if not path.is_file():
            raise CadecError(f"no such file: {path}")
        if path.resolve() == output.resolve():
            raise CadecError(f"{output} is one of the documents", "write to another file")
    if output.exists() and not force:
        raise CadecError(f"{output} exists", "--force replaces it")
    models = open_models(
        bundle,
        device=device,
        compute_type=compute_type,
        threads=threads,
        source_language=source_language,
        target_language=target_language,
    )
    origin = {
        "bundle": models.bundle.manifest.identity,
        "languages": str(models.languages),
        "documents": " ".join(sha256(path) for path in documents),
        "beam": str(beam),
        "sample": f"{sample} {seed}",
        "compute type": compute_type,
    }
    pairs = PairFile(output, origin)
    done = pairs.done(resume=resume)
    model = models.translation
    total = sum(1 for _ in input_lines(documents, encoding))
    lines = console.track(input_lines(documents, encoding), "back-translate", total)
    for _ in range(done):
        next(lines, None)
    if done:
        console.note(f"{done:,} of {total:,} lines are done already")
    translate = model.sampler(seed + done) if sample else model.best(beam)
    pairs.write(paired(lines, translate))
    console.note(f"{output}: {total:,} lines")
