"""Tags inside subtitle cues: `<i>`, `<v Bob>`, `{\\an8}`.

Tags (and the dash of a speaker) at the ends of a line are not part of its text and stay where they are. Tags
in the middle of a line are part of its text if the reader asks for them, and are dropped otherwise, because
it is then unknown which word they belong to. Either way, a tag at an end stays in the line if its partner is
inside, so that no tag is left open.

In a translation, only tags of its source are tags. A pair that reaches over the end of a cue is closed there
and opened again in the next. What tags look like is in `markup`.
"""

import html
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cadec_cli.text.markup import STRAY_HTML, TAGS, Tag, subtitle_tags, without_tags
from cadec_cli.text.sentences import Span, base_language, sentence_spans, visible_span

# Notations whose text has entities such as &amp;.
ESCAPED = ("vtt", "ttml")

_DASH = re.compile(r"[-–—―‐]{1,2}(?!\d)\s*")
_DESCRIPTION = re.compile(r"[\[(][^\W\d_]{3}")
_FIRST_LETTER = re.compile(r"[^\W_]")


@dataclass(frozen=True)
class CueLine:
    """One line of a cue: where its text is in the file, how it reads, and the tags in that."""

    start: int
    end: int
    text: str
    speaker: bool  # a dash before it marks another speaker
    tags: tuple[Tag, ...] = ()

    @property
    def visible_text(self) -> str:
        """The text as it is on the screen."""
        return without_tags(self.text, self.tags)


@dataclass(frozen=True)
class Half:
    """Half of a pair: one thing that a tag opens or closes."""

    name: str
    opens: bool
    tag: Tag


def inline_tags(text: str, file_format: str) -> list[Tag]:
    """Return the tags in a text of a format; formats other than subtitles have none."""
    markup = markup_of(file_format)
    return subtitle_tags(text, markup) if markup in TAGS else []


def markup_of(subtitle_format: str) -> str:
    """Return the notation of a format's tags: SSA has those of ASS, and SBV is taken to have SubRip's."""
    return {"ssa": "ass", "sbv": "srt"}.get(subtitle_format, subtitle_format)


def cue_line(file_text: str, start: int, end: int, markup: str, *, tags: bool = False) -> CueLine | None:
    """Find the text in one line of a cue; None if it has none. `markup` is srt, vtt or ass."""
    line = file_text[start:end]
    found = subtitle_tags(line, markup)
    first, last = _without_outer_tags(line, found)
    dash = _speaker_dash(line, first, last, markup)
    if dash:
        # there may be tags on both sides of the dash
        found = [tag for tag in found if tag.start >= dash.end()]
        first, _ = _without_outer_tags(line, found, dash.end())
    first, last = _with_other_halves(found, first, last)
    inner = [tag for tag in found if first <= tag.start < last]
    text, kept = _read(line, inner, first, last, markup)
    seen = without_tags(text, kept)
    begin, stop = visible_span(seen, 0, len(seen))
    if begin == stop:
        return None
    if not tags:
        text, kept = " ".join(seen[begin:stop].split()), ()
    return CueLine(start + first, start + last, text, speaker=bool(dash), tags=kept)


# The dash before what a speaker says, as the typography of a language has it.
_DASHES = {
    **dict.fromkeys(("fr", "pl", "cs", "sk", "hu", "ro", "bg"), "– "),
    **dict.fromkeys(("ru", "uk", "be", "pt"), "— "),
    **dict.fromkeys(("es", "ca", "gl"), "—"),
}


def dash_of(language: str) -> str:
    """Return the dash before what a speaker says in a language, with the space after it."""
    return _DASHES.get(base_language(language), "- ")


def with_dash(gap: str, dash: str, markup: str) -> str:
    """Return what is before the words of a speaker with another dash; tags stay as they are."""
    found = None
    for match in re.finditer(rf"(?:{TAGS[markup].pattern})|([-–—―‐]{{1,2}}[^\S\r\n]*)", gap, re.IGNORECASE):
        found = match if match[1] else found
    return gap[: found.start()] + dash + gap[found.end() :] if found else gap


