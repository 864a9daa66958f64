"""The cues of a subtitle file: their times, where their lines of text are, and how they are shown.

pysubs2 reads the events of SubStation. The times of the other formats, and all positions, are found here. The
file is restored from its own text, because pysubs2's writers drop what it does not model: WebVTT headers,
notes, styles and cue settings, SubRip coordinates, comments in ASS.
"""

from __future__ import annotations

import html
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cadec_cli.errors import CadecError, option
from cadec_cli.extensions import load
from cadec_cli.text.formats.layout import ShownCue
from cadec_cli.text.formats.subtitles.cue_tags import ESCAPED, CueLine, cue_line, markup_of
from cadec_cli.text.markup import TAGS
from cadec_cli.text.sentences import Span

if TYPE_CHECKING:
    import pysubs2

_LINE = re.compile(r"([^\r\n]*)(\r\n|\n|\r|$)")
_NUMBER = re.compile(r"\s*\d+\s*$")
_SMALL_NUMBER = re.compile(r"\ufeff?\s*([0-9]{1,9})\s*")
_TIME_LIKE = re.compile(r"\s*\d*:?\d\d?:\d\d?|\s*-->")
# pysubs2 reads 100 hours as 0, and fails if there is nothing before a colon.
_TIME = re.compile(
    r"(?<![\d:])(?P<sign>-)?(?:(?P<hours>\d{1,6}):)?"
    r"(?P<minutes>\d{1,2}):(?P<seconds>\d{1,2})[.,](?P<fraction>\d+)"
)
_TORN_TIME = re.compile(r"[\d:,.\s>-]+$")
_ASS_EVENT = re.compile(r"\s*(Dialogue|Comment):((?:[^,\r\n]*,){9})?")
_VOICE = re.compile(r"\s*<v(?:\.[^\s<>]*)?[ \t]+([^<>\r\n]{1,100})>")
_TTML_BREAK = re.compile(r"\s*<(?:\w+:)?br\s*/>\s*")
_ASS_BREAK = re.compile(r"\\[Nn]")
_ASS_PLACE = re.compile(r"\{[^{}]*\\(?:(?:pos|move|org|i?clip|t)\(|(?:fr[xyz]?|fa[xy])[-\d.])")
# Syllables with their times: words of another language have others.
_KARAOKE = re.compile(r"\{[^{}]*\\(?:k[fot]?|K)\d")


@dataclass(frozen=True)
class Cue:
    """A cue with text: times in milliseconds, and a style, which differs between voices and signs.

    `speaker` is who says it, if the format has a place for that, and it is filled in.
    """

    start: int
    end: int
    style: str
    lines: tuple[CueLine, ...]
    span: Span  # of all its lines in the file, tags included
    number: int = 0  # among all cues of the file, from 1; comments of SubStation count, as in its editors
    positioned: bool = False  # at a place of its own on the screen
    speaker: str = ""


@dataclass(frozen=True)
class _RawLine:
    number: int
    start: int
    end: int
    text: str

    @property
    def blank(self) -> bool:
        return not self.text.strip("\ufeff \t\v\f\xa0")


@dataclass(frozen=True)
class _Block:
    """The line with the times of a cue, the line before it, and all lines up to the times of the next cue."""

    start: int
    end: int
    before: _RawLine | None
    head: _RawLine
    lines: list[_RawLine]


@dataclass(frozen=True)
class CueBlock:
    """All that a file has of a cue, with its number or name and the blank lines after it.

    `number` is where its number is in the file, and the number, if the format numbers its cues.
    """

    start: int
    end: int
    number: tuple[int, int, int] | None
    lines: tuple[Span, ...]
    markup: str

    @property
    def span(self) -> Span:
        """Where its text is, if it has any."""
        return self.lines[0][0], self.lines[-1][1]

    def texts(self, text: str) -> tuple[str, ...]:
        """Return its lines as they are written, given the text of the file."""
        return tuple(text[first:last] for first, last in self.lines)


