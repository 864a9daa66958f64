"""The page of a translation draws what it is given, without any model."""

from collections.abc import Sequence

from cadec_cli.decoding.confidence import Judge
from cadec_cli.decoding.explain import ExplainedRow, ExplainedTranslation, Explanation, TokenPMI
from cadec_cli.decoding.translation import Choice, TranslatedPart, Translation
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.objectives import CONDITIONAL, FREE
from cadec_cli.reports.explained import plain_segment, translated_segment
from cadec_cli.reports.page import ReportHypothesis, ReportPart, ReportToken

PART = TranslatedPart(
    NBest("you", (Hypothesis("ты", -1.0), Hypothesis("вы", -1.5))),
    Choice(1, (-1.25, -0.5), {CONDITIONAL: (-2.0, -1.0), FREE: (-1.75, -2.0)}),
)
TRANSLATION = Translation(0, 4, "you", (PART,), place="line 7")
EXPLANATION = Explanation(
    ("Сударь.",),
    (
        ExplainedRow("chosen", -1.5, (TokenPMI("вы", -0.5, -1.5), TokenPMI("</s>", -0.5, -0.5))),
        ExplainedRow("first", -1.0, (TokenPMI("ты", -1.5, -1.25), TokenPMI("</s>", -0.5, -0.5))),
    ),
)


def test_a_segment_has_what_the_explanation_has() -> None:
    found = translated_segment(ExplainedTranslation(TRANSLATION, "ты", [EXPLANATION]), Judge())
    assert (found.label, found.source, found.text, found.compared) == ("7", "you", "вы", "ты")
    assert found.parts == (
        ReportPart(
            (
                ReportHypothesis("вы", -0.5, -1.5, 1.0, True),
                ReportHypothesis("ты", -1.25, -1.0, -0.25, False, "S-NMT's first"),
            ),
            ("Сударь.",),
            (ReportToken("вы", 1.0), ReportToken("</s>", 0.0)),
            (ReportToken("ты", -0.25), ReportToken("</s>", 0.0)),
        ),
    )


def test_what_was_not_asked_for_is_absent() -> None:
    found = translated_segment(ExplainedTranslation(TRANSLATION), Judge())
    assert found.compared is None
    assert [(part.context, part.tokens, part.compared_tokens) for part in found.parts] == [(None, (), ())]
    plain = plain_segment(ExplainedTranslation(TRANSLATION), Judge())
    assert "compared" not in plain and "changed" not in plain
    assert plain["text"] == ["вы"]


def test_a_sentence_is_flagged_as_the_judge_says() -> None:
    def lost_number(source: str, parts: Sequence[TranslatedPart], /) -> tuple[str, ...]:
        return ("25 is missing",)

    for below, flags in ((0.05, ()), (0.5, ("25 is missing",))):
        found = translated_segment(ExplainedTranslation(TRANSLATION), Judge(below, lost_number))
        assert (found.confidence, found.flags) == (0.1, flags)


def test_a_sentence_that_was_only_copied_has_nothing_to_show() -> None:
    copied = Translation(0, 0, "...", (TranslatedPart(NBest("...", ()), None),))
    found = translated_segment(ExplainedTranslation(copied, "...", [Explanation((), ())]), Judge())
    assert (found.text, found.confidence, found.flags, found.parts) == ("...", None, (), (ReportPart(),))
