"""`cadec prepare opensubtitles`: films and alignments of OPUS into documents of sentences or pairs."""

import contextlib
import gzip
import itertools
import lzma
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer

from cadec_cli.data.cleaning import Cleaner, CleaningOptions, contiguous_runs
from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.jobs.outputs import check_outputs
from cadec_cli.terminal import console
from cadec_cli.terminal.flags import Force, flags_of
from cadec_cli.text.documents import document_lines

if TYPE_CHECKING:
    from cadec_cli.data.opensubtitles import MovieFilter
    from cadec_cli.data.opus_xml import Report

_INPUT = "Input"
_TIMES = "By time"
_CLEANING = "Cleaning"  # the panel in which flags_of puts the flags of CleaningOptions


@flags_of("", cleaning=CleaningOptions)
def opensubtitles(
    root: Annotated[
        Path,
        typer.Argument(
            help="The directory that holds en/, ru/, … (or xml/ with them inside).", show_default=False
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Where to write; .xz and .gz are compressed, - is standard output."
        ),
    ],
    flags: dict[str, Any],
    language: Annotated[
        str, typer.Option(help="Monolingual: language code, e.g. ru.", rich_help_panel=_INPUT)
    ] = "",
    alignment: Annotated[
        Path | None,
        typer.Option(help="Parallel: the XCES alignment file, e.g. en-ru.xml.gz.", rich_help_panel=_INPUT),
    ] = None,
    exclude_movies: Annotated[
        Path | None,
        typer.Option(
            help="File of films to leave out, such as those of a test set. "
            "One per line: 2001/209475, 209475, or a path.",
            rich_help_panel=_INPUT,
        ),
    ] = None,
    all_versions: Annotated[
        bool,
        typer.Option(
            "--all-versions",
            help="Take every subtitle file of a film, not only the largest.",
            rich_help_panel=_INPUT,
        ),
    ] = False,
    max_gap: Annotated[
        float,
        typer.Option(min=0, help="Seconds without speech that end a document.", rich_help_panel=_TIMES),
    ] = 7.0,
    min_overlap: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Leave out pairs whose sides share less than this part of their time on screen.",
            rich_help_panel=_TIMES,
        ),
    ] = 0.9,
    min_sentences: Annotated[
        int,
        typer.Option(
            min=1, help="Leave out documents of fewer sentences than this.", rich_help_panel=_CLEANING
        ),
    ] = 1,
    force: Force = False,
) -> None:
    """Turn OPUS OpenSubtitles into documents: sentences of one film that follow each other closely.

    With --language, one sentence per line; with --alignment, source TAB target. Blank lines separate
    documents. A sentence that cleaning leaves out ends a document too: no context reaches across a gap.

    Example: cadec prepare opensubtitles --language ru OpenSubtitles/xml -o ru.txt.xz

    Example: cadec prepare opensubtitles --alignment en-ru.xml.gz OpenSubtitles/xml -o en-ru.tsv
    """
    if bool(language) == bool(alignment):
        raise typer.BadParameter("give either --language or --alignment")
    from cadec_cli.data.opensubtitles import MovieFilter
    from cadec_cli.data.opus_xml import Report

    check_outputs([output], inputs=[root, alignment, exclude_movies], force=force)
    options = CleaningOptions(**flags)
    exclude = MovieFilter.from_file(exclude_movies) if exclude_movies else None
    report = Report()
    if alignment:
        documents = _parallel(alignment, root, options, report, min_overlap, max_gap, exclude)
    else:
        documents = _monolingual(root, language, options, report, max_gap, exclude, all_versions)
    unit = "pairs" if alignment else "sentences"
    with _output(output) as stream:
        written = _write(
            console.track(documents, "reading films", unit="documents"), stream, min_sentences, report
        )
        _show(report)
        if not written[1]:
            raise CadecError(f"none of the {unit} was kept", "the counts say why; is ROOT right?")
    console.note(f"wrote {written[1]:,} {unit} in {written[0]:,} documents to {output}")


def _monolingual(
    root: Path,
    language: str,
    options: CleaningOptions,
    report: "Report",
    max_gap: float,
    exclude: "MovieFilter | None",
    all_versions: bool,
) -> Iterator[list[str]]:
    from cadec_cli.data.opensubtitles import monolingual_documents

    cleaner = Cleaner(options, language)
    for document in monolingual_documents(
        root, language, report=report, max_gap=max_gap, exclude=exclude, all_versions=all_versions
    ):
        for run in contiguous_runs(document.texts, cleaner.accepts):
            yield list(run)
    _add_cleaning(cleaner, report, "sentences")


def _parallel(
    alignment: Path,
    root: Path,
    options: CleaningOptions,
    report: "Report",
    min_overlap: float,
    max_gap: float,
    exclude: "MovieFilter | None",
) -> Iterator[list[str]]:
    from cadec_cli.data.opensubtitles import parallel_documents

    documents = parallel_documents(
        alignment, root, report=report, min_overlap=min_overlap, max_gap=max_gap, exclude=exclude
    )
    first = next(documents, None)
    if first is None:
        return
    cleaner = Cleaner(options, first.source_language, first.target_language)
    for document in itertools.chain([first], documents):
        for run in contiguous_runs(document.pairs, lambda pair: cleaner.accepts(pair.source, pair.target)):
            yield [f"{_field(pair.source)}\t{_field(pair.target)}" for pair in run]
    _add_cleaning(cleaner, report, "pairs")


def _field(text: str) -> str:
    return text.replace("\t", " ")


def _add_cleaning(cleaner: Cleaner, report: "Report", unit: str) -> None:
    for reason, count in cleaner.counts.items():
        if reason != "kept":
            report.skipped[f"{unit}, {reason}"] += count


def _write(
    documents: Iterator[list[str]], stream: IO[bytes], min_sentences: int, report: "Report"
) -> tuple[int, int]:
    written = lines = 0

    def long_enough() -> Iterator[list[str]]:
        nonlocal written
        for document in documents:
            if len(document) < min_sentences:
                report.skipped["documents too short"] += 1
                continue
            yield document
            written += 1

    for line in document_lines(long_enough()):
        stream.write(line.encode())
        lines += 1
    return written, lines


@contextlib.contextmanager
def _output(path: Path) -> Iterator[IO[bytes]]:
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with atomic_file(path) as stream:
        if path.suffix == ".xz":
            with lzma.open(stream, "wb") as packed:
                yield cast(IO[bytes], packed)
        elif path.suffix == ".gz":
            # No name and no time inside: the same corpus gives the same bytes.
            with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed_gz:
                yield cast(IO[bytes], packed_gz)
        else:
            yield stream


def _show(report: "Report") -> None:
    sections = (
        ("read", report.read),
        ("kept by time", report.kept),
        ("recovered", report.recovered),
        ("left out", report.skipped),
    )
    for title, counts in sections:
        for row, (what, count) in enumerate(counts.most_common()):
            console.note(f"{'' if row else title:<14}{count:>12,}  {what}")
