"""Documents translated each by itself: the same files come out, whoever works, in whatever order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.decoding.confidence import FlaggedSentence
from cadec_cli.decoding.preceding_context import context_of
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.errors import CadecError
from cadec_cli.jobs.in_step import FileTranslation
from cadec_cli.jobs.outputs import OutputPlan
from cadec_cli.method.options import TranslationOptions
from cadec_cli.parallel import Task, WorkerLostError
from cadec_cli.text.formats import read_text_file
from tests.helpers.fakes import TableLM, TableNMT
from tests.helpers.job_library import BEFORE, BELOW, CALLS, TABLE, Library, Shuffled, libraries


@pytest.fixture
def library(tmp_path: Path) -> Callable[..., Library]:
    return libraries(tmp_path)


@pytest.mark.parametrize("json_lines", [False, True])
@pytest.mark.parametrize("before", [(), BEFORE])
def test_whoever_works_in_whatever_order_the_files_are_the_same(
    library: Callable[..., Library], json_lines: bool, before: tuple[str, ...]
) -> None:
    how = {"json_lines": json_lines, "before": before, "report": True}
    first = library(**how)
    whole = first.run()
    assert sorted(whole) == ["a.txt", "b.txt", "c.txt", "empty.txt"]
    segments = [(one.file, one.document, one.sentence, one.place, one.made) for one in first.reported]
    for number, crew in enumerate([Shuffled(2), Shuffled(3, 1), Shuffled(9, 2)]):
        other = library(f"again{number}", **how)
        other.inputs.reverse()
        assert other.run(crew) == whole
        other.inputs.reverse()
        assert other.sentences == first.sentences  # what is there twice is done once
        assert sorted(
            (3 - one.file, one.document, one.sentence, one.place, one.made) for one in other.reported
        ) == sorted(segments)
    for path in first.inputs:  # each by its own command
        alone = library("alone", **how)
        alone.inputs = [path]
        alone.run()
    assert library("alone").written() == whole


def test_a_file_alone_is_what_translating_it_in_step_makes_of_it(library: Callable[..., Library]) -> None:
    """The tables of these models know nothing of batches: documents in step are documents by themselves."""
    bulk = library(before=BEFORE, json_lines=True)
    whole = bulk.run()
    models, options = ModelSet(TableNMT(TABLE), TableLM(CALLS)), TranslationOptions(context=3)
    for path in bulk.inputs:
        work = FileTranslation(
            Translator(models, options),
            [read_text_file(path, language="en")],
            plan=OutputPlan((bulk.target / "step",), bulk.target / "journal"),
            below=BELOW,
            before=context_of(models, options, BEFORE),
        )
        in_step = work.to_files(json_lines=True, resume=False)
        assert (bulk.target / "step").read_bytes() == whole[path.name]
        found: dict[int, Sequence[FlaggedSentence]] = {}
        alone = library("one", before=BEFORE, json_lines=True, replace=True)
        alone.inputs = [path]
        alone.run(doubted=found.__setitem__)
        assert found[0] == in_step
    assert any(b'"flags"' in content for content in whole.values())


@dataclass(frozen=True)
class Idle:
    """A crew that takes everything, and does nothing; or is lost with the third document."""

    lost: bool = False
    size = 1

    def run(self, task: Task[Any, Any], items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        for number, _ in enumerate(items):
            if self.lost and number == 2:
                raise WorkerLostError("item 3 takes members down", "use others", number)
        yield from ()


def test_documents_that_a_pool_left_undone_are_an_error(library: Callable[..., Library]) -> None:
    work = library()
    with pytest.raises(RuntimeError, match="left documents undone"):
        work.run(Idle())
    assert not work.written().keys() - {"empty.txt", ".journal"}


def test_a_document_that_takes_workers_down_is_named(library: Callable[..., Library]) -> None:
    with pytest.raises(CadecError, match=r"document \d of the input of .*\.txt: item 3 takes members down"):
        library().run(Idle(lost=True))


@dataclass(frozen=True)
class Losing:
    """A crew that does all but the third document, which takes its members down."""

    size = 1

    def run(self, task: Task[Any, Any], items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        work = task.begin(*task.arguments)
        for number, item in enumerate(items):
            lost = WorkerLostError("item 3 takes members down", "use others", number)
            yield number, lost if number == 2 else work(item)


def test_all_other_documents_are_done_beside_one_that_takes_workers_down(
    library: Callable[..., Library],
) -> None:
    whole = library("whole").run()
    work = library()
    with pytest.raises(
        CadecError, match=r"document \d of the input of .*: item 3 takes members down"
    ) as found:
        work.run(Losing())
    assert "everything else is done" in found.value.hint
    assert len(work.told.documents) == 6
    assert whole.keys() - work.written().keys() == {"a.txt", "c.txt"}  # both have it
    assert work.run(resume=True) == whole and len(work.told.documents) == 7


def test_an_input_that_changes_meanwhile_is_one_clear_error(library: Callable[..., Library]) -> None:
    work = library(report=True)
    file = work.inputs[1]
    before = file.read_bytes()

    def changing(sentences: Iterable[Any], total: int) -> Iterator[Any]:
        yield from sentences
        file.write_bytes(b"One more.\n\n" + before)

    with pytest.raises(CadecError, match=rf"the input of .*{file.name} has changed in the meantime"):
        work.run(count=changing)
    file.write_bytes(before)
    whole = library("other").run()
    assert work.run(resume=True) == whole and len(work.reported) > 0
