"""A translation model that spells names in several ways, each sentence in its own favourite one."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.options import TranslationOptions
from tests.helpers.fakes import TableLM

SPELLINGS = {
    "Aurelia": ("Аурелия", "Аврелия", "Ореля"),
    "Hargreave": ("Харгрейв", "Харгрив", "Гаргрив"),
    "Kestrel": ("Пустельга", "Кестрел"),
}
WORDS = {"then": "потом", "left": "ушла", "saw": "увидел", "where": "где", "is": "есть", "the": "та"}
ELSEWHERE = -30.0  # log p of a word that translates nothing


@dataclass
class NamesNMT:
    """Translates word by word; names have several spellings, whose log p depends on the sentence."""

    spellings: Mapping[str, Sequence[str]] = field(default_factory=lambda: SPELLINGS)
    scored: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)

    def choices(self, sentence: str, word: str) -> list[tuple[str, float]]:
        """The translations of a word in a sentence with their log p, best first."""
        bare = word.strip(".?")
        spelt = list(self.spellings.get(bare, ()))
        if not spelt:
            return [(word.replace(bare, WORDS.get(bare.lower(), bare)), -0.1)]
        first = crc32(sentence.encode()) % len(spelt)
        spelt = spelt[first:] + spelt[:first]
        return [(word.replace(bare, one), -0.5 - 1.5 * rank) for rank, one in enumerate(spelt)]

    def nbest(self, sentences: Sequence[str], count: int) -> list[NBest]:
        self.listed += sentences
        return [NBest(one, tuple(self._hypotheses(one))[:count]) for one in sentences]

    def _hypotheses(self, sentence: str) -> Iterator[Hypothesis]:
        of_words = itertools.product(*(self.choices(sentence, word) for word in sentence.split()))
        found = {" ".join(text for text, _ in words): sum(cost for _, cost in words) for words in of_words}
        for text, log_prob in sorted(found.items(), key=lambda one: (-one[1], one[0])):
            yield Hypothesis(text, log_prob)

    def log_probs(self, sentences: Sequence[str], targets: Sequence[str]) -> list[float]:
        self.scored += targets
        return [self._log_prob(*pair) for pair in zip(sentences, targets, strict=True)]

    def _log_prob(self, sentence: str, target: str) -> float:
        said = zip(sentence.split(), target.split(), strict=True)
        return sum(dict(self.choices(sentence, word)).get(text, ELSEWHERE) for word, text in said)

    def fits(self, sentence: str, target: str = "") -> bool:
        return max(len(sentence.split()), len(target.split())) <= 12

    def split(self, sentence: str) -> list[str]:
        raise NotImplementedError


def names_translator(*, model: NamesNMT | None = None, **options: object) -> Translator:
    """Return a translator with that model; names are looked for, and lists have two hypotheses."""
    given = {"search": "rerank", "nbest": 2, "context": 2, "names": True, **options}
    models = ModelSet(model or NamesNMT(), TableLM({}), target_language="ru")
    return Translator(models, TranslationOptions(**given), language="en")  # type: ignore[arg-type]
