"""Several sentences as one text, one per line: the input of models that read passages.

Sentences are separated by the token that a target begins with, which no sentence contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.subwords import BOS

SEPARATOR = "\n"


@dataclass(frozen=True)
class JoinedText:
    """A language's text pipeline, for passages."""

    pipeline: TextPipeline

    @property
    def identity(self) -> str:
        """The pipeline's identity, as the ids are the same."""
        return self.pipeline.identity

    @property
    def boundary(self) -> int:
        """The id that ends a passage."""
        return self.pipeline.boundary

    @property
    def vocabulary(self) -> Sequence[str]:
        """The pipeline's vocabulary."""
        return self.pipeline.vocabulary

    def encode(self, text: str) -> list[int]:
        """Turn a passage into ids, without its end."""
        ids: list[int] = []
        for number, sentence in enumerate(text.split(SEPARATOR)):
            ids += [BOS] if number else []
            ids += self.pipeline.encode(sentence)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Turn ids into a passage."""
        sentences: list[list[int]] = [[]]
        for index in ids:
            if index == BOS:
                sentences.append([])
            else:
                sentences[-1].append(index)
        return join_passage(self.pipeline.decode(sentence) for sentence in sentences)

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        """Each token as a person reads it."""
        return self.pipeline.display_tokens(ids)


def join_passage(sentences: Iterable[str]) -> str:
    """Join sentences to a passage; line breaks inside a sentence become spaces."""
    return SEPARATOR.join(" ".join(sentence.split()) for sentence in sentences)


def split_passage(passage: str) -> list[str]:
    """Split a passage into its sentences."""
    return passage.split(SEPARATOR)
