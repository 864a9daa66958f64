"""What the rest of cadec knows of models: two small protocols, and a few for what only some models can do.

Any object with these methods is a model: ours, another toolkit's, or a table of numbers in a test. Use
`ModelSet` to translate with models that are not in a bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import Ids, NBest
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.method.options import ScoringOptions
from cadec_cli.method.trie import ScoredTrie, Trie
from cadec_cli.text.token_text import TokenText

if TYPE_CHECKING:
    from torch import Tensor

    from cadec_cli.engines.growing_trees import Beginning


class TranslationModel(Protocol):
    """A sentence-level translation model with its text, p(y|x). Scores are exact: log p(ỹ|x), summed."""

    def nbest(self, sentences: Sequence[str], count: int) -> list[NBest]:
        """At most `count` translations of every sentence, best first."""
        ...

    def log_probs(self, sentences: Sequence[str], targets: Sequence[str]) -> list[float]:
        """log p(ỹ|x) of given translations, one per sentence."""
        ...

    def fits(self, sentence: str, target: str = "") -> bool:
        """Tell whether the model can read a sentence whole, and write a given translation of it."""
        ...

    def split(self, sentence: str) -> list[str]:
        """Cut a sentence that does not fit."""
        ...


@runtime_checkable
class TokenScores(Protocol):
    """A translation model that tells how likely each token of a given translation is."""

    def token_log_probs(
        self, sentences: Sequence[str], targets: Sequence[str]
    ) -> list[list[tuple[int, float]]]:
        """Of every token, which of the target's words it belongs to, and its log p."""
        ...


@runtime_checkable
class Sampling(Protocol):
    """A translation model that writes one translation of a text of any length: what `augment` needs."""

    def best(self, beam: int) -> Callable[[Sequence[str]], list[str]]:
        """Return a function that translates texts by beam search."""
        ...

    def sampler(self, seed: int, temperature: float = 1.0) -> Callable[[Sequence[str]], list[str]]:
        """Return a function that translates texts with words drawn by their probability."""
        ...


@runtime_checkable
class CopiesPieces(Protocol):
    """A translation model that may have learnt to copy some pieces, whatever they stand for."""

    def copies(self, pieces: Sequence[str]) -> bool:
        """Tell whether both of its vocabularies have all of them."""
        ...


class ContextReader(Protocol):
    """How a language model writes sentences, and how much it can read: often known before it is loaded."""

    @property
    def text(self) -> TokenText:
        """How it writes sentences."""
        ...

    @property
    def positions(self) -> int:
        """How many tokens, context and boundaries included, it can read."""
        ...


class LanguageModel(Protocol):
    """A document-level language model of the target language with its text; it names the boundary."""

    @property
    def text(self) -> TokenText:
        """How it writes sentences; tries and contexts are in its ids."""
        ...

    @property
    def positions(self) -> int:
        """How many tokens, context and boundaries included, it can read."""
        ...

    def score(
        self,
        tries: Sequence[Trie],
        contexts: Sequence[Context],
        scoring_options: ScoringOptions,
        *,
        remember: bool = False,
    ) -> list[ScoredTrie]:
        """Score each trie after its context, which must fit; with `remember`, such that one can go on."""
        ...


@runtime_checkable
class FixedTemperature(Protocol):
    """A language model whose probabilities can be read at one temperature only, such as a remote one."""

    @property
    def fixed_temperature(self) -> float:
        """The temperature, usually 1."""
        ...


def fixed_temperature(model: object) -> float | None:
    """The only temperature at which a model can be read; None where any will do."""
    return model.fixed_temperature if isinstance(model, FixedTemperature) else None


def check_temperatures(model: object, temperatures: Sequence[float]) -> None:
    """Refuse temperatures at which a language model can't be read."""
    fixed = fixed_temperature(model)
    if fixed is not None and (other := [one for one in temperatures if one != fixed]):
        raise UsageError(
            f"this language model can only be read at T = {fixed:g}, not at T = {other[0]:g}",
            f"use {option('temperature', f'{fixed:g}')}",
        )


@runtime_checkable
class SideBySide(Protocol):
    """A language model for which several tries take no longer than one, so that none should come alone."""

    @property
    def batch_size(self) -> int:
        """How many."""
        ...


@runtime_checkable
class StepwiseTranslation(Protocol):
    """A translation model that the beam steps token by token."""

    @property
    def text(self) -> TokenText:
        """How it writes translations."""
        ...

    @property
    def positions(self) -> int:
        """How many tokens, the end included, it can read and write."""
        ...

    @property
    def limits(self) -> LengthLimits:
        """How long its translations may become."""
        ...

    def encode(self, sentence: str) -> list[int]:
        """A source sentence in its ids."""
        ...

    def steps(self, sources: Sequence[Sequence[int]]) -> TranslationSteps:
        """Begin to translate some sentences in step."""
        ...


class TranslationSteps(Protocol):
    """Several sentences being translated, K hypotheses of each."""

    def log_probs(self, tokens: Tensor | None) -> Tensor:
        """Append tokens (B, K), none at the start, and give log p of every next one: (B·K, V)."""
        ...

    def keep(self, rows: Tensor, *, same_sources: bool) -> None:
        """Go on with these rows (of B·K), in this order."""
        ...


@runtime_checkable
class StepwiseLanguage(LanguageModel, Protocol):
    """A language model that the beam steps token by token."""

    def steps(
        self, contexts: Sequence[Sequence[int]], terms: Sequence[str], scoring_options: ScoringOptions
    ) -> LanguageSteps:
        """Begin after some contexts, each of them c̃; `terms` says which of the streams are wanted."""
        ...


