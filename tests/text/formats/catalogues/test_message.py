"""Strings taken apart: what is translated, what comes back as it was, and when a translation is not used."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.formats.catalogues.icu import find_arguments
from cadec_cli.text.formats.catalogues.message import Message, Syntax, is_text, read_message
from cadec_cli.text.formats.catalogues.placeholders import keeps_marks, marks

ALL = Syntax(icu=True, shortcuts="_&")
PIECES = st.sampled_from(
    [
        *("word", "Two words.", "E_xit", "_File", "&Open", "&amp;", "%s", "%1$d", "%dpx", "%(name)s", "%%"),
        *("{name}", "{{x}}", "%{n}", "${v}", "$t(a.b)", "@:a.b", "<b>", "</b>", "<br/>", "{", "}", "#", "'"),
        *("{n, plural, one {# cat} other {# cats}}", "{g, select, other {they}}", "{d, date, short}"),
        *("\n", "\r\n", " ", " | ", "\u2028", "\ud800", "é", "日本語。", "{1}", "{2}", "<g1>", "1", "\\"),
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)


def restored(message: Message, change: str = "{}") -> str:
    return message.restore(iter([change.replace("{}", one) for one in message.sentences])).text


@given(TEXTS, st.booleans())
def test_sentences_that_stay_give_the_string(text: str, icu: bool) -> None:
    for syntax in (Syntax(), Syntax(icu=icu, shortcuts="_&")):
        message = read_message(text, "en", syntax)
        assert restored(message) == text
        assert all(one.strip() and "\n" not in one and is_text(one) for one in message.sentences)


@given(TEXTS, st.lists(TEXTS, min_size=1))
def test_placeholders_are_kept_whatever_comes_back(text: str, given_texts: list[str]) -> None:
    message = read_message(text, "en", ALL)
    texts = [given_texts[number % len(given_texts)] for number in range(len(message.sentences))]
    written = message.restore(iter(texts)).text
    # `#` and apostrophes mean something only inside plurals, and a shortcut's mark is at another place
    assert marks(written).counts == marks(text).counts or "\ud800" in text
    assert [one.texts for one in find_arguments(text)] == [] or len(find_arguments(written)) == len(
        find_arguments(text)
    )


@pytest.mark.parametrize(
    ("text", "change", "expected"),
    [
        ("_File", "Le {}", "Le _File"),
        ("E_xit", "Quitter", "_Quitter"),
        ("&Save", "Enregistrer", "Enregi&strer"),
        ("_Open %s", "開く %s", "開く %s(_O)"),
        ("file_name is here", "x {}", "x file_name is here"),
        ("Research & Development", "x {}", "x Research & Development"),
        ("AT&T sells it", "x {}", "x AT&T sells it"),
        ("{n, plural, one {# cat} other {# cats}}", "d'{}", "{n, plural, one {d’# cat} other {d’# cats}}"),
        ("{n,plural,offset:1 =0{nobody} other{{name} and # others}}", "{} %s", None),
        ("It is 50% done", "x {}", "x It is 50% done"),
        ("%d of %s is here", "%s ici de %d", None),  # C takes them in their order
        ("%1$d of %2$s is here", "%2$s ici de %1$d", "%2$s ici de %1$d"),
        ("Hello {name}!", "Bonjour !", None),
        ("Hello {name}!", "Bonjour {name} {name} !", None),
        ("Hello {name}!", "Bonjour {nom} !", None),
        ("Bye now", "Au revoir %s", None),
        ("{n} comments", "{n}", None),
        ("or", "o", "o"),
        ("<b>Bold</b> and not", "<b>Gras et pas", None),
        ("One\n\n  Two words.  Three words.\n", "x {}", "x One\n\n  x Two words.  x Three words.\n"),
        ("Page not found", "Page introuvable.", "Page introuvable"),
        ("Page not found.", "Page introuvable.", "Page introuvable."),
        ("And more", "Et plus, etc.", "Et plus, etc."),
        ("ページがない", "ページ。", "ページ"),
        ("a car | {n} cars", "x {}", "x a car | x {n} cars"),
    ],
)
def test_translations(text: str, change: str, expected: str | None) -> None:
    message = read_message(text, "en", ALL)
    found = message.restore(iter([change.replace("{}", one) for one in message.sentences]))
    assert (found.text, found.complete) == (text if expected is None else expected, expected is not None)


def test_lines_that_were_wrapped_are_one_sentence_and_wrapped_again() -> None:
    text = (
        "  -n, --name   a name\n\nThe file that you wanted to open has been changed\n"
        "by another program since. Do you, in this case,\nwant to read it again?\n\n"
        "A short line\nand another one.\n"
    )
    message = read_message(text, "en", ALL)
    assert message.sentences[1:] == (
        "The file that you wanted to open has been changed by another program since.",
        "Do you, in this case, want to read it again?",
        "A short line",
        "and another one.",
    )
    assert restored(message) == text
    written = restored(message, "Mot à mot : {}")
    assert max(map(len, written.splitlines())) <= 51
    assert " ".join(written.split()).startswith(
        "-n, --name Mot à mot : a name Mot à mot : The file that you wanted to open has been changed by"
    )


def test_what_is_inside_plurals_is_translated_apart() -> None:
    text = "{who, select, male {He has {n, plural, one {# cat} other {# cats}}.} other {They sleep.}}"
    assert read_message(text, "en", ALL).sentences == ("He has {1}.", "{1} cat", "{1} cats", "They sleep.")


@pytest.mark.parametrize(
    "text",
    [
        "{n, plural, one {x}",
        "{n, plural, one {a thing}}",  # no `other`
        "{n, plural, other {a {b}}",
        "{n, plural other {a}}",
        "{n, plural, other {" * 30 + "}}" * 30,
        "{" * 5000,
        "{a, plural, " * 5000,
    ],
)
def test_what_is_not_well_formed_is_text(text: str) -> None:
    message = read_message(text, "en", ALL)
    assert restored(message) == text and restored(message, "x {}")


@pytest.mark.parametrize("text", ["", " ", "%s", "42 %", "{name}: {value}", "<br/>", "a", "…", "A.", "%d%%"])
def test_what_has_no_words_is_not_translated(text: str) -> None:
    assert read_message(text, "en", ALL).sentences == ()


def test_marks_are_compared_in_number_and_kind() -> None:
    assert keeps_marks("%s and %(a)s in {b}", "{b}, %s, %(a)s")
    assert not keeps_marks("%s", "%d")
    assert keeps_marks("100 % sure", "sûr à 100 %")
