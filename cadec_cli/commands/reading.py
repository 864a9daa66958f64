"""How inputs are read: what was said of it on the command line, the same for all that translate files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadec_cli.files import MAX_INPUT_BYTES
from cadec_cli.text.formats.layout import SubtitleStyle

if TYPE_CHECKING:
    from cadec_cli.bundle.directions import Languages
    from cadec_cli.method.options import TranslationOptions
    from cadec_cli.text.formats import RestoreCallback, TextFile


@dataclass(frozen=True)
class InputOptions:
    """What was said; `on_restore` gives, for the number of an input, who is told what becomes of it."""

    encoding: str
    lines: bool = False
    format: str | None = None  # by its name, if none is given
    most: int = MAX_INPUT_BYTES
    screen: SubtitleStyle = field(default_factory=SubtitleStyle)
    on_restore: Callable[[int], RestoreCallback] | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """All that the layout of what is written depends on."""
        screen = dataclasses.asdict(self.screen)
        return {"encoding": self.encoding, "lines": self.lines, "format": self.format, "screen": screen}

    def file(self, number: int, path: Path, languages: Languages, options: TranslationOptions) -> TextFile:
        """One of the inputs, read."""
        from cadec_cli.text.formats import read_text_file

        return read_text_file(
            path,
            language=languages.source_code,
            lines=self.lines,
            encoding=self.encoding,
            format=self.format,
            tags=options.protect,
            screen=dataclasses.replace(self.screen, language=languages.target_code),
            restored=None if self.on_restore is None else self.on_restore(number),
            most=self.most,
        )
