"""Markdown (CommonMark, tables and strikethrough): words are translated, and the marks stay around them.

Code, front matter, the targets of links, definitions and HTML comments stay as they are; HTML in a page is
read as HTML. Emphasis, links and HTML tags are tags of sentences; code and keys are copied. A paragraph that
was wrapped is wrapped again. What is translated is escaped where it would be read as a mark, and every
paragraph is read again: if its marks are not those of the source, they are written as HTML, and if that does
not help, the paragraph stays untranslated.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cadec_cli.text.documents import Document
from cadec_cli.text.formats.layout import Source, finish
from cadec_cli.text.formats.richtext.elements import Place, Role, content_of
from cadec_cli.text.formats.richtext.html import GRAMMAR, role_of
from cadec_cli.text.formats.richtext.paragraphs import MarkedText, Paragraph, ParagraphBuilder
from cadec_cli.text.formats.richtext.pieces import Content, Pair, Translatable
from cadec_cli.text.formats.richtext.tokens import Kind, tokens

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_FRONT_MATTER = re.compile(r"\ufeff?---[ ]*\r?\n(?:[^\r\n]*\r?\n){0,200}?(?:---|\.\.\.)[ ]*(?:\r?\n|$)")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")
# Lines in a paragraph that have a meaning in some dialect, and no words.
_DIRECTIVE = re.compile(r"(?::::.*|\[![A-Z]+\]|\$\$)[ \t]*$")


# Bars between cells, and escaped letters; and a row that begins with a bar.
_BAR = re.compile(r"\\.|\|")
_BARRED = re.compile(r"\ufeff?[>\s]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+[>\s]*){0,20}\|")


@dataclass(frozen=True)
class MarkdownLayout:
    """A page without its sentences."""

    text: MarkedText
    bilingual: str | None

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the page with translations for its sentences, each piece as soon as it is complete."""
        incoming = iter(translations)
        yield from self.text.restore(incoming, self.bilingual)
        finish(incoming)


def read_markdown(source: Source) -> tuple[tuple[Document, ...], MarkdownLayout]:
    """Read a page; return its one document and the layout that restores it."""
    marked = MarkedText(tuple(_Page(source).content()))
    sentences = tuple(marked.sentences())
    documents = (Document(sentences),) if sentences else ()
    return documents, MarkdownLayout(marked, source.screen.bilingual)


