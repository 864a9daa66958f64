"""Other toolkits' models: tries against a plain padded batch of the same network, and us against CTranslate2.

    python -m bench pretrained [BUNDLE]

Without a bundle the language model is a GPT-2 of 124M parameters with random weights, and no translation
model is measured: random weights find no end of a sentence.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from bench.processes import Descendants, cadec, medians, spent
from bench.rows import Row
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import default_options, load_models
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.ctranslate2 import CTranslate2Model
from cadec_cli.engines.protocols import trie_for
from cadec_cli.engines.transformers_lm import TransformersLanguageModel
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.benchmark import BEAM, CONTEXT, LENGTH, NBEST, made_up_list, take_turns
from cadec_cli.evaluation.benchmark.speed import translating_text
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import Ids
from cadec_cli.method.options import ScoringOptions, with_flags
from cadec_cli.models.huggingface import Network
from cadec_cli.parallel import available_cores
from cadec_cli.text.tokenizers.line_text import LineText

ROUNDS, START_ROUNDS = 5, 3
FILM = Path(__file__).parent / "texts" / "film.en.txt"
LECTURE = FILM.with_name("lecture.en.txt")
SENTENCES = Path(__file__).parents[1] / "examples" / "dialogue.txt"


def measure(directories: list[str]) -> Iterator[Row]:
    torch.set_num_threads(available_cores())
    bundle = Bundle.open(Path(directories[0])) if directories else None
    if bundle is None or (bundle.has_lm and not bundle.trained_here("lm")):
        yield from _tries(lambda kind: _language_model(bundle, kind))
    if bundle is not None and bundle.has_translation and not bundle.trained_here("nmt"):
        if bundle.has_lm:
            yield from _film(bundle)
            yield _lecture(bundle)
            yield from _start(bundle)
        yield _through_us(bundle)
        if bundle.has_network and bundle.has_lm:
            yield _beam_and_rerank(bundle)


def _film(bundle: Bundle) -> Iterator[Row]:
    """Film dialogue as the bundle translates it: all scenes in step, and all of it as one document."""
    models, options = load_models(bundle), default_options(bundle)
    scenes = [scene.split("\n") for scene in FILM.read_text("utf-8").strip().split("\n\n")]
    whole = [line for scene in scenes for line in scene]
    for what, documents in ((f"{len(scenes)} scenes", scenes), ("one document", [whole])):
        found = translating_text(models, options, documents, "en")
        assert found.reached is not None and found.spent is not None
        spent = ", ".join(f"{name} {share:.0%}" for name, share in found.spent.items())
        speed = float(found.speed.split(" ")[0])
        yield Row(
            f"{bundle.name}: film dialogue, {what}: {found.what}",
            f"{found.speed}, {found.reached.share:.2f} of the limit ({spent})",
            found.ratio,
            "≥ 0.16, ≥ 8/s",
            found.ratio >= 0.16 and speed >= 8,
        )


def _lecture(bundle: Bundle) -> Row:
    """One document of long sentences."""
    lines = LECTURE.read_text("utf-8").strip().split("\n")
    found = translating_text(load_models(bundle), default_options(bundle), [lines], "en")
    assert found.reached is not None
    speed = float(found.speed.split(" ")[0])
    return Row(
        f"{bundle.name}: a lecture, one document, {sum(len(line.split()) for line in lines) // len(lines)} "
        f"words a sentence: {found.what}",
        f"{found.speed}, {found.reached.share:.2f} of the limit",
        found.ratio,
        # Five times what it was on 2026-11-18.
        "≥ 1.5/s",
        speed >= 1.5,
    )


def _start(bundle: Bundle) -> Iterator[Row]:
    """One line, in a process of its own: until it ends, and the most memory that it has."""
    with tempfile.TemporaryDirectory() as name:
        one, page = Path(name) / "one.txt", Path(name) / "page.txt"
        one.write_text("Where are you?\n", "utf-8")
        page.write_text(SENTENCES.read_text("utf-8"), "utf-8")
        line = cadec("translate", one, "--lines", "--bundle", bundle.directory.resolve())
        taken = medians({"start": partial(spent, line)}, START_ROUNDS)["start"]
        yield Row(
            f"{bundle.name}: one line, start and end of the process",
            f"{taken.wall:.1f} s, {taken.cpu:.1f} CPU s",
            taken.wall,
            "< 4 s",
            taken.wall < 4,
        )
        for search in ("rerank", "beam") if bundle.has_network else ("rerank",):
            command = cadec("translate", page, "--search", search, "--bundle", bundle.directory.resolve())
            with Descendants(os.getpid()) as below:
                spent(command)
            peak = below.largest(1)[0].peak
            yield Row(
                f"{bundle.name}: memory, {SENTENCES.name} by {search}",
                f"{peak / 1024:.2f} GiB",
                peak / 1024,
                "< 2.9 GiB",  # what the whole vocabulary took on 2026-11-18
                peak / 1024 < 2.9,
            )


@dataclass(frozen=True)
class Numbers:
    """A text whose words are numbers: all that scoring asks for."""

    start: int = 0
    boundary: int = 1


def _language_model(bundle: Bundle | None, compute_type: str) -> TransformersLanguageModel:
    if bundle is not None:
        model = load_models(bundle, compute_type=compute_type).language
        if not isinstance(model, TransformersLanguageModel):
            raise CadecError("this bundle has no pretrained D-LM")
        return model
    import transformers

    torch.manual_seed(1)
    network = Network(transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval().requires_grad_(False))
    if compute_type == "int8":
        network.to_int8()
    return TransformersLanguageModel(network, cast(LineText, Numbers()), positions=1024)


def _tries(load: Callable[[str], TransformersLanguageModel]) -> Iterator[Row]:
    fitted = load("float32")
    fitted.network.fitted = None  # as a plain batch of transformers scores
    # Made again: how many rows of logits it computes at a time depends on what it predicts.
    model = TransformersLanguageModel(fitted.network, fitted.text, positions=fitted.positions)
    random = np.random.default_rng(1)
    vocabulary = model.network.vocabulary
    sentences = (tuple(random.integers(4, vocabulary, LENGTH).tolist()) for _ in range(CONTEXT))
    context, hypotheses = Context(tuple(sentences)), made_up_list(random, vocabulary)
    trie = trie_for(model, hypotheses)
    int8 = load("int8")
    jobs: dict[str, Callable[[], object]] = {
        "plain": lambda: _padded(model, context, hypotheses),
        "float32": lambda: model.score([trie], [context], ScoringOptions()),
        "int8": lambda: int8.score([trie], [context], ScoringOptions()),
    }
    seconds = take_turns(jobs, ROUNDS)
    expected = _padded(model, context, hypotheses)
    what = f"{model.network.config.model_type}: a trie of {NBEST} hypotheses"
    for kind, scorer in (("float32", model), ("int8", int8)):
        (scored,) = scorer.score([trie], [context], ScoringOptions())
        difference = float(np.abs(scored.totals[0] - expected).max())
        ratio = seconds["plain"] / seconds[kind]
        exact = kind == "float32"
        yield Row(
            f"{what}, {kind} / plain padded batch, float32",
            f"{1 / seconds[kind]:.2f} / {1 / seconds['plain']:.2f} lists/s, scores apart by {difference:.0e}",
            ratio,
            "≥ 5.00, < 1e-02" if exact else "≥ 5.00",
            ratio >= 5 and (difference < 1e-2 or not exact),
        )
    watched = Watched(model.network)
    with patch.object(model.network, "logits", watched):
        model.score([trie], [context], ScoringOptions())
    kept, whole = watched.elements * 4 / 2**20, len(trie) * vocabulary * 4 / 2**20
    yield Row(
        f"{what}: logits at a time / those of all nodes",
        f"{kept:.1f} / {whole:.1f} MiB",
        kept / whole,
        "≤ 24 MiB",
        kept <= 24,
    )


class Watched:
    """Gives a network's logits, and remembers the most that were there at a time."""

    def __init__(self, network: Network) -> None:
        self._logits = network.logits
        self.elements = 0

    def __call__(self, hidden: Tensor) -> Tensor:
        made = self._logits(hidden)
        self.elements = max(self.elements, made.numel())
        return made


