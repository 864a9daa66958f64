"""The segments of a page: two versions of a sentence, why one was chosen, and the alternatives.

This module knows neither models nor HTML. Reports make segments, `plain` turns them into JSON, and the
page's script draws that. Values that were not computed are absent.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cadec_cli.text.word_diff import Stretch, changed_words

# Decimals of a score: nobody reads exact figures from a page.
_DIGITS = 3
# Control characters are shown as symbols (␛ for ESC); line breaks and tabs are left to the browser.
_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"}
_PICTURES |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


@dataclass(frozen=True)
class ReportToken:
    """A token as people read it, and its PMI with the context."""

    text: str
    pmi: float


@dataclass(frozen=True)
class ReportHypothesis:
    """A candidate with its known scores; `note` is shown beside it."""

    text: str
    score: float | None = None
    log_prob: float | None = None
    pmi: float | None = None
    chosen: bool = False
    note: str = ""


@dataclass(frozen=True)
class ReportPart:
    """The hypotheses of a part and the context. An overlong sentence has several parts, any other has one.

    The tokens of both versions end with the boundary. Without a D-LM there are no tokens and no context.
    """

    hypotheses: tuple[ReportHypothesis, ...] = ()  # the best first
    context: tuple[str, ...] | None = None
    tokens: tuple[ReportToken, ...] = ()
    compared_tokens: tuple[ReportToken, ...] = ()


@dataclass(frozen=True)
class ReportSegment:
    """A sentence: its place, its source, its text and a version to compare it with."""

    group: str  # its document, or its contrastive set
    label: str  # its number in the group
    source: str
    text: str
    compared: str | None = None
    confidence: float | None = None
    flags: tuple[str, ...] = ()  # why it should be checked
    notes: tuple[str, ...] = ()  # other remarks
    parts: tuple[ReportPart, ...] = ()


def plain(segment: ReportSegment) -> dict[str, Any]:
    """Turn a segment into the plain data that the page's script reads; it survives JSON unchanged.

    A text is a list of runs: a string, or [string, 1 if its words differ, its PMI if it has one].
    """
    compared = segment.compared
    whole = [Stretch(segment.text, False)] if segment.text else []
    before, after = changed_words(compared, segment.text) if compared is not None else ([], whole)
    record: dict[str, Any] = {
        "group": _strip_invisible(segment.group),
        "label": _strip_invisible(segment.label),
        "source": _strip_invisible(segment.source),
        "text": _runs(after, [part.tokens for part in segment.parts]),
    }
    if compared is not None:
        record["compared"] = _runs(before, [part.compared_tokens or part.tokens for part in segment.parts])
        record["changed"] = compared != segment.text
    if segment.confidence is not None:
        record["confidence"] = _round_figure(segment.confidence)
    for name, remarks in (("flags", segment.flags), ("notes", segment.notes)):
        if remarks:
            record[name] = [_strip_invisible(remark) for remark in remarks]
    parts = [_part(part) for part in segment.parts]
    return record | ({"parts": parts} if any(parts) else {})


def put(record: dict[str, Any], group: str, label: str) -> dict[str, Any]:
    """Give a plain segment its group and label, which were not known when it was made."""
    return {**record, "group": _strip_invisible(group), "label": _strip_invisible(label)}


def _part(part: ReportPart) -> dict[str, Any]:
    record: dict[str, Any] = {}
    if part.context is not None:
        record["context"] = [_strip_invisible(sentence) for sentence in part.context]
    for name, tokens in (("tokens", part.tokens), ("compared", part.compared_tokens)):
        if tokens:
            record[name] = [[_strip_invisible(token.text), _round_figure(token.pmi)] for token in tokens]
    if part.hypotheses:
        record["hypotheses"] = [_hypothesis(hypothesis) for hypothesis in part.hypotheses]
    return record


def _hypothesis(hypothesis: ReportHypothesis) -> list[Any]:
    scores = (hypothesis.score, hypothesis.log_prob, hypothesis.pmi)
    numbers = [None if score is None else _round_figure(score) for score in scores]
    return [
        _strip_invisible(hypothesis.text),
        *numbers,
        int(hypothesis.chosen),
        _strip_invisible(hypothesis.note),
    ]


def _runs(stretches: Sequence[Stretch], tokens: Sequence[Sequence[ReportToken]]) -> list[Any]:
    """Cut a text wherever a difference or a token begins or ends."""
    text = "".join(stretch.text for stretch in stretches)
    changed = [
        stretch.changed and place < len(stretch.text.rstrip())
        for stretch in stretches
        for place in range(len(stretch.text))
    ]
    # The boundary at the end of each part has no text.
    owners = _owners(text, [token for of_part in tokens for token in of_part[:-1]])
    runs: list[Any] = []
    kinds = zip(text, changed, owners, strict=True)
    for (differs, owner), run in itertools.groupby(kinds, key=lambda kind: (kind[1], kind[2])):
        words = _strip_invisible("".join(character for character, _, _ in run))
        if owner is not None:
            runs.append([words, int(differs), _round_figure(owner[1])])
        else:
            runs.append([words, 1] if differs else words)
    return runs


_AROUND = 80  # characters that may precede the translated words


def _owners(text: str, tokens: Sequence[ReportToken]) -> list[tuple[int, float] | None]:
    """For each character, the number and the PMI of the token that wrote it; None if no token matches it.

    Tokens may differ from the final text in case, spaces and sometimes quotation marks, and the text around
    the words, such as a dash before speech, may come from no model at all.
    """
    owners: list[tuple[int, float] | None] = [None] * len(text)
    places = [place for place, character in enumerate(text) if not character.isspace()]
    written = [
        (character, (number, token.pmi))
        for number, token in enumerate(tokens)
        for character in token.text
        if not character.isspace()
    ]
    for first in range(min(len(places) - len(written) + 1, _AROUND)):
        covered = places[first : first + len(written)]
        if all(_alike(text[place], one) for place, (one, _) in zip(covered, written, strict=True)):
            for place, (_, owner) in zip(covered, written, strict=True):
                owners[place] = owner
            break
    return owners


def _alike(one: str, other: str) -> bool:
    return one.casefold() == other.casefold() or not (one.isalnum() or other.isalnum())


def _strip_invisible(text: str) -> str:
    """Replace control characters by visible symbols."""
    return text.translate(_PICTURES)


def _round_figure(value: float) -> float | None:
    """Round a figure for the page; None if it is not finite, which JSON can't express."""
    return round(value, _DIGITS) if math.isfinite(value) else None
