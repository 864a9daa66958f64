"""Models that are tables of numbers: no weights, no torch. All they have is what the protocols ask for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.options import ScoringOptions
from cadec_cli.method.trie import ScoredTrie, Trie


class WordText:
    """Words as tokens; ids are given as words are met, and 0 is the boundary."""

    def __init__(self, name: str = "words") -> None:
        self.identity = name
        self.boundary = 0
        self.vocabulary: list[str] = ["|"]

    def encode(self, text: str) -> list[int]:
        for word in text.split():
            if word not in self.vocabulary:
                self.vocabulary.append(word)
        return [self.vocabulary.index(word) for word in text.split()]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.vocabulary[index] for index in ids)

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        return [f" {self.vocabulary[index]}" for index in ids]


@dataclass
class TableLM:
    """log p of a word is −1, and more for every word of the context that calls for it."""

    calls_for: Mapping[tuple[str, str], float]  # (word of the context, word) → what it adds
    text: WordText = field(default_factory=WordText)
    positions: int = 32

    def log_prob(self, word: str, context: Sequence[str], temperature: float = 1.0) -> float:
        return (-1 + sum(self.calls_for.get((before, word), 0.0) for before in context)) / temperature

    def score(
        self,
        tries: Sequence[Trie],
        contexts: Sequence[Context],
        scoring_options: ScoringOptions,
        *,
        remember: bool = False,
    ) -> list[ScoredTrie]:
        scored = []
        for trie, context in zip(tries, contexts, strict=True):
            assert context.length + trie.depth <= self.positions, "a context is to fit before its trie"
            before = [self.text.vocabulary[index] for ids in context.sentences for index in ids]
            words = [self.text.vocabulary[index] for index in trie.edge_tokens]
            edges = [[self.log_prob(word, before, t) for word in words] for t in scoring_options.temperatures]
            scored.append(ScoredTrie(trie, np.array(edges)))
        return scored


@dataclass(frozen=True)
class TableNMT:
    """The translations of a sentence with their log p(y|x); more words than `most` are too many."""

    table: Mapping[str, Mapping[str, float]]
    most: int = 12

    def nbest(self, sentences: Sequence[str], count: int) -> list[NBest]:
        return [
            NBest(
                sentence,
                tuple(
                    Hypothesis(text, log_prob)
                    for text, log_prob in sorted(self.table.get(sentence, {}).items(), key=lambda it: -it[1])
                )[:count],
            )
            for sentence in sentences
        ]

    def log_probs(self, sentences: Sequence[str], targets: Sequence[str]) -> list[float]:
        pairs = zip(sentences, targets, strict=True)
        return [self.table[sentence][target] for sentence, target in pairs]

    def fits(self, sentence: str, target: str = "") -> bool:
        return max(len(sentence.split()), len(target.split())) <= self.most

    def split(self, sentence: str) -> list[str]:
        words = sentence.split()
        return [" ".join(words[start : start + self.most]) for start in range(0, len(words), self.most)]
