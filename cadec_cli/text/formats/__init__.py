"""Files of text in every format we know: read into documents, and put together again in the layout found.

A byte order mark is kept as the first character of the layout, so that `TextFile.encoding` and the pieces of
text are all it takes to write the same bytes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.read import MAX_INPUT_BYTES, read_text
from cadec_cli.text.documents import Document
from cadec_cli.text.formats.jsonl import read_jsonl
from cadec_cli.text.formats.layout import Layout, Reader, Source, SubtitleStyle
from cadec_cli.text.formats.plain import read_plain
from cadec_cli.text.formats.subtitles.cues import detect
from cadec_cli.text.formats.subtitles.reader import read_subtitles

# Every format, by the extension that files of it have. To add one, write its reader and enter it here.
READERS: dict[str, Reader] = {
    "text": read_plain,
    "jsonl": read_jsonl,
    "srt": read_subtitles,
    "vtt": read_subtitles,
    "ass": read_subtitles,
    "ssa": read_subtitles,
}

SUBTITLES = frozenset(name for name, reader in READERS.items() if reader is read_subtitles)

# Endings of compressed files, which are read as what is in them.
COMPRESSED = (".gz", ".xz", ".zst")


@dataclass(frozen=True)
class TextFile:
    """A file as read: its documents, the layout to put them back into, and the encoding to write it in."""

    documents: tuple[Document, ...]
    layout: Layout
    encoding: str
    format: str  # one of READERS: what it is in fact, whatever its name says
    original: tuple[str, str] | None = None  # format and text as they were read; None for a stream

    def restore(self, translations: Iterable[str]) -> Iterator[bytes]:
        """Yield the translated file's bytes, piece by piece."""
        for piece in self.layout.restore(translations):
            yield encode_piece(piece, self.encoding)


def read_text_file(
    path: Path,
    *,
    language: str,
    lines: bool = False,
    encoding: str | None = None,
    format: str | None = None,
    tags: bool = False,
    screen: SubtitleStyle | None = None,
    most: int = MAX_INPUT_BYTES,
) -> TextFile:
    """Read a file, by its extension unless `format` is given; `-` is plain text from standard input.

    With `tags`, sentences have the tags inside them, and so have the translations that are put back. A file
    of more than `most` bytes is refused.
    """
    chosen = format_of(path) if format is None else format
    if chosen not in READERS:
        raise CadecError(f"unknown format: {chosen}", f"one of {', '.join(READERS)}")
    file = read_text(path, encoding, most=most)
    source = Source(
        file.text,
        name=file.name,
        format=chosen,
        language=language,
        lines=lines,
        tags=tags,
        screen=screen or SubtitleStyle(),
    )
    documents, layout = READERS[chosen](source)
    in_fact = detect(file.text, chosen) if chosen in SUBTITLES else chosen
    return TextFile(documents, layout, file.encoding, in_fact, (in_fact, file.text))


def format_of(path: Path) -> str:
    """Return the format that a file's name promises: `film.srt.gz` is srt, and what nobody knows is text."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    last = suffixes[-1].removeprefix(".") if suffixes else ""
    return last if last in READERS else "text"


def encode_piece(piece: str, encoding: str) -> bytes:
    """Encode a part of the output; no state is carried from one to the next."""
    try:
        return piece.encode(encoding)
    except UnicodeEncodeError as error:
        raise CadecError(
            f"{encoding} has no {error.object[error.start]!r}, which the translation needs",
            f"leave out {option('output-encoding')}, as UTF-8 has everything; {option('resume')} takes "
            f"up what went to {option('output')}",
        ) from None
