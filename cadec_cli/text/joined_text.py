"""Several sentences as one text, a line each: what models that read passages are given.

Between two sentences stands the token that a target begins with, which no sentence holds.
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
        """Its ids mean what the pipeline's do."""
        return self.pipeline.identity

    @property
    def boundary(self) -> int:
        """What ends a passage."""
        return self.pipeline.boundary

    @property
    def vocabulary(self) -> Sequence[str]:
        """The pipeline's."""
        return self.pipeline.vocabulary

    def encode(self, text: str) -> list[int]:
        """A passage as ids, without its end."""
        ids: list[int] = []
        for number, sentence in enumerate(text.split(SEPARATOR)):
            ids += [BOS] if number else []
            ids += self.pipeline.encode(sentence)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Ids as a passage."""
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
    """A passage of sentences, which must not have line breaks themselves."""
    return SEPARATOR.join(" ".join(sentence.split()) for sentence in sentences)


def split_passage(passage: str) -> list[str]:
    """The sentences of a passage."""
    return passage.split(SEPARATOR)