def clock(milliseconds: int) -> str:
    """Write a time as players show it: 1:02:03."""
    seconds = milliseconds // 1000
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def detect(text: str, stated: str) -> str:
    """Return the format that the beginning of a file shows, or else the stated one."""
    head = text[:4096].lstrip("\ufeff \t\r\n")
    if head.startswith("WEBVTT"):
        return "vtt"
    if head.startswith("[Script Info]"):
        return "ssa" if "V4 Styles]" in text else "ass"
    return stated


_FINDERS = {
    "sbv": "cadec_cli.text.formats.subtitles.sbv:sbv_cues",
    "sub": "cadec_cli.text.formats.subtitles.microdvd:microdvd_cues",
    "ttml": "cadec_cli.text.formats.subtitles.ttml:ttml_cues",
}


def find_cues(text: str, subtitle_format: str, name: str, *, tags: bool = False) -> list[Cue]:
    """Find the cues with text, in the order of reading; with `tags`, tags are part of the text."""
    if subtitle_format in _FINDERS:
        found: list[Cue] = load(_FINDERS[subtitle_format])(text, name, tags=tags)
        return [replace(cue, number=number) for number, cue in enumerate(found, 1)]
    if subtitle_format in ("ass", "ssa"):
        cues = _ass_cues(text, subtitle_format, name, tags)
        # Signs and dialogue are often apart in the file, but alternate on the screen.
        return sorted(cues, key=lambda cue: cue.start)
    return _timed_cues(text, subtitle_format, name, tags)


def _raw_lines(text: str) -> Iterator[_RawLine]:
    for number, match in enumerate(_LINE.finditer(text), 1):
        if match[0]:
            yield _RawLine(number, match.start(1), match.end(1), match[1])


def _timed_cues(text: str, subtitle_format: str, name: str, tags: bool) -> list[Cue]:
    """Read SubRip or WebVTT: the lines after a line with two times are text."""
    blocks = _timed_blocks(text, subtitle_format, name)
    trim = _until_blank if subtitle_format == "vtt" else _without_number
    cues = []
    for position, block in enumerate(blocks):
        kept = trim(block.lines, position == len(blocks) - 1)
        found = [cue_line(text, line.start, line.end, subtitle_format, tags=tags) for line in kept]
        span = (kept[0].start, kept[-1].end) if kept else (0, 0)
        voice = _VOICE.match(text, kept[0].start) if kept and subtitle_format == "vtt" else None
        speaker = " ".join(html.unescape(voice[1]).split()) if voice else ""
        cues.append(
            Cue(
                block.start,
                block.end,
                "",
                tuple(line for line in found if line),
                span,
                position + 1,
                speaker=speaker,
            )
        )
    return cues


def timed_texts(text: str, subtitle_format: str, name: str) -> list[tuple[int, int, str]]:
    """Return start, end and text of all cues of SubRip or WebVTT, with tags but without blank lines."""
    found = []
    blocks = _timed_blocks(text, subtitle_format, name)
    for position, block in enumerate(blocks):
        if subtitle_format == "vtt":
            kept = _until_blank(block.lines, False)
        elif position == len(blocks) - 1:  # no number can follow: all lines are text
            kept = [line for line in block.lines if not line.blank]
        else:
            kept = _without_number(block.lines, False)
        found.append((block.start, block.end, "\n".join(line.text for line in kept)))
    return found


def cue_blocks(text: str, subtitle_format: str, name: str) -> Iterator[CueBlock]:
    """Yield the blocks of all cues in the order of the file, but those of SubStation that show no text.

    Formats of which only times and texts are known are a CadecError.
    """
    if subtitle_format in _FINDERS:
        raise CadecError(
            f"{option('sdh', 'drop')} is not for .{subtitle_format} subtitles",
            "convert them to .srt, .vtt or .ass first",
        )
    if subtitle_format in ("ass", "ssa"):
        cues = _ass_cues(text, subtitle_format, name, True)
        return (_ass_block(text, cue) for cue in sorted(cues, key=lambda cue: cue.span))
    return _timed_cue_blocks(text, subtitle_format, name)


