"""All rows at once are what each translates alone, in any number of parts and workers."""

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.decoding.translator import Listed, Translator
from cadec_cli.errors import CadecError, Interrupted
from cadec_cli.evaluation.generative import run
from cadec_cli.evaluation.generative.run import (
    Documents,
    DocumentTranslators,
    GenerativeWork,
    Translated,
    list_sizes,
    rows_of,
)
from cadec_cli.evaluation.generative.sets import GenerativeSet, Item
from cadec_cli.fs.paths import state_directory
from cadec_cli.jobs.job import TranslationJob
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.method.hypotheses import NBest
from cadec_cli.parallel import SerialPool

DOCUMENTS = [
    ("Good morning, sir.", "- May I help you?", "<i>Do you know the way?</i>"),
    ("Hey, darling.", "I missed you.", "Visit https://example.org at 12:30!", "Where were you?"),
    ("...", "DO YOU LOVE ME?"),
    ("Did you see him?",),
]
pytestmark = pytest.mark.usefixtures("own_state")
SEARCHES, OBJECTIVES = ("rerank", "lattice", "beam"), ("c-score", "conditional-shallow-fusion")


@pytest.fixture(scope="module")
def job() -> TranslationJob:
    """The embedded bundle; float32, so that batches of other sizes give the same."""
    return TranslationJob.open(ModelRequest(compute_type="float32", threads=1), {"nbest": 5, "context": 2})


def test_all_rows_at_once_are_each_alone(job: TranslationJob) -> None:
    rows = rows_of(job.options, SEARCHES, OBJECTIVES, (1.0, 4.0))
    rows += rows_of(job.options, ["rerank"], ["pmi", "shallow-fusion"])
    rows += rows_of(job.options, ["rerank", "lattice"], weights=["0.5", "2"])
    rows += rows_of(job.options, ["rerank", "lattice"], weights=["address=0.5"])
    assert len(rows) == 3 * 2 * 2 + 2 + 4 + 2
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
    weighted = rows_of(options, weights=["0.5", "lm=2"])
    assert [row.weight for row in weighted] == [{"lm": 0.5}, {"lm": 2.0}]
    voting = rows_of(options, objectives=["sentence", "c-score"], weights=["address=0", "address=2"])
    assert [(row.objective, dict(row.weight)) for row in voting] == [
        ("sentence", {"address": 2.0}),
        ("c-score", {"address": 0.0}),
        ("c-score", {"address": 2.0}),
    ]
    assert rows_of(voting[0]) == [voting[0]]
    sizes = rows_of(options, ["rerank", "beam"], sizes=[3, 7])
    assert [(row.search, row.nbest) for row in sizes] == [("rerank", 3), ("rerank", 7), ("beam", 5)]
    assert list_sizes(options, sizes) == [3, 7]
    assert list_sizes(options, []) == [5] == list_sizes(options, rows_of(options, ["beam"], sizes=[3]))
    with pytest.raises(CadecError, match="can't maximise pmi"):
        rows_of(options, ["beam"], ["pmi"])


def generative_set(name: str, *documents: tuple[str, ...]) -> GenerativeSet:
    items = tuple(Item(document, "ты", name=str(number)) for number, document in enumerate(documents, 1))
    return GenerativeSet(Path(name), "jsonl", items, tuple(range(len(items))), len(items))


