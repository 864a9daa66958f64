"""What somebody else may do: root, as tests often run, may do anything."""

import os
from collections.abc import Callable
from pathlib import Path

SOMEBODY_ELSE = 12345


def agreed_by_another(claim: Callable[[], bool], place: Path) -> bool:
    """Whether something holds for another user, who can get to a place; without root, for our own."""
    root = os.geteuid() == 0
    for path in (place, *place.parents) if root else ():
        path.chmod(path.stat().st_mode | 0o111)
    if not (child := os.fork()):
        code = 1
        try:
            if root:
                os.setuid(SOMEBODY_ELSE)
            code = 0 if claim() else 1
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0
