"""One job for every way to translate: what it is made of, and what a worker process makes of it."""

import dataclasses
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.bundle.find import EMBEDDED
from cadec_cli.errors import CadecError, UsageError
from cadec_cli.evaluation.contrastive.scoring import ContrastiveOptions, start_scoring_worker
from cadec_cli.evaluation.contrastive.sets import ContrastiveSet, Group
from cadec_cli.jobs.back_translation import LineTranslation, start_line_worker
from cadec_cli.jobs.by_document import DocumentTask
from cadec_cli.jobs.job import InputOptions, TranslationJob, WorkerInstructions, start_worker
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.jobs.outputs import OutputRequest
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.options import ScoringOptions, TranslationOptions
from cadec_cli.parallel import Task
from cadec_cli.parallel.processes import ProcessPool
from cadec_cli.reports.explained import plain_segment
from cadec_cli.text.documents import Document
from tests.helpers.worker_modules import start_and_list_modules

GROUP = Group("you see the lamp.", (), (), ("vi vidas la lampon.", "vi vidas la arbon."), 0, 1, "1")


@pytest.fixture
def request_(made_up_bundle: Path) -> ModelRequest:
    return ModelRequest(made_up_bundle, compute_type="float32", threads=1)


def test_options_are_the_bundles_unless_given(request_: ModelRequest) -> None:
    job = TranslationJob.open(request_, {"nbest": 7}, below=0.3)
    assert job.options.nbest == 7 and job.options.temperature == job.bundle.defaults.temperature
    assert (job.languages.source_code, job.languages.target_code) == ("en", "eo")
    assert job.judge.below == 0.3 and job.translator.language == "en"
    exactly = TranslationOptions(search="sentence", beam=2)
    assert TranslationJob.open(request_, exactly).options == exactly


def test_what_comes_before_is_sentences_or_a_file(request_: ModelRequest, tmp_path: Path) -> None:
    path = tmp_path / "before.txt"
    path.write_text("vi vidas. vi iras.\n")
    sentences = ("vi vidas.", "vi iras.")
    given = TranslationJob.open(request_, after=sentences)
    read = TranslationJob.open(request_, after=path)
    assert read.sentences_before == given.sentences_before == sentences
    assert len(read.before.sentences) == 2 and read.before.sentences == given.before.sentences
    assert not TranslationJob.open(request_).before.sentences
    with pytest.raises(UsageError, match="reads none"):
        assert TranslationJob.open(request_, {"search": "sentence"}, after=path).before
    path.write_text("\n")
    with pytest.raises(CadecError, match="no sentences to use as context"):
        assert TranslationJob.open(request_, after=path).before


def test_what_comes_before_may_have_its_source(request_: ModelRequest, tmp_path: Path) -> None:
    """Its end is context as ever, and all of it is a memory; a table is a memory only."""
    ours, theirs, table = (tmp_path / name for name in ("a.txt", "b.txt", "m.tsv"))
    ours.write_text("you see. you go.\n")
    theirs.write_text("vi vidas. vi iras.\n")
    table.write_text("you see.\tvi vidas.\n")
    alone = TranslationJob.open(request_, after=theirs)
    both = TranslationJob.open(request_, {"nbest": 7}, after=Path(f"{ours}={theirs}"))
    assert both.sentences_before == alone.sentences_before and both.before.sentences == alone.before.sentences
    assert both.options.memory == (f"{ours}={theirs}",)
    assert (both.options.nbest, both.options.retrieve, alone.options.retrieve) == (7, 2, 0)
    memory = TranslationJob.open(request_, {"memory": [str(table)], "retrieve": 1}, after=table)
    assert not memory.before.sentences and memory.options.memory == (str(table), str(table))
    assert memory.options.retrieve == 1
    before = dict(memory.origin)
    assert before["memory 1"] == before["memory 2"] and "memory 1" not in dict(alone.origin)
    table.write_text("you see.\tvi vidos.\n")
    assert dict(memory.origin) != before


