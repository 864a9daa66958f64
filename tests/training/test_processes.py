"""Two processes under torchrun train as one does with the same global batch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cadec_cli.main import exit_code
from cadec_cli.training.kinds import KINDS
from tests.helpers import own_kinds

# Few batches an update, so that at times one process has none of its own.
OPTIONS = [
    *("--preset", "tiny", "--max-updates", "25", "--evaluate-every", "10", "--checkpoint-every", "10"),
    *("--update-tokens", "400", "--batch-tokens", "300", "--log-every", "1", "--threads", "1"),
]


def losses(directory: Path, kind: str) -> list[float]:
    records = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [record[kind] for record in records if kind in record]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lm", "nmt", "lm-frozen"])
def test_two_processes_have_the_loss_curve_of_one(kind: str, corpora: Path, tmp_path: Path) -> None:
    data = "pairs" if kind == "nmt" else "docs"
    program = ["-m", "cadec_cli"] if kind in KINDS else [own_kinds.__file__]
    curves = {}
    for count in (1, 2):
        output = tmp_path / f"run-{count}"
        corpus = ["--data", str(corpora / data), "--dev", str(corpora / f"{data}-dev")]
        line = ["train", kind, "-o", str(output), *corpus, *OPTIONS]
        if count == 1 and kind in KINDS:  # without torchrun, as most people train
            assert exit_code([*line, "--quiet"]) == 0
        else:
            launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
            subprocess.run(
                [sys.executable, *launcher, *program, *line],
                check=True,
                capture_output=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                timeout=300,
            )
        curves[count] = losses(output, "loss"), losses(output, "dev_loss")
        assert (output / "model" / "model.safetensors").is_file()
    for one, two in zip(curves[1], curves[2], strict=True):
        np.testing.assert_allclose(one, two, rtol=2e-4)
    training = curves[1][0]
    assert len(training) == 25 and training[-1] < training[0] - 0.5  # and there was something to compare
