"""A run that is killed, interrupted or out of disk, and continued, ends as if nothing had happened."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cadec_cli.main import exit_code
from cadec_cli.training.kinds import KINDS
from tests.helpers import own_kinds

OPTIONS = [
    *("--preset", "tiny", "--max-updates", "60", "--checkpoint-every", "5", "--evaluate-every", "20"),
    *("--threads", "1"),
    *(
        "--update-tokens",
        "300",
        "--batch-tokens",
        "200",
        "--keep-best",
        "2",
        "--dropout",
        "0.2",
        "--log-every",
        "1",
    ),
]


def command(kind: str, corpora: Path, output: Path, *more: str) -> list[str]:
    data = "pairs" if kind == "nmt" else "docs"
    start = ["--data", f"{corpora / data}=1.5", "--dev", str(corpora / f"{data}-dev"), *OPTIONS]
    program = ["-m", "cadec_cli"] if kind in KINDS else [own_kinds.__file__]
    run = [sys.executable, *program, "train", kind, "-o", str(output)]
    return [*run, *([] if "--resume" in more else start), *more]


def carry_out(line: list[str]) -> None:
    """Run a command to its end: in this process, unless it is another program than ours."""
    if line[1:3] == ["-m", "cadec_cli"]:
        assert exit_code([*line[3:], "--quiet"]) == 0
    else:
        subprocess.run(line, check=True, capture_output=True)


def finished(directory: Path) -> dict[str, bytes]:
    """What must be the same: the weights of the finished model, the newest checkpoint, all logged losses."""
    newest = max((directory / "checkpoints").glob("update-*"))
    metrics = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    losses = [(record["update"], record.get("loss"), record.get("dev_loss")) for record in metrics]
    return {
        "model": (directory / "model" / "model.safetensors").read_bytes(),
        "newest": (newest / "model.safetensors").read_bytes(),
        "optimizer": (newest / "optimizer.safetensors").read_bytes(),
        "losses": json.dumps(losses).encode(),
    }


def whole_run(kind: str, corpora: Path, directory: Path) -> dict[str, bytes]:
    carry_out(command(kind, corpora, directory))
    return finished(directory)


@pytest.fixture(scope="module")
def uninterrupted(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return whole_run("lm", corpora, tmp_path_factory.mktemp("runs") / "lm")


def updates_done(directory: Path) -> int:
    metrics = directory / "metrics.jsonl"
    return metrics.read_text().count("tokens_per_second") if metrics.exists() else 0


def kill_after(process: subprocess.Popen[bytes], directory: Path, updates: int, number: int) -> bool:
    """Send a signal once some more updates are done; False if the run ended before."""
    goal = updates_done(directory) + updates
    while process.poll() is None:
        if updates_done(directory) >= goal:
            process.send_signal(number)
            return True
        time.sleep(0.002)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lm", "nmt", "lm-frozen"])
def test_killed_at_any_step_and_resumed_it_ends_with_the_same_weights(
    kind: str, corpora: Path, tmp_path: Path, uninterrupted: dict[str, bytes]
) -> None:
    expected = uninterrupted if kind == "lm" else whole_run(kind, corpora, tmp_path / "whole")
    rng = random.Random(os.getpid())
    directory = tmp_path / "run"
    kills = 0
    for attempt in range(20):
        resume = ["--resume"] if attempt and (directory / "run.json").exists() else []
        process = subprocess.Popen(command(kind, corpora, directory, *resume), stderr=subprocess.DEVNULL)
        if kills < 3:
            kills += kill_after(process, directory, rng.randint(7, 17), signal.SIGKILL)
        if process.wait() == 0:
            break
    assert kills == 3
    assert not list((directory / "checkpoints").glob(".*"))  # nothing half-written stays
    assert finished(directory) == expected


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_writes_a_checkpoint_and_the_run_goes_on_from_there(
    number: int, corpora: Path, tmp_path: Path, uninterrupted: dict[str, bytes]
) -> None:
    directory = tmp_path / "run"
    process = subprocess.Popen(command("lm", corpora, directory), stderr=subprocess.PIPE)
    assert kill_after(process, directory, 7, number)
    _, messages = process.communicate()
    assert process.returncode == 130
    assert b"--resume" in messages and b"Traceback" not in messages
    newest = max((directory / "checkpoints").glob("update-*"))
    assert int(newest.name.removeprefix("update-")) >= 7  # not only the multiples of --checkpoint-every
    carry_out(command("lm", corpora, directory, "--resume"))
    assert finished(directory) == uninterrupted


def test_a_full_disk_is_told_and_leaves_the_last_good_checkpoint(
    corpora: Path, tmp_path: Path, uninterrupted: dict[str, bytes]
) -> None:
    directory = tmp_path / "run"
    carry_out(command("lm", corpora, directory, "--max-updates", "20"))
    size = (directory / "checkpoints" / "update-00000020" / "optimizer.safetensors").stat().st_size
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size // 2}, {size // 2}))"
    resume = command("lm", corpora, directory, "--resume", "--max-updates", "60")
    code = f"{limited}; from cadec_cli.main import run; run({resume[3:]!r})"
    full = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert full.returncode == 1
    assert "no space left" in full.stderr and "--resume" in full.stderr and "Traceback" not in full.stderr
    kept = sorted(path.name for path in (directory / "checkpoints").iterdir())
    assert kept == ["update-00000020"]  # no half-written one beside it
    carry_out(resume)
    # Stopping at 20 moved the cosine's end, so only the shape of the run is the same.
    assert json.loads(finished(directory)["losses"])[-1][0] == json.loads(uninterrupted["losses"])[-1][0]


def test_metrics_have_every_update_once(uninterrupted: dict[str, bytes]) -> None:
    losses = json.loads(uninterrupted["losses"])
    assert [update for update, loss, _ in losses if loss is not None] == list(range(1, 61))
    assert [update for update, _, dev in losses if dev is not None] == [20, 40, 60]
