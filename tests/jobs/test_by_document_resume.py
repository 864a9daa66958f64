"""Documents translated each by itself, taken up again: nothing that was done is lost, or done twice."""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.errors import CadecError, Interrupted
from cadec_cli.jobs.in_step import SegmentRecord
from cadec_cli.parallel import SerialPool, Task
from tests.helpers.damages import DAMAGES
from tests.helpers.job_library import (
    BEFORE,
    KilledError,
    Library,
    Shuffled,
    killed_after,
    libraries,
)


@pytest.fixture
def library(tmp_path: Path) -> Callable[..., Library]:
    return libraries(tmp_path)


@pytest.mark.parametrize("json_lines", [False, True])
def test_what_was_done_before_a_kill_is_not_done_again(
    library: Callable[..., Library], json_lines: bool
) -> None:
    first = library(json_lines=json_lines, before=BEFORE)
    whole = first.run()
    count = len(first.told.documents)
    assert count == 7  # of 8: one is there twice
    for killed in range(1, count):
        again = library(f"out{killed}", json_lines=json_lines, before=BEFORE)
        killed_after(again, killed, Shuffled(2, killed))
        assert len(again.told.documents) == killed
        done = {name: content for name, content in again.written().items() if name != ".journal"}
        assert done.items() <= whole.items()  # whole, or not there
        kept: list[int] = []
        again.inputs.reverse()
        assert again.run(Shuffled(3, killed), resume=True, resumed=kept.append) == whole
        assert len(again.told.documents) == count and kept[0] >= 1


def test_files_may_be_renamed_added_and_left_out_before_it_is_resumed(
    library: Callable[..., Library], tmp_path: Path
) -> None:
    whole = library().run()
    again = library("later")
    killed_after(again, 5)
    done = len(again.told.documents)
    again.inputs[0] = again.inputs[0].rename(tmp_path / "in" / "renamed.txt")
    (tmp_path / "in" / "new.txt").write_text("you see\nyou go\n")
    again.inputs = [tmp_path / "in" / "new.txt", *again.inputs]
    left_out = again.inputs.pop()
    assert left_out.name == "empty.txt"
    found = again.run(resume=True)
    assert found["renamed.txt"] == whole["a.txt"] and "empty.txt" not in found
    assert found["c.txt"] == whole["c.txt"] and ".journal" not in found
    assert len(again.told.documents) - done == 3  # the two that were missing, and the new one


def test_what_is_written_already_is_left_alone_and_what_is_not_ours_too(
    library: Callable[..., Library],
) -> None:
    whole = library().run()
    again = library("later")
    killed_after(again, 6)
    ours = [name for name in again.written() if name != ".journal"]
    assert 0 < len(ours) < len(whole)
    changed, *_ = ours
    times = {name: (again.target / name).stat().st_mtime_ns for name in ours}
    journal = (again.target / ".journal").read_bytes()
    (again.target / changed).write_text("a person has corrected this\n")
    with pytest.raises(CadecError, match=f"{changed}: exists already") as refused:
        again.run(resume=True)
    assert "force" in refused.value.hint and (again.target / ".journal").read_bytes() == journal
    assert (again.target / changed).read_text() == "a person has corrected this\n"
    (again.target / changed).unlink()
    assert again.run(resume=True) == whole
    for name in ours[1:]:
        assert (again.target / name).stat().st_mtime_ns == times[name]


def test_an_interruption_says_how_many_sentences_are_done(library: Callable[..., Library]) -> None:
    work = library()

    def interrupted(sentences: Iterable[Any], total: int) -> Iterator[Any]:
        for number, _ in enumerate(sentences):
            if number == 20:
                raise KeyboardInterrupt
            yield

    total = work.bulk().survey().total
    with pytest.raises(Interrupted, match=rf"\d+ of {total} sentences are done; .* resume=True continues"):
        work.run(count=interrupted)
    with pytest.raises(CadecError, match="there is an unfinished translation"):
        work.run()
    counted: list[int] = []
    assert work.run(resume=True, resumed=counted.append) == library("other").run()
    assert 20 <= counted[0] < total


