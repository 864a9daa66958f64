"""Finding the temperature and the weight of an objective on a development set.

Every setting reranks the whole set: its choices are its own contexts, so each runs as documents of its own,
in step with all others. Settings mostly choose alike, and what several of them ask (one list after one
context) is scored once, with all temperatures in one pass. N-best lists and context-free scores are computed
once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from cadec_cli import console
from cadec_cli.bundle.loading import Models
from cadec_cli.decoding.candidates import candidates, lm_encoder
from cadec_cli.decoding.search.lattice import Candidate
from cadec_cli.engines.ctranslate2_nmt import NBestGenerator
from cadec_cli.engines.torch_lm import LMScorer, ScoredTrie
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.objectives import objective
from cadec_cli.text.sentences import split_sentences

if TYPE_CHECKING:
    from cadec_cli.bundle.opening import Bundle

CHUNK = 256  # sentences translated at once

PROTOCOLS = ("best", "strongest")


@dataclass(frozen=True)
class Setting:
    """What is tuned."""

    temperature: float
    weight: float

    @property
    def strength(self) -> tuple[float, float]:
        """Sorts settings by how much the D-LM has to say: a large weight, then a low temperature."""
        return (self.weight, -self.temperature)


@dataclass(frozen=True)
class Point:
    """How a setting did; `changed` is the share of sentences that it translates otherwise than the S-NMT."""

    setting: Setting
    bleu: float
    chrf: float
    changed: float


T = TypeVar("T")
# A document: a candidate a sentence, None where there is nothing to choose from.
Column = Sequence[Candidate | None]


def rerank_with_all(
    documents: Sequence[Column],
    settings: Sequence[Setting],
    name: str,
    scorer: LMScorer,
    context_sentences: int,
    advanced: Callable[[int], None] = lambda sentences: None,
) -> list[list[list[int]]]:
    """What each setting chooses: settings × documents × sentences. `scorer` has all their temperatures."""
    objectives = [objective(name, setting.weight) for setting in settings]
    rows = [scorer.temperatures.index(setting.temperature) for setting in settings]
    chosen: list[list[list[int]]] = [[[] for _ in documents] for _ in settings]
    contexts = [[Context() for _ in documents] for _ in settings]
    for step in range(max(map(len, documents), default=0)):
        live = [number for number, document in enumerate(documents) if step < len(document)]
        conditional = _conditionals(
            scorer if objectives[0].uses_conditional else None,
            [(number, documents[number][step], [own[number] for own in contexts]) for number in live],
        )
        for number in live:
            candidate = documents[number][step]
            for place, (formula, row) in enumerate(zip(objectives, rows, strict=True)):
                index = 0
                if candidate is not None:
                    context = contexts[place][number]
                    free = candidate.free.totals[row] if candidate.free is not None else 0.0
                    after = conditional.get((number, context.sentences))
                    given = free if after is None else after.totals[row]
                    # Of equals the first, which the S-NMT likes best.
                    index = int(np.argmax(formula.score(candidate.log_probs, given, free)))
                    contexts[place][number] = context.followed_by(candidate.ids[index]).last(
                        context_sentences
                    )
                chosen[place][number].append(index)
        advanced(len(live))
    return chosen


def _conditionals(
    scorer: LMScorer | None, asked: Sequence[tuple[int, Candidate | None, Sequence[Context]]]
) -> dict[tuple[int, tuple[tuple[int, ...], ...]], ScoredTrie]:
    """Score each document's list after every distinct context of its settings; an empty one needs none."""
    if scorer is None:
        return {}
    jobs = {}
    for number, candidate, contexts in asked:
        if candidate is None or candidate.free is None:
            continue
        for context in contexts:
            fitted = scorer.fitted(context, candidate.free.trie)
            if fitted.sentences:
                jobs[number, context.sentences] = (candidate.free.trie, fitted)
    scored = scorer.score([trie for trie, _ in jobs.values()], [context for _, context in jobs.values()])
    return dict(zip(jobs, scored, strict=True))


