"""`cadec prepare …`: prepares corpora for training."""

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
from cadec_cli.errors import CadecError, UsageError
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.terminal import console
from cadec_cli.terminal.app import new_app
from cadec_cli.terminal.flags import Force, flags_of
from cadec_cli.text.documents import document_lines

if TYPE_CHECKING:
    from cadec_cli.data.opensubtitles import MovieFilter
    from cadec_cli.data.opus_xml import Report
    from cadec_cli.text.token_text import Loader

prepare_app = new_app("Prepare corpora for training.")

_INPUT = "Input"
_TIMES = "By time"
_CLEANING = "Cleaning"  # the panel in which flags_of puts the flags of CleaningOptions


@prepare_app.command("opensubtitles")
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
    from cadec_cli.jobs.outputs import check_outputs

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


@prepare_app.command("text")
@flags_of("", cleaning=CleaningOptions)
def text(
    inputs: Annotated[
        list[Path],
        typer.Argument(help="Text or tab-separated files, also .xz, .gz or .zst; - is standard input."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Directory to write the prepared corpus to.")
    ],
    pipeline: Annotated[
        list[str],
        typer.Option(
            "--pipeline",
            "-p",
            help="Text pipeline of a language; give two for parallel text. For a D-LM, also a pretrained "
            "language model (a directory, a GGUF file, hf:NAME), or a bundle, to use its S-NMT's target "
            "tokenizer.",
        ),
    ],
    flags: dict[str, Any],
    language: Annotated[
        str | None,
        typer.Option(
            "--language",
            "-l",
            help="Language of the text, if a pretrained model is to read it; two for pairs, e.g. en,fr.",
        ),
    ] = None,
    columns: Annotated[
        str, typer.Option(help="Columns of tab-separated files, one per language, counted from 1, e.g. 2,3.")
    ] = "",
    lines: Annotated[
        bool,
        typer.Option("--lines", help="Every line is one sentence; otherwise lines are split into sentences."),
    ] = False,
    documents: Annotated[
        bool,
        typer.Option(
            help="Blank lines separate documents; with --no-documents every line is its own document."
        ),
    ] = True,
    placeholders: Annotated[
        bool,
        typer.Option(
            "--placeholders",
            help="Add each pair whose sides share a number, a URL or the like once more, with placeholders "
            "for them, so that the S-NMT learns to copy these.",
        ),
    ] = False,
    dev_output: Annotated[
        Path | None, typer.Option(help="Hold out some documents, and write them here.")
    ] = None,
    dev_every: Annotated[
        int, typer.Option(help="With --dev-output: hold out every n-th document.", min=2)
    ] = 100,
    encoding: Annotated[str, typer.Option(help="Encoding of the input.")] = "utf-8",
    processes: Annotated[int, typer.Option(help="Number of processes; 0 is one per core.", min=0)] = 0,
    force: Force = False,
) -> None:
    """Tokenise and encode text into memory-mapped shards.

    One pipeline makes a monolingual corpus, for D-LMs; two make a parallel one, from two aligned files or
    from columns. A pretrained language model with two languages (-l en,fr) makes pairs to fine-tune it on.

    Example: cadec prepare text plays.txt.xz -p pipelines/ru -o data/plays

    Example: cadec prepare text plays.txt.xz -p hf:google/gemma-3-270m -l ru -o data/plays-gemma

    Example: cadec prepare text pairs.tsv.xz --columns 2,3 -p pipelines/en -p pipelines/ru -o data/pairs

    Example: cadec prepare text films.tsv --columns 1,2 -p gemma.gguf -l en,fr -o data/films-gemma
    """
    from cadec_cli.data.preparation import (
        PreparationOptions,
        check_placeholders,
        count_documents,
        prepare,
        rows,
    )
    from cadec_cli.data.shards import SideInfo, writing_shard
    from cadec_cli.jobs.outputs import check_outputs
    from cadec_cli.terminal import console

    if len(pipeline) > 2:
        raise UsageError("one pipeline for monolingual text, two for parallel text; not more")
    check_outputs([output, dev_output], inputs=[*inputs, *pipeline], force=force, directories=True)
    chosen_columns = _column_numbers(columns)
    texts = _texts(pipeline, language)
    sides = [SideInfo.of(load()) for load in texts]
    if len(pipeline) == 2 and any(side.text != "pipeline" for side in sides):
        raise UsageError("parallel text is prepared with text pipelines, not with pretrained models")
    if placeholders:
        check_placeholders([load() for load in texts])
    options = PreparationOptions(
        split=not lines,
        documents=documents,
        dev_every=dev_every if dev_output else 0,
        processes=processes,
        placeholders=placeholders,
    )
    if dev_output and not any(str(path) == "-" for path in inputs):  # files can be read twice
        first = rows(inputs, languages=len(sides), columns=chosen_columns, encoding=encoding)
        found = count_documents(first, dev_every, documents=documents)
        if found < dev_every:
            raise _too_few(found, dev_every)
    read = rows(inputs, languages=len(sides), columns=chosen_columns, encoding=encoding)
    with contextlib.ExitStack() as stack:
        writer = stack.enter_context(writing_shard(output, sides))
        dev_writer = stack.enter_context(writing_shard(dev_output, sides)) if dev_output else None
        with console.progress("rows") as bar:
            task = bar.add_task("prepare", total=None)
            for counts in prepare(read, texts, CleaningOptions(**flags), options, writer, dev_writer):
                bar.update(task, completed=counts["rows"])
        if not writer.sentences:
            raise CadecError("nothing is left to write", "is the input empty, or the cleaning too strict?")
        if dev_writer is not None and not dev_writer.sentences:
            if writer.documents < dev_every:
                raise _too_few(writer.documents, dev_every)
            raise CadecError("nothing is left of the documents held out", "is the cleaning too strict?")
    for name, part in ((output, writer), (dev_output, dev_writer)):
        if part is not None:
            tokens = " and ".join(f"{count:,}" for count in part.token_counts)
            console.note(
                f"{name}: {part.documents:,} documents, {part.sentences:,} sentences, {tokens} tokens"
            )
    left_out = {reason: count for reason, count in counts.items() if reason not in ("kept", "rows")}
    if left_out:
        console.note(
            "left out: " + ", ".join(f"{count:,} {reason}" for reason, count in sorted(left_out.items()))
        )


def _too_few(found: int, dev_every: int) -> CadecError:
    held_out = f"--dev-every {dev_every} holds out one in {dev_every}"
    have = "there is only 1 document" if found == 1 else f"there are only {found} documents"
    if found < 2:
        hint = "a blank line ends a document; with --no-documents every line is one"
    else:
        hint = f"give --dev-every {found} or less; a blank line ends a document"
    return CadecError(f"nothing would be held out for --dev-output: {have}, and {held_out}", hint)


def _texts(pipelines: list[str], language: str | None) -> "list[Loader]":
    """The text of each side; a pretrained language model with two languages is that of both."""
    from cadec_cli.bundle.corpus_text import corpus_text

    languages = language.split(",") if language else [None]
    if len(languages) == 1:
        return [corpus_text(given, languages[0]) for given in pipelines]
    if len(pipelines) > 1 or len(set(languages) - {""}) != 2 or len(languages) != 2:
        raise UsageError("pairs for a pretrained model need one model and two languages, such as en,fr")
    return [corpus_text(pipelines[0], one) for one in languages]


def _column_numbers(text: str) -> tuple[int, ...]:
    try:
        columns = tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        columns = (0,)
    if any(column < 1 for column in columns):
        raise typer.BadParameter(f"{text!r} is not a list of column numbers", param_hint="--columns")
    return columns
