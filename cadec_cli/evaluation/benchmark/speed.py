"""Speed as the product runs it: a trie against its hypotheses, context against the sentence level.

The networks are of the paper's size, with random weights, for a made-up language of words. They translate
nothing well, but take as long as trained ones. They never end a sentence, so all translations are given the
same length.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cadec_cli.decoding.search.beam import BeamDecoding, BeamOptions, BeamSearch
from cadec_cli.decoding.state import State
from cadec_cli.decoding.translator import Translator, choose
from cadec_cli.decoding.units import waves
from cadec_cli.engines.protocols import Models, ModelSet, trie_for
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.engines.torch_nmt import TorchTranslationModel
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.benchmark.limit import (
    Clock,
    Job,
    MeasuredShare,
    Rates,
    SpeedRatio,
    count_products,
    take_turns,
)
from cadec_cli.method.context import Context, ContextPolicy, room
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.method.objectives import objective
from cadec_cli.method.options import ScoringOptions, TranslationOptions
from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig
from cadec_cli.models.int8.block import quantise
from cadec_cli.models.transformer import Transformer, TransformerConfig
from cadec_cli.parallel import available_cores
from cadec_cli.text.subwords import EOS, SPECIAL_PIECES
from converters.own_networks import convert_translation_model

VOCABULARY = 16_000
LENGTH = 11  # tokens of a sentence
NBEST, BEAM, CONTEXT = 20, 4, 3


@dataclass(frozen=True)
class WordText:
    """A made-up language whose words are the pieces of a vocabulary."""

    size: int

    @property
    def identity(self) -> str:
        """The same for texts of the same size, which have the same words."""
        return f"words {self.size}"

    @property
    def boundary(self) -> int:
        """The id of the end of a sentence."""
        return EOS

    @cached_property
    def vocabulary(self) -> Sequence[str]:
        """All words."""
        return [*SPECIAL_PIECES, *(f"piece{number}" for number in range(len(SPECIAL_PIECES), self.size))]

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.vocabulary)}

    def encode(self, text: str) -> list[int]:
        """Words to ids."""
        return [self._ids[word] for word in text.split()]

    def decode(self, ids: Sequence[int]) -> str:
        """Ids to words."""
        return " ".join(self.vocabulary[index] for index in ids)

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        """The words."""
        return [f" {self.vocabulary[index]}" for index in ids]


@dataclass(frozen=True)
class Networks:
    """An S-NMT and a D-LM over one target vocabulary, and both with int8 weights."""

    translation: Transformer
    lm: DocumentLM
    translation_int8: Transformer
    lm_int8: DocumentLM

    @classmethod
    def of(cls, translation: Transformer, lm: DocumentLM) -> Networks:
        """Add copies of both with int8 weights."""
        if translation.config.target_vocabulary != lm.config.vocabulary:
            raise CadecError(
                "this D-LM has a vocabulary of its own, and the beam steps both models token by token",
                "measure a bundle whose models share the target vocabulary",
            )
        return cls(translation, lm, quantise(translation), quantise(lm))

    @classmethod
    def random(cls) -> Networks:
        """Make networks of the paper's sizes with random weights."""
        torch.manual_seed(1)
        translation = Transformer(TransformerConfig(VOCABULARY, VOCABULARY)).eval()
        return cls.of(translation, DocumentLM(DocumentLMConfig(VOCABULARY)).eval())

    @property
    def source(self) -> WordText:
        """The words that the S-NMT reads."""
        return WordText(self.translation.config.source_vocabulary)

    @property
    def target(self) -> WordText:
        """The words that the S-NMT writes and the D-LM reads."""
        return WordText(self.lm.config.vocabulary)


class FixedLength:
    """The S-NMT in CTranslate2; every translation has LENGTH tokens, since random weights never end one."""

    def __init__(self, networks: Networks, directory: Path) -> None:
        import ctranslate2

        self._source, self._target = networks.source, networks.target
        source, target = self._source.vocabulary, self._target.vocabulary
        convert_translation_model(networks.translation, source, target, directory, "int8")
        self._engine = ctranslate2.Translator(
            str(directory), compute_type="int8", intra_threads=available_cores()
        )

    def nbest(self, sentences: Sequence[str], count: int) -> list[NBest]:
        """`count` translations of every sentence."""
        results = self._engine.translate_batch(
            [[*sentence.split(), SPECIAL_PIECES[EOS]] for sentence in sentences],
            beam_size=count,
            num_hypotheses=count,
            length_penalty=0,
            min_decoding_length=LENGTH,
            max_decoding_length=LENGTH,
            max_batch_size=2048,
            batch_type="tokens",
            return_scores=True,
        )
        return [
            NBest(
                sentence,
                tuple(
                    Hypothesis(text := " ".join(tokens), score, tuple(self._target.encode(text)))
                    for tokens, score in zip(result.hypotheses, result.scores, strict=True)
                ),
                self._target.identity,
            )
            for sentence, result in zip(sentences, results, strict=True)
        ]