def test_a_bundle_that_only_scores_translates_nothing(request_: ModelRequest, tmp_path: Path) -> None:
    job = TranslationJob.open(request_)
    assert job.bundle.has_translation
    scoring = dataclasses.replace(job, bundle=_ScoringBundle(job.bundle))  # type: ignore[arg-type]
    for start in (scoring.translation_of, scoring.by_document):
        with pytest.raises(CadecError, match="has no S-NMT"):
            start([tmp_path / "in.txt"], InputOptions(), OutputRequest(str(tmp_path / "out.txt")))


def test_chosen_lists_are_judged_without_a_translation_model(request_: ModelRequest) -> None:
    job = TranslationJob.open(request_, {"nbest": 2})
    hypotheses = (Hypothesis("vi vidas 5.", -1.0), Hypothesis("vi iras 5.", -2.0))
    (chosen,) = job.choose([[NBest("you see 5.", hypotheses)]])
    judged = job.judge.of(chosen)
    assert (
        judged is not None and "translator" not in job.__dict__ and "translation" not in job.loaded.__dict__
    )
    assert judged == job.translator.judge(job.below).of(chosen)


class _ScoringBundle:
    """A bundle without its S-NMT."""

    has_translation = False

    def __init__(self, bundle: Any) -> None:
        self.directory = bundle.directory


def test_workers_open_the_same_bundle_or_none(
    request_: ModelRequest, made_up_bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = request_.open_bundle()
    sent = pickle.loads(pickle.dumps(request_.for_workers(bundle, 3)))
    assert (sent.bundle, sent.threads, sent.identity) == (made_up_bundle, 3, bundle.manifest.identity)
    assert sent.open_bundle().manifest.identity == bundle.manifest.identity
    with pytest.raises(CadecError, match="not the same bundle for all workers"):
        dataclasses.replace(sent, identity="another").open_bundle()
    embedded = ModelRequest(EMBEDDED)
    sent = embedded.for_workers(embedded.open_bundle(), 1)
    monkeypatch.setenv("CADEC_BUNDLE", str(made_up_bundle))
    assert sent.bundle is None and sent.open_bundle().directory == EMBEDDED


def _document_task(request: ModelRequest) -> tuple[Callable[..., Any], tuple[Any, ...], Any]:
    instructions = WorkerInstructions(request, TranslationOptions(), (), 0.5, False, plain_segment)
    return start_worker, (instructions,), DocumentTask(Document.of(["you see the lamp."]), first=True)


def _scoring_task(request: ModelRequest) -> tuple[Callable[..., Any], tuple[Any, ...], Any]:
    options = ContrastiveOptions(("c-score",), None, ScoringOptions(), None)
    return start_scoring_worker, (request, options), ContrastiveSet(Path("some.json"), "jsonl", (GROUP,))


def _line_task(request: ModelRequest) -> tuple[Callable[..., Any], tuple[Any, ...], Any]:
    how = LineTranslation(round_trip=False, sample=False, beam=1, seed=1, temperature=1.0)
    return start_line_worker, (request, how), ["you see the lamp."]


@pytest.mark.parametrize("task", [_document_task, _scoring_task, _line_task])
def test_a_worker_process_imports_nothing_of_the_terminal(
    request_: ModelRequest, task: Callable[[ModelRequest], tuple[Any, ...]]
) -> None:
    start, arguments, item = task(request_.for_workers(request_.open_bundle(), 1))
    ((_, modules),) = ProcessPool(1).run(Task(start_and_list_modules, (start, *arguments)), [item])
    assert isinstance(modules, list) and "cadec_cli.bundle.load" in modules
    ours = ("cadec_cli.terminal", "cadec_cli.commands", "cadec_cli.main")
    assert not [name for name in modules if name.startswith(ours) or name in ("rich", "typer")]
