"""File formats: the table of them, and files read and written in any of them.

A format is one record in FORMATS. The table imports no reader: functions are named by strings and imported
when a file of that format is first read or written. To add a format, write its reader in a module of its own
and enter its record here, or in another package under the entry-point group "cadec.formats".

A byte order mark is kept as the first character of the layout, so `TextFile.encoding` and the pieces of text
are enough to write the same bytes again.

Formats whose lines can be read one by one are translated while they are still being read (`stream_lines`):
only lines that are not yet translated and written are held in memory. All others are read whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.extensions import Registry, load
from cadec_cli.fs.read import MAX_INPUT_BYTES, UNPACKED, TextStream, decode, name_of, read_data
from cadec_cli.text.documents import Document
from cadec_cli.text.formats.layout import (
    BinaryLayout,
    CueLayout,
    Layout,
    Line,
    LineCutter,
    LineReader,
    LineReaders,
    Reader,
    Source,
    SubtitleStyle,
)

if TYPE_CHECKING:
    from cadec_cli.text.formats.hard_wrap import WrapWatch

TEXT = "text"


# Endings of compressed files, which are decompressed when they are read.
COMPRESSED = tuple(UNPACKED)


@dataclass(frozen=True)
class TextFile:
    """A file as read: its documents, and the layout and encoding to write their translations in."""

    documents: tuple[Document, ...]
    layout: Layout | BinaryLayout
    encoding: str | None  # None if the format is binary
    format: str  # the name of its true format, whatever the file's name says
    cues: CueLayout | None = None  # the layout of subtitles as they were read, whatever they become

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know about the file, such as what is left out."""
        notes: tuple[str, ...] = getattr(self.layout, "notes", ())
        return notes

    def restore(self, translations: Iterable[str]) -> Iterator[bytes]:
        """Yield the translated file's bytes, piece by piece."""
        for piece in self.layout.restore(translations):
            if isinstance(piece, bytes):
                yield piece
                continue
            assert self.encoding is not None, "a text format has an encoding"
            yield encode_piece(piece, self.encoding)


# (a file in another format, the name of this format, what messages call the file) → its layout in this
# format; a CadecError if there can't be one
Writer = Callable[[TextFile, str, str], Layout | BinaryLayout]


@dataclass(frozen=True)
class Format:
    """A file format: how to recognise its files, and how to read and write them.

    Functions may be named by strings such as "package.module:function". All but `read` are optional: without
    `write`, no other format can be converted to this one; without `lines`, files are read whole even from a
    pipe; without `detect`, files are what their name says; without `plain_text`, sentences have no tags.
    A layout may have `notes`: what people should know about the file.
    """

    name: str
    help: str  # a few words
    endings: tuple[str, ...]  # of file names, in lower case and with the dot
    read: str | Reader
    binary: bool = False  # `Source.content` is bytes, and the layout yields bytes
    has_cues: bool = False  # subtitles: text with times
    bilingual: bool = False  # translations can be shown with their sources
    has_columns: bool = False  # tables, of which columns are translated
    write: str | Writer | None = None
    lines: str | LineReaders | None = None
    detect: str | Callable[[str, str], str] | None = None  # (text, this name) → the name of the true format
    plain_text: str | Callable[[str, str], str] | None = None  # (sentence, this name) → it without tags


_SUBTITLES = "cadec_cli.text.formats.subtitles"
_CATALOGUES = "cadec_cli.text.formats.catalogues"
_CONVERSION = "cadec_cli.text.formats.conversion"


def _subtitles(name: str, help: str, *endings: str) -> Format:
    return Format(
        name,
        help,
        (f".{name}", *endings),
        f"{_SUBTITLES}.reader:read_subtitles",
        has_cues=True,
        bilingual=True,
        write=f"{_CONVERSION}:write_subtitles",
        detect=f"{_SUBTITLES}.cues:detect",
        plain_text=f"{_CONVERSION}:without_tags",
    )


