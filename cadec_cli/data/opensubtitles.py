"""OPUS OpenSubtitles to documents: films with time stamps, XCES alignments between two of them.

This module knows nothing of vocabularies, and judges sentences by their times alone: see `cleaning` for
their text, and `opus_xml` for how the files are read. One film (or one pair) is in memory at a time.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol, TypeVar

from cadec_cli.data.opus_xml import (
    SUFFIXES,
    Film,
    Report,
    Tag,
    TimedSentence,
    attributes_of,
    film_name,
    read_film,
    read_tags,
)
from cadec_cli.errors import CadecError
from cadec_cli.fs.read import read_lines
from cadec_cli.text.documents import Document


@dataclass(frozen=True)
class PairedSentence:
    """A linked pair; the times are those of the source side."""

    source: str
    target: str
    start: float
    end: float
    overlap: float


@dataclass(frozen=True)
class ParallelDocument:
    """Pairs of one film that follow each other closely in time."""

    film: str
    source_language: str
    target_language: str
    pairs: tuple[PairedSentence, ...]


class MovieFilter:
    """The films to leave out, each as `2001/209475`, `209475`, `tt0209475` or the path of a subtitle file."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._films: set[str] = set()
        self._ids: set[str] = set()
        for number, line in enumerate(lines, 1):
            entry = line.partition("#")[0].strip()
            if not entry:
                continue
            name = (
                film_name(entry) if entry.endswith(SUFFIXES) else "/".join(entry.strip("/").split("/")[-2:])
            )
            if not (match := re.fullmatch(r"(?:(\w+)/)?(?:tt)?0*(\d+)", name)):
                raise CadecError(
                    f"line {number} of the films to exclude does not name a film: {entry}",
                    "one film per line: 2001/209475, 209475, or en/2001/209475/54828.xml.gz",
                )
            year, imdb = match.groups()
            if year:
                self._films.add(f"{year}/{imdb}")
            else:
                self._ids.add(imdb)

    @classmethod
    def from_file(cls, path: Path) -> "MovieFilter":
        """Read the films from a text file, one per line."""
        return cls(read_lines(path))

    def __contains__(self, name: str) -> bool:
        """Tell whether the film `year/imdb-id` is to be left out."""
        year, _, imdb = name.rpartition("/")
        imdb = imdb.lstrip("0") or "0"
        return imdb in self._ids or f"{year}/{imdb}" in self._films


def monolingual_documents(
    root: Path,
    language: str,
    *,
    report: Report,
    max_gap: float = 7.0,
    exclude: MovieFilter | None = None,
    all_versions: bool = False,
) -> Iterator[Document]:
    """Yield the documents of all films of a language; see `timed_documents`."""
    for sentences in timed_documents(
        root, language, report=report, max_gap=max_gap, exclude=exclude, all_versions=all_versions
    ):
        yield Document.of(sentence.text for sentence in sentences)


def timed_documents(
    root: Path,
    language: str,
    *,
    report: Report,
    max_gap: float = 7.0,
    exclude: MovieFilter | None = None,
    all_versions: bool = False,
) -> Iterator[tuple[TimedSentence, ...]]:
    """Yield runs of adjacent sentences of one film, none more than `max_gap` seconds after the one before.

    A film often has several subtitle files, near copies of each other: the largest readable one is taken,
    unless `all_versions` are wanted.
    """
    folder = _xml_root(root) / language
    if not folder.is_dir():
        raise CadecError(
            f"no films of {language!r}: {folder} is not a directory", "ROOT is the parent of en/, ru/, …"
        )
    for directory, subdirectories, files in os.walk(folder):
        subdirectories.sort()
        versions = _versions(Path(directory), files)
        if versions and exclude and film_name(versions[0].as_posix()) in exclude:
            report.skipped["films excluded"] += 1
            continue
        for path in versions:
            film = read_film(path, language, report)
            if film is None:
                continue
            for sentences in _spoken_runs(film, max_gap, report):
                report.kept["documents"] += 1
                report.kept["sentences"] += len(sentences)
                yield sentences
            if not all_versions:
                break


def _versions(directory: Path, files: list[str]) -> list[Path]:
    by_stem: dict[str, Path] = {}
    for name in sorted(files):
        if name.endswith(SUFFIXES) and (directory / name).is_file():
            by_stem.setdefault(name.removesuffix(".gz"), directory / name)
    return sorted(by_stem.values(), key=lambda path: (-path.stat().st_size, path.name))


def _spoken_runs(film: Film, max_gap: float, report: Report) -> Iterator[tuple[TimedSentence, ...]]:
    # A sentence without text is a hole as well: we cannot know what was said there.
    run: list[TimedSentence] = []
    for sentence in film.sentences:
        if sentence.text:
            run.append(sentence)
            continue
        report.skipped["sentences without text"] += 1
        yield from split_by_time(run, max_gap)
        run = []
    yield from split_by_time(run, max_gap)


