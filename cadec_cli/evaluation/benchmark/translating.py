"""What context costs against the sentence level: reranking and beam end to end, as the product runs them."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np

from cadec_cli.decoding.search.beam import BeamDecoding, BeamOptions, BeamSearch
from cadec_cli.decoding.state import State
from cadec_cli.decoding.translator import choose
from cadec_cli.decoding.waves import Pieces, waves
from cadec_cli.engines.given import ModelSet
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.engines.torch_nmt import TorchTranslationModel
from cadec_cli.evaluation.benchmark.figures import MeasuredShare, SpeedRatio
from cadec_cli.evaluation.benchmark.limit import Rates, count_products
from cadec_cli.evaluation.benchmark.networks import BEAM, CONTEXT, LENGTH, NBEST, FixedLength, Networks
from cadec_cli.evaluation.benchmark.turns import Clock, Job, take_turns
from cadec_cli.method.context import ContextPolicy
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.method.objectives import objective
from cadec_cli.method.options import TranslationOptions

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
        pieces = [Pieces(enumerate(document)) for document in texts]
        return list(decoding.run(waves(pieces), State.at_start(documents)))

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
    made_lists.laps.clear()  # those that warmed up
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
