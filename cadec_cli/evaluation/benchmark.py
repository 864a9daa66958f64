"""Speed as ratios within one run: how much faster a trie is than its hypotheses one by one, and what context
costs against the sentence level.

Reranking and beam are the product's own: the searches that translate, over networks of the paper's size with
random weights. Nothing is translated well by those, but everything takes as long as it would; they never end
a sentence, so all translations are given the same length.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from cadec_cli.decoding.search.beam import BeamDecoding, BeamOptions, BeamSearch
from cadec_cli.decoding.state import State
from cadec_cli.decoding.translator import choose
from cadec_cli.decoding.waves import Pieces, waves
from cadec_cli.engines.given import GivenModels
from cadec_cli.engines.protocols import trie_for
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.engines.torch_nmt import TorchTranslationModel
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context, ContextPolicy, room
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.objectives import objective
from cadec_cli.method.options import Reading, TranslationOptions
from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig
from cadec_cli.models.quantised import quantised
from cadec_cli.models.transformer import Transformer, TransformerConfig
from cadec_cli.text.specials import EOS, SPECIAL_PIECES
from cadec_cli.unfinished import scratch_directory
from cadec_cli.workers import available_cores
from converters.ctranslate2_models import convert_translation_model

VOCABULARY = 16_000
LENGTH = 11  # tokens of a sentence
NBEST, BEAM, CONTEXT = 20, 4, 3
# Sentences per second on one TITAN Xp, from the paper.
PAPER = {"rerank": 4.3 / 66, "beam": 13 / 66}


@dataclass(frozen=True)
class SpeedRatio:
    """One measured ratio, beside the paper's where it has one, and what we want of it."""

    what: str
    speed: str
    ratio: float
    wanted: float
    paper: float | None = None


@dataclass(frozen=True)
class WordText:
    """A made-up language whose words are the pieces of a vocabulary."""

    size: int

    @property
    def identity(self) -> str:
        """The same size, the same words."""
        return f"words {self.size}"

    @property
    def boundary(self) -> int:
        """The end of a sentence."""
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

    def shown(self, ids: Sequence[int]) -> list[str]:
        """The words."""
        return [f" {self.vocabulary[index]}" for index in ids]


@dataclass(frozen=True)
class Networks:
    """An S-NMT and a D-LM over one target vocabulary, and the D-LM with int8 weights."""

    translation: Transformer
    lm: DocumentLM
    lm_int8: DocumentLM

    @classmethod
    def of(cls, translation: Transformer, lm: DocumentLM) -> Networks:
        """Add the D-LM with int8 weights."""
        if translation.config.target_vocabulary != lm.config.vocabulary:
            raise CadecError(
                "this D-LM has a vocabulary of its own, and the beam steps both models token by token",
                "measure a bundle whose models share the target vocabulary",
            )
        return cls(translation, lm, quantised(lm))

    @classmethod
    def random(cls) -> Networks:
        """The paper's sizes, random weights."""
        torch.manual_seed(1)
        translation = Transformer(TransformerConfig(VOCABULARY, VOCABULARY)).eval()
        return cls.of(translation, DocumentLM(DocumentLMConfig(VOCABULARY)).eval())

    @property
    def source(self) -> WordText:
        """What the S-NMT reads."""
        return WordText(self.translation.config.source_vocabulary)

    @property
    def target(self) -> WordText:
        """What both write."""
        return WordText(self.lm.config.vocabulary)


def measure(
    networks: Networks, *, documents: int = 8, sentences: int = 6, note: Callable[[str], None]
) -> list[SpeedRatio]:
    """Measure everything; the numbers of documents and sentences say how long it takes."""
    note("scoring n-best lists …")
    figures = scoring(networks)
    note("translating …")
    with scratch_directory() as scratch:
        return [*figures, *translating(networks, scratch / "model", documents, sentences)]


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
    jobs: dict[str, Callable[[], object]] = {
        "naive": lambda: naive_scores(networks.lm, context, hypotheses),
        "float32": lambda: fast.score([trie], [context], Reading()),
        "int8": lambda: faster.score([trie], [context], Reading()),
    }
    seconds = take_turns(jobs, rounds)
    return [
        SpeedRatio(
            f"a trie of {NBEST} hypotheses, {kind} / each hypothesis whole",
            f"{1 / seconds[kind]:.1f} / {1 / seconds['naive']:.1f} lists/s",
            seconds["naive"] / seconds[kind],
            wanted,
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
        """As many translations of every sentence."""
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
            TorchTranslationModel(networks.translation, source, networks.target),
            language,
            objective("c-score"),
            options=BeamOptions(BEAM, max_length_ratio=0, max_length_extra=LENGTH),
        ),
        ContextPolicy(CONTEXT),
    )

    def rerank() -> object:
        lists = iter(engine.nbest(flat, NBEST))
        options = TranslationOptions(context=CONTEXT, nbest=NBEST)
        by_document = [[next(lists) for _ in document] for document in texts]
        return list(choose(by_document, GivenModels(language=language), options))

    def beam() -> object:
        pieces = [Pieces(enumerate(document)) for document in texts]
        return list(decoding.run(waves(pieces), State.at_start(documents)))

    jobs: dict[str, Callable[[], object]] = {
        "sentence": lambda: engine.nbest(flat, BEAM),
        "rerank": rerank,
        "beam": beam,
    }
    seconds = take_turns(jobs, rounds=3)
    speed = {name: documents * sentences / taken for name, taken in seconds.items()}
    return [
        SpeedRatio(
            f"{name}, {documents} document{'s' * (documents != 1)} in step / CTranslate2 beam {BEAM}",
            f"{speed[name]:.1f} / {speed['sentence']:.1f} sentences/s",
            speed[name] / speed["sentence"],
            wanted,
            PAPER[name],
        )
        for name, wanted in (("rerank", 0.12), ("beam", 0.15))
    ]


def take_turns(jobs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of every job; they take turns, and the first round warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(rounds + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if number:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in seconds.items()}
