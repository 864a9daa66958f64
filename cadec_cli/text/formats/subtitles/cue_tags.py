"""Tags inside subtitle cues: `<i>`, `<v Bob>`, `{\\an8}`; what of a line is text and what is not.

Tags (and the dash of a speaker) at the ends of a line are not part of its text and stay where they are. Tags
in the middle of a line are part of it if whoever reads it asks for them (see `inline`), and are left out
otherwise, for nobody knows then which word of the translation they belong to. The halves of pairs that reach
over the line's end are kept either way, so that no tag stays open.
"""

import html
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cadec_cli.text.sentences import Span, sentence_spans, visible_span

_HTML_NAMES = "b|i|u|s|em|strong|font|span|c|v|lang|ruby|rt"
TAGS = {
    "srt": re.compile(rf"</?\s*(?:{_HTML_NAMES})\b[^<>]*>|\{{\\[^{{}}]*\}}|\{{/?[biu]\}}", re.IGNORECASE),
    "vtt": re.compile(r"</?[a-z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\}", re.IGNORECASE),
    "ass": re.compile(r"\{[^{}]*\}"),
}
_NAMED_TAG = re.compile(r"<(/?)\s*([^\W\d]\w*)|\{(/?)([biu])\}", re.IGNORECASE)
_UNPAIRED_NAMES = frozenset({"br"})
_ASS_TOGGLE = re.compile(r"\\([ibus])([01])(?!\d)")
_DASH = re.compile(r"[-–—―‐]{1,2}(?!\d)\s*")
_FIRST_LETTER = re.compile(r"[^\W_]")


@dataclass(frozen=True)
class CueLine:
    """One line of a cue: where its text is in the file, how it reads, and where in that tags are."""

    start: int
    end: int
    text: str
    speaker: bool  # a dash before it says that somebody else is speaking
    tags: tuple[Span, ...] = ()

    @property
    def visible_text(self) -> str:
        """The text as it is on the screen."""
        return without(self.text, self.tags)


@dataclass(frozen=True)
class Half:
    """What one tag opens or closes; a tag of ASS may do several things, each is a half of its own."""

    name: str
    opens: bool
    tag: str
    start: int  # of the tag


def inline_tags(text: str, subtitle_format: str) -> list[Span]:
    """Return where the tags of a format are in a text; formats that are no subtitles have none."""
    tags = TAGS.get(markup_of(subtitle_format))
    return [tag.span() for tag in tags.finditer(text)] if tags else []


def markup_of(subtitle_format: str) -> str:
    """Return whose tags a format has: SSA's are those of ASS."""
    return "ass" if subtitle_format == "ssa" else subtitle_format


def without(text: str, tags: Iterable[Span]) -> str:
    """Leave the tags out of a text."""
    seen, done = "", 0
    for start, end in tags:
        seen += text[done:start]
        done = end
    return seen + text[done:]


def cue_line(file_text: str, start: int, end: int, markup: str, *, tags: bool = False) -> CueLine | None:
    """Find the text in one line of a cue; None where there is none. `markup` is srt, vtt or ass."""
    line = file_text[start:end]
    found = list(TAGS[markup].finditer(line))
    first, last = _without_outer_tags(line, found)
    dash = _speaker_dash(line, first, last, markup)
    if dash:
        # tags may stand on both sides of the dash
        found = [tag for tag in found if tag.start() >= dash.end()]
        first, _ = _without_outer_tags(line, found, dash.end())
    first, last = _with_other_halves(found, first, last)
    inner = [tag.span() for tag in found if first <= tag.start() < last]
    text, places = _read(line, inner, first, last, markup)
    seen = without(text, places)
    begin, stop = visible_span(seen, 0, len(seen))
    if begin == stop:
        return None
    if not tags:
        text, places = " ".join(seen[begin:stop].split()), ()
    return CueLine(start + first, start + last, text, speaker=bool(dash), tags=places)


def _speaker_dash(line: str, first: int, last: int, markup: str) -> re.Match[str] | None:
    """Find a dash that is no minus, and none after which a sentence goes on in small letters."""
    dash = _DASH.match(line, first, last)
    letter = _FIRST_LETTER.search(TAGS[markup].sub("", line[dash.end() : last])) if dash else None
    return dash if letter and not letter[0].islower() else None


def _without_outer_tags(line: str, tags: list[re.Match[str]], start: int = 0) -> Span:
    first, last = visible_span(line, start, len(line))
    for tag in tags:
        if tag.start() == first:
            first = visible_span(line, tag.end(), len(line))[0]
    for tag in reversed(tags):
        if tag.end() == last and tag.start() >= first:
            last = visible_span(line, first, tag.start())[1]
    return first, max(first, last)


def _with_other_halves(tags: list[re.Match[str]], first: int, last: int) -> Span:
    """Take in outer tags as far as they are opened or closed inside of the text."""
    for tag in reversed([tag for tag in tags if tag.start() < first]):
        _, closed = unpaired_tags(one for one in tags if first <= one.start() < last)
        wanted = {half.name for half in closed}
        if any(half.name in wanted for half in meaning(tag[0]) if half.opens):
            first = tag.start()
    for tag in [tag for tag in tags if tag.end() > last]:
        opened, _ = unpaired_tags(one for one in tags if first <= one.start() < last)
        wanted = {half.name for half in opened}
        if any(half.name in wanted for half in meaning(tag[0]) if not half.opens):
            last = tag.end()
    return first, last


def _read(line: str, tags: list[Span], first: int, last: int, markup: str) -> tuple[str, tuple[Span, ...]]:
    """Return the text of a line with its tags as they are written, and where they are in it."""
    text = ""
    places = []
    for start, end in [*tags, (last, last)]:
        between = _plain(line[first:start], markup)
        text += between.lstrip() if not text or text.endswith(" ") else between
        if start < end:
            places.append((len(text), len(text) + end - start))
            text += line[start:end]
        first = end
    return text.rstrip(), tuple(places)


def _plain(text: str, markup: str) -> str:
    if markup == "vtt":
        text = html.unescape(text)
    elif markup == "ass":
        text = text.replace(r"\h", " ")
    return re.sub(r"\s+", " ", text)


def escape_text(text: str, markup: str) -> str:
    """Write translated text so that the format does not take any of it for markup."""
    if markup == "ass":
        return text.replace("{", "(").replace("}", ")")
    if markup == "vtt":
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("-->", "->")


def unpaired_tags(tags: Iterable[re.Match[str]]) -> tuple[list[Half], list[Half]]:
    """Return what is opened and not closed again, and what is closed and was not opened."""
    opened: list[Half] = []
    closed: list[Half] = []
    for tag in tags:
        for half in meaning(tag[0], tag.start()):
            names = [open_half.name for open_half in opened]
            if half.opens:
                opened.append(half)
            elif half.name in names:
                del opened[len(names) - 1 - names[::-1].index(half.name)]
            else:
                closed.append(half)
    return opened, closed


def meaning(tag: str, start: int = 0) -> list[Half]:
    """Return what a tag opens and closes: nothing, if it is none of a pair."""
    if found := _NAMED_TAG.match(tag):
        name = (found[2] or found[4]).lower()
        return [] if name in _UNPAIRED_NAMES else [Half(name, not (found[1] or found[3]), tag, start)]
    return [Half(name, value == "1", tag, start) for name, value in _ASS_TOGGLE.findall(tag)]


# Tags inside a translated sentence: whose they are, and that none stays open where a cue ends.


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
