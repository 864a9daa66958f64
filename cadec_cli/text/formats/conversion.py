"""A file that was read, written in another format or in another encoding.

Subtitles can become subtitles of any kind. Every format can become text (one sentence per line, a blank line
between documents) and JSON lines. Only subtitles have times, so nothing else becomes subtitles. A file whose
format and encoding don't change is left alone, and its bytes are restored as they were.

Of subtitles, cues, times, text, and bold, italic, underlined or struck styles are converted; fonts, colours,
positions, comments and drawings are lost if the new format is SubRip or WebVTT. pysubs2 reads and writes
SubStation. The cues of the other two are read by our own code, because the reader of pysubs2 misreads notes,
identifiers of cues and numbers in the last line, and its writer escapes nothing.
"""

import codecs
import html
import itertools
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pysubs2
from pysubs2.formats.subrip import SubripFormat
from pysubs2.formats.substation import parse_tags
from pysubs2.formats.webvtt import WebVTTFormat

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
from cadec_cli.text.formats.subtitles.cue_tags import escape_text, inline_tags
from cadec_cli.text.formats.subtitles.cues import ass_file, timed_texts
from cadec_cli.text.formats.xml_text import escape_xml
from cadec_cli.text.markup import subtitle_tags

_SUBSTATION = ("ass", "ssa")

# The first hour that a format can't write.
_TOO_LATE = {"srt": 100, "vtt": 100, "ass": 10, "ssa": 10, "sbv": 100, "sub": 100, "ttml": 100}
# Frames per second of MicroDVD, whose times are frames.
_RATE = 25

_STYLES = {"b": "b", "i": "i", "u": "u", "s": "s", "em": "i", "strong": "b"}
_PLACE = re.compile(r"\{[^{}]*(\\an[1-9])[^{}]*\}")
_BREAK = re.compile(r"\\[Nn]")
_READ_AS_BREAK = re.compile(r"\\(?=[Nnh])")


@dataclass(frozen=True)
class _Fragment:
    """Text in one style; a line break is \\n."""

    text: str
    styles: frozenset[str] = frozenset()  # of b, i, u and s


@dataclass(frozen=True)
class _StyledCue:
    start: int  # milliseconds
    end: int
    fragments: tuple[_Fragment, ...]
    place: str = ""  # an alignment such as \an8, if there is one


def convert_subtitles(text: str, found: str, wanted: str, name: str) -> str:
    """Convert a subtitle file's text to another format; `name` is the file's name in messages."""
    text = text.removeprefix("\ufeff")
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    if found in _SUBSTATION and wanted in _SUBSTATION:
        subtitles = ass_file(text, found, name)
        written = _substation(subtitles, wanted)
    else:
        cues = list(_ass_cues(text, found, name) if found in _SUBSTATION else _html_cues(text, found, name))
        limit = _TOO_LATE[wanted]
        if any(max(cue.start, cue.end) >= limit * 3_600_000 - (5 if limit == 10 else 0) for cue in cues):
            raise CadecError(
                f"{name} has cues from {limit} hours on, which .{wanted} has no times for",
                f"write .{found} instead",
            )
        written = _WRITERS[wanted](cues)
    return written.replace("\n", end_of_line)


# What reads the cues of a format, with styles as the tags of SubRip or WebVTT.
_TEXTS = {
    "sbv": "cadec_cli.text.formats.subtitles.sbv:sbv_texts",
    "sub": "cadec_cli.text.formats.subtitles.microdvd:microdvd_texts",
    "ttml": "cadec_cli.text.formats.subtitles.ttml:ttml_texts",
}


def _html_cues(text: str, found: str, name: str) -> Iterator[_StyledCue]:
    texts = load(_TEXTS[found])(text, name) if found in _TEXTS else timed_texts(text, found, name)
    found = "vtt" if found == "ttml" else "srt" if found in _TEXTS else found
    for start, end, body in texts:
        place = _PLACE.search(body)
        yield _StyledCue(
            start, end, _merge_fragments(_html_fragments(body, found)), place[1] if place else ""
        )


def _html_fragments(body: str, found: str) -> Iterator[_Fragment]:
    done = 0
    on: list[str] = []
    for tag in subtitle_tags(body, found):
        yield _Fragment(_unescape(body[done : tag.start], found), frozenset(on))
        done = tag.end
        for switch in tag.switches:
            style = _STYLES.get(switch.name)
            if style and switch.on:
                on.append(style)
            elif style in on:
                on.remove(style)
    yield _Fragment(_unescape(body[done:], found), frozenset(on))


def _unescape(text: str, found: str) -> str:
    return html.unescape(text) if found == "vtt" else text


def _ass_cues(text: str, found: str, name: str) -> Iterator[_StyledCue]:
    """Yield the events that show text, in the order of their times."""
    subtitles = ass_file(text, found, name)
    shown = (event for event in subtitles.events if event.type == "Dialogue" and not event.is_drawing)
    for event in sorted(shown, key=lambda event: event.start):
        style = subtitles.styles.get(event.style, pysubs2.SSAStyle.DEFAULT_STYLE)
        fragments = (
            _Fragment(
                _BREAK.sub("\n", part).replace(r"\h", "\xa0"),
                frozenset(
                    letter
                    for letter, on in zip(
                        "bius", (look.bold, look.italic, look.underline, look.strikeout), strict=True
                    )
                    if on
                ),
            )
            for part, look in parse_tags(event.text, style, subtitles.styles)
            if not look.drawing
        )
        yield _StyledCue(event.start, event.end, _merge_fragments(fragments))


