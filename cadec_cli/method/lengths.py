"""How long a translation may become: a limit learnt from sentence pairs, or a generous default.

A model that never produces an end token decodes until it is stopped, and the whole beam with it. A limit just
above the length of real translations saves that time. Lengths are in tokens of the translation model; this
module does not know its vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cadec_cli.arrays import Ints
from cadec_cli.errors import CadecError
from cadec_cli.validation import Bound, Number, Whole, misfits

# Generous for every language pair so far: tokens per source token, and extra tokens.
_USUAL_RATIO, _USUAL_EXTRA = 2.0, 20
_BOUNDS: dict[str, Bound] = {"ratio": Number(0, 100), "extra": Whole(1, 10_000)}

# The share of training pairs, and of the longer half of them, that may exceed the limits. Most of those pairs
# are misaligned.
CUT = 0.001
# The usual limits weigh as much as this many pairs: a few pairs say little about the longest of a thousand.
_WEIGHT = 100
# Limits learnt from one text are applied to others.
_MARGIN = 1.1
# How many ratios are tried, from half the usual one up to it.
_TRIED = 21


@dataclass(frozen=True)
class LengthLimits:
    """The most tokens a translation may have: `ratio` per token of the source, plus `extra`."""

    ratio: float = _USUAL_RATIO
    extra: int = _USUAL_EXTRA

    def __post_init__(self) -> None:
        if wrong := misfits(self, _BOUNDS):
            raise CadecError("invalid limits of length: " + "; ".join(wrong))

    def most(self, source: int) -> int:
        """How many tokens a translation of `source` tokens may have; end tokens don't count."""
        return math.floor(self.ratio * source) + self.extra

    def __str__(self) -> str:
        return f"{self.ratio:g} × source + {self.extra} tokens"


def learnt_limits(pairs: Iterable[tuple[int, int]]) -> LengthLimits:
    """The tightest limits that all but 0.1 % of the pairs meet, with a margin.

    A pair is the length of a sentence and that of its translation; pairs with an empty side are ignored. The
    result never exceeds the usual limits, which are scaled up if translations are typically longer than their
    sources. If too many pairs exceed those, the pairs are not translations of each other and the usual limits
    are returned. The fewer the pairs, the closer the result is to the usual limits.
    """
    lengths: Ints = np.array([pair for pair in pairs if min(pair) > 0], dtype=np.int64).reshape(-1, 2)
    if not len(lengths):
        return LengthLimits()
    # The typical number of target tokens per source token; 50 is absurdly high, yet within the bounds.
    typical = float(np.clip(np.median(lengths[:, 1] / lengths[:, 0]), 1, 50))
    usual = LengthLimits(round(_USUAL_RATIO * typical, 2), math.ceil(_USUAL_EXTRA * typical))
    kept = _tightest(lengths, usual)
    share = _WEIGHT / (len(lengths) + _WEIGHT)
    return LengthLimits(
        _with_margin(kept.ratio, usual.ratio, share),
        math.ceil(_with_margin(kept.extra, usual.extra, share)),
    )


def _tightest(lengths: Ints, usual: LengthLimits) -> LengthLimits:
    """The limits between half the usual ones and the usual ones that are tightest on average."""
    source, target = lengths.T
    longer = source >= np.median(source)
    found = []
    for ratio in np.linspace(usual.ratio / 2, usual.ratio, _TRIED).round(2):
        above = target - np.floor(ratio * source).astype(np.int64)
        # Sources of one or two words may be rare in a text, but they need room too.
        extra = max(_all_but_few(above), _all_but_few(above[longer]), usual.extra // 2)
        if extra <= usual.extra:
            allowed = float(np.mean((ratio * source + extra) / source))
            found.append((allowed, LengthLimits(float(ratio), extra)))
    return min(found, key=lambda item: item[0])[1] if found else usual


def _all_but_few(values: Ints) -> int:
    """The smallest value that at most the share CUT of the values exceed."""
    place = len(values) - 1 - math.floor(CUT * len(values))
    return int(np.partition(values, place)[place])


def _with_margin(learnt: float, usual: float, share: float) -> float:
    """Add a margin and move by `share` towards the usual value; round up to two digits."""
    wide = min(_MARGIN * learnt, usual)
    return min(math.ceil(round(100 * (wide + share * (usual - wide)), 6)) / 100, usual)
