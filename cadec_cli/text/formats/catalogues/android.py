"""String resources of Android: `strings.xml`.

`string`, `plurals` and `string-array` are translated, unless they are marked `translatable="false"` or are
references to other resources. Names, quantities, comments and all that surrounds the texts stay. A file is
one document.
"""

import re
from collections.abc import Iterator

from cadec_cli.errors import CadecError
from cadec_cli.text.documents import Document
from cadec_cli.text.formats.catalogues.catalogue import (
    CatalogueLayout,
    Entry,
    Item,
    Outcome,
    catalogue,
    fixed,
)
from cadec_cli.text.formats.catalogues.inline import Role, in_utf8, inline_text
from cadec_cli.text.formats.catalogues.message import read_message
from cadec_cli.text.formats.layout import Source
from cadec_cli.text.formats.xml_text import Element, Xml, escape_xml, read_xml, with_attribute
from cadec_cli.text.sentences import visible_span

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t"}
_WHOLE = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*', re.DOTALL)
_CDATA = re.compile(r"\s*<!\[CDATA\[(?:(?!\]\]>).)*\]\]>\s*", re.DOTALL)
_BARE_QUOTE = re.compile(r'(?<!\\)"')
_SPACE = re.compile(r"[ \t\r\n]+")
_REFERENCE = re.compile(r"\s*[@?][\w.:+-]*(?:/[\w.:+-]+)?\s*$")


def read_android(source: Source) -> tuple[tuple[Document, ...], CatalogueLayout]:
    """Read string resources; return their document and the layout that takes its translation."""
    xml = read_xml(source.text, source.name)
    if xml.root.name != "resources":
        raise CadecError(
            f"{source.name} has no string resources of Android in it: its root is <{xml.root.name[:60]}>",
            "of XML, cadec reads strings.xml of Android, XLIFF (.xlf, .xliff) and TTML (.ttml)",
        )
    return catalogue(source, _items(xml, source))


def _items(xml: Xml, source: Source) -> Iterator[Item]:
    language = source.screen.language
    if language:
        yield from in_utf8(xml)
    if language and "tools:locale" in xml.root.attributes:
        start, end = xml.root.start, xml.root.inner_start
        yield fixed(start, end, with_attribute(source.text[start:end], "tools:locale", language))
    for name, element in _strings(xml.root):
        yield from _entry(xml, element, name, source.language)


def _strings(root: Element) -> Iterator[tuple[str, Element]]:
    """Yield the elements with texts that are to be translated, with their names."""
    for element in root.children:
        name = element.attributes.get("name", "")
        if element.attributes.get("translatable") == "false":
            continue
        if element.name == "string":
            yield name, element
        elif element.name in ("plurals", "string-array"):
            for number, item in enumerate(child for child in element.children if child.name == "item"):
                yield f"{name}[{item.attributes.get('quantity', number)}]", item


def _role(element: Element, content: str) -> Role:
    # <xliff:g> holds what must not be translated: a placeholder, a name
    return Role.WORD if element.prefix else Role.PAIR


def _entry(xml: Xml, element: Element, name: str, language: str) -> Iterator[Entry]:
    content = xml.content(element)
    if element.empty or _REFERENCE.match(content):
        return
    whole = _WHOLE.fullmatch(content)
    cdata = _CDATA.fullmatch(content)
    if whole:
        around, escape = ('"', '"'), _escape_in_quotes
    elif cdata:
        around, escape = ("<![CDATA[", "]]>"), _escape_in_cdata
    else:
        around, escape = ("", ""), _escape_bare if _BARE_QUOTE.search(content) else _escape
    plain = _plain_in_quotes if whole else _plain
    inline = inline_text(xml, element, _role, plain=plain, escape=escape, spaces=True)
    message = read_message(inline.text, language)
    if not message.sentences:
        return
    start, end = visible_span(content, 0, len(content))

    def write(outcome: Outcome) -> str:
        written = inline.write(outcome.texts[0])
        return (
            content if written is None else content[:start] + around[0] + written + around[1] + content[end:]
        )

    yield Entry(element.inner_start, element.inner_end, (message,), write, name)


def _plain(text: str) -> str:
    """Read a text as Android does: white space is one space, and escapes are characters."""
    return _ESCAPE.sub(_character, _SPACE.sub(" ", text).strip())


def _plain_in_quotes(text: str) -> str:
    """Read a text between quotation marks, in which white space stays as it is."""
    return _ESCAPE.sub(_character, text.strip()[1:-1])


def _character(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 5:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, code)


_SPECIAL = re.compile(r"[\\\"'\n\t]")
_WRITTEN = {"\n": "\\n", "\t": "\\t"}


def _with_escapes(text: str, kept: str = "") -> str:
    written = _SPECIAL.sub(
        lambda match: match[0] if match[0] in kept else _WRITTEN.get(match[0], "\\" + match[0]), text
    )
    return "\\" + written if written[:1] in ("@", "?") and not kept else written


def _escape(text: str) -> str:
    return escape_xml(_with_escapes(text))


def _escape_bare(text: str) -> str:
    """Escape a text for a string that has quotation marks without escapes; they stay so."""
    return escape_xml(_with_escapes(text, '"'))


def _escape_in_quotes(text: str) -> str:
    return escape_xml(_with_escapes(text, "'"))


def _escape_in_cdata(text: str) -> str:
    return _with_escapes(text, '"').replace("]]>", "]] >")