def _document(name: str, help: str, endings: tuple[str, ...], *, binary: bool = True) -> Format:
    module = f"cadec_cli.text.formats.richtext.{name}"
    plain_text = "cadec_cli.text.formats.richtext.paragraphs:without_tags"
    return Format(
        name,
        help,
        endings,
        f"{module}:read_{name}",
        binary=binary,
        plain_text=plain_text,
        bilingual=binary,  # paragraphs of Markdown have no line breaks that every reader shows
    )


def _table(name: str, help: str) -> Format:
    return Format(name, help, (f".{name}",), "cadec_cli.text.formats.tables:read_table", has_columns=True)


FORMATS: Registry[Format] = Registry(
    "cadec.formats",
    Format,
    {
        known.name: known
        for known in (
            Format(
                TEXT,
                "plain text",
                (".txt", ".text"),
                "cadec_cli.text.formats.plain:read_plain",
                write=f"{_CONVERSION}:write_lines",
                lines="cadec_cli.text.formats.plain:PlainLines",
            ),
            Format(
                "jsonl",
                "JSON lines",
                (".jsonl",),
                "cadec_cli.text.formats.jsonl:read_jsonl",
                write=f"{_CONVERSION}:write_json_lines",
                lines="cadec_cli.text.formats.jsonl:JsonlLines",
            ),
            _document("markdown", "Markdown", (".md", ".markdown"), binary=False),
            _document("html", "web pages", (".html", ".htm", ".xhtml")),
            _document("docx", "Word documents", (".docx",)),
            _document("odt", "OpenDocument texts", (".odt",)),
            _document("epub", "books", (".epub",)),
            _subtitles("srt", "SubRip subtitles"),
            _subtitles("vtt", "WebVTT subtitles"),
            _subtitles("ass", "Advanced SubStation Alpha subtitles"),
            _subtitles("ssa", "SubStation Alpha subtitles"),
            _subtitles("ttml", "TTML subtitles", ".dfxp"),
            _subtitles("sbv", "SubViewer subtitles of YouTube"),
            _subtitles("sub", "MicroDVD subtitles"),
            Format("po", "gettext catalogues", (".po", ".pot"), f"{_CATALOGUES}.po:read_po"),
            Format("xliff", "XLIFF 1.2 and 2", (".xlf", ".xliff"), f"{_CATALOGUES}.xliff:read_xliff"),
            Format("json", "strings in JSON", (".json",), f"{_CATALOGUES}.json_strings:read_json"),
            Format("arb", "ARB of Flutter", (".arb",), f"{_CATALOGUES}.json_strings:read_arb"),
            Format("yaml", "strings in YAML", (".yaml", ".yml"), f"{_CATALOGUES}.yaml_strings:read_yaml"),
            Format("strings", "strings of Apple", (".strings",), f"{_CATALOGUES}.apple_strings:read_strings"),
            Format(
                "android",
                "strings of Android",
                (".xml",),
                f"{_CATALOGUES}.android:read_android",
                detect="cadec_cli.text.formats.xml_text:detect",
            ),
            _table("csv", "comma-separated tables"),
            _table("tsv", "tab-separated tables"),
        )
    },
)


def format_named(name: str) -> Format:
    """Look up a format by its name; an unknown one is a CadecError."""
    if name not in FORMATS:
        raise CadecError(f"unknown format: {name}", f"use one of {', '.join(FORMATS)}")
    return FORMATS[name]


def format_with_ending(ending: str) -> Format | None:
    """Look up a format by an ending of file names such as ".srt"; None if no format has it."""
    ending = ending.lower()
    for known in FORMATS.own:
        if ending in known.endings:
            return known
    if ending.removeprefix(".") in FORMATS:
        return FORMATS[ending.removeprefix(".")]
    return next((known for known in FORMATS.usable() if ending in known.endings), None) if ending else None


def format_of(path: Path) -> str:
    """Return the format that a file's name promises: `film.srt.gz` is srt; an unknown ending means text."""
    known = format_with_ending(_ending_of(path))
    return TEXT if known is None else known.name


