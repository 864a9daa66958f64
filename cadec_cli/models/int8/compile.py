"""Compile the operations in C into libraries, as the install does: `python -m cadec_cli.models.int8.compile`.

There is one library per instruction-set level that `kernels` may ask for, so that a wheel, or an environment
on a shared disk, serves every CPU. The install imports this file alone: the rest of cadec is not there yet.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

KERNELS = Path(__file__).parent
SOURCES = ("lanes.h", "rows.c", "attention.c")
# Products and sums are contracted where the CPU can do so; only `omp simd` reorders anything.
FLAGS = [
    *("-std=gnu11", "-O3", "-fPIC", "-shared", "-w"),
    *("-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math"),
]
# The features that torch asks a CPU for before it calls it AVX512 or AVX2.
X86 = {
    "avx512": [
        *("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx2", "-mfma"),
        "-mprefer-vector-width=512",
    ],
    "avx2": ["-mavx2", "-mfma"],
}
PLAIN = "plain"
# MMX registers are those of the x87 unit. GCC uses them for short vectors and does not release them: every
# long double of the process then becomes NaN, and C++ hash tables ask for more memory than there is.
NO_MMX = "-mno-mmx"
SECONDS = 120  # the limit per library; one takes half a second


def compile_all(into: Path = KERNELS, sources: Path = KERNELS) -> list[Path]:
    """Compile for every level that a compiler here supports, replacing old libraries; return the new ones."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    made = []
    for level, flags in {**(X86 if x86 else {}), PLAIN: []}.items():
        flags = [*flags, NO_MMX] if x86 else flags
        output = library_path(level, into)
        output.unlink(missing_ok=True)
        if _compile(flags, sources, output):
            made.append(output)
    return made


def library_path(level: str, directory: Path = KERNELS) -> Path:
    """The path of the library for a level."""
    return directory / f"kernels-{level}.so"


def identity(sources: Path = KERNELS) -> str:
    """A checksum of the sources that libraries are compiled from."""
    found = hashlib.sha256(NO_MMX.encode())
    for name in SOURCES:
        found.update((sources / name).read_bytes())
    return found.hexdigest()


def compilers() -> list[str]:
    """The C compilers of this machine, the one in CC first. On Windows the list is empty."""
    names = [os.environ.get("CC", ""), "cc", "gcc", "clang"] if os.name == "posix" else []
    return list(dict.fromkeys(found for name in names if name and (found := shutil.which(name))))


def _compile(flags: list[str], sources: Path, output: Path) -> bool:
    """Compile with the first compiler that succeeds, and report why others fail; False if none succeeds."""
    part = output.with_suffix(f".{os.getpid()}.part")
    files = [str(sources / name) for name in SOURCES if name.endswith(".c")]
    for compiler in compilers():
        source = f'-DCADEC_SOURCE="{identity(sources)}"'
        command = [compiler, *FLAGS, *flags, source, *files, "-o", str(part), "-lm"]
        try:
            subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
            part.replace(output)
        except (OSError, subprocess.SubprocessError) as error:
            part.unlink(missing_ok=True)
            reason = str(getattr(error, "stderr", None) or error).strip()
            print(f"{output.name}: {compiler} failed: {reason[-500:]}", file=sys.stderr)
        else:
            return True
    return False


if __name__ == "__main__":
    print("\n".join(map(str, compile_all())) or "nothing was compiled: no working C compiler was found")
