"""Hard-wrapped text: which lines are one paragraph, and how a paragraph is wrapped again.

Old e-texts, e-mail and READMEs break their lines at a width, in the middle of sentences. Lines are joined
only where that is certain, because poems, lists and dialogues have line breaks that mean something:

- a wrapped line is full: the first word of the next line would not have fitted into the width. The file as a
  whole shows this width, or else one long paragraph does;
- many lines of the file go on in the middle of a sentence, in lower case;
- headings, items of lists, rows of tables, lines with a dash of dialogue, and lines that end with two spaces
  (a line break in Markdown) end a paragraph or begin one, and its lines are indented alike.

Everything here takes time that is linear in the text. Knows only lines of text, not sentences or files.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

# Narrower lines may be verse; wider ones are not broken for the eye.
_NARROWEST, _WIDEST = 40, 132
# Line breaks that must agree before lines of a file are joined, or lines of a paragraph with its own width.
_FEWEST_BREAKS, _FEWEST_OWN = 3, 4
_FEWEST_SPACES = 2  # of a line that is wrapped: others may be lists of names
# Of them, the share that goes on in lower case: in German, many words have a capital.
_GOES_ON = 1 / 3
# By so many characters may a line be shorter than it could be: not every program fills lines to the end.
_SLACK = 4

# Quotation marks of e-mail, indentation, then the text.
_LINE = re.compile(r"(?P<quoted>\ufeff?(?:[ ]{0,3}>[ ]?)*)(?P<indent>[ ]*)(?P<text>.*)")
_ITEM = re.compile(r"(?:[-*+•‣▪●◦○■□◆·∙]|\(?\d{1,3}[.)]|\(?[a-zA-Z]\)|[-–—―]{1,2})[ ]+(?=\S)|[•‣▪●◦]")
_DIALOGUE = re.compile(r"[-–—―‐]{1,2}[ ]?[^\W\d_a-zа-яё]")
_NEVER = re.compile(r"#{1,6}[ ]|\||[\W_]*$|\[[^\]]*\]:|<[/!a-zA-Z]")
_COLUMNS = re.compile(r"\S[ ]{3,}\S|\t")
_HARD_BREAKS = ("  ", "\\", "<br>", "<br/>", "<br />")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_TERMINAL = re.compile(r"[.!?…:;。！？][\"'”’»)\]*_]*$")
_BEGINS = re.compile(r"[\"'“‘«„(\[*_¿¡]*(\w)")
_HYPHENATED = re.compile(r"(?:^|[\W_])([^\W\d_]+)-$")
_WORD = re.compile(r"[^\W\d_]+")
_DASHED = re.compile(r"(?:--|[—–])\w")
_FIRST_LETTERS = re.compile(r"[^\W\d_]+")
_ATTACHED = re.compile(r"\w(?:[-‐]|--|[—–])$")
# Words that would be read as the beginning of an item, a heading or a quotation if they began a line.
_NOT_FIRST = re.compile(r"[-–—―*+•]{1,2}$|#{1,6}$|>+$|\(?\d{1,3}[.)]$|\(?[a-zA-Z][.)]$|[-–—―]{1,2}\S")
_SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")


@dataclass(frozen=True)
class Paragraph:
    """Lines first to last of a file that are one paragraph, and how they were wrapped."""

    first: int
    last: int
    text: str  # as one line
    starts: tuple[int, ...]  # where each line begins in the text
    begin: str  # before the first line: indentation, marks of quotation
    rest: str  # before the other lines
    width: int

    def line_at(self, place: int) -> int:
        """Return the number of the line that a place of the text is in."""
        return self.first + max(0, bisect_left(self.starts, place + 1) - 1)


@dataclass(frozen=True)
class _Piece:
    """A line, taken apart."""

    quoted: str
    indent: str
    marker: str  # of an item of a list
    text: str  # without white space at its end
    broken: bool  # its line break is meant

    @property
    def before(self) -> int:
        return len(self.quoted) + len(self.indent) + len(self.marker)

    @property
    def size(self) -> int:
        return self.before + text_width(self.text)


def find_paragraphs(lines: Sequence[str | None]) -> list[Paragraph]:
    """Return the paragraphs of two or more lines that were wrapped, in order.

    A line that is None, such as a line of code, is never joined to another.
    """
    pieces = [None if line is None or len(line) > 4 * _WIDEST else _piece(line) for line in lines]
    breaks = [
        first is not None and second is not None and _may_be_joined(first, second)
        for first, second in pairwise(pieces)
    ]
    width = _common_width(pieces, breaks)
    words = frozenset[str]()
    found: list[Paragraph] = []
    for first, last in _blocks(pieces, breaks):
        block = [piece for piece in pieces[first : last + 1] if piece is not None]
        for begin, stop, own in _wrapped_parts(block, width):
            if not words and any(_HYPHENATED.search(piece.text) for piece in block[begin:stop]):
                words = frozenset(word for line in lines if line for word in _WORD.findall(line.lower()))
            found.append(_paragraph(block[begin : stop + 1], first + begin, own, words))
    return found


# Lines of a stream that show whether it is wrapped.
_SAMPLE, _ENOUGH = 60, 6


class WrapWatch:
    """Looks at the first lines of a stream, whose lines are not joined; calls `tell` if they are wrapped."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell, self._lines = tell, list[str | None]()
        self._done = False

    def see(self, line: str) -> None:
        """Look at the next line."""
        if not self._done:
            self._lines.append(line if len(line) <= 4 * _WIDEST else None)
            if len(self._lines) == _SAMPLE:
                self.end()

    def end(self) -> None:
        """Judge by the lines so far."""
        lines, self._lines = self._lines, []
        joined = 0 if self._done else sum(one.last - one.first + 1 for one in find_paragraphs(lines))
        self._done = True
        if joined >= _ENOUGH:
            self._tell()


