"""HTML: the text of a page is translated, everything else stays as it is, character by character.

Scripts, styles, `pre` and whatever has `translate="no"` or the class `notranslate` are left alone; code and
keys inside a sentence are copied. Of attributes, `alt`, `title`, `placeholder` and `aria-label` are
translated. The language of the page is named anew if its `html` element names it.

A page says itself which encoding it is in. It is written in the same one, with character references for
letters that the encoding lacks.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from cadec_cli.errors import CadecError
from cadec_cli.text.documents import Document
from cadec_cli.text.formats.layout import Source, finish
from cadec_cli.text.formats.richtext.elements import Grammar, Place, Role, content_of
from cadec_cli.text.formats.richtext.paragraphs import MarkedText
from cadec_cli.text.formats.richtext.tokens import Kind, Token, names
from cadec_cli.text.sentences import base_language

_BLOCKS = names(
    "address article aside base basefont blockquote body button caption center col colgroup dd details"
    " dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head"
    " header hgroup hr html label legend li link main map menu meta nav noframes noscript ol optgroup"
    " option p param search section select slot source summary table tbody td tfoot th thead title tr"
    " track ul"
)
_SKIPPED = names("script style template pre listing xmp plaintext textarea")
_MARKS = names(
    "area applet audio canvas datalist embed iframe img input math meter noembed object output picture"
    " progress rp rt svg video wbr"
)
_COPIED = names("code kbd samp var tt")
_TRANSLATED = frozenset(["alt", "title", "placeholder", "aria-label"])


def role_of(token: Token) -> Role:
    """Return what an element of HTML is to the text."""
    name = token.name.rpartition(":")[2].lower()
    if token.kind is Kind.START and _is_not_translated(token):
        return Role.SKIP if name in _BLOCKS or name in _SKIPPED else Role.COPY
    if name in _SKIPPED:
        return Role.SKIP
    if name in _BLOCKS:
        return Role.BLOCK
    if name == "br":
        return Role.BREAK
    if name in _COPIED:
        return Role.COPY
    return Role.MARK if name in _MARKS else Role.INLINE


def _is_not_translated(token: Token) -> bool:
    if not token.attributes:
        return False
    classes = token.value("class") or ""
    return (token.value("translate") or "").lower() == "no" or "notranslate" in classes.split()


def texts_of(token: Token) -> Collection[str]:
    """Return the attributes of an element of HTML that have text."""
    if not token.attributes or _is_not_translated(token):
        return ()
    if token.name.lower() == "meta":
        return ("content",) if (token.value("name") or "").lower() == "description" else ()
    return _TRANSLATED


GRAMMAR = Grammar(role_of, texts_of, xml=False, line_break="<br>")
XHTML = Grammar(role_of, texts_of, xml=True, line_break="<br/>")


@dataclass(frozen=True)
class HtmlLayout:
    """A page without its sentences."""

    text: MarkedText
    encoding: str
    bilingual: str | None

    def restore(self, translations: Iterable[str]) -> Iterator[bytes]:
        """Yield the page with translations for its sentences, each piece as soon as it is complete."""
        incoming = iter(translations)
        for piece in self.text.restore(incoming, self.bilingual):
            yield piece.encode(self.encoding, "xmlcharrefreplace")
        finish(incoming)


def read_html(source: Source) -> tuple[tuple[Document, ...], HtmlLayout]:
    """Read a page; return its one document and the layout that restores it."""
    text, encoding = decode_page(source.data, source.name)
    text = with_page_language(text, source.language, source.screen.language)
    marked = MarkedText(content_of(text, GRAMMAR, source, Place.of_lines(text)))
    sentences = tuple(marked.sentences())
    documents = (Document(sentences),) if sentences else ()
    return documents, HtmlLayout(marked, encoding, source.screen.bilingual)


_BYTE_ORDER = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_DECLARED = re.compile(
    rb"<meta[^>]{1,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})"
    rb"|^<\?xml[^>]{1,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})",
    re.IGNORECASE,
)
# What browsers read where these are declared.
_WIDER = {"ascii": "cp1252", "iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "utf-16": "utf-8"}
_NOT_FOR_PAGES = names("idna punycode utf-7 unicode_escape raw_unicode_escape undefined")


def decode_page(data: bytes, name: str) -> tuple[str, str]:
    """Return the text of a page and the encoding that gives exactly the same bytes."""
    for mark, encoding in _BYTE_ORDER.items():
        if data.startswith(mark):
            return _decode(data, encoding, name), encoding
    declared = _DECLARED.search(data[:4096])
    if declared:
        return _declared(data, (declared[1] or declared[2]).decode("ascii", "replace"), name)
    for encoding in ("utf-8", "cp1252"):
        try:
            return data.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1"), "latin-1"


def _declared(data: bytes, label: str, name: str) -> tuple[str, str]:
    try:
        encoding = codecs.lookup(label).name
    except (LookupError, ValueError):
        encoding = "undefined"
    if encoding in _NOT_FOR_PAGES or not getattr(codecs.lookup(encoding), "_is_text_encoding", True):
        raise CadecError(f"{name} says that it is in {label!r}, which is no encoding of pages")
    if encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        encoding = "utf-8"  # it can't be: the declaration was read as ASCII
    for known in (_WIDER.get(encoding, encoding), encoding):
        try:
            text = data.decode(known)
        except UnicodeDecodeError:
            continue
        if text.encode(known) == data:
            return text, known
    return _decode(data, encoding, name), encoding


def _decode(data: bytes, encoding: str, name: str) -> str:
    try:
        text = data.decode(encoding)
        if text.encode(encoding) == data:
            return text
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CadecError(f"{name}: line {line} is not {encoding}, which the page says it is in") from None
    raise CadecError(f"{name} can't be written in {encoding} as it was", "convert it to UTF-8 first")


_HTML_TAG = re.compile(r"<html\b[^>]{0,2000}>", re.IGNORECASE)
_LANGUAGE = re.compile(
    r"(\s(?:xml:)?lang\s*=\s*[\"']?)([A-Za-z]{2,3}(?:-[\w-]{1,20})?)(?=[\"'\s>/])", re.IGNORECASE
)


def with_page_language(text: str, source: str, target: str | None) -> str:
    """Name the target language in a page's first tag, if that names the language of the source."""
    found = _HTML_TAG.search(text, 0, 10_000)
    if not target or not found:
        return text

    def change(match: re.Match[str]) -> str:
        return match[1] + (target if base_language(match[2]) == base_language(source) else match[2])

    return text[: found.start()] + _LANGUAGE.sub(change, found[0]) + text[found.end() :]
