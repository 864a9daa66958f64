"""SubViewer as YouTube writes it (`.sbv`): a line with two times, lines of text, a blank line."""

import re

from cadec_cli.errors import CadecError
from cadec_cli.text.formats.subtitles.cue_tags import cue_line
from cadec_cli.text.formats.subtitles.cues import Cue

_TIMES = re.compile(r"\ufeff?[ \t]*(\d{1,6}:\d\d?:\d\d?\.\d{1,3}),(\d{1,6}:\d\d?:\d\d?\.\d{1,3})[ \t]*$")
_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\n|\r|$)")

# (start and end in milliseconds, where its lines of text are)
_Block = tuple[int, int, list[tuple[int, int]]]


def sbv_cues(text: str, name: str, *, tags: bool) -> list[Cue]:
    """Find the cues with text, in order; with `tags`, tags are part of the text."""
    cues = []
    for start, end, places in _blocks(text, name):
        lines = [cue_line(text, first, last, "srt", tags=tags) for first, last in places]
        span = (places[0][0], places[-1][1]) if places else (0, 0)
        cues.append(Cue(start, end, "", tuple(line for line in lines if line), span))
    return cues


def sbv_texts(text: str, name: str) -> list[tuple[int, int, str]]:
    """Return start, end and text of all cues, with their tags."""
    return [
        (start, end, "\n".join(text[first:last] for first, last in places))
        for start, end, places in _blocks(text, name)
    ]


def _blocks(text: str, name: str) -> list[_Block]:
    blocks: list[_Block] = []
    is_open = False
    for number, match in enumerate(_LINE.finditer(text), 1):
        line = match[1]
        if times := _TIMES.match(line):
            blocks.append((_milliseconds(times[1]), _milliseconds(times[2]), []))
            is_open = True
        elif not line.strip("\ufeff \t"):
            is_open = False
        elif is_open:
            blocks[-1][2].append(match.span(1))
        else:
            raise CadecError(
                f"{name}, line {number}: there are no times before {line.strip()[:60]!r}",
                "a cue of .sbv begins with a line such as 0:00:01.000,0:00:02.500",
            )
    return blocks


def _milliseconds(clock: str) -> int:
    hours, minutes, seconds = clock.split(":")
    whole, _, fraction = seconds.partition(".")
    return (int(hours) * 3600 + int(minutes) * 60 + int(whole)) * 1000 + int(fraction.ljust(3, "0"))
