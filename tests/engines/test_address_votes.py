"""The lists of the sentences before vote on the form of address, however a text is translated."""

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest

from cadec_cli.decoding.state import State
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.address_votes import SMOOTHING, AddressVotes
from cadec_cli.engines.protocols import ContextTerm, ModelSet, ReadsLists
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Pair
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.options import TranslationOptions
from cadec_cli.session.session import Session
from tests.helpers.fakes import TableNMT

NMT = TableNMT(
    {
        "sit down": {"asseyez-vous": -0.1, "assieds-toi": -4.0},
        "take this": {"prends ça": -0.5, "tenez": -0.9, "pour vous": -2.0, "pour toi": -2.1},
        "you know": {"tu sais": -0.6, "vous savez": -0.8},
        "it rains": {"il pleut": -0.2, "il pleut sur toi": -0.3},
        "sweetheart": {"chérie": -0.1, "ma chérie": -1.0},
    }
)
DOCUMENT = ["sit down", "it rains", "take this", "you know", "sweetheart", "you know"]


def options(weight: float = 1.0, **more: Any) -> TranslationOptions:
    return TranslationOptions(objective="sentence", weight={"address": weight}, **more)


def models(language: str = "fr") -> ModelSet:
    return ModelSet(NMT, target_language=language)


def translate(document: Sequence[str], asked: TranslationOptions, language: str = "fr") -> list[str]:
    return [one.text for one in Translator(models(language), asked).translate(document)]


def listed(**log_probs: float) -> NBest:
    texts = {text.replace("_", " "): log_prob for text, log_prob in log_probs.items()}
    return NBest("x", tuple(Hypothesis(text, log_prob) for text, log_prob in texts.items()))


def vote(context: Sequence[Pair], *texts: str) -> list[float]:
    nbest = NBest("x", tuple(Hypothesis(text, -1.0) for text in texts))
    ((_, values),) = AddressVotes("fr").terms_after([nbest], [context])[0].items()
    return list(values)


def test_the_term_is_what_the_formula_says() -> None:
    half = math.log(0.5)
    before = [
        Pair("", "tu sais", listed(tu_sais=half, vous_savez=2 * half, on_sait=2 * half)),
        Pair("", "tu sais", listed(tu_sais=half + math.log(0.3), vous_savez=half + math.log(0.7))),
        Pair("", "il pleut", listed(il_pleut=0.0)),
    ]
    s = SMOOTHING
    odds = math.log((0.5 + s) / (0.25 + s)) + math.log((0.3 + s) / (0.7 + s))
    found = vote(before, "tu viens", "vous venez", "on vient", "tu viens avec vous")
    expected = [math.log(2 / (1 + math.exp(-odds))), math.log(2 / (1 + math.exp(odds))), 0, 0]
    assert found == pytest.approx(expected)


def test_without_evidence_it_is_exactly_zero() -> None:
    assert vote([], "tu viens", "vous venez") == [0.0, 0.0]
    assert vote([Pair("", "il pleut", listed(il_pleut=-1.0))], "tu viens", "vous venez") == [0.0, 0.0]
    even = listed(tu_sais=-1.0, vous_savez=-1.0)
    assert vote([Pair("", "tu sais", even)], "tu viens", "vous venez") == [0.0, 0.0]
    unknown = AddressVotes("xx").terms_after([even], [[Pair("", "vous savez")]])
    assert unknown == [{"address": [0.0, 0.0]}]


def test_what_a_person_decided_is_certain() -> None:
    unsure = Pair("", "vous savez", listed(vous_savez=-1.0, tu_sais=-1.1))
    certain = Pair("", "vous savez")
    odds = math.log((1 + SMOOTHING) / SMOOTHING)
    assert vote([certain], "vous venez") == pytest.approx([math.log(2 / (1 + math.exp(-odds)))])
    assert vote([certain], "vous venez") > vote([unsure], "vous venez")


