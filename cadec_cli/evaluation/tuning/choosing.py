"""Which of the settings to take: the paper's two protocols, and whether a difference is more than noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cadec_cli.errors import CadecError
from cadec_cli.evaluation.quality.significance import FEWEST, Difference
from cadec_cli.evaluation.tuning.points import Point, above

PROTOCOLS = ("best", "strongest")


def choose(protocol: str, level: Point, points: Sequence[Point]) -> Point:
    """The paper's two protocols: the best BLEU; or the strongest D-LM that does not lower it."""
    if protocol == "best":
        return max(points, key=lambda point: (point.bleu, point.chrf))
    good = [point for point in points if point.bleu >= level.bleu]
    if not good:
        raise CadecError(
            f"every setting has a lower BLEU than the sentence level's {level.bleu:.2f}",
            "try higher temperatures or smaller weights",
        )
    return max(good, key=lambda point: point.setting.strength)


@dataclass(frozen=True)
class Decision:
    """What is taken, why, and how far what the protocol chose is above what it was held against."""

    point: Point
    reason: str
    difference: Difference | None = None


def decide(protocol: str, level: Point, points: Sequence[Point], present: Point) -> Decision:
    """The protocol's choice; the best BLEU only if it is more than chance, else what is used at present.

    p is that of one comparison. The best of many settings is a little better by chance than a single one, so
    a p just below 0.05 is weak evidence even so.

    The strongest D-LM is the paper's as it is, as its aim is not BLEU: not below the sentence level is
    enough, and p tells what that means.
    """
    candidate = choose(protocol, level, points)
    if protocol != "best":
        (over_level,) = above(level, [candidate])
        reason = (
            f"{candidate.setting}: BLEU {over_level.delta:+.2f} over the sentence level ({p_of(over_level)})"
        )
        return Decision(candidate, reason, over_level)
    if candidate.bleu <= present.bleu:
        return Decision(present, f"{present.setting} stays: nothing tried has a higher BLEU")
    (over_present,) = above(present, [candidate])
    gain = f"BLEU {over_present.delta:+.2f} over {present.setting}"
    if over_present.significant:
        return Decision(candidate, f"{candidate.setting}: {gain} ({p_of(over_present)})", over_present)
    reason = f"within noise ({p_of(over_present)}): {present.setting} stays; {candidate.setting} has {gain}"
    return Decision(present, reason, over_present)


def p_of(difference: Difference) -> str:
    """The p-value as people write it, or why there is none."""
    if difference.p is None:
        return f"fewer than {FEWEST} lines can't be tested"
    return f"p = {difference.p:.2g}" if difference.p >= 0.001 else "p < 0.001"
