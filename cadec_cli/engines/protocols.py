"""The interface of models to the rest of cadec: two small protocols, and a few for optional abilities.

Any object with these methods is a model: ours, another toolkit's, or a table of numbers in a test. Use
`ModelSet` to translate with models that are not in a bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.method.context import Context, Pair
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
        """Tell whether the model can read the whole sentence, and write a given translation of it."""
        ...

    def split(self, sentence: str) -> list[str]:
        """Cut a sentence that does not fit."""
        ...


@runtime_checkable
class TokenScores(Protocol):
    """A translation model that scores each token of a given translation."""

    def token_log_probs(
        self, sentences: Sequence[str], targets: Sequence[str]
    ) -> list[list[tuple[int, float]]]:
        """For every token, the number of the target's word that it belongs to, and its log p."""
        ...


@runtime_checkable
class Completes(Protocol):
    """A translation model that completes given beginnings of a translation."""

    @property
    def target_text(self) -> TokenText:
        """The text of the target language: its tokenizer and ids."""
        ...

    def completions(self, sentence: str, beginnings: Sequence[str], count: int) -> list[list[str]]:
        """At most `count` translations of a sentence with each beginning, best first."""
        ...


@runtime_checkable
class Avoids(Protocol):
    """A translation model that translates without certain words."""

    def avoid(
        self, sentences: Sequence[str], count: int, words: Sequence[str], endings: Sequence[str]
    ) -> list[list[str]]:
        """At most `count` translations of every sentence, best first, without words and endings of words.

        A word that the tokenizer cuts in another way may come nevertheless.
        """
        ...


@runtime_checkable
class Sampling(Protocol):
    """A translation model that writes one translation of a text of any length, as `augment` needs."""

    def best(self, beam: int) -> Callable[[Sequence[str]], list[str]]:
        """Return a function that translates texts by beam search."""
        ...

    def sampler(self, seed: int, temperature: float = 1.0) -> Callable[[Sequence[str]], list[str]]:
        """Return a function that translates texts with words drawn by their probability."""
        ...


@runtime_checkable
class CopiesPieces(Protocol):
    """A translation model that may have learnt to copy certain pieces, such as placeholders."""

    def copies(self, pieces: Sequence[str]) -> bool:
        """Tell whether both of its vocabularies have all of these pieces."""
        ...


class ContextReader(Protocol):
    """The tokenizer and the positions of a language model, often known before it is loaded."""

    @property
    def text(self) -> TokenText:
        """Its text: the tokenizer and ids of sentences."""
        ...

    @property
    def positions(self) -> int:
        """The most tokens that it can read, context and boundaries included."""
        ...


class LanguageModel(Protocol):
    """A document-level language model of the target language with its text, which has the boundary."""

    @property
    def text(self) -> TokenText:
        """Its text: the tokenizer and ids of sentences, also in tries and contexts."""
        ...

    @property
    def positions(self) -> int:
        """The most tokens that it can read, context and boundaries included."""
        ...

    def score(
        self,
        tries: Sequence[Trie],
        contexts: Sequence[Context],
        scoring_options: ScoringOptions,
        *,
        remember: bool = False,
    ) -> list[ScoredTrie]:
        """Score each trie after its context, which must fit; `remember` keeps the keys for the next trie."""
        ...


@runtime_checkable
class ReadsPairs(Protocol):
    """A language model of several languages, which can read each sentence before its translation.

    Its contexts then have a `source`. Without sentences before it, such a context gives log p(ỹ | x).
    """

    def before_target(self, source: str) -> Ids:
        """What it reads between two translations, the second one's source being given; empty if unknown.

        Each whole line of it ends with the boundary.
        """
        ...


def pairs_reader(model: object) -> ReadsPairs:
    """The model as one that reads pairs; a UsageError if it can't."""
    if not isinstance(model, ReadsPairs):
        raise UsageError(
            "this D-LM reads the target language only",
            f"use {option('reads', 'target')}; pretrained models of several languages can read pairs",
        )
    return model


@runtime_checkable
class FixedTemperature(Protocol):
    """A language model whose probabilities can be read at one temperature only, such as a remote one."""

    @property
    def fixed_temperature(self) -> float:
        """The temperature, usually 1."""
        ...


