"""The cues of a subtitle file: their times, where their lines of text are, and how fast they have to be read.

pysubs2 reads the events of SubStation. The times of the other formats, and all positions, are found here. The
file is restored from its own text, because pysubs2's writers drop what it does not model: WebVTT headers,
notes, styles and cue settings, SubRip coordinates, comments in ASS.
"""

import html
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import pysubs2

from cadec_cli.errors import CadecError
from cadec_cli.extensions import load
from cadec_cli.text.formats.subtitles.cue_tags import ESCAPED, CueLine, cue_line, markup_of
from cadec_cli.text.markup import TAGS
from cadec_cli.text.sentences import Span

_LINE = re.compile(r"([^\r\n]*)(\r\n|\n|\r|$)")
_NUMBER = re.compile(r"\s*\d+\s*$")
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
        return found
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
    for position, (start, end, block) in enumerate(blocks):
        kept = trim(block, position == len(blocks) - 1)
        found = [cue_line(text, line.start, line.end, subtitle_format, tags=tags) for line in kept]
        span = (kept[0].start, kept[-1].end) if kept else (0, 0)
        voice = _VOICE.match(text, kept[0].start) if kept and subtitle_format == "vtt" else None
        speaker = " ".join(html.unescape(voice[1]).split()) if voice else ""
        cues.append(Cue(start, end, "", tuple(line for line in found if line), span, speaker))
    return cues


def timed_texts(text: str, subtitle_format: str, name: str) -> list[tuple[int, int, str]]:
    """Return start, end and text of all cues of SubRip or WebVTT, with tags but without blank lines."""
    found = []
    blocks = _timed_blocks(text, subtitle_format, name)
    for position, (start, end, block) in enumerate(blocks):
        if subtitle_format == "vtt":
            kept = _until_blank(block, False)
        elif position == len(blocks) - 1:  # no number can follow: all lines are text
            kept = [line for line in block if not line.blank]
        else:
            kept = _without_number(block, False)
        found.append((start, end, "\n".join(line.text for line in kept)))
    return found


def _timed_blocks(text: str, subtitle_format: str, name: str) -> list[tuple[int, int, list[_RawLine]]]:
    """Return start, end and all lines up to the times of the next cue."""
    blocks: list[tuple[int, int, list[_RawLine]]] = []
    lines = list(_raw_lines(text))
    for line in lines:
        if "-->" in line.text:
            times = _times(line.text, subtitle_format)
            if len(times) >= 2:
                blocks.append((times[0], times[1], []))
                continue
            if times or _TIME_LIKE.match(line.text):
                raise CadecError(
                    f"{name}, line {line.number}: the times of the cue are broken: {line.text.strip()[:60]}",
                    "the file may be truncated or of another format",
                )
        if blocks:
            blocks[-1][2].append(line)
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
    for (line, match), event in zip(places, events, strict=True):
        if event.type != "Dialogue" or event.is_drawing or match[2] is None:
            continue
        found = []
        start = first = line.start + match.end()
        for stop in [*_ASS_BREAK.finditer(text, start, line.end), None]:
            found.append(cue_line(text, start, stop.start() if stop else line.end, "ass", tags=tags))
            start = stop.end() if stop else line.end
        lines = tuple(part for part in found if part)
        actor = " ".join(event.name.split())
        cues.append(Cue(event.start, event.end, event.style, lines, (first, line.end), actor))
    return cues


def ass_file(text: str, subtitle_format: str, name: str) -> pysubs2.SSAFile:
    """Read (Advanced) SubStation Alpha with pysubs2."""
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


@dataclass(frozen=True)
class TooFast:
    """A cue that is on the screen for too short a time."""

    start: int  # in milliseconds
    characters: int
    cps: float  # characters per second


def reading_speed(text: str, subtitle_format: str, limit: float) -> list[TooFast]:
    """Return the cues that have more characters per second than the limit, in the order of time."""
    subtitle_format = detect(text, subtitle_format)
    found = []
    for cue in find_cues(text, subtitle_format, "subtitles"):
        characters = _characters(text, cue, markup_of(subtitle_format))
        seconds = (cue.end - cue.start) / 1000
        if characters > limit * max(0.0, seconds):
            cps = characters / seconds if seconds > 0 else float("inf")
            found.append(TooFast(cue.start, characters, cps))
    return sorted(found, key=lambda cue: cue.start)


def too_wide(text: str, subtitle_format: str, characters: int, lines: int | None) -> list[int]:
    """Return the starts of the cues with longer or more lines than the limits, in the order of time."""
    subtitle_format = detect(text, subtitle_format)
    starts = []
    for cue in find_cues(text, subtitle_format, "subtitles"):
        shown = _lines(text, cue, markup_of(subtitle_format))
        if max(map(len, shown), default=0) > characters or (lines is not None and len(shown) > lines):
            starts.append(cue.start)
    return sorted(starts)


def _characters(text: str, cue: Cue, markup: str) -> int:
    return sum(map(len, _lines(text, cue, markup)))


def _lines(text: str, cue: Cue, markup: str) -> list[str]:
    """Return the lines of a cue as they are on the screen."""
    shown = text[slice(*cue.span)]
    if markup == "ttml":
        shown = _TTML_BREAK.sub("\n", " ".join(shown.split()))
    shown = TAGS[markup].sub("", shown)
    if markup == "ass":
        shown = shown.replace(r"\h", " ").replace(r"\N", "\n").replace(r"\n", "\n")
    elif markup == "sub":
        shown = shown.replace("|", "\n")
    elif markup in ESCAPED:
        shown = html.unescape(shown)
    return [line.strip() for line in shown.splitlines() if line.strip()]
