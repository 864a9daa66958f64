"""Paragraphs with inline markup: cut into sentences that have tags, and put together from translations.

Readers of formats describe a paragraph piece by piece: text as it is written and as it is read, elements
around words, marks that stand between words, and words that are copied. A sentence shows an element as a pair
of tags with a short name (`<b>…</b>`), a mark as a single one (`<img/>`), and copied words in backquotes.
Translation knows how to treat these; whatever comes back, the paragraph is written with every mark once, and
with elements that are properly nested.

What is around a whole sentence is not shown in it. A paragraph in which no sentence has changed is written as
it was, character by character.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Union

from cadec_cli.text.documents import Sentence
from cadec_cli.text.formats.layout import Source, one_line, take
from cadec_cli.text.markup import proportional_range
from cadec_cli.text.sentences import Span, sentence_spans, visible_span

MAX_NESTED = 30  # elements around one word; those further inside are marks
MAX_TAGS = 60  # of one sentence; one that has more is cut
_LONGEST_NOTE = 8  # characters of the mark of a note
MAX_COPIED = 200  # characters that are copied inside a sentence

# What a file is made of: text that is kept, and paragraphs.
Content = tuple[Union[str, "Paragraph"], ...]
Wrap = tuple[str, str]
Escape = Callable[[str], str]


@dataclass(frozen=True)
class Pair:
    """An element around words: what its tags are called in sentences, and how it is written.

    With `wrap`, the text in it is written between these two.
    """

    name: str
    start: Content
    end: str
    wrap: Wrap | None = None


@dataclass(frozen=True)
class _Item:
    """A piece of a paragraph inside the elements of `stack`, the outermost first.

    Its text is `shown` in sentences; that of a mark is empty. With `raw` of the same length as `shown`, it
    can be cut at any character.
    """

    raw: Content
    shown: str
    stack: tuple[int, ...]
    name: str = ""  # of a mark
    copied: bool = False
    breaks: bool = False  # a mark that may end a line

    @property
    def is_text(self) -> bool:
        return not self.name and not self.copied


@dataclass(frozen=True)
class _InnerPair:
    """An element around a part of a sentence, by the positions of that part in the text without tags."""

    pair: int
    parent: int | None  # the innermost element around it that is inside the sentence
    span: Span
    tags: tuple[str, str] | None = (
        None  # None: around the same words as its parent, whose tags stand for both
    )


@dataclass(frozen=True)
class _InnerMark:
    item: _Item
    tag: str
    place: int


@dataclass(frozen=True)
class _TaggedSentence:
    """A sentence as it is translated, what its tags stand for, and the items that it was made of."""

    text: str
    plain: str
    items: tuple[_Item, ...]
    outer: tuple[int, ...]  # the elements around all of it
    pairs: tuple[_InnerPair, ...]
    marks: tuple[_InnerMark, ...]


@dataclass(frozen=True, eq=False)
class Paragraph:
    """The sentences of a paragraph and everything around them."""

    original: Content
    segments: tuple[_TaggedSentence | _Item, ...]
    pairs: tuple[Pair, ...]
    escape: Escape
    wrap: Wrap
    line_break: str | None  # between the source and its translation; None: never show both
    place: str
    nested: tuple[Paragraph, ...] = ()
    # Makes a paragraph that has changed fit for its place, or returns None if it can't be written like this.
    finish: Callable[[str], str | None] = str
    alternative: tuple[Pair, ...] = ()  # other ways to write the elements, if they can't be written like this

    def sentences(self) -> Iterator[Sentence]:
        """Yield the sentences inside marks of this paragraph, and then its own."""
        for paragraph in self.nested:
            yield from paragraph.sentences()
        for segment in self.segments:
            if isinstance(segment, _TaggedSentence):
                yield Sentence(segment.text, self.place)

    def restore(self, translations: Iterator[str], bilingual: str | None = None) -> str:
        """Return the paragraph with the translations of its sentences, which are the next to come."""
        inner = {id(one): one.restore(translations) for one in self.nested}
        changed = False
        items: list[_Item] = []
        for segment in self.segments:
            if isinstance(segment, _Item):
                items.append(segment)
                continue
            translation = take(translations)
            if translation == segment.text:
                items += segment.items
            else:
                changed = True
                items += _translated(segment, one_line(translation), self.escape, self.pairs)
        before = _joined(self.original, inner)
        if not changed:
            return before
        written = self._finished(items, inner, before)
        if bilingual is None or self.line_break is None:
            return written
        both = (before, written) if bilingual == "above" else (written, before)
        return self.line_break.join(both)

    def _finished(self, items: Sequence[_Item], inner: dict[int, str], before: str) -> str:
        for pairs in (self.pairs, self.alternative):
            if pairs and (finished := self.finish(self._write(items, inner, pairs))) is not None:
                return finished
        finished = None if self.pairs else self.finish(self._write(items, inner, ()))
        return before if finished is None else finished

    def _write(self, items: Sequence[_Item], inner: dict[int, str], pairs: Sequence[Pair]) -> str:
        """Write items with the elements around them, each opened and closed as seldom as possible."""
        written: list[str] = []
        stack: tuple[int, ...] = ()
        opened: set[int] = set()
        text = ""
        broken = False  # a line ended just before
        for item in [*_near_words(items), _Item((), "", ())]:
            if text and not (item.is_text and item.raw and item.stack == stack):
                before, after = self._wrap(stack)
                written.append(before + text + after)
                text = ""
            shared = _shared(stack, item.stack)
            written += [pairs[number].end for number in reversed(stack[shared:])]
            for number in item.stack[shared:]:
                start = _joined(pairs[number].start, inner)
                written.append(_IDENTITY.sub("", start) if number in opened else start)
                opened.add(number)
            stack = item.stack
            if item.is_text:
                raw = _joined(item.raw, inner)
                text += raw.lstrip(" ") if broken else raw
            else:
                written.append(_joined(item.raw, inner))
            broken = item.breaks or (broken and not item.shown.strip())
        return "".join(written)

    def _wrap(self, stack: Sequence[int]) -> Wrap:
        for number in reversed(stack):
            if (wrap := self.pairs[number].wrap) is not None:
                return wrap
        return self.wrap


def _near_words(items: Sequence[_Item]) -> list[_Item]:
    """Leave white space and marks inside an element only if what is beside them is: words may have moved."""
    near: list[_Item] = []
    before: tuple[int, ...] = ()
    for number, item in enumerate(items):
        if not item.shown.strip() and item.stack:
            after = next((one.stack for one in items[number + 1 : number + 9] if one.shown.strip()), ())
            item = replace(
                item, stack=item.stack[: max(_shared(before, item.stack), _shared(after, item.stack))]
            )
        before = item.stack
        near.append(item)
    return near


# An identity must not be there twice.
_IDENTITY = re.compile(r"\s(?:xml:)?id\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>\"']+)", re.IGNORECASE)


def _joined(content: Content, inner: dict[int, str]) -> str:
    return "".join(piece if isinstance(piece, str) else inner[id(piece)] for piece in content)


@dataclass
class ParagraphBuilder:
    """Collects the pieces of a paragraph in their order; `build` makes content of them."""

    _pieces: list[_Item] = field(default_factory=list)
    _pairs: list[Pair] = field(default_factory=list)
    _events: list[tuple[str, int]] = field(default_factory=list)
    _tags: list[tuple[str, Content]] = field(default_factory=list)

    def text(self, raw: str, shown: str) -> None:
        """Add text. If `raw` and `shown` are equally long, their characters correspond."""
        self._add(_Item((raw,), shown, ()))

    def mark(self, name: str, raw: Content, *, breaks: bool = False) -> None:
        """Add something that is kept and has no words of its own; a line may end there if it `breaks`."""
        self._add(_Item(raw, "", (), name=name, breaks=breaks))
        if breaks:
            self._add(_Item(("",), " ", ()))

    def copy(self, raw: Content, shown: str, *, quoted: bool = True) -> None:
        """Add words that are copied. If they are not `quoted`, they must be what translation copies."""
        words = " ".join(shown.replace("`", "'").split())[:MAX_COPIED]
        if words:
            self._add(_Item(raw, f"`{words}`" if quoted else shown, (), copied=True))
        else:
            self.mark("x", raw)

    def open(self, name: str, raw: Content) -> None:
        """Open an element around words."""
        self._tag("open", name, raw)

    def close(self, name: str, raw: str) -> None:
        """Close an element; without one that is open, this is a mark."""
        self._tag("close", name, (raw,))

    def style(self, name: str, wrap: Wrap, raw: str, shown: str) -> None:
        """Add text that is written between the two parts of `wrap`; like text beside it is one with it."""
        last = self._events[-1] if self._events else ("", 0)
        if last[0] == "style" and self._pairs[self._pieces[last[1]].stack[0]].wrap == wrap:
            number = self._pieces[last[1]].stack[0]
        else:
            number = len(self._pairs)
            self._pairs.append(Pair(name, (), "", wrap))
        self._events.append(("style", len(self._pieces)))
        self._pieces.append(_Item((raw,), shown, (number,)))

    def _add(self, item: _Item) -> None:
        self._events.append(("item", len(self._pieces)))
        self._pieces.append(item)

    def _tag(self, kind: str, name: str, raw: Content) -> None:
        self._events.append((kind, len(self._tags)))
        self._tags.append((name, raw))

    def build(
        self,
        source: Source,
        place: str,
        escape: Escape,
        *,
        original: Content | None = None,
        wrap: Wrap = ("", ""),
        line_break: str | None = None,
    ) -> Content:
        """Return the paragraph; if it has no words, only its content as it was.

        `original` is all of it as it was written, by default the pieces one after the other.
        """
        if original is None:
            original = tuple(piece for event in self._events for piece in self._raw(event))
        items = self._items()
        shown = "".join(item.shown for item in items)
        if not any(map(str.isalpha, shown)):
            return original
        spans = _sentence_spans(items, shown, source)
        segments = tuple(_segments(items, spans, self._pairs, tags=source.tags))
        nested = tuple(piece for piece in original if isinstance(piece, Paragraph))
        if not any(isinstance(segment, _TaggedSentence) for segment in segments):
            return original
        pairs = tuple(self._pairs)
        return (Paragraph(original, segments, pairs, escape, wrap, line_break, place, nested),)

    def _raw(self, event: tuple[str, int]) -> Content:
        kind, number = event
        return self._pieces[number].raw if kind in ("item", "style") else self._tags[number][1]

    def _items(self) -> list[_Item]:
        """Find the elements that are opened and closed; other tags, and empty elements, are marks."""
        partner = self._partners()
        stack: list[int] = []
        begun: list[int] = []  # for each element of the stack, the items before it
        items: list[_Item] = []
        for place, event in enumerate(self._events):
            kind, number = event
            if kind in ("item", "style"):
                item = self._pieces[number]
                items.append(
                    _Item(item.raw, item.shown, (*stack, *item.stack), item.name, item.copied, item.breaks)
                )
            elif place in partner and kind == "open":
                name, raw = self._tags[number]
                end = "".join(map(str, self._raw(self._events[partner[place]])))
                stack.append(len(self._pairs))
                begun.append(len(items))
                self._pairs.append(Pair(name, raw, end))
            elif kind == "close" and place in partner:
                pair, first = self._pairs[stack.pop()], begun.pop()
                if not any(item.shown.strip() for item in items[first:]):
                    items[first:] = [_without_words(pair, items[first:], tuple(stack))]
                elif _is_note(pair.name, items, first):
                    items[first:] = [_as_mark(pair, items[first:], tuple(stack))]
            else:
                items.append(_Item(self._raw(event), "", tuple(stack), name=self._tags[number][0]))
        return items

    def _partners(self) -> dict[int, int]:
        """Return the events that open and close one element, each by the other."""
        waiting: list[int] = []
        partner: dict[int, int] = {}
        held: dict[str, int] = {}
        for place, (kind, number) in enumerate(self._events):
            if kind == "open" and len(waiting) < MAX_NESTED:
                waiting.append(place)
                name = self._tags[number][0]
                held[name] = held.get(name, 0) + 1
            elif kind == "close" and held.get(self._tags[number][0]):
                name = self._tags[number][0]
                while waiting:
                    opening = waiting.pop()
                    opened = self._tags[self._events[opening][1]][0]
                    held[opened] -= 1
                    if opened == name:
                        partner[opening], partner[place] = place, opening
                        break
        return partner


def _without_words(pair: Pair, inside: Sequence[_Item], stack: tuple[int, ...]) -> _Item:
    """Return an element without words in it as one mark, or as white space."""
    mark = _as_mark(pair, inside, stack)
    if inside and all(item.is_text for item in inside):
        return _Item(mark.raw, " ", stack)
    return mark


def _as_mark(pair: Pair, inside: Sequence[_Item], stack: tuple[int, ...]) -> _Item:
    raw = (*pair.start, *(piece for item in inside for piece in item.raw), pair.end)
    return _Item(raw, "", stack, name=pair.name, breaks=any(item.breaks for item in inside))


def _is_note(name: str, items: Sequence[_Item], first: int) -> bool:
    """Tell whether an element is the mark of a note: a raised number, or a link with one after a word."""
    shown = "".join(item.shown for item in items[first:])
    if len(shown) > _LONGEST_NOTE or any(map(str.isalpha, shown)):
        return False
    before = next((item.shown for item in reversed(items[:first]) if item.shown), " ")
    return name == "sup" or (name == "a" and not before[-1].isspace())


def _sentence_spans(items: Sequence[_Item], shown: str, source: Source) -> list[Span]:
    """Return where sentences are in the text that a paragraph shows. Copied words are one word each."""
    words = "".join("x" * len(item.shown) if item.copied else item.shown for item in items)
    ends = [*_line_ends(items, shown), len(shown)]
    spans: list[Span] = []
    for start, end in pairwise([0, *ends]):
        line = words[start:end]
        whole = [visible_span(line, 0, len(line))]
        found = whole if source.lines else sentence_spans(line, source.language)
        spans += [(start + first, start + last) for first, last in found if first < last]
    return _with_few_tags(items, spans)


_SENTENCE_END = re.compile(r"[.!?:;…]\W*$")


def _line_ends(items: Sequence[_Item], shown: str) -> Iterator[int]:
    """Yield where a line break is also the end of a sentence: no small letter continues the sentence."""
    place = 0
    latest = -1
    for item in items:
        if item.breaks:
            after = shown[place : place + 40].lstrip("\"'“‘«([ ")
            again = latest >= 0 and not shown[latest:place].strip()
            if again or not after[:1].islower() or _SENTENCE_END.search(shown[max(0, place - 8) : place]):
                yield place
            latest = place
        place += len(item.shown)


def _with_few_tags(items: Sequence[_Item], spans: Sequence[Span]) -> list[Span]:
    """Cut sentences with too many tags, between two items."""
    if len(items) < MAX_TAGS:
        return list(spans)
    starts: list[int] = []
    place = 0
    for item in items:
        starts.append(place)
        place += len(item.shown)
    cut: list[Span] = []
    number = 0
    stack: tuple[int, ...] = ()
    for start, end in spans:
        inside = 0
        while number < len(items) and starts[number] < end:
            if starts[number] > start and not (items[number].is_text and items[number].stack == stack):
                inside += 1
                if inside >= MAX_TAGS:
                    cut.append((start, starts[number]))
                    start, inside = starts[number], 0
            stack = items[number].stack
            number += 1
        cut.append((start, end))
    return cut


def _segments(
    items: Sequence[_Item], spans: Sequence[Span], pairs: Sequence[Pair], *, tags: bool
) -> Iterator[_TaggedSentence | _Item]:
    """Divide items into those of sentences and those between them."""
    waiting = iter(spans)
    start, end = next(waiting, (-1, -1))
    inside: list[_Item] = []
    place = 0
    for item in items:
        left: _Item | None = item
        while left is not None:
            stop = place + len(left.shown)
            rest: _Item | None = None
            for cut in (start, end):
                if place < cut < stop and rest is None:
                    left, rest = _cut(left, cut - place)
                    stop = place + len(left.shown)
            if start < stop and place < end and (left.shown or place > start):
                inside.append(left)
            else:
                yield from _sentence(inside, pairs, tags)
                inside = []
                yield left
            if left.shown and end <= stop and start >= 0:
                yield from _sentence(inside, pairs, tags)
                inside = []
                start, end = next(waiting, (-1, -1))
            place = stop
            left = rest
    yield from _sentence(inside, pairs, tags)


def _cut(item: _Item, at: int) -> tuple[_Item, _Item | None]:
    """Cut an item of text; one that has to stay whole is returned alone."""
    raw = item.raw[0] if len(item.raw) == 1 else ""
    if not item.is_text or not isinstance(raw, str) or len(raw) != len(item.shown):
        return item, None
    return (
        replace(item, raw=(raw[:at],), shown=item.shown[:at]),
        replace(item, raw=(raw[at:],), shown=item.shown[at:]),
    )


def _sentence(items: Sequence[_Item], pairs: Sequence[Pair], tags: bool) -> Iterator[_TaggedSentence | _Item]:
    """Yield the sentence that is made of items; the items themselves if there is nothing to translate."""
    if not any(map(str.isalpha, "".join(item.shown for item in items if not item.copied))):
        yield from items
        return
    words = [item for item in items if item.shown.strip()]
    outer = words[0].stack
    for item in words[1:]:
        outer = outer[: _shared(outer, item.stack)]
    plain = "".join(item.shown for item in items)
    stacks = [item.stack[len(outer) :] if item.stack[: len(outer)] == outer else () for item in items]
    names = _Names(plain)
    found = _inner_pairs(items, stacks)
    marks: list[_InnerMark] = []
    text = ""
    stack: tuple[int, ...] = ()
    place = 0
    for item, inner in zip([*items, _Item((), "", ())], [*stacks, ()], strict=True):
        shared = _shared(stack, inner)
        text += "".join(tags[1] for number in reversed(stack[shared:]) if (tags := found[number].tags))
        for number in inner[shared:]:
            one = found[number]
            if one.parent is None or found[one.parent].span != one.span:
                name = names.new(pairs[number].name)
                found[number] = replace(one, tags=(f"<{name}>", f"</{name}>"))
                text += f"<{name}>"
        if item.name:
            mark = _InnerMark(item, f"<{names.new(item.name)}/>", place)
            marks.append(mark)
            text += mark.tag
        text += item.shown
        place += len(item.shown)
        stack = inner
    yield _TaggedSentence(
        text if tags else plain, plain, tuple(items), outer, tuple(found.values()), tuple(marks)
    )


def _inner_pairs(items: Sequence[_Item], stacks: Sequence[tuple[int, ...]]) -> dict[int, _InnerPair]:
    """Return the elements around parts of a sentence, outer ones before those inside them."""
    found: dict[int, _InnerPair] = {}
    place = 0
    for item, stack in zip(items, stacks, strict=True):
        for depth, number in enumerate(stack):
            if number not in found:
                found[number] = _InnerPair(number, stack[depth - 1] if depth else None, (place, place))
            found[number] = replace(found[number], span=(found[number].span[0], place + len(item.shown)))
        place += len(item.shown)
    return found


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many elements two places have in common, from the outermost on."""
    shared = 0
    while shared < min(len(one), len(other)) and one[shared] == other[shared]:
        shared += 1
    return shared


