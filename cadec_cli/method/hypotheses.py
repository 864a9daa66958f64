"""Candidate translations with their scores, as they travel between the stages of decoding.

Models exchange text, because ids are private to an engine. Only if two models share a vocabulary does the
second take the ids of the first, which may segment a text differently than encoding it would.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cadec_cli.text.token_text import TokenText

if TYPE_CHECKING:
    from cadec_cli.text.manner import Manner

Ids = tuple[int, ...]


@dataclass(frozen=True)
class Hypothesis:
    """One candidate translation; `log_prob` is log p(ỹ | x), summed, the end of the sentence included.

    `defects` is how many defects were found in the text, `respected` how many terms of a glossary, `named`
    how many names of the document; None if it was not checked. `made` says that it was made for a term or a
    name, not by the beam.
    """

    text: str
    log_prob: float
    ids: Ids = ()  # in the vocabulary that the list names, without the boundary
    defects: int | None = field(default=None, compare=False, repr=False)
    respected: int | None = field(default=None, compare=False, repr=False)
    named: int | None = field(default=None, repr=False)  # depends on the document: equal lists may differ
    made: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True)
class NBest:
    """The hypotheses of one sentence, the S-NMT's best first; none for an empty sentence.

    `before` and `after` are the untranslated text around them, such as a speaker's name. `room` is how many
    characters a hypothesis may have to fit the cues of its sentence; None if there is no limit.
    """

    source: str
    hypotheses: tuple[Hypothesis, ...]
    vocabulary: str = ""  # the identity of the vocabulary of the ids; empty if there are no ids
    before: str = ""
    after: str = ""
    room: int | None = None
    manner: Manner | None = None  # how the sentence is to be said, if a user asks for that

    def wrap(self, text: str) -> str:
        """Put the untranslated text back around a translation."""
        return self.before + text + self.after

    def ids_for(self, text: TokenText) -> tuple[Ids, ...]:
        """The hypotheses as ids of a vocabulary: their own ids if it is the same, else encoded from text."""
        if self.vocabulary and self.vocabulary == text.identity:
            return tuple(hypothesis.ids for hypothesis in self.hypotheses)
        return tuple(tuple(text.encode(hypothesis.text)) for hypothesis in self.hypotheses)
