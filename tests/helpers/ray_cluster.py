"""A Ray cluster of two nodes on this machine, for the tests: own ports, own directory, own processes."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

# Ray gives up after 30 seconds where a machine has much else to do.
STARTS = 4
PATIENCE = 180.0

PORTS = (
    *("node-manager-port", "object-manager-port", "runtime-env-agent-port"),
    # Those that are not given are waited for, for 15 seconds and no longer.
    *("dashboard-agent-grpc-port", "dashboard-agent-listen-port", "metrics-export-port"),
)
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_AUTH_MODE": "disabled",  # else a token is written where the user's are
}


@dataclass
class RayCluster:
    """The processes of `ray start --block`, one a node; the first is the head."""

    address: str
    directory: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="ray-")))  # short: sockets
    nodes: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def add_node(self) -> None:
        """Start one more node, and wait until it has joined."""
        log = self.directory / f"node-{len(self.nodes)}.log"
        for _ in range(STARTS):
            process = self._started(log)
            if _says(log, b"Ray runtime started", process):
                self.nodes.append(process)
                return
            _end(process)
        raise RuntimeError(f"Ray does not start:\n{log.read_text()}")

    def _started(self, log: Path) -> "subprocess.Popen[bytes]":
        if self.nodes:
            place = [f"--address={self.address}"]
        else:
            place = ["--head", f"--port={self.address.rpartition(':')[2]}", f"--temp-dir={self.directory}"]
            place += ["--include-dashboard=false"]
        ports = [f"--{name}={port}" for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True)]
        flags = ["--num-cpus=1", "--object-store-memory=100000000", "--node-ip-address=127.0.0.1", "--block"]
        flags += ["--min-worker-port=0", "--max-worker-port=0", "--disable-usage-stats"]
        with log.open("wb") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", "start", *place, *ports, *flags],
                env=os.environ | QUIET | {"PYTHONPATH": os.pathsep.join(sys.path)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def at_work(self) -> list[int]:
        """The processes here that have something in hand, which Ray writes into their names."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # it has ended
                if path.read_bytes().startswith(b"ray::CadecWorker.work"):
                    found.append(int(path.parent.name))
        ours = {node.pid for node in self.nodes}
        with suppress(ProcessLookupError):
            return [process for process in found if os.getsid(process) in ours]
        return []

    def kill_one_at_work(self) -> bool:
        """Kill the first that has something in hand, as soon as there is one."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for process in self.at_work():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                    return True
            time.sleep(0.002)
        return False

    def stop(self) -> None:
        """End all that was started here, and nothing else."""
        for node in self.nodes:
            node.terminate()
        for node in self.nodes:
            _end(node)
        shutil.rmtree(self.directory, ignore_errors=True)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


def started_cluster() -> RayCluster:
    """A cluster of two nodes of one core each."""
    (port,) = free_ports(1)
    cluster = RayCluster(f"127.0.0.1:{port}")
    try:
        cluster.add_node()
        cluster.add_node()
    except BaseException:
        cluster.stop()
        raise
    return cluster


def _says(log: Path, what: bytes, process: "subprocess.Popen[bytes]") -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if what in log.read_bytes():
            return True
        time.sleep(0.1)
    return False


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ask a node to stop its processes, then end those of its group that are left."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
