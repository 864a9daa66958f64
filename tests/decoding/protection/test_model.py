"""Spans survive with any model: by a check, by stand-ins, or piece by piece."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.decoding.protection.defects import DefectTerm, defects
from cadec_cli.decoding.protection.model import protect
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.objectives import OBJECTIVES, objective, penalise_defects
from cadec_cli.method.options import TranslationOptions
from cadec_cli.text.documents import Document
from cadec_cli.text.protected.core import Core, core_between, core_of
from cadec_cli.text.protected.spans import PLACEHOLDERS, find_spans, lost_spans
from tests.helpers.fakes import TableLM, TableNMT, WordText


class Spoiling:
    """Upper-cases words, and spoils all that it can't copy; remembers what it was asked."""

    def __init__(self, copied: Sequence[str] = (), known: Sequence[str] = ()) -> None:
        self.copied, self.known = copied, known
        self.asked: list[str] = []

    def nbest(self, sentences: Sequence[str], count: int) -> list[NBest]:
        self.asked += sentences
        other = Hypothesis("ЧТО", -9.0)
        return [NBest(text, (Hypothesis(self._said(text), -1.0), other)) for text in sentences]

    def _said(self, text: str) -> str:
        words = (word if word.strip(".,") in self.copied or word.isalpha() else "♪" for word in text.split())
        return " ".join(word.upper() if word.isalpha() else word for word in words)

    def log_probs(self, sentences: Sequence[str], targets: Sequence[str]) -> list[float]:
        return [-1.0 for _ in sentences]

    def fits(self, sentence: str, target: str = "") -> bool:
        return True

    def split(self, sentence: str) -> list[str]:
        return [sentence]

    def copies(self, pieces: Sequence[str]) -> bool:
        return set(pieces) <= set(self.known)


SENTENCE = "Call {name} on 2024-05-17 now"
NUMBERS = ("512", "417", "936", "845")


def nbest_of(model: Spoiling, sentence: str) -> NBest:
    (nbest,) = protect(model, "en").nbest(
        [Core("", sentence, "", spans=tuple(find_spans(sentence, "en")))], 2
    )
    return nbest


def wrong(source: str, text: str) -> tuple[str, ...]:
    """The defects of a whole sentence's translation."""
    return defects(core_between(source, language="en"), text, source)


def texts(nbest: NBest) -> list[str]:
    return [hypothesis.text for hypothesis in nbest.hypotheses]


def test_a_list_that_keeps_its_spans_is_left_as_it_is() -> None:
    model = Spoiling(copied=("{name}", "2024-05-17"))
    nbest = nbest_of(model, SENTENCE)
    assert texts(nbest) == ["CALL {name} ON 2024-05-17 NOW", "ЧТО"]
    assert model.asked == [SENTENCE]


def test_numbers_stand_in_and_hypotheses_without_them_are_gone() -> None:
    model = Spoiling(copied=NUMBERS)
    nbest = nbest_of(model, SENTENCE)
    assert texts(nbest) == ["CALL {name} ON 2024-05-17 NOW"]
    assert nbest.source == SENTENCE and not nbest.vocabulary
    assert model.asked[1:] == ["Call 512 on 417 now"]


def test_a_number_that_is_in_the_sentence_stands_for_nothing_else() -> None:
    model = Spoiling(copied=NUMBERS)
    nbest_of(model, "Call {name} at 512 now")
    assert model.asked[1:] == ["Call 417 at 512 now"]


def test_placeholders_go_first_where_a_model_was_trained_with_them() -> None:
    model = Spoiling(copied=PLACEHOLDERS, known=PLACEHOLDERS)
    nbest = nbest_of(model, SENTENCE)
    assert texts(nbest) == ["CALL {name} ON 2024-05-17 NOW"]
    assert model.asked[1:] == [f"Call {PLACEHOLDERS[0]} on {PLACEHOLDERS[1]} now"]
    assert protect(Spoiling(), "en").placeholders == ()


def test_what_no_stand_in_saves_is_translated_piece_by_piece() -> None:
    nbest = nbest_of(Spoiling(), SENTENCE)
    assert texts(nbest) == ["CALL {name} oN 2024-05-17 nOW"]


@given(
    st.lists(
        st.sampled_from(["word", "{x}", "%s", "a@b.example", "12:30", "5 km", "`code`", "Ж", "3rd", "and"]),
        min_size=1,
        max_size=7,
    ).map(" ".join),
    st.sampled_from([(), NUMBERS, NUMBERS[:1], ("12:30", "11:45", "10:15", "14:20")]),
)
def test_spans_survive_whatever_a_model_copies(sentence: str, copied: Sequence[str]) -> None:
    spans = find_spans(sentence, "en")
    nbest = nbest_of(Spoiling(copied), sentence)
    assert any(not lost_spans(spans, text) for text in texts(nbest))


