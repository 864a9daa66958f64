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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from cadec_cli.text.documents import Sentence
from cadec_cli.text.formats.layout import Source, one_line, take
from cadec_cli.text.formats.richtext.pieces import (
    Content,
    Escape,
    Item,
    Pair,
    Translatable,
    Wrap,
    as_mark,
    shared_depth,
)
from cadec_cli.text.formats.richtext.tagged_sentences import (
    TaggedSentence,
    tagged_sentence,
    translated_pieces,
)
from cadec_cli.text.sentences import Span, sentence_spans, visible_span

MAX_NESTED = 30  # elements around one word; those further inside are marks
MAX_TAGS = 60  # of one sentence; one that has more is cut
_LONGEST_NOTE = 8  # characters of the mark of a note
_JOINING = frozenset(["+", "-", "/", "–"])  # between keys
MAX_COPIED = 200  # characters that are copied inside a sentence


@dataclass(frozen=True, eq=False)
class Paragraph:
    """The sentences of a paragraph and everything around them."""

    original: Content
    segments: tuple[TaggedSentence | Item, ...]
    pairs: tuple[Pair, ...]
    escape: Escape
    wrap: Wrap
    line_break: str | None  # between the source and its translation; None: never show both
    place: str
    nested: tuple[Translatable, ...] = ()
    # Makes a paragraph that has changed fit for its place, or returns None if it can't be written like this.
    finish: Callable[[str], str | None] = str
    alternative: tuple[Pair, ...] = ()  # other ways to write the elements, if they can't be written like this

    def sentences(self) -> Iterator[Sentence]:
        """Yield the sentences inside marks of this paragraph, and then its own."""
        for paragraph in self.nested:
            yield from paragraph.sentences()
        for segment in self.segments:
            if isinstance(segment, TaggedSentence):
                yield Sentence(segment.text, self.place)

    def restore(self, translations: Iterator[str], bilingual: str | None = None) -> str:
        """Return the paragraph with the translations of its sentences, which are the next to come."""
        inner = {id(one): one.restore(translations) for one in self.nested}
        changed = False
        items: list[Item] = []
        for segment in self.segments:
            if isinstance(segment, Item):
                items.append(segment)
                continue
            translation = take(translations)
            if translation == segment.text:
                items += segment.items
            else:
                changed = True
                items += translated_pieces(segment, one_line(translation), self.escape, self.pairs)
        before = _joined(self.original, inner)
        if not changed:
            return before
        written = self._finished(items, inner, before)
        if bilingual is None or self.line_break is None:
            return written
        source = self._source(inner)
        both = (source, written) if bilingual == "above" else (written, source)
        return self.line_break.join(both)

    def _source(self, inner: dict[int, str]) -> str:
        """Return the words of the source with the elements around them, but without marks and identities."""
        pieces = (
            piece
            for segment in self.segments
            for piece in ((segment,) if isinstance(segment, Item) else segment.items)
        )
        words = [piece for piece in pieces if not piece.name or piece.breaks]
        return self._write(words, inner, self.pairs, again=True)

    def _finished(self, items: Sequence[Item], inner: dict[int, str], before: str) -> str:
        for pairs in (self.pairs, self.alternative):
            if pairs and (finished := self.finish(self._write(items, inner, pairs))) is not None:
                return finished
        finished = None if self.pairs else self.finish(self._write(items, inner, ()))
        return before if finished is None else finished

    def _write(
        self, items: Sequence[Item], inner: dict[int, str], pairs: Sequence[Pair], *, again: bool = False
    ) -> str:
        """Write items with the elements around them, each opened and closed as seldom as possible.

        If they are written `again`, no element has an identity.
        """
        written: list[str] = []
        stack: tuple[int, ...] = ()
        opened = set(range(len(pairs))) if again else set[int]()
        text = ""
        broken = False  # a line ended just before
        for item in [*_near_words(items), Item((), "", ())]:
            if text and not (item.is_text and item.raw and item.stack == stack):
                before, after = self._wrap(stack)
                written.append(before + text + after)
                text = ""
            shared = shared_depth(stack, item.stack)
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


