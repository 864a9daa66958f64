"""Sentences with tags: made of the pieces of a paragraph, and when they are translated made into pieces.

The tags of a sentence have short names, each once. A translation may come back with tags lost, doubled,
crossed or empty: every mark has one place in it nevertheless, and elements are nested as in the source.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from cadec_cli.text.formats.richtext.pieces import Escape, Item, Pair, as_mark, shared_depth
from cadec_cli.text.markup import proportional_range
from cadec_cli.text.sentences import Span


@dataclass(frozen=True)
class _InnerPair:
    """An element around a part of a sentence, by the positions of that part in the text without tags."""

    pair: int
    parent: int | None  # the innermost element around it that is inside the sentence
    span: Span
    # None: it is around the same words as its parent, whose tags stand for both
    tags: tuple[str, str] | None = None

    def tag(self, side: int) -> str:
        """Return the tag that opens (0) or closes (1) it; nothing if its parent's tags stand for it."""
        return self.tags[side] if self.tags is not None else ""


@dataclass(frozen=True)
class _InnerMark:
    item: Item
    tag: str
    place: int


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence as it is translated, what its tags stand for, and the items that it was made of."""

    text: str
    plain: str
    items: tuple[Item, ...]
    outer: tuple[int, ...]  # the elements around all of it
    pairs: tuple[_InnerPair, ...]
    marks: tuple[_InnerMark, ...]


def tagged_sentence(
    items: Sequence[Item], pairs: Sequence[Pair], tags: bool
) -> Iterator[TaggedSentence | Item]:
    """Yield the sentence that is made of items; the items themselves if there is nothing to translate."""
    if not any(map(str.isalpha, "".join(item.shown for item in items if not item.copied))):
        yield from items
        return
    words = [item for item in items if item.shown.strip()]
    outer = words[0].stack
    for item in words[1:]:
        outer = outer[: shared_depth(outer, item.stack)]
    plain = "".join(item.shown for item in items)
    stacks = [item.stack[len(outer) :] if item.stack[: len(outer)] == outer else () for item in items]
    names = _Names(plain)
    found = _inner_pairs(items, stacks)
    marks: list[_InnerMark] = []
    text = ""
    stack: tuple[int, ...] = ()
    place = 0
    for item, inner in zip([*items, Item((), "", ())], [*stacks, ()], strict=True):
        shared = shared_depth(stack, inner)
        text += "".join(found[number].tag(1) for number in reversed(stack[shared:]))
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
    yield TaggedSentence(
        text if tags else plain, plain, tuple(items), outer, tuple(found.values()), tuple(marks)
    )


def _inner_pairs(items: Sequence[Item], stacks: Sequence[tuple[int, ...]]) -> dict[int, _InnerPair]:
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


def translated_pieces(
    sentence: TaggedSentence, translation: str, escape: Escape, pairs: Sequence[Pair]
) -> Iterator[Item]:
    """Yield the items of a translation: those of its source, around other words."""
    text, opened, marked, copies = _take_out(sentence, translation)
    spans = _spans_of_pairs(sentence, text, opened, copies)
    marks = [
        (
            _place_of_mark(sentence, mark, text, marked.get(number), copies),
            mark.item,
            sentence.plain[max(0, mark.place - 1) : mark.place + 1].isspace(),
        )
        for number, mark in enumerate(sentence.marks)
    ]
    for one in sentence.pairs:
        start, end = spans[one.pair]
        if start == end and (pairs[one.pair].start or pairs[one.pair].end):  # rather empty than lost
            marks.append((start, as_mark(pairs[one.pair], (), ()), False))
    waiting = deque(sorted(marks, key=lambda one: one[0]))
    copied = {start: item for (start, _), item in copies}
    edges = {0, *(place for place, _, _ in marks)}
    last = ""
    edges.update(edge for span in (*spans.values(), *(span for span, _ in copies)) for edge in span)
    for start, end in pairwise([*sorted(edges), len(text), len(text)]):
        while waiting and waiting[0][0] <= start:
            _, item, spaced = waiting.popleft()
            stack = (*sentence.outer, *_stack_at(sentence, spans, start, item.stack))
            if spaced and last.isalnum():
                yield Item((" ",), " ", stack)
            yield replace(item, stack=stack)
            if spaced and text[start : start + 1].isalnum():
                yield Item((" ",), " ", stack)
        stack = (*sentence.outer, *_stack_at(sentence, spans, start))
        if start < end and start in copied:
            yield replace(copied[start], stack=stack)
        elif start < end:
            yield Item((escape(text[start:end]),), text[start:end], stack)
        last = text[end - 1 : end]


def _stack_at(
    sentence: TaggedSentence, spans: dict[int, Span], place: int, of_mark: tuple[int, ...] | None = None
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


_Copies = list[tuple[Span, Item]]


def _take_out(
    sentence: TaggedSentence, translation: str
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
    waiting: dict[str, list[Item]] = {}
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
    sentence: TaggedSentence, text: str, opened: dict[int, Span], copies: _Copies
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
    sentence: TaggedSentence, mark: _InnerMark, text: str, found: int | None, copies: _Copies
) -> int:
    """Return where a mark goes: where its tag was, else in proportion; never into copied words."""
    place = found if found is not None else proportional_range(sentence.plain, 0, mark.place, text)[1]
    return next((last for (first, last), _ in copies if first < place < last), place)
