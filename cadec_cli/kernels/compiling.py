"""Compile rows.c into libraries beside it, as the install does: `python -m cadec_cli.kernels.compiling`.

Once for every level of the instruction set that `compiled` may ask for, so that a wheel, or an environment on
a shared disk, serves every CPU. The install imports this file by itself: nothing of cadec is there yet.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("rows.c")
# Products and sums are contracted where the CPU can, and nothing is reordered but by `omp simd`.
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


def compile_all(source: Path = SOURCE) -> list[Path]:
    """Compile for every level that the compiler here knows; return what was made."""
    compiler = find_compiler()
    if compiler is None:
        return []
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    made = []
    for level, flags in {**(X86 if x86 else {}), "plain": []}.items():
        output = source.with_name(f"{source.stem}-{level}.so")
        part = output.with_suffix(f".{os.getpid()}.part")
        command = [compiler, *FLAGS, *flags, str(source), "-o", str(part), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            part.replace(output)
            made.append(output)
        else:
            part.unlink(missing_ok=True)
            print(f"not compiled for {level}: {done.stderr.strip()[-500:]}", file=sys.stderr)
    return made


def find_compiler() -> str | None:
    """The C compiler: that of CC, or the first there is; what Windows has is not asked."""
    if os.name != "posix":
        return None
    names = [os.environ.get("CC", ""), "cc", "gcc", "clang"]
    return next((found for name in names if name and (found := shutil.which(name))), None)


if __name__ == "__main__":
    print("\n".join(map(str, compile_all())) or "no C compiler was found, or it failed")
