"""A glossary from the options to what became of its terms, with models that are tables."""

from pathlib import Path

import pytest

from cadec_cli.decoding.glossary.outcomes import count_outcomes, term_outcomes
from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import Translator, choose
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.errors import CadecError, UsageError
from cadec_cli.jobs.json_lines import json_records
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.options import TranslationOptions, glossary_sources, options_record, with_flags
from cadec_cli.session.session import Session
from tests.helpers.fakes import TableLM, TableNMT

# Whatever could take the place of a word; all of it is unlikely.
UNLIKELY = {f"{one} {other}": -20.0 for one in ("tu", "el", "vides") for other in ("tu", "el", "farol", "x")}
NMT = TableNMT(
    {
        "you see": {"tu vides": -1.0, "vos videz": -1.2},
        "the lamp": {**UNLIKELY, "farol": -20.0, "el lampara": -1.0, "el farol": -4.0, "la luz": -6.0},
        "farol lamp": {},
    }
)


def translated(
    sentences: list[str],
    *,
    protect: bool = True,
    search: str = "rerank",
    weight: float | None = None,
    **terms: str,
) -> list[Translation]:
    weights = {} if weight is None else {"glossary": weight}
    options = TranslationOptions(
        glossary=glossary_sources(terms), protect=protect, search=search, weight=weights, nbest=3, beam=3
    )
    return list(Translator(ModelSet(NMT, TableLM({})), options, language="en").translate(sentences))


@pytest.mark.parametrize("protect", [True, False])
@pytest.mark.parametrize("search", ["rerank", "lattice", "sentence"])
def test_a_term_is_rewarded(search: str, protect: bool) -> None:
    found = translated(["you see", "the lamp"], lamp="farol", search=search, protect=protect)
    assert [one.text for one in found] == ["tu vides", "el farol"]
    assert [[str(term) for term in term_outcomes(one.parts)] for one in found] == [
        [],
        ["lamp → farol: changed"],
    ]
    (record,) = json_records(found[1])
    assert record["terms"] == [{"term": "lamp", "text": "lamp", "outcome": "changed", "rendering": "farol"}]
    assert [one["glossary"] for one in record["hypotheses"]] == [0, 1, 0]
    assert record["hypotheses"][1]["score"] == pytest.approx(-4.0 + 25.0)
    assert "terms" not in json_records(found[0])[0]


def test_without_a_glossary_there_is_nothing_of_it() -> None:
    options = TranslationOptions(nbest=3)
    (found,) = Translator(ModelSet(NMT, TableLM({})), options, language="en").translate(["the lamp"])
    (record,) = json_records(found)
    assert "terms" not in record and "glossary" not in record["hypotheses"][0]
    assert "glossary" not in options_record(options)


@pytest.mark.parametrize(
    ("target", "weight", "outcome", "text"),
    [
        ("lampara", None, "kept", "el lampara"),
        ("farol", 3.5, "changed", "el farol"),
        ("farol", 2.5, "not kept", "el lampara"),
        ("!farol", 0.0, "changed", "el farol"),
        (
            "a word that is much too long for this model that reads twelve words",
            None,
            "impossible",
            "el lampara",
        ),
    ],
)
def test_outcomes(target: str, weight: float | None, outcome: str, text: str) -> None:
    (found,) = translated(["the lamp"], lamp=target, weight=weight)
    assert found.text == text
    (term,) = term_outcomes(found.parts)
    assert term.outcome == outcome
    assert count_outcomes([term]) == {
        **{"kept": 0, "changed": 0, "not kept": 0, "impossible": 0},
        outcome: 1,
    }


@pytest.mark.parametrize("protect", [True, False])
def test_a_term_that_must_be_there_and_is_not_is_flagged(protect: bool) -> None:
    must = "!a word that is much too long for this model that reads twelve words"
    options = TranslationOptions(glossary=glossary_sources({"lamp": must}), protect=protect, nbest=3)
    translator = Translator(ModelSet(NMT, TableLM({})), options, language="en")
    (found,) = translator.translate(["the lamp"])
    confidence = translator.judge().of(found)
    assert confidence is not None and confidence.value <= 0.1
    assert confidence.reasons[0] == f"{must[1:]} is missing, which lamp must be"
    (record,) = json_records(found, translator.judge())
    assert record["flags"] and record["terms"][0]["must"] is True


def test_given_lists_are_rewarded_too() -> None:
    options = TranslationOptions(glossary=glossary_sources({"lamp": "farol"}), nbest=2)
    nbest = NBest("the lamp", (Hypothesis("el lampara", -1.0), Hypothesis("el farol", -4.0)))
    (found,) = choose([[nbest]], ModelSet(None, TableLM({})), options, language="en")
    assert found.text == "el farol"


def test_a_session_makes_lists_again_for_another_glossary() -> None:
    session = Session(ModelSet(NMT, TableLM({})), TranslationOptions(nbest=3))
    assert [entry.text for entry in session.translate(["the lamp"])] == ["el lampara"]
    session.configure(with_flags(session.options, {"glossary": {"lamp": "farol"}}))
    assert [change.after.text for change in session.redo(0)] == ["el farol"]


@pytest.mark.parametrize("search", ["beam", "doc-nmt", "2-to-2", "repair"])
def test_searches_without_lists_refuse_it(search: str) -> None:
    with pytest.raises(UsageError, match="can't respect a glossary"):
        TranslationOptions(glossary=glossary_sources({"lamp": "farol"}), search=search)


def test_glossaries_of_python(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    options = TranslationOptions()
    assert with_flags(options, {"glossary": path}).glossary == (str(path),)
    assert with_flags(options, {"glossary": [str(path), {"a": "b"}]}).glossary == (str(path), "a\tb\n")
    assert options.glossary == with_flags(options, {"glossary": None}).glossary == ()
    with pytest.raises(CadecError, match="no such file"):
        Translator(ModelSet(NMT, TableLM({})), with_flags(options, {"glossary": path}))
