"""Does a converted model of another toolkit say what the original says?

Where the original can be run here, each token of some probe sentences is compared with it. Where it can't,
the model is compared with itself: the beam's own scores must be those that scoring the same translations
gives, which finds a framing that CTranslate2 does not mean (a language's token counted, a missing end).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cadec_cli.engines.ctranslate2_nmt import Framing
from cadec_cli.errors import CadecError
from converters.verify import Drift, compare_scores, load_converted

# log p of every token of each target, the end last, after the source: (framed sources, targets) → log-probs.
# Targets are without the tokens that every translation begins with, and the answer is too.
Reference = Callable[[Sequence[Sequence[str]], Sequence[Sequence[str]]], list[list[float]]]

_LENGTHS = (1, 2, 3, 5, 8, 13, 21, 34)


@dataclass(frozen=True)
class Probes:
    """What a converted model is tried with: tokens of either side, and what stands around them."""

    framing: Framing
    sources: Sequence[Sequence[str]]  # without the framing
    targets: Sequence[Sequence[str]]  # likewise


def random_probes(
    framing: Framing,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    positions: int,
    texts: Probes | None = None,
) -> Probes:
    """Sentences of several lengths made of these tokens, which should be no special ones; then given ones."""
    rng = random.Random(1)
    longest = max(1, min(positions - 4, 60))
    lengths = [*(length for length in _LENGTHS if length < longest), longest]
    sources = [rng.choices(source_tokens, k=length) for length in lengths]
    targets = [rng.choices(target_tokens, k=length) for length in lengths]
    given = ([*texts.sources], [*texts.targets]) if texts is not None else ([], [])
    # Neighbouring lengths are paired, so that neither side's length can be taken for the other's.
    return Probes(framing, [*sources, *given[0]], [*targets[1:], *targets[:1], *given[1]])


def drift_from(reference: Reference, directory: Path, compute_type: str, probes: Probes) -> Drift:
    """How far a converted model is from the original, token by token."""
    framed = [probes.framing.frame(source) for source in probes.sources]
    expected = [torch.tensor(one) for one in reference(framed, probes.targets)]
    return compare_scores(compute_type, expected, _score(load_converted(directory, compute_type), probes))


def drift_from_itself(directory: Path, compute_type: str, probes: Probes, positions: int) -> Drift:
    """How far the beam's scores are from what scoring its translations gives, per token.

    `positions` is how many tokens the model can write.
    """
    translator = load_converted(directory, compute_type)
    framed = [probes.framing.frame(source) for source in probes.sources]
    begin = list(probes.framing.target_begin)
    limit = min(4 * max(map(len, framed)), positions - 1)
    try:
        results = translator.translate_batch(
            framed,
            target_prefix=[begin] * len(framed) if begin else None,
            beam_size=4,
            num_hypotheses=4,
            length_penalty=0,
            min_decoding_length=0,  # one token at least would take the end out of the first softmax
            max_decoding_length=limit,
            max_input_length=0,
            return_scores=True,
        )
    except ValueError as error:  # of its settings: what is asked for is always the same
        raise CadecError(f"{directory}: CTranslate2 can't translate with this model: {error}") from None
    finished = [
        (source, tokens[len(begin) :], score)
        for source, result in zip(probes.sources, results, strict=True)
        for tokens, score in zip(result.hypotheses, result.scores, strict=True)
        if len(tokens) - len(begin) < limit - len(begin)  # a cut one has no end, and so another score
    ]
    if not finished:
        raise CadecError(
            "the converted model ends none of its translations of probe sentences",
            "nothing was written; is the model trained, and are these its tokenizer's files?",
        )
    again = _score(
        translator, Probes(probes.framing, [one[0] for one in finished], [one[1] for one in finished])
    )
    # A whole translation's difference, spread over its tokens.
    expected, scored = [], []
    for (_, _, score), log_probs in zip(finished, again, strict=True):
        expected.append(torch.full((len(log_probs),), score / len(log_probs)))
        scored.append([sum(log_probs) / len(log_probs)] * len(log_probs))
    return compare_scores(compute_type, expected, scored)


def _score(translator: Any, probes: Probes) -> list[list[float]]:
    begin = probes.framing.target_begin
    results = translator.score_batch(
        [probes.framing.frame(source) for source in probes.sources],
        [[*begin, *target] for target in probes.targets],
        max_batch_size=1024,
        batch_type="tokens",
        max_input_length=0,
    )
    return [list(result.log_probs[len(begin) :]) for result in results]
