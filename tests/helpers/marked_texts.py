"""Texts with markup, drawn at random, and translations of them that are good or bad."""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable

from hypothesis import strategies as st
from lxml import etree, html
from markdown_it import MarkdownIt

from cadec_cli.extensions import load
from cadec_cli.text.documents import Document
from cadec_cli.text.formats import FORMATS
from cadec_cli.text.formats.layout import BinaryLayout, Layout, Source, SubtitleStyle

TAG = re.compile(r"</?[a-z][a-z0-9]*/?>|`[^`]*`|<https?://[^<>]*>")
WORDS = st.sampled_from(
    [
        "It",
        "was",
        "late.",
        "She",
        "came",
        "home",
        "at 5",
        "pm!",
        "Why?",
        "&amp;",
        "x",
        "1",
        " ",
        "\n",
        "é",
        "…",
    ]
)


def html_text(depth: int = 3, *, void: str = "") -> st.SearchStrategy[str]:
    """Return inline HTML; with `void` of a slash it is XML."""
    words = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
    marks = st.sampled_from(
        [f'<img src="a" alt="A cat"{void}>', f"<br{void}>", '<a id="p1"></a>', "<!-- note -->"]
    )
    copied = st.sampled_from(
        ["<code>ls</code>", "<kbd>A</kbd>", '<b translate="no">Ab Cd</b>', "<sup>1</sup>"]
    )
    leaf = st.one_of(words, words, marks, copied)
    if not depth:
        return leaf
    name = st.sampled_from(["b", "em", "span"])
    inner = st.lists(html_text(depth - 1, void=void), max_size=4).map("".join)
    element = st.tuples(name, inner).map(lambda drawn: f"<{drawn[0]}>{drawn[1]}</{drawn[0]}>")
    return st.lists(st.one_of(leaf, element), min_size=1, max_size=5).map("".join)


def upper(text: str) -> str:
    """Translate into capitals: tags stay on their words."""
    done, written = 0, ""
    for match in TAG.finditer(text):
        written += text[done : match.start()].upper() + match[0]
        done = match.end()
    return written + text[done:].upper()


def without_tags(text: str) -> str:
    """Translate so that all tags are lost."""
    return " ".join(TAG.sub(" ", text).upper().split()) or "X"


def scrambled(seed: int) -> Callable[[str], str]:
    """Return a bad translator: words and tags in any order, some of them lost, some there twice."""
    chance = random.Random(seed)

    def translate(text: str) -> str:
        parts = [part for part in re.split(f"({TAG.pattern}|\\s+)", text) if part and not part.isspace()]
        parts = [part for part in parts for _ in range(chance.choice((0, 1, 1, 1, 2)))]
        chance.shuffle(parts)
        return " ".join(parts) or "X"

    return translate


def read(
    data: bytes | str, kind: str, *, tags: bool = True, **style: str
) -> tuple[tuple[Document, ...], Layout | BinaryLayout]:
    """Read the content of a file."""
    screen = SubtitleStyle(**style)  # type: ignore[arg-type]
    source = Source(data, f"a.{kind}", kind, "en", tags=tags, screen=screen)
    read_documents: tuple[tuple[Document, ...], Layout | BinaryLayout] = load(FORMATS[kind].read)(source)
    return read_documents


def sentences(documents: Iterable[Document]) -> list[str]:
    """Return the sentences of documents."""
    return [text for document in documents for text in document.texts]


def translated(
    data: bytes | str, kind: str, translate: Callable[[str], str], *, tags: bool = True, **style: str
) -> bytes:
    """Return a file with every sentence translated."""
    documents, layout = read(data, kind, tags=tags, **style)
    pieces = layout.restore(translate(text) for text in sentences(documents))
    return b"".join(piece.encode() if isinstance(piece, str) else piece for piece in pieces)


_MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_TEXTS = frozenset(["alt", "title", "placeholder", "content", "lang"])
_KEPT = frozenset(["fence", "code_block", "code_inline", "html_inline"])


def page_shape(page: str, kind: str) -> list[tuple[str, str]]:
    """Return the marks of a page as the library of its format reads them, and what is never translated."""
    if kind == "html":
        root = html.document_fromstring(page.encode(), parser=html.HTMLParser(encoding="utf-8"))
        return [
            (one.tag, str(sorted((key, value) for key, value in one.attrib.items() if key not in _TEXTS)))
            for one in root.iter()
            if isinstance(one.tag, str)
        ]
    return [
        (token.type, token.content if token.type in _KEPT else str(token.attrs.get("href", "")))
        for block in _MARKDOWN.parse(re.sub(r"\A---\n(?:.*\n)*?---\n", "", page))
        for token in (block, *(block.children or ()))
        if token.type not in ("text", "softbreak", "html_block")
    ]


def unchanged(text: str) -> str:
    """Return the sentence itself."""
    return text


def elements(xml: bytes, *ignored: str) -> Counter[str]:
    """Return how often a well-formed text has each element, but for those that are ignored."""
    root = etree.fromstring(re.sub(rb"&(?!amp|lt|gt|quot|apos)[a-z]+;", b" ", xml))
    names = (str(one.tag).rpartition("}")[2] for one in root.iter() if isinstance(one.tag, str))
    return Counter(name for name in names if name not in ignored)
