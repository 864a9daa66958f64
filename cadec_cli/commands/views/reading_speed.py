"""Which cues of translated subtitles are too fast to read, or too wide: said when all are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cadec_cli import console

if TYPE_CHECKING:
    from cadec_cli.text.formats.reading_speed import TooFast

_NETFLIX = 17  # for adult programmes; 20 in English
_NAMED = 3  # cues that are named; the rest are counted


@dataclass
class ReadingSpeeds:
    """Collects the cues of all files that need more characters per second than `limit`; 0 looks at none."""

    limit: float
    max_chars: int | None = None  # per line, if anybody asked for that
    max_lines: int | None = None
    too_fast: list[TooFast] = field(default_factory=list)
    too_wide: list[int] = field(default_factory=list)
    in_source: int = 0

    def add(self, source_format: str, source: str, text_format: str, text: str) -> None:
        """Look at a file's text before and after translation; what has no cues has no speed."""
        from cadec_cli.text.formats import SUBTITLES
        from cadec_cli.text.formats.reading_speed import reading_speed, too_wide

        if text_format not in SUBTITLES:
            return
        if self.max_chars is not None:
            self.too_wide += too_wide(text, text_format, self.max_chars, self.max_lines)
        if self.limit:
            self.too_fast += reading_speed(text, text_format, self.limit)
            self.in_source += len(reading_speed(source, source_format, self.limit))

    def report(self) -> None:
        """Say how many cues are too wide or too fast, and where the first ones are."""
        from cadec_cli.text.formats.cues import clock

        if self.too_wide:
            count = len(self.too_wide)
            where = ", ".join(map(clock, self.too_wide[:_NAMED])) + (" …" if count > _NAMED else "")
            in_lines = (
                "" if self.max_lines is None else f" in {self.max_lines} line{'s'[: self.max_lines - 1]}"
            )
            console.note(
                f"{count:,} {'cue does' if count == 1 else 'cues do'} not fit {self.max_chars} characters "
                f"per line{in_lines}: {where}"
            )
        if not self.too_fast:
            return
        count = len(self.too_fast)
        named = ", ".join(f"{clock(cue.start)} ({cue.cps:.0f})" for cue in self.too_fast[:_NAMED])
        whose = ", Netflix's limit for most languages" if self.limit == _NETFLIX else ""
        console.note(
            f"too fast to read, above {self.limit:g} characters per second{whose}: "
            f"{count:,} {'cue' if count == 1 else 'cues'}, in the source {self.in_source:,}; "
            f"{'at' if count == 1 else 'the first at'} {named}"
        )
