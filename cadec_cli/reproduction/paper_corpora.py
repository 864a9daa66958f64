"""The texts of the `paper` scale: OpenSubtitles2018 as OPUS has it.

A directory with en/ and ru/ (or xml/ with them inside), the alignment en-ru.xml.gz, and contrastive/ with the
sets of Voita et al. Whole films are held back, to tune and to test on: no training text has anything of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cadec_cli.data.opensubtitles import aligned_films
from cadec_cli.data.opus_xml import Report
from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.reproduction.document_files import read_documents, write_documents
from cadec_cli.reproduction.scales import ExperimentPaths, Options
from cadec_cli.reproduction.steps import flags

# Evaluation documents have this many sentences at the least, as in the paper.
LONG_ENOUGH = 10
HELD_BACK = ("tuning", "test")


def check_corpora(places: ExperimentPaths) -> None:
    """Refuse a directory that is not laid out as OPUS does, and name all that is missing."""
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
    """Both sides of what is held back; documents of several sizes."""
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
