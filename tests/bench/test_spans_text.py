"""The text on which the survival of spans is measured: what its annotation says is true of it."""

from collections import Counter

import pytest

from bench.spans import TEXT, Annotated, Span, fates, occurrences, read_annotation

ANNOTATION = read_annotation()


def test_the_annotation_is_of_this_text() -> None:
    assert [row.sentence for row in ANNOTATION] == [
        line for line in TEXT.read_text("utf-8").split("\n") if line
    ]


def test_there_are_enough_spans_of_every_kind_and_sentences_without() -> None:
    kinds = Counter(span.kind for row in ANNOTATION for span in row.spans)
    assert kinds.total() >= 320 and len(kinds) >= 15 and min(kinds.values()) >= 10
    assert sum(not row.spans for row in ANNOTATION) >= 40


def test_spans_stand_in_their_sentences_in_order() -> None:
    for row in ANNOTATION:
        done = 0
        for span in row.spans:
            start = row.sentence.find(span.text, done)
            assert start >= 0, row
            done = start + len(span.text)
            assert span.must and all(occurrences(must, span.text) for must in span.must), row


def test_a_sentence_that_is_copied_keeps_everything_and_an_empty_one_nothing() -> None:
    for row in ANNOTATION:
        assert all(fate.survives and fate.exact for fate in fates(row, row.sentence)), row
        assert not any(fate.survives for fate in fates(row, "")), row


@pytest.mark.parametrize(
    ("translation", "survive", "exact"),
    [
        ("Удалено %d из %d, 17 раз.", [True, True, True], [True, True, True]),
        ("Удалено %d, 17 раз.", [True, False, True], [False, False, True]),
        ("Удалено %d %d %d, 17.", [True, True, True], [False, False, True]),
        ("Удалено %d из %d, 1742.", [True, True, False], [True, True, False]),
    ],
)
def test_one_place_serves_one_span(translation: str, survive: list[bool], exact: list[bool]) -> None:
    spans = [Span("placeholder", "%d", ("%d",))] * 2 + [Span("number", "17", ("17",))]
    found = fates(Annotated("Deleted %d of %d, 17 times.", tuple(spans)), translation)
    assert [fate.survives for fate in found] == survive
    assert [fate.exact for fate in found] == exact
