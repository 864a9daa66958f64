"""What became of a demand, and that it is kept with a list."""

import json

import pytest

from cadec_cli.decoding.manner.outcomes import UnmetDemands, manner_flags, manner_outcomes
from cadec_cli.decoding.state import list_json, list_of, part_json, part_of
from cadec_cli.decoding.translation import Choice, TranslatedPart, Translation
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.text.manner import Manner

TEXTS = ("Я ждал тебя.", "Я ждала вас.", "Дождь.")


def part(manner: Manner | None, index: int, *texts: str) -> TranslatedPart:
    hypotheses = tuple(Hypothesis(text, -1.0, defects=0) for text in texts or TEXTS)
    return TranslatedPart(NBest("x", hypotheses, manner=manner), Choice(index, (0.0,) * len(hypotheses)))


@pytest.mark.parametrize(
    ("manner", "index", "texts", "expected"),
    [
        (Manner("ru", "T"), 0, (), ["informal: kept"]),
        (Manner("ru", "V"), 1, (), ["formal: changed"]),
        (Manner("ru", "V", "f"), 0, (), ["formal: not kept", "feminine: not kept"]),
        (Manner("ru", "V"), 0, TEXTS[:1], ["formal: impossible"]),
        (Manner("ru", "V", "m"), 2, (), []),
        (Manner("ru", "T", "m"), 0, (), ["informal: kept", "masculine: kept"]),
        (None, 0, (), []),
    ],
)
def test_what_became_of_a_demand(
    manner: Manner | None, index: int, texts: tuple[str, ...], expected: list[str]
) -> None:
    assert [str(one) for one in manner_outcomes([part(manner, index, *texts)])] == expected


def test_what_is_not_met_is_named_and_counted() -> None:
    unmet = part(Manner("ru", "V", "f"), 0)
    assert manner_flags([unmet]) == (
        "informal, though formal was asked for",
        "masculine, though feminine was asked for",
    )
    counted = UnmetDemands()
    translations = [Translation(0, 0, "x", (unmet,)), Translation(0, 1, "x", (part(Manner("ru", "T"), 0),))]
    assert list(counted.watch(translations)) == translations
    counted.add(("unlikely words", "informal, though formal was asked for"))
    assert counted.found == {
        "informal, though formal was asked for": 2,
        "masculine, though feminine was asked for": 1,
    }


def test_a_demand_is_kept_with_its_list() -> None:
    for manner in (Manner("ru", "V", "f"), None):
        one = part(manner, 1)
        assert part_of(json.loads(json.dumps(part_json(one)))) == one
        assert list_of(json.loads(json.dumps(list_json(one.nbest)))) == one.nbest
    assert part(Manner("ru", "V"), 0).nbest != part(Manner("ru", "T"), 0).nbest
    with pytest.raises(ValueError, match="invalid manner"):
        Manner("ru", "rude")
