"""The splitter finds the sentences a reader would, and never loses a character between them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.sentences import sentence_spans, split_sentences

# Sentences are separated by | in the expected column.
ENGLISH = [
    ("Hello.", "Hello."),
    ("Hello. How are you?", "Hello.|How are you?"),
    ("I saw him. <i>I am tired.</i> <b>Go</b> home.", "I saw him.|<i>I am tired.</i>|<b>Go</b> home."),
    ("It cost 5 < 6. or 7 > 6.", "It cost 5 < 6. or 7 > 6."),
    ("Stop! Now! Really?!", "Stop!|Now!|Really?!"),
    ("Mr. Smith met Mrs. Lee. They left.", "Mr. Smith met Mrs. Lee.|They left."),
    ("Dr. No is a film. I saw it.", "Dr. No is a film.|I saw it."),
    ("J. R. R. Tolkien wrote it. It is long.", "J. R. R. Tolkien wrote it.|It is long."),
    ("J.K. Rowling wrote it. It is long.", "J.K. Rowling wrote it.|It is long."),
    ("George W. Bush left. He waved.", "George W. Bush left.|He waved."),
    ("He moved to Washington, D.C. He liked it.", "He moved to Washington, D.C.|He liked it."),
    ("The U.S. Army came. We left.", "The U.S. Army came.|We left."),
    ("It cost $3.50. A lot!", "It cost $3.50.|A lot!"),
    ("See p. 5 and fig. 3. Then go on.", "See p. 5 and fig. 3.|Then go on."),
    ("No. 5 is alive. No. It is not.", "No. 5 is alive.|No.|It is not."),
    ("Some fruit, e.g. Apples from Kent. Good.", "Some fruit, e.g. Apples from Kent.|Good."),
    ("Apples, pears, etc. The rest is gone.", "Apples, pears, etc.|The rest is gone."),
    ("We met at 5 p.m. on Monday. It rained.", "We met at 5 p.m. on Monday.|It rained."),
    ('"Stop!" he cried. "Or what?" she said.', '"Stop!" he cried.|"Or what?" she said.'),
    ("“Are you sure?” asked Tom. “Yes.”", "“Are you sure?” asked Tom.|“Yes.”"),
    ("He said “No.” She nodded.", "He said “No.”|She nodded."),
    ("Well... maybe. I don't know.", "Well... maybe.|I don't know."),
    ("I… I don't know. You… what?", "I… I don't know.|You… what?"),
    ("What the...? Who is it?", "What the...?|Who is it?"),
    ("He left (at last!). Good.", "He left (at last!).|Good."),
    ("(I know.) Fine.", "(I know.)|Fine."),
    ("- Hi. - Hello.", "- Hi.|- Hello."),
    ("1. First item. 2. Second item.", "1. First item.|2. Second item."),
    ("How many? 12. That is a lot.", "How many?|12.|That is a lot."),
    ("It rang. iPhone users looked up.", "It rang.|iPhone users looked up."),
    ("hello. how are you? fine.", "hello.|how are you?|fine."),
    ("Yes! yes! It works.", "Yes! yes!|It works."),
    ("Go to www.example.com. Then wait.", "Go to www.example.com.|Then wait."),
    ("Good. ...", "Good. ..."),
]
RUSSIAN = [
    ("Привет. Как дела?", "Привет.|Как дела?"),
    ("— Привет! — сказал он. — Как дела?", "— Привет! — сказал он.|— Как дела?"),
    ("— Кто там? — Это я. — Заходи!", "— Кто там?|— Это я.|— Заходи!"),
    ("– Да? – спросила она. – Нет.", "– Да? – спросила она.|– Нет."),
    ("«Да?» — спросил он. Никто не ответил.", "«Да?» — спросил он.|Никто не ответил."),
    ("«Нет!» — «Да!»", "«Нет!»|— «Да!»"),
    ("Он спросил: «Кто там?» Никто не ответил.", "Он спросил: «Кто там?»|Никто не ответил."),
    ("«Нет.» Он ушёл.", "«Нет.»|Он ушёл."),
    ("Т. е. он пришёл. Хорошо.", "Т. е. он пришёл.|Хорошо."),
    ("Все, т.е. Иван и Пётр, ушли.", "Все, т.е. Иван и Пётр, ушли."),
    ("Ну... не знаю. Может быть.", "Ну... не знаю.|Может быть."),
    ("Что?! Нет!.. Да?..", "Что?!|Нет!..|Да?.."),
    ("Да?.. но как? Никак.", "Да?.. но как?|Никак."),
    ("А. С. Пушкин родился в Москве. Он поэт.", "А. С. Пушкин родился в Москве.|Он поэт."),
    ("Ф.М. Достоевский писал. Много.", "Ф.М. Достоевский писал.|Много."),
    ("Иванов И. И. пришёл. Петров тоже.", "Иванов И. И. пришёл.|Петров тоже."),
    ("В 1799 г. в Москве было холодно. Снег.", "В 1799 г. в Москве было холодно.|Снег."),
    ("Это было в 1999 г. Потом он уехал.", "Это было в 1999 г.|Потом он уехал."),
    ("Так жили в XIX в. Они не знали.", "Так жили в XIX в.|Они не знали."),
    ("Яблоки, груши и т. д. Потом ушли.", "Яблоки, груши и т. д.|Потом ушли."),
    ("Яблоки и т. д. и т. п. лежали тут.", "Яблоки и т. д. и т. п. лежали тут."),
    ("См. рис. 1. Далее.", "См. рис. 1.|Далее."),
    ("Об этом в гл. 2. Там всё есть.", "Об этом в гл. 2.|Там всё есть."),
    ("Он жил на ул. Ленина, д. 5, кв. 3. Потом уехал.", "Он жил на ул. Ленина, д. 5, кв. 3.|Потом уехал."),
    ("Завод им. Ленина закрыт. Жаль.", "Завод им. Ленина закрыт.|Жаль."),
    ("Пришёл доц. Петров. Сел.", "Пришёл доц. Петров.|Сел."),
    ("Стоит 3 млн. руб. за штуку. Дорого.", "Стоит 3 млн. руб. за штуку.|Дорого."),
    ("Римляне жили до н. э. недалеко. Да.", "Римляне жили до н. э. недалеко.|Да."),
    ("1. Первое. 2. Второе.", "1. Первое.|2. Второе."),
    ("Он сказал (да!) нет. (Так.) Вот.", "Он сказал (да!) нет.|(Так.)|Вот."),
]
OTHERS = [
    ("zh", "你好。世界！", "你好。|世界！"),
    ("ja", "こんにちは。「はい。」と言った。", "こんにちは。|「はい。」と言った。"),
    ("de", "Das ist z. B. gut. Ja.", "Das ist z. B. gut.|Ja."),
    ("ru-RU", "Т. е. он. Да.", "Т. е. он.|Да."),
    ("tlh", "Hello. World.", "Hello.|World."),
    ("", "Hello. World.", "Hello.|World."),
    ("no such language", "Hello. World.", "Hello.|World."),
]


@pytest.mark.parametrize(("text", "expected"), ENGLISH)
def test_english(text: str, expected: str) -> None:
    assert split_sentences(text, "en") == expected.split("|")


@pytest.mark.parametrize(("text", "expected"), RUSSIAN)
def test_russian(text: str, expected: str) -> None:
    assert split_sentences(text, "ru") == expected.split("|")


@pytest.mark.parametrize(("language", "text", "expected"), OTHERS)
def test_other_languages(language: str, text: str, expected: str) -> None:
    assert split_sentences(text, language) == expected.split("|")


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\x00", "\ufeff", "\u200b \u3000"])
def test_nothing_visible_is_no_sentence(text: str) -> None:
    assert split_sentences(text, "en") == []


@pytest.mark.parametrize("text", ["B\u3000. C", "B\u2028. C", "\ud800 a. B", "A\x85. B"])
def test_what_the_library_chokes_on(text: str) -> None:
    assert "".join(split_sentences(text, "en")).replace(" ", "") != ""


def test_a_long_line() -> None:
    assert split_sentences("word " * 10_000, "en") == [("word " * 10_000).strip()]
    assert len(split_sentences("Word one. " * 10_000, "ru")) == 10_000


@given(
    st.text(alphabet=st.sampled_from("aбBЖ. !?\n\r\x00…«»—\"'()1\u2028\u3000\xa0。」é\u0301\ud800")),
    st.sampled_from(["en", "ru", "ja", "xx"]),
)
def test_spans_are_in_order_and_leave_only_white_space_out(text: str, language: str) -> None:
    position = 0
    for start, end in sentence_spans(text, language):
        assert not text[position:start].strip(" \n\r\x00\u2028\u3000\xa0")
        assert start < end
        position = end
    assert not text[position:].strip(" \n\r\x00\u2028\u3000\xa0")
