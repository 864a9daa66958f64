"""Tags inside a translated sentence: whose they are, and that none stays open where a cue ends.

A tag of the translation is a tag if its source sentence has it too; everything else is text. Where a
translation is divided over cues, what is open at the end of one is closed there and opened again in the next.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cadec_cli.text.formats.markup import TAGS, Half, escape_text, meaning, unpaired_tags, without
from cadec_cli.text.sentences import Span, sentence_spans

# Tags that the format has no way to write as text.
_NEVER_TEXT = {"srt": TAGS["srt"], "vtt": re.compile(r"\{\\[^{}]*\}")}


def keep_known_tags(translation: str, tags: Sequence[str], markup: str) -> str:
    """Write a translation: the tags of its source as tags, each as often as it is there, the rest as text."""
    left = Counter(tags)
    shown, done = "", 0
    for tag in TAGS[markup].finditer(translation):
        if left[tag[0]] > 0:
            left[tag[0]] -= 1
            shown += _text(translation[done : tag.start()], markup) + tag[0]
            done = tag.end()
    return (shown + _text(translation[done:], markup)).strip()


def _text(text: str, markup: str) -> str:
    # without the inner one, what is around it may become a tag
    while markup in _NEVER_TEXT and _NEVER_TEXT[markup].search(text):
        text = _NEVER_TEXT[markup].sub("", text)
    return escape_text(re.sub(r"\s+", " ", text), markup)


def carry_open_tags(parts: Sequence[str], markup: str) -> list[str]:
    """Close what is open at the end of every part but the last, and open it again in the next."""
    parts = list(parts)
    for number in range(1, len(parts)):
        parts[number - 1 : number + 1] = _settle_tags(parts[number - 1], parts[number], markup)
    carrying: list[Half] = []
    shown = []
    for number, part in enumerate(parts, 1):
        if not part and number < len(parts):
            shown.append("")
            continue
        part = reopen_tags(carrying) + part
        carrying, _ = unpaired_tags(TAGS[markup].finditer(part))
        shown.append(part + closings(carrying) if number < len(parts) else part)
    return shown


def _settle_tags(before: str, after: str, markup: str) -> tuple[str, str]:
    """Let closing tags stand before a cue's end, and opening ones after it."""
    while (
        before
        and (tag := TAGS[markup].match(after))
        and (halves := meaning(tag[0]))
        and not any(half.opens for half in halves)
    ):
        before, after = before + tag[0], after[tag.end() :].lstrip()
    while (
        after
        and (tag := next((tag for tag in TAGS[markup].finditer(before) if tag.end() == len(before)), None))
        and (halves := meaning(tag[0]))
        and all(half.opens for half in halves)
    ):
        before, after = before[: tag.start()].rstrip(), tag[0] + after
    return before, after


def reopen_tags(halves: Iterable[Half]) -> str:
    """Write tags again, each as it was written if all that it opens and closes is wanted."""
    wanted: dict[tuple[int, str], list[Half]] = {}
    for half in halves:
        wanted.setdefault((half.start, half.tag), []).append(half)
    return "".join(
        tag if len(meaning(tag)) == len(found) else "".join(_other(half, opens=half.opens) for half in found)
        for (_, tag), found in wanted.items()
    )


def closings(halves: Sequence[Half]) -> str:
    """Write the closing tags of what is open, innermost first."""
    return "".join(_other(half, opens=False) for half in reversed(halves))


def _other(half: Half, *, opens: bool) -> str:
    if half.tag.startswith("{\\"):
        return f"{{\\{half.name}{opens:d}}}"
    before, after = half.tag[0], ">" if half.tag[0] == "<" else "}"
    return f"{before}{'' if opens else '/'}{half.name}{after}"


@dataclass(frozen=True)
class Effect:
    """What a stretch of a cue leaves open for what follows, and closes of what stands before."""

    opened: tuple[Half, ...]
    closed: tuple[Half, ...]

    @classmethod
    def of(cls, text: str, markup: str) -> "Effect":
        """Find the halves of pairs in a text."""
        opened, closed = unpaired_tags(TAGS[markup].finditer(text))
        return cls(tuple(opened), tuple(closed))

    def without(self, starts: set[int], offset: int) -> "Effect":
        """Leave out the halves at some places, which are counted from `offset` before this text."""
        return Effect(
            tuple(half for half in self.opened if half.start + offset not in starts),
            tuple(half for half in self.closed if half.start + offset not in starts),
        )


def fix_open_tags(text: str, had: Effect, wanted: Effect, markup: str) -> str:
    """Give a stretch the effect that is wanted of it, and no other than what it replaces `had`."""
    has = Effect.of(text, markup)
    opened, closed = _minus(wanted.opened, has.opened), _minus(wanted.closed, has.closed)
    # what was closed and opened again, as between two lines in italics, needs neither
    missing_opened, missing_closed = _minus(opened, closed), _minus(closed, opened)
    left_open, unopened = _minus(has.opened, had.opened), _minus(has.closed, had.closed)
    before = reopen_tags(missing_opened) + "".join(_other(half, opens=True) for half in reversed(unopened))
    return before + text + closings(left_open) + reopen_tags(missing_closed)


def _minus(halves: Sequence[Half], others: Sequence[Half]) -> list[Half]:
    left = Counter(half.name for half in others)
    remaining = []
    for half in halves:
        if left[half.name] > 0:
            left[half.name] -= 1
        else:
            remaining.append(half)
    return remaining


def tagged_sentence_spans(text: str, tags: Sequence[Span], language: str) -> list[Span]:
    """Find sentences as if there were no tags; a tag between two belongs to the one it closes or opens."""
    if not tags:
        return sentence_spans(text, language)
    places: list[int] = []  # of every visible character
    done = 0
    for start, end in [*tags, (len(text), len(text))]:
        places += range(done, start)
        done = end
    spans = [
        (places[first], places[last - 1] + 1) for first, last in sentence_spans(without(text, tags), language)
    ]
    starts = [start for start, _ in tags]
    done = 0
    for number, (first, last) in enumerate(spans):
        begin = first
        for start, end in tags[bisect_left(starts, done) : bisect_left(starts, first)]:
            halves = meaning(text[start:end])
            if number and begin == first and halves and not any(half.opens for half in halves):
                spans[number - 1] = (spans[number - 1][0], end)
            else:
                begin = min(begin, start)
        spans[number] = (begin, last)
        done = last
    if spans and starts[-1] >= done:
        spans[-1] = (spans[-1][0], tags[-1][1])
    return spans
