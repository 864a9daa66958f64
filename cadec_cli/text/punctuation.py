"""Quotation marks, apostrophes, dashes and ellipses: a translation has those of its language and document.

Models were trained on text with plain marks, and write them. `restore_marks` gives a translation typographic
marks where its source has them, in the style of the target language: French « … », German „…“. What a
vocabulary lacks is replaced before translation elsewhere (`tokenizers.vocabulary`). Knows single sentences,
which may have half of a pair of marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cadec_cli.text.sentences import Span, base_language

NBSP = "\u00a0"
# The marks of quotations, and of quotations in them. A space that belongs to a mark is part of it.
_STYLES = {
    ("“", "”", "‘", "’"): "en zh ko vi th id ms tr ga cy hi bn ta te ml mr ur fa he pt eo",
    (f"«{NBSP}", f"{NBSP}»", "“", "”"): "fr oc br",
    ("«", "»", "“", "”"): "es it ca gl eu el ar hy sq az kk ky uz mn",
    ("«", "»", "„", "“"): "ru uk be lv nb nn no",
    ("„", "“", "‚", "‘"): "de cs sk sl bg lt is et ka mk sr hr bs",
    ("„", "”", "«", "»"): "pl ro hu",
    ("”", "”", "’", "’"): "sv fi",
    ("“", "”", "‘", "’ "): "nl af da",
    ("「", "」", "『", "』"): "ja",
}
_MARKS_OF = {
    code: tuple(mark.rstrip(" ") for mark in marks)
    for marks, codes in _STYLES.items()
    for code in codes.split()
}
_USUAL = ("“", "”", "‘", "’")

_COMMA_INSIDE = "“「"  # where a comma comes before the mark that closes

_DOUBLE = "“”„‟«»"
_TYPOGRAPHIC = re.compile(f"[{_DOUBLE}‘’‚…—–]")
_QUOTES = f'"{_DOUBLE}「」『』《》'
_RARE_QUOTES = ("״", "＂", "''", "``", "‹", "›")
_LETTER = r"[^\W\d_]"
_SINGLE_OPENING = re.compile(rf"(?<![\w.,!?…’'])['‘‚](?=\w)|(?<=[{_QUOTES}])['‘‚](?=\w)")
_SINGLE_CLOSING = re.compile(r"(?<=[\w.,!?…%)])['’‘](?!\w)")
_APOSTROPHE = re.compile(rf"(?<={_LETTER})'(?={_LETTER}|[«“„‘])")
_DOTS = re.compile(r"(?<!\.)\.\.\.(?!\.)")
_PLAIN_DASH = re.compile(r"(?<=\s)--?(?=\s)|(?<=\w)--(?=\w)|^--?(?=\s)")
_SPACED_MARK = re.compile(rf"[ {NBSP}\u202f]*([{_QUOTES}])[ {NBSP}\u202f]*")


@dataclass(frozen=True)
class Quotation:
    """What stands between a pair of quotation marks, which are at `start` and just before `end`."""

    start: int
    end: int

    @property
    def inner(self) -> Span:
        """The text between the marks."""
        return self.start + 1, self.end - 1


def quotations(text: str) -> list[Quotation]:
    """Return the outermost quotations of a sentence that are marked at both ends."""
    found: list[Quotation] = []
    open_: list[int] = []
    for place, opens in _marks(text):
        if opens:
            open_.append(place)
        elif open_:
            start = open_.pop()
            # 'Tis the dogs' night: a straight mark may be an apostrophe
            certain = text[start] != "'" or text[place - 1] in ".,!?…"
            if not open_ and place > start + 1 and certain:
                found.append(Quotation(start, place + 1))
    return found


def has_quotation_marks(text: str) -> bool:
    """Tell whether a text has a quotation mark of any kind."""
    return any(mark in text for mark in (*_QUOTES, *_RARE_QUOTES)) or bool(
        _SINGLE_OPENING.search(text) or _SINGLE_CLOSING.search(text)
    )


def has_half_quotation(text: str) -> bool:
    """Tell whether a mark of a quotation has no partner, as in one of several sentences that are quoted."""
    return sum(text.count(mark) for mark in f'"{_DOUBLE}') % 2 == 1


def restore_marks(source: str, translation: str, language: str) -> str:
    """Return a translation into a language with marks of the kind that its source has."""
    if source.isascii() or not _TYPOGRAPHIC.search(source):
        return translation
    marks = _MARKS_OF.get(base_language(language), _USUAL)
    doubles = any(mark in source for mark in _DOUBLE)
    singles = bool(re.search(r"(?<!\w)[‘‚](?=\w)", source))
    if doubles or singles:
        translation = _in_style(translation, marks, singles=singles)
    if "’" in source or ("'" not in source and (doubles or singles)):
        translation = _APOSTROPHE.sub("’", translation)
    if "…" in source and "..." not in source:
        translation = _DOTS.sub("…", translation)
    dash = next((mark for mark in "—–" if mark in source), None)
    if dash is not None and not _PLAIN_DASH.search(source):
        translation = _PLAIN_DASH.sub(
            lambda found: dash if found[0] == "--" or found.start() else "—", translation
        )
    return translation


def _in_style(text: str, marks: tuple[str, ...], *, singles: bool) -> str:
    """Write the quotation marks of a text in a style: those at even depths are outer marks."""
    places = list(_marks(text, singles=singles))
    written, done, depth = "", 0, 0
    for place, opens in places:
        depth -= not opens and depth > 0
        mark = marks[2 * (depth % 2) + (not opens)]
        depth += opens
        before, after = text[done:place], place + 1
        if opens:
            after += len(text[after:]) - len(text[after:].lstrip(f" {NBSP}\u202f"))
        else:
            before = before.rstrip(f" {NBSP}\u202f")
            if before.endswith(",") and marks[0] not in _COMMA_INSIDE:
                before, mark = before[:-1], f"{mark},"
        written += before + mark
        done = after
    return written + text[done:]


def _marks(text: str, *, singles: bool = True) -> Iterator[tuple[int, bool]]:
    """Yield where quotation marks are, and whether each opens a quotation."""
    places = {place for place, character in enumerate(text) if character in _QUOTES}
    if singles:
        opening = [match.start() for match in _SINGLE_OPENING.finditer(text)]
        closing = [match.start() for match in _SINGLE_CLOSING.finditer(text)]
        if opening and len(opening) == len(closing):
            places |= {*opening, *closing}
    depth = 0
    for place in sorted(places):
        opens = _opens(text, place, depth)
        depth = depth + 1 if opens else max(0, depth - 1)
        yield place, opens


def _opens(text: str, place: int, depth: int) -> bool:
    """Tell whether a mark opens a quotation: by itself, or as a word follows it and none precedes it."""
    mark = text[place]
    if mark in "„‚「『《":
        return True
    if mark in "」』》":
        return False
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    free_before = not before or before.isspace() or before in f"([—–-{_QUOTES}'‘’"
    free_after = not after or after.isspace() or after in f")],.;:!?…{_QUOTES}'’"
    if free_before != free_after:
        return free_before
    return mark in "“‘«" if mark in "“‘”’«»" else depth == 0
