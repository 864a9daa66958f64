"""Small texts with known answers: what counts as the same rendering, and what is too doubtful to count."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.evaluation.quality.consistency import Repetition, repetitions

# Fillers keep words from being tied to each other by chance.
FILLERS = [
    ("He went away.", "Он ушёл прочь."),
    ("It was late.", "Было уже поздно."),
    ("Nobody spoke.", "Никто не говорил."),
    ("They laughed again.", "Они снова засмеялись."),
]


def read(*pairs: tuple[str, str], documents: int = 1) -> list[Repetition]:
    whole = [*pairs, *FILLERS]
    sources = [[source for source, _ in whole]] * documents
    return repetitions(sources, [[target for _, target in whole]] * documents, "en", "ru")


def words(found: list[Repetition]) -> list[tuple[str, str, str]]:
    return [(one.word, one.before, one.rendering) for one in found if not one.is_same]


def test_inflected_names_are_the_same() -> None:
    found = read(
        ("I met Delfador.", "Я встретил Дельфадора."),
        ("Then Delfador left.", "Тогда Дельфадор ушёл."),
        ("Give it to Delfador!", "Отдай это Дельфадору!"),
    )
    assert [(one.word, one.is_name, one.is_same, one.sentence) for one in found] == [
        ("Delfador", True, True, 1),
        ("Delfador", True, True, 2),
    ]


def test_a_name_with_two_renderings() -> None:
    found = read(
        ("I met Delfador.", "Я встретил Дельфадора."),
        ("Then Delfador left.", "Тогда Дельфадор ушёл."),
        ("Give it to Delfador!", "Отдай это Делфадору!"),
        ("Who is Delfador?", "Кто такой Дельфадор?"),
    )
    assert len(found) == 3
    assert words(found) == [("Delfador", "Дельфадор", "Делфадору"), ("Delfador", "Делфадору", "Дельфадор")]


def test_a_term_with_two_renderings() -> None:
    """Both are there twice, and nowhere without the word."""
    found = read(
        ("The thief ran.", "Вор бежал."),
        ("A thief hid.", "Спрятался вор."),
        ("This thief sang.", "Пел грабитель."),
        ("My thief came.", "Пришёл мой грабитель."),
    )
    assert [(one.is_name, one.is_same) for one in found] == [(False, True), (False, False), (False, True)]
    assert words(found) == [("thief", "вор", "грабитель")]


def test_other_vowels_and_parts_of_speech_are_the_same() -> None:
    found = read(
        ("The father ran.", "Отец бежал."),
        ("Some father hid.", "Спрятался отец."),
        ("This father sang.", "Мы слышали отца."),
        ("My father came.", "Дождались отца."),
    )
    assert len(found) == 3 and words(found) == []


def test_what_is_doubtful_is_not_counted() -> None:
    once = read(
        ("The thief ran.", "Вор бежал."),
        ("A thief hid.", "Спрятался вор."),
        ("This thief sang.", "Пел грабитель."),  # said once: nothing tells that it renders the thief
        ("My thief came.", "Он пришёл."),  # a pronoun is no other rendering
    )
    assert [one.sentence for one in once] == [1]
    both = read(
        ("I met Ann Black.", "Я встретил Анну Блэк."),
        ("Then Ann Black left.", "Тогда Анна Блэк ушла."),
    )
    assert both == []  # which of the two is Ann?
    assert read(("I met Delfador.", "Я встретил Дельфадора.")) == []


def test_a_rendering_of_several_words_is_one() -> None:
    found = read(
        ("We saw Blackwater.", "Мы видели Чёрную Воду."),
        ("Then Blackwater fell.", "Тогда Чёрная Вода пала."),
        ("Where is Blackwater?", "Где Чёрная Вода?"),
    )
    assert len(found) == 2 and words(found) == []


def test_documents_may_differ() -> None:
    one = [("The thief ran.", "Вор бежал."), ("A thief hid.", "Спрятался вор.")]
    other = [("The thief sang.", "Пел грабитель."), ("My thief came.", "Пришёл мой грабитель.")]
    pairs = [[*one, *FILLERS], [*other, *FILLERS]]
    found = repetitions(
        [[source for source, _ in document] for document in pairs],
        [[target for _, target in document] for document in pairs],
    )
    assert [(each.document, each.sentence, each.is_same) for each in found] == [(0, 1, True), (1, 7, True)]


def test_common_words_are_no_terms() -> None:
    pairs = [("Maybe they knew.", "Возможно, знали."), ("Maybe so.", "Возможно, так.")]
    assert any(one.word == "Maybe" for one in read(*pairs))
    assert not any(one.word == "Maybe" for one in read(*pairs, documents=4))


def test_tags_are_no_words() -> None:
    found = read(
        ("<small>One</small> came.", "<small>Один</small> пришёл."),
        ("<small>Two</small>", "<small>Два</small>"),
    )
    assert found == []


SENTENCES = st.lists(st.text(alphabet="abcAB .'<>", max_size=20), max_size=6)


@given(st.lists(SENTENCES, max_size=3), st.randoms(use_true_random=False))
def test_any_text_can_be_read(documents: list[list[str]], chance: random.Random) -> None:
    """A text that is copied renders every word by itself."""
    found = repetitions(documents, documents)
    assert all(one.is_same for one in found)
    shuffled = [chance.sample(document, len(document)) for document in documents]
    for one in repetitions(documents, shuffled):
        assert 0 <= one.sentence < sum(map(len, documents)) and 0 <= one.document < len(documents)


@pytest.mark.parametrize("shape", [[], [[]], [[], []]])
def test_empty_texts(shape: list[list[str]]) -> None:
    assert repetitions(shape, shape) == []
