"""What workers do with what they are given, and how they tell of it: one message each time, as bytes.

This runs in the workers. It is all they know of a task, wherever they are.
"""

from __future__ import annotations

import pickle
import traceback
from typing import Any

from cadec_cli.parallel import Task

# What a message says: that a worker has begun, what it made of its item, or what went wrong.
READY, DONE, FAILED = "ready", "done", "failed"
# What silence means.
LOST = "lost"


def start_task(pickled: bytes) -> tuple[Any, bytes]:
    """What the task begins with, and what to say of it."""
    try:
        task: Task[Any, Any] = pickle.loads(pickled)
        return task.begin(*task.arguments), pickle.dumps((READY, None))
    except BaseException as error:  # raised again by whoever gave the task
        return None, _failure(error)


def answer(work: Any, received: bytes) -> bytes:
    """What was made of an item."""
    try:
        return pickle.dumps((DONE, work(pickle.loads(received))))
    except BaseException as error:  # raised again by whoever gave the task
        return _failure(error)


def _failure(error: BaseException) -> bytes:
    """An error as it is, if it can travel; its traceback can't, so it is told."""
    error.add_note(f"In a worker process:\n{''.join(traceback.format_exception(error))}")
    try:
        told = pickle.dumps((FAILED, error))
        pickle.loads(told)
    except Exception:  # whatever that class does when it is copied
        return pickle.dumps((FAILED, RuntimeError(f"{type(error).__name__}: {error}")))
    return told