class _Names:
    """Names of tags in one sentence: each once, and none that its text has."""

    def __init__(self, text: str) -> None:
        self._text = text.lower()
        self._used: set[str] = set()

    def new(self, name: str) -> str:
        """Return a name for the next tag, with a number if need be."""
        wanted, number = name, 1
        while wanted in self._used or f"<{wanted}" in self._text or f"</{wanted}" in self._text:
            number += 1
            wanted = f"{name}{number}"
        self._used.add(wanted)
        return wanted


def _translated(
    sentence: _TaggedSentence, translation: str, escape: Escape, pairs: Sequence[Pair]
) -> Iterator[_Item]:
    """Yield the items of a translation: those of its source, around other words."""
    text, opened, marked, copies = _take_out(sentence, translation)
    spans = _spans_of_pairs(sentence, text, opened, copies)
    marks = [
        (_place_of_mark(sentence, mark, text, marked.get(number), copies), mark.item)
        for number, mark in enumerate(sentence.marks)
    ]
    for one in sentence.pairs:
        start, end = spans[one.pair]
        if start == end and (pairs[one.pair].start or pairs[one.pair].end):  # rather empty than lost
            marks.append((start, _as_mark(pairs[one.pair], (), ())))
    waiting = deque(sorted(marks, key=lambda one: one[0]))
    copied = {start: item for (start, _), item in copies}
    edges = {0, *(place for place, _ in marks)}
    edges.update(edge for span in (*spans.values(), *(span for span, _ in copies)) for edge in span)
    for start, end in pairwise([*sorted(edges), len(text), len(text)]):
        while waiting and waiting[0][0] <= start:
            item = waiting.popleft()[1]
            yield replace(item, stack=(*sentence.outer, *_stack_at(sentence, spans, start, item.stack)))
        stack = (*sentence.outer, *_stack_at(sentence, spans, start))
        if start < end and start in copied:
            yield replace(copied[start], stack=stack)
        elif start < end:
            shown = text[start:end]
            yield _Item((escape(shown),), shown, stack)


