"""A hypothesis that leaves out a clause is never chosen, and marks that a model does not know are read."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.decoding.protection.clauses import clauses_of, mark_quotation
from cadec_cli.decoding.protection.defects import defects, quoted_clauses
from cadec_cli.decoding.protection.model import ProtectedModel
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.options import TranslationOptions
from cadec_cli.text.protected.core import core_of

QUOTED = "“I came as soon as I could,” Aurelia answered."


class Forgetful:
    """A model that translates into capitals, and leaves out all but the last clause of a sentence."""

    def __init__(self, *, whole: bool = False) -> None:
        self.whole = whole  # whether another hypothesis has everything
        self.asked: list[str] = []

    def nbest(self, sentences: Sequence[str], count: int) -> list[NBest]:
        self.asked += sentences
        return [NBest(text, self._hypotheses(text)) for text in sentences]

    def _hypotheses(self, text: str) -> tuple[Hypothesis, ...]:
        clauses = clauses_of(text, "en")
        if not clauses:
            return (Hypothesis(text.upper(), -1.0),)
        short = (Hypothesis(clauses[-1].text.upper(), -1.0),)
        return (*short, Hypothesis(text.upper(), -5.0)) if self.whole else short

    def log_probs(self, sentences: Sequence[str], targets: Sequence[str]) -> list[float]:
        return [-1.0 for _ in sentences]

    def fits(self, sentence: str, target: str = "") -> bool:
        return True

    def split(self, sentence: str) -> list[str]:
        return [sentence]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (QUOTED, ["I came as soon as I could.", "Aurelia answered."]),
        ("“If you want,” said Oscar, “we can go.”", ["If you want.", "said Oscar.", "we can go."]),
        ("Paul said, “The boat is ready.”", ["Paul said.", "The boat is ready."]),
        ('"Why?" asked Tom.', ["Why?", "asked Tom."]),
        ("‘Don’t go!’ cried Anna.", ["Don’t go!", "cried Anna."]),
        ("Good morning. How are you?", ["Good morning.", "How are you?"]),
        ("The so-called “expert” slept.", []),
        ("“Only what is quoted.”", []),
        ("Mr. Smith is here.", []),
        ("Nothing is quoted here.", []),
    ],
)
def test_clauses(text: str, asked: list[str]) -> None:
    assert [clause.asked for clause in clauses_of(text, "en")] == asked


@given(st.text("aB .,!?“”\"'’—", max_size=40))
def test_clauses_are_in_order_and_apart(text: str) -> None:
    done = 0
    for clause in clauses_of(text, "en"):
        assert done <= clause.start < clause.end and text[clause.start : clause.end] == clause.text
        done = clause.end


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        (QUOTED, "“I CAME AS SOON AS I COULD,” AURELIA ANSWERED."),
        ('"I came as soon as I could," Aurelia answered.', '"I CAME AS SOON AS I COULD," AURELIA ANSWERED.'),
        ("Paul said, “The boat is ready now.”", "PAUL SAID, “THE BOAT IS READY NOW.”"),
        ("I saw him here. She did not see him.", "I SAW HIM HERE. SHE DID NOT SEE HIM."),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_no_clause_is_lost(text: str, translation: str, whole: bool) -> None:
    model = Forgetful(whole=whole)
    found = ProtectedModel(model, "en").nbest([core_of(text, "en")], 5)[0]
    assert found.hypotheses[0].text == translation
    assert not found.hypotheses[0].defects
    for search in ("sentence", "rerank"):
        options = TranslationOptions(search=search, objective="sentence")
        (one,) = Translator(ModelSet(Forgetful(whole=whole)), options, language="en").translate([text])
        assert one.text == translation


@pytest.mark.parametrize(
    ("source", "translation", "marked"),
    [
        (QUOTED, "-- Je suis venu dès que possible, répondit Aurelia.",
         "“Je suis venu dès que possible,” répondit Aurelia."),
        ("“Go!” cried Anna.", "– Va ! s'écria Anna.", "“Va !” s'écria Anna."),
        ("“Go home, John.”", "Rentre, John.", "“Rentre, John.”"),
        ("Paul said, “The boat is ready.”", "Paul a dit : le bateau est prêt.",
         "Paul a dit : “le bateau est prêt.”"),
        ("“I am here now,” said the very old man.", "Je suis là maintenant dit le vieux.", None),
    ],
)  # fmt: skip
def test_marks_are_put_where_punctuation_tells(source: str, translation: str, marked: str | None) -> None:
    assert mark_quotation(source, quoted_clauses(source)[0], translation) == (marked or translation)


@given(st.text("aB .,!?“”—", max_size=40), st.text("ab .,!?:—“", max_size=30))
def test_marking_changes_nothing_else(source: str, translation: str) -> None:
    for quoted in quoted_clauses(source):
        marked = mark_quotation(source, quoted, translation)
        kept = [one for one in marked if one in "ab"]
        assert kept == [one for one in translation if one in "ab"]


def test_a_whole_translation_is_not_compared() -> None:
    class Faithful(Forgetful):
        def _hypotheses(self, text: str) -> tuple[Hypothesis, ...]:
            return (Hypothesis(text.upper(), -1.0),)

    model = Faithful()
    ProtectedModel(model, "en").nbest([core_of(QUOTED, "en")], 5)
    assert model.asked == [QUOTED]


@pytest.mark.parametrize(
    ("source", "translation", "lost"),
    [
        (QUOTED, "Je suis venu dès que j'ai pu, répondit Aurelia.", True),
        (QUOTED, "« Je suis venu dès que j'ai pu », répondit Aurelia.", False),
        (QUOTED, "-- Je suis venu dès que j'ai pu, répondit Aurelia.", True),
        ("The so-called “expert” slept.", "Le prétendu expert dormait.", False),
        ("“I came as soon as I could.", "\"Je suis venu dès que j'ai pu.", False),
    ],
)
def test_lost_quotation_marks_are_a_defect(source: str, translation: str, lost: bool) -> None:
    assert defects(core_of(source, "en"), translation) == (("has lost its quotation marks",) if lost else ())


def test_a_translator_writes_the_marks_of_the_target_language() -> None:
    translator = Translator(
        ModelSet(Forgetful(whole=True)),
        TranslationOptions(search="sentence"),
        language="en",
        target_language="fr",
    )
    (one,) = translator.translate([QUOTED])
    assert one.text == "«\u00a0I CAME AS SOON AS I COULD\u00a0», AURELIA ANSWERED."
    assert [listed.texts[0] for listed in translator.lists([QUOTED])[0]] == [one.text]
    unprotected = Translator(
        ModelSet(Forgetful(whole=True)),
        TranslationOptions(search="sentence", protect=False),
        language="en",
        target_language="fr",
    )
    assert next(unprotected.translate([QUOTED])).text == "AURELIA ANSWERED."
