"""In which words a bundle says how one side of a pretrained model is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """How one side of a model is written: a kind of tokenizer, its files, and the kind's own options."""

    kind: str  # of text.pretrained.KINDS
    files: tuple[str, ...]  # beside the settings
    options: Mapping[str, str] = field(default_factory=dict)