def _stack_at(
    sentence: _TaggedSentence, spans: dict[int, Span], place: int, of_mark: tuple[int, ...] | None = None
) -> Iterator[int]:
    """Yield the elements around a place, the outermost first; a mark at the edge of its own is inside."""
    for one in sentence.pairs:
        start, end = spans[one.pair]
        if of_mark is None:
            inside = start <= place < end
        else:
            inside = start <= place <= end if one.pair in of_mark else start < place < end
        if inside:
            yield one.pair


_Copies = list[tuple[Span, _Item]]


def _take_out(
    sentence: _TaggedSentence, translation: str
) -> tuple[str, dict[int, Span], dict[int, int], _Copies]:
    """Take the sentence's own tags out of a translation.

    Returns the text; of the elements whose tags are both there, where they begin and end; where marks are, by
    their number in the sentence; and the copied words.
    """
    known: dict[str, tuple[str, int]] = {}
    for number, one in enumerate(sentence.pairs):
        if one.tags is not None:
            known[one.tags[0]], known[one.tags[1]] = ("open", number), ("close", number)
    for number, mark in enumerate(sentence.marks):
        known[mark.tag] = ("mark", number)
    waiting: dict[str, list[_Item]] = {}
    for item in sentence.items:
        if item.copied:
            waiting.setdefault(item.shown, []).append(item)
    if not known and not waiting:
        return translation, {}, {}, []
    pattern = re.compile("|".join(map(re.escape, sorted([*known, *waiting], key=len, reverse=True))))
    text, done = "", 0
    places: dict[tuple[str, int], int] = {}
    copies: _Copies = []
    for match in pattern.finditer(translation):
        text += translation[done : match.start()]
        done = match.end()
        if match[0] in known:
            places.setdefault(known[match[0]], len(text))
        elif waiting[match[0]]:
            copies.append(((len(text), len(text) + len(match[0])), waiting[match[0]].pop(0)))
            text += match[0]
        else:
            text += match[0]
    text += translation[done:]
    for lost in (item for items in waiting.values() for item in items):  # rather at the end than nowhere
        text += " " if text and not text[-1].isspace() else ""
        copies.append(((len(text), len(text) + len(lost.shown)), lost))
        text += lost.shown
    spans = {
        one.pair: (places["open", number], places["close", number])
        for number, one in enumerate(sentence.pairs)
        if 0 <= places.get(("open", number), -1) <= places.get(("close", number), -1)
    }
    return text, spans, {number: place for (kind, number), place in places.items() if kind == "mark"}, copies