@pytest.mark.parametrize(
    ("source", "text", "count"),
    [
        ("How are you?", "Как дела?", 0),
        ("No no no no!", "Нет, нет, нет, нет!", 0),
        ("I will come tomorrow.", "Я Я Я Я приду.", 1),
        ("I will come tomorrow.", "Я приду я приду я приду я приду", 1),
        ("I will come tomorrow.", "Ааааааааааа", 1),
        ("I will come tomorrow.", "Я приду </u>", 1),
        ("I will come <b>tomorrow</b>.", "Я приду <b>завтра</b>.", 0),
        ("I will come tomorrow.", "Я приду \ufffd", 1),
        ("I will come tomorrow at noon, I promise.", "Я.", 1),
        ("Yes.", "Да, конечно, непременно, обязательно, без сомнения, разумеется!", 1),
        ("Come at 5:30.", "Приходи в 5.", 1),
        ("I will come tomorrow at noon.", "明天中午我会来。", 0),
        ("Привет", "что угодно", 0),
        ("Come.", "", 1),
    ],
)
def test_defects(source: str, text: str, count: int) -> None:
    assert len(wrong(source, text)) == count


@pytest.mark.parametrize("name", OBJECTIVES)
def test_guarded_is_the_objective_itself_among_sound_hypotheses(name: str) -> None:
    terms = {"nmt": -2.0, "conditional": -7.0, "free": -9.0, "back": -3.0, "length": 4.0}
    inner = objective(name)
    assert penalise_defects(inner).score({**terms, "defects": 0.0}) == inner.score(terms)
    assert penalise_defects(inner).score({**terms, "defects": 1.0}) < inner.score(terms) - 1000


@pytest.mark.parametrize("search", ["rerank", "lattice", "sentence"])
def test_a_degenerate_hypothesis_never_wins_against_a_sound_one(search: str) -> None:
    table = {
        "the old house is burning": {"ай ай ай ай ай ай": -0.1, "дом горит": -40.0},
        "no": {"ай ай ай ай": -1.0},
    }
    language = TableLM({}, WordText())
    models = ModelSet(TableNMT(table), language)
    found = list(Translator(models, TranslationOptions(search=search)).translate(list(table)))
    assert [translation.text for translation in found] == ["дом горит", "ай ай ай ай"]
    off = TranslationOptions(search=search, protect=False)
    assert next(Translator(models, off).translate(list(table))).text == "ай ай ай ай ай ай"
    (term,) = DefectTerm().terms([found[1].parts[0].nbest])
    assert term == {"defects": [1.0]}


def test_what_stands_around_comes_back_and_what_has_no_words_is_copied() -> None:
    model = Spoiling(copied=NUMBERS)
    document = ["- JOHN: call him", "♪", "12:30", "[call him]", "Привет!", "## Call <b>him</b> now 🎉"]
    options = TranslationOptions(search="sentence")
    translator = Translator(ModelSet(model), options, language="en")
    found = list(translator.translate(Document.of(document, speakers=True)))
    assert [one.text for one in found] == [
        "- JOHN: CALL HIM",
        "♪",
        "12:30",
        "[CALL HIM]",
        "Привет!",
        "## CALL <b>HIM</b> NOW 🎉",
    ]
    assert [one.source for one in found] == document
    assert set(model.asked) == {"call him", "Call him now ", ""}


def test_a_span_too_long_for_the_model_is_no_reason_to_cut_it() -> None:
    class Small(Spoiling):
        def fits(self, sentence: str, target: str = "") -> bool:
            return len(sentence) <= 40

    url = "https://example.org/" + "a1b2" * 20
    document = [url, f"Call {url} now", "-" * 99]
    found = Translator(ModelSet(Small(NUMBERS)), TranslationOptions(search="sentence"), language="en")
    assert [one.text for one in found.translate(document)] == [url, f"CALL {url} NOW", "-" * 99]


def test_capitals_are_of_the_words_and_not_of_the_tags() -> None:
    model = Spoiling()
    document = ["- WHAT IS <b>THIS</b> THING", "COME OVER HERE RIGHT NOW", "NASA, ESA"]
    found = Translator(ModelSet(model), TranslationOptions(search="sentence"), language="en")
    assert next(found.translate(document)).text == "- WHAT IS <b>THIS</b> THING"
    assert "Come over here right now" in [core_of(one, "en").text for one in document]
    assert core_of(document[2], "en").text == "NASA, ESA"


@pytest.mark.parametrize("text", ['Он сказал "да.', "Он (да.", "Он «да."])
def test_an_unmatched_mark_is_a_defect(text: str) -> None:
    assert len(wrong("He said yes.", text)) == 1
    assert not wrong('He said "yes.', text) or text[-1] == "»"
