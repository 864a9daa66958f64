"""What the paper claims, and what must hold of the made-up pair, where everything is known.

Each claim is a sentence with a test of the results; those that fail are named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cadec_cli.reproduction.results import Results

# Sets whose ambiguity only the target side resolves, and the one that either side does.
ONLY_TARGET, EITHER_SIDE, MISLEADING = ("address", "names"), "ellipsis", "rare-words"
# How far from chance a share may be by chance, with a few hundred groups; and what counts as solved.
_CLOSE, _SOLVED = 0.12, 0.9


@dataclass(frozen=True)
class Claim:
    """A statement and whether results bear it out."""

    text: str
    holds: Callable[[Results], bool]


def failing(results: Results) -> list[str]:
    """The claims that do not hold."""
    return [claim.text for claim in CLAIMS if not claim.holds(results)]


def _share(results: Results, name: str, of_set: str) -> float:
    return results.row(name).accuracies[of_set].share


def _chance(results: Results, of_set: str) -> float:
    return results.row("sentence").accuracies[of_set].chance


def _solves(name: str, *sets: str) -> Callable[[Results], bool]:
    return lambda results: all(_share(results, name, one) >= _SOLVED for one in sets)


def _guesses(name: str, *sets: str) -> Callable[[Results], bool]:
    return lambda results: all(
        abs(_share(results, name, one) - _chance(results, one)) <= _CLOSE for one in sets
    )


def _above_chance(name: str, *sets: str) -> Callable[[Results], bool]:
    return lambda results: all(
        _share(results, name, one) - _chance(results, one) > 2 * _CLOSE for one in sets
    )


def _beats(first: str, second: str, *sets: str) -> Callable[[Results], bool]:
    return lambda results: all(_share(results, first, one) > _share(results, second, one) for one in sets)


def _nearest(results: Results, name: str, of_set: str) -> float:
    return results.row(name).accuracies[of_set].by_distance["1"]


def _correlations(results: Results, contexts: str) -> float:
    """Of PMI, between the sources and their human translations."""
    panel = next(one for one in results.panels if one.value == "PMI" and one.contexts == contexts)
    return panel.pearson or 0.0


CONTEXTUAL = (*ONLY_TARGET, EITHER_SIDE)

CLAIMS: tuple[Claim, ...] = (
    Claim("a model of sentences can only guess", _guesses("sentence", *CONTEXTUAL)),
    Claim("C-score resolves all three kinds of context dependence", _solves("rerank", *CONTEXTUAL)),
    Claim("C-score beats the sentence level on contrastive tests", _beats("rerank", "sentence", *CONTEXTUAL)),
    Claim(
        "C-score beats conditional shallow fusion on contrastive tests",
        _beats("rerank", "conditional-shallow-fusion", *ONLY_TARGET),
    ),
    Claim("shallow fusion without context can only guess", _guesses("shallow-fusion", *CONTEXTUAL)),
    Claim("Bayes DocReranker uses the context", _solves("bayes", *ONLY_TARGET)),
    Claim(
        "Bayes DocReranker without context can only guess", _guesses("bayes-without-context", *ONLY_TARGET)
    ),
    Claim(
        "PMI beats conditional probability where frequency misleads", _beats("pmi", "conditional", MISLEADING)
    ),
    Claim(
        "DocTransformer, which reads the source, resolves what the source shows",
        _solves("doc-nmt", EITHER_SIDE),
    ),
    Claim("DocTransformer can't resolve what only the target shows", _guesses("doc-nmt", *ONLY_TARGET)),
    Claim("2-to-2 resolves what the sentence before shows", _solves("2-to-2", EITHER_SIDE)),
    Claim(
        "2-to-2 sees the target sentence before, and no further",
        lambda results: (
            _nearest(results, "2-to-2", "address") >= _SOLVED
            and _share(results, "2-to-2", "address") < _SOLVED
        ),
    ),
    Claim("DocRepair makes sentences agree", _above_chance("repair", "address")),
    Claim(
        "PMI with true contexts correlates with the source's",
        lambda results: _correlations(results, "own") > 0.2,
    ),
    Claim(
        "PMI with random contexts does not",
        lambda results: abs(_correlations(results, "random")) < 0.5 * _correlations(results, "own"),
    ),
    Claim(
        "every system translates about as well as the sentence level, or better",
        lambda results: all(
            row.quality["BLEU"].score > 0.8 * results.row("sentence").quality["BLEU"].score
            for row in results.rows
        ),
    ),
    Claim(
        "C-aware rerank translates better than the sentence level",
        lambda results: (
            results.row("rerank").quality["BLEU"].score > results.row("sentence").quality["BLEU"].score
        ),
    ),
)
