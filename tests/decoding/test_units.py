"""Units are made once and travel to the translation: core, numbers and place."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.decoding.state import part_json, part_of
from cadec_cli.decoding.translator import Translator
from cadec_cli.decoding.units import BATCH, FIRST_BATCH, WAVE, Splitter, batches, waves
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.errors import CadecError
from cadec_cli.method.options import TranslationOptions
from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.protected import core
from cadec_cli.text.protected.core import Affixes, affixes
from tests.helpers.fakes import TableLM, TableNMT

TABLE = {
    "Come here.": {"Venu.": -1.0, "Venu tien.": -2.0},
    "Well.": {"Nu.": -1.0},
    "sighs": {"suspiras": -1.0},
}
FILM = Document(
    (
        Sentence("- JOHN: Come here.", "0:00:01"),
        Sentence("[sighs] Well.", "0:00:03"),
        Sentence("♪", "0:00:05"),
    ),
    speakers=True,
)


def splitter(longest: int = 1000, *, protect: bool = True, cut: bool = True) -> Splitter:
    return Splitter(lambda text: len(text) <= longest, lambda text: [text], "en", protect=protect, cut=cut)


def test_a_unit_knows_its_document_sentence_piece_core_and_place() -> None:
    found = splitter().units(3, FILM)
    assert [(one.document, one.number, one.piece, one.ends_sentence) for one in found] == [
        (3, 0, 0, True),
        (3, 1, 1, False),
        (3, 1, 2, True),
        (3, 2, 3, True),
    ]
    assert [one.text for one in found] == ["- JOHN: Come here.", "[sighs]", "Well.", "♪"]
    assert [one.core.text for one in found] == ["Come here.", "sighs", "Well.", ""]
    assert [one.source.place for one in found] == ["0:00:01", "0:00:03", "0:00:03", "0:00:05"]
    whole = splitter(protect=False).units(0, FILM)
    assert [one.core.text for one in whole] == list(FILM.texts)


def test_a_sentence_that_does_not_fit_is_cut_or_refused() -> None:
    document = Document.of(["one two three four"])
    assert [one.text for one in splitter(9).units(0, document)] == ["one two", "three", "four"]
    with pytest.raises(CadecError, match="sentence 1 is longer"):
        splitter(9, cut=False).units(0, document)


@pytest.mark.parametrize("search", ["rerank", "lattice", "sentence"])
def test_every_core_is_found_once_and_the_place_arrives(search: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()

    def counted(text: str, *, speakers: bool = False) -> Affixes:
        asked[text] += text in (*FILM.texts, *TABLE)
        return affixes(text, speakers=speakers)

    monkeypatch.setattr(core, "affixes", counted)
    translator = Translator(
        ModelSet(TableNMT(TABLE), TableLM({})), TranslationOptions(search=search), language="en"
    )
    found = list(translator.translate(FILM))
    judge = translator.judge()
    assert [judge.of(one) is None for one in found] == [False, False, True]
    assert [(one.text, one.place) for one in found] == [
        ("- JOHN: Venu.", "0:00:01"),
        ("[suspiras] Nu.", "0:00:03"),
        ("♪", "0:00:05"),
    ]
    assert {text for text, count in asked.items() if count} == {*FILM.texts, "Well."}
    assert max(asked.values()) == 1
    assert [part.unit is not None and part.unit.core for one in found for part in one.parts] == [
        unit.core for unit in splitter().units(0, FILM)
    ]


def test_a_part_from_a_file_gets_its_unit_when_it_is_needed() -> None:
    translator = Translator(ModelSet(TableNMT(TABLE), TableLM({})), language="en")
    part = next(translator.translate(FILM)).parts[0]
    stored = part_of(part_json(part))
    assert stored == part and stored.unit is None
    assert translator.with_hypothesis(stored, 1).text == "- JOHN: Venu tien."


documents = st.lists(st.integers(0, 40), max_size=60).map(
    lambda lengths: [[(number, item) for item in range(count)] for number, count in enumerate(lengths)]
)


@given(documents)
def test_waves_are_small_and_have_every_item_once_in_the_order_of_its_document(
    texts: list[list[tuple[int, int]]],
) -> None:
    met: list[list[tuple[int, int]]] = [[] for _ in texts]
    for wave in waves(texts):
        assert 0 < len(list(wave)) <= WAVE
        for number, item in wave:
            met[number].append(item)
        assert wave.ending == {one for one in wave.documents if len(met[one]) == len(texts[one])}
    assert met == texts


@given(documents, st.integers(0, 150))
def test_batches_have_all_waves_and_what_was_taken_is_left_out(
    texts: list[list[tuple[int, int]]], taken: int
) -> None:
    whole = [batch for batch, done in batches(texts) if not done]
    assert [wave for batch in whole for wave in batch] == list(waves(texts))
    sizes = [sum(len(list(wave)) for wave in batch) for batch in whole]
    assert all(size < BATCH + WAVE for size in sizes) and (not sizes or sizes[0] < FIRST_BATCH + WAVE)
    rest = [wave for batch, done in batches(texts, taken=taken) for wave in batch[done:]]
    assert rest == list(waves(texts))[taken:]
    assert [batch for batch, _ in batches(texts, taken=taken)] == whole[
        len(whole) - len(list(batches(texts, taken=taken))) :
    ]