def tuned(
    bundle: Bundle,
    sources: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    name: str,
    settings: Sequence[Setting],
    *,
    context: int,
    nbest: int,
    split: bool = False,
    device: str = "auto",
    compute_type: str = "int8",
    threads: int = 0,
) -> tuple[Point, list[Point]]:
    """Translate the development set with every setting; the sentence level's figures come first.

    With `split` a line is a paragraph: its sentences are translated one by one, and measured as one.
    """
    language = bundle.source_language or ""
    lines = [
        [split_sentences(line, language) if split else [line] for line in document] for document in sources
    ]
    sources = [[sentence for line in document for sentence in line] for document in lines]
    models = Models(bundle, device=device, compute_type=compute_type, threads=threads)
    temperatures = tuple(dict.fromkeys(setting.temperature for setting in settings))
    scorer = LMScorer(models.language_model, temperatures=temperatures)
    encode = lm_encoder(bundle.target, bundle.lm_pipeline)
    lists: list[NBest] = []
    columns: list[Candidate | None] = []
    with console.progress("sentences") as bar:
        total = sum(map(len, sources))
        task = bar.add_task("translated", total=total)
        for chunk in _chunks(models.generator, sources):
            lists += models.generator.generate(chunk, nbest)
            columns += candidates(lists[len(columns) :], encode, scorer)
            bar.advance(task, len(chunk))
        documents = _by_document(columns, sources)
        task = bar.add_task("reranked", total=total)
        chosen = rerank_with_all(
            documents, settings, name, scorer, context, lambda count: bar.advance(task, count)
        )
    texts = _by_document([[hypothesis.text for hypothesis in one.hypotheses] for one in lists], sources)
    return measured(
        settings, chosen, texts, references, [len(line) for document in lines for line in document]
    )


def _chunks(generator: NBestGenerator, documents: Sequence[Sequence[str]]) -> list[list[str]]:
    """The sentences of all documents, so many at once: without context no document is alone."""
    sentences = [sentence for document in documents for sentence in document]
    for number, sentence in enumerate(sentences, 1):
        if not generator.fits(sentence):
            raise CadecError(f"sentence {number} is too long for the model: {sentence[:60]!r}…")
    return [sentences[start : start + CHUNK] for start in range(0, len(sentences), CHUNK)]


def _by_document(flat: Sequence[T], documents: Sequence[Sequence[str]]) -> list[list[T]]:
    """Something a sentence, put into documents again."""
    one = iter(flat)
    return [[next(one) for _ in document] for document in documents]


def measured(
    settings: Sequence[Setting],
    chosen: Sequence[Sequence[Sequence[int]]],
    texts: Sequence[Sequence[Sequence[str]]],
    references: Sequence[Sequence[str]],
    lines: Sequence[int] | None = None,
) -> tuple[Point, list[Point]]:
    """The sentence level's figures and each setting's; `texts` are the hypotheses of every sentence.

    References are of lines; `lines` tells how many sentences each has, all one where it is not given.
    """
    wanted = [text for document in references for text in document]
    sizes = lines or [1] * len(wanted)
    nothing = [[0] * len(document) for document in texts]
    level = _point(Setting(1.0, 0.0), nothing, texts, wanted, sizes)
    return level, [
        _point(setting, own, texts, wanted, sizes) for setting, own in zip(settings, chosen, strict=True)
    ]


def _point(
    setting: Setting,
    chosen: Sequence[Sequence[int]],
    texts: Sequence[Sequence[Sequence[str]]],
    wanted: Sequence[str],
    lines: Sequence[int],
) -> Point:
    import sacrebleu

    sentences = (
        lists[index] if lists else ""
        for document, own in zip(texts, chosen, strict=True)
        for lists, index in zip(document, own, strict=True)
    )
    picked = [" ".join(islice(sentences, size)) for size in lines]
    changed = [index != 0 for own in chosen for index in own]
    return Point(
        setting,
        sacrebleu.corpus_bleu(picked, [wanted]).score,
        sacrebleu.corpus_chrf(picked, [wanted]).score,
        sum(changed) / max(len(changed), 1),
    )


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
