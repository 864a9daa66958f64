"""What every pool does alike, and what only one of several workers can be tested on: their deaths."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cadec_cli.errors import CadecError, UsageError
from cadec_cli.parallel import ATTEMPTS, SerialPool, Task, WorkerLostError, WorkerPool, in_order
from cadec_cli.parallel.processes import ProcessPool
from cadec_cli.parallel.ray import RayPool
from tests.helpers.marked_processes import PATIENCE, living, wait_until
from tests.helpers.pool_tasks import NEVER, deadly, powers, raising, stillborn, stubborn, told

RAY = pytest.param("ray", marks=pytest.mark.slow)


def made(name: str, request: pytest.FixtureRequest) -> WorkerPool:
    if name == "ray":
        return RayPool(2, request.getfixturevalue("ray_cluster").address)
    return ProcessPool(2) if name == "processes" else SerialPool()


@pytest.fixture(params=["alone", "processes", RAY])
def pool(request: pytest.FixtureRequest) -> WorkerPool:
    return made(request.param, request)


@pytest.fixture(params=["processes", RAY])
def several(request: pytest.FixtureRequest) -> WorkerPool:
    return made(request.param, request)


def test_every_item_is_done_once_and_numbered(pool: WorkerPool) -> None:
    done = list(pool.run(Task(powers, (2,)), iter([3, 1, 2, 5, 4])))
    assert sorted(done) == [(0, 9), (1, 1), (2, 4), (3, 25), (4, 16)]


def test_without_items_there_is_nothing_to_do(pool: WorkerPool) -> None:
    assert list(pool.run(Task(powers, (2,)), [])) == []


def test_items_are_taken_as_they_are_needed(pool: WorkerPool) -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    running = pool.run(Task(powers, (1,)), items())
    for done in range(1, 6):
        next(running)
        assert done <= len(taken) <= done + 2 * pool.size
    assert taken == list(range(len(taken)))


def test_an_error_of_the_task_is_raised_as_it_is(pool: WorkerPool) -> None:
    with pytest.raises(CadecError) as found:
        list(pool.run(Task(powers, (1,)), [1, -1]))
    assert (found.value.message, found.value.hint) == ("-1 is negative", "leave it out")


def test_an_error_of_the_beginning_too(pool: WorkerPool) -> None:
    with pytest.raises(UsageError) as found:
        list(pool.run(Task(powers, (-1,)), [1, 2, 3]))
    assert (found.value.message, found.value.hint) == ("-1 is no exponent", "take another")
    with pytest.raises(TypeError, match="positional argument"):
        list(pool.run(Task(powers), [1, 2, 3]))


@pytest.mark.parametrize("error", [EOFError("of the task"), BrokenPipeError(32, "its pipe", "name")])
def test_errors_that_a_pipe_could_raise_are_told_apart(pool: WorkerPool, error: Exception) -> None:
    with pytest.raises(type(error)) as found:
        list(pool.run(Task(raising, (error,)), [1]))
    assert str(found.value) == str(error)


def test_an_error_that_cannot_travel_is_told(several: WorkerPool) -> None:
    with pytest.raises(RuntimeError, match=r"^StubbornError: no way$"):
        list(several.run(Task(stubborn), [1]))


def test_an_error_of_the_items_is_raised_as_it_is(pool: WorkerPool) -> None:
    def items() -> Iterator[int]:
        yield 1
        raise UsageError("no more")

    with pytest.raises(UsageError, match="no more"):
        list(pool.run(Task(powers, (1,)), items()))


def test_what_a_lost_worker_had_in_hand_is_begun_again(several: WorkerPool, tmp_path: Path) -> None:
    expected = dict(SerialPool().run(Task(deadly, (tmp_path, 3, 0)), range(8)))
    done = list(several.run(Task(deadly, (tmp_path, 3, ATTEMPTS - 1)), range(8)))
    assert len(done) == len(expected) and dict(done) == expected
    assert len(list(tmp_path.iterdir())) == ATTEMPTS - 1


def test_an_item_that_takes_all_workers_down_is_named_and_the_rest_is_done(
    several: WorkerPool, tmp_path: Path
) -> None:
    done = dict(several.run(Task(deadly, (tmp_path, 3, ATTEMPTS)), range(8)))
    assert sorted(done) == list(range(8))
    found = [one for one in done.values() if isinstance(one, WorkerLostError)]
    assert len(found) == 1 and done[3] is found[0]
    assert re.search(r"item 4 takes .* down", found[0].message)
    assert found[0].number == 3
    assert "memory" in found[0].hint


def test_what_is_wanted_in_order_ends_with_an_item_that_is_lost(several: WorkerPool, tmp_path: Path) -> None:
    with pytest.raises(WorkerLostError, match=r"item 4 takes .* down"):
        list(in_order(several.run(Task(deadly, (tmp_path, 3, ATTEMPTS)), range(8))))


def test_workers_that_cannot_begin_are_not_replaced_for_ever(several: WorkerPool, tmp_path: Path) -> None:
    with pytest.raises(WorkerLostError):
        list(several.run(Task(stillborn, (tmp_path,)), range(8)))
    assert len(list(tmp_path.iterdir())) <= ATTEMPTS * several.size


def test_whoever_stops_listening_ends_the_work(several: WorkerPool, tmp_path: Path) -> None:
    running = several.run(Task(told, (tmp_path,)), [0.0, NEVER, NEVER, NEVER])
    assert next(running) == (0, 0.0)
    assert living(tmp_path)
    running.close()  # type: ignore[attr-defined]
    assert wait_until(lambda: not living(tmp_path))


def test_there_are_no_more_processes_than_items(tmp_path: Path) -> None:
    assert list(ProcessPool(8).run(Task(told, (tmp_path,)), [0.0])) == [(0, 0.0)]
    assert len(list(tmp_path.iterdir())) == 1
    assert not living(tmp_path)


PARENT = """
import sys
from pathlib import Path
from tests.helpers.pool_tasks import NEVER, told
from cadec_cli.parallel import Task
from cadec_cli.parallel.ray import RayPool
from cadec_cli.parallel.processes import ProcessPool

if __name__ == "__main__":
    list(ProcessPool(2).run(Task(told, (Path(sys.argv[1]),)), [NEVER] * 3))
"""


@pytest.mark.parametrize(("number", "group"), [(signal.SIGINT, True), (signal.SIGKILL, False)])
def test_workers_end_with_their_parent(tmp_path: Path, number: signal.Signals, group: bool) -> None:
    script, marks = tmp_path / "parent.py", tmp_path / "marks"
    script.write_text(PARENT)
    marks.mkdir()
    parent = subprocess.Popen(
        [sys.executable, str(script), str(marks)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert wait_until(lambda: len(living(marks)) == 2), "both sleep"
        (os.killpg if group else os.kill)(parent.pid, number)  # a terminal tells the whole group
        _, told_of_it = parent.communicate(timeout=PATIENCE)
        assert wait_until(lambda: not living(marks))
        assert parent.returncode == -number
        assert told_of_it.count("Traceback") == (number == signal.SIGINT), "no worker says a word"
    finally:
        parent.kill()
