"""Kill commands for as long as you like: `python tests/kills --help`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads do not survive a fork
_TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_TESTS.parent), str(_TESTS), str(_TESTS / "helpers")]

from kills.script import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