def fixed_temperature(model: object) -> float | None:
    """The only temperature at which a model can be read; None if it can be read at any."""
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
    """A model that computes several items in the time of one, so that they should be batched.

    Items are tries for a language model, sentences for a translation model.
    """

    @property
    def batch_size(self) -> int:
        """The number of items to compute at once; more at once would not be faster."""
        ...


@runtime_checkable
class Paced(Protocol):
    """A slow language model, which says after how many sentences the work should be kept."""

    @property
    def wave_size(self) -> int:
        """Sentences that it chooses for in about two seconds."""
        ...


@runtime_checkable
class StepwiseTranslation(Protocol):
    """A translation model that the beam steps token by token."""

    @property
    def text(self) -> TokenText:
        """The text of the target language: its tokenizer and ids."""
        ...

    @property
    def positions(self) -> int:
        """The most tokens that it can read and write, the end included."""
        ...

    @property
    def limits(self) -> LengthLimits:
        """The length limits of its translations."""
        ...

    def encode(self, sentence: str) -> list[int]:
        """A source sentence in its ids."""
        ...

    def steps(self, sources: Sequence[Sequence[int]]) -> TranslationSteps:
        """Begin to translate sentences, token by token."""
        ...


class TranslationSteps(Protocol):
    """Several sentences being translated, K hypotheses of each."""

    def log_probs(self, tokens: Tensor | None) -> Tensor:
        """Append tokens (B, K), None at the start, and return log p of every next one: (B·K, V)."""
        ...

    def keep(self, rows: Tensor, *, same_sources: bool) -> None:
        """Continue with these rows (of B·K), in this order."""
        ...


@runtime_checkable
class StepwiseLanguage(LanguageModel, Protocol):
    """A language model that the beam steps token by token."""

    def steps(
        self, contexts: Sequence[Sequence[int]], terms: Sequence[str], scoring_options: ScoringOptions
    ) -> LanguageSteps:
        """Begin after the given contexts, each of them c̃; `terms` names the wanted streams."""
        ...


class LanguageSteps(Protocol):
    """The D-LM's streams, after the context and without it, for several sentences at once."""

    def log_probs(self) -> dict[str, Any]:
        """log p of every next token by term, (B·K, V) each."""
        ...

    def step(self, tokens: Tensor, parents: Tensor) -> None:
        """Append a token (B, K) to the hypotheses numbered by `parents`."""
        ...

    def keep(self, sentences: Tensor) -> None:
        """Continue with these sentences only, in rising order."""
        ...


@runtime_checkable
class GrowingLanguage(LanguageModel, Protocol):
    """A language model that reads beginnings of sentences as they grow, in its own tokens."""

    def trees(
        self, contexts: Sequence[Context], terms: Sequence[str], scoring_options: ScoringOptions
    ) -> LanguageTrees:
        """Begin after the given contexts; `terms` names the wanted streams."""
        ...


class LanguageTrees(Protocol):
    """A language model's scores of beginnings, after the context of each sentence and without it."""

    def read(self, beginnings: Sequence[tuple[int, Ids]]) -> list[dict[str, Beginning]]:
        """log p of beginnings of the sentences with these numbers, and of the tokens after them, by term."""
        ...

    def places(self, tokens: Sequence[int]) -> list[int | None]:
        """The column of each token in `Beginning.following`; None for a token that has none."""
        ...


@dataclass(frozen=True)
class Passage:
    """Consecutive sentences, of which only the current one, at `place`, may be blank."""

    sentences: tuple[str, ...]
    place: int  # of the current one

    @property
    def sentence(self) -> str:
        """The current sentence."""
        return self.sentences[self.place]


class DocumentModel(Protocol):
    """A model that translates a sentence together with others around it."""

    def fits(self, sentence: str) -> bool:
        """Tell whether it can read the whole sentence."""
        ...

    def passage(self, sentences: Sequence[str], place: int) -> Passage:
        """The passage that it reads to translate the sentence at `place` of a document."""
        ...

    def last_passage(self, sentences: Sequence[str]) -> Passage:
        """The passage that it reads to score a translation of the last of the given sentences."""
        ...

    def log_probs(self, passages: Sequence[Passage], targets: Sequence[Sequence[str]]) -> list[float]:
        """Score translations of the sentences of each passage up to the current one, which is the last.

        The score covers all that the model writes: for the DocTransformer the current sentence, for the
        others the whole passage.
        """
        ...


