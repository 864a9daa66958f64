"""Conversion between subtitle formats: cues, times, text, and bold, italic, underlined or struck styles.

Fonts, colours, positions, comments and drawings are lost if the new format is SubRip or WebVTT. pysubs2 reads
and writes SubStation. The cues of the other two are read by our own code, because the reader of pysubs2
misreads notes, identifiers of cues and numbers in the last line, and its writer escapes nothing.
"""

import html
import itertools
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pysubs2
from pysubs2.formats.subrip import SubripFormat
from pysubs2.formats.substation import parse_tags
from pysubs2.formats.webvtt import WebVTTFormat

from cadec_cli.errors import CadecError
from cadec_cli.text.formats.subtitles.cues import ass_file, timed_texts
from cadec_cli.text.markup import subtitle_tags

_SUBSTATION = ("ass", "ssa")

# The first hour that a format can't write.
_TOO_LATE = {"srt": 100, "vtt": 100, "ass": 10, "ssa": 10}

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


def _html_cues(text: str, found: str, name: str) -> Iterator[_StyledCue]:
    for start, end, body in timed_texts(text, found, name):
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


_WRITERS = {"srt": _srt, "vtt": _vtt, "ass": _ass, "ssa": _ssa}