def _ending_of(path: Path) -> str:
    """Return the ending of a file's name, without that of a compressed file."""
    suffixes = path.suffixes
    if suffixes and suffixes[-1].lower() in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _name_with_ending(ending: str) -> str | None:
    known = format_with_ending(ending)
    return None if known is None else known.name


def read_text_file(
    path: Path,
    *,
    language: str,
    lines: bool = False,
    encoding: str | None = None,
    format: str | None = None,
    tags: bool = False,
    screen: SubtitleStyle | None = None,
    columns: Sequence[str] = (),
    retranslate: bool = False,
    most: int = MAX_INPUT_BYTES,
) -> TextFile:
    """Read a file in `format`, or in the format that its name promises; `-` is standard input.

    With `lines`, every line of plain text is one sentence. With `tags`, sentences keep the tags inside them,
    and translations must have them too. `columns` are those of a table that are translated; with
    `retranslate`, so is what a catalogue has a translation of. A file of more than `most` bytes, or one that
    isn't in its format, is a CadecError; without `format`, so is a file that is not text by its name or its
    beginning. Binary formats have no `encoding`.
    """
    from cadec_cli.text.formats.foreign import refuse_binary, refuse_name, refuse_text

    name = name_of(path)
    if format is None:
        refuse_name(_ending_of(path), name, _name_with_ending)
    known = format_named(format_of(path) if format is None else format)
    data = read_data(path, most=most)
    content: str | bytes = data
    found_encoding: str | None = None
    if not known.binary:
        refuse_binary(data, name, _name_with_ending, encoding)
        content, found_encoding = decode(data, encoding, name)
        if known.detect is not None:
            known = format_named(load(known.detect)(content, known.name))
        if known.name == TEXT and format is None:
            refuse_text(content, name, _name_with_ending)
    if columns and not known.has_columns:
        raise UsageError(f"{option('columns')} is for tables, and {name} is {known.name}")
    source = Source(
        content,
        name=name,
        format=known.name,
        language=language,
        lines=lines,
        tags=tags,
        screen=screen or SubtitleStyle(),
        columns=tuple(columns),
        retranslate=retranslate,
    )
    documents, layout = load(known.read)(source)
    cues = layout if isinstance(layout, CueLayout) else None
    return TextFile(documents, layout, found_encoding, known.name, cues)


def encode_piece(piece: str, encoding: str) -> bytes:
    """Encode a part of the output; no state is carried from one part to the next."""
    try:
        return piece.encode(encoding)
    except UnicodeEncodeError as error:
        raise CadecError(
            f"{encoding} has no {error.object[error.start]!r}, which the translation needs",
            f"leave out {option('output-encoding')}, as UTF-8 has all characters; {option('resume')} "
            f"continues what went to {option('output')}",
        ) from None


# The most lines, and about the most characters, that are yielded at once.
LINES, CHARACTERS = 1024, 1 << 20
# The most characters of one line or document. More are an error, so that endless input can't fill the memory.
MAX_HELD = 1 << 26


def stream_lines(
    stream: TextStream,
    format: str,
    *,
    language: str,
    lines: bool = False,
    whole_documents: bool = False,
    most_held: int = MAX_HELD,
    any_text: bool = True,
    note: Callable[[str], None] = lambda remark: None,
) -> Iterator[list[Line[Layout]]]:
    """Yield the lines of a stream, all that are available at a time; or only those of whole documents.

    Binary data are a CadecError. Without `any_text`, so is text that begins as a file of another format does.
    `note` is called if the lines seem to be wrapped, which only a file's are joined for.

    If reading fails, the lines before the failure are yielded before the error is raised.
    """
    readers = format_named(format).lines
    assert readers is not None, f"{format} can't be read line by line"
    reader = load(readers)(stream.name, language, lines)
    held: list[Line[Layout]] = []
    ready = 0  # of those held
    failure: CadecError | None = None
    characters = 0
    try:
        pieces, cutter = _checked(stream, any_text), LineCutter(old_ends=reader.old_ends)
        for found in _lines(
            pieces, cutter, reader, None if lines or format != TEXT else _watch(stream, note)
        ):
            if isinstance(found, Line):
                held.append(found)
                ready = _ready(held, ready) if whole_documents else len(held)
                enough = ready >= LINES
            else:
                characters += found
                enough = characters >= CHARACTERS or not stream.waiting()
            if ready and enough:
                yield held[:ready]
                del held[:ready]
                ready = characters = 0
            elif characters > most_held:
                del held[ready:]
                raise _too_much(stream.name, "document" if whole_documents else "line", most_held)
    except CadecError as error:
        failure = error
        held += reader.end()
    if held:
        yield held
    if failure is not None:
        raise failure


