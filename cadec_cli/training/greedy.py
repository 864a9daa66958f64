"""Greedy translation with the torch S-NMT, for development figures while training."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from cadec_cli.data.shards import Shard
from cadec_cli.models.layers import Cache
from cadec_cli.models.transformer import Transformer
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.subwords import BOS, EOS, PAD


@torch.inference_mode()
def greedy(model: Transformer, sources: Sequence[Sequence[int]], batch: int = 64) -> list[list[int]]:
    """Translate sentences (ids without EOS) by the likeliest token at every step, up to 2 × length + 10."""
    order = sorted(range(len(sources)), key=lambda index: len(sources[index]))
    translations: list[list[int]] = [[] for _ in sources]
    for start in range(0, len(order), batch):
        part = order[start : start + batch]
        for index, ids in zip(part, _greedy_batch(model, [sources[index] for index in part]), strict=True):
            translations[index] = ids
    return translations


def _greedy_batch(model: Transformer, sources: Sequence[Sequence[int]]) -> list[list[int]]:
    device = model.output.weight.device
    longest = max(map(len, sources)) + 1
    rows = [[*source, EOS, *[PAD] * (longest - len(source) - 1)] for source in sources]
    encoded = model.encode(torch.tensor(rows, device=device))
    cache = Cache()
    token = torch.full((len(sources), 1), BOS, device=device)
    done = torch.zeros(len(sources), dtype=torch.bool, device=device)
    chosen: list[Tensor] = []
    for _ in range(min(2 * longest + 10, model.config.positions)):
        token = model.logits(model.hidden_states(token, encoded, cache)[:, -1]).argmax(-1, keepdim=True)
        token[done] = EOS
        done |= token[:, 0] == EOS
        if done.all():
            break
        chosen.append(token)
    table = torch.cat(chosen, 1).tolist() if chosen else [[] for _ in sources]
    return [row[: row.index(EOS)] if EOS in row else row for row in table]


def corpus_bleu(
    model: Transformer, shards: Sequence[Shard], target: TextPipeline, limit: int = 1000
) -> float:
    """sacreBLEU of greedy translations of (at most `limit`) pairs, evenly spaced over each shard."""
    from sacrebleu.metrics.bleu import BLEU

    sources, references = [], []
    for shard in shards:
        source_side, target_side = shard.sides
        for index in np.unique(np.linspace(0, len(shard) - 1, limit // len(shards), dtype=int)):
            sources.append(source_side.sentence(index)[:-1].tolist())
            references.append(target.decode(target_side.sentence(index)[:-1].tolist()))
    hypotheses = [target.decode(ids) for ids in greedy(model, sources)]
    return float(BLEU().corpus_score(hypotheses, [references]).score)
