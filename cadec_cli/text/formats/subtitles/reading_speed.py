"""The reading speed and the width of subtitle cues.

Characters are those on the screen: with spaces and punctuation, without line breaks and tags.
"""

import html
from dataclasses import dataclass

from cadec_cli.text.formats.subtitles.cue_tags import markup_of
from cadec_cli.text.formats.subtitles.cues import Cue, detect, find_cues
from cadec_cli.text.markup import TAGS


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
    shown = TAGS[markup].sub("", text[slice(*cue.span)])
    if markup == "ass":
        shown = shown.replace(r"\h", " ").replace(r"\N", "\n").replace(r"\n", "\n")
    elif markup == "vtt":
        shown = html.unescape(shown)
    return [line.strip() for line in shown.splitlines() if line.strip()]