def _parser() -> MarkdownIt:
    """Return a parser whose tokens know where they are in their paragraph."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": 20}).enable(["table", "strikethrough"])
    parser.core.ruler.disable("text_join")
    for rule in [*parser.inline.ruler.__rules__]:
        parser.inline.ruler.at(rule.name, _locating(rule.fn))
    return parser


def _locating(rule: Callable[[Any, bool], bool]) -> Callable[[Any, bool], bool]:
    """Return a rule of the parser that notes in every token where it begins and ends."""

    def located(state: Any, silent: bool) -> bool:
        start, count, pending = state.pos, len(state.tokens), bool(state.pending)
        if not rule(state, silent):
            return False
        new = state.tokens[count + pending :] if len(state.tokens) > count else []
        if silent or not new:
            return True
        if new[0].type == "link_open" and new[-1].type == "link_close" and state.src[start] == "[":
            inside = state.md.helpers.parseLinkLabel(state, start, True)
            new[0].meta["at"], new[-1].meta["at"] = (start, start + 1), (inside, state.pos)
        elif all(token.type == "text" for token in new):
            place = start  # delimiters: one token each
            for token in new:
                token.meta["at"] = (place, place + len(token.content))
                place += len(token.content)
        else:
            for token in new:
                token.meta.setdefault("at", (start, state.pos))
        return True

    return located


@dataclass(frozen=True)
class _Text:
    """The text of a paragraph as the parser has it, and where its lines are in the page."""

    content: str
    page: str
    lines: tuple[tuple[int, int], ...]  # (where a line begins in the content, where it begins in the page)

    def place(self, position: int) -> int:
        """Return where a position is in the page."""
        start, there = self.lines[bisect_right(self.lines, position, key=lambda line: line[0]) - 1]
        return there + position - start

    def raw(self, start: int, end: int) -> str:
        """Return a part of the content as the page has it, with what is before its lines."""
        return self.page[self.place(start) : self.place(end)]


class _Page:
    """A page that is being read."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.parser = _parser()
        self.starts: list[int] = []
        for match in _LINE.finditer(self.text):
            self.starts.append(match.start())
        self.place = Place(self.starts, "line {}")

    def content(self) -> Iterator[str | Translatable]:
        """Yield what is kept and paragraphs."""
        head = _FRONT_MATTER.match(self.text)
        hidden = head.end() if head else 0
        # The parser sees as many lines as the page has.
        body = re.sub(r"[^\r\n]", "", self.text[:hidden]) + self.text[hidden:]
        done = 0
        row: int | None = None  # the line of a row of a table
        column = -1
        self.env: dict[str, Any] = {}
        for token in self.parser.parse(body.replace("\r\n", "\n").replace("\r", "\n"), self.env):
            if token.type == "html_block" and token.map:
                start, end = self._line(token.map[0]), self._line(token.map[1])
                yield self.text[done:start]
                yield from self._html(start, end)
                done = end
            elif token.type == "tr_open" and token.map:
                row, column = token.map[0], -1
            elif token.type in ("td_open", "th_open"):
                column += 1
            elif token.type == "tr_close":
                row = None
            elif token.type == "inline" and token.content:
                found = self._lines(token) if row is None else self._cell(token.content, row, column)
                if found is not None and found.place(0) >= max(done, hidden):
                    yield self.text[done : found.place(0)]
                    yield from self._paragraph(found, token.children or [], in_table=row is not None)
                    done = found.place(len(found.content))
        yield self.text[done:]

    def _line(self, number: int) -> int:
        return self.starts[number] if number < len(self.starts) else len(self.text)

    def _html(self, start: int, end: int) -> Content:
        return content_of(self.text[start:end], GRAMMAR, self.source, replace(self.place, offset=start))

    def _cell(self, content: str, row: int, column: int) -> _Text | None:
        """Return the text of a cell of a table; None if it is not in the page as the parser has it."""
        line, end = self._line(row), self._line(row + 1)
        bars = [match.start() for match in _BAR.finditer(self.text, line, end) if match[0] == "|"]
        cells = list(zip([line, *(bar + 1 for bar in bars)], [*bars, end], strict=True))
        if _BARRED.match(self.text, line, end):
            del cells[0]  # what is before the first bar
        if column >= len(cells):
            return None
        start = self.text.find(content, *cells[column])
        return _Text(content, self.text, ((0, start),)) if start >= 0 else None

    def _lines(self, token: Any) -> _Text | None:
        """Return the text of a paragraph or heading; None if it is not in the page as the parser has it."""
        lines: list[tuple[int, int]] = []
        position = 0
        for number, line in enumerate(token.content.split("\n"), token.map[0]):
            start, end = self._line(number), self._line(number + 1)
            whole = self.text[start:end].rstrip()
            if whole.endswith(line.rstrip()):
                lines.append((position, start + len(whole) - len(line.rstrip())))
            else:
                heading = re.compile(r"[^#]*#{1,6}[ \t]+").match(self.text, start, end)
                found = self.text.find(line, heading.end(), end) if heading else -1
                if found < 0:
                    return None
                lines.append((position, found))
            position += len(line) + 1
        return _Text(token.content, self.text, tuple(lines))

    def _paragraph(self, text: _Text, children: Sequence[Any], *, in_table: bool) -> Content:
        builder = ParagraphBuilder()
        reader = _Inline(text, builder, self.source, self.place.at(text.place(0)))
        reader.read(children)
        original = text.raw(0, len(text.content))
        inner = tuple(reader.original)
        built = builder.build(
            self.source,
            self.place.at(text.place(0)),
            _escape_cell if in_table else escape_markdown,
            original=inner,
            line_break="<br>" if in_table else None,
        )
        if len(built) != 1 or not isinstance(built[0], Paragraph):
            return built
        kinds = _kinds(children)
        finishing = _Finish(self.parser, self.env, kinds, original, _joint(text), _width(text))
        return (replace(built[0], finish=finishing, alternative=tuple(map(_in_html, built[0].pairs))),)


def _joint(text: _Text) -> str | None:
    """Return what is between two lines of a paragraph; None if its lines must stay as they are."""
    if len(text.lines) < 2 or any(map(_DIRECTIVE.match, text.content.split("\n"))):
        return None
    (start, there) = text.lines[1]
    return text.page[text.place(start - 1) : there]


def _width(text: _Text) -> int:
    return max(map(len, text.content.split("\n")))


