"""A pool of actors on a Ray cluster: an existing one, or one that is started here and ends with the work.

Ray finds room on the machines and connects them. Workers get and send the same messages as on one
machine, so errors come back as they were raised, and an error of Ray itself means that a worker is lost.
Ray's own messages stay out of the terminal.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import pickle
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.fs.atomic import new_part
from cadec_cli.parallel import Item, Result, Results, Task, available_cores
from cadec_cli.parallel.processes import FAILED, LOST, WorkItem, dispatch
from cadec_cli.version import __version__

# Seconds to wait for an answer from an address.
_ANSWERING = 20

# Seconds between two checks of the cluster's size; machines may join or leave.
_LOOKING = 5.0

# How often to try to start a cluster: parts of Ray wait only 15 seconds for others, however busy the machine.
_STARTS = 3

# Seconds for Ray's processes to end.
_LEAVING = 5.0

# Bytes of shared memory of a cluster that is started here: items and results are text.
_SHARED_MEMORY = 128 * 2**20

# The longest path of a directory that can hold one of ours with Ray's sockets in it: the path of a socket has
# at most 107 characters.
_MAX_DIRECTORY_LENGTH = 40 - len("/.ray.cadec-12345678.part")


# Ray uses gRPC over HTTP/2, where both sides begin with their settings.
_SETTINGS = b"\0\0\0\4\0\0\0\0\0"
_HTTP_2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _SETTINGS


class RayPool:
    """Actors of a Ray cluster, each with `cores` cores and `gpus` GPUs; 0 workers means as many as fit."""

    def __init__(self, workers: int, address: str | None, *, cores: float = 1, gpus: float = 0) -> None:
        self._asked = workers
        self._address = address
        self._cores = cores
        self._gpus = gpus

    @property
    def size(self) -> int:
        """The number of workers at a time; an estimate from this machine if it was not given."""
        return self._asked or max(1, int(available_cores() // self._cores))

    def run(self, task: Task[Item, Result], items: Iterable[Item]) -> Results[Result]:
        """Yield each item's number with its result, in the order in which results arrive."""
        ray = _import_ray()
        pickled = pickle.dumps(task)
        with _connection(ray, self._address, self._asked * self._cores) as signals:
            worker_set = _RayWorkerSet(ray, pickled, self._asked, self._cores, self._gpus)
            try:
                yield from dispatch(worker_set, items, task.window)
            finally:
                signals.ignore()
                for worker in [*worker_set.workers]:
                    worker_set.remove(worker)


@dataclass(eq=False)
class _RayWorker:
    """One actor, as this process sees it."""

    ray: Any
    actor: Any
    reference: Any  # to its next answer
    work_item: WorkItem[Any] | None = None

    def take(self, item: bytes) -> None:
        """Send an item; if the worker is already lost, `answer` says so."""
        self.reference = self.actor.work.remote(item)

    def answer(self) -> tuple[str, Any]:
        """Return its message; an error of Ray instead of a message means that the worker is lost."""
        try:
            said = self.ray.get(self.reference)
        except self.ray.exceptions.RayTaskError as error:  # not the task's: its errors come as messages
            return FAILED, CadecError(f"a Ray worker failed: {_line(error.cause or error)}")
        except self.ray.exceptions.RayError as error:
            return LOST, _line(error)
        if isinstance(said, str):
            return FAILED, CadecError(said, f"install cadec {__version__} on all machines of the cluster")
        answer: tuple[str, Any] = pickle.loads(said)
        return answer


