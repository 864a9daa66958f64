"""One input, one verdict: what a reader does with some files, seen from outside of the process that reads.

The process is started once and serves many trials. When it crashes, hangs or is told to stop, that trial has
failed, and the next one gets a new process.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.robustness.fuzz.target import Files

ROOT = Path(__file__).parents[3]
# For one trial. Generous: what hangs, or takes a time that grows with the square of its input, takes longer.
SECONDS = 60
_TOO_LONG = "more than"


@dataclass(frozen=True)
class Verdict:
    """What came of an input: a value, a clear error, or something that must not be."""

    kind: str  # read, refused or wrong
    told: str = ""  # the error's message, or what is wrong
    where: str = ""  # file and line, if that is known

    @property
    def took_too_long(self) -> bool:
        """Tell whether it was stopped."""
        return self.told.startswith(_TOO_LONG)

    @property
    def defect(self) -> str:
        """The same for all inputs that fail in the same way."""
        return f"{self.told.partition(':')[0]} at {self.where}" if self.where else self.told[:60]


class Trials:
    """Directories of files, read by a process of their own."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="cadec-fuzz-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._number = 0
        self._seeds: dict[str, Files] = {}
        self.tried: Counter[tuple[str, str]] = Counter()  # (target, kind of verdict) → inputs

    def __enter__(self) -> "Trials":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        shutil.rmtree(self._root, ignore_errors=True)

    def seeds(self, name: str) -> Files:
        """The valid files of a target, made once."""
        if name not in self._seeds:
            directory = self._root / "seeds" / name.replace(" ", "-").replace("/", "-")
            answer = self._ask({"seed": name, "directory": str(directory)}, 20 * SECONDS)
            assert answer["kind"] == "read", f"{name}: no valid files could be made: {answer}"
            self._seeds[name] = {
                path.relative_to(directory).as_posix(): path.read_bytes()
                for path in sorted(directory.rglob("*"))
                if path.is_file()
            }
            whole = self.verdict(name, self._seeds[name])
            assert whole.kind == "read", f"{name}: valid files are not read: {whole}"
        return self._seeds[name]

    def verdict(self, name: str, files: Files) -> Verdict:
        """Read some files."""
        self._number += 1
        directory = self._root / f"trial-{self._number}"
        for file, content in files.items():
            path = directory / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        try:
            verdict = Verdict(**self._ask({"load": name, "directory": str(directory)}))
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        self.tried[name, verdict.kind] += 1
        return verdict

    def _ask(self, question: dict[str, str], seconds: int = SECONDS) -> dict[str, Any]:
        if self._process is None:
            self._process = self._started()
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        if not ready:
            self._process.send_signal(signal.SIGABRT)
        answer = self._process.stdout.readline()
        if answer.endswith(b"\n"):
            found: dict[str, Any] = json.loads(answer)
            return found
        code = self._process.wait()
        log = (self._root / "log").read_text("utf-8", "replace")[-6000:]
        self._stop()
        told = f"the process ended with {code}: {_cause(log)}" if ready else f"{_TOO_LONG} {seconds} seconds"
        return {"kind": "wrong", "told": told, "where": _place(log)}

    def _started(self) -> "subprocess.Popen[bytes]":
        state = self._root / "state"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
            "CADEC_FUZZ_PARTS": str(self._root / "parts"),
            **{name: str(state) for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "TMPDIR")},
            **{"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "NO_COLOR": "1"},
        }
        state.mkdir(exist_ok=True)
        with (self._root / "log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.robustness.fuzz.reading_process", str(self._root)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
            )

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
            self._process.wait()
            self._process = None


def _cause(log: str) -> str:
    """What a process said last: of a traceback that faulthandler wrote, its head."""
    lines = [line for line in log.splitlines() if line.strip()]
    head = next((line for line in lines if line.startswith("Fatal")), "")
    return head or (lines[-1] if lines else "it said nothing")


def _place(log: str) -> str:
    """The innermost line of ours that such a traceback names."""
    for line in log.splitlines():
        if line.strip().startswith("File ") and ("/cadec_cli/" in line or "/converters/" in line):
            path, _, rest = line.strip().removeprefix("File ").partition(", line ")
            short = path.strip('"')
            for top in ("/cadec_cli/", "/converters/"):
                if top in short:
                    short = top.strip("/") + "/" + short.rpartition(top)[2]
            return f"{short}:{rest.split()[0]}"
    return ""