def test_the_protocols_are_satisfied() -> None:
    term = AddressVotes("fr")
    assert isinstance(term, ContextTerm)
    assert isinstance(term, ReadsLists)


@pytest.mark.parametrize("search", ["rerank", "lattice"])
def test_the_lists_decide(search: str) -> None:
    alone = ["asseyez-vous", "il pleut", "prends ça", "tu sais", "chérie", "tu sais"]
    assert translate(DOCUMENT, options(0.0, search=search)) == alone
    assert translate(DOCUMENT, options(1.0, search=search))[3] == "vous savez"
    assert translate(DOCUMENT[1:], options(1.0, search=search)) == alone[1:]  # nobody says vous
    assert translate(DOCUMENT, options(1.0, search=search), "xx") == alone
    # Lists vote, not choices: tu was chosen for want of anything better, by a little.
    assert translate(["you know", "take this"], options(5.0, search=search, nbest=20)) == [
        "tu sais",
        "prends ça",
    ]


def test_a_weight_of_nothing_computes_nothing() -> None:
    (one, *_) = Translator(models(), options(0.0)).translate(DOCUMENT)
    assert one.parts[0].choice is not None
    assert "address" not in one.parts[0].choice.terms
    assert not options(0.0).reads_context
    assert options(1.0).reads_context
    with pytest.raises(CadecError, match="sentence has no weight adress"):
        TranslationOptions(objective="sentence", weight={"adress": 1.0})
    with pytest.raises(CadecError, match="whole sentences"):
        options(1.0, search="beam")


@pytest.mark.parametrize("search", ["rerank", "lattice"])
def test_sentence_by_sentence_is_the_document_at_once(search: str) -> None:
    asked = options(1.0, search=search)
    session = Session(models(), asked)
    written = [entry.text for sentence in DOCUMENT for entry in session.translate([sentence])]
    if search == "rerank":  # a path that ends with each sentence has no choice left to revise
        assert written == translate(DOCUMENT, asked)
    assert written[3] == "vous savez"


def test_corrections_vote() -> None:
    session = Session(models(), options(2.0, nbest=4))
    list(session.translate(["sit down", "you know"]))
    assert session.last.text == "vous savez"
    session.edit("assieds-toi", 1)
    assert [(change.number, change.after.text) for change in session.redo(1)] == [(2, "tu sais")]


def test_an_address_that_was_asked_for_outvotes_the_lists() -> None:
    seeded = ModelSet(NMT, target_language="fr", seeds={"formal": ["vous ici", "à vous"]})
    document = ["you know"] * 6
    asked = options(1.0, formality="formal")
    assert [one.text for one in Translator(seeded, asked).translate(document)] == ["vous savez"] * 6
    session = Session(seeded, asked)
    assert [entry.text for one in document for entry in session.translate([one])] == ["vous savez"] * 6


@pytest.mark.parametrize("search", ["rerank", "lattice"])
def test_a_resumed_translation_goes_on_as_before(search: str) -> None:
    documents = [DOCUMENT * 30, DOCUMENT * 25]
    translator = Translator(models(), options(1.0, search=search, context=5))
    states: list[str] = []
    whole = [
        (one.document, one.sentence, one.text, one.parts[0].choice)
        for one in translator.translate_documents(
            documents, checkpoint=lambda state: states.append(json.dumps(state.to_json()))
        )
    ]
    assert len(states) > 3
    for stored in states[1:]:
        assert '"chosen from"' in stored
        rest = translator.translate_documents(documents, start=State.from_json(json.loads(stored)))
        found = [(one.document, one.sentence, one.text, one.parts[0].choice) for one in rest]
        assert found == whole[len(whole) - len(found) :]


def test_lists_that_no_term_reads_are_not_kept() -> None:
    states: list[State] = []
    translator = Translator(models(), TranslationOptions(objective="sentence", search="lattice"))
    list(translator.translate_documents([DOCUMENT * 30], checkpoint=states.append))
    assert '"chosen from"' not in json.dumps([state.to_json() for state in states])
