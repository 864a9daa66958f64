"""A crew of one: the least that every crew does."""

from collections.abc import Callable, Iterator

import pytest

from cadec_cli.crews import Alone, Task
from cadec_cli.errors import CadecError


def powers(exponent: int) -> Callable[[int], int]:
    def power(base: int) -> int:
        if base < 0:
            raise CadecError(f"{base} is negative", "leave it out")
        return int(base**exponent)

    return power


def test_every_item_is_done_and_numbered() -> None:
    assert dict(Alone().run(Task(powers, (2,)), [3, 1, 2])) == {0: 9, 1: 1, 2: 4}


def test_items_are_taken_as_they_are_needed() -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    running = Alone().run(Task(powers, (1,)), items())
    assert next(running) == (0, 0)
    assert taken == [0]


def test_an_error_of_the_task_is_raised_as_it_is() -> None:
    with pytest.raises(CadecError) as found:
        list(Alone().run(Task(powers, (1,)), [1, -1]))
    assert (found.value.message, found.value.hint) == ("-1 is negative", "leave it out")
