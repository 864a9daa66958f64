"""N-best lists as a search over documents needs them: in the D-LM's ids, with their context-free scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cadec_cli.decoding.search.lattice import Candidate
from cadec_cli.engines.torch_lm import LMScorer
from cadec_cli.method.context import Ids
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.text.pipeline import TextPipeline


def lm_encoder(target: TextPipeline, lm_text: TextPipeline) -> Callable[[Hypothesis], Ids]:
    """How a hypothesis is written in the D-LM's vocabulary: from its text where that is another one."""
    if lm_text.checksum == target.checksum:
        return lambda hypothesis: hypothesis.ids
    return lambda hypothesis: tuple(lm_text.encode(hypothesis.text))


def candidates(
    lists: Sequence[NBest], encode: Callable[[Hypothesis], Ids], scorer: LMScorer | None
) -> list[Candidate | None]:
    """Score lists without context, together and once for equal ones; an empty list is no candidate."""
    ids = [tuple(encode(hypothesis) for hypothesis in nbest.hypotheses) for nbest in lists]
    free = {}
    if scorer is not None:
        distinct = [key for key in dict.fromkeys(ids) if key]
        scored = scorer.free([scorer.trie(key) for key in distinct])
        free = dict(zip(distinct, scored, strict=True))
    return [
        Candidate(np.array([h.log_prob for h in nbest.hypotheses]), key, free.get(key)) if key else None
        for nbest, key in zip(lists, ids, strict=True)
    ]