def test_nothing_is_left_where_nothing_was_done(library: Callable[..., Library]) -> None:
    work = library()
    killed_after(work, 0)
    assert work.written() == {}


def test_damage_costs_the_documents_that_it_is_in(library: Callable[..., Library], tmp_path: Path) -> None:
    whole = library(json_lines=True).run()
    rng = random.Random(11)
    begun = library("later", json_lines=True)
    killed_after(begun, 6)
    journal = (begun.target / ".journal").read_bytes()
    header = len(journal.splitlines(keepends=True)[0])
    refused = 0
    for number in range(8 * len(DAMAGES)):
        damage = DAMAGES[number % len(DAMAGES)]
        found = damage(rng, journal)
        again = library(f"damaged{number}", json_lines=True)
        again.target.mkdir()
        (again.target / ".journal").write_bytes(found)
        try:
            assert again.run(resume=True) == whole, damage.__name__
        except CadecError as error:
            assert found[:header] != journal[:header] and "damaged" in error.message, damage.__name__
            refused += 1
    assert refused < 8
    lines = journal.splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if b'"document"' in line)
    lines[place] = lines[place].replace(b"lampa", b"lampo", 1).replace(b"tu", b"ta", 1)
    again = library("one", json_lines=True)
    told: list[str] = []
    again.target.mkdir()
    (again.target / ".journal").write_bytes(b"".join(lines))
    assert again.run(resume=True, damaged=told.append) == whole
    assert len(again.told.documents) == 2  # the one that was damaged, and the one that was never done
    assert told == [
        f"1 damaged record in {again.target / '.journal'}: at most as many documents are translated again"
    ]


def test_a_file_is_known_as_ours_though_the_line_that_says_so_is_damaged(
    library: Callable[..., Library],
) -> None:
    whole = library().run()
    again = library("later")
    killed_after(again, 6)
    journal = again.target / ".journal"
    assert b'"written"' in journal.read_bytes()
    journal.write_bytes(journal.read_bytes().replace(b'"written"', b'"wretten"'))
    assert again.run(resume=True) == whole


def test_a_journal_that_changes_under_our_hands_is_no_output(library: Callable[..., Library]) -> None:
    work = library()

    def scribbled(sentences: Iterable[Any], total: int) -> Iterator[Any]:
        for number, one in enumerate(sentences):
            if number == 14:  # of a document whose file waits for others
                journal = work.target / ".journal"
                journal.write_bytes(journal.read_bytes().replace(b"lampa", b"lampo"))
            yield one

    with pytest.raises(CadecError, match="was changed"):
        work.run(count=scribbled)
    assert work.run(resume=True) == library("other").run()


def test_another_way_of_translating_is_another_translation(library: Callable[..., Library]) -> None:
    killed_after(library(), 3)
    with pytest.raises(CadecError, match="differs in: json"):
        library(json_lines=True).run(resume=True)


def test_all_done_and_only_the_outputs_gone_nobody_needs_to_begin(library: Callable[..., Library]) -> None:
    work = library(report=True)
    bulk = work.bulk()

    def killed(made: Iterable[SegmentRecord]) -> None:
        raise KilledError

    with pytest.raises(KilledError):
        replace(bulk, side_output=killed).run(SerialPool(), bulk.survey(), resume=False)
    whole = work.written()
    assert whole.pop(".journal") and len(whole) == 4
    (work.target / "b.txt").unlink()

    def nobody(*arguments: Any) -> Any:
        raise AssertionError("there is nothing to do")

    replace(bulk, task=Task(nobody)).run(SerialPool(), bulk.survey(), resume=True)
    assert work.written() == whole and len(work.reported) == bulk.survey().total
