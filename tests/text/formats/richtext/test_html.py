"""Web pages: what is a sentence, what is kept, and that any translation leaves the same elements."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.text.formats.richtext.html import decode_page
from cadec_cli.text.formats.richtext.tokens import Kind, tokens
from tests.helpers.marked_texts import (
    html_text,
    page_shape,
    read,
    scrambled,
    sentences,
    translated,
    unchanged,
    upper,
    without_tags,
)

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Cats &amp; dogs</title>
<meta name="description" content="About &quot;cats&quot;."><style>p > a { b: c }</style></head>
<body class="a"><!-- Not this. -->
<h1>The <em>old</em> lighthouse</h1>
<p>It was <b>late. She</b> left   the
<a href="x?a&amp;b" title="the house">house</a><a id="p1"></a> at <code>ls -l</code>.
<img src=a.png alt="A cat"> Fine.<sup><a href="#n">1</a></sup></p>
<ul><li>One<li>Press <kbd>Ctrl</kbd>+<kbd>C</kbd></ul>
<p translate="no">Not this.</p><input placeholder="Your name">
<p>Use <span class="notranslate">Foo Bar</span>, 1 < 2.</p>
<pre>not this</pre><script>if (a<b) "<p>not this</p>"</script><textarea>not this</textarea>
</body></html>
"""


def test_sentences_in_reading_order() -> None:
    documents, _ = read(PAGE.encode(), "html")
    assert len(documents) == 1
    assert sentences(documents) == [
        "Cats & dogs",
        'About "cats".',
        "The <em>old</em> lighthouse",
        "the house",
        "A cat",
        "It was <b>late.</b>",
        "<b>She</b> left the <a>house</a><a2/> at `ls -l`.",
        "Fine.",
        "One",
        "Press `Ctrl+C`",
        "Your name",
        "Use `Foo Bar`, 1 < 2.",
    ]
    assert [sentence.place for sentence in documents[0].sentences][-2:] == ["line 10", "line 11"]


def test_all_but_words_stays() -> None:
    assert translated(PAGE.encode(), "html", unchanged) == PAGE.encode()
    page = translated(PAGE.encode(), "html", upper)
    assert page_shape(page.decode(), "html") == page_shape(PAGE, "html")
    for kept in ("<p translate", "<pre>", "<!-- Not", "<style>", '<span class="notranslate">'):
        line = next(line for line in PAGE.splitlines() if kept in line)
        part = line[line.index(kept) :][:30]
        assert part.encode() in page
    assert b'<b>LATE. SHE</b> LEFT THE <a href="x?a&amp;b" title="THE HOUSE">HOUSE</a><a id="p1"></a>' in page
    assert b'FINE.<sup><a href="#n">1</a></sup></p>' in page


def test_the_language_is_named() -> None:
    page = translated(b'<html lang="en-GB"><p lang="en">Yes.</p>', "html", unchanged, language="ru")
    assert page == b'<html lang="ru"><p lang="en">Yes.</p>'
    assert translated(b'<html lang="de"><p>Yes.</p>', "html", unchanged, language="ru").startswith(
        b'<html lang="de">'
    )


def test_both_languages() -> None:
    source = b'<title>Late</title><p title="It">It <a id="p1"></a>was <b id="b1">late</b>.</p>'
    page = translated(source, "html", upper, bilingual="above")
    assert page == (
        b'<title>LATE</title><p title="IT">It was <b>late</b>.<br>'
        b'IT <a id="p1"></a>WAS <b id="b1">LATE</b>.</p>'
    )


@pytest.mark.parametrize(
    ("text", "translation", "page"),
    [
        ("a <b>b c</b> d", "A B C D", "A <b>B C</b> D"),
        ("a <b>b</b> and <i>c</i>", "<b>A <i>B</b> C</i>", "<b>A B</b> <i>C</i>"),
        ("a <b>b</b> d", "</b>A<b> D", "<b>A</b> D"),
        ("a <b>b</b> d", "<b>A</b> <x> & 1 < 2", "<b>A</b> &lt;x&gt; &amp; 1 &lt; 2"),
        ("a <code>b</code> d", "A D", "A D <code>b</code>"),
        ("a <code>b</code> d", "`b` `b` a", "<code>b</code> `b` a"),
        ("a<br>b", "A<br/> B", "A<br>B"),
        ("a <a href=1><span>b</span></a> d", "<a>D</a> A", "<a href=1><span>D</span></a> A"),
        ("a <img src=1> b", "A B<img/>", "A B <img src=1>"),
        ("a <img src=1> b", "A<img/>B, C", "A <img src=1> B, C"),
        ("a<img src=1> b", "A B<img/> C", "A B<img src=1> C"),
        ("a <i>b <b>c</b></i>", "<b>A</b> <i>B</i>", "A <i><b>B</b></i>"),
    ],
)
def test_tags_that_come_back_in_odd_ways(text: str, translation: str, page: str) -> None:
    found = translated(f"<p>{text}</p>".encode(), "html", lambda _: translation).decode()
    assert found == f"<p>{page}</p>"


