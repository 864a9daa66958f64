"""The texts of the `paper` scale: OpenSubtitles2018 as OPUS has it.

A directory with en/ and ru/ (or xml/ with them inside), the alignment en-ru.xml.gz, and contrastive/ with the
sets of Voita et al. Films are documents; those to tune and to test on come from the end of the pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from cadec_cli.errors import CadecError
from cadec_cli.files import atomic_file, read_lines
from cadec_cli.reproduction.places import Places
from cadec_cli.text.documents import documents_of, is_blank

# Evaluation documents have this many sentences at the least, as in the paper.
LONG_ENOUGH = 10


def check_corpora(data: Path, source: str, target: str) -> None:
    """Refuse a directory that is not laid out as OPUS does."""
    root = data / "xml" if (data / "xml").is_dir() else data
    wanted = [root / source, root / target, data / f"{source}-{target}.xml.gz"]
    missing = [str(path.relative_to(data)) for path in wanted if not path.exists()]
    if missing:
        raise CadecError(
            f"{data} has no {', '.join(missing)}",
            "get OpenSubtitles2018 from OPUS: the XML of both languages and their alignment",
        )


def paper_texts(places: Places, add: Callable[..., None]) -> None:
    """The steps from OPUS's files to texts."""
    scale, data = places.scale, places.data
    assert data is not None
    source, target = scale.source_language, scale.target_language
    pairs, documents = places.text("all-pairs.tsv"), places.text("documents.txt")
    add(
        "read pairs",
        pairs,
        command=(
            *("prepare", "opensubtitles", data, "--alignment", data / f"{source}-{target}.xml.gz"),
            *("-o", pairs),
        ),
        minutes=120,
    )
    add(
        "read documents",
        documents,
        command=("prepare", "opensubtitles", data, "--language", target, "-o", documents),
        minutes=120,
    )
    add(
        "texts",
        places.text("ready"),
        "read pairs",
        "read documents",
        make=lambda: _divide(places),
        minutes=10,
    )


def _divide(places: Places) -> None:
    """Pairs to train on, to tune on and to test on; documents of several sizes."""
    sizes = places.scale.sizes
    held = _last_documents(places.text("all-pairs.tsv"), sizes["tuning"] + sizes["test"])
    tuning, test = _shared_out(held, sizes["tuning"])
    for name, chosen in (("tuning", tuning), ("test", test)):
        for side, path in enumerate(places.aligned(name)):
            with atomic_file(path) as stream:
                blocks = ("".join(f"{line.split(chr(9))[side]}\n" for line in one) for one in chosen)
                stream.write("\n".join(blocks).encode())
    kept = _count(places.text("all-pairs.tsv")) - len(held)
    _copy_documents(places.text("all-pairs.tsv"), places.text("pairs.tsv"), documents=kept)
    for name in ("fewer", "augmented"):
        _copy_documents(places.text("documents.txt"), places.text(f"{name}.txt"), sentences=sizes[name])
    places.text("ready").touch()


def _documents(path: Path) -> Iterator[list[str]]:
    return (list(lines) for lines in documents_of(read_lines(path), is_blank))


def _count(path: Path) -> int:
    return sum(1 for _ in _documents(path))


def _last_documents(path: Path, sentences: int) -> list[list[str]]:
    """The last documents that make up so many sentences."""
    held: list[list[str]] = []
    total = 0
    for document in _documents(path):
        held.append(document)
        total += len(document)
        while len(held) > 1 and total - len(held[0]) >= sentences:
            total -= len(held.pop(0))
    return held


def _shared_out(held: list[list[str]], sentences: int) -> tuple[list[list[str]], list[list[str]]]:
    """The first so many sentences, and the rest; documents that are long enough."""
    first: list[list[str]] = []
    rest: list[list[str]] = []
    for document in held:
        if len(document) >= LONG_ENOUGH:
            (first if sum(map(len, first)) < sentences else rest).append(document)
    if not first or not rest:
        raise CadecError(
            f"there are too few documents of {LONG_ENOUGH} sentences to tune and to test on",
            "use more films, or lower --size tuning=… and --size test=…",
        )
    return first, rest


def _copy_documents(path: Path, output: Path, *, documents: int = -1, sentences: int = -1) -> None:
    """The first documents: so many, or up to so many sentences."""
    written = lines = 0
    with atomic_file(output) as stream:
        for document in _documents(path):
            if written == documents or 0 <= sentences <= lines:
                break
            stream.write((("\n" if written else "") + "".join(f"{line}\n" for line in document)).encode())
            written += 1
            lines += len(document)