def _spans_of_pairs(
    sentence: _TaggedSentence, text: str, opened: dict[int, Span], copies: _Copies
) -> dict[int, Span]:
    """Return where elements go, nested as in the source; those that were apart stay apart."""
    spans: dict[int, Span] = {}
    beside: dict[int | None, list[Span]] = {}
    for one in sentence.pairs:
        if one.tags is None and one.parent is not None:
            spans[one.pair] = spans[one.parent]
            continue
        start, end = opened.get(one.pair) or proportional_range(sentence.plain, *one.span, text)
        for (first, last), _ in copies:
            start, end = (first if first < start < last else start), (last if first < end < last else end)
        low, high = spans[one.parent] if one.parent is not None else (0, len(text))
        start, end = max(start, low), min(end, high)
        siblings = beside.setdefault(one.parent, [])
        for first, last in siblings:
            if start < last and first < end:
                start, end = (start, first) if start < first else (last, end)
        if not any(one.pair in mark.item.stack for mark in sentence.marks):
            start, end = _trimmed(text, start, end)
        if not text[start:end].strip():
            start, end = _free_word(text, (low, high), siblings, start)
        spans[one.pair] = (start, end)
        siblings.append((start, end))
    return spans


def _trimmed(text: str, start: int, end: int) -> Span:
    """Return a span without the white space at its ends."""
    part = text[start:end]
    if not part.strip():
        return start, end
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())


