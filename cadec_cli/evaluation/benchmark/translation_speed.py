"""What context costs against the sentence level: reranking and beam end to end, as the product runs them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cadec_cli.decoding.search.beam import BeamDecoding, BeamOptions, BeamSearch
from cadec_cli.decoding.state import State
from cadec_cli.decoding.translator import Translator, choose
from cadec_cli.decoding.waves import waves
from cadec_cli.engines.protocols import Models, ModelSet
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.engines.torch_nmt import TorchTranslationModel
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.benchmark.figures import Clock, Job, MeasuredShare, SpeedRatio, take_turns
from cadec_cli.evaluation.benchmark.limit import Rates, count_products
from cadec_cli.evaluation.benchmark.networks import BEAM, CONTEXT, LENGTH, NBEST, FixedLength, Networks
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


# What context costs on somebody's own text: a bundle's defaults against its sentence level.


# Of the sentence level's speed, what we want to keep.
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
            "this bundle translates at the sentence level: there is nothing to compare that with",
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
    """Meanwhile, let a clock run whenever a method of this one object is called."""
    inner = getattr(owner, method)

    def timed_call(*args: Any, **kwargs: Any) -> Any:
        with clock.running():
            return inner(*args, **kwargs)

    setattr(owner, method, timed_call)
    try:
        yield
    finally:
        delattr(owner, method)  # the class still has it
