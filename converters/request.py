"""What a user says of a pretrained model, besides its place: one record from the command to the converter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

# Called with a message for the user: what was assumed, what is unusual.
Note = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class PretrainedRequest:
    """What a model's files don't say, or what should be otherwise than they say. All of it is optional."""

    kind: str | None = None  # one of `detect.KINDS`; found by looking unless given
    source_language: str | None = None
    target_language: str | None = None
    source_tokenizer: Path | None = None
    target_tokenizer: Path | None = None
    no_context: str | None = None  # what stands for no context in a D-LM: a way, or a file
    link: bool = False  # link the D-LM's weights instead of copying them
    for_beam: bool = False  # keep the S-NMT's network, which the C-aware beam steps
    note: Note = field(default=lambda text: None, repr=False, compare=False)
