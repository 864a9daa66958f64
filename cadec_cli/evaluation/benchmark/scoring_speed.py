"""How much faster a trie is than its hypotheses one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from cadec_cli.engines.protocols import trie_for
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.evaluation.benchmark.figures import Job, MeasuredShare, SpeedRatio, take_turns
from cadec_cli.evaluation.benchmark.limit import Rates, count_products
from cadec_cli.evaluation.benchmark.networks import CONTEXT, LENGTH, NBEST, Networks
from cadec_cli.method.context import Context, ContextPolicy, room
from cadec_cli.method.options import ScoringOptions
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.text.subwords import EOS


def made_up_list(random: np.random.Generator, vocabulary: int) -> list[tuple[int, ...]]:
    """Hypotheses that share prefixes as those of a beam do: nodes are about a quarter of all tokens."""
    first = random.integers(4, vocabulary, LENGTH).tolist()
    made = [tuple(first)]
    while len(made) < NBEST:
        base = made[int(random.integers(len(made)))]
        keep = max(LENGTH - int(random.geometric(0.45)), 0)
        made.append((*base[:keep], *random.integers(4, vocabulary, LENGTH - keep).tolist()))
    return made


def scoring(networks: Networks, rounds: int = 5) -> list[SpeedRatio]:
    """A trie in one pass against every hypothesis whole, in one padded batch."""
    random = np.random.default_rng(1)
    vocabulary = networks.lm.config.vocabulary
    before = Context(tuple(tuple(random.integers(4, vocabulary, LENGTH).tolist()) for _ in range(CONTEXT)))
    context = ContextPolicy(CONTEXT).read(before, room(networks.lm.config.positions, LENGTH))
    hypotheses = made_up_list(random, vocabulary)
    text = networks.target
    fast, faster = (TorchLanguageModel(network, text) for network in (networks.lm, networks.lm_int8))
    trie = trie_for(fast, hypotheses)
    jobs: dict[str, Job] = {
        "float32": lambda: fast.score([trie], [context], ScoringOptions()),
        "int8": lambda: faster.score([trie], [context], ScoringOptions()),
    }
    products = {}
    for name, job in jobs.items():
        with count_products() as products[name]:
            job()
    rates = Rates(list(products.values()))
    jobs["naive"] = lambda: naive_scores(networks.lm, context, hypotheses)
    seconds = take_turns({**jobs, "rates": rates.measure}, rounds)
    return [
        SpeedRatio(
            f"a trie of {NBEST} hypotheses, {kind} / each hypothesis whole",
            f"{1 / seconds[kind]:.1f} / {1 / seconds['naive']:.1f} lists/s",
            seconds["naive"] / seconds[kind],
            wanted,
            reached=MeasuredShare(seconds[kind], rates.limit(products[kind])),
        )
        for kind, wanted in (("float32", 5.0), ("int8", 10.0))
    ]


@torch.inference_mode()
def naive_scores(lm: DocumentLM, context: Context, hypotheses: Sequence[Sequence[int]]) -> list[float]:
    """Every hypothesis with the whole context before it, one padded batch, a full log-softmax."""
    rows = [[*context.tokens(EOS), *ids, EOS] for ids in hypotheses]
    tokens = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    for row, ids in zip(tokens, rows, strict=True):
        row[: len(ids)] = torch.tensor(ids)
    log_probs = lm(tokens[:, :-1]).log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0]
    start = context.length - 1
    return [
        float(row[start : start + len(ids) + 1].sum()) for row, ids in zip(log_probs, hypotheses, strict=True)
    ]
