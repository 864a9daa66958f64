"""Names and their renderings, found by counting in small texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.glossary.reader import glossary_lines, read_glossary
from cadec_cli.text.name_memory import DECISIVE, FoundName, NameMemory, NameSample, misspelt

FILLERS = (("He went away.", "Он ушёл."), ("It was late.", "Было поздно."))
AURELIA = (
    ("Then Aurelia left.", "Тогда Аурелия ушла."),
    ("I saw Aurelia.", "Я видел Аурелию."),
    ("It was Aurelia's hat.", "Это была шляпа Аурелии."),
)


def learnt(*pairs: tuple[str, str | dict[str, float]], target: str = "ru", **sure: str) -> NameMemory:
    """A memory of sentences with one translation each, or several with their probabilities."""
    memory = NameMemory("en", target)
    for source, said in (*pairs, *FILLERS):
        memory.read(source)
        memory.learn(source, list(said.items()) if isinstance(said, dict) else [(said, 1.0)])
    for source, text in sure.items():
        memory.read(source)
        memory.learn(source, [(text, 1.0)], sure=True)
    return memory


def test_a_rendering_has_its_forms() -> None:
    memory = learnt(*AURELIA)
    assert memory.all == [FoundName("Aurelia", ("Аурелии", "Аурелию", "Аурелия"))]
    (mention,) = memory.glossary("Give it to Aurelia!").mentions("Give it to Aurelia!")  # type: ignore[union-attr]
    assert mention.rendering("Дай Аурелией!") == "Аурелией"  # a form that was never seen
    assert mention.rendering("Дай Аурелиной!") is None
    assert memory.glossary("Nobody came.") is None


def test_the_best_supported_rendering_wins() -> None:
    memory = learnt(
        ("Then Aurelia left.", {"Тогда Аурелия ушла.": 0.4, "Тогда Аврелия ушла.": 0.6}),
        ("I saw Aurelia.", {"Я видел Аурелию.": 0.9, "Я видел Аврелию.": 0.1}),
        ("Where is Aurelia?", {"Где Аурелия?": 0.5, "Где она?": 0.5}),
    )
    (found,) = memory.all
    assert set(found.forms) == {"Аурелия", "Аурелию"} and found.others == {"аврелия", "аврелию"}


def test_names_that_stand_together_are_told_apart_by_others() -> None:
    together = ("Then Aurelia and Hargreave left.", "Тогда Аурелия и Харгрейв ушли.")
    memory = learnt(together, *AURELIA, ("I saw Hargreave.", "Я видел Харгрейва."))
    assert [one.name for one in memory.all] == ["Aurelia", "Hargreave"]
    assert memory.found("hargreave") == FoundName("Hargreave", ("Харгрейв", "Харгрейва"))


def test_spelling_decides_where_counts_do_not() -> None:
    pair = ("Then Aurelia met Tobias.", "Тогда Аурелия встретила Тобиаса.")
    memory = learnt(pair, ("I saw Aurelia and Tobias.", "Я видел Аурелию и Тобиаса."))
    assert {one.name: one.forms[0][:3] for one in memory.all} == {"Aurelia": "Аур", "Tobias": "Тоб"}


@pytest.mark.parametrize(
    "pairs",
    [
        AURELIA[:1],  # once
        (("Run to the river!", "К реке!"), ("I saw the river.", "Я видел реку.")),  # no name
        (("Then Rose left.", "Роза ушла."), ("I saw Rose rise.", "Я видел Розу."), ("A rose.", "Роза.")),
        (("Then Aurelia left.", "Тогда она ушла."), ("I saw Aurelia.", "Я её видел.")),  # pronouns
        (
            ("Then Kestrel left.", "Тогда Пустельга ушла."),
            ("I saw Kestrel.", "Я видел Пустельгу."),
        ),  # too few
        (("THEN AURELIA LEFT.", "АУРЕЛИЯ УШЛА."), ("I SAW AURELIA.", "Я ВИДЕЛ АУРЕЛИЮ.")),
    ],
)
def test_what_is_doubtful_is_no_name(pairs: tuple[tuple[str, str], ...]) -> None:
    assert learnt(*pairs).all == []


def test_a_name_that_is_translated_needs_more_sentences() -> None:
    of_ship = [
        (f"{verb} the Kestrel.", f"{said} Пустельгу.") for verb, said in zip("abcd", "абвг", strict=True)
    ]
    assert [one.forms for one in learnt(*of_ship).all] == [("Пустельгу",)]


def test_where_names_have_one_form_another_spelling_is_another_rendering() -> None:
    pairs = (
        ("Then Aurelia left.", {"Puis Aurélie partit.": 0.7, "Puis Aurelia partit.": 0.3}),
        ("I saw Aurelia.", {"J'ai vu Aurélie.": 0.7, "J'ai vu Aurélia.": 0.3}),
    )
    (found,) = learnt(*pairs, target="fr").all
    assert found.forms == ("Aurélie",) and found.others == {"aurelia", "aurélia"}
    assert misspelt("Aurélia est là.", found, "fr") == ["Aurélia"]
    assert misspelt("Elle est là. Oui.", found, "fr") == []


def test_a_person_decides() -> None:
    memory = learnt(*AURELIA, **{"Then Aurelia came.": "Тогда пришла Орелия."})
    (found,) = memory.all
    assert found.forms == ("Орелия",) and "аурелия" in found.others
    memory.learn("Then Aurelia came.", [("Тогда пришла Аурелия.", 1.0)], sure=True)
    assert memory.all[0].forms[0].startswith("Аурели")


def test_the_first_sentences_decide() -> None:
    memory = NameMemory("en", "ru")
    for number in range(3 * DECISIVE):
        source = f"He saw Aurelia {number} times."
        memory.read(source)
        assert memory.is_decisive(source) == (number < DECISIVE)
        said = "Аурелию" if number < DECISIVE else "Ореля"
        memory.learn(source, [(f"Он видел {said} {number} раз.", 1.0)])
    (found,) = memory.all
    assert found.forms == ("Аурелию",) and not found.others


@given(st.lists(st.sampled_from(AURELIA + FILLERS), max_size=12))
def test_a_settled_memory_says_the_same(pairs: list[tuple[str, str]]) -> None:
    memory = learnt(*pairs)
    before = memory.all
    memory.settle()
    assert memory.all == before
    memory.learn("Then Aurelia left.", [("Ореля.", 1.0)])
    assert memory.all == before


@given(st.lists(st.text("AaBb .’'<>i\n", max_size=20), max_size=8), st.sampled_from(("en", "ru", "de", "")))
def test_any_text_is_read(texts: list[str], language: str) -> None:
    sample = NameSample.of(texts, language)
    assert set(sample.sentences) <= set(texts) and (sample.names or not sample.sentences)
    memory = NameMemory(language, language, sample.names)
    for text in texts:
        memory.read(text)
        memory.learn(text, [(text, 1.0), (text.lower(), 0.0)])
    for found in memory.all:
        assert found.name.lower() in sample.names and found.forms
        read_glossary([glossary_lines({found.name: found.forms})], language)


def test_a_sample_has_the_first_sentences_of_each_name() -> None:
    texts = [f"He saw Aurelia {number} times." for number in range(100)] + ["Is Tobias here?", "No Tobias."]
    sample = NameSample.of(texts, "en")
    assert sample.names == {"aurelia", "tobias"} and sample.sentences == (*texts[:DECISIVE], *texts[-2:])
    assert NameSample.of(texts[:1], "en") == NameSample() and not NameSample().key
