"""Short kill tests: every command is really killed, and meets a full disk and another process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent
SOME = ("translate-text", "train", "convert-in-place", "augment")


def outcomes(corpora: Path, bundle: Path, root: Path, *more: str) -> dict[str, dict[str, object]]:
    """Run the script, which forks: that needs a process without threads."""
    report = root / "report.json"
    models = ["--corpora", str(corpora), "--bundle", str(bundle)]
    line = [sys.executable, str(SCRIPT), "--small", *models, "--json", str(report)]
    done = subprocess.run([*line, *more], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return {found["name"]: found for found in json.loads(report.read_text())}


@pytest.mark.slow
def test_killed_and_run_again_every_command_leaves_what_it_would_have_left(
    corpora: Path, made_up_bundle: Path, tmp_path: Path
) -> None:
    chosen = ("--what", "killed", "--kills", "1", "--place", str(tmp_path / "kept"))
    found = outcomes(corpora, made_up_bundle, tmp_path, *chosen)
    assert len(found) >= 10 and all(outcome["kills"] == 1 for outcome in found.values())


@pytest.mark.slow
def test_a_full_disk_a_read_only_directory_or_another_process_loses_nothing(
    corpora: Path, made_up_bundle: Path, tmp_path: Path
) -> None:
    whats = ("on a full disk", "where it is read-only", "two at once", "on one cache")
    chosen = [part for what in whats for part in ("--what", what)]
    only = [part for name in (*SOME, "translate-cold-cache") for part in ("--only", name)]
    found = outcomes(corpora, made_up_bundle, tmp_path, *chosen, *only)
    assert len(found) == 3 * (len(SOME) + 1) + 1
    assert all(outcome["trials"] == outcome["equal"] == 1 for outcome in found.values())


@pytest.mark.slow
def test_killed_right_before_whatever_it_does_to_files_nothing_is_lost(
    corpora: Path, made_up_bundle: Path, tmp_path: Path
) -> None:
    chosen = ("--what", "killed at each event", "--only", "augment")
    (found,) = outcomes(corpora, made_up_bundle, tmp_path, *chosen).values()
    kills = found["kills"]
    assert isinstance(kills, int) and kills >= 10 and found["trials"] == found["equal"]
