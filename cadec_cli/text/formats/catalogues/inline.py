"""Inline elements of XML in a string: tags around words, and codes that stand for words.

In the string that is translated, each is a tag or a placeholder of our own making, such as <g1> or {g2}, so
that text which looks like a tag (`&lt;b&gt;`) can't be taken for one. Afterwards the elements are put back as
they were written. They have to come back well nested, or the translation is not used.
"""

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from cadec_cli.text.formats.catalogues.catalogue import Entry, fixed
from cadec_cli.text.formats.xml_text import Element, Xml, escape_xml, unescape_xml

_ENCODING = re.compile(r"\A\ufeff?<\?xml\s[^>]*?encoding\s*=\s*[\"']([\w.:-]+)")


def in_utf8(xml: Xml) -> Iterator[Entry]:
    """Yield the place where a file names its encoding, if that is another one: translations are UTF-8."""
    found = _ENCODING.match(xml.text)
    if found and found[1].lower() not in ("utf-8", "utf8"):
        yield fixed(*found.span(1), "UTF-8")


class Role(Enum):
    """What an inline element is in a sentence."""

    PAIR = "around the words between its tags, which are translated"
    OPENS = "all of it is the first half of a pair"
    CLOSES = "all of it is the second half of a pair"
    MARK = "all of it is between words, such as a line break"
    WORD = "all of it stands for a word, such as a number"


# (the element, its content as it is written) → its role
Roles = Callable[[Element, str], Role]
_SPACE = re.compile(r"[ \t\r\n]+")


@dataclass(frozen=True)
class InlineText:
    """A string with stand-ins for its inline elements, and what each stands for."""

    text: str
    codes: dict[str, str]
    raw: str  # the string as it is written
    escape: Callable[[str], str]

    def write(self, translation: str) -> str | None:
        """Write a translation with the elements in it; None if they would not be well nested."""
        if not self.codes:
            return self.escape(translation)
        pattern = re.compile("|".join(map(re.escape, self.codes)))
        found = pattern.findall(translation)
        if sorted(found) != sorted(self.codes):
            return None
        if _is_nested(self.codes, self.codes) and not _is_nested(found, self.codes):
            return None
        written, done = "", 0
        for match in pattern.finditer(translation):
            written += self.escape(translation[done : match.start()]) + self.codes[match[0]]
            done = match.end()
        return written + self.escape(translation[done:])


def _is_nested(found: Iterable[str], codes: Collection[str]) -> bool:
    """Tell whether the stand-ins of pairs are well nested."""
    open_: list[str] = []
    for one in found:
        if one.startswith("</"):
            if not open_ or open_.pop()[1:] != one[2:]:
                return False
        elif one.startswith("<") and not one.endswith("/>") and f"</{one[1:]}" in codes:
            open_.append(one)
    return not open_


def inline_text(
    xml: Xml,
    element: Element,
    roles: Roles,
    *,
    plain: Callable[[str], str] = lambda text: text,
    escape: Callable[[str], str] = escape_xml,
    spaces: bool = False,
) -> InlineText:
    """Read an element's content as a string; without `spaces`, white space counts as one space.

    `plain` reads the format's own escapes in text and `escape` writes a text with all that it needs.
    """
    content = xml.content(element)
    shown_as_text = unescape_xml(content)
    letter = next(
        name
        for name in map("g".__mul__, itertools.count(1))
        if not re.search(rf"[<{{/]{name}\d", shown_as_text)
    )
    text = ""
    codes: dict[str, str] = {}
    pairs: dict[str, str] = {}  # what halves of a pair have in common → their stand-in's name
    by_start = {one.start: one for one in element.walk() if one is not element}
    closing: list[str] = []
    skip_to = -1
    for token in xml.inside(element):
        if token.start < skip_to:
            continue
        written = xml.text[token.start : token.end]
        if token.kind == "text":
            text += unescape_xml(written) if spaces else _SPACE.sub(" ", unescape_xml(written))
            continue
        if token.kind == "cdata":
            text += written[9:-3]
            continue
        name = f"{letter}{len(codes) + 1}"
        if token.kind == "end":
            shown = closing.pop()
        elif token.kind == "other":
            shown = f"<{name}/>"
        else:
            inner = by_start[token.start]
            role = roles(inner, xml.content(inner))
            if role is Role.PAIR and not inner.empty:
                shown = f"<{name}>"
                closing.append(f"</{name}>")
            else:
                written = xml.text[inner.start : inner.end]
                skip_to = inner.end
                shown = _stand_in(role, name, _half_of(inner), pairs)
        codes[shown] = written
        text += shown
    return InlineText(plain(text), codes, content, escape)


def _stand_in(role: Role, name: str, key: str, pairs: dict[str, str]) -> str:
    if role is Role.WORD:
        return f"{{{name}}}"
    if role is Role.OPENS and key not in pairs:
        pairs[key] = name
        return f"<{name}>"
    if role is Role.CLOSES and key in pairs:
        return f"</{pairs.pop(key)}>"
    return f"<{name}/>"


def _half_of(element: Element) -> str:
    """Return what both halves of a pair have in common."""
    values = element.attributes
    found = values.get("startRef") or values.get("rid") or values.get("id", "")
    return re.sub(r"^(?:START|CLOSE)_", "", found)
