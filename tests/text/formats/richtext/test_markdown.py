"""Markdown: what is a sentence, what is kept, and that the marks of a page stay whatever its words become."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.marked_texts import (
    page_shape,
    read,
    scrambled,
    sentences,
    translated,
    unchanged,
    upper,
    without_tags,
)

ROOT = Path(__file__).parents[4]
PAGE = """---
title: A page
---
# The *old* lighthouse #

She came **late. He** had [a letter](http://x.org "t") and
`code` in it, 2 * 3 = 6 \\*not\\* &amp; <kbd>Ctrl</kbd>+<kbd>C</kbd>.
[![badge](a.svg)](b) ![A picture](c.png) See [ref] or [this one][ref] <https://a.b/c_d>.

> Quoted text is
> wrapped here. It ends.

- [ ] A task
- An item with ~~struck~~ words\x20\x20
  and a break

| Name | What **it** is |
|------|------|
| `two` | a thing |

Setext title
============

```python
code("x")
```

    indented code

<details><summary>Click me</summary>

Inside **it**.

</details>

[ref]: http://y.org
"""


def shape(page: str) -> list[tuple[str, str]]:
    return page_shape(page, "markdown")


def test_sentences_in_reading_order() -> None:
    documents, _ = read(PAGE, "markdown")
    assert len(documents) == 1
    assert sentences(documents) == [
        "The <em>old</em> lighthouse",
        "A picture",
        "She came <strong>late.</strong>",
        "<strong>He</strong> had <a>a letter</a> and `code` in it, 2 * 3 = 6 *not* & `Ctrl+C`.",
        "See <a>ref</a> or <a2>this one</a2> <https://a.b/c_d>.",
        "Quoted text is wrapped here.",
        "It ends.",
        "[ ] A task",
        "An item with <s>struck</s> words<br/> and a break",
        "Name",
        "What <strong>it</strong> is",
        "a thing",
        "Setext title",
        "Click me",
        "Inside <strong>it</strong>.",
    ]


def test_all_but_words_stays() -> None:
    assert translated(PAGE, "markdown", unchanged).decode() == PAGE
    page = translated(PAGE, "markdown", upper).decode()
    assert shape(page) == shape(PAGE)
    assert "> QUOTED TEXT IS WRAPPED\n> HERE. IT ENDS.\n" in page
    assert "[REF][ref] OR [THIS ONE][ref] <https://a.b/c_d>." in page
    assert "<summary>CLICK ME</summary>" in page and '[A LETTER](http://x.org "t")' in page
    assert page.startswith("---\ntitle: A page\n---\n# THE *OLD* LIGHTHOUSE #\n")


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_stay(end: str) -> None:
    page = PAGE.replace("\n", end)
    assert translated(page, "markdown", unchanged).decode() == page
    assert translated(page, "markdown", upper).decode().count(end) == page.count(end)


@pytest.mark.parametrize(
    ("page", "translation", "wanted"),
    [
        ("It is\n", "- Il est", "\\- Il est\n"),
        ("It is\n", "1. Il", "1\\. Il\n"),
        ("It is\n", "# Il", "\\# Il\n"),
        ("It is\n", "a *b* _c_ `d` <e> [f](g) &amp; ~~h~~ i_j\\*", None),
        ("It is\n", "a * b 2 * 3 snake_case_name a & b 1 < 2", "a * b 2 * 3 snake_case_name a & b 1 < 2\n"),
        ("| It | is |\n|---|---|\n", "a | b", "| a \\| b | a \\| b |\n|---|---|\n"),
        ("| b\\|a | a |\n|---|---|\n", "x", "| b\\|a | x |\n|---|---|\n"),
        (
            "> - | a | a b |\n>   |---|---|\n>   | 1 | a |\n",
            "x",
            "> - | x | x |\n>   |---|---|\n>   | 1 | x |\n",
        ),
        ("a | a\n--|--\n |a\n1 | a\n", "x", "x | x\n--|--\n |x\n1 | x\n"),
        ("*It* is\n", "<em>avant</em>après", "*avant*après\n"),
        ("_It_ is\n", "<em>avant</em>après", "<em>avant</em>après\n"),
        ("**It** is\n", "<strong>«avant»</strong>après", "<strong>«avant»</strong>après\n"),
    ],
)
def test_translations_are_read_as_text(page: str, translation: str, wanted: str | None) -> None:
    found = translated(page, "markdown", lambda _: translation).decode()
    if wanted is not None:
        assert found == wanted
    if "<" not in found:
        assert shape(found) == shape(page)


MARKS = st.sampled_from(
    [
        "*",
        "**",
        "_",
        "`",
        "[",
        "](a)",
        "]",
        "~~",
        "<b>",
        "</b>",
        "![",
        "\\",
        "|",
        "&amp;",
        "<!-- a -->",
        "<br>",
    ]
)
STARTS = st.sampled_from(
    ["# ", "> ", "- ", "1. ", "    ", "```\n", "| a | b |\n|---|---|\n| ", "", "", "[a]: b\n"]
)
WORDS = st.sampled_from(["It is ", "late. ", "She", " and ", "\n", "\n\n", "  \n", "é", "2 "])
PAGES = st.lists(st.one_of(WORDS, WORDS, MARKS, STARTS), max_size=14).map("".join)


@given(PAGES, st.integers())
@settings(max_examples=200)
def test_any_page(page: str, seed: int) -> None:
    assert translated(page, "markdown", unchanged).decode() == page
    for translate in (upper, without_tags, scrambled(seed)):
        translated(page, "markdown", translate)


INLINE = st.sampled_from(
    [
        "It **was late**.",
        "_She_ came",
        "`code` and",
        "[a *link*](b)",
        "~~no~~!",
        "x <b>y</b>",
        "![A cat](d)",
        "two\nlines",
    ]
)


@given(st.lists(INLINE, min_size=1, max_size=5).map(" ".join), st.sampled_from(["", "# ", "> ", "- ", "1. "]))
@settings(max_examples=100)
def test_marks_stay_around_any_words(text: str, start: str) -> None:
    page = start + (text.replace("\n", " ") if start in ("# ", "> ") else text.replace("\n", "\n   ")) + "\n"
    for translate in (upper, without_tags):
        assert sorted(_kinds(translated(page, "markdown", translate).decode())) == sorted(_kinds(page))


def _kinds(page: str) -> list[str]:
    """Return the marks of a page, whether they are written as Markdown or as HTML."""
    names = {"<em>": "em_open", "</em>": "em_close", "<strong>": "strong_open", "</strong>": "strong_close"}
    names |= {"<del>": "s_open", "</del>": "s_close"}
    return [names.get(content, kind) if kind == "html_inline" else kind for kind, content in shape(page)]


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "docs/architecture.md", "docs/translating.md"])
def test_real_pages(name: str) -> None:
    page = (ROOT / name).read_text("utf-8")
    assert translated(page, "markdown", unchanged).decode() == page
    assert shape(translated(page, "markdown", upper).decode()) == shape(page)


@pytest.mark.parametrize("part", ["*a ", "[", "](", "`", "> ", "| ", "<b>", "![", "_a_ ", "- a\n", "&", "\\"])
def test_time_is_bounded(part: str) -> None:
    page = part * 3000
    assert translated(page, "markdown", unchanged).decode() == page


def test_a_head_without_an_end_is_text() -> None:
    page = "---\r\n" + "a: b\r\n" * 500
    assert translated(page, "markdown", unchanged).decode() == page