@dataclass
class _Inline:
    """Reads the marks of a paragraph into a builder."""

    text: _Text
    builder: ParagraphBuilder
    source: Source
    place: str

    def __post_init__(self) -> None:
        self.original: list[str | Translatable] = []
        self._done = 0

    def read(self, children: Sequence[Any]) -> None:
        """Read all tokens of the paragraph."""
        in_link = False
        copying = -1
        for number, token in enumerate(children):
            if token.type == "text" or "at" not in token.meta:
                continue
            start, end = _range(token)
            if start < self._done or number <= copying:
                continue
            if token.type == "softbreak":
                end = max(end, start + 1)
                self._until(start)
                self._add_text(start, end, " ")
                continue
            if token.type == "hardbreak":
                start = len(self.text.content[:start].rstrip(" "))
                start = max(start, self._done)
            self._until(start)
            raw = self.text.raw(start, end)
            self._done = end
            if token.type == "html_inline" and (stop := self._copied(children, number)):
                copying = stop
                end = _range(children[stop])[1]
                shown = "".join(
                    one.content for one in children[number + 1 : stop] if one.type != "html_inline"
                )
                self._done = end
                raw = self.text.raw(start, end)
                self.original.append(raw)
                self.builder.copy((raw,), shown)
                continue
            if token.type == "link_open" and token.info == "auto":
                self._done = end
                copying = number + 2
                self.original.append(raw)
                self.builder.copy((raw,), raw, quoted=False)
            elif token.type == "link_open":
                in_link = True
                self.original.append(raw)
                self.builder.open("a", (raw,))
            elif token.type == "link_close":
                in_link = False
                self.original.append(raw)
                self.builder.close("a", self._link_end(raw, children, number))
            else:
                self._other(token, raw, start, in_link=in_link)
        self._until(len(self.text.content))

    def _copied(self, children: Sequence[Any], number: int) -> int:
        """Return the token at which an element that is copied ends; 0 if this begins none."""
        opening = next(tokens(children[number].content, xml=False), None)
        if opening is None or opening.kind is not Kind.START or role_of(opening) is not Role.COPY:
            return 0
        closing = re.compile(rf"</{re.escape(opening.name)}\s*>", re.IGNORECASE)
        for later in range(number + 1, min(len(children), number + 40)):
            if children[later].type == "html_inline" and closing.fullmatch(children[later].content):
                return later
        return 0

    def _link_end(self, raw: str, children: Sequence[Any], number: int) -> str:
        """Return the end of a link; one that is found by its words gets a label."""
        if raw not in ("]", "][]"):
            return raw
        for before in range(number - 1, -1, -1):
            if children[before].type == "link_open" and children[before].info != "auto":
                return f"][{self.text.content[_range(children[before])[1] : _range(children[number])[0]]}]"
        return raw

    def _other(self, token: Any, raw: str, start: int, *, in_link: bool) -> None:
        kind = token.type
        if kind == "text_special":
            self.original.append(raw)
            self.builder.text(raw, token.content)
        elif kind == "code_inline":
            self.original.append(raw)
            self.builder.copy((raw,), token.content)
        elif kind.endswith("_open"):
            self.original.append(raw)
            self.builder.open(_NAMES[kind[:-5]], (raw,))
        elif kind.endswith("_close"):
            self.original.append(raw)
            self.builder.close(_NAMES[kind[:-6]], raw)
        elif kind == "hardbreak":
            self.original.append(raw)
            self.builder.mark("br", (raw,), breaks=True)
        elif kind == "image":
            content = (raw,) if in_link else self._image(token, raw)
            self.original += content
            self.builder.mark("img", content)
        else:
            self._html(raw)

    def _image(self, token: Any, raw: str) -> Content:
        """Return an image with its description, which is translated if it is plain."""
        words = token.content
        if (
            not words
            or any(one.type != "text" for one in token.children or [])
            or not raw.startswith(f"![{words}]")
        ):
            return (raw,)
        inner = ParagraphBuilder()
        inner.text(words, words)
        return ("![", *inner.build(self.source, self.place, _escape_description), raw[2 + len(words) :])

    def _html(self, raw: str) -> None:
        found = next(tokens(raw, xml=False), None)
        self.original.append(raw)
        if found is None or found.kind is Kind.OTHER:
            self.builder.mark("x", (raw,))
        elif found.kind is Kind.END:
            self.builder.close(found.name, raw)
        else:
            role = role_of(found)
            short = re.sub("[^a-z0-9]", "", found.name) or "x"
            if role is Role.INLINE and not found.empty and not raw.endswith("/>"):
                self.builder.open(found.name, (raw,))
            else:
                self.builder.mark(short, (raw,), breaks=role is Role.BREAK)

    def _until(self, end: int) -> None:
        """Add the text up to a position."""
        if self._done < end:
            self._add_text(self._done, end, None)

    def _add_text(self, start: int, end: int, shown: str | None) -> None:
        raw = self.text.raw(start, end)
        self.original.append(raw)
        line = self.text.content[start:end]
        first = start == 0 or self.text.content[start - 1] == "\n"
        if first and _DIRECTIVE.match(line) and self.text.content[end : end + 1] in ("", "\n"):
            self.builder.mark("x", (raw,), breaks=True)
        else:
            self.builder.text(raw, raw if shown is None else shown)
        self._done = end