def _speaker_dash(line: str, first: int, last: int, markup: str) -> re.Match[str] | None:
    """Find the dash of a speaker: not a minus, and followed by a bracket or a letter that is not small."""
    dash = _DASH.match(line, first, last)
    said = TAGS[markup].sub("", line[dash.end() : last]) if dash else ""
    letter = _FIRST_LETTER.search(said)
    return dash if letter and (not letter[0].islower() or _DESCRIPTION.match(said)) else None


def _without_outer_tags(line: str, tags: list[Tag], start: int = 0) -> Span:
    first, last = visible_span(line, start, len(line))
    for tag in tags:
        if tag.start == first:
            first = visible_span(line, tag.end, len(line))[0]
    for tag in reversed(tags):
        if tag.end == last and tag.start >= first:
            last = visible_span(line, first, tag.start)[1]
    return first, max(first, last)


def _with_other_halves(tags: list[Tag], first: int, last: int) -> Span:
    """Include the outer tags whose partners are inside."""
    # Tags that switch nothing are left out: a line may have thousands.
    for tag in reversed([tag for tag in tags if tag.start < first and tag.switches]):
        _, closed = unpaired_tags(one for one in tags if first <= one.start < last)
        wanted = {half.name for half in closed}
        if any(switch.name in wanted for switch in tag.switches if switch.on):
            first = tag.start
    for tag in [tag for tag in tags if tag.end > last and tag.switches]:
        opened, _ = unpaired_tags(one for one in tags if first <= one.start < last)
        wanted = {half.name for half in opened}
        if any(switch.name in wanted for switch in tag.switches if not switch.on):
            last = tag.end
    return first, last


def _read(line: str, tags: list[Tag], first: int, last: int, markup: str) -> tuple[str, tuple[Tag, ...]]:
    """Return the text of a line with its tags as they are written, and these tags where they are in it."""
    text = ""
    kept = []
    for tag in [*tags, Tag("", last)]:
        between = _plain(line[first : tag.start], markup)
        text += between.lstrip() if not text or text.endswith(" ") else between
        if tag.text:
            kept.append(replace(tag, start=len(text)))
            text += tag.text
        first = tag.end
    return text.rstrip(), tuple(kept)


def _plain(text: str, markup: str) -> str:
    if markup in ESCAPED:
        text = html.unescape(text)
    elif markup == "ass":
        text = text.replace(r"\h", " ")
    return re.sub(r"\s+", " ", text)


def escape_text(text: str, markup: str) -> str:
    """Escape translated text so that none of it is read as markup."""
    if markup == "ass":
        return text.replace("{", "(").replace("}", ")")
    if markup == "sub":
        return text.replace("{", "(").replace("}", ")").replace("|", "/")
    if markup in ESCAPED:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("-->", "->")


def unpaired_tags(tags: Iterable[Tag]) -> tuple[list[Half], list[Half]]:
    """Return the halves that are opened and never closed, and those that are closed and never opened."""
    opened: list[Half] = []
    closed: list[Half] = []
    for tag in tags:
        for switch in tag.switches:
            names = [half.name for half in opened]
            if switch.on:
                opened.append(Half(switch.name, True, tag))
            elif switch.name in names:
                del opened[len(names) - 1 - names[::-1].index(switch.name)]
            else:
                closed.append(Half(switch.name, False, tag))
    return opened, closed


# Tags that the format has no way to write as text.
_NEVER_TEXT = {"srt": TAGS["srt"], "vtt": re.compile(r"\{\\[^{}]*\}"), "ass": STRAY_HTML}


def keep_known_tags(translation: str, tags: Sequence[str], markup: str) -> str:
    """Write a translation: each tag of its source as often as the source has it, all else as text."""
    left = Counter(tags)
    shown, done = "", 0
    for tag in subtitle_tags(translation, markup):
        if left[tag.text] > 0:
            left[tag.text] -= 1
            shown += _text(translation[done : tag.start], markup) + tag.text
            done = tag.end
    return (shown + _text(translation[done:], markup)).strip()


def _text(text: str, markup: str) -> str:
    # Without an inner tag, the text around it may become a tag.
    while markup in _NEVER_TEXT and _NEVER_TEXT[markup].search(text):
        text = _NEVER_TEXT[markup].sub("", text)
    return escape_text(re.sub(r"\s+", " ", text), markup)


