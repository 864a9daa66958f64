"""Clauses that a translation leaves out, found by comparison with translations of the clauses alone.

Models leave out a part of a sentence that has several: what is quoted, who says it, or the second of two
sentences in a line. The length of the whole gives it away. Clauses are what stands between quotation marks
and around them, and the sentences of a line. If every hypothesis has lost one, the translations of the
clauses are put together: that costs style and keeps what was said. A quotation that is there, but without
its marks, gets them back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from cadec_cli.decoding.protection.defects import quoted_clauses, text_size
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.text.protected.core import Core
from cadec_cli.text.punctuation import Quotation, has_quotation_marks
from cadec_cli.text.sentences import Span, sentence_spans, visible_span

# Hypotheses are compared if the shortest is below this share of the source, and a clause is taken for lost if
# one is below that share of the translations of all clauses.
_SUSPICIOUS, _TOO_SHORT = 0.8, 0.7
_MOST_CLAUSES = 12
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)]*\s+\S")


@dataclass(frozen=True)
class Clause:
    """A part of a sentence that is translated alone."""

    start: int
    end: int
    text: str

    @property
    def asked(self) -> str:
        """The clause as a sentence of its own: it does not end in a comma."""
        return re.sub(r"[,;:–—-]+$", ".", self.text)

    def fit(self, translation: str, *, at_start: bool) -> str:
        """Return a translation of it as it stands in the sentence: no capital or full stop that it lacks."""
        if self.asked != self.text:
            translation = translation.rstrip(".,;:!? ") + self.text[len(self.asked) - 1 :]
        elif self.text[-1].isalnum():
            translation = translation.rstrip(".")
        if self.text[0].islower() and not at_start:
            translation = translation[:1].lower() + translation[1:]
        return translation


def clauses_of(text: str, language: str) -> list[Clause]:
    """Return the clauses of a sentence, in order; an empty list if it is only one, or too many."""
    quoted = quoted_clauses(text)
    if not quoted and not _SENTENCE_END.search(text):
        return []
    edges = [0]
    for one in quoted:
        edges += [one.start, one.inner[0], one.inner[1], one.end]
    edges.append(len(text))
    parts: list[Span] = []
    for first, last in pairwise(edges):
        parts += [(first + start, first + end) for start, end in sentence_spans(text[first:last], language)]
    found = []
    for start, end in parts:
        start, end = _words_of(text, start, end)
        if any(map(str.isalpha, text[start:end])):
            found.append(Clause(start, end, text[start:end]))
    return found if 1 < len(found) <= _MOST_CLAUSES else []


def _words_of(text: str, start: int, end: int) -> Span:
    """Leave out white space, and marks at the beginning that belong to the clause before."""
    start, end = visible_span(text, start, end)
    while start < end and not text[start].isalnum():
        start += 1
    return start, end


_AFTER_QUOTED = re.compile(r"[,.!?…]+(?=\s+\S)")
_BEFORE_QUOTED = re.compile(r"[:,—–]\s+(?=\S)")
_DIALOGUE_DASH = re.compile(r"[-–—]{1,2}\s*")
# How far from its place in the source a quotation may begin or end in a translation, as a share of the text.
_FARTHEST = 0.2


def with_marks(core: Core, nbest: NBest) -> NBest:
    """Mark the quotation in the hypotheses that have it without marks, or with the dash of a dialogue."""
    quoted = quoted_clauses(core.text)
    if len(quoted) != 1 or all(has_quotation_marks(one.text) for one in nbest.hypotheses):
        return nbest
    found: dict[str, Hypothesis] = {}
    for one in nbest.hypotheses:
        text = one.text if has_quotation_marks(one.text) else mark_quotation(core.text, quoted[0], one.text)
        found.setdefault(text, one if text == one.text else Hypothesis(text, one.log_prob))
    return replace(nbest, hypotheses=tuple(found.values()))


def mark_quotation(source: str, quoted: Quotation, translation: str) -> str:
    """Put the marks of a quotation into a translation; where they belong is told by its punctuation.

    It must be at the beginning or the end of its sentence; otherwise the translation is returned as it is.
    """
    opening, closing = source[quoted.start], source[quoted.end - 1]
    if not any(map(str.isalpha, source[: quoted.start])):
        bare = (
            _DIALOGUE_DASH.sub("", translation, count=1) if _DIALOGUE_DASH.match(translation) else translation
        )
        if not any(map(str.isalpha, source[quoted.end :])):
            return f"{opening}{bare}{closing}"
        cut = _nearest(
            [match.end() for match in _AFTER_QUOTED.finditer(bare)], bare, quoted.end / len(source)
        )
        return translation if cut is None else f"{opening}{bare[:cut]}{closing}{bare[cut:]}"
    if not any(map(str.isalpha, source[quoted.end :])):
        places = [match.end() for match in _BEFORE_QUOTED.finditer(translation)]
        cut = _nearest(places, translation, quoted.start / len(source))
        return translation if cut is None else f"{translation[:cut]}{opening}{translation[cut:]}{closing}"
    return translation


def _nearest(places: Sequence[int], text: str, share: float) -> int | None:
    """Return the place that is nearest to a share of the text; None if none is near."""
    wanted = share * len(text)
    best = min(places, key=lambda place: abs(place - wanted), default=None)
    return best if best is not None and abs(best - wanted) <= _FARTHEST * len(text) else None


def keep_clauses(
    core: Core, nbest: NBest, language: str, translate: Callable[[Sequence[str]], list[Hypothesis | None]]
) -> NBest:
    """Return a list without hypotheses that leave out a clause; if all do, with the clauses put together.

    `translate` returns the best translation of each text, or None if it has none.
    """
    shortest = min((text_size(one.text) for one in nbest.hypotheses), default=0)
    if not nbest.hypotheses or shortest >= _SUSPICIOUS * text_size(core.text):
        return nbest
    clauses = clauses_of(core.text, language)
    if not clauses:
        return nbest
    joined = join_clauses(core.text, clauses, translate([clause.asked for clause in clauses]))
    if joined is None:
        return nbest
    enough = _TOO_SHORT * text_size(joined.text)
    kept = tuple(one for one in nbest.hypotheses if text_size(one.text) >= enough)
    return replace(nbest, hypotheses=kept) if kept else NBest(core.text, (joined,))


def join_clauses(
    text: str, clauses: Sequence[Clause], translated: Sequence[Hypothesis | None]
) -> Hypothesis | None:
    """Put translations of clauses into the sentence; None if one of them is missing."""
    written, done, log_prob = "", 0, 0.0
    for clause, best in zip(clauses, translated, strict=True):
        if best is None or not best.text.strip():
            return None
        written += text[done : clause.start]
        written += clause.fit(best.text.strip(), at_start=not any(map(str.isalnum, written)))
        log_prob += best.log_prob
        done = clause.end
    return Hypothesis(" ".join((written + text[done:]).split()), log_prob)
