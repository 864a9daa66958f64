"""All rows at once are what each translates alone, in any number of parts and workers."""

from dataclasses import replace
from pathlib import Path

import pytest

from cadec_cli.decoding.translator import Translator
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.generative import run
from cadec_cli.evaluation.generative.run import DocumentTranslators, rows_of, translate_sets
from cadec_cli.evaluation.generative.sets import GenerativeSet, Item
from cadec_cli.jobs.job import TranslationJob
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.method.options import TranslationOptions
from cadec_cli.parallel import SerialPool

DOCUMENTS = [
    ("Good morning, sir.", "- May I help you?", "<i>Do you know the way?</i>"),
    ("Hey, darling.", "I missed you.", "Visit https://example.org at 12:30!", "Where were you?"),
    ("...", "DO YOU LOVE ME?"),
    ("Did you see him?",),
]
SEARCHES, OBJECTIVES = ("rerank", "lattice", "beam"), ("c-score", "conditional-shallow-fusion")


@pytest.fixture(scope="module")
def job() -> TranslationJob:
    """The embedded bundle; float32, so that batches of other sizes give the same."""
    return TranslationJob.open(ModelRequest(compute_type="float32", threads=1), {"nbest": 5, "context": 2})


def test_all_rows_at_once_are_each_alone(job: TranslationJob) -> None:
    rows = rows_of(job.options, SEARCHES, OBJECTIVES, (1.0, 4.0))
    rows += rows_of(job.options, ["rerank"], ["pmi", "shallow-fusion"], flags={"term": []})
    assert len(rows) == 3 * 2 * 2 + 2
    found = DocumentTranslators(job, rows).translate(DOCUMENTS)
    for number, row in enumerate(rows):
        translator = Translator(job.models, row, language=job.languages.source_code)
        alone: list[list[str]] = [[] for _ in DOCUMENTS]
        for translation in translator.translate_documents(DOCUMENTS):
            alone[translation.document].append(translation.text)
        assert [list(one.rows[number]) for one in found] == alone, row
    assert len({one.rows for one in found}) > 1


def test_the_sentence_level_is_the_first_of_every_list(job: TranslationJob) -> None:
    (row,) = rows_of(replace(job.options, search="sentence", beam=5), ["rerank"], ["c-score"])
    found = DocumentTranslators(job, [row]).translate(DOCUMENTS)
    alone = Translator(
        job.models, replace(job.options, search="sentence", beam=5), language=job.languages.source_code
    )
    for document, one in zip(DOCUMENTS, found, strict=True):
        assert [translation.text for translation in alone.translate(document)] == list(one.level)
        assert one.level[-1] == one.last.texts[0]
        assert one.rows[0][-1] in one.last.texts
        assert len(set(one.last.texts)) == len(one.last.log_probs) <= 5


def test_rows(job: TranslationJob) -> None:
    options = job.options
    assert rows_of(options) == [options]
    assert rows_of(options, ["sentence"]) == rows_of(options, objectives=["sentence"]) == []
    assert rows_of(options, ["2-to-2"], ["pmi", "c-score"], [1, 2]) == [replace(options, search="2-to-2")]
    twice = rows_of(options, ["rerank", "rerank"], ["pmi"], [1, 1.0, 3])
    assert [(row.objective, row.temperature, dict(row.weight)) for row in twice] == [
        ("pmi", 1.0, {}),
        ("pmi", 3.0, {}),
    ]
    (weighted,) = rows_of(options, flags={"weight": "0.5"})
    assert weighted.weight == {"lm": 0.5}
    with pytest.raises(CadecError, match="can't maximise pmi"):
        rows_of(options, ["beam"], ["pmi"])


def generative_set(name: str, *documents: tuple[str, ...]) -> GenerativeSet:
    items = tuple(Item(document, "ты", name=str(number)) for number, document in enumerate(documents, 1))
    return GenerativeSet(Path(name), "jsonl", items, tuple(range(len(items))), len(items))


def test_parts_and_workers_change_nothing(job: TranslationJob, monkeypatch: pytest.MonkeyPatch) -> None:
    sets = [generative_set("a", *DOCUMENTS[:3]), generative_set("b", *DOCUMENTS[3:], *DOCUMENTS[:1])]
    rows: list[TranslationOptions] = rows_of(job.options)
    whole = [list(of_set) for _, of_set in translate_sets(sets, job, rows, None, 1)]
    assert [len(of_set) for of_set in whole] == [3, 2]
    assert whole[1][1] == whole[0][0]
    monkeypatch.setattr(run, "TOGETHER", 2)
    for pool in (None, SerialPool()):
        parts = [list(of_set) for _, of_set in translate_sets(sets, job, rows, pool, 1)]
        texts = [[(one.level, one.rows, one.last.texts) for one in of_set] for of_set in parts]
        assert texts == [[(one.level, one.rows, one.last.texts) for one in of_set] for of_set in whole]
