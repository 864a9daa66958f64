"""Processes that have left a mark: which of them live, and a wait that is not for ever."""

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 120.0  # seconds that a machine may take which has much else to do


def living(directory: Path) -> set[int]:
    """Those processes that have left their mark and have not ended."""
    return {int(mark.name) for mark in directory.iterdir() if is_alive(int(mark.name))}


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # which its parent has not looked at yet


def wait_until(reached: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.02)
    return reached()