def _near_words(items: Sequence[Item]) -> list[Item]:
    """Leave white space and marks inside an element only if what is beside them is: words may have moved."""
    near: list[Item] = []
    before: tuple[int, ...] = ()
    for number, item in enumerate(items):
        if not item.shown.strip() and item.stack:
            after = next((one.stack for one in items[number + 1 : number + 9] if one.shown.strip()), ())
            item = replace(
                item,
                stack=item.stack[: max(shared_depth(before, item.stack), shared_depth(after, item.stack))],
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

    _pieces: list[Item] = field(default_factory=list)
    _pairs: list[Pair] = field(default_factory=list)
    _events: list[tuple[str, int]] = field(default_factory=list)
    _tags: list[tuple[str, Content]] = field(default_factory=list)

    def text(self, raw: str, shown: str) -> None:
        """Add text. If `raw` and `shown` are equally long, their characters correspond."""
        self._add(Item((raw,), shown, ()))

    def mark(self, name: str, raw: Content, *, breaks: bool = False) -> None:
        """Add something that is kept and has no words of its own; a line may end there if it `breaks`."""
        self._add(Item(raw, "", (), name=name, breaks=breaks))
        if breaks:
            self._add(Item(("",), " ", ()))

    def copy(self, raw: Content, shown: str, *, quoted: bool = True) -> None:
        """Add words that are copied. If they are not `quoted`, they must be what translation copies."""
        words = " ".join(shown.replace("`", "'").split())[:MAX_COPIED]
        if words:
            self._add(Item(raw, f"`{words}`" if quoted else shown, (), copied=True))
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
        self._pieces.append(Item((raw,), shown, (number,)))

    def _add(self, item: Item) -> None:
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
        items = _with_joined_copies(self._items())
        shown = "".join(item.shown for item in items)
        if not any(map(str.isalpha, shown)):
            return original
        spans = _sentence_spans(items, shown, source)
        segments = tuple(_segments(items, spans, self._pairs, tags=source.tags))
        nested = tuple(piece for piece in original if not isinstance(piece, str))
        if not any(isinstance(segment, TaggedSentence) for segment in segments):
            return original
        pairs = tuple(self._pairs)
        return (Paragraph(original, segments, pairs, escape, wrap, line_break, place, nested),)

    def _raw(self, event: tuple[str, int]) -> Content:
        kind, number = event
        return self._pieces[number].raw if kind in ("item", "style") else self._tags[number][1]

    def _items(self) -> list[Item]:
        """Find the elements that are opened and closed; other tags, and empty elements, are marks."""
        partner = self._partners()
        stack: list[int] = []
        begun: list[int] = []  # for each element of the stack, the items before it
        items: list[Item] = []
        for place, event in enumerate(self._events):
            kind, number = event
            if kind in ("item", "style"):
                item = self._pieces[number]
                items.append(
                    Item(item.raw, item.shown, (*stack, *item.stack), item.name, item.copied, item.breaks)
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
                    items[first:] = [as_mark(pair, items[first:], tuple(stack))]
            else:
                items.append(Item(self._raw(event), "", tuple(stack), name=self._tags[number][0]))
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


def _with_joined_copies(items: Sequence[Item]) -> list[Item]:
    """Make one of copied words that only a sign joins, such as two keys."""
    joined: list[Item] = []
    for item in items:
        if len(joined) > 1 and _are_joined(joined[-2], joined[-1], item):
            first, sign = joined[-2:]
            shown = f"{first.shown[:-1]}{sign.shown}{item.shown[1:]}"
            joined[-2:] = [replace(first, raw=(*first.raw, *sign.raw, *item.raw), shown=shown)]
        else:
            joined.append(item)
    return joined


def _are_joined(first: Item, sign: Item, last: Item) -> bool:
    quoted = all(one.copied and one.shown[0] == "`" for one in (first, last))
    alike = first.stack == sign.stack == last.stack
    return quoted and alike and sign.shown in _JOINING and len(first.shown) + len(last.shown) < MAX_COPIED


def _without_words(pair: Pair, inside: Sequence[Item], stack: tuple[int, ...]) -> Item:
    """Return an element without words in it as one mark, or as white space."""
    mark = as_mark(pair, inside, stack)
    if inside and all(item.is_text for item in inside):
        return Item(mark.raw, " ", stack)
    return mark


def _is_note(name: str, items: Sequence[Item], first: int) -> bool:
    """Tell whether an element is the mark of a note: a raised number, or a link with one after a word."""
    shown = "".join(item.shown for item in items[first:])
    if len(shown) > _LONGEST_NOTE or any(map(str.isalpha, shown)):
        return False
    before = next((item.shown for item in reversed(items[:first]) if item.shown), " ")
    return name == "sup" or (name == "a" and not before[-1].isspace())


def _sentence_spans(items: Sequence[Item], shown: str, source: Source) -> list[Span]:
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


def _line_ends(items: Sequence[Item], shown: str) -> Iterator[int]:
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


def _with_few_tags(items: Sequence[Item], spans: Sequence[Span]) -> list[Span]:
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
    items: Sequence[Item], spans: Sequence[Span], pairs: Sequence[Pair], *, tags: bool
) -> Iterator[TaggedSentence | Item]:
    """Divide items into those of sentences and those between them."""
    waiting = iter(spans)
    start, end = next(waiting, (-1, -1))
    inside: list[Item] = []
    place = 0
    for item in items:
        left: Item | None = item
        while left is not None:
            stop = place + len(left.shown)
            rest: Item | None = None
            for cut in (start, end):
                if place < cut < stop and rest is None:
                    left, rest = _cut(left, cut - place)
                    stop = place + len(left.shown)
            if start < stop and place < end and (left.shown or place > start):
                inside.append(left)
            else:
                yield from tagged_sentence(inside, pairs, tags)
                inside = []
                yield left
            if left.shown and end <= stop and start >= 0:
                yield from tagged_sentence(inside, pairs, tags)
                inside = []
                start, end = next(waiting, (-1, -1))
            place = stop
            left = rest
    yield from tagged_sentence(inside, pairs, tags)


def _cut(item: Item, at: int) -> tuple[Item, Item | None]:
    """Cut an item of text; one that has to stay whole is returned alone."""
    raw = item.raw[0] if len(item.raw) == 1 else ""
    if not item.is_text or not isinstance(raw, str) or len(raw) != len(item.shown):
        return item, None
    return (
        replace(item, raw=(raw[:at],), shown=item.shown[:at]),
        replace(item, raw=(raw[at:],), shown=item.shown[at:]),
    )


@dataclass(frozen=True)
class MarkedText:
    """A text with markup: what is kept, and its paragraphs."""

    content: Content

    def sentences(self) -> Iterator[Sentence]:
        """Yield all sentences in their order."""
        for piece in self.content:
            if not isinstance(piece, str):
                yield from piece.sentences()

    def restore(self, translations: Iterator[str], bilingual: str | None = None) -> Iterator[str]:
        """Yield the text with the translations of its sentences, which are the next to come."""
        for piece in self.content:
            yield piece if isinstance(piece, str) else piece.restore(translations, bilingual)


_TAG = re.compile(r"</?[a-z][a-z0-9]*/?>")


def without_tags(sentence: str, format: str) -> str:
    """Return a sentence without the tags that stand for its markup."""
    return _TAG.sub("", sentence)
