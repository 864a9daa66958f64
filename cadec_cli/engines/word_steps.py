"""Steps a language model word by word along with a translation model that has another vocabulary.

A hypothesis grows by the translation model's tokens, but the language model has its own tokens and reads
text. A word is scored when it is complete: when the next word begins or the sentence ends. The score at any
time is log p of the text as the language model itself cuts it. So a finished sentence has the score that
reranking gives it, even if a word is cut differently once the next word is known.

Where no token of the vocabulary can continue a word, every token is a complete word, and is scored at once if
the language model has a single token for it. With one vocabulary for both models, this is the beam that
steps token by token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from cadec_cli.engines.growing_trees import Beginning
from cadec_cli.engines.protocols import LanguageTrees
from cadec_cli.method.hypotheses import Ids
from cadec_cli.text.token_text import TokenText

# An id that means no token.
NONE = -1


class Words:
    """Where words begin among a translation model's tokens, and their tokens for a language model."""

    def __init__(self, written: TokenText, read: TokenText) -> None:
        self.written, self.read = written, read
        self._closes: dict[int, bool] = {}

    @cached_property
    def begins(self) -> Tensor:
        """(V) True for tokens that begin a word, if the one before is complete."""
        tokens = range(len(self.written.vocabulary))
        return torch.tensor([self.written.display_tokens([token])[0].startswith(" ") for token in tokens])

    def closes(self, token: int) -> bool:
        """Tell whether a word may begin after a token: some tokens mark that the word continues."""
        if token not in self._closes:
            shown = self.written.display_tokens([token, self._beginner])
            self._closes[token] = len(shown) == 2 and shown[1].startswith(" ")
        return self._closes[token]

    @cached_property
    def _beginner(self) -> int:
        found = self.begins.nonzero()
        return int(found[0]) if len(found) else 0

    @cached_property
    def whole(self) -> bool:
        """Tell whether every token is a complete word, whatever its neighbours."""
        others = self.begins.clone()
        others[self.written.boundary] = True
        return bool(others.all()) and all(map(self.closes, range(len(self.begins))))

    @cached_property
    def single(self) -> tuple[Tensor, Tensor]:
        """(V) each: the language model's single token for every word, or NONE, at the start and later."""
        tokens = range(len(self.begins))
        anchor = next(token for token in tokens if token != self.written.boundary)
        before = self.read.encode(self.written.decode([anchor]))
        first, later = [], []
        for token in tokens:
            alone = self.read.encode(self.written.decode([token]))
            both = self.read.encode(self.written.decode([anchor, token]))
            first.append(alone[0] if len(alone) == 1 else NONE)
            after = both[len(before) :]
            later.append(after[0] if both[: len(before)] == before and len(after) == 1 else NONE)
        return torch.tensor(first), torch.tensor(later)

    def encode(self, ids: Ids) -> Ids:
        """The text of a hypothesis in the language model's ids."""
        return tuple(self.read.encode(self.written.decode(ids)))


@dataclass(frozen=True)
class _GrowingHypothesis:
    """A hypothesis: its ids, and log p of the scored part of its text by term."""

    ids: Ids = ()
    scored: Mapping[str, float] = field(default_factory=dict)


class WordSteps:
    """Sentences being translated, as in `LanguageSteps`: the score that each next token adds."""

    def __init__(
        self, words: Words, trees: LanguageTrees, terms: Sequence[str], sentences: int, device: torch.device
    ) -> None:
        self._words, self._trees, self._terms, self._device = words, trees, terms, device
        self._numbers = list(range(sentences))
        self._columns: tuple[Tensor, Tensor] | None = None
        (self._end,) = trees.places([words.read.boundary])
        start = _GrowingHypothesis(scored=dict.fromkeys(terms, 0.0))
        self._hypotheses = [[start] for _ in range(sentences)]
        self._said: list[list[dict[str, Beginning]]] = []  # the scores of each hypothesis's whole text

    def log_probs(self) -> dict[str, Tensor]:
        """The score that each next token adds to a term, (B·K, V): log p of the word it completes, if any."""
        asked = [
            (number, self._words.encode(one.ids))
            for number, live in zip(self._numbers, self._hypotheses, strict=True)
            for one in live
        ]
        answers = iter(self._trees.read(asked))
        self._said = [[next(answers) for _ in live] for live in self._hypotheses]
        pairs = [
            (one, said)
            for live, of_live in zip(self._hypotheses, self._said, strict=True)
            for one, said in zip(live, of_live, strict=True)
        ]
        return {
            term: torch.stack([self._added_scores(one, said[term], term) for one, said in pairs]).to(
                self._device
            )
            for term in self._terms
        }

    def _added_scores(self, one: _GrowingHypothesis, said: Beginning, term: str) -> Tensor:
        """(V) The score that each next token adds."""
        words = self._words
        pending = said.total - one.scored[term]
        begins = words.begins if not one.ids or words.closes(one.ids[-1]) else torch.zeros_like(words.begins)
        added = begins.float() * pending
        following = said.following.cpu()
        if words.whole:
            single = self._single[bool(one.ids)]
            added += torch.where(single == NONE, 0.0, following[single])
        assert self._end is not None, "a language model predicts its boundary"
        added[words.written.boundary] = pending + following[self._end]
        return added

    @property
    def _single(self) -> tuple[Tensor, Tensor]:
        """(V) each: the column of the language model's single token for every word, or NONE."""
        if self._columns is None:
            first, later = (self._columns_of(tokens) for tokens in self._words.single)
            self._columns = first, later
        return self._columns

    def _columns_of(self, tokens: Tensor) -> Tensor:
        known = [int(token) for token in tokens if token != NONE]
        columns = {
            token: NONE if place is None else place
            for token, place in zip(known, self._trees.places(known), strict=True)
        }
        return torch.tensor([columns.get(int(token), NONE) for token in tokens])

    def step(self, tokens: Tensor, parents: Tensor) -> None:
        """Append a token (B, K) to the hypotheses numbered by `parents`."""
        self._hypotheses = [
            [
                self._grow(live[parent], said[parent], token)
                for token, parent in zip(own_tokens, own_parents, strict=True)
            ]
            for live, said, own_tokens, own_parents in zip(
                self._hypotheses, self._said, tokens.tolist(), parents.tolist(), strict=True
            )
        ]

    def _grow(
        self, parent: _GrowingHypothesis, said: Mapping[str, Beginning], token: int
    ) -> _GrowingHypothesis:
        words = self._words
        scored = parent.scored
        if bool(words.begins[token]) and (not parent.ids or words.closes(parent.ids[-1])):
            scored = {term: one.total for term, one in said.items()}
            own = int(self._single[bool(parent.ids)][token]) if words.whole else NONE
            if own != NONE:
                scored = {term: total + float(said[term].following[own]) for term, total in scored.items()}
        return _GrowingHypothesis((*parent.ids, token), scored)

    def keep(self, sentences: Tensor) -> None:
        """Continue with these sentences only, in rising order."""
        kept = sentences.tolist()
        self._numbers = [self._numbers[index] for index in kept]
        self._hypotheses = [self._hypotheses[index] for index in kept]
        self._said = [self._said[index] for index in kept]