def _merge_fragments(fragments: Iterable[_Fragment]) -> tuple[_Fragment, ...]:
    """Drop empty fragments, and join neighbours of the same style."""
    filled = (fragment for fragment in fragments if fragment.text)
    return tuple(
        _Fragment("".join(fragment.text for fragment in same), styles)
        for styles, same in itertools.groupby(filled, key=lambda fragment: fragment.styles)
    )


def _srt(cues: list[_StyledCue]) -> str:
    return "".join(
        f"{number}\n{SubripFormat.ms_to_timestamp(cue.start)} --> {SubripFormat.ms_to_timestamp(cue.end)}\n"
        f"{_in_html(cue.fragments, lambda text: text.replace('-->', '->'))}\n\n"
        for number, cue in enumerate(cues, 1)
    )


def _vtt(cues: list[_StyledCue]) -> str:
    # WebVTT requires cues in the order of their times.
    return "WEBVTT\n\n" + "".join(
        f"{WebVTTFormat.ms_to_timestamp(cue.start)} --> {WebVTTFormat.ms_to_timestamp(cue.end)}\n"
        f"{_in_html(cue.fragments, lambda text: html.escape(text, quote=False))}\n\n"
        for cue in sorted(cues, key=lambda cue: cue.start)
    )


def _in_html(fragments: tuple[_Fragment, ...], escaped: Callable[[str], str]) -> str:
    written = ""
    open_: list[str] = []
    for fragment in (*fragments, _Fragment("")):
        while not fragment.styles.issuperset(open_):
            written += f"</{open_.pop()}>"
        for style in sorted(fragment.styles.difference(open_)):
            open_.append(style)
            written += f"<{style}>"
        written += escaped(fragment.text)
    # A blank line would end the cue.
    return "\n".join(line for line in written.split("\n") if line.strip())


def _sbv(cues: list[_StyledCue]) -> str:
    return "".join(
        f"{_sbv_time(cue.start)},{_sbv_time(cue.end)}\n{_without_blank_lines(cue)}\n\n" for cue in cues
    )


def _sbv_time(milliseconds: int) -> str:
    shown = WebVTTFormat.ms_to_timestamp(milliseconds)
    return f"{int(shown[:2])}{shown[2:]}"


def _without_blank_lines(cue: _StyledCue) -> str:
    text = "".join(fragment.text for fragment in cue.fragments)
    return "\n".join(line for line in text.split("\n") if line.strip())


def _sub(cues: list[_StyledCue]) -> str:
    """Write MicroDVD, which has whole lines in italics and the like, but no words."""
    lines = [f"{{1}}{{1}}{_RATE:.3f}\n"]
    for cue in cues:
        styles = frozenset.intersection(*(one.styles for one in cue.fragments)) if cue.fragments else ()
        style = f"{{Y:{','.join(sorted(styles))}}}" if styles else ""
        text = escape_text(_without_blank_lines(cue), "sub").replace("\n", "|")
        lines.append(f"{{{_frame(cue.start)}}}{{{_frame(cue.end)}}}{style}{text}\n")
    return "".join(lines)


def _frame(milliseconds: int) -> int:
    return round(milliseconds * _RATE / 1000)


_TTML_STYLES = {"b": 'tts:fontWeight="bold"', "i": 'tts:fontStyle="italic"'}


def _ttml(cues: list[_StyledCue]) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<tt xmlns="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling" xml:lang="">\n'
        "<body><div>\n"
        + "".join(
            f'<p begin="{WebVTTFormat.ms_to_timestamp(cue.start)}" '
            f'end="{WebVTTFormat.ms_to_timestamp(cue.end)}">{"".join(map(_span, cue.fragments))}</p>\n'
            for cue in cues
        )
        + "</div></body>\n</tt>\n"
    )


def _span(fragment: _Fragment) -> str:
    text = "<br/>".join(escape_xml(line) for line in fragment.text.split("\n"))
    values = [value for style, value in _TTML_STYLES.items() if style in fragment.styles]
    decorations = [
        name for style, name in (("u", "underline"), ("s", "lineThrough")) if style in fragment.styles
    ]
    if decorations:
        values.append(f'tts:textDecoration="{" ".join(decorations)}"')
    return f"<span {' '.join(values)}>{text}</span>" if values else text


def _ass(cues: list[_StyledCue]) -> str:
    return _substation(_events(cues), "ass")


def _ssa(cues: list[_StyledCue]) -> str:
    return _substation(_events(cues), "ssa")


def _events(cues: list[_StyledCue]) -> pysubs2.SSAFile:
    subtitles = pysubs2.SSAFile()
    subtitles.events = [
        pysubs2.SSAEvent(start=cue.start, end=cue.end, text=_in_substation(cue)) for cue in cues
    ]
    return subtitles


def _in_substation(cue: _StyledCue) -> str:
    written = f"{{{cue.place}}}" if cue.place else ""
    on: frozenset[str] = frozenset()
    for fragment in cue.fragments:
        changed = "".join(
            f"\\{style}{int(style in fragment.styles)}" for style in sorted(on ^ fragment.styles)
        )
        on = fragment.styles
        # Braces can't be escaped in SubStation.
        shown = fragment.text.replace("{", "(").replace("}", ")")
        shown = _READ_AS_BREAK.sub("\\\\\u2060", shown)  # a word joiner: C:\New has no line break
        shown = shown.replace("\n", r"\N").replace("\xa0", r"\h")
        written += (f"{{{changed}}}" if changed else "") + shown
    return written


def _substation(subtitles: pysubs2.SSAFile, wanted: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return subtitles.to_string(wanted, header_notice="")


_WRITERS = {"srt": _srt, "vtt": _vtt, "ass": _ass, "ssa": _ssa, "sbv": _sbv, "sub": _sub, "ttml": _ttml}


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