def _ass_block(text: str, cue: Cue) -> CueBlock:
    """Return the line of an event."""
    first, last = cue.span
    start = max(text.rfind("\n", 0, first), text.rfind("\r", 0, first)) + 1
    line = _LINE.match(text, last)
    breaks = [edge for match in _ASS_BREAK.finditer(text, first, last) for edge in match.span()]
    edges = [first, *breaks, last]
    lines = tuple(zip(edges[::2], edges[1::2], strict=True))
    return CueBlock(start, line.end() if line else last, None, lines, "ass")


def _timed_cue_blocks(text: str, subtitle_format: str, name: str) -> Iterator[CueBlock]:
    """Yield the blocks of SubRip or WebVTT, from the number or name of a cue to the blank lines after it."""
    blocks = _timed_blocks(text, subtitle_format, name)
    numbered = subtitle_format == "srt"
    trim = _without_number if numbered else _until_blank
    done = 0  # the end of the text of the cue before
    for position, block in enumerate(blocks):
        lines = trim(block.lines, position == len(blocks) - 1)
        start, number = block.head.start, None
        above = block.before
        if above is not None and above.start >= done and not above.blank:
            found = _SMALL_NUMBER.fullmatch(above.text) if numbered else None
            if found:
                number = (above.start + found.start(1), above.start + found.end(1), int(found[1]))
            if found or not numbered:
                start = above.start
        done = lines[-1].end if lines else block.head.end
        after = next((line for line in block.lines if line.start >= done and not line.blank), None)
        coming = blocks[position + 1].head.start if position + 1 < len(blocks) else len(text)
        yield CueBlock(
            start,
            after.start if after else coming,
            number,
            tuple((line.start, line.end) for line in lines),
            subtitle_format,
        )


def _timed_blocks(text: str, subtitle_format: str, name: str) -> list[_Block]:
    """Return the cues with all lines up to the times of the next one."""
    blocks: list[_Block] = []
    lines = list(_raw_lines(text))
    for number, line in enumerate(lines):
        if "-->" in line.text:
            times = _times(line.text, subtitle_format)
            if len(times) >= 2:
                blocks.append(_Block(times[0], times[1], lines[number - 1] if number else None, line, []))
                continue
            if times or _TIME_LIKE.match(line.text):
                raise CadecError(
                    f"{name}, line {line.number}: the times of the cue are broken: {line.text.strip()[:60]}",
                    "the file may be truncated or of another format",
                )
        if blocks:
            blocks[-1].lines.append(line)
    if (
        not blocks
        and any(not line.blank for line in lines)
        and not text.lstrip("\ufeff").startswith("WEBVTT")
    ):
        raise _foreign(name, subtitle_format)
    return blocks


def _times(line: str, subtitle_format: str) -> list[int]:
    """Return all times in a line, in milliseconds; only WebVTT has times without hours."""
    return [
        0
        if match["sign"]  # negative times count as 0
        else int(match["hours"] or 0) * 3_600_000
        + int(match["minutes"]) * 60_000
        + int(match["seconds"]) * 1000
        + int(match["fraction"][:3].ljust(3, "0"))
        for match in _TIME.finditer(line)
        if match["hours"] or subtitle_format == "vtt"
    ]


def _until_blank(block: list[_RawLine], last: bool) -> list[_RawLine]:
    """Return the text of a WebVTT cue, which a blank line ends; notes and identifiers come after that."""
    blank = next((position for position, line in enumerate(block) if line.blank), len(block))
    return block[:blank]


