"""What can be added without touching the package: an objective, a term, two models, a search.

All of it is defined here and goes through reranking, lattice, a session, tuning, contrastive tests and an
explanation; no torch is needed for any of them.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.decoding.state import State
from cadec_cli.decoding.translation import Choice, TranslatedPart
from cadec_cli.decoding.translator import Translator, choose
from cadec_cli.decoding.units import Wave
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.contrastive.scoring import ContrastiveModels, evaluate, scorers
from cadec_cli.evaluation.contrastive.sets import ContrastiveSet, Group
from cadec_cli.evaluation.tuning.search import Setting, prepare_lists, reranking_translator
from cadec_cli.jobs.json_lines import json_records
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.objectives import OBJECTIVES, Objective, objective
from cadec_cli.method.options import TranslationOptions
from cadec_cli.method.searches import LISTS, SEARCHES, SearchKind
from cadec_cli.session.session import Session
from tests.helpers.fakes import TableLM, TableNMT, WordText

NMT = TableNMT(
    {
        "good day": {"bondia": -0.5, "bondia senor": -0.9},
        "you see": {"tu vides": -1.0, "vos videz": -1.2},
        "you go": {"tu vades": -0.8, "vos vadez": -1.4},
    }
)
LM = {("senor", "vos"): 0.6, ("senor", "videz"): 0.2, ("vos", "vos"): 0.5, ("tu", "tu"): 0.1}
DOCUMENT = ["good day", "you see", "you go"]


def models() -> ModelSet:
    return ModelSet(NMT, TableLM(LM))


def texts(options: TranslationOptions, document: Sequence[str] = DOCUMENT) -> list[str]:
    return [translation.text for translation in Translator(models(), options).translate(document)]


# Five lines of an objective: of what the context makes likely, the short.
MINE = Objective(
    "mine",
    lambda t, w: t["nmt"] + w["lm"] * t["conditional"] - w["words"] * t["words"],
    ("nmt", "conditional", "words"),
    {"lm": 1.0, "words": 0.5},
)


class Words:
    """A term that is known ahead of any context."""

    names = ("words",)

    def terms(self, lists: Sequence[NBest]) -> list[dict[str, Any]]:
        return [{"words": [float(len(h.text.split())) for h in nbest.hypotheses]} for nbest in lists]


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(OBJECTIVES, MINE.name, MINE)
    return MINE.name


def test_reranking_goes_by_what_the_tables_say() -> None:
    assert texts(TranslationOptions(search="sentence")) == ["bondia", "tu vides", "tu vades"]
    # No context, then «bondia», which calls for nothing: PMI is 0 but for tu after tu.
    assert texts(TranslationOptions()) == ["bondia", "tu vides", "tu vades"]
    polite = Context((tuple(models_text().encode("senor")),))
    translator = Translator(ModelSet(NMT, TableLM(LM, models_text())))
    found = list(translator.translate_documents([DOCUMENT[1:]], contexts=[polite]))
    assert [translation.text for translation in found] == ["vos videz", "vos vadez"]
    (first, second) = (translation.parts[0].choice for translation in found)
    assert first is not None and second is not None
    assert first.context == ((1,),)
    assert second.context == ((1,), tuple(models_text().encode("vos videz")))
    assert first.scores == pytest.approx((-1.0, -1.2 + 0.8))
    assert second.scores == pytest.approx((-0.8, -1.4 + 0.6 + 0.5))
    assert first.pmi == pytest.approx((0.0, 0.8))


_TEXT = WordText()


def models_text() -> WordText:
    _TEXT.encode("senor")
    return _TEXT


def test_the_lattice_gives_up_a_little_for_what_comes_after() -> None:
    assert texts(TranslationOptions(search="lattice", paths=4)) == ["bondia senor", "vos videz", "vos vadez"]
    assert texts(TranslationOptions(search="lattice", paths=1)) == texts(TranslationOptions())


@pytest.mark.parametrize("search", ["rerank", "lattice"])
def test_an_objective_of_ones_own_with_a_term_of_ones_own(mine: str, search: str) -> None:
    options = TranslationOptions(search=search, objective=mine, weight={"words": 2.0})
    found = list(Translator(models(), options, extra_terms=(Words(),)).translate(DOCUMENT))
    assert [translation.text for translation in found] == ["bondia", "tu vides", "tu vades"]
    for translation in found:
        (record,) = json_records(translation)
        context: list[str] = [
            word for before in found[: translation.sentence] for word in before.text.split()
        ]
        for hypothesis in record["hypotheses"]:
            assert set(hypothesis) == {
                "text",
                "log_prob",
                "score",
                "conditional",
                "words",
                "defects",
            }  # no free, no pmi
            words = hypothesis["text"].split()
            assert hypothesis["words"] == len(words)
            assert hypothesis["conditional"] == pytest.approx(
                sum(TableLM(LM).log_prob(word, context) for word in [*words, "|"])
            )
            assert hypothesis["score"] == pytest.approx(
                hypothesis["log_prob"] + hypothesis["conditional"] - 2 * len(words)
            )


def test_a_term_that_nothing_computes_is_said(mine: str) -> None:
    with pytest.raises(CadecError, match="nothing here computes words, which mine needs"):
        texts(TranslationOptions(objective=mine))


def test_the_beam_says_what_it_needs(mine: str) -> None:
    with pytest.raises(CadecError, match="can't be stepped"):
        Translator(models(), TranslationOptions(search="beam"))
    with pytest.raises(CadecError, match="no document language model"):
        Translator(ModelSet(NMT), TranslationOptions())


def test_choosing_from_lists_is_translating_without_the_model() -> None:
    lists = [NMT.nbest(DOCUMENT, 20), NMT.nbest(DOCUMENT[1:], 20)]
    for search in ("rerank", "lattice", "sentence"):
        options = TranslationOptions(search=search)
        chosen = choose(lists, ModelSet(language=TableLM(LM)), options)
        whole = Translator(models(), options).translate_documents([DOCUMENT, DOCUMENT[1:]])
        assert [json_records(translation) for translation in chosen] == [json_records(t) for t in whole]


def test_a_session_and_an_explanation() -> None:
    session = Session(models(), TranslationOptions())
    list(session.translate(["good day"]))
    assert session.pick(2).text == "bondia senor"  # what a person decides becomes context
    (entry,) = session.translate(["you see"])
    assert entry.text == "vos videz"
    explanation = session.explain()
    assert explanation.context == ("bondia senor",)
    chosen, alone = explanation.rows
    assert (chosen.name, alone.name) == ("chosen", "sentence level")
    assert [(token.text, round(token.pmi, 6)) for token in chosen.tokens] == [
        (" vos", 0.6),
        (" videz", 0.2),
        (" |", 0.0),
    ]
    assert (chosen.log_prob, alone.log_prob) == (-1.2, -1.0)
    assert (chosen.pmi, alone.pmi) == pytest.approx((0.8, 0.0))
    session.edit("salu")
    assert session.explain().rows[0].log_prob is None
    session.undo()
    session.configure(TranslationOptions(search="sentence"))
    (entry,) = session.translate(["you see"])
    assert entry.text == "tu vides"


def test_tuning_finds_the_weight_that_the_tables_ask_for() -> None:
    sources = [["good day", "you see", "you go"]] * 3
    references = [["bondia senor", "vos videz", "vos vadez"]] * 3
    settings = [Setting(temperature, weight) for weight in (0.0, 1.0, 9.0) for temperature in (1.0, 4.0)]
    development = prepare_lists(
        reranking_translator(models(), TranslationOptions(nbest=5), "c-score"), sources, references, settings
    )
    level, points = development.points(settings)
    for setting, point in zip(settings, points, strict=True):
        options = TranslationOptions(temperature=setting.temperature, weight={"lm": setting.weight}, nbest=5)
        alone = texts(options)
        assert point.setting == setting
        assert point.changed == pytest.approx(
            sum(a != b for a, b in zip(alone, ["bondia", "tu vides", "tu vades"], strict=True)) / 3
        )
    assert level.changed == 0


def test_contrastive_groups_and_their_explanation() -> None:
    group = Group("you see", (), ("bondia senor",), ("vos videz", "tu vides"), 0, name="1")
    hard = Group("you see", (), ("bondia",), ("vos videz", "tu vides"), 0, name="2")
    contrastive_set = ContrastiveSet(Path("made-up.jsonl"), "jsonl", (group, hard))
    scored = ContrastiveModels(NMT, TableLM(LM))
    terms = list(scored.terms(contrastive_set))
    asked = scorers([objective("sentence"), objective("c-score")], (1.0,))
    alone, in_context = evaluate(contrastive_set, terms, asked, 1, scored).scorers
    assert (alone.accuracy.right, in_context.accuracy.right) == (0, 1)
    (failure,) = in_context.failures
    assert failure.group is hard and failure.explanation is not None
    assert [row.name for row in failure.explanation.rows] == ["true", "won"]
    assert failure.explanation.context == ("bondia",)


def test_a_search_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    class Last:
        """Takes the last of every list."""

        def run(self, waves: Iterable[Wave[NBest]], state: State) -> Iterator[tuple[int, TranslatedPart]]:
            for wave in waves:
                for number, nbest in wave:
                    scores = tuple(hypothesis.log_prob for hypothesis in nbest.hypotheses)
                    yield number, TranslatedPart(nbest, Choice(len(scores) - 1, scores))

    kind = SearchKind("the last of each list", LISTS, lambda models, options, ahead: Last())
    monkeypatch.setitem(SEARCHES, "last", kind)
    assert texts(TranslationOptions(search="last")) == ["bondia senor", "vos videz", "vos vadez"]


def test_none_of_this_needs_torch() -> None:
    here = Path(__file__).parent
    code = (
        "import sys, pytest; code = pytest.main(['-q', '-p', 'no:cacheprovider', *sys.argv[1:]])\n"
        "assert 'cadec_cli.session.session' in sys.modules and 'torch' not in sys.modules; sys.exit(code)"
    )
    # The tests of this file but for this one and the beam, in a process that knows no other tests.
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            "--noconftest",
            "-k",
            "not torch and not beam",
            str(here / "test_seams.py"),
        ],
        capture_output=True,
        text=True,
        cwd=here.parent,
    )
    assert run.returncode == 0, run.stdout + run.stderr
