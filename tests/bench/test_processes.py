"""What the benchmarks rest on: loops that end, CPU time and memory that are found, code that is run."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.processes import (
    Descendants,
    Spent,
    busy_loops,
    environment,
    medians,
    running,
    spent,
    spent_at_once,
    status,
)

SPIN = "import time\nwhile time.process_time() < {}: pass"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def alive(process: int) -> bool:
    """Whether it can still run: an orphan that has ended may wait for somebody to ask."""
    return status(process).get("State", "Z")[0] != "Z"


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_busy_loops_run_as_long_as_they_are_wanted_and_end_whatever_happens() -> None:
    with busy_loops(2) as loops:
        assert len(set(loops)) == 2 and all(map(alive, loops))
    assert not any(map(alive, loops))
    with pytest.raises(KeyboardInterrupt), busy_loops(1) as loops:
        raise KeyboardInterrupt
    assert not any(map(alive, loops))


def test_busy_loops_end_with_whoever_started_them() -> None:
    """Even if that was killed and could end nothing: a loop sees that its parent has gone."""
    code = (
        "import os, signal; from bench.processes import busy_loops\n"
        "with busy_loops(1) as loops:\n"
        "    os.write(1, str(loops[0]).encode())\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run(python(code), env=environment(), stdout=subprocess.PIPE)
    assert killed.returncode == -signal.SIGKILL
    wait_until(lambda: not alive(int(killed.stdout)))


def test_cpu_time_is_that_of_a_command_and_of_what_it_waited_for() -> None:
    below = f"import subprocess; subprocess.run({python(SPIN.format(0.2))})"
    taken = spent(python(below))
    assert taken.cpu >= 0.2
    assert spent(python("import time; time.sleep(0.1)")).wall >= 0.1
    assert spent_at_once([python(SPIN.format(0.1)), python(SPIN.format(0.1))]).cpu >= 0.2


def test_a_command_that_fails_fails_the_benchmark_in_its_words() -> None:
    with pytest.raises(RuntimeError, match=r"ended with 3:\nbroken"):
        spent(python("import sys; sys.stderr.write('broken'); sys.exit(3)"))


def test_a_command_does_not_outlive_whoever_waits_for_it() -> None:
    with pytest.raises(KeyboardInterrupt), running(python("import time; time.sleep(60)")) as started:
        raise KeyboardInterrupt
    assert not alive(started.process.pid)


def test_a_command_runs_the_code_it_is_given_and_is_told_nothing_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    monkeypatch.setenv("GOMP_SPINCOUNT", "1")
    (tmp_path / "cadec_cli").mkdir()
    (tmp_path / "cadec_cli" / "__init__.py").touch()
    told = "import os; assert not [name for name in os.environ if 'OMP_' in name]\nimport cadec_cli"
    spent(python(f"{told}; assert os.environ['OMP_WAIT_POLICY'] == 'PASSIVE'"))  # this checkout says so
    spent(python(f"{told}; assert cadec_cli.__file__.startswith({str(tmp_path)!r})"), tmp_path)


def test_memory_is_found_of_children_and_of_their_children(tmp_path: Path) -> None:
    found = tmp_path / "found"
    line = python(
        "import os, time; held = b'x' * (64 << 20)\n"
        f"while not os.path.exists({str(found)!r}): time.sleep(0.01)"
    )
    for _ in range(2):
        line = python(f"import subprocess; subprocess.run({line})")
    with (
        running(line) as started,
        Descendants(started.process.pid, 0.05) as below,
    ):
        wait_until(lambda: any(memory.own > 64 for memory in below.largest(1)))
        found.touch()
        started.ended()
    first, second = below.largest(2)
    assert first.own > 64 > second.peak > 1 and first.peak >= first.own


def test_jobs_take_turns_and_the_first_round_does_not_count() -> None:
    order: list[str] = []
    walls = {"a": iter([99.0, 1.0, 3.0, 2.0]), "b": iter([99.0, 5.0, 5.0, 6.0])}

    def job(name: str) -> Spent:
        order.append(name)
        return Spent(1.0, next(walls[name]))

    taken = medians({"a": lambda: job("a"), "b": lambda: job("b")}, rounds=3)
    assert taken == {"a": Spent(1.0, 2.0), "b": Spent(1.0, 5.0)}
    assert order == ["a", "b"] * 4