def _without_number(block: list[_RawLine], last: bool) -> list[_RawLine]:
    """Return the text of a SubRip cue, which may have blank lines, without the number of the next cue."""
    filled = [position for position, line in enumerate(block) if not line.blank]
    if last:
        # A truncated file may end with the number and half of the times of another cue.
        while filled and _follows_blank(block, filled[-1]) and _TORN_TIME.match(block[filled[-1]].text):
            filled.pop()
        if len(filled) > 1 and _TORN_TIME.match(block[filled[-1]].text) and ":" in block[filled[-1]].text:
            del filled[-2:]
    elif filled and _NUMBER.match(block[filled[-1]].text):
        adjacent = filled[-1] == len(block) - 1
        if adjacent or _follows_blank(block, filled[-1]):
            filled.pop()
    return [block[position] for position in filled]


def _follows_blank(block: list[_RawLine], position: int) -> bool:
    return position > 0 and block[position - 1].blank


def _ass_cues(text: str, subtitle_format: str, name: str, tags: bool) -> list[Cue]:
    """Read (Advanced) SubStation Alpha: the text of an event is all after its ninth comma."""
    places = [(line, match) for line in _raw_lines(text) if (match := _ASS_EVENT.match(line.text))]
    events = list(ass_file(text, subtitle_format, name).events)
    if len(places) != len(events) or (not events and "[" not in text and text.strip("\ufeff \t\r\n")):
        raise _foreign(name, subtitle_format)
    cues = []
    for number, ((line, match), event) in enumerate(zip(places, events, strict=True), 1):
        shown = event.type == "Dialogue" and not event.is_drawing and match[2] is not None
        if not shown or _KARAOKE.search(event.text):
            continue
        found = []
        start = first = line.start + match.end()
        for stop in [*_ASS_BREAK.finditer(text, start, line.end), None]:
            found.append(cue_line(text, start, stop.start() if stop else line.end, "ass", tags=tags))
            start = stop.end() if stop else line.end
        lines = tuple(part for part in found if part)
        positioned = _ASS_PLACE.search(event.text) is not None
        span, actor = (first, line.end), " ".join(event.name.split())
        cues.append(Cue(event.start, event.end, event.style, lines, span, number, positioned, actor))
    return cues


def ass_file(text: str, subtitle_format: str, name: str) -> pysubs2.SSAFile:
    """Read (Advanced) SubStation Alpha with pysubs2."""
    import pysubs2  # which few commands need

    lines = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pysubs2.SSAFile.from_string(lines, format_=subtitle_format)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise CadecError(
            f"can't read {name} as .{subtitle_format}: {error}",
            "the file may be truncated or of another format",
        ) from None


def _foreign(name: str, subtitle_format: str) -> CadecError:
    return CadecError(
        f"{name} has no .{subtitle_format} subtitles in it", "the file may be truncated or of another format"
    )


def shown_cues(text: str, subtitle_format: str) -> list[ShownCue]:
    """Return the cues of a file as they are on the screen, in the order of reading."""
    subtitle_format = detect(text, subtitle_format)
    markup = markup_of(subtitle_format)
    return [
        ShownCue(cue.number, cue.start, cue.end, shown_lines(text[slice(*cue.span)], markup))
        for cue in find_cues(text, subtitle_format, "subtitles")
    ]


def cue_width(text: str, cue: Cue, markup: str) -> int:
    """Count the characters of a cue on the screen."""
    return sum(map(len, shown_lines(text[slice(*cue.span)], markup)))


def shown_lines(written: str, markup: str) -> tuple[str, ...]:
    """Return the lines of a cue's text as they are on the screen."""
    shown = _TTML_BREAK.sub("\n", " ".join(written.split())) if markup == "ttml" else written
    shown = TAGS[markup].sub("", shown)
    if markup == "ass":
        shown = shown.replace(r"\h", " ").replace(r"\N", "\n").replace(r"\n", "\n")
    elif markup == "sub":
        shown = shown.replace("|", "\n")
    elif markup in ESCAPED:
        shown = html.unescape(shown)
    return tuple(line.strip() for line in shown.splitlines() if line.strip())
