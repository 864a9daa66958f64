"""Where the entries of a glossary are in a source, and in a translation."""

import time

import pytest

from cadec_cli.text.glossary.entries import Entry, Glossary, find_form
from cadec_cli.text.protected.spans import find_spans


def found(text: str, *terms: str, language: str = "en", any_case: bool = False) -> list[str]:
    glossary = Glossary([Entry(term, ("x",)) for term in terms], language)
    mentions = glossary.mentions(text, find_spans(text, language), any_case=any_case)
    assert all(text[one.start : one.end] == one.text for one in mentions)
    return [f"{one.entry.source}: {one.text}" for one in mentions]


@pytest.mark.parametrize(
    ("text", "terms", "expected"),
    [
        ("The lamp is out.", ["lamp"], ["lamp: lamp"]),
        ("Lamps! LAMPS, the lamp's oil", ["lamp"], ["lamp: Lamps", "lamp: LAMPS", "lamp: lamp"]),
        ("A clamp, a lampoon and lamped", ["lamp"], []),
        ("cities and witches, wolves, boxes", ["city", "witch", "wolf", "box"], None),
        ("I don't know Don.", ["don"], ["don: Don"]),
        ("Aurelia and aurelia, AURELIA", ["Aurelia"], ["Aurelia: Aurelia", "Aurelia: AURELIA"]),
        ("Aurelia's house", ["Aurelia"], ["Aurelia: Aurelia"]),
        ("the Iron Gate, the iron  gates", ["iron gate"], ["iron gate: Iron Gate", "iron gate: iron  gates"]),
        ("the black knight's horse", ["knight", "black knight"], ["black knight: black knight"]),
        (
            "New York City Hall",
            ["New York", "York City Hall"],
            ["York City Hall: York City Hall"],
        ),
        ("the state of the art", ["state-of-the-art"], []),
        ("a state-of-the-art lamp", ["state-of-the-art"], ["state-of-the-art: state-of-the-art"]),
        ("Use C++ (not C) on .NET", ["C++", ".NET"], ["C++: C++", ".NET: .NET"]),
        ("Press (a|b)* twice", ["(a|b)*", "a.b"], ["(a|b)*: (a|b)*"]),
        ("see https://lamp.org/lamp and the lamp", ["lamp"], ["lamp: lamp"]),
        ("→ next", ["→"], []),  # a symbol is a span, which is kept anyway
        ("O’Brien and O'Brien", ["O'Brien"], ["O'Brien: O’Brien", "O'Brien: O'Brien"]),
        ("", ["lamp"], []),
    ],
)
def test_english(text: str, terms: list[str], expected: list[str] | None) -> None:
    mentions = found(text, *terms)
    assert mentions == expected if expected is not None else len(mentions) == len(terms)


@pytest.mark.parametrize(
    ("language", "text", "term", "expected"),
    [
        ("ru", "Он зажёг лампу.", "лампа", ["лампа: лампу"]),
        ("ru", "По железной дороге", "железная дорога", ["железная дорога: железной дороге"]),
        ("ru", "Это магазин.", "маг", []),
        ("fr", "l'hôtel, les hôtels", "hôtel", ["hôtel: hôtel", "hôtel: hôtels"]),
        ("de", "der König des Landes", "König", ["König: König"]),
        ("zh", "他走进魔法学院了", "魔法学院", ["魔法学院: 魔法学院"]),
        ("ja", "東京タワーへ", "東京タワー", ["東京タワー: 東京タワー"]),
        ("ko", "학교에서", "학교", ["학교: 학교"]),
        ("th", "ฉันไปโรงเรียน", "โรงเรียน", ["โรงเรียน: โรงเรียน"]),
        ("hi", "हिन्दी में", "हिन्दी", ["हिन्दी: हिन्दी"]),
    ],
)
def test_other_languages(language: str, text: str, term: str, expected: list[str]) -> None:
    assert found(text, term, language=language) == expected


def test_an_exact_match_comes_before_a_form() -> None:
    assert found("la porte", "port", "porte", language="fr") == ["porte: porte"]


def test_the_longest_wins_without_spaces_too() -> None:
    assert found("魔法学院", "魔法", "学院", "魔法学院", language="zh") == ["魔法学院: 魔法学院"]


def test_lost_capitals_do_not_count() -> None:
    assert found("run to aurelia", "Aurelia") == []
    assert found("run to aurelia", "Aurelia", any_case=True) == ["Aurelia: aurelia"]


def test_accents_in_two_characters() -> None:
    assert found("le cafe\u0301", "caf\u00e9", language="fr") == ["caf\u00e9: cafe\u0301"]


@pytest.mark.parametrize(
    ("target", "text", "expected"),
    [
        ("лампа", "Он зажёг лампу.", "лампу"),
        ("лампа", "Лампы горят, и лампа", "лампа"),  # exactly, rather than another form
        ("лампа", "Лампадками горит", None),
        ("Аурелия", "Я вижу аурелию", None),
        ("Аурелия", "Я ВИЖУ АУРЕЛИЮ", "АУРЕЛИЮ"),
        ("Чёрный рыцарь", "За Чёрным рыцарем", "Чёрным рыцарем"),
        ("Чёрный рыцарь", "Чёрный, рыцарь", None),
        ("l’eau", "dans l'eau froide", "l'eau"),
        ("灯", "点灯了", "灯"),
        ("НАСА", "В НАСА сказали", "НАСА"),
        ("C++", "на C++ и C", "C++"),
        ("C++", "на C", None),
        ("(", "a ( b", "("),
        ("лампа", "", None),
        ("Харгрив", "Харги смотрел", None),
        ("лампа", "горит лампами", "лампами"),
    ],
)
def test_renderings(target: str, text: str, expected: str | None) -> None:
    place = find_form(target, text)
    assert (None if place is None else text[place[0] : place[1]]) == expected


def test_any_of_the_targets() -> None:
    (mention,) = Glossary([Entry("mage", ("маг", "волшебник"))], "en").mentions("a mage")
    assert mention.rendering("Он волшебник.") == "волшебник"
    assert mention.rendering("Он колдун.") is None


def test_what_is_kept_is_kept_exactly() -> None:
    entry = Entry("rosebud", ("rosebud",), keep=True)
    (mention,) = Glossary([entry], "en").mentions("Rosebud!")
    assert mention.rendering("Он сказал: Rosebud") == "Rosebud"
    assert mention.rendering("Он сказал: rosebud") is None
    assert mention.span.text == "Rosebud"


@pytest.mark.parametrize("language", ["en", "ru", "zh"])
def test_a_hundred_thousand_entries_cost_little(language: str) -> None:
    begin = {"en": "lamp", "ru": "лампа", "zh": "灯火"}[language]
    words = [f"{begin}{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{n}" for n in range(100_000)]
    glossary = Glossary([Entry(word, ("x",)) for word in [*words, begin]], language)
    text = f"the {begin} of {words[99_999]} " * 20
    started = time.process_time()
    assert len(glossary.mentions(text)) == 40
    assert time.process_time() - started < 2
