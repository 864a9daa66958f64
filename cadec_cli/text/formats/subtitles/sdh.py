"""Subtitles for the deaf and hard of hearing (SDH) without what only they need.

Dropped are descriptions of sounds in brackets, names of speakers before a colon, and signs of music; the
words of a song stay. A description in round brackets is told from other words by its place: a line is nothing
else, begins or ends with it. A cue of which nothing is left is removed, and the numbers of those after it are
corrected. Everything else stays as it is written, tags and all. Comments, drawings and karaoke of SubStation
are not touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cadec_cli.text.formats.subtitles.cues import CueBlock, cue_blocks
from cadec_cli.text.markup import TAGS
from cadec_cli.text.protected.core import speaker_name

# Stands for a tag while the text around it is edited; a private character, which texts hardly have.
_TAG = "\uf8fe"
_DESCRIPTIONS = (re.compile(r"\[[^][]*\]"), re.compile(r"【[^【】]*】"), re.compile(r"（[^（）]*）"))
_ROUND = re.compile(r"\([^()]*\)")
_MUSIC = re.compile(r"[♪♫♬♩]+")
_HASHES = re.compile(r"#+\s+")
_DASH = re.compile(r"[-–—―‐]{1,2}\s*")
_STARTS = re.compile(rf"[\s{_TAG}]*(?:[-–—―‐]{{1,2}}[\s{_TAG}]*)?$")
_ENDS = re.compile(rf"[\s{_TAG}]*$")
_LEFT_OVER = re.compile(r"[\s:;,]+(?=[^\W_])")
_SPACES = re.compile(r"[ \t]{2,}")
_NEAR = 80  # characters around a description that tell whether it begins or ends a line
_NESTED = 8  # pairs of tags inside each other that are removed when they become empty
_EMPTY_PAIR = re.compile(r"<(\w+)(?:[\s.][^<>]*)?>\s*</\1\s*>", re.IGNORECASE)


def drop_sdh(text: str, subtitle_format: str, name: str) -> str:
    """Return the text of a subtitle file without what is for the hard of hearing."""
    if text.startswith("\ufeff"):
        return "\ufeff" + drop_sdh(text[1:], subtitle_format, name)
    written: list[str] = []
    done = removed = latest = 0
    for block in cue_blocks(text, subtitle_format, name):
        if block.number is not None and block.number[2] <= latest:
            removed = 0  # numbers begin again
        latest = block.number[2] if block.number is not None else latest
        lines = block.texts(text)
        left = _without_sdh(lines, block.markup)
        if lines and not left:
            written.append(text[done : block.start])
            done = block.end
            removed += 1
            continue
        if removed and block.number is not None:
            first, last, number = block.number
            width = last - first if text[first] == "0" else 1
            written += [text[done:first], f"{number - removed:0{width}}"]
            done = last
        if left != lines:
            first, last = block.span
            written += [text[done:first], _joined(left, block, text)]
            done = last
    return "".join(written) + text[done:]


def _joined(lines: Sequence[str], block: CueBlock, text: str) -> str:
    """Put the lines of a cue together again, with the line breaks that it had."""
    breaks = [text[one[1] : other[0]] for one, other in zip(block.lines, block.lines[1:], strict=False)]
    return "".join(line + end for line, end in zip(lines, [*breaks[: len(lines) - 1], ""], strict=True))


def _without_sdh(lines: tuple[str, ...], markup: str) -> tuple[str, ...]:
    """Return the lines of a cue without SDH: the same if there is none, and none if nothing else is left."""
    whole = "\n".join(lines)
    if _TAG in whole:
        return lines
    tags = TAGS[markup].findall(whole)
    plain = TAGS[markup].sub(_TAG, whole)
    text = plain
    for pattern in _DESCRIPTIONS:
        text = pattern.sub(_keep_tags, text)
    text = _without_asides(text)
    found = [_without_label(_without_music(line)) for line in text.split("\n")]
    if "\n".join(found) == plain:
        return lines
    spoken = sum(_begins_with_dash(line) for line in plain.split("\n"))
    found = list(_without_empty_lines(found, plain.split("\n")))
    if not any(map(str.isalnum, "".join(found))):
        return ()
    if spoken > 1 and len(found) == 1:
        found = [_without_dash(found[0])]
    coming = iter(tags)
    restored = re.sub(_TAG, lambda _: next(coming), "\n".join(found))
    for _ in range(_NESTED):
        restored = _EMPTY_PAIR.sub("", restored)
    return tuple(_SPACES.sub(" ", line).strip() for line in restored.split("\n"))


def _keep_tags(found: re.Match[str]) -> str:
    """Replace a description by the tags in it, and by the line breaks, so that lines stay apart."""
    return "".join(character for character in found[0] if character in (_TAG, "\n"))


def _without_asides(text: str) -> str:
    """Remove descriptions in round brackets that begin or end a line, or are all of it."""
    kept: list[str] = []
    near, done = "\n", 0  # what is left of the text before
    for found in _ROUND.finditer(text):
        before = near + text[done : found.start()]
        *_, line = before[-_NEAR:].split("\n")
        at_start = len(line) < _NEAR and _STARTS.match(line)
        after, *more = text[found.end() : found.end() + _NEAR].split("\n", 1)
        at_end = line[-1:].isspace() and (more or len(after) < _NEAR) and _ENDS.match(after)
        if (at_start or at_end) and sum(map(str.isalpha, found[0])) > 1:
            kept += [text[done : found.start()], _keep_tags(found)]
            near = before[-_NEAR:] + kept[-1]
            done = found.end()
    return "".join(kept) + text[done:]


def _without_music(line: str) -> str:
    line = _MUSIC.sub("", line)
    seen, places = _visible(line)
    first, last = 0, len(seen.rstrip())
    if found := _HASHES.match(seen):
        first = found.end()
    bare = seen[:last].rstrip("#")
    last = len(bare.rstrip()) if len(bare) < last and bare[-1:].isspace() else len(seen)
    return _remove(line, [*places[:first], *places[last:]]) if first or last < len(seen) else line


def _without_label(line: str) -> str:
    """Remove the name of a speaker before a colon."""
    seen, places = _visible(line)
    dash = _DASH.match(seen)
    first = dash.end() if dash else len(seen) - len(seen.lstrip())
    length = speaker_name(seen[first:])
    return _remove(line, places[first : first + length]) if length else line


def _without_empty_lines(lines: Sequence[str], before: Sequence[str]) -> Iterator[str]:
    """Yield the lines that have something to read, with the tags of those that have nothing any more."""
    waiting = ""
    filled = []
    for line, was in zip(lines, before, strict=True):
        if line == was:
            filled.append(waiting + line)
            waiting = ""
        elif any(map(str.isalnum, line)):
            filled.append(waiting + _tidy(line))
            waiting = ""
        elif filled:
            filled[-1] += _tags_of(line)
        else:
            waiting += _tags_of(line)
    if filled:
        filled[-1] += waiting
    return iter(filled)


def _tidy(line: str) -> str:
    """Remove spaces and signs that stood between what was dropped and what is left."""
    seen, places = _visible(line)
    found = _LEFT_OVER.match(seen)
    first = found.end() if found else len(seen) - len(seen.lstrip())
    return _remove(line, [*places[:first], *places[len(seen.rstrip()) :]])


def _begins_with_dash(line: str) -> bool:
    return _DASH.match(_visible(line)[0].lstrip()) is not None


def _without_dash(line: str) -> str:
    """Remove the dash of a speaker who is alone now."""
    seen, places = _visible(line)
    found = _DASH.match(seen)
    return _remove(line, places[: found.end()]) if found else line


def _visible(line: str) -> tuple[str, list[int]]:
    """Return a line without its tags, and where each of its characters is."""
    places = [place for place, character in enumerate(line) if character != _TAG]
    return "".join(line[place] for place in places), places


def _remove(line: str, places: Sequence[int]) -> str:
    left_out = frozenset(places)
    return "".join(character for place, character in enumerate(line) if place not in left_out)


def _tags_of(line: str) -> str:
    return _TAG * line.count(_TAG)
