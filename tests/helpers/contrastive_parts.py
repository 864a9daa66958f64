"""Bundles of tiny models with random weights that contrastive sets are scored with."""

from pathlib import Path

from cadec_cli.main import exit_code
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.bundle_parts import write_parts


def write_bundles(root: Path, english: TextPipeline, russian: TextPipeline) -> None:
    """Bundles whole/, lm/ (for scoring) and nmt/ (sentence-level)."""
    parts = root / "parts"
    write_parts(parts, english, russian)
    source, target = ("--source-pipeline", parts / "en"), ("--target-pipeline", parts / "ru")
    nmt, lm = ("--nmt", parts / "nmt", "--compute-type", "float32"), ("--lm", parts / "lm")
    for name, arguments in (
        ("whole", (*nmt, *lm, *source, *target)),
        ("lm", (*lm, *target)),
        ("nmt", (*nmt, *source, *target)),
    ):
        assert exit_code(["convert", *map(str, arguments), "-o", str(root / name), "-q"]) == 0