def made_up_list(random: np.random.Generator, vocabulary: int) -> list[tuple[int, ...]]:
    """Hypotheses that share prefixes as those of a beam do: nodes are about a quarter of all tokens."""
    first = random.integers(4, vocabulary, LENGTH).tolist()
    made = [tuple(first)]
    while len(made) < NBEST:
        base = made[int(random.integers(len(made)))]
        keep = max(LENGTH - int(random.geometric(0.45)), 0)
        made.append((*base[:keep], *random.integers(4, vocabulary, LENGTH - keep).tolist()))
    return made


def scoring(networks: Networks, rounds: int = 5) -> list[SpeedRatio]:
    """A trie in one pass against every hypothesis whole, in one padded batch."""
    random = np.random.default_rng(1)
    vocabulary = networks.lm.config.vocabulary
    before = Context(tuple(tuple(random.integers(4, vocabulary, LENGTH).tolist()) for _ in range(CONTEXT)))
    context = ContextPolicy(CONTEXT).read(before, room(networks.lm.config.positions, LENGTH))
    hypotheses = made_up_list(random, vocabulary)
    text = networks.target
    fast, faster = (TorchLanguageModel(network, text) for network in (networks.lm, networks.lm_int8))
    trie = trie_for(fast, hypotheses)
    jobs: dict[str, Job] = {
        "float32": lambda: fast.score([trie], [context], ScoringOptions()),
        "int8": lambda: faster.score([trie], [context], ScoringOptions()),
    }
    products = {}
    for name, job in jobs.items():
        with count_products() as products[name]:
            job()
    rates = Rates(list(products.values()))
    jobs["naive"] = lambda: naive_scores(networks.lm, context, hypotheses)
    seconds = take_turns({**jobs, "rates": rates.measure}, rounds)
    return [
        SpeedRatio(
            f"a trie of {NBEST} hypotheses, {kind} / each hypothesis whole",
            f"{1 / seconds[kind]:.1f} / {1 / seconds['naive']:.1f} lists/s",
            seconds["naive"] / seconds[kind],
            wanted,
            reached=MeasuredShare(seconds[kind], rates.limit(products[kind])),
        )
        for kind, wanted in (("float32", 5.0), ("int8", 10.0))
    ]


@torch.inference_mode()
def naive_scores(lm: DocumentLM, context: Context, hypotheses: Sequence[Sequence[int]]) -> list[float]:
    """Every hypothesis with the whole context before it, one padded batch, a full log-softmax."""
    rows = [[*context.tokens(EOS), *ids, EOS] for ids in hypotheses]
    tokens = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    for row, ids in zip(tokens, rows, strict=True):
        row[: len(ids)] = torch.tensor(ids)
    log_probs = lm(tokens[:, :-1]).log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0]
    start = context.length - 1
    return [
        float(row[start : start + len(ids) + 1].sum()) for row, ids in zip(log_probs, hypotheses, strict=True)
    ]


ROUNDS = 5
# Sentences per second on one TITAN Xp, from the paper.
PAPER = {"rerank": 4.3 / 66, "beam": 13 / 66}


