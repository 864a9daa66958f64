"""Which cues of translated subtitles are too fast to read, or too wide: said when all are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from cadec_cli import console

if TYPE_CHECKING:
    from cadec_cli.text.formats import RestoreCallback
    from cadec_cli.text.formats.reading_speed import TooFast

_NETFLIX = 17  # for adult programmes; 20 in English
_NAMED = 3  # cues that are named; the rest are counted


@dataclass
class _Found:
    """What was found in one file."""

    too_fast: list[TooFast] = field(default_factory=list)
    too_wide: list[int] = field(default_factory=list)
    in_source: int = 0


@dataclass
class ReadingSpeeds:
    """Collects the cues of all files that need more characters per second than `limit`; 0 looks at none.

    Files have numbers, since they may be done in any order, and a file may be looked at twice.
    """

    limit: float
    max_chars: int | None = None  # per line, if anybody asked for that
    max_lines: int | None = None
    found: dict[int, _Found] = field(default_factory=dict)

    @property
    def too_fast(self) -> list[TooFast]:
        """The cues that are too fast, in the order of the files."""
        return [cue for _, found in sorted(self.found.items()) for cue in found.too_fast]

    @property
    def too_wide(self) -> list[int]:
        """When those that are too wide begin, likewise."""
        return [start for _, found in sorted(self.found.items()) for start in found.too_wide]

    @property
    def in_source(self) -> int:
        """How many were too fast before."""
        return sum(found.in_source for found in self.found.values())

    def of_file(self, number: int) -> RestoreCallback:
        """Who looks at a file's text before and after translation."""
        return partial(self._look, number)

    def _look(self, number: int, source_format: str, source: str, text_format: str, text: str) -> None:
        from cadec_cli.text.formats import SUBTITLES
        from cadec_cli.text.formats.reading_speed import reading_speed, too_wide

        if text_format not in SUBTITLES:
            return  # what has no cues has no speed
        self.found[number] = found = _Found()
        if self.max_chars is not None:
            found.too_wide = too_wide(text, text_format, self.max_chars, self.max_lines)
        if self.limit:
            found.too_fast = reading_speed(text, text_format, self.limit)
            found.in_source = len(reading_speed(source, source_format, self.limit))

    def report(self) -> None:
        """Say how many cues are too wide or too fast, and where the first ones are."""
        from cadec_cli.text.formats.cues import clock

        too_fast, too_wide = self.too_fast, self.too_wide
        if too_wide:
            count = len(too_wide)
            where = ", ".join(map(clock, too_wide[:_NAMED])) + (" …" if count > _NAMED else "")
            in_lines = (
                "" if self.max_lines is None else f" in {self.max_lines} line{'s'[: self.max_lines - 1]}"
            )
            console.note(
                f"{count:,} {'cue does' if count == 1 else 'cues do'} not fit {self.max_chars} characters "
                f"per line{in_lines}: {where}"
            )
        if not too_fast:
            return
        count = len(too_fast)
        named = ", ".join(f"{clock(cue.start)} ({cue.cps:.0f})" for cue in too_fast[:_NAMED])
        whose = ", Netflix's limit for most languages" if self.limit == _NETFLIX else ""
        console.note(
            f"too fast to read, above {self.limit:g} characters per second{whose}: "
            f"{count:,} {'cue' if count == 1 else 'cues'}, in the source {self.in_source:,}; "
            f"{'at' if count == 1 else 'the first at'} {named}"
        )