class PassageTranslation(DocumentModel, Protocol):
    """A document model that makes n-best lists by itself."""

    def nbest(self, passages: Sequence[Passage], count: int) -> list[NBest]:
        """At most `count` translations of the current sentence, best first."""
        ...


class ContextFreeTerm(Protocol):
    """Terms that do not depend on context: a backward model, a length, a glossary, a quality estimate."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the terms."""
        ...

    def terms(self, lists: Sequence[NBest]) -> list[dict[str, Any]]:
        """The terms of every list: by name, one value per hypothesis."""
        ...


@runtime_checkable
class ContextTerm(Protocol):
    """Terms that depend on the context: on the translations chosen for the preceding sentences."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the terms."""
        ...

    def terms_after(self, lists: Sequence[NBest], contexts: Sequence[Sequence[Pair]]) -> list[dict[str, Any]]:
        """The terms of every list after its context: the last sentences and their translations, in order."""
        ...


@runtime_checkable
class ReadsLists(ContextTerm, Protocol):
    """Terms that, if `reads_lists` is true, also read the lists that earlier sentences were chosen from.

    Contexts have them as `Pair.nbest`.
    """

    @property
    def reads_lists(self) -> bool:
        """Tell whether contexts must keep the lists of their sentences."""
        ...


AnyTerm = ContextFreeTerm | ContextTerm


def trie_for(model: LanguageModel, hypotheses: Sequence[Ids]) -> Trie:
    """Merge hypotheses; tokens beyond the D-LM's positions, even without context, are not scored."""
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
        """The D-LM's tokenizer and positions; it is loaded only if they are not known otherwise."""
        ...

    @property
    def backward(self) -> TranslationModel | None:
        """A model of the other direction, if there is one."""
        ...

    @property
    def source_language(self) -> str:
        """The shortest code of the source language; empty if it is not known."""
        ...

    @property
    def target_language(self) -> str:
        """The shortest code of the target language; empty if it is not known."""
        ...

    def document(self, name: str) -> DocumentModel | None:
        """The model of this name that reads passages of the source, or None."""
        ...

    @property
    def stepwise_translation(self) -> StepwiseTranslation:
        """The S-NMT in the form that the beam steps; a CadecError if it can't be stepped."""
        ...

    def seed(self, register: str) -> Sequence[str]:
        """Seed sentences of a register (formal, informal); a CadecError if there are none."""
        ...

    def seed_sources(self, register: str) -> Sequence[str]:
        """What the seed sentences translate, one for each; none if that is not known."""
        ...


class ModelSet:
    """A set of models assembled in code rather than loaded from a bundle."""

    def __init__(
        self,
        translation: TranslationModel | None = None,
        language: LanguageModel | None = None,
        stepped: StepwiseTranslation | None = None,
        backward: TranslationModel | None = None,
        documents: Mapping[str, DocumentModel] | None = None,
        seeds: Mapping[str, Sequence[str]] | None = None,
        source_language: str = "",
        target_language: str = "",
    ) -> None:
        self.language = self.reader = language
        self.source_language = source_language
        self.target_language = target_language
        self.backward = backward
        self._translation, self._stepped = translation, stepped
        self._documents = documents or {}
        self._seeds = seeds or {}

    @property
    def translation(self) -> TranslationModel:
        """The S-NMT."""
        if self._translation is None:
            raise CadecError("there is no translation model in this set of models")
        return self._translation

    def document(self, name: str) -> DocumentModel | None:
        """The model of this name that reads passages of the source, or None."""
        return self._documents.get(name)

    @property
    def stepwise_translation(self) -> StepwiseTranslation:
        """The S-NMT in the form that the beam steps."""
        if self._stepped is None:
            raise CadecError(
                f"this translation model can't be stepped token by token, as {option('search', 'beam')} does"
            )
        return self._stepped

    def seed(self, register: str) -> Sequence[str]:
        """The seed sentences of a register; a CadecError if there are none."""
        if register not in self._seeds:
            raise CadecError(f'no seed sentences for the register "{register}"')
        return self._seeds[register]

    def seed_sources(self, register: str) -> Sequence[str]:
        """None: what the seed sentences translate is not known."""
        return ()
