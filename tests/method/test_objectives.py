"""A term that was not computed is absent, and one that is there is right: every objective, every search."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import LoadedModels, load_models
from cadec_cli.decoding.protection.defects import defects
from cadec_cli.decoding.translator import Translator
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.benchmark import naive_scores
from cadec_cli.jobs.json_lines import json_records
from cadec_cli.main import exit_code
from cadec_cli.method.context import Context
from cadec_cli.method.objectives import (
    ADDRESS,
    BACK,
    CONDITIONAL,
    DEFECTS,
    FREE,
    LM_TERMS,
    LM_TERMS_OF,
    NMT,
    OBJECTIVES,
    PAIRS,
    TARGET,
    objective,
    penalise_defects,
)
from cadec_cli.method.options import TranslationOptions
from cadec_cli.method.searches import PASSAGES, SEARCHES
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.text.protected.core import core_between

every_objective = pytest.mark.parametrize("name", OBJECTIVES)
TERMS = sorted({term for known in OBJECTIVES.values() for term in known.terms} | LM_TERMS)
values = st.fixed_dictionaries({term: st.floats(-50, 50) for term in TERMS})


@every_objective
@given(one=values, other=values, factor=st.floats(-3, 3))
def test_formulas_are_linear(
    name: str, one: dict[str, float], other: dict[str, float], factor: float
) -> None:
    """So that the scores of tokens add up to that of their sentence."""
    chosen = objective(name)
    summed = {term: one[term] + factor * other[term] for term in TERMS}
    expected = chosen.score(one) + factor * chosen.score(other)
    assert chosen.score(summed) == pytest.approx(expected, abs=1e-6)
    arrays = {term: np.array([one[term], other[term]]) for term in TERMS}
    assert chosen.score(arrays).tolist() == [chosen.score(one), chosen.score(other)]


@every_objective
def test_a_formula_needs_the_terms_that_it_names_and_no_others(name: str) -> None:
    chosen = objective(name)
    terms = dict.fromkeys(chosen.terms, 1.0)
    chosen.score(terms)
    for term in chosen.terms:
        with pytest.raises(KeyError):
            chosen.score({other: value for other, value in terms.items() if other != term})
    assert chosen.uses_lm == bool({CONDITIONAL, FREE} & set(chosen.terms))


@every_objective
@given(weight=st.floats(0, 10), terms=values)
def test_weights_have_names(name: str, weight: float, terms: dict[str, float]) -> None:
    chosen = objective(name)
    for weighted in chosen.weights:
        changed = chosen.with_weights({weighted: weight})
        assert changed.weights == {**chosen.weights, weighted: weight}
        assert chosen.weights == OBJECTIVES[name].weights  # the table is as it was
        # The score changes by as much as the weight does, times what it weighs.
        without = chosen.with_weights({weighted: 0.0}).score(terms)
        single = chosen.with_weights({weighted: 1.0}).score(terms) - without
        assert changed.score(terms) == pytest.approx(without + weight * single, abs=1e-6)
    with pytest.raises(CadecError, match=f"{name} has no weight luck"):
        chosen.with_weights({"luck": 1.0})


@every_objective
@given(terms=values, weight=st.floats(0.1, 10), value=st.floats(-5, 5))
def test_an_optional_term_is_added_by_its_weight(
    name: str, terms: dict[str, float], weight: float, value: float
) -> None:
    plain, voting = objective(name), objective(name, {ADDRESS: weight})
    assert ADDRESS not in plain.terms and voting.terms == (*plain.terms, ADDRESS)
    expected = plain.score(terms) + weight * value
    assert voting.score({**terms, ADDRESS: value}) == pytest.approx(expected)
    assert voting.with_weights({ADDRESS: 2 * weight}).weights[ADDRESS] == 2 * weight
    assert objective(name, {ADDRESS: 0.0}) == plain
    assert not voting.by_token


@given(values)
def test_the_c_score_is_the_paper_s(terms: dict[str, float]) -> None:
    pmi = terms[CONDITIONAL] - terms[FREE]
    assert objective("pmi").score(terms) == pmi
    assert objective("c-score").score(terms) == terms[NMT] + pmi
    assert objective("c-score").score({**terms, CONDITIONAL: terms[FREE]}) == terms[NMT]  # no context
    assert objective("sentence").score(terms) == terms[NMT]


DOCUMENT = ["good day sir.", "you see the lamp.", "do you want the red house?", "i think you take it."]
SEARCH = ("--nbest", "5", "--lines", "--compute-type", "float32", "--threads", "1")


@pytest.fixture(scope="module")
def models(made_up_bundle: Path) -> LoadedModels:
    return load_models(Bundle.open(made_up_bundle), compute_type="float32", threads=1)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "dialogue.txt"
    path.write_text("\n".join(DOCUMENT) + "\n")
    return path


def possible(search: str, name: str) -> bool:
    if OBJECTIVES[name].uses(BACK):
        return False  # this bundle has no backward model
    return search != "beam" or OBJECTIVES[name].uses(NMT)


# Searches by models that read several sentences look at no objective: see test_document_systems.
CASES = [
    (search, name)
    for search, kind in SEARCHES.items()
    for name in OBJECTIVES
    if kind.needs != PASSAGES and possible(search, name)
]


@pytest.mark.parametrize(("search", "name"), CASES)
def test_json_has_the_terms_of_the_objective_and_no_others(
    search: str,
    name: str,
    text: Path,
    made_up_bundle: Path,
    models: LoadedModels,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    asked = ["--search", search, "--objective", name, "--json", "--bundle", str(made_up_bundle), *SEARCH]
    assert exit_code(["translate", str(text), *asked]) == 0
    lines = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    options = TranslationOptions(search=search, objective=name, nbest=5)
    translations = list(Translator(models, options).translate(DOCUMENT))
    assert lines == [record for translation in translations for record in json_records(translation)]
    # What is there is what the network says of each hypothesis alone, after the context it was chosen in.
    maximised = objective("sentence" if search == "sentence" else name)
    network = models.bundle.lm_network()
    for line, translation in zip(lines, translations, strict=True):
        (part,) = translation.parts
        assert part.choice is not None
        for hypothesis, record in zip(part.hypotheses, line["hypotheses"], strict=True):
            expected = _naive(network, hypothesis.ids, part.choice.context)
            computed = {term: expected[term] for term in (CONDITIONAL, FREE) if maximised.uses(term)}
            if len(computed) == 2:
                computed["pmi"] = computed[CONDITIONAL] - computed[FREE]
            if search != "beam":  # lists are checked before anything is chosen from them
                computed[DEFECTS] = len(defects(core_between(line["source"]), record["text"]))
            assert set(record) == {"text", "log_prob", "score", *computed}
            for term, value in computed.items():
                assert record[term] == pytest.approx(value, abs=1e-3), term
            checked = maximised if search == "beam" else penalise_defects(maximised)
            score = checked.score({NMT: record["log_prob"], **computed})
            assert record["score"] == pytest.approx(score, abs=2e-3)
        assert line["chosen"] == part.choice.index


def _naive(
    network: DocumentLM, ids: tuple[int, ...], context: tuple[tuple[int, ...], ...]
) -> dict[str, float]:
    (conditional,) = naive_scores(network, Context(context), [ids])
    (free,) = naive_scores(network, Context(), [ids])
    return {CONDITIONAL: conditional, FREE: free}


@pytest.mark.parametrize(("search", "name"), CASES)
def test_an_explanation_explains_or_says_why_it_can_not(
    search: str,
    name: str,
    text: Path,
    made_up_bundle: Path,
    models: LoadedModels,
    capfd: pytest.CaptureFixture[str],
) -> None:
    asked = ["--search", search, "--objective", name, "--explain", "--bundle", str(made_up_bundle), *SEARCH]
    code = exit_code(["translate", str(text), *asked])
    shown = capfd.readouterr()
    if "sentence" in (search, name):
        assert code == 2
        assert "uses no D-LM, so there is nothing to explain" in shown.err
        assert not shown.out
        return
    assert code == 0
    options = TranslationOptions(search=search, objective=name, nbest=5)
    network = models.bundle.lm_network()
    expected = []
    for translation in Translator(models, options).translate(DOCUMENT):
        (part,) = translation.parts
        assert part.choice is not None
        expected.append(translation.text)
        for index in dict.fromkeys((part.choice.index, 0)):
            terms = _naive(network, part.hypotheses[index].ids, part.choice.context)
            expected.append(f"PMI {terms[CONDITIONAL] - terms[FREE]:+6.2f}")
    printed = [line for line in shown.out.splitlines() if line.strip()]
    assert len(printed) == len(expected)
    for line, part_of_it in zip(printed, expected, strict=True):
        if part_of_it.startswith("PMI"):
            assert math.isclose(_pmi(line), float(part_of_it.split()[1]), abs_tol=0.011)
        else:
            assert line == part_of_it
    assert any(abs(_pmi(line)) > 0.05 for line in printed if "PMI" in line)


def _pmi(line: str) -> float:
    return float(line.split("PMI")[1].split()[0])


def test_json_excludes_other_output(text: Path) -> None:
    for others in (["--compare"], ["--explain"], ["--compare", "--explain"]):
        assert exit_code(["translate", str(text), "--json", *others]) == 2


def test_the_beam_command_is_one_search(text: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["beam", str(text), "--search", "lattice"]) == 2
    assert "cadec beam uses --search beam" in capfd.readouterr().err


def test_rerank_reads_what_translate_writes(
    tmp_path: Path, made_up_bundle: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A sentence with nothing to translate included, and by every search over lists."""
    source = tmp_path / "text.txt"
    source.write_text("good day sir.\n\u00ad\nyou see the lamp.\n", "utf-8")
    asked = ["--bundle", str(made_up_bundle), "--nbest", "5", "--compute-type", "float32", "--json"]
    for search in ("rerank", "lattice", "sentence"):
        assert exit_code(["translate", str(source), "--lines", "--search", search, *asked]) == 0
        written = capfdbinary.readouterr().out
        (tmp_path / "lists.jsonl").write_bytes(written)
        assert exit_code(["rerank", str(tmp_path / "lists.jsonl"), "--search", search, *asked]) == 0
        again = capfdbinary.readouterr().out
        chosen = [
            [json.loads(line)["translation"] for line in lines.splitlines()] for lines in (written, again)
        ]
        assert chosen[0] == chosen[1] and len(chosen[0]) == 3
    lists = str(tmp_path / "lists.jsonl")
    assert exit_code(["rerank", lists, "--after", str(tmp_path / "nowhere"), *asked]) == 1
    assert b"no such file" in capfdbinary.readouterr().err
    assert exit_code(["rerank", lists, "--search", "beam", *asked]) == 2
    assert b"does not choose from n-best lists" in capfdbinary.readouterr().err


