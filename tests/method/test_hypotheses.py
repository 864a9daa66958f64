"""Lists between models: ids are taken over where the vocabulary is the same, and text elsewhere."""

from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.method.hypotheses import Hypothesis, NBest
from tests.helpers.token_texts import NumberText

TEXT = NumberText(10)
ids_lists = st.lists(st.lists(st.integers(4, 9), min_size=1, max_size=4).map(tuple), max_size=4)


@given(ids_lists)
def test_the_ids_of_the_own_vocabulary_are_taken_as_they_are(ids: list[tuple[int, ...]]) -> None:
    # The text would give other ids: who wrote the list may have cut it as nobody else would.
    nbest = NBest("x", tuple(Hypothesis("p4", -1.0, each) for each in ids), TEXT.identity)
    assert nbest.ids_for(TEXT) == tuple(ids)


@given(ids_lists, st.sampled_from(["", "another vocabulary"]))
def test_other_vocabularies_encode_the_text(ids: list[tuple[int, ...]], vocabulary: str) -> None:
    nbest = NBest("x", tuple(Hypothesis(TEXT.decode(each), -1.0, (99,)) for each in ids), vocabulary)
    assert nbest.ids_for(TEXT) == tuple(ids)


def test_wrap_puts_the_untranslated_text_back() -> None:
    assert NBest("– Hello. ♪", (), before="– ", after=" ♪").wrap("Привет.") == "– Привет. ♪"