def translating(networks: Networks, directory: Path, documents: int, sentences: int) -> list[SpeedRatio]:
    """Rerank and beam end to end against CTranslate2's plain beam, all with int8 weights."""
    engine = FixedLength(networks, directory)
    language = TorchLanguageModel(networks.lm_int8, networks.target)
    random = np.random.default_rng(2)
    source = networks.source
    texts = [
        [source.decode(random.integers(4, source.size, LENGTH).tolist()) for _ in range(sentences)]
        for _ in range(documents)
    ]
    flat = [text for document in texts for text in document]
    decoding = BeamDecoding(
        BeamSearch(
            TorchTranslationModel(networks.translation_int8, source, networks.target),
            language,
            objective("c-score"),
            options=BeamOptions(BEAM, LengthLimits(ratio=0, extra=LENGTH)),
        ),
        ContextPolicy(CONTEXT),
    )

    made_lists = Clock()

    def rerank() -> object:
        with made_lists.running():
            lists = iter(engine.nbest(flat, NBEST))
        options = TranslationOptions(context=CONTEXT, nbest=NBEST)
        by_document = [[next(lists) for _ in document] for document in texts]
        return list(choose(by_document, ModelSet(language=language), options))

    def beam() -> object:
        return list(decoding.run(waves(texts), State.at_start(documents)))

    with count_products() as reranked:
        rerank()
    with count_products() as stepped:
        beam()
    rates = Rates([reranked], own_rows=[stepped])
    jobs: dict[str, Job] = {
        "sentence": lambda: engine.nbest(flat, BEAM),
        "rerank": rerank,
        "beam": beam,
        "rates": rates.measure,
    }
    made_lists.laps.clear()  # those of the warm-up
    seconds = take_turns(jobs, ROUNDS, warm=True)
    reached = {
        "rerank": MeasuredShare(seconds["rerank"], rates.limit(reranked, statistics.median(made_lists.laps))),
        # Steps have few rows by nature: one per live hypothesis, in the D-LM one after the context and one
        # without it.
        "beam": MeasuredShare(seconds["beam"], rates.limit_at_own_rows(stepped), rates.limit(stepped)),
    }
    speed = {name: documents * sentences / taken for name, taken in seconds.items()}
    return [
        SpeedRatio(
            f"{name}, {documents} document{'s' * (documents != 1)} in step / CTranslate2 beam {BEAM}",
            f"{speed[name]:.1f} / {speed['sentence']:.1f} sentences/s",
            speed[name] / speed["sentence"],
            wanted,
            PAPER[name],
            reached[name],
        )
        for name, wanted in (("rerank", 0.12), ("beam", 0.15))
    ]


# The cost of context on a text of the user's: a bundle's defaults against its sentence level.


# The share of the sentence level's speed that we want to keep.
WANTED = 0.35
TEXT_ROUNDS = 3


def translating_text(
    models: Models, options: TranslationOptions, documents: Sequence[Sequence[str]], language: str
) -> SpeedRatio:
    """Translate documents with the options, in turns with the sentence-level search."""
    sentences = sum(map(len, documents))
    if not sentences:
        raise CadecError("there is nothing to translate in this text")
    if models.language is None or not options.weighted_objective.uses_lm:
        raise CadecError(
            "this bundle translates at the sentence level: there is nothing to compare it with",
            "measure a bundle with a D-LM",
        )
    in_context = Translator(models, options, language=language)
    alone = Translator(models, replace(options, search="sentence"), language=language)
    with count_products() as products:
        list(in_context.translate_documents(documents))
    list(alone.translate_documents(documents))
    rates = Rates([products])
    whole, lists, scores = Clock(), Clock(), Clock()

    def translate() -> object:
        with (
            whole.running(),
            time_method(models.translation, "nbest", lists),
            time_method(models.language, "score", scores),
        ):
            return list(in_context.translate_documents(documents))

    jobs: dict[str, Callable[[], object]] = {
        "sentence": lambda: list(alone.translate_documents(documents)),
        options.search: translate,
        "rates": rates.measure,
    }
    seconds = take_turns(jobs, TEXT_ROUNDS, warm=True)
    speed = {name: sentences / taken for name, taken in seconds.items()}
    spent = {"n-best": lists.seconds / whole.seconds, "D-LM": scores.seconds / whole.seconds}
    return SpeedRatio(
        f"{options.search}, {sentences} sentence{'s' * (sentences != 1)} / --search sentence",
        f"{speed[options.search]:.1f} / {speed['sentence']:.1f} sentences/s",
        speed[options.search] / speed["sentence"],
        WANTED,
        reached=MeasuredShare(seconds[options.search], rates.limit(products, lists.seconds / TEXT_ROUNDS)),
        spent={**spent, "rest": 1 - sum(spent.values())},
    )


@contextmanager
def time_method(owner: object, method: str, clock: Clock) -> Iterator[None]:
    """Inside a `with` statement, time every call of a method of this one object."""
    inner = getattr(owner, method)

    def timed_call(*args: Any, **kwargs: Any) -> Any:
        with clock.running():
            return inner(*args, **kwargs)

    setattr(owner, method, timed_call)
    try:
        yield
    finally:
        delattr(owner, method)  # the class still has it
