"""Handing out where members have no room any more, as on a cluster whose machines go."""

from typing import Any

import pytest

from cadec_cli.parallel import ATTEMPTS, WorkerLostError
from cadec_cli.parallel.answers import DONE, LOST, READY
from cadec_cli.parallel.processes import WorkItem, dispatch


class Mortal:
    """A member that makes one item, and is lost with the next."""

    def __init__(self) -> None:
        self.work_item: WorkItem[Any] | None = None
        self._says = [(READY, None), (DONE, "made"), (LOST, "its machine is gone")]

    def take(self, item: bytes) -> None:
        """What it is, is all the same."""

    def answer(self) -> tuple[str, Any]:
        return self._says.pop(0)


class OneMachine:
    """Room for one member, and for none once that is gone."""

    kind, hint = "members", "wait for machines"

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
    with pytest.raises(WorkerLostError, match="no room for members"):
        next(done)


def test_where_all_is_done_nobody_needs_room() -> None:
    assert list(dispatch(OneMachine(), "a")) == [(0, "made")]


class Unlucky(Mortal):
    """A member on a machine where nobody can begin."""

    def answer(self) -> tuple[str, Any]:
        return LOST, "its machine is broken"


class TwoMachines(OneMachine):
    """One on which members work, and one on which they never begin."""

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
    """Members who begin, and are lost with whatever they are given."""

    def add(self) -> None:
        member = Mortal()
        del member._says[1]
        self.workers.append(member)

    def remove(self, worker: Any) -> None:
        self.workers.remove(worker)


def test_where_nothing_gets_done_not_every_item_is_tried() -> None:
    lost = []
    with pytest.raises(WorkerLostError, match=f"item {ATTEMPTS} takes members down"):
        for number, error in dispatch(Poisoned(), "abcdefgh"):
            assert isinstance(error, WorkerLostError)
            lost.append(number)
    assert lost == list(range(ATTEMPTS - 1))
