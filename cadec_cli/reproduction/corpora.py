"""The texts of the `small` and the `paper` scale: where they are, and how commands' inputs are made of them.

`small` reads a directory of corpora. `paper` reads OpenSubtitles2018 as OPUS has it: en/ and ru/ (or xml/
with them inside), the alignment en-ru.xml.gz, and contrastive/ with the sets of Voita et al. Whole films are
held back to tune and to test on. Documents have one sentence per line and a blank line between them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from cadec_cli.data.opensubtitles import aligned_films
from cadec_cli.data.opus_xml import Report
from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.fs.read import read_lines
from cadec_cli.reproduction.scales import ExperimentPaths, Options
from cadec_cli.reproduction.steps import flags
from cadec_cli.text.documents import document_lines, documents_of, is_blank
from cadec_cli.text.sentences import split_sentences


def read_documents(path: Path) -> Iterator[list[str]]:
    """The lines of each document, as a stream."""
    return (list(lines) for lines in documents_of(read_lines(path), is_blank))


def write_documents(path: Path, documents: Iterable[Sequence[str]], *, most: int | None = None) -> int:
    """Write documents, up to the first that would exceed `most` lines; return the number of lines."""
    written = 0

    def fits(document: Sequence[str]) -> bool:
        return most is None or written + len(document) <= most

    with atomic_file(path) as stream:
        kept: Iterable[Sequence[str]] = itertools.takewhile(fits, documents)
        for line in document_lines(kept):
            stream.write(line.encode())
            written += 1
    return written


PAIRS = Path("train/parallel.en-ru.tsv.xz")  # tag, English, Russian
MONOLINGUAL = (Path("train/ru-subtitle-blocks.txt.xz"), Path("train/ru-jokes.txt.xz"))
ALIGNED = (Path("dev/wesnoth-dev.en"), Path("dev/wesnoth-dev.ru"))
CONTRASTIVE = (Path("contrastive/deixis_dev.json"), Path("contrastive/lex_cohesion_dev.json"))

# Shorter documents have next to no context.
SHORTEST = 3


def check_small_corpora(data: Path) -> None:
    """Refuse a directory that lacks some of the corpora; the error names all missing files."""
    missing = [
        str(name) for name in (PAIRS, *MONOLINGUAL, *ALIGNED, *CONTRASTIVE) if not (data / name).is_file()
    ]
    if missing:
        raise CadecError(
            f"{data} has no {', '.join(missing)}", f"name the directory of the corpora with {option('data')}"
        )


def write_pairs(data: Path, output: Path, most: int) -> None:
    """Write lines of source TAB target, at most `most` pairs."""
    with atomic_file(output) as stream:
        for line in itertools.islice(read_lines(data / PAIRS), most):
            _, source, target = line.split("\t")[:3]
            stream.write(f"{_tidy(source)}\t{_tidy(target)}\n".encode())


def write_monolingual(data: Path, output: Path, most: int) -> None:
    """Write target-side documents of all corpora in turn, one sentence per line, at most `most` sentences."""
    write_documents(output, _in_turn([_documents(data / name) for name in MONOLINGUAL]), most=most)


def write_aligned(data: Path, outputs: tuple[Path, Path], *, part: int, most: int) -> None:
    """Write every second aligned document, from the first or the second on (`part`); at most `most` lines."""
    for name, output in zip(ALIGNED, outputs, strict=True):
        if not write_documents(output, list(read_documents(data / name))[part::2], most=most):
            raise CadecError(
                f"the first document has more than {most} lines", f"raise {option('size')} test and tuning"
            )


def _tidy(text: str) -> str:
    """Undo the spacing of tokenised corpora, and drop the dash at the beginning of a speaker's turn."""
    return re.sub(r"([«(]) +", r"\1", re.sub(r" +([?!.,;:…»)])", r"\1", text)).lstrip("-— ")


def _documents(path: Path) -> Iterator[list[str]]:
    for lines in read_documents(path):
        sentences = [sentence for line in lines for sentence in split_sentences(_tidy(line), "ru")]
        sentences = [sentence for sentence in sentences if sentence.strip()]
        if len(sentences) >= SHORTEST:
            yield sentences


