"""Speed as ratios within one run: how much faster a trie is than its hypotheses one by one, and what context
costs against the sentence level.

With random weights of the paper's size nothing is translated well, but everything takes as long as it would;
such networks never end a sentence, so all translations have the same length.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from cadec_cli.decoding.search.beam import BeamOptions, BeamSearch
from cadec_cli.decoding.search.lattice import Candidate, LatticeSearch
from cadec_cli.decoding.search.lattice import Path as SearchPath
from cadec_cli.engines.torch_lm import LMScorer
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.objectives import objective
from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig
from cadec_cli.models.quantised import quantised
from cadec_cli.models.transformer import Transformer, TransformerConfig
from cadec_cli.text.specials import EOS

VOCABULARY = 16_000
LENGTH = 11  # tokens of a sentence
NBEST, BEAM, CONTEXT = 20, 4, 3
# Sentences a second on one TITAN Xp, from the paper.
PAPER = {"rerank": 4.3 / 66, "beam": 13 / 66}


@dataclass(frozen=True)
class Figure:
    """One measured ratio, beside the paper's where it has one, and what we want of it."""

    what: str
    speed: str
    ratio: float
    wanted: float
    paper: float | None = None


@dataclass(frozen=True)
class Networks:
    """An S-NMT and a D-LM over one target vocabulary, and the D-LM with int8 weights."""

    translation: Transformer
    lm: DocumentLM
    lm_int8: DocumentLM

    @classmethod
    def of(cls, translation: Transformer, lm: DocumentLM) -> Networks:
        """Add the D-LM with int8 weights."""
        return cls(translation, lm, quantised(lm))

    @classmethod
    def random(cls) -> Networks:
        """The paper's sizes, random weights."""
        torch.manual_seed(1)
        translation = Transformer(TransformerConfig(VOCABULARY, VOCABULARY)).eval()
        return cls.of(translation, DocumentLM(DocumentLMConfig(VOCABULARY)).eval())


def measure(
    networks: Networks, *, documents: int = 8, sentences: int = 6, note: Callable[[str], None]
) -> list[Figure]:
    """Measure everything; the numbers of documents and sentences say how long it takes."""
    note("scoring n-best lists …")
    figures = scoring(networks)
    note("translating …")
    with tempfile.TemporaryDirectory() as name:
        return [*figures, *translating(networks, Path(name) / "model", documents, sentences)]


def made_up_list(random: np.random.Generator, vocabulary: int) -> list[tuple[int, ...]]:
    """Hypotheses that share prefixes as those of a beam do: nodes are about a quarter of all tokens."""
    first = random.integers(4, vocabulary, LENGTH).tolist()
    made = [tuple(first)]
    while len(made) < NBEST:
        base = made[int(random.integers(len(made)))]
        keep = max(LENGTH - int(random.geometric(0.45)), 0)
        made.append((*base[:keep], *random.integers(4, vocabulary, LENGTH - keep).tolist()))
    return made


