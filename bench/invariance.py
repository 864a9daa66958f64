"""How often a translation depends on what is translated beside it, and what it costs that it does not.

Sentences of the files given, one a line, in documents of 20: each by itself, eight in step, in step with
others, and by itself with one thread; and with batches that are padded, as they would be if sentences of
several lengths shared them. CPU time counts, not the clock's, so that other work on the machine does not.
"""

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.rows import Row
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines import ctranslate2
from cadec_cli.errors import UsageError
from cadec_cli.jobs.job import TranslationJob
from cadec_cli.jobs.json_lines import json_records
from cadec_cli.jobs.model_request import ModelRequest

SENTENCES, DOCUMENT, IN_STEP = 2000, 20, 8

Document = list[str]
# What became of every sentence, in the order of the documents.
Outcome = list[list[dict[str, Any]]]


def measure(files: list[str]) -> Iterator[Row]:
    """Rows of the table: shares of sentences that came out in another way, and a ratio of CPU time."""
    documents = _documents(files)
    translator = TranslationJob.open(ModelRequest()).translator
    by_itself = [[place] for place in range(len(documents))]
    in_step = _crowds(range(len(documents)))
    with _padded(translator):
        padded_alone = _translated(translator, documents, by_itself)
        padded_in_step = _translated(translator, documents, in_step)
    alone = _translated(translator, documents, by_itself)
    together = _translated(translator, documents, in_step)
    yield from _compared("padded batches: in step with others", padded_alone, padded_in_step, "")
    yield from _compared("in step with others", alone, together, "none")
    mixed = random.Random(1).sample(range(len(documents)), len(documents))
    yield from _compared(
        "in step with yet others", alone, _translated(translator, documents, _crowds(mixed)), "none"
    )
    single = TranslationJob.open(ModelRequest(threads=1)).translator
    yield from _compared("with one thread", alone, _translated(single, documents, by_itself), "none")
    for what, crowds in (("in step", in_step), ("by itself", by_itself)):
        ours, padded = _price(translator, documents, crowds)
        yield Row(
            f"CPU time of n-best lists, {what}: batches of one length / padded",
            f"{ours:.1f} / {padded:.1f} s",
            ours / padded,
            "≤ 1.25",
            ours <= 1.25 * padded,
        )


def _documents(files: Sequence[str]) -> list[Document]:
    lines = [line for name in files for line in Path(name).read_text("utf-8").splitlines() if line.strip()]
    if len(lines) < 2 * DOCUMENT:
        raise UsageError("invariance wants files of sentences", "python -m bench invariance FILE…")
    del lines[SENTENCES:]
    return [lines[start : start + DOCUMENT] for start in range(0, len(lines), DOCUMENT)]


def _crowds(places: Sequence[int]) -> list[list[int]]:
    return [list(places[start : start + IN_STEP]) for start in range(0, len(places), IN_STEP)]


def _translated(
    translator: Translator, documents: Sequence[Document], crowds: Iterable[Sequence[int]]
) -> Outcome:
    found: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for crowd in crowds:
        for translation in translator.translate_documents([documents[place] for place in crowd]):
            made = json_records(replace(translation, document=crowd[translation.document]))
            found[crowd[translation.document], translation.sentence] = made
    return [found[place] for place in sorted(found)]


def _price(
    translator: Translator, documents: Sequence[Document], crowds: Sequence[Sequence[int]]
) -> tuple[float, float]:
    """CPU seconds for the lists of all crowds, as they are made and with padding, in turns."""
    model, count = translator.models.translation, translator.options.list_size
    spent = {False: 0.0, True: 0.0}
    for crowd in crowds:
        texts = [text for place in crowd for text in documents[place]]
        for padded in spent:
            with _padded(translator) if padded else nullcontext():
                start = time.process_time()
                model.nbest(texts, count)
                spent[padded] += time.process_time() - start
    return spent[False], spent[True]


def _compared(what: str, one: Outcome, other: Outcome, target: str) -> Iterator[Row]:
    """Shares of sentences, from any difference at all to another translation."""
    views = {
        "any figure": lambda record: record,
        "its list": lambda record: [hypothesis["text"] for hypothesis in record.get("hypotheses", ())],
        "the choice": lambda record: record["translation"],
    }
    for name, view in views.items():
        pairs = list(zip(one, other, strict=True))
        differ = sum(list(map(view, left)) != list(map(view, right)) for left, right in pairs)
        yield Row(
            f"{what}: {name} differs",
            f"{differ} of {len(pairs)} sentences",
            differ / len(pairs),
            target,
            differ == 0 if target else None,
        )


@contextmanager
def _padded(translator: Translator) -> Iterator[None]:
    """Let sentences of several lengths share a batch, all that have one limit."""
    model = translator.models.translation
    assert isinstance(model, ctranslate2.CTranslate2Model)
    of_one_size = ctranslate2._of_one_size

    def of_one_limit(sizes: Iterable[Any]) -> list[list[int]]:
        limits = [model._limit([""] * size) if isinstance(size, int) else 0 for size in sizes]
        return of_one_size(limits)

    ctranslate2._of_one_size = of_one_limit
    try:
        yield
    finally:
        ctranslate2._of_one_size = of_one_size
