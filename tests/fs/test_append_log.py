"""A log gives back what was appended to it, and nothing else, whatever happened to its file."""

import os
import random
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.fs.append_log import AppendLog, LogHeader, encode_line, read_log, refuse_unfinished, write_log
from tests.helpers.damages import DAMAGES

HEADER = LogHeader("translation", {"input": "abc"})
RECORDS: list[Any] = [{"number": number, "text": "я\ud800" * number} for number in range(9)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with AppendLog.begin(tmp_path / "log", HEADER) as log:
        for record in RECORDS:
            log.append(record)
    return tmp_path / "log"


def found(path: Path) -> list[Any]:
    with AppendLog.resume(path, HEADER) as log:
        return [record for _, record in log.records()]


def test_it_gives_back_what_was_appended(path: Path) -> None:
    assert found(path) == RECORDS
    with AppendLog.resume(path, HEADER) as log:
        position = log.append({"more": 1})
        assert log.read(position) == {"more": 1}
    assert found(path) == [*RECORDS, {"more": 1}]


def test_a_line_that_was_cut_short_is_removed_and_the_next_is_whole(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 3)
    with AppendLog.resume(path, HEADER) as log:
        log.append("next")
    assert found(path) == [*RECORDS[:-1], "next"]


@pytest.mark.parametrize("chosen", [range(9), range(4), [1, 3, 4], []])
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_what_is_kept_can_be_read_at_its_new_position(path: Path, chosen: list[int], ending: bytes) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", ending))
    with AppendLog.resume(path, HEADER) as log:
        positions = [position for position, _ in log.records()]
        moved = log.keep([positions[number] for number in chosen])
        assert [log.read(position) for position in moved] == [RECORDS[number] for number in chosen]
        log.append("next")
    assert found(path) == [*(RECORDS[number] for number in chosen), "next"]


def test_a_log_can_be_rewritten_from_itself(path: Path) -> None:
    with AppendLog.resume(path, HEADER) as log:
        log.rewrite([number, record] for number, (_, record) in enumerate(log.records()))
        with pytest.raises(CadecError, match="another process"):
            AppendLog.resume(path, HEADER)
    assert found(path) == [[number, record] for number, record in enumerate(RECORDS)]
    assert path.stat().st_mode & 0o777 == 0o600


def test_damage_costs_what_is_damaged_and_nothing_is_wrong(path: Path) -> None:
    whole, rng = path.read_bytes(), random.Random(1)
    for number in range(10 * len(DAMAGES)):
        path.write_bytes(DAMAGES[number % len(DAMAGES)](rng, whole))
        try:
            assert all(record in RECORDS for record in found(path) if record is not None)
        except CadecError as error:
            assert "is damaged" in error.message
    path.write_bytes(b"\0" + whole[1:])
    with AppendLog.resume(path, HEADER) as log:
        assert log.header_is_damaged and [record for _, record in log.records()] == RECORDS
        log.keep(position for position, _ in log.records())
    assert path.read_bytes() == whole


def test_other_work_and_other_versions_are_refused_by_name(path: Path) -> None:
    with pytest.raises(CadecError, match="belongs to another translation, which differs in: input"):
        AppendLog.resume(path, LogHeader("translation", {"input": "other"}))
    earlier = b'{"format": 4, "input": "abc"}'
    for line in (earlier + b"\n", encode_line(earlier), encode_line(b"cadec back-translation 2 0123")):
        path.write_bytes(line)
        with pytest.raises(CadecError, match="was written by another version of cadec") as refused:
            AppendLog.resume(path, HEADER)
        assert "start over" in refused.value.hint
        with pytest.raises(CadecError, match="there is an unfinished translation"):
            refuse_unfinished(path)


def test_a_complete_log_is_read_without_a_lock(path: Path) -> None:
    write_log(path, HEADER, RECORDS)
    with path.open("ab") as stream:
        stream.write(b"x" * 5000 + b"\n" + HEADER.encode("last"))
    assert list(read_log(path, HEADER, longest=1000)) == [*RECORDS, None, "last"]
    with pytest.raises(CadecError, match="differs in: input"):
        list(read_log(path, LogHeader("translation", {"input": "other"}), longest=1000))