def parallel_documents(
    alignment: Path,
    root: Path,
    *,
    report: Report,
    min_overlap: float = 0.9,
    max_gap: float = 7.0,
    exclude: MovieFilter | None = None,
) -> Iterator[ParallelDocument]:
    """Yield the linked pairs of an XCES file as documents, their boundaries drawn by the source-side times.

    A pair is kept when the time both sides are on screen is at least `min_overlap` of the time either is.
    """
    closed = True
    tags = read_tags(alignment, report)
    group: _Group | None = None
    for tag in tags:
        if "<linkGrp" in tag.text:  # too broken to be a tag: the links after it belong to unknown films
            report.skipped["unreadable link groups"] += 1
            if group:
                yield from group.documents(max_gap)
            group = None
        if tag.name == "linkGrp":
            if group:
                yield from group.documents(max_gap)
            group = None if tag.closing else _open_group(tag, _xml_root(root), exclude, report)
        elif tag.name == "link" and not tag.closing:
            report.read["links"] += 1
            if group:
                group.add(attributes_of(tag, report), min_overlap)
            else:
                report.skipped["links of films left out"] += 1
        elif tag.name == "cesAlign":
            closed = tag.closing
    if not closed:
        report.recovered["truncated files"] += 1
    if group:
        yield from group.documents(max_gap)


def aligned_films(alignment: Path, report: Report) -> list[str]:
    """The films of an XCES file in order, each once, as `year/imdb-id`; no subtitle file is opened."""
    films: dict[str, None] = {}
    for tag in read_tags(alignment, report):
        if tag.name == "linkGrp" and not tag.closing:
            name = attributes_of(tag, report).get("fromDoc", "")
            if name:
                films[film_name(name)] = None
    return list(films)


class _Group:
    """The links between two films, while they are read."""

    def __init__(self, source: Film, target: Film, report: Report) -> None:
        self.source, self.target, self.report = source, target, report
        # Reversed, so that the first of two sentences with one id is found.
        self.source_by_id = {sentence.id: sentence for sentence in reversed(source.sentences)}
        self.target_by_id = {sentence.id: sentence for sentence in reversed(target.sentences)}
        self.pairs: list[PairedSentence] = []

    def add(self, attributes: dict[str, str], min_overlap: float) -> None:
        skipped = self.report.skipped
        source_ids, separator, target_ids = attributes.get("xtargets", "").partition(";")
        if not separator:
            skipped["links without xtargets"] += 1
            return
        if not source_ids.split() or not target_ids.split():
            skipped["links with an empty side"] += 1
            return
        source = _join_sentences(self.source_by_id, source_ids.split())
        target = _join_sentences(self.target_by_id, target_ids.split())
        if source is None or target is None:
            skipped["links to missing sentences"] += 1
            return
        overlap = _number(attributes.get("overlap", ""))
        if overlap is None:
            overlap = time_overlap(source, target)
        if not overlap >= min_overlap:
            skipped["links with little time overlap"] += 1
            return
        self.pairs.append(PairedSentence(source.text, target.text, source.start, source.end, overlap))

    def documents(self, max_gap: float) -> Iterator[ParallelDocument]:
        for pairs in split_by_time(self.pairs, max_gap):
            self.report.kept["documents"] += 1
            self.report.kept["pairs"] += len(pairs)
            yield ParallelDocument(self.source.name, self.source.language, self.target.language, pairs)


def _open_group(tag: Tag, root: Path, exclude: MovieFilter | None, report: Report) -> _Group | None:
    attributes = attributes_of(tag, report)
    names = attributes.get("fromDoc", ""), attributes.get("toDoc", "")
    report.read["film pairs"] += 1
    if exclude and any(film_name(name) in exclude for name in names):
        report.skipped["films excluded"] += 1
        return None
    films: list[Film] = []
    for name in names:
        path = _film_path(root, name)
        if path is None:
            report.skipped["films missing"] += 1
            return None
        film = read_film(path, PurePosixPath(name).parts[0], report)
        if film is None:
            return None
        films.append(film)
    return _Group(films[0], films[1], report)


def _film_path(root: Path, name: str) -> Path | None:
    # The name comes from an untrusted file: it must not lead out of the corpus.
    relative = PurePosixPath(name)
    if not relative.parts or relative.is_absolute() or ".." in relative.parts:
        return None
    stem = name.removesuffix(".gz")
    with contextlib.suppress(OSError):  # a name that no file can have, such as one of 5000 characters
        return next((path for path in (root / f"{stem}.gz", root / stem) if path.is_file()), None)
    return None


def _xml_root(root: Path) -> Path:
    return root / "xml" if (root / "xml").is_dir() else root


def _join_sentences(by_id: dict[str, TimedSentence], ids: list[str]) -> TimedSentence | None:
    sentences = [by_id.get(identifier) for identifier in ids]
    found = [sentence for sentence in sentences if sentence and sentence.text]
    if len(found) < len(ids):
        return None
    text = " ".join(sentence.text for sentence in found)
    return TimedSentence(ids[0], text, found[0].start, max(sentence.end for sentence in found))


class Timed(Protocol):
    """Anything on screen from `start` to `end`."""

    @property
    def start(self) -> float:
        """When it appears, in seconds."""

    @property
    def end(self) -> float:
        """When it disappears, in seconds."""


T = TypeVar("T", bound=Timed)


def split_by_time(items: Iterable[T], max_gap: float) -> Iterator[tuple[T, ...]]:
    """Cut a sequence wherever the next item starts more than `max_gap` seconds after the one before ended.

    A jump back in time of more than `max_gap` cuts as well: the second disc of a film starts at zero again.
    """
    run: list[T] = []
    for item in items:
        if run and max(item.start - run[-1].end, run[-1].start - item.start) > max_gap:
            yield tuple(run)
            run = []
        run.append(item)
    if run:
        yield tuple(run)


def time_overlap(one: Timed, other: Timed) -> float:
    """Return the time that both are on screen, as a share of the time that either is."""
    shared = min(one.end, other.end) - max(one.start, other.start)
    either = max(one.end, other.end) - min(one.start, other.start)
    return max(0.0, shared / either) if either > 0 else 0.0


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
