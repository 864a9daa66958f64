"""A journal that was cut short, wherever, can be taken up again, and again."""

from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.jobs.journal import Journal

HEADER = {"input": "abc"}


@pytest.mark.parametrize("left", [0, 10, 40])
def test_a_journal_killed_before_its_first_record_starts_over(left: int, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    Journal.begin(path, HEADER).__exit__(None, None, None)
    path.write_bytes(path.read_bytes()[:left])
    with Journal.resume(path, HEADER) as journal:
        assert not journal.outputs
        journal.add(0, 0, "x")
    with Journal.resume(path, HEADER) as journal:  # killed once more: what it has is still its own
        assert not journal.outputs  # nothing was complete up to a snapshot
    with pytest.raises(CadecError, match="differs in: input"):
        Journal.resume(path, {"input": "other"})