@torch.inference_mode()
def _padded(model: TransformersLanguageModel, context: Context, hypotheses: Sequence[Ids]) -> list[float]:
    """As one writes it with transformers: every hypothesis after all of the context, one padded batch."""
    before = [model.text.start]
    for sentence in context.sentences:
        before += [*sentence, model.text.boundary]
    rows = [[*before, *ids, model.text.boundary] for ids in hypotheses]
    tokens = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    real = torch.zeros_like(tokens)
    for number, row in enumerate(rows):
        tokens[number, : len(row)] = torch.tensor(row)
        real[number, : len(row)] = 1
    logits = model.network.model(input_ids=tokens, attention_mask=real, use_cache=False).logits
    log_probs = logits[:, :-1].log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0]
    start = len(before) - 1
    return [
        float(row[start : start + len(ids) + 1].sum()) for row, ids in zip(log_probs, hypotheses, strict=True)
    ]


def _through_us(bundle: Bundle) -> Row:
    """The same sentences, beam and batches; text in, text out, on both sides."""
    model = load_models(bundle).translation
    assert isinstance(model, CTranslate2Model)
    lines = [line for line in SENTENCES.read_text("utf-8").split("\n") if line.strip()]
    # Not one twice: we would translate it once.
    texts = [f"{line} {other}" for line in lines for other in lines if line != other][:240]
    seconds = take_turns(
        {"ours": lambda: model.nbest(texts, BEAM), "direct": lambda: _direct(model, texts)}, ROUNDS
    )
    ratio = seconds["direct"] / seconds["ours"]
    return Row(
        f"{bundle.name}: {len(texts)} sentences through us / CTranslate2 called directly, beam {BEAM}",
        f"{len(texts) / seconds['ours']:.1f} / {len(texts) / seconds['direct']:.1f} sentences/s",
        ratio,
        "≥ 0.95",
        ratio >= 0.95,
    )


