"""A user's settings for a pretrained model, besides its path: one record from command to converter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

# Called with a message for the user, about an assumption or anything unusual.
Note = Callable[[str], None]

# The tokens that a pretrained D-LM predicts: those that its S-NMT can need, or all.
FIT, FULL = "fit", "full"
VOCABULARIES = (FIT, FULL)


@dataclass(frozen=True, kw_only=True)
class PretrainedRequest:
    """Settings that a model's files lack, or that override those of the files. All are optional."""

    kind: str | None = None  # one of `detect.KINDS`; detected if None
    source_language: str | None = None
    target_language: str | None = None
    source_tokenizer: Path | None = None
    target_tokenizer: Path | None = None
    no_context: str | None = None  # what stands for no context in a D-LM: `start`, `texts` or a file
    template: str | None = None  # how a D-LM reads pairs
    link: bool = False  # link the D-LM's weights instead of copying them
    vocabulary: str | None = None  # which tokens a D-LM predicts: `fit` or `full`; if None, as the base does
    for_beam: bool = False  # keep the S-NMT's network for the C-aware beam
    note: Note = field(default=lambda text: None, repr=False, compare=False)
