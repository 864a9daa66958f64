"""Spans that no translation may change: which there are, and which are lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.protected.core import core_between, core_of, parts_of
from cadec_cli.text.protected.spans import find_spans, has_words, lost_spans

SHA512 = "ee26b0dd4af7e749aa1a8ee3c10ae9923f618980772e473f8819a5d4940e0db27ac185f8a0e1d5f84f88bc887fd67b14"
JWT = f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.{'eyJzdWIiOiIxMjM0NTY3ODkw' * 4}.SflKxwRJSMeKKF2QT4fwpMeJf36POk"
BASE64 = "sha512-" + "Q2hhcHRlciBzaXg/IFRoZSBlbmQ+" * 3 + "=="
EXAMPLES = [
    ("Call 555-1234 now.", ["555-1234"]),
    ("3,500,000 people live here.", ["3,500,000"]),
    ("See https://example.com/a?b=c&d=1, please.", ["https://example.com/a?b=c&d=1"]),
    ("It costs $4.99 or 20 € (50 %).", ["$4.99", "20 €", "50 %"]),
    ("Write to bob.smith@mail.co.uk today.", ["bob.smith@mail.co.uk"]),
    ("Hello {name}, %d new messages, %(count)s more.", ["{name}", "%d", "%(count)s"]),
    ("Run `pip install x` or foo_bar() now.", ["`pip install x`", "foo_bar()"]),
    ("Edit config.yaml and /etc/hosts.", ["config.yaml", "/etc/hosts"]),
    ("We met on 2024-05-17 at 5:30 p.m.", ["2024-05-17", "5:30"]),
    ("The 21st century and the 1980s.", ["21st", "1980s"]),
    ("Version v1.2.3-beta is 3.5 GB at 20 °C.", ["v1.2.3-beta", "3.5 GB", "20 °C"]),
    ("It is 5 km away, and 5 men came.", ["5 km", "5"]),
    ("He said Привет, мир and 東京 to me.", ["Привет, мир", "東京"]),
    ("Use --force or -o for $HOME and ${HOME}.", ["--force", "-o", "$HOME", "${HOME}"]),
    ("Call +1 (555) 123-4567 or 8 800 555 35 35", ["+1 (555) 123-4567", "8 800 555 35 35"]),
    ("#hashtag @user ISBN 978-3-16-148410-0", ["#hashtag", "@user", "978-3-16-148410-0"]),
    ("Set MAX_SIZE, the iPhone and MP3 &nbsp; x.", ["MAX_SIZE", "iPhone", "MP3", "&nbsp;"]),
    ("Between 10-20 people, 1/2 cup.", ["10-20", "1/2"]),
    ("Well-known e.g. this and/or that, co-op.", []),
    ("A 5-year-old boy on a 3-day trip, utf-8 and x86-64.", ["5", "3", "utf-8", "x86-64"]),
    ("This is the best.Go now. Hi.so what", []),
    ("Open IMG_2041.JPG, a.tar.gz or ./x/notes.md.", ["IMG_2041.JPG", "a.tar.gz", "./x/notes.md"]),
    ("Hold ⌘, set LOG_LEVEL=debug, call console.log(x).", ["⌘", "LOG_LEVEL=debug", "console.log(x)"]),
    ("No results for :query from 00:1B:44:11:3A:B7.", [":query", "00:1B:44:11:3A:B7"]),
    ("Mr. Smith went home. It's fine - really!", []),
    ("Café Müller, naïve façade.", []),
    ("Go from A -> B => C <- D <=> E, not a->b.", ["->", "=>", "<-", "<=>"]),
    ("Press <kbd>Ctrl</kbd>+<kbd>C</kbd> now.", ["<kbd>Ctrl</kbd>+<kbd>C</kbd>"]),
    (f"The sum {SHA512} is right.", [SHA512]),
    (f"Send {JWT}, please.", [JWT]),
    (f"integrity={BASE64}", [f"integrity={BASE64}"]),
    ("Introduction...........................................................12", []),
    ("Donaudampfschifffahrtselektrizitaetenhauptbetriebswerkbauunterbeamtengesellschaft", []),
]


@pytest.mark.parametrize(("text", "spans"), EXAMPLES)
def test_spans_are_found(text: str, spans: list[str]) -> None:
    assert [span.text for span in find_spans(text, "en")] == spans


@given(st.text(alphabet="ab1 .,:-/@#{}%$`<>é漢Ж\U0001f389", max_size=60))
def test_spans_are_parts_of_the_text_in_order_and_apart(text: str) -> None:
    done = 0
    for span in find_spans(text, "en"):
        assert done <= span.start < span.end and text[span.start : span.end] == span.text
        done = span.end
    assert not lost_spans(find_spans(text, "en"), text)


def test_latin_words_are_foreign_to_nobody_and_without_a_language_nothing_is() -> None:
    assert not find_spans("Он купил Windows", "ru")
    assert [span.text for span in find_spans("Он сказал 東京", "ru")] == ["東京"]
    assert not find_spans("He said Привет")
    assert not find_spans("He said Привет", "tlh")


def test_a_line_in_another_script_has_no_words_to_translate() -> None:
    for line in ("Привет, мир!", "12:30", "— … —", "https://a.example", "`code`"):
        assert not has_words(line, find_spans(line, "en")), line
    assert has_words("I saw Привет", find_spans("I saw Привет", "en"))


def test_what_is_lost_is_told_and_a_number_in_another_is_no_number() -> None:
    spans = find_spans("Call 12 and 12, or 555-1234 on the 3rd.", "en")
    assert lost_spans(spans, "12, 12, 555-1234, 3-го") == []
    assert lost_spans(spans, "12, 555-1234, 3-го") == ["12"]
    assert lost_spans(spans, "12 12 1555-12345 13") == ["555-1234", "3"]


@pytest.mark.parametrize(
    ("source", "translation", "missing"),
    [
        ("It costs $50.", "Это стоит $500.", ["$50"]),
        ("At -5 today", "Сегодня -55", ["-5"]),
        ("He has 1,000 dogs", "У него 1,000,000 собак", ["1,000"]),
        ("Take 3 now", "Возьми 3.50", ["3"]),
        ("Use v1.2 here", "Тут v1.25", ["v1.2"]),
        ("Call foo_bar here", "Тут foo_barbaz", ["foo_bar"]),
        ("Open a.py now", "Открой data.py", ["a.py"]),
        ("I ran 5 of the 5 km", "Я пробежал 5 km", ["5"]),
        ("The 21st of 1980s", "21-й год 1980-х", []),
        ("It is 5 km, 5 miles", "5 миль, 5 km", []),
        ("In 2024.", "В 2024.", []),
    ],
)
def test_a_changed_number_or_name_is_a_lost_one(source: str, translation: str, missing: list[str]) -> None:
    assert lost_spans(find_spans(source, "en"), translation) == missing


@pytest.mark.parametrize(
    ("translation", "kept"),
    [("www.example.com.", True), ("Voir www.example.com-2", False), ("Die www.example.com-Seite", True)],
)
def test_an_address_with_a_number_after_it_is_another(translation: str, kept: bool) -> None:
    spans = find_spans("See www.example.com for more.", "en")
    assert lost_spans(spans, translation) == ([] if kept else ["www.example.com"])


RUNS = [
    "a1=",
    "a1" * 30,
    "a1" * 30 + "..",
    "-",
    "a-",
    "--a",
    "a",
    "_",
    "a.",
    "a/",
    "1.",
    "1-",
    "@a",
    "%",
    "{",
    "[",
    "(",
    "♪",
    "\\",
]


@pytest.mark.parametrize("run", RUNS)
def test_long_runs_of_one_thing_come_to_an_end(run: str) -> None:
    """Patterns that go back and forth over them would take hours."""
    text = (run * 10_000)[:10_000]
    core = core_of(text, "en", speakers=True)
    assert "".join(parts_of(text, speakers=True)) == text
    assert core.before + core.text + core.after == text


def test_many_descriptions_are_many_parts() -> None:
    text = "[abc] " * 2000 + "x"
    assert parts_of(text, speakers=True) == [*["[abc]"] * 2000, "x"]
    assert parts_of(text) == [text]


@pytest.mark.parametrize(
    ("text", "before", "parts"),
    [
        ("JOHN: Who are you?", "JOHN: ", ["JOHN: Who are you?"]),
        ("Three words: Yes, no, maybe.", "", ["Three words: Yes, no, maybe."]),
        ("- MARY: [sighs] Well.", "- MARY: [sighs] ", ["- MARY: [sighs]", "Well."]),
    ],
)
def test_only_subtitles_have_speakers(text: str, before: str, parts: list[str]) -> None:
    assert core_of(text, "en", speakers=True).before == before
    assert parts_of(text, speakers=True) == parts
    assert core_of(text, "en").before == ("- " if text.startswith("-") else "")
    assert parts_of(text) == [text]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("- Good morning. - Good morning.", ["- Good morning.", "- Good morning."]),
        ("-Where is Tom? -He left.", ["-Where is Tom?", "-He left."]),
        ("Are you— - Stop! — Who? – 12.", ["Are you—", "- Stop!", "— Who?", "– 12."]),
        ("- Да? - Нет.", ["- Да?", "- Нет."]),
        ("- yes? - no.", ["- yes?", "- no."]),
        ("- “Yes.” - “No.”", ["- “Yes.”", "- “No.”"]),
        ("— Stop! — he cried. — Stop!", ["— Stop! — he cried.", "— Stop!"]),
        ("- JOHN: Hi. - MARY: Hi.", ["- JOHN: Hi.", "- MARY: Hi."]),
        ("It was – as I said – London.", ["It was – as I said – London."]),
        ("- A well-known man. -5 degrees", ["- A well-known man.", "-5 degrees"]),
        ("- Hi. -", ["- Hi. -"]),
    ],
)
@pytest.mark.parametrize("speakers", [False, True])
def test_every_speaker_of_a_line_is_a_part(text: str, parts: list[str], speakers: bool) -> None:
    assert parts_of(text, speakers=speakers) == parts


@given(st.text(alphabet="aB1 .!-–—“”()[]", max_size=40), st.booleans())
def test_parts_make_up_the_sentence(text: str, speakers: bool) -> None:
    assert " ".join(parts_of(text, speakers=speakers)) == text


@given(st.text(alphabet="aB1 .,:-()[]♪#<>i/é", max_size=40), st.booleans())
def test_what_stands_around_is_enough_to_know_the_core(text: str, speakers: bool) -> None:
    core = core_of(text, "en", speakers=speakers)
    if core.text:
        assert core_between(text, core.before, core.after, "en") == core