class LanguageSteps(Protocol):
    """The D-LM's streams, after the context and without it, of several sentences in step."""

    def log_probs(self) -> dict[str, Any]:
        """log p of every next token by term, (B·K, V) each."""
        ...

    def step(self, tokens: Tensor, parents: Tensor) -> None:
        """Append a token (B, K) to the hypotheses numbered by `parents`."""
        ...

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences only, in rising order."""
        ...


@runtime_checkable
class GrowingLanguage(LanguageModel, Protocol):
    """A language model that reads beginnings of sentences as they grow, in its own tokens."""

    def trees(
        self, contexts: Sequence[Context], terms: Sequence[str], scoring_options: ScoringOptions
    ) -> LanguageTrees:
        """Begin after some contexts; `terms` says which of the streams are wanted."""
        ...


class LanguageTrees(Protocol):
    """What a language model says of beginnings, after the context of each sentence and without it."""

    def read(self, beginnings: Sequence[tuple[int, Ids]]) -> list[dict[str, Beginning]]:
        """log p of beginnings of the sentences with these numbers, and of every token after them, by term."""
        ...


@dataclass(frozen=True)
class Passage:
    """Sentences in a row, none of them blank but perhaps the one in question."""

    sentences: tuple[str, ...]
    place: int  # of the one in question

    @property
    def sentence(self) -> str:
        """The one in question."""
        return self.sentences[self.place]


class DocumentModel(Protocol):
    """A model that translates a sentence with others around it."""

    def fits(self, sentence: str) -> bool:
        """Tell whether it can read a sentence whole."""
        ...

    def passage(self, sentences: Sequence[str], place: int) -> Passage:
        """What it reads of a document to translate one of its sentences."""
        ...

    def last_passage(self, sentences: Sequence[str]) -> Passage:
        """What it reads to score translations of some sentences, the last of which is in question."""
        ...

    def log_probs(self, passages: Sequence[Passage], targets: Sequence[Sequence[str]]) -> list[float]:
        """Score translations of the sentences of each passage up to the one in question, which is the last.

        What is scored is all that the model writes: of the DocTransformer the sentence in question, of the
        others the whole passage.
        """
        ...


class PassageTranslation(DocumentModel, Protocol):
    """A document model that makes n-best lists by itself."""

    def nbest(self, passages: Sequence[Passage], count: int) -> list[NBest]:
        """At most `count` translations of the sentence in question, best first."""
        ...


class ContextFreeTerm(Protocol):
    """Terms that depend on no context: a backward model, a length, a glossary, a quality estimate."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the terms."""
        ...

    def terms(self, lists: Sequence[NBest]) -> list[dict[str, Any]]:
        """The terms of every list: by name, one value per hypothesis."""
        ...


@runtime_checkable
class ContextTerm(Protocol):
    """Terms that depend on the context: on what was chosen for the sentences before."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the terms."""
        ...

    def terms_after(self, lists: Sequence[NBest], contexts: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """The terms of every list after its context, which are target sentences in order."""
        ...


AnyTerm = ContextFreeTerm | ContextTerm


def trie_for(model: LanguageModel, hypotheses: Sequence[Ids]) -> Trie:
    """Merge hypotheses; what does not fit the D-LM's positions even without context is not scored."""
    return Trie.of(hypotheses, model.text.boundary, model.positions - 1)


class Models(Protocol):
    """The models of one translation direction; asking for one may load it."""

    @property
    def translation(self) -> TranslationModel:
        """The S-NMT."""
        ...

    @property
    def language(self) -> LanguageModel | None:
        """The D-LM, if there is one."""
        ...

    @property
    def reader(self) -> ContextReader | None:
        """The D-LM as far as contexts for it are to be written, loaded only if there is no other way."""
        ...

    @property
    def backward(self) -> TranslationModel | None:
        """A model of the other direction, if there is one."""
        ...

    def document(self, name: str) -> DocumentModel | None:
        """A model that reads passages of the source, if there is one of that name."""
        ...

    @property
    def stepwise_translation(self) -> StepwiseTranslation:
        """The S-NMT as the beam steps it; one that can't be stepped is a CadecError."""
        ...

    def seed(self, register: str) -> Sequence[str]:
        """Sentences of the target language that are formal, or informal; none known is a CadecError."""
        ...


class ModelSet:
    """A translation model, a language model, or both; and a translation model of the other direction."""

    def __init__(
        self,
        translation: TranslationModel | None = None,
        language: LanguageModel | None = None,
        stepped: StepwiseTranslation | None = None,
        backward: TranslationModel | None = None,
        documents: Mapping[str, DocumentModel] | None = None,
        seeds: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.language = self.reader = language
        self.backward = backward
        self._translation, self._stepped = translation, stepped
        self._documents = documents or {}
        self._seeds = seeds or {}

    @property
    def translation(self) -> TranslationModel:
        """The S-NMT."""
        if self._translation is None:
            raise CadecError("there is no translation model here")
        return self._translation

    def document(self, name: str) -> DocumentModel | None:
        """A model that reads passages of the source."""
        return self._documents.get(name)

    @property
    def stepwise_translation(self) -> StepwiseTranslation:
        """The S-NMT as the beam steps it."""
        if self._stepped is None:
            raise CadecError(
                f"this translation model can't be stepped token by token, as {option('search', 'beam')} does"
            )
        return self._stepped

    def seed(self, register: str) -> Sequence[str]:
        """Sentences that are formal, or informal."""
        if register not in self._seeds:
            raise CadecError(f"nobody said here what is {register}")
        return self._seeds[register]