def _free_word(text: str, inside: Span, taken: Sequence[Span], wanted: int) -> Span:
    """Return the word nearest to a place that no other element has; an empty span if there is none."""
    words = (match.span() for match in re.finditer(r"\S+", text))
    free = [
        (start, end)
        for start, end in words
        if inside[0] <= start and end <= inside[1] and all(end <= a or b <= start for a, b in taken)
    ]
    return min(free, key=lambda span: abs(span[0] - wanted), default=(inside[0], inside[0]))


def _place_of_mark(
    sentence: _TaggedSentence, mark: _InnerMark, text: str, found: int | None, copies: _Copies
) -> int:
    """Return where a mark goes: where its tag was, else in proportion; never into copied words."""
    place = found if found is not None else proportional_range(sentence.plain, 0, mark.place, text)[1]
    return next((last for (first, last), _ in copies if first < place < last), place)


@dataclass(frozen=True)
class MarkedText:
    """A text with markup: what is kept, and its paragraphs."""

    content: Content

    def sentences(self) -> Iterator[Sentence]:
        """Yield all sentences in their order."""
        for piece in self.content:
            if isinstance(piece, Paragraph):
                yield from piece.sentences()

    def restore(self, translations: Iterator[str], bilingual: str | None = None) -> Iterator[str]:
        """Yield the text with the translations of its sentences, which are the next to come."""
        for piece in self.content:
            yield piece if isinstance(piece, str) else piece.restore(translations, bilingual)


_TAG = re.compile(r"</?[a-z][a-z0-9]*/?>")


def without_tags(sentence: str, format: str) -> str:
    """Return a sentence without the tags that stand for its markup."""
    return _TAG.sub("", sentence)