def text_width(text: str) -> int:
    """Return how many columns a text takes: characters of Chinese, Japanese and Korean take two."""
    if text.isascii():
        return len(text)
    return sum(
        2 if unicodedata.east_asian_width(one) in "WF" else 0 if unicodedata.combining(one) else 1
        for one in text
    )


def fill(text: str, *, width: int, begin: str = "", rest: str = "") -> list[str]:
    """Wrap a text into lines of at most `width` columns, where words permit.

    `begin` comes before the first line and `rest` before the others. No line begins as an item of a list
    would, so that the text is read again as the one paragraph that it is.
    """
    lines: list[str] = []
    current, size, start = begin, text_width(begin), True
    for word, space in _words(text):
        room = text_width(word)
        if not start and size + len(space) + room > width:
            lines.append(current)
            current, size, start = rest, text_width(rest), True
            space = ""
        current += word if start else space + word
        size += room if start else len(space) + room
        start = False
    return [*lines, current]


def _words(text: str) -> Iterator[tuple[str, str]]:
    """Yield what a line break may come before, each with the white space before it."""
    waiting, before = "", ""
    for match in re.finditer(r"([ \t]*)([^ \t]+)", text):
        space, word = match[1], match[2]
        if waiting and _NOT_FIRST.match(word):
            waiting += space + word
            continue
        if waiting:
            yield from _characters(waiting, before)
        waiting, before = word, space
    if waiting:
        yield from _characters(waiting, before)


def _characters(word: str, space: str) -> Iterator[tuple[str, str]]:
    """Cut a word of a script without spaces; closing punctuation never begins a line."""
    if not _SPACELESS.search(word):
        yield word, space
        return
    for part in re.findall(rf"[^{_SPACELESS.pattern[1:-1]}]+|.[。、，！？；：」』）…]*", word):
        yield part, space
        space = ""


def _piece(line: str) -> _Piece:
    match = _LINE.match(line)
    assert match is not None, "every line has these parts"
    text = match["text"].removesuffix("\r")
    item = _ITEM.match(text)
    marker = item[0] if item else ""
    bare = text[len(marker) :].rstrip()
    return _Piece(
        match["quoted"],
        match["indent"],
        marker,
        bare,
        broken=text.endswith(_HARD_BREAKS) or bool(_CONTROL.search(bare)),
    )


def _may_be_joined(first: _Piece, second: _Piece) -> bool:
    """Tell whether two lines may be one paragraph, as far as their form shows."""
    if first.broken or not second.text or _marks(first) != _marks(second):
        return False
    if first.text.count(" ") < _FEWEST_SPACES:
        return False
    if second.marker and not _is_dash_of_sentence(first, second):
        return False
    if _DIALOGUE.match(second.text) and (_TERMINAL.search(first.text) or _DIALOGUE.match(first.text)):
        return False
    if any(_NEVER.match(one.text) for one in (first, second)):
        return False
    return not any(_COLUMNS.search(one.text) for one in (first, second))


def _marks(piece: _Piece) -> str:
    """Return the marks of a quotation in an e-mail."""
    return "".join(piece.quoted.strip("\ufeff").split())


def _is_dash_of_sentence(first: _Piece, second: _Piece) -> bool:
    """Tell whether a line begins with a dash in the middle of a sentence."""
    dash = second.marker.strip() in ("–", "—", "--")
    return dash and second.text[:1].islower() and not _TERMINAL.search(first.text)


def _goes_on(first: _Piece, second: _Piece) -> bool:
    """Tell whether a sentence goes on from one line to the next, as far as letters show."""
    letter = _BEGINS.match(second.text)
    return bool(letter and letter[1].islower()) and not re.search(r"[.!?…]$", first.text)


def _ends_sentence(first: _Piece, second: _Piece) -> bool:
    """Tell whether a sentence seems to end with the first line."""
    return bool(_TERMINAL.search(first.text)) and not _goes_on(first, second)


def _room(first: _Piece, second: _Piece) -> tuple[int, int]:
    """Return the widths for which the line break between two lines is right: from, and up to."""
    word = second.marker.rstrip() or second.text.split(" ", 1)[0]
    return first.size, first.size + text_width(word)


