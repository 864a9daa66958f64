"""Pairs the cues of two files of subtitles by their times.

Cues of one sentence are one pair, since words move among them. A pause ends a document, as in translation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cadec_cli.errors import CadecError
from cadec_cli.evaluation.checks.findings import WARNING, Pair, Remark
from cadec_cli.fs.read import MAX_INPUT_BYTES, read_text
from cadec_cli.text.formats import FORMATS
from cadec_cli.text.formats.subtitles.cues import Cue, clock, detect, find_cues
from cadec_cli.text.formats.subtitles.reader import PAUSE_MS


@dataclass(frozen=True)
class _NumberedCue:
    number: int
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class _Cues:
    name: str
    cues: tuple[_NumberedCue, ...]


def _read_cues(path: Path, kind: str, encoding: str | None, most: int) -> _Cues:
    file = read_text(path, encoding, most=most)
    kind = detect(file.text, kind)
    if not FORMATS[kind].has_cues:
        raise CadecError(f"{file.name} has no cues", "both sides must be subtitles")
    found = find_cues(file.text, kind, file.name, tags=True)
    cues = (_numbered(number, cue) for number, cue in enumerate(found, 1))
    return _Cues(file.name, tuple(cue for cue in cues if cue.text))


def _numbered(number: int, cue: Cue) -> _NumberedCue:
    return _NumberedCue(number, cue.start, cue.end, " ".join(line.text for line in cue.lines))


_OVERLAP = 0.5  # of the shorter of two cues, which then belong together
_SENTENCE_END = (".", "!", "?", "…", "。", "？", "！", '"', "”", "»", ")", "]", "♪", ">")
_MOST_CUES = 8  # of a sentence


def _runs_on(
    before: tuple[list[_NumberedCue], list[_NumberedCue], int],
    one: Sequence[_NumberedCue],
    other: Sequence[_NumberedCue],
) -> bool:
    """Tell whether cues go on with the sentence before them; one that is alone belongs to its neighbour."""
    if max(len(before[0]), len(before[1])) >= _MOST_CUES:
        return False
    source, target = (bool(side) and not side[-1].text.endswith(_SENTENCE_END) for side in before[:2])
    return (source and (bool(one) or not other)) or (target and not one)


def read_cue_pairs(
    source: tuple[Path, str],
    target: tuple[Path, str],
    remarks: list[Remark],
    *,
    encoding: str | None = None,
    most: int = MAX_INPUT_BYTES,
) -> list[Pair]:
    """Read two files of subtitles, each a path and a format, and pair their cues; add remarks on both."""
    sides = [_read_cues(path, kind, encoding, most) for path, kind in (source, target)]
    return _cue_pairs(sides[0], sides[1], remarks)


def _cue_pairs(source: _Cues, target: _Cues, remarks: list[Remark]) -> list[Pair]:
    """Pair cues by their numbers if their times agree, else by their times."""
    ones, others = source.cues, target.cues
    close = sum(abs(one.start - other.start) < 1000 for one, other in zip(ones, others, strict=False))
    if len(ones) == len(others) and close >= 0.8 * len(ones):
        groups = [([one], [other]) for one, other in zip(ones, others, strict=True)]
    else:
        groups = list(_by_time(ones, others))
        parted = next((n for n, (a, b) in enumerate(groups) if len(a) != len(b)), None)
        if len(ones) != len(others):
            counts = f"{target.name} has {len(others):,} cues, and {source.name} has {len(ones):,}"
            lone = sum(not (a and b) for a, b in groups)
            if 2 * lone > len(groups):
                raise CadecError(
                    f"{counts}, most of them at other times", "is it the same film, and in the same cut?"
                )
            if parted is not None:
                where = _cue_place(groups[parted][0] or groups[parted][1])
                remarks.append(Remark(-1, WARNING, f"{counts}: they part at {where}"))
    joined: list[tuple[list[_NumberedCue], list[_NumberedCue], int]] = []
    document, latest = 1, None
    for one, other in groups:
        start = (one or other)[0].start
        apart = latest is not None and start - latest > PAUSE_MS
        document += apart
        latest = max((cue.end for cue in (*one, *other)), default=start)
        if joined and not apart and _runs_on(joined[-1], one, other):
            joined[-1] = (joined[-1][0] + one, joined[-1][1] + other, joined[-1][2])
        else:
            joined.append((list(one), list(other), document))
    return [
        Pair(_text(one), _text(other), number, _cue_place(one), _cue_place(other))
        for one, other, number in joined
    ]


def _by_time(
    ones: Sequence[_NumberedCue], others: Sequence[_NumberedCue]
) -> Iterator[tuple[list[_NumberedCue], list[_NumberedCue]]]:
    """Groups of cues that are on the screen at the same time."""
    waiting = sorted(
        [(cue.start, 0, cue) for cue in ones] + [(cue.start, 1, cue) for cue in others],
        key=lambda one: one[:2],
    )
    group: tuple[list[_NumberedCue], list[_NumberedCue]] = ([], [])
    for _, side, cue in waiting:
        if (
            any(group)
            and not any(_overlap(cue, other) for other in group[1 - side])
            and (
                group[side] or group[1 - side][-1].end <= cue.start or not _overlap(cue, group[1 - side][-1])
            )
        ):
            yield group
            group = ([], [])
        group[side].append(cue)
    if any(group):
        yield group


def _overlap(one: _NumberedCue, other: _NumberedCue) -> bool:
    common = min(one.end, other.end) - max(one.start, other.start)
    return common >= _OVERLAP * max(1, min(one.end - one.start, other.end - other.start))


def _text(cues: Sequence[_NumberedCue]) -> str:
    return " ".join(cue.text for cue in cues)


def _cue_place(cues: Sequence[_NumberedCue]) -> str:
    if not cues:
        return ""
    numbers = f"cue {cues[0].number}" if len(cues) == 1 else f"cues {cues[0].number}–{cues[-1].number}"
    return f"{numbers}, {clock(cues[0].start)}"
