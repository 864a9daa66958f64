"""Speed as ratios within one run, and as shares of the machine's limit: `cadec bench`.

Reranking and beam search are those that translate, not copies of them.
"""

from __future__ import annotations

from collections.abc import Callable

from cadec_cli.evaluation.benchmark.limit import Limit, MeasuredShare, SpeedRatio, take_turns
from cadec_cli.evaluation.benchmark.speed import (
    BEAM,
    CONTEXT,
    LENGTH,
    NBEST,
    VOCABULARY,
    FixedLength,
    Networks,
    WordText,
    made_up_list,
    naive_scores,
    scoring,
    translating,
)
from cadec_cli.fs.atomic import scratch_directory

__all__ = [
    "BEAM",
    "CONTEXT",
    "LENGTH",
    "NBEST",
    "VOCABULARY",
    "FixedLength",
    "Limit",
    "MeasuredShare",
    "Networks",
    "SpeedRatio",
    "WordText",
    "made_up_list",
    "measure",
    "naive_scores",
    "scoring",
    "take_turns",
    "translating",
]


def measure(
    networks: Networks, *, documents: int = 8, sentences: int = 6, note: Callable[[str], None]
) -> list[SpeedRatio]:
    """Measure everything; more documents and sentences take longer."""
    note("scoring n-best lists …")
    figures = scoring(networks)
    note("translating …")
    with scratch_directory() as scratch:
        return [*figures, *translating(networks, scratch / "model", documents, sentences)]