class _RayWorkerSet:
    """The actors, and how many of them fit on the cluster."""

    kind = "Ray workers"
    hint = f"perhaps memory ran out: try fewer {option('workers')}, or give each more {option('threads')}"

    def __init__(self, ray: Any, task: bytes, most: int, cores: float, gpus: float) -> None:
        self.workers: list[_RayWorker] = []
        self._ray = ray
        self._actor = ray.remote(_actor_class()).options(num_cpus=cores, num_gpus=gpus)
        self._task = ray.put(task)
        self._most = most
        self._each = {"CPU": cores, "GPU": gpus}
        self._looked = 0.0
        self._room = 0
        if not self.capacity():
            wanted = ", ".join(f"{count:g} {name}" for name, count in self._each.items() if count)
            raise CadecError(
                f"no machine of the Ray cluster has room for a worker ({wanted})",
                f"ask for fewer {option('threads')}, or for another {option('device')}",
            )

    def capacity(self) -> int:
        """Return how many actors were asked for and fit on the machines, whatever else is running there."""
        now = time.monotonic()
        if not self._looked or now - self._looked > _LOOKING:
            self._looked = now
            machines = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
            self._room = sum(map(self._fitting, machines))
        return min(self._most, self._room) if self._most else self._room

    def _fitting(self, machine: dict[str, float]) -> int:
        """Return how many actors fit on one machine."""
        return min(int(machine.get(name, 0) // count) for name, count in self._each.items() if count)

    def add(self) -> None:
        """Ask for one more actor; it starts when there is room for it."""
        actor = self._actor.remote()
        self.workers.append(_RayWorker(self._ray, actor, actor.begin.remote(__version__, self._task)))

    def wait_for_answers(self) -> list[_RayWorker]:
        """Wait until some actors have answered or are lost, at most until the next check of the size."""
        of = {worker.reference: worker for worker in self.workers}
        done, _ = self._ray.wait(list(of), num_returns=1, timeout=_LOOKING)
        return [of[reference] for reference in done]

    def remove(self, worker: _RayWorker) -> None:
        """End an actor."""
        self.workers.remove(worker)
        self._ray.kill(worker.actor)


def _actor_class() -> type:
    """Return the class of an actor. As a local class it is sent whole, also to machines without cadec."""

    class CadecWorker:
        def begin(self, version: str, task: bytes) -> bytes | str:
            try:
                from cadec_cli.parallel.processes import answer, start_task
                from cadec_cli.version import __version__
            except ImportError as error:
                return f"a machine of the Ray cluster can't import cadec: {error}"
            if __version__ != version:
                return f"a machine of the Ray cluster has cadec {__version__}, but this one has {version}"
            self._answer = answer
            self._work, message = start_task(task)
            return message

        def work(self, item: bytes) -> bytes:
            return self._answer(self._work, item)

    return CadecWorker


def _import_ray() -> Any:
    """Import Ray, set to be quiet and to send no usage statistics."""
    for name, value in (
        ("RAY_USAGE_STATS_ENABLED", "0"),
        ("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0"),  # its new default; without it, Ray prints a notice
        ("RAY_enable_metrics_collection", "0"),
        ("RAY_prestart_worker_first_driver", "0"),  # only the actors will run
        ("RAY_enable_worker_prestart", "0"),
    ):
        os.environ.setdefault(name, value)
    try:
        ray = importlib.import_module("ray")
        importlib.import_module("ray.exceptions")
    except ImportError as error:
        raise CadecError(f"Ray is not installed ({error})", "pip install 'cadec[ray]'") from error
    return ray


@contextlib.contextmanager
def _connection(ray: Any, address: str | None, cores: float) -> Iterator[_Signals]:
    """Connect to a cluster; without an address, one is started, and ends with this block."""
    with contextlib.ExitStack() as stack:
        signals = stack.enter_context(_own_signals())
        if address is None:
            directory = stack.enter_context(_short_directory())
        stack.callback(ray.shutdown)
        stack.callback(signals.ignore)
        if address is None:
            _start(ray, cores, directory)
        else:
            _connect(ray, address)
        signals.take_back()
        yield signals


@dataclass(frozen=True)
class _Signals:
    """The handlers of the signals that end a command; only the main thread may change them."""

    before: Mapping[signal.Signals, Any]

    def take_back(self) -> None:
        """Replace Ray's handler of SIGTERM, which would log it at length, by one that ends quietly."""
        if signal.SIGTERM in self.before:
            handler = self.before[signal.SIGTERM]
            signal.signal(signal.SIGTERM, _exit if handler == signal.SIG_DFL else handler)

    def ignore(self) -> None:
        """Ignore a second Ctrl-C: it would leave some of Ray's processes behind, and all is ending anyway."""
        for number in self.before:
            signal.signal(number, signal.SIG_IGN)

    def restore(self) -> None:
        """Restore the previous handlers."""
        for number, handler in self.before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _own_signals() -> Iterator[_Signals]:
    """Yield the signal handlers, and restore them at the end of this block."""
    ours = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if ours else ()
    signals = _Signals({number: signal.getsignal(number) for number in numbers})
    try:
        yield signals
    finally:
        signals.restore()


def _exit(number: int, frame: object) -> None:
    sys.exit(128 + number)


def _start(ray: Any, cores: float, directory: Path) -> None:
    """Start a cluster on this machine alone; it claims to have all the cores that were asked for."""
    for attempt in range(1, _STARTS + 1):
        try:
            ray.init(
                address="local",
                num_cpus=max(cores, available_cores()),
                object_store_memory=_SHARED_MEMORY,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                _node_ip_address="127.0.0.1",  # not reachable from other machines
                _temp_dir=str(directory),
            )
            return
        except Exception as error:  # Ray raises plain Exceptions
            ray.shutdown()
            if attempt == _STARTS:
                raise CadecError(
                    f"Ray can't be started: {_line(error)}", f"{option('workers')} needs no Ray"
                ) from error


def _connect(ray: Any, address: str) -> None:
    """Connect to a cluster; a CadecError says why it can't be reached."""
    unreachable = f"no Ray cluster can be reached at {address}"
    host, port = _host_and_port(address)
    try:
        if host:
            _check_port(host, port)
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except OSError as error:
        hint = "is it running? `ray start --head` starts one" if address == "auto" else "is it running there?"
        raise CadecError(f"{unreachable}: {_line(error)}", hint) from error
    except (RuntimeError, ValueError, ImportError, AssertionError) as error:
        raise CadecError(f"{unreachable}: {_line(error)}") from error


def _check_port(host: str, port: int) -> None:
    """Raise an OSError unless Ray answers at a port: Ray itself would wait for minutes."""
    with socket.create_connection((host, port), timeout=_ANSWERING) as connection:
        if os.environ.get("RAY_USE_TLS", "0") not in ("0", ""):
            return  # only Ray has the certificates
        connection.sendall(_HTTP_2)
        answer = connection.recv(len(_SETTINGS))
        if answer[3:4] != _SETTINGS[3:4]:
            raise ConnectionError("the server there is not Ray")


def _host_and_port(address: str) -> tuple[str, int]:
    """Return the host and port of an address; '' for `auto`, where Ray finds them itself."""
    if address == "auto":
        return "", 0
    found = re.fullmatch(r"(?:ray://)?\[?([^/\[\]]+?)\]?:(\d{1,5})", address)
    if found is None or int(found[2]) > 65535:
        hint = "e.g. 10.0.0.1:6379, ray://head:10001 or auto"
        raise UsageError(f"invalid address of a Ray cluster: {address}", hint)
    return found[1], int(found[2])


@contextlib.contextmanager
def _short_directory() -> Iterator[Path]:
    """Yield a directory for Ray's sockets and logs, and remove it afterwards; sockets need a short path.

    A directory that a killed command left behind is removed, too.
    """
    usual = Path(tempfile.gettempdir())
    place = (usual if len(str(usual)) <= _MAX_DIRECTORY_LENGTH else Path("/tmp")) / "ray"
    part = new_part(place, directory=True, mode=0o700)
    try:
        yield part.path
    finally:
        deadline = time.monotonic() + _LEAVING
        while part.path.exists() and time.monotonic() < deadline:  # its last processes may still write
            shutil.rmtree(part.path, ignore_errors=True)
            time.sleep(0.05)
        part.close()


def _line(error: BaseException) -> str:
    """Return the first line of an error; Ray's errors have many."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