def _checked(stream: TextStream, any_text: bool) -> Iterator[str]:
    """Yield the pieces of a stream; the first one shows whether it is text."""
    from cadec_cli.text.formats.foreign import refuse_binary, refuse_text

    first = True
    while text := stream.read():
        if first:
            refuse_binary(text.encode("utf-8", "surrogatepass"), stream.name, _name_with_ending, "utf-8")
            if not any_text:
                refuse_text(text, stream.name, _name_with_ending)
        first = False
        yield text


def _watch(stream: TextStream, note: Callable[[str], None]) -> WrapWatch:
    from cadec_cli.text.formats.hard_wrap import WrapWatch

    return WrapWatch(
        lambda: note(
            f"{stream.name}: the lines seem to be wrapped, and from a pipe each is translated on its own; "
            f"name the file, or add {option('output')}, and they are joined to paragraphs"
        )
    )


def _lines(
    pieces: Iterator[str], cutter: LineCutter, reader: LineReader, watch: WrapWatch | None = None
) -> Iterator[Line[Layout] | int]:
    """Yield the lines of each piece of text, and then the length of the piece."""
    for text in pieces:
        for line, end in cutter.cut(text):
            if watch is not None:
                watch.see(line)
            yield from reader.read(line, end)
        yield len(text)
    for line, end in cutter.end():
        yield from reader.read(line, end)
    if watch is not None:
        watch.end()
    yield from reader.end()


def _ready(held: list[Line[Layout]], before: int) -> int:
    """Return how many lines belong to complete documents, now that another line has come."""
    newest = held[-1]
    if newest.ends_after or (newest.ends_before and not newest.sentences):
        return len(held)
    return len(held) - 1 if newest.ends_before else before


def _too_much(name: str, what: str, most: int) -> CadecError:
    hint = "a blank line ends a document; files are read whole" if what == "document" else "is it text?"
    return CadecError(
        f"{name}: after {most:,} characters, the {what} still has no end",
        f"{hint}; or raise the limit with {option('max-input')}",
    )


class StreamedText:
    """The lines of a stream for two readers: one translates them, the other restores the text around them.

    The reader that is ahead waits for more input. To the other it is a layout like that of any file.
    """

    def __init__(self, lines: Iterator[list[Line[Layout]]]) -> None:
        self._lines = lines
        self._untranslated: deque[list[Line[Layout]]] = deque()
        self._unwritten: deque[list[Line[Layout]]] | None = None  # None until `restore` is called

    def to_translate(self) -> Iterator[list[Line[Layout]]]:
        """Yield lines, as many at once as are available."""
        while self._untranslated or self._more():
            yield self._untranslated.popleft()

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the text with translations for sentences, each as soon as its translation is there."""
        self._unwritten = deque()
        incoming = iter(translations)
        while self._unwritten or self._more():
            for line in self._unwritten.popleft():
                yield from line.layout.restore(islice(incoming, len(line.sentences)))

    def _more(self) -> bool:
        for lines in self._lines:
            self._untranslated.append(lines)
            if self._unwritten is not None:
                self._unwritten.append(lines)
            return True
        return False
