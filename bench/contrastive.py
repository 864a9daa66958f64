"""Contrastive scoring: groups as tries, many in a row of the network, against candidates one by one.

A D-LM of the paper's size with random weights; groups like the published ones: three sentences before, two to
five candidates that differ in a word.
"""

import random
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch

from bench.prepare import TEXT
from bench.rows import Row
from cadec_cli.arrays import Floats
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.evaluation.benchmark import LENGTH, VOCABULARY, naive_scores
from cadec_cli.evaluation.contrastive.scoring import ContrastiveModels
from cadec_cli.evaluation.contrastive.sets import ContrastiveSet, Group
from cadec_cli.method.context import Context
from cadec_cli.method.objectives import CONDITIONAL, FREE
from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig
from cadec_cli.models.int8.block import quantise
from cadec_cli.text.moses import Truecaser
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.subwords import train_subwords

GROUPS, ROUNDS = 32, 2
# Numbers of candidates, as often as in the published sets: most groups have two.
SIZES = (2, 2, 2, 3, 5)


def measure(directories: list[str]) -> Iterator[Row]:
    torch.manual_seed(1)
    model = DocumentLM(DocumentLMConfig(VOCABULARY)).eval()
    words = TEXT.split()
    lines = [" ".join(random.Random(seed).choices(words, k=LENGTH)) for seed in range(400)]
    text = TextPipeline("ru", Truecaser(frozenset(words)), train_subwords(lines, vocabulary_size=320))
    of = ContrastiveSet(Path("made-up"), "jsonl", _groups(words))
    apart = _one_by_one(model, text, of)
    slow = _seconds(lambda: _one_by_one(model, text, of))
    for kind, network in (("float32", model), ("int8", quantise(model))):
        models = ContrastiveModels(None, TorchLanguageModel(network, text))
        together = _by_group(models, of)
        difference = max(float(np.abs(a - b).max()) for a, b in zip(together, apart, strict=True))
        fast = _seconds(partial(_by_group, models, of))
        exact = kind == "float32"
        yield Row(
            f"contrastive groups, {kind} / one candidate at a time, float32",
            f"{GROUPS / fast:.1f} / {GROUPS / slow:.1f} groups/s, scores differ by {difference:.0e}",
            slow / fast,
            "≥ 5.00, < 1e-04" if exact else "≥ 5.00",
            slow / fast >= 5 and (difference < 1e-4 or not exact),
        )


def _groups(words: list[str]) -> tuple[Group, ...]:
    rng = random.Random(1)

    def sentence() -> list[str]:
        return rng.choices(words, k=LENGTH)

    made = []
    for number in range(GROUPS):
        true, place = sentence(), rng.randrange(LENGTH)
        others = rng.sample([word for word in words if word != true[place]], SIZES[number % len(SIZES)] - 1)
        texts = [" ".join([*true[:place], word, *true[place + 1 :]]) for word in (true[place], *others)]
        context = tuple(" ".join(sentence()) for _ in range(3))
        made.append(Group("", (), context, tuple(texts), 0, name=str(number)))
    return tuple(made)


def _by_group(models: ContrastiveModels, of: ContrastiveSet) -> list[Floats]:
    return [np.array([terms[CONDITIONAL][0], terms[FREE][0]]) for terms in models.terms(of)]


def _one_by_one(model: DocumentLM, text: TextPipeline, of: ContrastiveSet) -> list[Floats]:
    found = []
    for group in of.groups:
        context = Context(tuple(tuple(text.encode(sentence)) for sentence in group.context))
        candidates = [text.encode(candidate) for candidate in group.candidates]
        scores = [
            [naive_scores(model, before, [ids])[0] for ids in candidates] for before in (context, Context())
        ]
        found.append(np.array(scores))
    return found


def _seconds(job: Callable[[], object]) -> float:
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        job()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)
