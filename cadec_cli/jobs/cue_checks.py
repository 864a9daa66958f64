"""Cues of translated subtitles that are too fast to read or too long for the screen.

`CueChecks` collects them from all files, and `with_cue_problems` gives each sentence those of its cues, while
translations still come in. Knows nothing of terminals and pages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cadec_cli.text.formats import FORMATS, TextFile
from cadec_cli.text.formats.layout import CueLimits
from cadec_cli.text.formats.subtitles.cues import clock
from cadec_cli.text.formats.subtitles.limits import CueProblem, problem_of, problems

Item = TypeVar("Item")


@dataclass(frozen=True)
class FileCues:
    """The cues of a file that break a limit, and how many of its source did so already."""

    problems: tuple[CueProblem, ...]
    too_fast_in_source: int
    too_long_in_source: int
    of_sentences: tuple[frozenset[int], ...]  # the cues of each sentence

    def of_sentence(self, sentence: int) -> list[CueProblem]:
        """Return the problems of the cues that a sentence of the file is in."""
        return [one for one in self.problems if one.number in self.of_sentences[sentence]]


@dataclass
class CueChecks:
    """The cues of all files that break a limit. Files have numbers, since they may be done in any order."""

    found: dict[int, FileCues] = field(default_factory=dict)

    def look(self, number: int, file: TextFile, texts: Sequence[str]) -> None:
        """Check the file with that number, given the translations of all its sentences."""
        if file.cues is None or not FORMATS[file.format].has_cues or file.cues.limits == CueLimits():
            return  # what has become text has no times
        limits = file.cues.limits
        sources = [text for document in file.documents for text in document.texts]
        before = problems(file.cues.shown_cues(sources), limits)
        self.found[number] = FileCues(
            tuple(problems(file.cues.shown_cues(texts), limits)),
            sum(one.too_fast for one in before),
            sum(one.too_long for one in before),
            tuple(map(file.cues.cues_of, range(len(sources)))),
        )

    @property
    def in_order(self) -> list[tuple[int, CueProblem]]:
        """All problems with the numbers of their files, in the order of the files."""
        return [(number, one) for number, found in sorted(self.found.items()) for one in found.problems]


def with_cue_problems(
    file: TextFile, items: Iterable[Item], text_of: Callable[[Item], str]
) -> Iterator[tuple[Item, list[CueProblem]]]:
    """Yield what stands for the sentences of a file with the problems of their cues, as early as possible.

    `text_of` returns the translation of an item. Without cues there are no problems.
    """
    layout = file.cues
    if layout is None or layout.limits == CueLimits():
        yield from ((item, []) for item in items)
        return
    waiting: deque[Item] = deque()
    known: dict[int, CueProblem | None] = {}
    done = 0

    def texts() -> Iterator[str]:
        for item in items:
            waiting.append(item)
            yield text_of(item)

    def complete() -> Iterator[tuple[Item, list[CueProblem]]]:
        nonlocal done
        while waiting and (cues := layout.cues_of(done)) <= known.keys():
            found = (known[number] for number in sorted(cues))
            yield waiting.popleft(), [one for one in found if one is not None]
            done += 1

    for cue in layout.shown_cues(texts()):
        known[cue.number] = problem_of(cue, layout.limits)
        yield from complete()
    yield from complete()


def cue_record(problem: CueProblem) -> dict[str, Any]:
    """A problem as plain data for JSON; the speed of a cue without time is left out."""
    speed = {"cps": round(problem.cps, 1)} if problem.seconds > 0 else {}
    return {
        "cue": problem.number,
        "time": clock(problem.start),
        "characters": problem.characters,
        **speed,
        "lines": list(problem.widths),
        "problems": list(problem.reasons),
    }
