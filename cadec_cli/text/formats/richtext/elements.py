"""Paragraphs in a text with tags, whatever its elements are called.

A grammar says what every element is: a block, which paragraphs end at, an element around words, a mark, and
so on. HTML, the chapters of books and OpenDocument have a grammar each; this module turns their tokens into
what is kept and paragraphs.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from cadec_cli.text.formats.layout import Source
from cadec_cli.text.formats.richtext.paragraphs import ParagraphBuilder
from cadec_cli.text.formats.richtext.pieces import Content, Translatable
from cadec_cli.text.formats.richtext.tokens import Kind, Token, names, partners, tokens


class Role(Enum):
    """What an element is to the text."""

    BLOCK = "block"  # paragraphs end where it begins and ends
    PARAGRAPH = "paragraph"  # a block whose text is translated even if that of other blocks is not
    SKIP = "skip"  # a block that is left alone, with all that is in it
    INLINE = "inline"  # around words
    MARK = "mark"  # between words, with all that is in it
    NEST = "nest"  # a mark that has paragraphs in it, such as a footnote
    COPY = "copy"  # around words that are copied
    BREAK = "break"  # ends a line
    SPACE = "space"  # is read as a space
    HIDDEN = "hidden"  # is not read, and has no place in a translation


@dataclass(frozen=True)
class Grammar:
    """What the elements of a format are, by their start tags, and which of their attributes have text."""

    role: Callable[[Token], Role]
    attributes: Callable[[Token], Collection[str]]
    xml: bool
    line_break: str | None  # between a paragraph and its translation
    text_anywhere: bool = True  # not only in elements that are paragraphs


@dataclass(frozen=True)
class Place:
    """Where a paragraph is, for people: `named` takes a line or the number of a paragraph."""

    starts: Sequence[int]  # of lines or paragraphs, in characters
    name: str  # as “line {}”
    offset: int = 0  # of the text whose positions these are

    @classmethod
    def of_lines(cls, text: str, name: str = "line {}") -> Place:
        """Return places by lines."""
        return cls([0, *(match.end() for match in re.finditer("\n", text))], name)

    def at(self, position: int) -> str:
        """Return the place of a position."""
        return self.name.format(max(1, bisect_right(self.starts, self.offset + position)))


_NEVER_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape_text(text: str) -> str:
    """Return text as it is written between tags."""
    return html.escape(_NEVER_IN_XML.sub("", text), quote=False)


def escape_value(text: str) -> str:
    """Return text as it is written in the value of an attribute."""
    return html.escape(_NEVER_IN_XML.sub("", text))


# White space that is shown as one space, soft hyphens, which are not shown, and entities.
_NOT_PLAIN = re.compile(
    "([\t\r\n\f ]{2,}|[\t\r\n\f])|(\u00ad)"
    "|(&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});?)"
)


def pieces_of(raw: str) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a text with entities and any white space: as written, and as shown."""
    done = 0
    for match in _NOT_PLAIN.finditer(raw):
        if done < match.start():
            yield raw[done : match.start()], raw[done : match.start()]
        done = match.end()
        if match[1]:
            yield match[0], " "
        elif match[2]:
            yield match[0], ""
        else:
            shown = html.unescape(match[0]).replace("\u00ad", "")
            yield match[0], " " if shown.isspace() and shown != "\u00a0" else shown
    if done < len(raw):
        yield raw[done:], raw[done:]


def add_text(builder: ParagraphBuilder, raw: str) -> None:
    """Add text that is written with entities and with any white space."""
    for piece, shown in pieces_of(raw):
        builder.text(piece, shown)


def content_of(text: str, grammar: Grammar, source: Source, place: Place) -> Content:
    """Return what a text is made of; joined, it is the text."""
    found = list(tokens(text, xml=grammar.xml))
    return tuple(_Walk(found, partners(found), grammar, source, place).content(0, len(found)))