def _beam_and_rerank(bundle: Bundle) -> Row:
    """A page of dialogue, document by document: the C-aware beam, and reranking as the bundle has it."""
    models = load_models(bundle)
    documents = [block.split("\n") for block in SENTENCES.read_text("utf-8").strip().split("\n\n")]
    options = default_options(bundle)
    translators = {
        search: Translator(models, with_flags(options, {"search": search})) for search in ("beam", "rerank")
    }

    def job(translator: Translator) -> Callable[[], object]:
        return lambda: [list(translator.translate(document)) for document in documents]

    seconds = take_turns({search: job(one) for search, one in translators.items()}, ROUNDS)
    count = sum(map(len, documents))
    ratio = seconds["rerank"] / seconds["beam"]
    return Row(
        f"{bundle.name}: C-aware beam {options.beam} / rerank of {options.nbest}",
        f"{count / seconds['beam']:.2f} / {count / seconds['rerank']:.2f} sentences/s",
        ratio,
        "≥ 0.50",
        ratio >= 0.5,
    )


def _direct(model: CTranslate2Model, texts: Sequence[str]) -> list[list[str]]:
    """As one writes it with CTranslate2: encode, one call for each limit of length, decode the hypotheses."""
    source, target, framing = model._source, model._target, model._framing
    pieces = [[source.vocabulary[index] for index in source.encode(text)] for text in texts]
    by_limit: dict[int, list[int]] = {}
    for index, sentence in enumerate(pieces):
        by_limit.setdefault(model._limit(sentence), []).append(index)
    found: list[list[str]] = [[] for _ in texts]
    ids, begin = model._target_ids, list(framing.target_begin)
    for limit, indices in by_limit.items():
        results = model._translator.translate_batch(
            [framing.frame(pieces[index]) for index in indices],
            target_prefix=[begin] * len(indices) if begin else None,
            beam_size=BEAM,
            num_hypotheses=BEAM,
            length_penalty=0,
            max_decoding_length=limit + len(begin),
            max_batch_size=2048 // BEAM * 4,
            batch_type="tokens",
            return_scores=True,
        )
        for index, result in zip(indices, results, strict=True):
            found[index] = [
                target.decode([ids[token] for token in tokens[len(begin) :]]) for tokens in result.hypotheses
            ]
    return found
