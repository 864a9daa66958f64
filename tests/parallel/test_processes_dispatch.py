"""Which worker gets which item, where workers are slow, get lost, or have no room any more."""

from typing import Any

import pytest

from cadec_cli.parallel import ATTEMPTS, WorkerLostError
from cadec_cli.parallel.processes import DONE, LOST, READY, WorkItem, dispatch


class Mortal:
    """A worker that makes one item, and is lost with the next."""

    def __init__(self) -> None:
        self.work_item: WorkItem[Any] | None = None
        self._says = [(READY, None), (DONE, "made"), (LOST, "its machine is gone")]

    def take(self, item: bytes) -> None:
        """What it is, is all the same."""

    def answer(self) -> tuple[str, Any]:
        return self._says.pop(0)


class OneMachine:
    """Room for one worker, and for none once that is gone."""

    kind, hint = "workers", "wait for machines"

    def __init__(self) -> None:
        self.workers: list[Any] = []
        self._room = 1

    def capacity(self) -> int:
        return self._room

    def add(self) -> None:
        self.workers.append(Mortal())

    def wait_for_answers(self) -> list[Any]:
        return list(self.workers)

    def remove(self, worker: Any) -> None:
        self.workers.remove(worker)
        self._room = 0


def test_what_nobody_has_room_for_is_not_taken_for_done() -> None:
    done = dispatch(OneMachine(), "abc")
    assert next(done) == (0, "made")
    with pytest.raises(WorkerLostError, match="no room for workers"):
        next(done)


def test_where_all_is_done_nobody_needs_room() -> None:
    assert list(dispatch(OneMachine(), "a")) == [(0, "made")]


class Unlucky(Mortal):
    """A worker on a machine where nobody can begin."""

    def answer(self) -> tuple[str, Any]:
        return LOST, "its machine is broken"


class TwoMachines(OneMachine):
    """One on which workers work, and one on which they never begin."""

    def __init__(self) -> None:
        super().__init__()
        self._room = 2
        self.begun = 0

    def add(self) -> None:
        worker = Mortal()
        worker._says[2:2] = [(DONE, "made")] * 6
        self.workers.append(worker if not self.workers else Unlucky())
        self.begun += 1

    def remove(self, worker: Any) -> None:
        self.workers.remove(worker)


def test_a_machine_where_nobody_can_begin_does_not_end_what_others_do() -> None:
    machines = TwoMachines()
    assert sorted(dispatch(machines, "abcdef")) == [(number, "made") for number in range(6)]
    assert machines.begun > 4


class Poisoned(OneMachine):
    """Workers that begin, and are lost with whatever they are given."""

    def add(self) -> None:
        worker = Mortal()
        del worker._says[1]
        self.workers.append(worker)

    def remove(self, worker: Any) -> None:
        self.workers.remove(worker)


def test_where_nothing_gets_done_not_every_item_is_tried() -> None:
    lost = []
    with pytest.raises(WorkerLostError, match=f"item {ATTEMPTS} takes workers down"):
        for number, error in dispatch(Poisoned(), "abcdefgh"):
            assert isinstance(error, WorkerLostError)
            lost.append(number)
    assert lost == list(range(ATTEMPTS - 1))


class Answering:
    """A worker that returns its item."""

    def __init__(self) -> None:
        self.work_item: WorkItem[Any] | None = None
        self.has_started = False

    def take(self, item: bytes) -> None:
        """It has it as its work item."""

    def answer(self) -> tuple[str, Any]:
        if not self.has_started:
            self.has_started = True
            return READY, None
        assert self.work_item is not None
        return DONE, self.work_item.item


class SlowFirst(OneMachine):
    """Three workers; the one with the first item answers only when nobody else has anything to do."""

    def __init__(self) -> None:
        super().__init__()
        self._room = 3

    def add(self) -> None:
        self.workers.append(Answering())

    def wait_for_answers(self) -> list[Any]:
        busy = [worker for worker in self.workers if worker.work_item or not worker.has_started]
        others = [worker for worker in busy if worker.work_item is None or worker.work_item.number]
        return others[:1] or busy

    def remove(self, worker: Any) -> None:
        self.workers.remove(worker)


def test_no_item_is_begun_too_far_ahead_of_one_that_is_waited_for() -> None:
    def numbers(window: int | None) -> list[int]:
        machine = SlowFirst()
        done = [number for number, _ in dispatch(machine, range(9), window)]
        assert not machine.workers
        return done

    assert numbers(None) == [1, 2, 3, 4, 5, 6, 7, 8, 0]
    first = numbers(4)
    assert first[:4] == [1, 2, 3, 0] and sorted(first) == list(range(9))
    assert numbers(1) == list(range(9))
