"""Kill commands for as long as you like: `python -m tests.robustness.kills --help`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads do not survive a fork
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.robustness.kills.script import main

if __name__ == "__main__":
    sys.exit(main())