_NAMES = {"em": "em", "strong": "strong", "s": "s"}


def _range(token: Any) -> tuple[int, int]:
    start, end = token.meta["at"]
    if token.type == "strong_open":
        return start - 1, end
    return (start, end + 1) if token.type == "strong_close" else (start, end)


def _kinds(children: Iterable[Any]) -> Counter[tuple[str, str]]:
    """Return the marks of a paragraph, however they are written."""
    found: Counter[tuple[str, str]] = Counter()
    for token in children:
        if token.type not in ("text", "text_special", "softbreak"):
            name = _OF_TAGS.get(token.content.lower(), token.type)
            plain = token.type in ("html_inline", "code_inline") and name == token.type
            found[
                name, token.content if plain else str(token.attrs.get("href", token.attrs.get("src", "")))
            ] += 1
    return found


_WRITTEN = {"em": ("<em>", "</em>"), "strong": ("<strong>", "</strong>"), "s": ("<del>", "</del>")}
_OF_TAGS = {
    tag: f"{name}_{side}"
    for name, both in _WRITTEN.items()
    for tag, side in zip(both, ("open", "close"), strict=True)
}


def _in_html(pair: Pair) -> Pair:
    """Return an element with tags of HTML for Markdown's marks, which depend on the letters beside them."""
    if pair.name in _WRITTEN and "<" not in pair.end:
        start, end = _WRITTEN[pair.name]
        return replace(pair, start=(start,), end=end)
    return pair


_PUNCTUATION = r"!-/:-@\[-`{-~"
# What would be read as a mark: in the first group, a backslash goes before it.
_SPECIAL = re.compile(
    rf"(\\(?=[{_PUNCTUATION}])|`|\*(?=\S)|(?<=\S)\*|(?<![^\W_])_|_(?![^\W_])|~~|<(?=[A-Za-z/!?])"
    r"|\[(?=[^\[\]]*\][(\[:])|&(?=#?\w{1,32};))"
)


def escape_markdown(text: str) -> str:
    """Return text as it is written in a paragraph, without what would be read as marks."""
    return _SPECIAL.sub(r"\\\1", text)


def _escape_cell(text: str) -> str:
    return escape_markdown(text).replace("|", "\\|")


def _escape_description(text: str) -> str:
    return re.sub(r"([\[\]\\`*_<&])", r"\\\1", text)


_BLOCK_START = re.compile(
    r"(#{1,6}(?=\s|$)|>|[-+*](?=\s|$)|={1,}\s*$|-{2,}\s*$|~~~|```|\||:)|(\d{1,9})([.)])(?=\s|$)"
)
# What stays on one line: code, targets of links, tags.
_WORD = re.compile(r"(?:(?<!`)`++[^`]++`++|\]\([^()]*(?:\([^()]*\)[^()]*)*\)|<[^<>]*>|\S)+")


_CODE_OR_BREAK = re.compile(r"((?<!`)`++[^`]++`++)|[ \t]*\r?\n[ \t]*(?:>[ \t]?)*")


@dataclass(frozen=True)
class _Finish:
    """Makes the text of a paragraph fit for its place in the page; None if its marks are not the source's."""

    parser: MarkdownIt
    env: dict[str, Any]
    kinds: Counter[tuple[str, str]]
    original: str
    joint: str | None
    width: int

    def __call__(self, text: str) -> str | None:
        start = _BLOCK_START.match(text)
        if start and not _BLOCK_START.match(self.original):
            text = f"{start[2]}\\{text[start.start(3) :]}" if start[2] else f"\\{text}"
        inline = self.parser.parseInline(text.replace("\r\n", "\n"), self.env)
        if _kinds(inline[0].children or []) != self.kinds:
            return None
        return text if self.joint is None or self.kinds["hardbreak", ""] else self._wrapped(text)

    def _wrapped(self, text: str) -> str:
        lines: list[str] = []
        text = _CODE_OR_BREAK.sub(lambda found: found[1] or " ", text)
        for word in _WORD.findall(text):
            fits = lines and len(lines[-1]) + 1 + len(word) <= self.width
            if lines and (fits or _BLOCK_START.match(word) or word[0] in "<=|:"):
                lines[-1] += f" {word}"
            else:
                lines.append(word)
        return (self.joint or "\n").join(lines)
