"""MicroDVD (`.sub`): a line per cue, `{start}{end}text`, with times in frames and `|` between lines of text.

The rate of frames is that of a first cue `{1}{1}25`; without one, that of films. Other formats that are
called `.sub` are refused.
"""

import re
from collections.abc import Iterator

from cadec_cli.errors import CadecError
from cadec_cli.text.formats.subtitles.cue_tags import cue_line
from cadec_cli.text.formats.subtitles.cues import Cue

FILM_RATE = 23.976
_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\n|\r|$)")
_CUE = re.compile(r"\ufeff?[ \t]*\{[ \t]*(\d{1,9})[ \t]*\}[ \t]*\{[ \t]*(\d{0,9})[ \t]*\}")
_RATE = re.compile(r"\s*(\d{1,3}(?:[.,]\d{1,6})?)\s*$")
_STYLE = re.compile(r"\{([yY]):([bius,]+)\}")
_ANY_TAG = re.compile(r"\{[^{}]*\}")


def microdvd_cues(text: str, name: str, *, tags: bool) -> list[Cue]:
    """Find the cues with text, in order; with `tags`, tags are part of the text."""
    cues = []
    for start, end, first, last in _places(text, name):
        lines = []
        place = first
        for part in text[first:last].split("|"):
            slanted = part.startswith("/")  # as some programs write italics
            lines.append(cue_line(text, place + slanted, place + len(part), "sub", tags=tags))
            place += len(part) + 1
        cues.append(Cue(start, end, "", tuple(line for line in lines if line), (first, last)))
    return cues


def microdvd_texts(text: str, name: str) -> list[tuple[int, int, str]]:
    """Return start, end and text of all cues, with styles as the tags of SubRip."""
    return [
        (start, end, "\n".join(_as_subrip(text[first:last])))
        for start, end, first, last in _places(text, name)
    ]


def _as_subrip(text: str) -> Iterator[str]:
    lasting = ""  # {Y:i} holds for all lines, {y:i} for one
    for line in text.split("|"):
        line, slanted = (line[1:], "i") if line.startswith("/") else (line, "")
        own = slanted + "".join(match[2] for match in _STYLE.finditer(line) if match[1] == "y")
        lasting += "".join(match[2] for match in _STYLE.finditer(line) if match[1] == "Y")
        styles = [letter for letter in "bius" if letter in own + lasting]
        shown = _ANY_TAG.sub("", line)
        yield (
            "".join(f"<{letter}>" for letter in styles)
            + shown
            + "".join(f"</{letter}>" for letter in reversed(styles))
        )


def _places(text: str, name: str) -> Iterator[tuple[int, int, int, int]]:
    """Yield start and end of every cue in milliseconds, and where its text begins and ends."""
    rate = FILM_RATE
    begun = False
    for number, match in enumerate(_LINE.finditer(text), 1):
        if not match[1].strip("\ufeff \t"):
            continue
        times = _CUE.match(match[1])
        if times is None:
            raise CadecError(
                f"{name}, line {number} is not MicroDVD: {match[1].strip()[:60]!r}",
                "of the formats that are called .sub, cadec reads only this one: {0}{25}text",
            )
        first, last = match.start() + times.end(), match.end(1)
        stated = _RATE.match(text, first, last) if not begun and times[1] in ("0", "1") else None
        begun = True
        if stated and times[2] == times[1]:
            rate = float(stated[1].replace(",", ".")) or FILM_RATE
            continue
        start = int(times[1])
        end = int(times[2]) if times[2] else start
        yield round(start * 1000 / rate), round(end * 1000 / rate), first, last