def test_smaller_lists_are_the_beginnings_of_larger_ones(
    job: TranslationJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the lists of the largest size had been given to `rerank`, cut; they are made once."""
    rows = rows_of(job.options, ["rerank", "lattice"], ["pmi"], sizes=[2, 5])
    made: list[int] = []
    nbest = job.models.translation.nbest

    def count(sentences: Sequence[str], size: int) -> list[NBest]:
        made.append(size)
        return nbest(sentences, size)

    monkeypatch.setattr(job.models.translation, "nbest", count)
    found = DocumentTranslators(job, rows).translate(DOCUMENTS)
    calls = len(made)
    DocumentTranslators(job, rows[-1:]).translate(DOCUMENTS)
    assert made == [5] * 2 * calls
    documents = [document for document in DOCUMENTS if "https" not in " ".join(document)]
    lists = [[nbest([text], 5)[0] for text in document] for document in documents[2:]]
    for number, row in enumerate(rows):
        chosen = dataclasses.replace(job, options=row).choose(lists)
        assert [one.text for one in chosen] == [
            one.rows[number][0] for one, document in zip(found, DOCUMENTS, strict=True) if len(document) == 1
        ]
    small, large = ([one.rows[rows.index(row)] for one in found] for row in (rows[0], rows[1]))
    assert rows[0].nbest == 2 and rows[1].nbest == 5 and small != large
    for one, of_small in zip(found, small, strict=True):
        ranks = dict(zip(one.last.texts, one.last.ranks, strict=True))
        assert ranks[of_small[-1]] < 2


def texts_of(work: GenerativeWork, *arguments: Any) -> list[list[Any]]:
    """What is said of every item, set by set."""
    return [
        [(one.level, one.rows, one.last.texts) for one in of_set] for _, of_set in work.translate(*arguments)
    ]


@pytest.fixture
def work(job: TranslationJob, monkeypatch: pytest.MonkeyPatch) -> GenerativeWork:
    monkeypatch.setattr(run, "TOGETHER", 2)
    sets = [generative_set("a", *DOCUMENTS[:3]), generative_set("b", *DOCUMENTS[3:], *DOCUMENTS[:1])]
    return GenerativeWork(sets, job, rows_of(job.options))


def test_parts_and_workers_change_nothing(work: GenerativeWork, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = texts_of(work)
    assert texts_of(work, SerialPool()) == parts
    monkeypatch.setattr(run, "TOGETHER", 8)
    whole = texts_of(dataclasses.replace(work))
    assert [len(of_set) for of_set in whole] == [3, 2]
    assert whole[1][1] == whole[0][0]
    assert whole == parts


@pytest.mark.parametrize("pool", [None, SerialPool()])
@pytest.mark.parametrize("done_before", [1, 2, 3])
def test_an_interrupted_evaluation_goes_on_where_it_was(
    work: GenerativeWork, pool: SerialPool | None, done_before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = texts_of(work)
    with pytest.raises(Interrupted, match=r"of 5 items are done; .*continues"), work.log() as done:
        assert done is not None and work.items_in(done) == 0
        items = itertools.chain.from_iterable(of_set for _, of_set in work.translate(pool, 1, done))
        for _ in itertools.islice(items, 2 * done_before - 1):
            pass
        raise KeyboardInterrupt
    with pytest.raises(CadecError, match="there is an unfinished evaluation"), work.log():
        pass
    translated: list[int] = []
    whole = DocumentTranslators.translate

    def count(translators: DocumentTranslators, documents: Documents) -> list[Translated]:
        translated.append(len(documents))
        return whole(translators, documents)

    monkeypatch.setattr(DocumentTranslators, "translate", count)
    with work.log(resume=True) as done:
        assert done is not None
        assert work.items_in(done) == [2, 3, 5][done_before - 1]
        assert texts_of(work, pool, 1, done) == wanted
        assert sum(translated) == [3, 2, 0][done_before - 1]
    with work.log() as done:
        assert done is not None and work.items_in(done) == 0


def test_what_was_kept_belongs_to_the_same_work(work: GenerativeWork) -> None:
    """Other rows, sets or orders have logs of their own; one that ends well or does nothing leaves none."""
    logs = state_directory() / "evaluations"
    with work.log() as done:
        assert done is not None
        texts_of(work, None, 1, done)
    assert not list(logs.iterdir())
    with pytest.raises(CadecError, match="nothing is done"), work.log():
        raise CadecError("nothing is done")
    assert not list(logs.iterdir())
    with pytest.raises(Interrupted), work.log() as done:
        next(next(work.translate(None, 1, done))[1])
        raise KeyboardInterrupt
    others = [
        dataclasses.replace(work, rows=rows_of(work.job.options, temperatures=[2])),
        dataclasses.replace(work, sets=work.sets[::-1]),
        dataclasses.replace(work, job=dataclasses.replace(work.job, request=ModelRequest(threads=1))),
    ]
    for other in others:
        with other.log(resume=True) as done:
            assert done is not None and other.items_in(done) == 0
    assert len(list(logs.iterdir())) == 1
    with work.log(start_over=True) as done:
        assert done is not None and work.items_in(done) == 0


def test_damaged_parts_are_translated_again(work: GenerativeWork) -> None:
    wanted = texts_of(work)
    with pytest.raises(Interrupted), work.log() as done:
        texts_of(work, None, 1, done)
        raise KeyboardInterrupt
    (path,) = (state_directory() / "evaluations").iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"x" + lines[1], *lines[2:-1], lines[-1][:-9]]))
    warned: list[str] = []
    with work.log(resume=True, warn=warned.append) as done:
        assert done is not None and work.items_in(done) == 1
        assert texts_of(work, None, 1, done) == wanted
    assert "at most as many parts are translated again" in warned[0]


def test_where_nothing_can_be_written_there_is_no_log(
    work: GenerativeWork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    warned: list[str] = []
    with work.log(warn=warned.append) as done:
        assert done is None
        assert len(texts_of(work, None, 1, done)) == 2
    assert "could not be resumed" in warned[0]


def test_only_the_newest_logs_are_kept(work: GenerativeWork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MOST_LOGS", 2)
    for temperature in (1, 2, 3, 4):
        other = dataclasses.replace(work, rows=rows_of(work.job.options, temperatures=[temperature]))
        with pytest.raises(Interrupted), other.log() as done:
            next(next(other.translate(None, 1, done))[1])
            raise KeyboardInterrupt
        assert len(list((state_directory() / "evaluations").iterdir())) <= 2


def test_scores_that_are_no_numbers(job: TranslationJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged model stops the evaluation instead of choosing anything."""
    translators = DocumentTranslators(job, rows_of(job.options, ["rerank", "lattice"]))
    lists = translators._lists.lists

    def damaged(sentences: Sequence[str]) -> list[list[Listed]]:
        return [
            [
                dataclasses.replace(
                    piece,
                    nbest=dataclasses.replace(
                        piece.nbest,
                        hypotheses=tuple(
                            dataclasses.replace(one, log_prob=float("nan")) for one in piece.nbest.hypotheses
                        ),
                    ),
                )
                for piece in pieces
            ]
            for pieces in lists(sentences)
        ]

    monkeypatch.setattr(translators._lists, "lists", damaged)
    with pytest.raises(CadecError, match="a score of c-score is not a number"):
        translators.translate(DOCUMENTS)
