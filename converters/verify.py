"""Does a converted model say the same as the torch model it was made from?

Probe sentences are scored by both engines, token by token. In float32 they must agree; with fewer bits they
drift apart, and how far is reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ctranslate2
import torch
from torch import Tensor

from cadec_cli.engines.compute_types import usable_compute_type
from cadec_cli.errors import CadecError
from cadec_cli.models.transformer import Transformer
from cadec_cli.text.specials import BOS, EOS, SPECIAL_PIECES
from cadec_cli.workers import available_cores

# Of a token's log-probability, in float32; rounding alone stays a hundred times below it.
TOLERANCE = 1e-3

# With fewer bits there is no fixed bound; a model that is off by more than this per token is another model.
_NONSENSE = 1.0

_LENGTHS = (1, 2, 3, 5, 8, 13, 21, 34)

Pair = tuple[Sequence[int], Sequence[int]]  # source and target ids, without EOS


@dataclass(frozen=True)
class Drift:
    """How far a converted model's log-probabilities are from torch's, per token."""

    what: str
    compute_type: str
    sentences: int
    tokens: int
    mean: float
    largest: float

    def __str__(self) -> str:
        return (
            f"{self.what} in {self.compute_type}: log-probabilities differ by {self.mean:.2g} per token, "
            f"at most {self.largest:.2g} ({self.sentences} sentences, {self.tokens:,} tokens)"
        )

    def check(self) -> None:
        """Refuse a model that says something else than torch's."""
        exact = self.compute_type == "float32"
        agrees = self.largest <= TOLERANCE if exact else self.mean <= _NONSENSE
        if not agrees:  # NaN does not agree either
            limit = f"{TOLERANCE:g} per token" if exact else f"{_NONSENSE:g} per token on average"
            raise CadecError(
                f"the converted model disagrees with torch by more than {limit}: {self}",
                "nothing was written; please report it, with the versions of ctranslate2 and torch",
            )


def translation_drift(
    model: Transformer,
    source_pieces: Sequence[str],
    target_pieces: Sequence[str],
    directory: Path,
    compute_type: str,
    probes: Sequence[Pair] = (),
) -> Drift:
    """Compare a converted S-NMT with the original on random sentences and on the given ones."""
    pairs = [*_random_pairs(model), *_fitting(probes, model.config.positions - 1)]
    translator = load_converted(directory, compute_type)
    scored = translator.score_batch(
        [_spell_ids([*source, EOS], source_pieces) for source, _ in pairs],
        [_spell_ids(target, target_pieces) for _, target in pairs],
        max_batch_size=1024,
        batch_type="tokens",
        max_input_length=0,
    )
    expected = [_log_probs(model, source, target) for source, target in pairs]
    return compare_scores(compute_type, expected, [result.log_probs for result in scored])


def load_converted(directory: Path, compute_type: str) -> Any:
    """A converted model on the CPU."""
    try:
        return ctranslate2.Translator(
            str(directory),
            device="cpu",
            compute_type=usable_compute_type(compute_type),
            inter_threads=1,
            intra_threads=available_cores(),
        )
    except (RuntimeError, ValueError) as error:
        raise CadecError(f"CTranslate2 can't load the converted model: {error}") from None


def _random_pairs(model: Transformer) -> list[Pair]:
    config = model.config
    longest = config.positions - 1  # EOS of the source and BOS of the target need a position
    sources = _random_sentences(config.source_vocabulary, longest, seed=1)
    targets = _random_sentences(config.target_vocabulary, longest, seed=2)
    # Neighbouring lengths are paired, so that neither side's length can be taken for the other's.
    return list(zip(sources, targets[1:] + targets[:1], strict=True))


def _random_sentences(vocabulary: int, longest: int, seed: int) -> list[list[int]]:
    """Sentences of several lengths, the longest the model takes among them."""
    rng = torch.Generator().manual_seed(seed)
    lengths = [*(length for length in _LENGTHS if length < longest), longest]
    first = min(len(SPECIAL_PIECES), vocabulary - 1)
    return [torch.randint(first, vocabulary, (length,), generator=rng).tolist() for length in lengths]


def _fitting(probes: Sequence[Pair], longest: int) -> list[Pair]:
    return [
        (source, target)
        for source, target in probes
        if 0 < len(source) <= longest and 0 < len(target) <= longest
    ]


def _spell_ids(ids: Sequence[int], pieces: Sequence[str]) -> list[str]:
    return [pieces[index] for index in ids]


@torch.inference_mode()
def _log_probs(model: Transformer, source: Sequence[int], target: Sequence[int]) -> Tensor:
    assert not model.training, "dropout would make it say something else each time"
    logits: Tensor = model(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]]))
    return logits[0].log_softmax(-1).gather(1, torch.tensor([*target, EOS])[:, None])[:, 0]


def compare_scores(compute_type: str, expected: Sequence[Tensor], scored: Sequence[Sequence[float]]) -> Drift:
    """How far scores of tokens are from those expected."""
    differences = []
    for ours, theirs in zip(expected, scored, strict=True):
        if len(ours) != len(theirs):
            raise CadecError(
                f"the converted model scored {len(theirs)} tokens where there are {len(ours)}",
                "this is a bug in cadec",
            )
        differences.append((ours - torch.tensor(theirs)).abs())
    everything = torch.cat(differences)
    largest = float(everything.max()) if not everything.isnan().any() else math.nan
    return Drift("S-NMT", compute_type, len(expected), len(everything), float(everything.mean()), largest)
