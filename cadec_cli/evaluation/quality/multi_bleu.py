"""BLEU as Moses' multi-bleu.perl computes it, with one reference; and BLEU's sufficient statistics.

The script sees bytes, so on its own terms words are parted by ASCII white space only (a no-break space is
part of a word) and -lc lowers ASCII letters only. There is no smoothing: no 4-gram in common is a BLEU of 0.

A sentence's statistics are ten numbers, which add up over sentences:
hypothesis length, reference length, n-grams in common (n = 1…4), n-grams of the hypothesis (n = 1…4).
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from cadec_cli.arrays import Floats

ORDERS = 4

_WORD = re.compile(r"[^ \t\n\r\f\v]+")
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def words_of(line: str, *, lowercase: bool = False) -> list[str]:
    """The words of a tokenised line, as the script splits it."""
    return _WORD.findall(line.translate(_LOWER) if lowercase else line)


def ngram_statistics(hypothesis: Sequence[str], reference: Sequence[str]) -> list[int]:
    """The ten statistics of one sentence, counts clipped to the reference's."""
    common, totals = [], []
    for order in range(1, ORDERS + 1):
        given, wanted = _ngrams(hypothesis, order), _ngrams(reference, order)
        common.append((given & wanted).total())
        totals.append(given.total())
    return [len(hypothesis), len(reference), *common, *totals]


def _ngrams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[start : start + order]) for start in range(len(words) - order + 1))


def bleu_scores(sums: Floats, *, smooth: bool) -> Floats:
    """BLEU, in per cent, of summed statistics: (…, 10) → (…).

    With `smooth`, the k-th order without a match counts as 1/2^k of a match (NIST's way, sacreBLEU's `exp`).
    """
    common, totals = sums[..., 2 : 2 + ORDERS], sums[..., 2 + ORDERS :]
    divisors = np.maximum(totals, 1)  # an order without n-grams has no match either
    precisions = common / divisors
    if smooth:
        missing = (common == 0) & (totals > 0)
        precisions = np.where(missing, 0.5 ** missing.cumsum(-1) / divisors, precisions)
    defined = (precisions > 0).all(-1) & (common > 0).any(-1)
    logs = np.log(np.where(precisions > 0, precisions, 1.0)).mean(-1)
    scores: Floats = np.where(defined, 100 * brevity_penalty(sums) * np.exp(logs), 0.0)
    return scores


def brevity_penalty(sums: Floats) -> Floats:
    """1 for hypotheses not shorter than their references, 0 for empty ones: (…, 10) → (…)."""
    hypothesis, reference = sums[..., 0], sums[..., 1]
    ratio = reference / np.maximum(hypothesis, 1)
    short = np.where(hypothesis > 0, np.exp(np.minimum(0.0, 1 - ratio)), 0.0)
    penalty: Floats = np.where(hypothesis < reference, short, 1.0)
    return penalty


def script_line(sums: Floats) -> str:
    """What the script prints for these statistics: (10,)."""
    hypothesis, reference = int(sums[0]), int(sums[1])
    if not reference:
        return "BLEU = 0, 0/0/0/0 (BP=0, ratio=0, hyp_len=0, ref_len=0)"
    precisions = 100 * sums[2 : 2 + ORDERS] / np.maximum(sums[2 + ORDERS :], 1)
    return (
        f"BLEU = {float(bleu_scores(sums, smooth=False)):.2f}, {'/'.join(f'{p:.1f}' for p in precisions)} "
        f"(BP={float(brevity_penalty(sums)):.3f}, ratio={hypothesis / reference:.3f}, "
        f"hyp_len={hypothesis}, ref_len={reference})"
    )
