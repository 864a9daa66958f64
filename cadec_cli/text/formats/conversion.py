"""A file that was read, written in another format or in another encoding.

Subtitles can become subtitles of any kind. Every format can become text (one sentence per line, a blank line
between documents) and JSON lines. Only subtitles have times, so nothing else becomes subtitles. A file whose
format and encoding don't change is left alone, and its bytes are restored as they were.
"""

import codecs
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from cadec_cli.errors import CadecError, option
from cadec_cli.extensions import load
from cadec_cli.text import markup
from cadec_cli.text.documents import Document, document_lines
from cadec_cli.text.formats import (
    COMPRESSED,
    FORMATS,
    TextFile,
    encode_piece,
    format_named,
    format_with_ending,
)
from cadec_cli.text.formats.layout import BinaryLayout, Layout, finish, one_line, take
from cadec_cli.text.formats.subtitles.cue_tags import inline_tags
from cadec_cli.text.formats.subtitles.transcode import convert_subtitles

_MARK = "\ufeff"
# Encodings whose files begin with a byte order mark, and the encoding of the rest of such a file.
_MARKED = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


def promised_format(output: Path, source: Path) -> str | None:
    """The format that an output's name promises; None if its ending is unknown, or the same as the input's.

    An input may be in another format than its name says; an output with the same ending then stays in it.
    """
    suffixes = [suffix.lower() for suffix in source.suffixes if suffix.lower() not in COMPRESSED]
    ending = output.suffix.lower()
    if ending == (suffixes[-1] if suffixes else ""):
        return None
    known = format_with_ending(ending)
    return None if known is None else known.name


def as_format(file: TextFile, wanted: str | None, name: str) -> TextFile:
    """The same file, to be restored in another format; None means its own.

    `name` is what messages call the file. What can't be converted is a CadecError.
    """
    if wanted is None or wanted == file.format:
        return file
    target = format_named(wanted)
    if target.write is None:
        raise CadecError(
            f"{name} is {_format_name(file.format)}, which can't be converted to {_format_name(wanted)}",
            "name an output that ends like the input, or in .txt or .jsonl",
        )
    layout = load(target.write)(file, wanted, name)
    encoding = None if target.binary else file.encoding or "utf-8"
    return replace(file, layout=layout, format=wanted, encoding=encoding)


def in_encoding(file: TextFile, encoding: str, letters: str = "") -> TextFile:
    """The same file, to be restored in another encoding; binary formats have none and don't change.

    A byte order mark stays where UTF-8 stays UTF-8; elsewhere the encoding's name says whether there is one.
    `letters` are letters that the translations will need. If the encoding lacks one of these, or a letter of
    the layout, that is a CadecError.
    """
    written = as_it_comes_in_encoding(file, encoding, letters)
    if written is not file:
        for piece in _as_text(written.layout).restore("x" for found in file.documents for _ in found.texts):
            encode_piece(piece, written.encoding or "utf-8")
    return written


def as_it_comes_in_encoding(file: TextFile, encoding: str, letters: str = "") -> TextFile:
    """Do the same for a stream, which is not read yet: only the letters can be checked beforehand."""
    if file.encoding is None:
        return file
    exact = output_encoding(encoding)
    marked = encoding_name(encoding) in _MARKED
    if exact == file.encoding == "utf-8" and not marked:
        return file
    encode_piece(letters, exact)
    return replace(file, layout=_MarkedLayout(_as_text(file.layout), _MARK if marked else ""), encoding=exact)


def output_encoding(name: str) -> str:
    """The encoding that pieces of text are written in; an unknown one is a CadecError."""
    known = encoding_name(name)
    return _MARKED.get(known, known)


def encoding_name(name: str) -> str:
    """Python's name of an encoding; an unknown one, or one that isn't for text, is a CadecError."""
    try:
        known = codecs.lookup(name)
        "".encode(known.name)  # refuses rot13 and the like, which don't encode text
    except (LookupError, ValueError, TypeError):
        raise CadecError(
            f"unknown encoding: {name}",
            f"give {option('output-encoding')} a name such as utf-8, cp1251 or latin-1",
        ) from None
    return known.name


def write_lines(file: TextFile, wanted: str, name: str) -> Layout:
    """Write any file as text: one sentence per line, a blank line between documents."""
    return _Lines(file.documents, file.format)


def write_json_lines(file: TextFile, wanted: str, name: str) -> Layout:
    """Write any file as JSON lines, one object per sentence. `read_jsonl` reads the same documents."""
    return _JsonLines(file.documents, file.format)


def write_subtitles(file: TextFile, wanted: str, name: str) -> Layout:
    """Write subtitles as subtitles of another kind. Anything without times is a CadecError."""
    if not FORMATS[file.format].has_cues:
        raise CadecError(
            f"{name} is {_format_name(file.format)} and has no times, so it can't become .{wanted} subtitles",
            "name an output that ends like the input, or in .txt or .jsonl",
        )
    layout = _ConvertedSubtitles(_as_text(file.layout), file.format, wanted, name)
    for _ in layout.restore(text for document in file.documents for text in document.texts):
        pass  # whatever can't be converted is an error here, before anything is translated
    return layout


def without_tags(sentence: str, subtitle_format: str) -> str:
    """A sentence without the tags of its subtitle format."""
    return markup.without_tags(sentence, inline_tags(sentence, subtitle_format))


@dataclass(frozen=True)
class _Lines:
    documents: tuple[Document, ...]
    found: str  # the format of the sentences' tags

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        incoming = iter(translations)
        yield from document_lines(
            (_plain_line(take(incoming), self.found) for _ in document.sentences)
            for document in self.documents
        )
        finish(incoming)


@dataclass(frozen=True)
class _JsonLines:
    documents: tuple[Document, ...]
    found: str

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        incoming = iter(translations)
        for number, document in enumerate(self.documents, 1):
            for text in document.texts:
                record = {
                    "document": number,
                    "text": _plain_line(text, self.found),
                    "translation": _plain_line(take(incoming), self.found),
                }
                yield json.dumps(record, ensure_ascii=False) + "\n"
        finish(incoming)


@dataclass(frozen=True)
class _ConvertedSubtitles:
    """Subtitles restored in the layout of their file, then converted to another format as a whole."""

    layout: Layout
    found: str
    wanted: str
    name: str

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        text = "".join(self.layout.restore(translations))
        yield convert_subtitles(text, self.found, self.wanted, self.name)


@dataclass(frozen=True)
class _MarkedLayout:
    """A layout with another byte order mark, or with none."""

    layout: Layout
    mark: str

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        if self.mark:
            yield self.mark
        at_start = True
        for piece in self.layout.restore(translations):
            yield piece.removeprefix(_MARK) if at_start else piece
            at_start = at_start and not piece


def _as_text(layout: Layout | BinaryLayout) -> Layout:
    """The layout of a file in a text format."""
    return cast(Layout, layout)


def _plain_line(sentence: str, found: str) -> str:
    """A sentence on one line, without the tags of the format it was found in."""
    strip = FORMATS[found].plain_text
    return one_line(sentence if strip is None else load(strip)(sentence, found))


def _format_name(found: str) -> str:
    return "plain text" if found == "text" else f".{found}"
