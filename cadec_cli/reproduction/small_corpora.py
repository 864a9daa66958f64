"""The texts of the `small` scale, from a directory of corpora that are there already.

Written as what the other commands read: tab-separated pairs, and documents of one sentence per line. Which
files hold the corpora stands here, and nowhere else.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.fs.read import read_lines
from cadec_cli.reproduction.document_files import read_documents, write_documents
from cadec_cli.text.sentences import split_sentences

PAIRS = Path("train/parallel.en-ru.tsv.xz")  # tag, English, Russian
MONOLINGUAL = (Path("train/ru-subtitle-blocks.txt.xz"), Path("train/ru-jokes.txt.xz"))
ALIGNED = (Path("dev/wesnoth-dev.en"), Path("dev/wesnoth-dev.ru"))
CONTRASTIVE = (Path("contrastive/deixis_dev.json"), Path("contrastive/lex_cohesion_dev.json"))

# Shorter documents have next to no context.
SHORTEST = 3


def check_corpora(data: Path) -> None:
    """Refuse a directory that lacks some of it, and name all that is missing."""
    missing = [
        str(name) for name in (PAIRS, *MONOLINGUAL, *ALIGNED, *CONTRASTIVE) if not (data / name).is_file()
    ]
    if missing:
        raise CadecError(
            f"{data} has no {', '.join(missing)}", f"name the directory of the corpora with {option('data')}"
        )


def write_pairs(data: Path, output: Path, most: int) -> None:
    """Source TAB target, so many pairs at most."""
    with atomic_file(output) as stream:
        for line in itertools.islice(read_lines(data / PAIRS), most):
            _, source, target = line.split("\t")[:3]
            stream.write(f"{_tidy(source)}\t{_tidy(target)}\n".encode())


def write_monolingual(data: Path, output: Path, most: int) -> None:
    """Target-side documents of all corpora in turn, one sentence per line, so many sentences at most."""
    write_documents(output, _in_turn([_documents(data / name) for name in MONOLINGUAL]), most=most)


def write_aligned(data: Path, outputs: tuple[Path, Path], *, part: int, most: int) -> None:
    """Every second aligned document, from the first or from the second on; so many lines at most."""
    for name, output in zip(ALIGNED, outputs, strict=True):
        if not write_documents(output, list(read_documents(data / name))[part::2], most=most):
            raise CadecError(
                f"the first document has more than {most} lines", f"raise {option('size')} test and tuning"
            )


def _tidy(text: str) -> str:
    """Undo the spacing of tokenised corpora, and drop the dash that a turn begins with."""
    return re.sub(r"([«(]) +", r"\1", re.sub(r" +([?!.,;:…»)])", r"\1", text)).lstrip("-— ")


def _documents(path: Path) -> Iterator[list[str]]:
    for lines in read_documents(path):
        sentences = [sentence for line in lines for sentence in split_sentences(_tidy(line), "ru")]
        sentences = [sentence for sentence in sentences if sentence.strip()]
        if len(sentences) >= SHORTEST:
            yield sentences


def _in_turn(corpora: list[Iterator[list[str]]]) -> Iterator[list[str]]:
    """A document of each, again and again, until all have ended."""
    for together in itertools.zip_longest(*corpora):
        yield from (document for document in together if document is not None)