def _common_width(pieces: Sequence[_Piece | None], breaks: Sequence[bool]) -> int | None:
    """Return the width that most line breaks of a file agree on; None if there are too few of them."""
    changes = [0] * (_WIDEST + 2)
    joined = 0
    for (first, second), joins in zip(pairwise(pieces), breaks, strict=True):
        if joins and first is not None and second is not None and _goes_on(first, second):
            low, high = _room(first, second)
            if low <= _WIDEST and high >= _NARROWEST:
                joined += 1
                changes[max(low, _NARROWEST)] += 1
                changes[min(high, _WIDEST) + 1] -= 1
    best = count = width = 0
    for place, change in enumerate(changes):
        count += change
        if count > best:
            best, width = count, place
    return width if best >= _FEWEST_BREAKS and best > joined / 2 else None


def _blocks(pieces: Sequence[_Piece | None], breaks: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield the first and last lines of runs whose form permits to join them, indented alike."""
    first = 0
    indent: int | None = None  # of the second and later lines
    for number in range(1, len(pieces) + 1):
        joins = number < len(pieces) and breaks[number - 1]
        if joins:
            piece, before = pieces[number], pieces[number - 1]
            assert piece is not None and before is not None, "they may be joined"
            own = len(piece.quoted) + len(piece.indent)
            head = pieces[first]
            assert head is not None
            if indent is None:
                # of an item, the other lines are indented as its text is, or less
                joins = own <= head.before + 8 and (bool(head.marker) or own <= head.before)
                joins = joins and (not head.marker or own > len(head.quoted + head.indent) or not own)
                indent = own
            else:
                joins = own == indent
        if not joins:
            if number - first > 1:
                yield first, number - 1
            first, indent = number, None


def _wrapped_parts(block: Sequence[_Piece], width: int | None) -> Iterator[tuple[int, int, int]]:
    """Yield the first and last line of each part of a block that was wrapped, and its width."""
    full = [width is not None and _is_full(first, second, width) for first, second in pairwise(block)]
    if all(_ends_sentence(first, second) for first, second in pairwise(block)):
        return  # a sentence per line
    if width is not None and (all(full) or _mostly_full(block, full, width)):
        yield 0, len(block) - 1, width
        return
    if (own := _own_width(block)) is not None:
        yield 0, len(block) - 1, own
        return
    going_on = [_goes_on(first, second) for first, second in pairwise(block)]
    first = 0
    for number, goes in enumerate([*full, False]):
        if goes:
            continue
        breaks = number - first
        # A line of verse may be full by chance.
        if width is not None and breaks > 1 and sum(going_on[first:number]) >= _GOES_ON * breaks:
            yield first, number, width
        first = number + 1


def _mostly_full(block: Sequence[_Piece], full: Sequence[bool], width: int) -> bool:
    """Tell whether a block was wrapped by hand: most lines are full, and sentences go on after the others."""
    if sum(full) < max(2, len(full) * 2 / 3):
        return False
    return all(
        is_full or (first.size >= width * 0.6 and _goes_on(first, second))
        for (first, second), is_full in zip(pairwise(block), full, strict=True)
    )


def _is_full(first: _Piece, second: _Piece, width: int) -> bool:
    low, high = _room(first, second)
    return low <= width + _SLACK and high >= width - _SLACK


def _own_width(block: Sequence[_Piece]) -> int | None:
    """Return the width that all line breaks of a block agree on, if they are many; else None."""
    if len(block) <= _FEWEST_OWN:
        return None
    rooms = [_room(first, second) for first, second in pairwise(block)]
    low, high = max(low for low, _ in rooms), min(high for _, high in rooms)
    going_on = sum(_goes_on(first, second) for first, second in pairwise(block))
    agree = low <= high and _NARROWEST <= low <= _WIDEST and block[-1].size <= high
    return low if agree and going_on >= _GOES_ON * len(rooms) else None


def _paragraph(block: Sequence[_Piece], first: int, width: int, words: frozenset[str]) -> Paragraph:
    head, second = block[0], block[1]
    parts = [head.marker + head.text]
    starts, length = [0], len(parts[0])
    for piece in block[1:]:
        before, line = parts[-1][-80:], piece.marker + piece.text
        if (cut := _HYPHENATED.search(before)) and line[:1].islower():
            rest = _FIRST_LETTERS.match(line)
            if (cut[1] + (rest[0] if rest else "")).lower() in words:
                # “transla-⏎tion” is one word if the file has it elsewhere, “well-⏎known” two
                parts[-1], length = parts[-1][:-1], length - 1
        elif not (_ATTACHED.search(before[-3:]) or _DASHED.match(line)):
            line = " " + line
        starts.append(length + (line[0] == " "))
        parts.append(line)
        length += len(line)
    return Paragraph(
        first,
        first + len(block) - 1,
        "".join(parts),
        tuple(starts),
        head.quoted + head.indent,
        second.quoted + second.indent,
        width,
    )
