"""A seed is context to every search, and to what an engine remembers of it."""

import dataclasses

import pytest

from cadec_cli.decoding.translation import Choice, Translation
from cadec_cli.decoding.translator import Translator, choose
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.options import TranslationOptions
from tests.helpers.beam_pairs import models as pair_of
from tests.helpers.token_texts import NumberText

PAIR = pair_of()
TEXT = NumberText(20)
MODELS = ModelSet(language=PAIR.language, stepped=PAIR.translation, seeds={"formal": ["p5 p6", "p9"]})
SEED = Context(((5, 6), (9,)))
LISTS = [
    NBest(
        "x", tuple(Hypothesis(text, score, tuple(TEXT.encode(text))) for text, score in found), TEXT.identity
    )
    for found in (
        [("p4 p7", -1.0), ("p8", -1.5)],
        [("p11", -2.0), ("p12 p13 p4", -2.1), ("p5", -3.0)],
        [("p7 p7", -1.0), ("p10", -1.1)],
        [("p14", -1.0), ("p15 p16", -1.0)],
    )
]


def choices(found: list[Translation]) -> list[Choice]:
    return [part.choice for one in found for part in one.parts if part.choice is not None]


def assert_same(found: list[Translation], expected: list[Translation], pinned: int) -> None:
    assert [one.text for one in found] == [one.text for one in expected]
    for ours, other in zip(choices(found), choices(expected), strict=True):
        assert ours.scores == pytest.approx(other.scores, abs=1e-4)
        assert (ours.context, ours.pinned) == (other.context, pinned)


@pytest.mark.parametrize("rolling", [False, True])
@pytest.mark.parametrize("search", ["rerank", "lattice"])
def test_chosen_from_lists_after_a_seed_is_after_these_sentences(search: str, rolling: bool) -> None:
    """With room for all: the engine's memory of a rolling window has the seed in it."""
    options = TranslationOptions(search=search, rolling=rolling, context=9, paths=3)
    seeded = dataclasses.replace(options, formality="formal")
    found = list(choose([LISTS], MODELS, seeded))
    assert_same(found, list(choose([LISTS], MODELS, options, contexts=[SEED])), pinned=2)
    if search == "lattice":
        one = dataclasses.replace(seeded, paths=1)
        reranked = dataclasses.replace(seeded, search="rerank")
        assert_same(list(choose([LISTS], MODELS, one)), list(choose([LISTS], MODELS, reranked)), pinned=2)


def test_the_seed_stays_when_the_last_few_slide() -> None:
    options = TranslationOptions(context=1, formality="formal")
    found = choices(list(choose([LISTS], MODELS, options)))
    chosen = [LISTS[place].hypotheses[choice.index].ids for place, choice in enumerate(found)]
    for place, choice in enumerate(found):
        assert choice.context == (*SEED.sentences, *chosen[max(0, place - 1) : place])


def test_the_beam_reads_the_seed_before_every_sentence() -> None:
    # words such as p5 would be kept as they are
    options = TranslationOptions(search="beam", context=9, formality="formal", beam=2, protect=False)
    sources = ["p5 p6", "p9", "p10 p11"]
    plain = dataclasses.replace(options, formality="auto")
    models = ModelSet(
        _Whole(), language=PAIR.language, stepped=PAIR.translation, seeds={"formal": ["p5 p6", "p9"]}
    )
    found = list(Translator(models, options).translate(sources))
    expected = list(Translator(models, plain).translate_documents([sources], contexts=[SEED]))
    assert_same(found, expected, pinned=2)
    alone = list(Translator(models, plain).translate(sources))
    assert [one.parts[0].choice for one in alone] != [one.parts[0].choice for one in found]
    short = dataclasses.replace(options, context=1)
    for place, choice in enumerate(choices(list(Translator(models, short).translate(sources)))):
        assert choice.context[:2] == SEED.sentences and len(choice.context) == 2 + min(place, 1)


class _Whole:
    """An S-NMT that is only asked whether a sentence fits."""

    def fits(self, sentence: str, target: str = "") -> bool:
        return True

    def nbest(self, sentences: object, count: int) -> list[NBest]:
        raise AssertionError

    def log_probs(self, sentences: object, targets: object) -> list[float]:
        raise AssertionError

    def split(self, sentence: str) -> list[str]:
        raise AssertionError