@given(html_text())
@settings(max_examples=150)
def test_unchanged_sentences_give_the_same_bytes(text: str) -> None:
    page = f"<p>{text}</p><p>and</p>".encode()
    assert translated(page, "html", unchanged) == page
    assert translated(page, "html", unchanged, tags=False) == page
    assert not any("\n" in sentence or not sentence.strip() for sentence in sentences(read(page, "html")[0]))


@given(html_text(), st.integers())
@settings(max_examples=150)
def test_any_translation_gives_the_same_elements(text: str, seed: int) -> None:
    page = f"<html><body><p>{text}</p></body></html>".encode()
    for translate, tags in ((upper, True), (without_tags, True), (scrambled(seed), True), (upper, False)):
        found = translated(page, "html", translate, tags=tags)
        wanted = sorted(_tags(page))
        assert sorted(set(_tags(found))) == sorted(set(wanted))
        assert _nested(found)
        if translate is not upper or not tags:
            continue
        assert _tags(found) == _tags(page)


def _tags(page: bytes) -> list[str]:
    """Return the tags of a page, without the texts of attributes."""
    found = [token.raw for token in tokens(page.decode(), xml=False) if token.kind is not Kind.TEXT]
    return [re.sub('alt="[^"]*"', "", one) for one in found]


def _nested(page: bytes) -> bool:
    stack: list[str] = []
    for token in tokens(page.decode(), xml=False):
        if token.kind is Kind.START and not token.empty:
            stack.append(token.name)
        elif token.kind is Kind.END and (not stack or stack.pop() != token.name):
            return False
    return not stack


@given(st.text("<>/ab='\" &;!-[]\n", max_size=60), st.booleans())
def test_tokens_are_the_text(text: str, xml: bool) -> None:
    assert "".join(token.raw for token in tokens(text, xml=xml)) == text
    page = text.encode()
    assert translated(page, "html", unchanged) == page
    translated(page, "html", upper)


@pytest.mark.parametrize(
    "part",
    ["<a ", "<!a>", "<?a>", "<b>", "</b>", "<!--", "&", "<p ='", '<i a="', "<b>x</b> ", "<br>", "`", "<p"],
)
def test_time_is_linear(part: str) -> None:
    page = (part * 20_000).encode()
    assert translated(page, "html", unchanged) == page


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        ("<p>é".encode(), "<p>é", "utf-8"),
        ("<p>é".encode("latin-1"), "<p>é", "cp1252"),
        ("\ufeff<p>é".encode("utf-16-le"), "\ufeff<p>é", "utf-16-le"),
        ('<meta charset="windows-1251"><p>ж'.encode("cp1251"), '<meta charset="windows-1251"><p>ж', "cp1251"),
        (b"<meta charset=iso-8859-1>\x80", "<meta charset=iso-8859-1>€", "cp1252"),
        (b"\x81", "\x81", "latin-1"),
    ],
)
def test_encodings(data: bytes, text: str, encoding: str) -> None:
    assert decode_page(data, "a.html") == (text, encoding)
    assert text.encode(encoding) == data


def test_letters_that_the_encoding_lacks() -> None:
    page = b"<meta charset=iso-8859-1><p>Yes.</p>"
    assert translated(page, "html", lambda _: "Да") == b"<meta charset=iso-8859-1><p>&#1044;&#1072;</p>"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<meta charset=utf-8>\xff", "line 1 is not utf-8"),
        (b"<meta charset=rot13>", "no encoding of pages"),
        (b"<meta charset=punycode>", "no encoding of pages"),
        (b"<meta charset=nothing>", "no encoding of pages"),
    ],
)
def test_pages_in_no_encoding(data: bytes, said: str) -> None:
    with pytest.raises(CadecError, match=said):
        decode_page(data, "a.html")