def test_rerank_flags_what_a_hypothesis_has_lost(
    tmp_path: Path, made_up_bundle: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lists = tmp_path / "lists.jsonl"
    hypotheses = [{"text": "tu vides la lampo.", "log_prob": -1.0}]
    lists.write_text(json.dumps({"source": "you see Привет and 25.", "hypotheses": hypotheses}) + "\n")
    asked = ["--bundle", str(made_up_bundle), "--compute-type", "float32", "--json"]
    assert exit_code(["rerank", str(lists), *asked]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record["flags"][:2] == ["Привет is missing", "25 is missing"] and record["confidence"] <= 0.1
    assert exit_code(["rerank", str(lists), *asked, "--no-protect"]) == 0
    assert json.loads(capfd.readouterr().out)["confidence"] > 0.1


def test_the_repl_shows_no_pmi_that_nobody_computed(
    made_up_bundle: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import io
    import sys

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    typed = "\n".join([*DOCUMENT[:2], "/nbest 3", "/why"]) + "\n"
    for name, dash in (("c-score", False), ("shallow-fusion", True), ("conditional-shallow-fusion", True)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
        assert exit_code(["repl", "--bundle", str(made_up_bundle), "--objective", name, "--nbest", "5"]) == 0
        shown = capfd.readouterr().out
        rows = [line for line in shown.splitlines() if line[:3] in ("1  ", "2  ", "3  ")]
        assert len(rows) == 3
        assert all((" – " in row) == dash for row in rows)
        assert "PMI +" in shown or "PMI -" in shown  # /why computes what it shows


@every_objective
@given(terms=values)
def test_what_is_read_changes_the_terms_and_not_the_formula(name: str, terms: dict[str, float]) -> None:
    own = objective(name)
    assert objective(name, reads=TARGET) == own
    of_pairs, of_both = objective(name, reads=PAIRS), objective(name, {}, "both")
    of_target = {old: terms[new] for old, new in zip(*LM_TERMS_OF.values(), strict=True)}
    assert of_pairs.score(terms) == own.score({**terms, **of_target})
    assert not of_pairs.uses(*LM_TERMS_OF[TARGET]) and of_pairs.reads_context == own.reads_context
    if own.uses_lm:
        weighted = objective(name, {"pairs": 0.5}, "both")
        added = {old: terms[old] + 0.5 * of_target[old] for old in of_target}
        assert weighted.score(terms) == pytest.approx(own.score({**terms, **added}))
        assert of_both.readings == (TARGET, PAIRS) and of_both.by_token == own.by_token
        alone = objective(name, {"pairs": 0}, "both")
        assert alone.score(terms) == pytest.approx(own.score(terms))
    else:
        assert of_both == of_pairs == own
    with pytest.raises(CadecError, match="has no weight pairs"):
        objective(name, {"pairs": 1}, PAIRS)
