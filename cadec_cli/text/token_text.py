"""How a corpus becomes ids: our own text pipeline, or the tokenizer of a pretrained model.

The preparation of a corpus depends on these interfaces only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Protocol


class CorpusText(Protocol):
    """Turns sentences of a language into ids."""

    @property
    def language(self) -> str:
        """The code of the language."""
        ...

    @property
    def kind(self) -> str:
        """Its kind: a pipeline, or the tokenizer of a translation model or of a language model."""
        ...

    @property
    def checksum(self) -> str:
        """The checksum that a model stores of the text processing it was trained with."""
        ...

    @property
    def boundary(self) -> int:
        """The id between two sentences."""
        ...

    def __len__(self) -> int:
        """The size of the vocabulary."""
        ...

    def encode(self, text: str) -> list[int]:
        """A sentence as ids, without the boundary."""
        ...


# Makes a CorpusText in a process. Each process loads its own, so this must be something that can be pickled.
Loader = Callable[[], CorpusText]


class TokenText(Protocol):
    """Text as a model reads and writes it: as ids of its vocabulary."""

    @property
    def identity(self) -> str:
        """Two vocabularies with the same identity have the same ids."""
        ...

    @property
    def boundary(self) -> int:
        """The id that ends a sentence, and separates two sentences."""
        ...

    @property
    def vocabulary(self) -> Sequence[str]:
        """All tokens, in the order of their ids."""
        ...

    def encode(self, text: str) -> list[int]:
        """A sentence as ids, without the boundary."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Turn ids into a sentence."""
        ...

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        """Each token as a person reads it, a space where a word begins."""
        ...


class PretrainedCorpusText:
    """The tokenizer of a pretrained model, for training other models that are used together with it."""

    def __init__(self, language: str, tokenizer: TokenText, kind: str) -> None:
        self.language = language
        self.kind = kind
        self.identity = tokenizer.identity
        self.boundary = tokenizer.boundary
        self.vocabulary = tokenizer.vocabulary
        self.pieces: Sequence[str] | None = getattr(tokenizer, "pieces", None)
        self.encode, self.decode, self.display_tokens = (
            tokenizer.encode,
            tokenizer.decode,
            tokenizer.display_tokens,
        )

    @property
    def checksum(self) -> str:
        """The checksum that a model stores of it."""
        return tokenizer_checksum(self)

    def __len__(self) -> int:
        """The size of the vocabulary."""
        return len(self.vocabulary)


def tokenizer_checksum(tokenizer: TokenText) -> str:
    """The checksum that a model stores of a pretrained model's tokenizer."""
    return hashlib.sha256(tokenizer.identity.encode()).hexdigest()
