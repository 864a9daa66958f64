"""A command as the shell runs it, but in this process: a process of its own imports torch for seconds first.

What concerns processes (signals, pipes that close, what C++ code writes) needs a real one.
"""

import io
import os
import subprocess
from typing import BinaryIO
from unittest.mock import patch

from cadec_cli.main import exit_code


def cadec(
    *arguments: object, stdin: str | BinaryIO = "", **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command with this on standard input, and return what it wrote and how it ended."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    raw = io.BytesIO(stdin.encode()) if isinstance(stdin, str) else stdin
    given = io.TextIOWrapper(raw, encoding="utf-8")
    line = [str(argument) for argument in arguments]
    with (
        patch.dict(os.environ, environment),
        patch("sys.stdin", given),
        patch("sys.stdout", out),
        patch("sys.stderr", err),
    ):
        code = exit_code(line)
        shown = []
        for stream in (out, err):
            stream.flush()
            assert isinstance(stream.buffer, io.BytesIO)
            shown.append(stream.buffer.getvalue().decode())
    return subprocess.CompletedProcess(line, code, *shown)