def _in_turn(corpora: list[Iterator[list[str]]]) -> Iterator[list[str]]:
    """Take one document of each corpus in turn, until all have ended."""
    for together in itertools.zip_longest(*corpora):
        yield from (document for document in together if document is not None)


# Evaluation documents have this many sentences at the least, as in the paper.
LONG_ENOUGH = 10
HELD_BACK = ("tuning", "test")


def check_paper_corpora(places: ExperimentPaths) -> None:
    """Refuse a directory that is not laid out as OPUS does; the error names all missing files."""
    data, scale = places.data, places.scale
    assert data is not None
    root = data / "xml" if (data / "xml").is_dir() else data
    wanted = [root / scale.source_language, root / scale.target_language, _alignment(places), *places.sets]
    missing = [str(path.relative_to(data)) for path in wanted if not path.exists()]
    if missing:
        raise CadecError(
            f"{data} has no {', '.join(missing)}",
            "get OpenSubtitles2018 from OPUS (the XML of both languages and their alignment), and the sets",
        )


def paper_texts(places: ExperimentPaths, add: Callable[..., None]) -> None:
    """The steps from OPUS's files to texts."""
    data, target = places.data, places.scale.target_language
    pairs, documents = places.text("pairs.tsv"), places.text("documents.txt")
    add("films", _films(places, "held-back"), make=lambda: _choose_films(places), minutes=15)

    def read(name: str, output: Path, source: Options, exclude: str, minutes: float) -> None:
        add(
            f"read {name}",
            output,
            "films",
            command=(
                *("prepare", "opensubtitles", data),
                *flags(**source, exclude_movies=_films(places, exclude)),
                *flags(min_sentences=LONG_ENOUGH if name in HELD_BACK else None),
                *("-o", output),
            ),
            minutes=minutes,
        )

    aligned = {"alignment": _alignment(places)}
    read("pairs", pairs, aligned, "held-back", 120)
    read("documents", documents, {"language": target}, "held-back", 120)
    for name in HELD_BACK:
        read(name, places.text(f"{name}.tsv"), aligned, f"not-{name}", 15)
    add(
        "texts",
        places.text("ready"),
        *(f"read {name}" for name in ("pairs", "documents", *HELD_BACK)),
        make=lambda: _divide(places),
        minutes=10,
    )


def _alignment(places: ExperimentPaths) -> Path:
    assert places.data is not None
    return places.data / f"{places.scale.source_language}-{places.scale.target_language}.xml.gz"


def _films(places: ExperimentPaths, name: str) -> Path:
    """A list of films: those held back, or all but some."""
    return places.text(f"films-{name}.txt")


def _choose_films(places: ExperimentPaths) -> None:
    """The last films of the alignment to test on, those before them to tune on."""
    films = aligned_films(_alignment(places), Report())
    sizes = places.scale.sizes
    count = sizes["tuning"] + sizes["test"]
    if len(films) <= count:
        raise CadecError(
            f"there are {len(films)} films, of which {count} are to be held back",
            f"use more films, or lower {option('size')} tuning=… and {option('size')} test=…",
        )
    held = films[-count:]
    parts = {"tuning": held[: sizes["tuning"]], "test": held[sizes["tuning"] :]}
    for name, own in parts.items():
        _write_films(places, f"not-{name}", [film for film in films if film not in set(own)])
    _write_films(places, "held-back", held)


def _write_films(places: ExperimentPaths, name: str, films: list[str]) -> None:
    with atomic_file(_films(places, name)) as stream:
        stream.write("".join(f"{film}\n" for film in films).encode())


def _divide(places: ExperimentPaths) -> None:
    """Write both sides of the films held back, and corpora of several sizes."""
    for name in HELD_BACK:
        pairs = [[line.split("\t") for line in one] for one in read_documents(places.text(f"{name}.tsv"))]
        for side, path in enumerate(places.aligned_paths(name)):
            write_documents(path, [[pair[side] for pair in one] for one in pairs])
    for name in ("fewer", "augmented"):
        write_documents(
            places.text(f"{name}.txt"),
            read_documents(places.text("documents.txt")),
            most=places.scale.sizes[name],
        )
    places.text("ready").touch()
