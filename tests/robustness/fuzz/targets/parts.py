"""Valid parts that several targets are made of: pipelines, tiny models, a bundle. Made once per run."""

import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cadec_cli.text.pipeline import TextPipeline

# Set for the process of the trials: another one that takes its place finds there what the first made.
PLACE = "CADEC_FUZZ_PARTS"


def made(name: str, make: Callable[[Path], object]) -> Path:
    """A directory that `make` fills, unless that was done before."""
    directory = Path(os.environ[PLACE]) / name
    if not directory.exists():
        part = directory.with_name(f"{name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        make(part)
        part.rename(directory)
    return directory


def copied(source: Callable[[], Path], below: str = "") -> Callable[[Path], None]:
    """A seed that is a copy of a part."""

    def seed(directory: Path) -> None:
        shutil.copytree(source() / below, directory, dirs_exist_ok=True)

    return seed


def text(name: str, content: str | bytes) -> Callable[[Path], None]:
    """A seed that is one file."""

    def seed(directory: Path) -> None:
        raw = content.encode() if isinstance(content, str) else content
        (directory / name).write_bytes(raw)

    return seed


@cache
def pipelines() -> "tuple[TextPipeline, TextPipeline]":
    """English and Russian, as small as they get."""
    from cadec_cli.text.pipeline import TextPipeline
    from tests.conftest import ENGLISH, RUSSIAN, sentences, trained_pipeline

    def make(directory: Path) -> None:
        for language, lines in (("en", ENGLISH), ("ru", RUSSIAN)):
            trained_pipeline(language, sentences(lines, 400)).save(directory / language)

    place = made("pipelines", make)
    return TextPipeline.load(place / "en"), TextPipeline.load(place / "ru")


@cache
def bundle() -> Path:
    """A bundle that translates at once, and badly."""
    from tests.helpers.repl_parts import tiny_bundle

    def make(directory: Path) -> None:
        tiny_bundle(directory, *pipelines())

    return made("bundle", make) / "bundle"
