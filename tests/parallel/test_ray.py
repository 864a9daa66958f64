"""What only Ray does: finding the cluster, room on its machines, versions, an end without traces."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.errors import CadecError, UsageError
from cadec_cli.parallel import Task, ray
from cadec_cli.parallel.ray import RayPool
from tests.helpers.marked_processes import PATIENCE, living, wait_until
from tests.helpers.pool_tasks import powers, told
from tests.helpers.ray_cluster import RayCluster

SQUARES: Task[int, Any] = Task(powers, (2,))


def refused(pool: RayPool) -> CadecError:
    with pytest.raises(CadecError) as found:
        list(pool.run(SQUARES, [1]))
    return found.value


@pytest.mark.parametrize("address", ["head", "head:", "head:123456", ":6379", "http://head:80/x", ""])
def test_what_is_no_address_is_a_usage_error(address: str) -> None:
    pytest.importorskip("ray")
    assert isinstance(refused(RayPool(1, address)), UsageError)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Where somebody listens who never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def web_port() -> Iterator[int]:
    """Where somebody answers who is not Ray."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        yield server.getsockname()[1]


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_where_nobody_answers_is_one_error(
    scheme: str, silent_port: int, web_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    monkeypatch.setattr(ray, "_ANSWERING", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    for port in (closed, silent_port, web_port):
        error = refused(RayPool(1, f"{scheme}127.0.0.1:{port}"))
        assert error.message.startswith(f"no Ray cluster can be reached at {scheme}127.0.0.1:{port}: ")
        assert not isinstance(error, UsageError)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert refused(RayPool(1, None)).hint == "pip install 'cadec[ray]'"


@pytest.mark.slow
def test_a_worker_that_has_room_nowhere_is_one_error(ray_cluster: RayCluster) -> None:
    assert (
        "(2 CPU)" in refused(RayPool(0, ray_cluster.address, cores=2)).message
    )  # two machines have one each
    assert "(1 CPU, 1 GPU)" in refused(RayPool(1, ray_cluster.address, gpus=1)).message


@pytest.mark.slow
def test_another_version_of_cadec_is_one_error(
    ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "__version__", "0.0.1")
    assert refused(RayPool(1, ray_cluster.address)).message.endswith(", but this one has 0.0.1")


@pytest.mark.slow
def test_as_many_work_as_have_room_if_none_are_asked_for(ray_cluster: RayCluster, tmp_path: Path) -> None:
    done = list(RayPool(0, ray_cluster.address).run(Task(told, (tmp_path,)), [0.2] * 8))
    assert sorted(number for number, _ in done) == list(range(8))
    assert len(list(tmp_path.iterdir())) == 2


LOCAL = """
import signal, sys
from tests.helpers.pool_tasks import powers
from cadec_cli.parallel import Task
from cadec_cli.parallel.ray import RayPool

before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
print(sorted(RayPool(2, None).run(Task(powers, (2,)), range(4))))
assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
"""


@pytest.mark.slow
def test_a_cluster_that_is_started_here_is_quiet_and_leaves_nothing() -> None:
    pytest.importorskip("ray")
    with tempfile.TemporaryDirectory(prefix="t-") as directory:  # a short path: sockets are in it
        done = subprocess.run(
            [sys.executable, "-c", LOCAL],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": directory},
            capture_output=True,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        assert (done.stdout, done.stderr) == ("[(0, 0), (1, 1), (2, 4), (3, 9)]\n", "")
        assert list(Path(directory).iterdir()) == []


ENDLESS = """
import sys
from pathlib import Path
from tests.helpers.pool_tasks import NEVER, told
from cadec_cli.parallel import Task
from cadec_cli.parallel.ray import RayPool

list(RayPool(1, None).run(Task(told, (Path(sys.argv[1]),)), [NEVER] * 2))
"""


@pytest.mark.slow
def test_whatever_ends_the_command_its_cluster_leaves_nothing_for_long(tmp_path: Path) -> None:
    """Ctrl-C is pressed until something happens; what a kill leaves, the next cluster clears."""
    pytest.importorskip("ray")
    with tempfile.TemporaryDirectory(prefix="t-") as directory:  # a short path: sockets are in it
        for number, times in ((signal.SIGKILL, 1), (signal.SIGINT, 4)):
            marks = tmp_path / number.name
            marks.mkdir()
            parent = subprocess.Popen(
                [sys.executable, "-c", ENDLESS, str(marks)],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": directory},
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )
            try:
                assert wait_until(lambda marks=marks: any(marks.iterdir()))  # type: ignore[misc]
                for _ in range(times):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(parent.pid, number)
                    time.sleep(0.25)
                _, said = parent.communicate(timeout=PATIENCE)
            finally:
                parent.kill()
            assert parent.returncode == -number and said.count("Traceback") == (number == signal.SIGINT)
            assert wait_until(lambda marks=marks: not living(marks))  # type: ignore[misc]
            assert len(list(Path(directory).iterdir())) == (number == signal.SIGKILL)
