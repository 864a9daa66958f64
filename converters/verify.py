"""Compares a converted model with the torch model it was made from.

Both score probe sentences, token by token. In float32 they must agree. With fewer bits they drift apart, and
the drift is reported. Also reads a model's licence and computes the checksum of its weights.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ctranslate2
import torch
from torch import Tensor

from cadec_cli.engines.compute_types import usable_compute_type
from cadec_cli.engines.ctranslate2 import Framing
from cadec_cli.errors import CadecError
from cadec_cli.fs.read import sha256
from cadec_cli.models.pretrained_settings import MAX_TEXT_LENGTH
from cadec_cli.models.transformer import Transformer
from cadec_cli.parallel import available_cores
from cadec_cli.text.subwords import BOS, EOS, SPECIAL_PIECES
from cadec_cli.validation import showable


def stated_licence(directory: Path) -> str | None:
    """Return the licence that a model card states in its front matter, or None."""
    card = directory / "README.md"
    if not card.is_file():
        return None
    front = re.match(r"---\s*\n(.*?)\n---", card.read_text("utf-8", errors="replace"), re.DOTALL)
    stated = re.search(r"^license:[ \t]*(\S.*?)[ \t]*$", front[1], re.MULTILINE) if front else None
    return showable(stated[1].strip("\"'"), MAX_TEXT_LENGTH) if stated else None


def weights_checksum(files: Sequence[Path]) -> str:
    """Return the checksum of a single file, or a checksum of several files' names and checksums."""
    if len(files) == 1:
        return sha256(files[0])
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name} {sha256(path)}\n".encode())
    return digest.hexdigest()


# How far a token's log-probability may be off in float32; rounding alone stays a hundred times below it.
TOLERANCE = 1e-3

# With fewer bits there is no fixed bound, but a model that is further off per token is a different model.
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
        """Raise a CadecError if the converted model disagrees with torch's."""
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
    """Load a converted model on the CPU; one that CTranslate2 can't load is a CadecError."""
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
    """Random sentences of several lengths, up to the longest that the model takes."""
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
    assert not model.training, "dropout would make the scores random"
    logits: Tensor = model(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]]))
    return logits[0].log_softmax(-1).gather(1, torch.tensor([*target, EOS])[:, None])[:, 0]


def compare_scores(compute_type: str, expected: Sequence[Tensor], scored: Sequence[Sequence[float]]) -> Drift:
    """Measure how far the scores of tokens are from the expected ones."""
    differences = []
    for ours, theirs in zip(expected, scored, strict=True):
        if len(ours) != len(theirs):
            raise CadecError(
                f"the converted model scored {len(theirs)} tokens instead of {len(ours)}",
                "this is a bug in cadec",
            )
        differences.append((ours - torch.tensor(theirs)).abs())
    everything = torch.cat(differences)
    largest = float(everything.max()) if not everything.isnan().any() else math.nan
    return Drift("S-NMT", compute_type, len(expected), len(everything), float(everything.mean()), largest)


# (framed sources, targets) → log p of every token of each target, and of its end, given the source. Neither
# the targets nor the scores include the tokens that every translation begins with.
Reference = Callable[[Sequence[Sequence[str]], Sequence[Sequence[str]]], list[list[float]]]


@dataclass(frozen=True)
class Probes:
    """The sentences that a converted model is tested with: tokens of both sides, and their framing."""

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
    """Make sentences of several lengths from tokens, which should not be special ones; then add `texts`."""
    rng = random.Random(1)
    longest = max(1, min(positions - 4, 60))
    lengths = [*(length for length in _LENGTHS if length < longest), longest]
    sources = [rng.choices(source_tokens, k=length) for length in lengths]
    targets = [rng.choices(target_tokens, k=length) for length in lengths]
    given = ([*texts.sources], [*texts.targets]) if texts is not None else ([], [])
    # Neighbouring lengths are paired, so that neither side's length can be taken for the other's.
    return Probes(framing, [*sources, *given[0]], [*targets[1:], *targets[:1], *given[1]])


def drift_from(reference: Reference, directory: Path, compute_type: str, probes: Probes) -> Drift:
    """Measure how far a converted model is from the original, token by token."""
    framed = [probes.framing.frame(source) for source in probes.sources]
    expected = [torch.tensor(one) for one in reference(framed, probes.targets)]
    return compare_scores(compute_type, expected, _score(load_converted(directory, compute_type), probes))


def drift_from_itself(directory: Path, compute_type: str, probes: Probes, positions: int) -> Drift:
    """Measure how far the beam's scores are from those of scoring its translations, per token.

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
            min_decoding_length=0,  # a minimum of 1 would take the end out of the first softmax
            max_decoding_length=limit,
            max_input_length=0,
            return_scores=True,
        )
    except ValueError as error:  # caused by the model's settings: the request is always the same
        raise CadecError(f"{directory}: CTranslate2 can't translate with this model: {error}") from None
    finished = [
        (source, tokens[len(begin) :], score)
        for source, result in zip(probes.sources, results, strict=True)
        for tokens, score in zip(result.hypotheses, result.scores, strict=True)
        if len(tokens) - len(begin) < limit - len(begin)  # a truncated one has no end, so its score differs
    ]
    if not finished:
        raise CadecError(
            "the converted model finished none of its translations of probe sentences",
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