def scoring(networks: Networks, rounds: int = 5) -> list[Figure]:
    """A trie in one pass against every hypothesis whole, in one padded batch."""
    random = np.random.default_rng(1)
    vocabulary = networks.lm.config.vocabulary
    context = Context(tuple(tuple(random.integers(4, vocabulary, LENGTH).tolist()) for _ in range(CONTEXT)))
    hypotheses = made_up_list(random, vocabulary)
    fast, faster = LMScorer(networks.lm), LMScorer(networks.lm_int8)
    trie = fast.trie(hypotheses)
    jobs: dict[str, Callable[[], object]] = {
        "naive": lambda: naive_scores(networks.lm, context, hypotheses),
        "float32": lambda: fast.score([trie], [context]),
        "int8": lambda: faster.score([trie], [context]),
    }
    seconds = _take_turns(jobs, rounds)
    return [
        Figure(
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
    rows = [[*context.tokens, *ids, EOS] for ids in hypotheses]
    tokens = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    for row, ids in zip(tokens, rows, strict=True):
        row[: len(ids)] = torch.tensor(ids)
    log_probs = lm(tokens[:, :-1]).log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0]
    start = len(context.tokens) - 1
    return [
        float(row[start : start + len(ids) + 1].sum()) for row, ids in zip(log_probs, hypotheses, strict=True)
    ]


def translating(networks: Networks, directory: Path, documents: int, sentences: int) -> list[Figure]:
    """Rerank and beam end to end against CTranslate2's plain beam, all with int8 weights."""
    import ctranslate2

    from cadec_cli.workers import available_cores
    from converters.ctranslate2_models import convert_translation_model

    config = networks.translation.config
    source_pieces = _pieces(config.source_vocabulary)
    target_pieces = _pieces(config.target_vocabulary)
    convert_translation_model(networks.translation, source_pieces, target_pieces, directory, "int8")
    engine = ctranslate2.Translator(str(directory), compute_type="int8", intra_threads=available_cores())
    random = np.random.default_rng(2)
    texts = [
        [random.integers(4, config.source_vocabulary, LENGTH).tolist() for _ in range(sentences)]
        for _ in range(documents)
    ]
    flat = [[*(source_pieces[i] for i in ids), source_pieces[EOS]] for document in texts for ids in document]
    target_ids = {piece: index for index, piece in enumerate(target_pieces)}

    def generate(count: int) -> list[NBest]:
        results = engine.translate_batch(
            flat,
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
                "",
                tuple(
                    Hypothesis("", tuple(target_ids[piece] for piece in tokens), score)
                    for tokens, score in zip(result.hypotheses, result.scores, strict=True)
                ),
            )
            for result in results
        ]

    jobs: dict[str, Callable[[], object]] = {
        "sentence": lambda: generate(BEAM),
        "rerank": lambda: _rerank(networks.lm_int8, generate(NBEST), documents),
        "beam": lambda: _beam(networks, texts),
    }
    seconds = _take_turns(jobs, rounds=3)
    speed = {name: documents * sentences / taken for name, taken in seconds.items()}
    return [
        Figure(
            f"{name}, {documents} documents in step / CTranslate2 beam {BEAM}",
            f"{speed[name]:.1f} / {speed['sentence']:.1f} sentences/s",
            speed[name] / speed["sentence"],
            wanted,
            PAPER[name],
        )
        for name, wanted in (("rerank", 0.12), ("beam", 0.15))
    ]


def _rerank(lm: DocumentLM, lists: Sequence[NBest], documents: int) -> None:
    scorer = LMScorer(lm)
    search = LatticeSearch(objective("c-score"), scorer, context_sentences=CONTEXT)
    ids = [tuple(hypothesis.ids for hypothesis in nbest.hypotheses) for nbest in lists]
    free = scorer.free([scorer.trie(key) for key in ids])
    candidates = [
        Candidate(np.array([h.log_prob for h in nbest.hypotheses]), key, scored)
        for nbest, key, scored in zip(lists, ids, free, strict=True)
    ]
    each = len(lists) // documents
    beams = [[SearchPath()] for _ in range(documents)]
    for step in range(each):
        beams = search.advance(beams, [candidates[number * each + step] for number in range(documents)])


def _beam(networks: Networks, texts: Sequence[Sequence[Sequence[int]]]) -> None:
    options = BeamOptions(beam=BEAM, max_length_ratio=0, max_length_extra=LENGTH)
    search = BeamSearch(networks.translation, networks.lm_int8, objective("c-score"), options)
    contexts = [Context() for _ in texts]
    for column in zip(*texts, strict=True):
        found = search.search(list(column), [context.last(CONTEXT).tokens for context in contexts])
        contexts = [
            context.followed_by(hypotheses[0].ids)
            for context, hypotheses in zip(contexts, found, strict=True)
        ]


def _pieces(size: int) -> list[str]:
    return ["<pad>", "<unk>", "<s>", "</s>", *(f"piece{number}" for number in range(4, size))]


def _take_turns(jobs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of every job; they take turns, and the first round warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(rounds + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if number:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in seconds.items()}
