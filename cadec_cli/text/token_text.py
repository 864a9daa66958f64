"""How a corpus becomes ids: our own text pipeline, or the tokenizer of a pretrained model.

What prepares a corpus needs to know no more than this of either.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Protocol


class CorpusText(Protocol):
    """Sentences of a language to ids."""

    @property
    def language(self) -> str:
        """The code of the language."""
        ...

    @property
    def kind(self) -> str:
        """Whose it is: a pipeline, or the tokenizer of a translation model or of a language model."""
        ...

    @property
    def checksum(self) -> str:
        """What a model remembers of the text it was trained with."""
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


# How a process gets one: each loads its own, so this must be something that can be pickled.
Loader = Callable[[], CorpusText]


class TokenText(Protocol):
    """How a model writes text: as the ids of its vocabulary."""

    @property
    def identity(self) -> str:
        """Two vocabularies with the same identity have the same ids."""
        ...

    @property
    def boundary(self) -> int:
        """The id that ends a sentence, and stands between two of them."""
        ...

    @property
    def vocabulary(self) -> Sequence[str]:
        """All tokens, in the order of their ids."""
        ...

    def encode(self, text: str) -> list[int]:
        """A sentence as ids, without the boundary."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Ids as a sentence."""
        ...

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        """Each token as a person reads it, a space where a word begins."""
        ...


class PretrainedCorpusText:
    """The tokenizer of a pretrained model, for a language: what is trained with it can be used with it."""

    def __init__(self, language: str, tokenizer: TokenText, kind: str) -> None:
        self.language = language
        self.kind = kind
        self.identity = tokenizer.identity
        self.boundary = tokenizer.boundary
        self.vocabulary = tokenizer.vocabulary
        self.encode, self.decode, self.display_tokens = (
            tokenizer.encode,
            tokenizer.decode,
            tokenizer.display_tokens,
        )

    @property
    def checksum(self) -> str:
        """What a model remembers of it."""
        return tokenizer_checksum(self)

    def __len__(self) -> int:
        """The size of the vocabulary."""
        return len(self.vocabulary)


def tokenizer_checksum(tokenizer: TokenText) -> str:
    """What a model remembers of the tokenizer of a pretrained one."""
    return hashlib.sha256(tokenizer.identity.encode()).hexdigest()
