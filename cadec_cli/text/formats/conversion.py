"""A file that was read, written as another one: in another format, or in another encoding.

Subtitles become subtitles of every kind. From whatever there is, text (one sentence per line, a blank line
between documents) and JSON lines can be made. Only subtitles have times, so nothing else becomes subtitles.
Where format and encoding stay as they are, the file is left alone, and its bytes are put back as they were.
"""

import codecs
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from cadec_cli.errors import CadecError, option
from cadec_cli.text.documents import Document
from cadec_cli.text.formats import COMPRESSED, READERS, TextFile, encode_piece
from cadec_cli.text.formats.layout import Layout, finish, one_line, take
from cadec_cli.text.formats.subtitles.cue_tags import inline_tags
from cadec_cli.text.formats.subtitles.transcode import SUBTITLES, converted_subtitles
from cadec_cli.text.markup import without_tags

_MARK = "\ufeff"
# Encodings whose files begin with a mark, and what the rest of such a file is in.
_MARKED = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


def promised_format(output: Path, source: Path) -> str | None:
    """The format that an output's name promises; none where it says nothing, or what the input's name says.

    What a file is in fact can be another thing than its name says; it then stays that.
    """
    suffixes = [suffix.lower() for suffix in source.suffixes if suffix.lower() not in COMPRESSED]
    ending = output.suffix.lower()
    if ending == (suffixes[-1] if suffixes else ""):
        return None
    name = {".txt": "text"}.get(ending, ending.removeprefix("."))
    return name if name in READERS else None


def as_format(file: TextFile, wanted: str | None, name: str) -> TextFile:
    """A file that is put together in another format; what can't be is a CadecError, before the work.

    `name` is what messages call the file.
    """
    if wanted in (None, file.format):
        return file
    assert wanted is not None
    layout: Layout
    if wanted in _LAYOUTS:
        layout = _LAYOUTS[wanted](file.documents, file.format)
    elif file.format in SUBTITLES:
        layout = _ConvertedSubtitles(file.layout, file.format, wanted, name)
        for _ in layout.restore(text for document in file.documents for text in document.texts):
            pass  # whatever is wrong with it is said here
    else:
        raise CadecError(
            f"{name} is {_format_name(file.format)} and has no times, so it can't become .{wanted} subtitles",
            "name an output that ends like the input, or in .txt or .jsonl",
        )
    return replace(file, layout=layout, format=wanted)


def in_encoding(file: TextFile, encoding: str, letters: str = "") -> TextFile:
    """A file that is written in an encoding; what this has no letters for is a CadecError, before the work.

    A byte order mark stays where UTF-8 stays UTF-8; elsewhere the encoding's name says whether there is one.
    `letters` are some that the translations will need.
    """
    written = as_it_comes_in_encoding(file, encoding, letters)
    if written is not file:
        for piece in written.layout.restore("x" for document in file.documents for _ in document.texts):
            encode_piece(piece, written.encoding)
    return written


def as_it_comes_in_encoding(file: TextFile, encoding: str, letters: str = "") -> TextFile:
    """The same where the text is not there yet: only the letters can be tried before the work."""
    exact = output_encoding(encoding)
    marked = encoding_name(encoding) in _MARKED
    if exact == file.encoding == "utf-8" and not marked:
        return file
    encode_piece(letters, exact)
    return replace(file, layout=_MarkedLayout(file.layout, _MARK if marked else ""), encoding=exact)


def output_encoding(name: str) -> str:
    """The encoding that pieces of text are written in; an unknown one is a CadecError."""
    known = encoding_name(name)
    return _MARKED.get(known, known)


def encoding_name(name: str) -> str:
    """An encoding's own name; one that is unknown, or is none of text, is a CadecError."""
    try:
        known = codecs.lookup(name)
        "".encode(known.name)  # rot13 and its like are no encodings of text
    except (LookupError, ValueError, TypeError):
        raise CadecError(
            f"unknown encoding: {name}",
            f"give {option('output-encoding')} a name such as utf-8, cp1251 or latin-1",
        ) from None
    return known.name


@dataclass(frozen=True)
class _Lines:
    """One sentence per line, a blank line between documents."""

    documents: tuple[Document, ...]
    found: str  # the format that tags are of

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        incoming = iter(translations)
        for number, document in enumerate(self.documents):
            for position in range(len(document)):
                between = "\n" if number and not position else ""
                yield f"{between}{_bare(take(incoming), self.found)}\n"
        finish(incoming)


@dataclass(frozen=True)
class _JsonLines:
    """One object per sentence, which `read_jsonl` reads as the same documents."""

    documents: tuple[Document, ...]
    found: str

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        incoming = iter(translations)
        for number, document in enumerate(self.documents, 1):
            for text in document.texts:
                both = {"text": text, "translation": take(incoming)}
                record = {
                    "document": number,
                    **{key: _bare(value, self.found) for key, value in both.items()},
                }
                yield json.dumps(record, ensure_ascii=False) + "\n"
        finish(incoming)


# Formats that need no layout but the documents.
_LAYOUTS: dict[str, Callable[[tuple[Document, ...], str], Layout]] = {"text": _Lines, "jsonl": _JsonLines}


@dataclass(frozen=True)
class _ConvertedSubtitles:
    """Subtitles in the layout of their file, and only then, all at once, in the other format."""

    layout: Layout
    found: str
    wanted: str
    name: str

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        text = "".join(self.layout.restore(translations))
        yield converted_subtitles(text, self.found, self.wanted, self.name)


@dataclass(frozen=True)
class _MarkedLayout:
    """A layout with another byte order mark than it has."""

    layout: Layout
    mark: str

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        if self.mark:
            yield self.mark
        at_start = True
        for piece in self.layout.restore(translations):
            yield piece.removeprefix(_MARK) if at_start else piece
            at_start = at_start and not piece


def _bare(text: str, found: str) -> str:
    """One line without the tags of its format: text has none."""
    return one_line(without_tags(text, inline_tags(text, found)))


def _format_name(found: str) -> str:
    return "plain text" if found == "text" else f".{found}"