@dataclass(frozen=True)
class _Walk:
    tokens: Sequence[Token]
    ends: dict[int, int]
    grammar: Grammar
    source: Source
    place: Place

    def content(self, first: int, stop: int) -> Iterator[str | Translatable]:
        """Yield what is kept and paragraphs, of the tokens from `first` on."""
        paragraph = _Open(self)
        inside = 0  # elements that are paragraphs
        number = first
        while number < stop:
            token = self.tokens[number]
            end = number + 1
            if token.kind is Kind.TEXT and (self.grammar.text_anywhere or inside):
                paragraph.begin(token)
                add_text(paragraph.builder, token.raw)
            elif token.kind in (Kind.TEXT, Kind.OTHER):
                paragraph.builder.mark("x", (token.raw,))
            else:
                role = self.grammar.role(token)
                if role in (Role.BLOCK, Role.PARAGRAPH):
                    yield from paragraph.finish()
                    yield from self.tag(token)
                    paragraph = _Open(self, token.name if token.kind is Kind.START else "")
                    if role is Role.PARAGRAPH and not token.empty:
                        inside = max(0, inside + (1 if token.kind is Kind.START else -1))
                elif token.kind is Kind.END:
                    paragraph.builder.close(_short(token.name), token.raw)
                else:
                    end = self.end_of(number, role)
                    if role is Role.SKIP:
                        yield from paragraph.finish()
                        yield self.raw(number, end)
                        paragraph = _Open(self)
                    else:
                        paragraph.begin(token)
                        self.add(paragraph.builder, role, number, end)
            number = end
        yield from paragraph.finish()

    def end_of(self, number: int, role: Role) -> int:
        """Return the token after an element that is taken whole; that after its tag if it is not."""
        if role is Role.INLINE or self.tokens[number].empty:
            return number + 1
        return self.ends.get(number, number) + 1

    def add(self, builder: ParagraphBuilder, role: Role, number: int, end: int) -> None:
        """Add an element to a paragraph."""
        token = self.tokens[number]
        name = _short(token.name)
        if role in (Role.SPACE, Role.HIDDEN):
            builder.text(self.raw(number, end), " " if role is Role.SPACE else "")
        elif role is Role.INLINE and not token.empty:
            builder.open(name, self.tag(token))
        elif role is Role.NEST and end > number + 2:
            inner = tuple(self.content(number + 1, end - 1))
            builder.mark(name, (*self.tag(token), *inner, self.tokens[end - 1].raw))
        elif role is Role.COPY and end > number + 1:
            shown = "".join(one.raw for one in self.tokens[number:end] if one.kind is Kind.TEXT)
            builder.copy((self.raw(number, end),), html.unescape(shown))
        else:
            raw = (*self.tag(token), self.raw(number + 1, end))
            builder.mark(name, raw, breaks=role is Role.BREAK)

    def raw(self, first: int, stop: int) -> str:
        """Return tokens as they are written."""
        return "".join(token.raw for token in self.tokens[first:stop])

    def tag(self, token: Token) -> Content:
        """Return a tag with the texts of its attributes."""
        wanted = self.grammar.attributes(token) if token.kind is Kind.START else ()
        if not wanted:
            return (token.raw,)
        content: list[str | Translatable] = []
        done = 0
        for one in token.attributes:
            if one.name in wanted and token.raw[one.start - 1] in "\"'":
                value = ParagraphBuilder()
                add_text(value, token.raw[one.start : one.end])
                content += [
                    token.raw[done : one.start],
                    *value.build(self.source, self.place.at(token.start), escape_value),
                ]
                done = one.end
        return (*content, token.raw[done:])


# Blocks that have no line breaks in them.
_ONE_LINE = names("title option svg:title svg:desc")


class _Open:
    """A paragraph that is being read."""

    def __init__(self, walk: _Walk, element: str = "") -> None:
        self.builder = ParagraphBuilder()
        self._walk = walk
        self._line_break = None if element in _ONE_LINE else walk.grammar.line_break
        self._start: int | None = None

    def begin(self, token: Token) -> None:
        """Remember where the first words are."""
        if self._start is None and (token.kind is not Kind.TEXT or token.raw.strip()):
            self._start = token.start + len(token.raw) - len(token.raw.lstrip())

    def finish(self) -> Content:
        """Return the content of the paragraph."""
        return self.builder.build(
            self._walk.source,
            self._walk.place.at(self._start or 0),
            escape_text,
            line_break=self._line_break,
        )


_NOT_A_LETTER = re.compile("[^a-z0-9]")


def _short(name: str) -> str:
    """Return the name of an element as tags of sentences have it."""
    short = _NOT_A_LETTER.sub("", name.rpartition(":")[2].lower())
    return short if short[:1].isalpha() else "x"
