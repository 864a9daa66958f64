"""What a target is: a reader, files that it reads, and what must hold whatever is in them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis.strategies import SearchStrategy

from tests.robustness.fuzz.packing import Packing

Files = dict[str, bytes]


@dataclass(frozen=True)
class Target:
    """A reader under trial; everything but `packed`, `written` and `resealed` runs in the process for trials.

    `load` reads the files of a directory and asserts what must be true of what it found. It may raise nothing
    but a CadecError.
    """

    modules: tuple[str, ...]  # whose reading is tried, as cadec_cli/fs/read.py
    seed: Callable[[Path], None]  # writes valid files
    load: Callable[[Path], object]
    damaged: tuple[str, ...] = ()  # the files to be damaged; all of them if none is named
    written: SearchStrategy[bytes] | None = None  # a small grammar of the format
    only_written: bool = False  # where damage could do damage
    packed: Mapping[str, Packing] = field(default_factory=dict)  # file → what is inside of it
    resealed: Callable[[Files, str], None] | None = None  # makes checksums true again after damage to a file
    writes: bool = False  # it may leave files
    share: float = 1.0  # of the usual number of inputs: less where one takes long
