"""What translations show of how they are said: forms of address in verbs, and the speaker's gender."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.address import ADDRESS_LANGUAGES
from cadec_cli.text.address_verbs import other_forms, verb_forms
from cadec_cli.text.manner import Manner, agreement, agreements, shown
from cadec_cli.text.speaker_gender import ADDRESSEE, SPEAKER, in_gender, person_genders


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Знаешь, я устал.", "ru", "T"),
        ("Знаете, я устал.", "ru", "V"),
        ("Не беспокойтесь обо мне.", "ru", "V"),
        ("Не беспокойся обо мне.", "ru", "T"),
        ("Позвоните мне, когда вернешься домой.", "ru", "TV"),
        ("В этом кабинете лишь мышь.", "ru", ""),
        ("О чём вы говорите?", "ru", "V"),
        ("Він каже, що знаєш.", "uk", "T"),
        ("Viens avec moi.", "fr", "T"),
        ("Il vient chez moi.", "fr", ""),
        ("Assez de nez !", "fr", ""),
        ("N'oubliez pas.", "fr", "V"),
        ("Je montre la rue.", "fr", ""),
        ("Alors montre la rue.", "fr", "T"),
        ("Du bist da.", "de", "T"),
        ("It rains.", "en", ""),
    ],
)
def test_forms_of_address_with_verbs(text: str, language: str, expected: str) -> None:
    (found,) = shown((text,), language)
    assert "".join(sorted(found & {"T", "V"})) == expected


def test_an_imperative_is_known_by_its_counterpart() -> None:
    assert [set(one) for one in shown(("Не рисуй.", "Не рисуйте."), "ru")] == [{"T"}, {"V"}]
    assert [set(one) for one in shown(("Не рисуй.", "Не рисуем."), "ru")] == [set(), set()]
    found = shown(("Colorie-le.", "Coloriez-le.", "Il colorie."), "fr")
    assert [set(one) for one in found] == [{"T"}, {"V"}, set()]


@pytest.mark.parametrize(
    ("familiar", "polite", "language"),
    [
        ("Не рисуй, Беги и садись.", "Не рисуйте, Бегите и садитесь.", "ru"),
        ("Не бойся.", "Не бойтесь.", "ru"),
        ("Ne pars pas, viens et attends.", "Ne partez pas, venez et attendez.", "fr"),
        ("Montre-moi.", "Montrez-moi.", "fr"),
    ],
)
def test_imperatives_in_the_other_form(familiar: str, polite: str, language: str) -> None:
    def changed(text: str, wanted: str) -> str:
        proposals = {one.start: one for one in other_forms(text, language, wanted)}
        for one in sorted(proposals.values(), key=lambda one: -one.start):
            text = text[: one.start] + one.word + text[one.end :]
        return text

    assert changed(familiar, "V") == polite
    proposed = {one.word.lower() for one in other_forms(polite, language, "T")}
    expected = set(verb_forms(familiar, language).words) - verb_forms(polite, language).words
    assert expected <= proposed


@pytest.mark.parametrize(
    ("masculine", "feminine", "language"),
    [
        ("Я знал, что ты пришла.", "Я знала, что ты пришла.", "ru"),
        ("Я рад, что смог помочь.", "Я рада, что смогла помочь.", "ru"),
        ("Когда я пришёл, она спала.", "Когда я пришла, она спала.", "ru"),
        ("Я вышел, и он ушёл.", "Я вышла, и он ушёл.", "ru"),
        ("Я испугался. Он тоже боялся.", "Я испугалась. Он тоже боялся.", "ru"),
        ("Je suis allé à Paris.", "Je suis allée à Paris.", "fr"),
        ("J'étais vraiment fatigué et inquiet.", "J'étais vraiment fatiguée et inquiète.", "fr"),
        ("Je ne suis pas sûr.", "Je ne suis pas sûre.", "fr"),
        ("Je suis heureux d'être seul.", "Je suis heureuse d'être seul.", "fr"),  # what is far stays
    ],
)
def test_the_gender_of_the_speaker(masculine: str, feminine: str, language: str) -> None:
    assert person_genders(masculine, language) == {"m"}
    assert person_genders(feminine, language) == {"f"}
    assert in_gender(masculine, language, "f") == feminine
    assert in_gender(feminine, language, "m") == masculine
    assert in_gender(feminine, language, "f") == feminine


@pytest.mark.parametrize(
    ("masculine", "feminine", "language"),
    [
        ("Я знал, что ты меня забыл.", "Я знал, что ты меня забыла.", "ru"),
        ("Ты готов?", "Ты готова?", "ru"),
        ("Tu es prêt ?", "Tu es prête ?", "fr"),
        ("Es-tu fatigué ?", "Es-tu fatiguée ?", "fr"),
        ("Vous n'êtes pas venu.", "Vous n'êtes pas venue.", "fr"),
    ],
)
def test_the_gender_of_the_addressee(masculine: str, feminine: str, language: str) -> None:
    assert person_genders(masculine, language, ADDRESSEE) == {"m"}
    assert in_gender(masculine, language, "f", ADDRESSEE) == feminine
    assert in_gender(feminine, language, "m", ADDRESSEE) == masculine
    assert Manner(language, "", "", "F").in_genders(masculine) == feminine


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Мы знали.", "ru"),
        ("Мама сказала, что придёт.", "ru"),
        ("Я думаю, она знала.", "ru"),
        ("Я тебя люблю.", "ru"),
        ("Я верю тебе из самого начала, с начала.", "ru"),
        ("Je suis triste.", "fr"),
        ("Je suis ici.", "fr"),
        ("Elle est allée.", "fr"),
        ("I was sure.", "en"),
    ],
)
def test_what_does_not_tell_a_gender(text: str, language: str) -> None:
    assert person_genders(text, language) == frozenset()
    assert in_gender(text, language, "f") == text == in_gender(text, language, "m")


def test_both_forms_are_not_as_demanded() -> None:
    assert agreement("V", frozenset("V")) is True
    assert agreement("V", frozenset("TV")) is False
    assert agreement("V", frozenset("f")) is None
    manner = Manner("ru", "V", "f")
    assert agreements(manner, ["Я знала вас.", "Я знал вас.", "Дождь."]) == [
        [True, True, None],
        [True, False, None],
    ]


WORDS = [
    "я",
    "Я",
    "ты",
    "вы",
    "знал",
    "знала",
    "пришёл",
    "рад",
    "рада",
    "не",
    "уходи",
    "уходите",
    ",",
    ".",
    "!",
    "je",
    "j'",
    "suis",
    "ne",
    "allé",
    "allée",
    "viens",
    "venez",
]


@given(
    st.lists(st.sampled_from([*WORDS, "ешь", "ез", "\u0301", "’"]), max_size=12),
    st.sampled_from(ADDRESS_LANGUAGES),
)
def test_any_text_has_forms(words: list[str], language: str) -> None:
    text = " ".join(words)
    (found,) = shown((text,), language)
    assert found <= {"T", "V", "f", "m", "F", "M"}
    for person in (SPEAKER, ADDRESSEE):
        for gender, other in (("f", "m"), ("m", "f")):
            if in_gender(text, language, gender, person) != text:
                assert other in person_genders(text, language, person)
    for one in other_forms(text, language, "V"):
        assert 0 <= one.start < one.end <= len(text)
