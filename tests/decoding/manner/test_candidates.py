"""Candidates said as is asked for, with a model that is a table of words."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from cadec_cli.decoding.manner.candidates import MannerCandidates
from cadec_cli.engines.manner_term import ODDS, MannerTerm, manner_values
from cadec_cli.engines.protocols import Avoids
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.text.manner import Manner
from cadec_cli.text.protected.core import Core

# Log p of each word; any other costs 12.
WORDS = {
    **{"Ты": -1.0, "Вы": -4.0, "знаешь,": -0.5, "знаете,": -0.6, "не": -0.1, "уходи": -0.5, "уходите": -2.0},
    **{"я": -0.1, "знал": -0.5, "знала": -1.5, "дождь": -1.0, "люди": -1.0},
}


@dataclass
class TableNMT:
    """Its log p is a sum over words, whatever the source."""

    most: int = 10

    def log_probs(self, sentences: Sequence[str], targets: Sequence[str]) -> list[float]:
        return [sum(WORDS.get(word, -12.0) for word in target.split()) for target in targets]

    def nbest(self, sentences: Sequence[str], count: int) -> list[NBest]:
        raise NotImplementedError

    def fits(self, sentence: str, target: str = "") -> bool:
        return len(target.split()) <= self.most

    def split(self, sentence: str) -> list[str]:
        raise NotImplementedError


@dataclass
class AvoidingNMT(TableNMT):
    """The same; asked to avoid words it says something that has none of them."""

    asked: tuple[str, ...] = ()

    def avoid(
        self, sentences: Sequence[str], count: int, words: Sequence[str], endings: Sequence[str]
    ) -> list[list[str]]:
        self.asked = (*words, *endings)
        pairs = itertools.product(("Ты", "Вы"), ("знаешь,", "знаете,"))
        free = [
            f"{one} {other} не уходи"
            for one, other in pairs
            if one.lower() not in words and not other.strip(",").endswith(tuple(endings))
        ]
        return [free[:count] for _ in sentences]


def made(model: TableNMT, manner: Manner, *texts: str) -> NBest:
    hypotheses = tuple(map(Hypothesis, texts, model.log_probs(texts, texts)))
    nbest = NBest("You know", hypotheses, manner=manner)
    maker = MannerCandidates(model, None, 1.0, 0.0)
    (found,) = maker.complete([Core.whole("You know").with_manner(manner)], [nbest])
    return found


def texts(nbest: NBest) -> list[str]:
    return [one.text for one in nbest.hypotheses]


def test_the_other_form_is_avoided_and_imperatives_are_changed() -> None:
    model = AvoidingNMT()
    assert isinstance(model, Avoids) and not isinstance(TableNMT(), Avoids)
    found = made(model, Manner("ru", "V"), "Ты знаешь, не уходи", "Ты знаешь, уходи")
    assert texts(found) == ["Ты знаешь, не уходи", "Вы знаете, не уходите"]
    assert {"ты", "твой", "ешь"} <= set(model.asked)
    assert [one.log_prob for one in found.hypotheses] == model.log_probs([], texts(found))  # exact


def test_a_model_that_can_avoid_nothing_changes_imperatives() -> None:
    found = made(TableNMT(), Manner("ru", "V"), "не уходи", "уходи не")
    assert texts(found) == ["не уходи", "не уходите"]
    found = made(TableNMT(), Manner("ru", "T"), "не уходите", "уходите не")
    assert texts(found) == ["не уходите", "не уходи"]


def test_what_is_no_word_is_not_changed() -> None:
    for manner in (Manner("ru", "V"), Manner("ru", "T"), Manner("ru", "V", "f")):
        assert texts(made(TableNMT(), manner, "люди дождь", "дождь люди")) == ["люди дождь", "дождь люди"]


def test_the_gender_of_the_speaker() -> None:
    assert texts(made(TableNMT(), Manner("ru", "", "f"), "я знал", "знал я")) == ["я знал", "я знала"]
    kept = ("я знал", "я знала")
    assert texts(made(TableNMT(), Manner("ru", "", "m"), *kept)) == [*kept]
    assert texts(made(TableNMT(), Manner("ru", "", "f"), *kept)) == [*kept]
    assert texts(made(TableNMT(), Manner("ru", "", "f"), "я знал")) == ["я знала"]  # a list of one


def test_without_a_demand_lists_stay() -> None:
    nbest = NBest("You know", (Hypothesis("Ты знаешь,", -1.5),))
    assert MannerCandidates(TableNMT(), None, 1.0, 0.0).complete([Core.whole("You know")], [nbest]) == [nbest]


def test_the_term_is_a_vote_of_the_user() -> None:
    manner = Manner("ru", "V", "f")
    hypotheses = tuple(
        Hypothesis(text, -1.0) for text in ("я знала вас", "я знал вас", "я знал тебя", "дождь")
    )
    (found,) = MannerTerm().terms([NBest("", hypotheses, manner=manner)])
    both, one, none, neither = found["manner"]
    assert both > neither > one > none
    assert abs((both - one) - ODDS) < 1e-4 and abs((one - none) - ODDS) < 1e-4 and neither == 0
    assert MannerTerm().terms([NBest("", hypotheses)]) == [{"manner": [0.0] * 4}]
    assert manner_values(None, ["x"]) == [0.0]
