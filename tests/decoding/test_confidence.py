"""A confidence grows with every signal, knows its bounds, and is the same however a translation was made."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.decoding.confidence import (
    DEFECTIVE,
    FLAG_BELOW,
    WEIGHINGS,
    Confidence,
    FlagCollector,
    FlaggedSentence,
    Judge,
    Signals,
    confidence,
    flagged_sentences,
    signals,
    weigh_signals,
)
from cadec_cli.decoding.translation import Choice, TranslatedPart, Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.errors import Interrupted
from cadec_cli.jobs.in_step import FileTranslation
from cadec_cli.jobs.journal import Journal
from cadec_cli.jobs.json_lines import json_records, text_record
from cadec_cli.jobs.outputs import OutputPlan
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.objectives import CONDITIONAL, FREE
from cadec_cli.text.documents import Document
from cadec_cli.text.formats import read_text_file
from tests.helpers.fakes import TableLM, TableNMT

TYPICAL = Signals(8, margin=0.5, log_prob_per_token=-0.8, pmi=0.0, length_ratio=0.9, letters_per_token=2.9)
numbers = st.floats(-30, 30)
ratios = st.floats(0.01, 50)
known_signals = st.builds(
    Signals,
    st.integers(1, 20),
    st.none() | numbers,
    st.none() | st.floats(-30, 0),
    st.none() | numbers,
    st.none() | ratios,
    st.none() | ratios,
)


def part(
    source: str, *texts: str, scores: Sequence[float], pmi: Sequence[float] = (), ids: int = 4
) -> TranslatedPart:
    """Hypotheses whose log p is what remains of their score without PMI; the best is the choice."""
    extra = list(pmi) or [0.0] * len(texts)
    hypotheses = tuple(
        Hypothesis(text, score - more, tuple(range(ids)))
        for text, score, more in zip(texts, scores, extra, strict=True)
    )
    terms = {CONDITIONAL: tuple(extra), FREE: (0.0,) * len(texts)} if pmi else {}
    return TranslatedPart(
        NBest(source, hypotheses, "made up"), Choice(scores.index(max(scores)), tuple(scores), terms)
    )


def sentence(*parts: TranslatedPart) -> Translation:
    return Translation(0, 0, " ".join(one.source for one in parts), parts)


GOOD = part("you see the lamp", "tu vides la lampo", "vos videz la lampo", scores=(-1.0, -2.5), pmi=(0.2, 0))
BAD = part("you see the lamp by the door", "tu", "vu", scores=(-12.0, -12.01), pmi=(-5.0, 0.0))
COPIED = TranslatedPart(NBest("* * *", ()), None)


@given(known_signals, st.sampled_from(["margin", "log_prob_per_token", "pmi", "letters_per_token"]), ratios)
def test_more_of_a_good_sign_is_never_worse(known: Signals, name: str, more: float) -> None:
    before = getattr(known, name)
    if before is not None:
        after = min(before + more, 0.0) if name == "log_prob_per_token" else before + more
        assert weigh_signals(dataclasses.replace(known, **{name: after})).value >= weigh_signals(known).value


@given(known_signals)
def test_bounds_and_reasons(known: Signals) -> None:
    found = weigh_signals(known)
    assert 0 < found.value < 1
    assert len(set(found.reasons)) == len(found.reasons)
    assert found.reasons or found.value > FLAG_BELOW  # nobody is told to look without being told why


@pytest.mark.parametrize(
    ("name", "worse", "reason"),
    [
        ("margin", 0.0, "another translation is nearly as likely"),
        ("log_prob_per_token", -2.0, "unlikely words"),
        ("pmi", -4.0, "the context speaks against it"),
        ("length_ratio", 0.3, "much shorter than the source"),
        ("length_ratio", 3.0, "much longer than the source"),
        ("letters_per_token", 1.2, "rare or made-up words"),
    ],
)
def test_every_signal_counts_and_has_its_words(name: str, worse: float, reason: str) -> None:
    changed: dict[str, Any] = {name: worse}
    found = weigh_signals(dataclasses.replace(TYPICAL, **changed))
    assert found.value < weigh_signals(TYPICAL).value
    assert found.reasons[0] == reason
    without: dict[str, Any] = {name: None}
    absent = weigh_signals(dataclasses.replace(TYPICAL, **without))
    assert reason not in absent.reasons and absent.value > found.value


def test_without_signals_the_intercept_decides() -> None:
    assert 0.5 < weigh_signals(Signals(1)).value < 0.9 and weigh_signals(Signals(1)).reasons == ()
    assert {weighing.weight > 0 for weighing in WEIGHINGS.values()} == {True}


def test_signals_are_of_the_chosen_hypothesis() -> None:
    found = signals(GOOD)
    assert found is not None
    assert found.margin == pytest.approx(1.5)
    assert found.log_prob_per_token == pytest.approx(-1.2 / 5)
    assert found.pmi == pytest.approx(0.2)
    assert found.hypotheses == 2
    assert signals(COPIED) is None


@pytest.mark.parametrize(
    ("texts", "scores", "margin"),
    [
        (("Tu vides.", "tu vides!", "vu vides"), (-1.0, -1.1, -3.0), 2.0),  # the second says the same
        (("tu vides", "Tu vides…"), (-1.0, -4.0), 3.0),  # nothing else in a list: at least so far
        (("tu vides", "vu vides"), (-2.0, -1.5), 0.5),  # the second was chosen
        (("हिन्दी", "हनद"), (-1.0, -1.2), 0.2),  # vowel signs are no punctuation
        (("tu vides",), (-1.0,), None),
    ],
)
def test_the_margin_is_to_what_differs(
    texts: tuple[str, ...], scores: tuple[float, ...], margin: float | None
) -> None:
    found = signals(part("you see", *texts, scores=scores))
    assert found is not None
    assert found.margin == (None if margin is None else pytest.approx(margin))


def test_what_was_not_computed_is_absent() -> None:
    found = signals(part("", "tu", scores=(-1.0,), ids=0))
    assert found == Signals(1)


def test_characters_that_are_words_count_for_several() -> None:
    found = signals(part("I would like some tea, please.", "我想喝点茶。", scores=(-1.0,)))
    assert found is not None and found.length_ratio is not None
    assert 0.5 < found.length_ratio < 1.2


def test_a_sentence_is_as_good_as_its_weakest_part() -> None:
    alone = confidence(sentence(BAD))
    assert confidence(sentence(GOOD, BAD, GOOD, COPIED)) == alone
    assert alone is not None and alone.value < FLAG_BELOW < 0.8
    assert confidence(sentence(COPIED)) is None


def test_defects_outweigh_everything() -> None:
    def missing(source: str, parts: Sequence[TranslatedPart], /) -> tuple[str, ...]:
        return ("the lamp is missing",) if "lamp" in source and "lampo" not in parts[0].text else ()

    assert confidence(sentence(GOOD), missing) == confidence(sentence(GOOD))
    wrong = part("you see the lamp", "tu vides la tablo", "vos videz la lampo", scores=(-1.0, -2.5))
    sound, found = confidence(sentence(wrong)), confidence(sentence(wrong), missing)
    assert sound is not None and sound.value > 0.8
    assert found == Confidence(DEFECTIVE, ("the lamp is missing", *sound.reasons))
    weak = confidence(sentence(BAD), lambda source, parts: ("x",))
    assert weak is not None and weak.value <= DEFECTIVE and weak.reasons[0] == "x"


def test_json_has_a_confidence_and_flags_only_where_there_is_doubt() -> None:
    good, bad, copied = json_records(Translation(0, 0, "…", (GOOD, BAD, COPIED)))
    assert good["confidence"] > FLAG_BELOW > bad["confidence"] and "flags" not in good
    assert "much shorter than the source" in bad["flags"]
    assert "confidence" not in copied and "flags" not in copied
    (strict,) = json_records(sentence(GOOD), Judge(below=1.0))
    assert strict["confidence"] == good["confidence"] and "flags" in strict
    assert text_record(sentence(GOOD, BAD), Judge()) == {
        "text": "tu vides la lampo tu",
        "confidence": bad["confidence"],
        "flags": bad["flags"],
    }
    assert text_record(sentence(COPIED), Judge()) == {"text": "* * *"}


def test_doubts_are_the_same_as_they_come_and_from_a_journal() -> None:
    judge = Judge()
    translations = [sentence(GOOD), dataclasses.replace(sentence(BAD), sentence=1), sentence(COPIED)]
    watched = FlagCollector(judge)
    assert list(watched.watch(translations)) == translations and watched.sentences == 3
    (doubt,) = watched.found
    assert (doubt.sentence, doubt.text) == (1, "tu")
    rounded = dataclasses.replace(doubt, confidence=round(doubt.confidence, 3))
    sources = [Document.of([GOOD.source, BAD.source])]
    for kept in (lambda one: json_records(one, judge), lambda one: text_record(one, judge)):
        outputs = {(0, one.sentence): kept(one) for one in reversed(translations[:2])}
        assert list(flagged_sentences(outputs, sources)) == [rounded]


TABLE = {
    "good day": {"bondia": -0.5, "bondia senor": -0.9},
    "you see the lamp by the door": {"tu": -1.0, "vu": -1.01},
    "you go": {"tu vades": -0.8, "vos vadez": -1.4},
}


@pytest.mark.parametrize("json_lines", [False, True])
def test_what_was_done_before_it_was_interrupted_is_not_forgotten(tmp_path: Path, json_lines: bool) -> None:
    source = tmp_path / "in.txt"
    source.write_text("\n".join([*TABLE] * 30))
    file = read_text_file(source, language="en", lines=True)

    def run(name: str, *, resume: bool = False) -> list[FlaggedSentence]:
        translator = Translator(ModelSet(TableNMT(TABLE), TableLM({})))
        plan = OutputPlan((tmp_path / name,), tmp_path / f"{name}.cadec-journal")
        work = FileTranslation(translator, [file], plan=plan, below=0.6)
        return work.to_files(json_lines=json_lines, resume=resume)

    whole = run("whole")
    assert [doubt.sentence for doubt in whole] == [3 * number + 1 for number in range(30)]

    def stopped(self: Journal, document: int, sentence: int, output: object) -> None:
        add(self, document, sentence, output)
        if sentence == 70:
            raise KeyboardInterrupt

    add = Journal.add
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "add", stopped)
        with pytest.raises(Interrupted):
            run("out")
    assert run("out", resume=True) == whole
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