def carry_open_tags(parts: Sequence[str], markup: str) -> list[str]:
    """Close the tags that are open at the end of every part but the last, and open them again in the next."""
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
        carrying, _ = unpaired_tags(subtitle_tags(part, markup))
        shown.append(part + closings(carrying) if number < len(parts) else part)
    return shown


def _settle_tags(before: str, after: str, markup: str) -> tuple[str, str]:
    """Move closing tags before the end of a cue, and opening ones after it."""
    while before and (tag := next(iter(subtitle_tags(after, markup)), None)):
        if tag.start or not tag.closes:
            break
        before, after = before + tag.text, after[tag.end :].lstrip()
    while after and (tag := next(iter(reversed(subtitle_tags(before, markup))), None)):
        if tag.end != len(before) or not tag.opens:
            break
        before, after = before[: tag.start].rstrip(), tag.text + after
    return before, after


def reopen_tags(halves: Iterable[Half]) -> str:
    """Write tags again, each as it was if all of its halves are wanted."""
    wanted: dict[Tag, list[Half]] = {}
    for half in halves:
        wanted.setdefault(half.tag, []).append(half)
    return "".join(
        tag.text
        if len(tag.switches) == len(found)
        else "".join(_other(half, opens=half.opens) for half in found)
        for tag, found in wanted.items()
    )


def closings(halves: Sequence[Half]) -> str:
    """Write the closing tags of halves that are open, innermost first."""
    return "".join(_other(half, opens=False) for half in reversed(halves))


def _other(half: Half, *, opens: bool) -> str:
    written = half.tag.text
    if written.startswith("{\\"):
        return f"{{\\{half.name}{opens:d}}}"
    before, after = written[0], ">" if written[0] == "<" else "}"
    return f"{before}{'' if opens else '/'}{half.name}{after}"


@dataclass(frozen=True)
class Effect:
    """The halves that a stretch of a cue leaves open, and those that it closes for the text before it."""

    opened: tuple[Half, ...]
    closed: tuple[Half, ...]

    @classmethod
    def of(cls, text: str, markup: str) -> "Effect":
        """Find the effect of a text."""
        opened, closed = unpaired_tags(subtitle_tags(text, markup))
        return cls(tuple(opened), tuple(closed))

    def without(self, starts: set[int], offset: int) -> "Effect":
        """Leave out the halves whose tags begin at `starts`; the text itself begins at `offset`."""
        return Effect(
            tuple(half for half in self.opened if half.tag.start + offset not in starts),
            tuple(half for half in self.closed if half.tag.start + offset not in starts),
        )


def fix_open_tags(text: str, had: Effect, wanted: Effect, markup: str) -> str:
    """Give a stretch the wanted effect, and no other than that of the text it replaces, which is `had`."""
    has = Effect.of(text, markup)
    opened, closed = _minus(wanted.opened, has.opened), _minus(wanted.closed, has.closed)
    # Closed and opened again, as between two lines in italics: neither is needed.
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


def tagged_sentence_spans(text: str, tags: Sequence[Tag], language: str) -> list[Span]:
    """Find sentences as if there were no tags; a tag between two belongs to the one it closes or opens."""
    if not tags:
        return sentence_spans(text, language)
    places: list[int] = []  # of every visible character
    done = 0
    for tag in [*tags, Tag("", len(text))]:
        places += range(done, tag.start)
        done = tag.end
    spans = [
        (places[first], places[last - 1] + 1)
        for first, last in sentence_spans(without_tags(text, tags), language)
    ]
    starts = [tag.start for tag in tags]
    done = 0
    for number, (first, last) in enumerate(spans):
        begin = first
        for tag in tags[bisect_left(starts, done) : bisect_left(starts, first)]:
            if number and begin == first and tag.closes:
                spans[number - 1] = (spans[number - 1][0], tag.end)
            else:
                begin = min(begin, tag.start)
        spans[number] = (begin, last)
        done = last
    if spans and starts[-1] >= done:
        spans[-1] = (spans[-1][0], tags[-1].end)
    return spans
