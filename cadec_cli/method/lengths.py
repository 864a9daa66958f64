"""How long a translation may become: learnt from pairs of sentences, or generous where nothing is known.

A model that does not find the end of a sentence goes on until it is stopped, and the whole beam with it: a
limit that true translations keep, and not much more, saves that time. Lengths are in the tokens of the model
that translates; which tokens those are is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cadec_cli.arrays import Ints
from cadec_cli.errors import CadecError
from cadec_cli.validation import Bound, Number, Whole, misfits

# What was generous for every pair of languages so far: tokens for each of the source, and on top of that.
_USUAL_RATIO, _USUAL_EXTRA = 2.0, 20
_BOUNDS: dict[str, Bound] = {"ratio": Number(0, 100), "extra": Whole(1, 10_000)}

# Of the pairs that limits are learnt from, and of the longer half of them, so many may be longer: misaligned
# ones, most of them.
CUT = 0.001
# The usual limits have the weight of so many pairs: a few pairs tell little about the longest of a thousand.
_WEIGHT = 100
# What is learnt from one text is applied to others.
_MARGIN = 1.1
# Ratios that are tried, from a typical one to twice that.
_TRIED = 21


@dataclass(frozen=True)
class LengthLimits:
    """Most tokens of a translation: so many for each token of the source, and `extra` on top of that."""

    ratio: float = _USUAL_RATIO
    extra: int = _USUAL_EXTRA

    def __post_init__(self) -> None:
        if wrong := misfits(self, _BOUNDS):
            raise CadecError("invalid limits of length: " + "; ".join(wrong))

    def most(self, source: int) -> int:
        """How many tokens a translation may have, of a source with so many; the ends don't count."""
        return math.floor(self.ratio * source) + self.extra

    def __str__(self) -> str:
        return f"{self.ratio:g} × source + {self.extra} tokens"


def learnt_limits(pairs: Iterable[tuple[int, int]]) -> LengthLimits:
    """The tightest limits that all but 0.1 % of some pairs keep, with a margin.

    Pairs are the lengths of a sentence and of its translation; those of nothing don't count. Limits are never
    beyond the usual ones, which are larger where translations typically are longer than their sources: if too
    many pairs are, they belong together in no way that tells anything. The fewer pairs, the nearer to the
    usual ones.
    """
    lengths: Ints = np.array([pair for pair in pairs if min(pair) > 0], dtype=np.int64).reshape(-1, 2)
    if not len(lengths):
        return LengthLimits()
    # Tokens of a translation for one of the source, typically; 50 is beyond all sense and within all bounds.
    typical = float(np.clip(np.median(lengths[:, 1] / lengths[:, 0]), 1, 50))
    usual = LengthLimits(round(_USUAL_RATIO * typical, 2), math.ceil(_USUAL_EXTRA * typical))
    kept = _tightest(lengths, usual)
    share = _WEIGHT / (len(lengths) + _WEIGHT)
    return LengthLimits(
        _with_margin(kept.ratio, usual.ratio, share),
        math.ceil(_with_margin(kept.extra, usual.extra, share)),
    )


def _tightest(lengths: Ints, usual: LengthLimits) -> LengthLimits:
    """Of all from half the usual limits to these, the tightest for their sources on average."""
    source, target = lengths.T
    longer = source >= np.median(source)
    found = []
    for ratio in np.linspace(usual.ratio / 2, usual.ratio, _TRIED).round(2):
        above = target - np.floor(ratio * source).astype(np.int64)
        # Sources of one or two words may be rare in a text, and need their room nevertheless.
        extra = max(_all_but_few(above), _all_but_few(above[longer]), usual.extra // 2)
        if extra <= usual.extra:
            allowed = float(np.mean((ratio * source + extra) / source))
            found.append((allowed, LengthLimits(float(ratio), extra)))
    return min(found, key=lambda item: item[0])[1] if found else usual


def _all_but_few(values: Ints) -> int:
    """What no more than the share CUT of the values exceeds."""
    place = len(values) - 1 - math.floor(CUT * len(values))
    return int(np.partition(values, place)[place])


def _with_margin(learnt: float, usual: float, share: float) -> float:
    """With a margin, and a share of the way to what is usual; to two digits, upwards."""
    wide = min(_MARGIN * learnt, usual)
    return min(math.ceil(round(100 * (wide + share * (usual - wide)), 6)) / 100, usual)
