"""Files of text in every format we know: read into documents, and put together again in the layout found.

A byte order mark is kept as the first character of the layout, so that `TextFile.encoding` and the pieces of
text are all it takes to write the same bytes.
"""

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cadec_cli import files
from cadec_cli.errors import CadecError
from cadec_cli.text.documents import Document
from cadec_cli.text.formats.cues import FORMATS as SUBTITLE_FORMATS
from cadec_cli.text.formats.jsonl import read_jsonl
from cadec_cli.text.formats.plain import read_plain
from cadec_cli.text.formats.subtitles import read_subtitles

FORMATS = ("text", "jsonl", *SUBTITLE_FORMATS)

_COMPRESSED = (".gz", ".xz", ".zst")
_WIDE_MARKS = {
    # UTF-32 first: its little-endian mark begins with that of UTF-16
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}


class Layout(Protocol):
    """All of a file but its sentences."""

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the file's text with the translations of all sentences, in order, as early as they allow."""
        ...


@dataclass(frozen=True)
class TextFile:
    """A file as read: its documents, the layout to put them back into, and the encoding to write it in."""

    documents: tuple[Document, ...]
    layout: Layout
    encoding: str

    @property
    def sentences(self) -> Iterator[str]:
        """The sentences of all documents, in order."""
        return (text for document in self.documents for text in document.texts)

    def restore(self, translations: Iterable[str]) -> Iterator[bytes]:
        """Yield the translated file's bytes, piece by piece."""
        for piece in self.layout.restore(translations):
            yield encode_piece(piece, self.encoding)


def read_text_file(
    path: Path,
    *,
    language: str,
    lines: bool = False,
    encoding: str = "utf-8",
    format: str | None = None,
) -> TextFile:
    """Read a file, by its extension unless `format` is given; `-` is plain text from standard input."""
    chosen = format_of(path) if format is None else format
    if chosen not in FORMATS:
        raise CadecError(f"unknown format: {chosen}", f"one of {', '.join(FORMATS)}")
    with files.reading(path):
        stream = files.open_binary(path)
        try:
            data = stream.read()
        finally:
            if str(path) != "-":
                stream.close()
    name = "standard input" if str(path) == "-" else str(path)
    text, exact = decode(data, encoding, name)
    documents, layout = _parse(text, chosen, language, lines, name)
    return TextFile(documents, layout, exact)


def _parse(
    text: str, chosen: str, language: str, lines: bool, name: str
) -> tuple[tuple[Document, ...], Layout]:
    if chosen == "text":
        return read_plain(text, language=language, lines=lines)
    if chosen == "jsonl":
        return read_jsonl(text, name)
    return read_subtitles(text, subtitle_format=chosen, language=language, name=name)


def format_of(path: Path) -> str:
    """Return the format that a file's name promises: `film.srt.gz` is srt, and what nobody knows is text."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    last = suffixes[-1].removeprefix(".") if suffixes else ""
    return last if last in FORMATS else "text"


def decode(data: bytes, encoding: str, name: str) -> tuple[str, str]:
    """Decode a file, and return with it the encoding that turns the text into the same bytes again."""
    try:
        exact = codecs.lookup(encoding).name
        if exact in ("utf-16", "utf-32"):
            marked = (
                wide for wide, mark in _WIDE_MARKS.items() if data.startswith(mark) and wide[:6] == exact
            )
            exact = next(marked, f"{exact}-le")
        elif exact == "utf-8-sig":
            exact = "utf-8"
        return data.decode(exact), exact
    except UnicodeDecodeError as error:
        guess = next((wide[:6] for wide, mark in _WIDE_MARKS.items() if data.startswith(mark)), "cp1251")
        line = data.count(b"\n", 0, error.start) + 1
        raise CadecError(
            f"{name}: line {line} is not {encoding} (byte {data[error.start]:#04x})",
            f"say which encoding it is with --encoding, e.g. --encoding {guess}",
        ) from None
    except (LookupError, ValueError, TypeError):
        raise CadecError(
            f"unknown encoding: {encoding}", "give --encoding a name such as utf-8, cp1251 or latin-1"
        ) from None


def encode_piece(piece: str, encoding: str) -> bytes:
    """Encode a part of the output; no state is carried from one to the next."""
    try:
        return piece.encode(encoding)
    except UnicodeEncodeError as error:
        raise CadecError(
            f"{encoding} has no {error.object[error.start]!r}, which the translation needs",
            "convert the input to UTF-8 first, and leave out --encoding",
        ) from None
