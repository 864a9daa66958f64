"""What a worker process has imported; this module imports next to nothing itself."""

import sys
from collections.abc import Callable
from typing import Any


def start_and_list_modules(start: Callable[..., Any], *arguments: Any) -> Callable[[Any], list[str]]:
    """Start a task as a worker does; the result of an item is the modules imported when it is done."""
    work = start(*arguments)

    def work_and_list_modules(item: Any) -> list[str]:
        assert work(item)
        return sorted(sys.modules)

    return work_and_list_modules
