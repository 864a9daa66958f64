"""Work that another process is at is left alone, whatever a user asks for; two can't hold one lock."""

import itertools
import multiprocessing
import os
import stat
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

import pytest

import cadec_cli.fs.locks
from cadec_cli.decoding.state import DocumentState, State
from cadec_cli.errors import CadecError
from cadec_cli.fs.locks import lock, open_lock_file, open_locked, remove_if_unlocked, remove_locked
from cadec_cli.jobs.journal import SAVE_EVERY, Journal
from cadec_cli.main import exit_code

FAST = ["--threads", "1", "--quiet"]


def test_a_claim_is_for_one_and_ends_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "work"
    with open_locked(path, "ab") as first:
        first.write(b"begun\n")
        for attempt in (lambda: open_locked(path, "ab"), lambda: remove_if_unlocked(path)):
            with pytest.raises(CadecError, match="another process"):
                attempt()
    with open_locked(path, "ab") as second:
        assert second.tell() == len(b"begun\n")
        remove_locked(second, path)
    assert not path.exists()
    remove_if_unlocked(path)  # there is nothing to remove


def test_a_claim_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "work"
    if not (child := os.fork()):
        open_locked(path, "ab")
        os._exit(0)
    os.waitpid(child, 0)
    open_locked(path, "ab").close()


def test_a_link_that_is_put_there_meanwhile_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    elsewhere.write_text("somebody's\n")
    look = cadec_cli.fs.locks.refuse_special

    def look_and_let_another_in(place: Path) -> None:
        look(place)
        if not os.path.lexists(path):
            path.symlink_to(elsewhere)

    monkeypatch.setattr(cadec_cli.fs.locks, "refuse_special", look_and_let_another_in)
    with pytest.raises(CadecError, match="not a plain file"):
        open_locked(path, "ab")
    assert elsewhere.read_text() == "somebody's\n"


def test_a_journal_in_use_is_neither_begun_nor_taken_up_by_another(tmp_path: Path) -> None:
    path = tmp_path / "out.cadec-journal"
    with Journal.begin(path, {"input": "a"}) as journal:
        journal.add(0, 0, {"text": "one"})
        written = path.read_bytes()
        for opened in (Journal.begin, Journal.resume):
            with pytest.raises(CadecError, match="another process"):
                opened(path, {"input": "a"})
        assert path.read_bytes() == written
        journal.finish()
    assert not path.exists()


def journal_of(path: Path, sentences: int) -> bytes:
    with Journal.begin(path, {"input": "a"}, itertools.count(step=SAVE_EVERY).__next__) as journal:
        for number in range(sentences):
            journal.add(0, number, {"text": str(number)})
            journal.checkpoint(State(number, {0: DocumentState()}))
    return path.read_bytes()


@pytest.mark.parametrize("damaged", [False, True], ids=["cut off", "copied"])
def test_a_journal_is_claimed_all_the_while_it_is_taken_up(
    damaged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.cadec-journal"
    lines = journal_of(path, 4).splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], *([b"damaged\n"] if damaged else []), *lines[3:], b"half a line"]))
    told: list[str] = []
    within = [False]

    def take_up_too(*_: object) -> None:
        """At a step of the one, another does all of it, and ends."""
        if not within[0]:
            within[0] = True
            try:
                Journal.resume(path, {"input": "a"}).__exit__(None, None, None)
                told.append("taken up")
            except CadecError as error:
                told.append(error.message)
            within[0] = False

    opened: list[Path] = []

    def open_later(path: Path, mode: str, buffering: int = -1) -> IO[Any]:
        if not within[0] and path in opened:
            take_up_too()
        opened.append(path)
        return open_locked(path, mode, buffering)

    monkeypatch.setattr("cadec_cli.fs.atomic._sync", take_up_too)
    monkeypatch.setattr("cadec_cli.fs.append_log.open_locked", open_later)
    journal = Journal.resume(path, {"input": "a"}, itertools.count(step=SAVE_EVERY).__next__)
    take_up_too()
    assert told and all("another process" in message for message in told)
    journal.add(0, 4, {"text": "4"})
    journal.checkpoint(State(4, {0: DocumentState()}))
    journal.__exit__(None, None, None)
    monkeypatch.undo()
    again = Journal.resume(path, {"input": "a"})
    assert sorted(number for _, number in again.outputs) == [0, 1, 2, 3, 4]
    again.finish()
    assert not path.exists()


def test_who_opens_a_journal_before_another_begins_it_does_not_begin_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.cadec-journal"
    claim = cadec_cli.fs.locks._lock_for_work

    def claim_too_late(descriptor: int, claimed: Path) -> None:
        monkeypatch.setattr("cadec_cli.fs.locks._lock_for_work", claim)
        with open_locked(path, "ab") as other:  # who is then killed
            other.write(b"begun\n")
        claim(descriptor, claimed)

    monkeypatch.setattr("cadec_cli.fs.locks._lock_for_work", claim_too_late)
    with pytest.raises(CadecError, match="there is an unfinished translation"):
        Journal.begin(path, {"input": "a"})
    assert path.read_bytes() == b"begun\n"


@pytest.mark.parametrize("flag", ["--force", "--resume", ""])
def test_translating_to_where_another_process_does_changes_nothing(
    flag: str, made_up_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("you see it.\n")
    journal = tmp_path / "out.txt.cadec-journal"
    arguments = ["translate", str(source), "-o", str(output), "-b", str(made_up_bundle), *FAST]
    with open_locked(journal, "ab") as stream:
        stream.write(b"what the other has done\n")
        stream.flush()
        assert exit_code([*arguments, *([flag] if flag else [])]) == 1
        assert "another process of cadec is at work" in " ".join(capsys.readouterr().err.split())
        assert journal.read_bytes() == b"what the other has done\n" and not output.exists()
        remove_locked(stream, journal)
    assert exit_code(arguments) == 0 and output.exists()


def test_augmenting_to_where_another_process_does_changes_nothing(
    made_up_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, part = tmp_path / "in.txt", tmp_path / "out.tsv.cadec-part"
    source.write_text("you see it.\n")
    arguments = ["augment", "back-translate", str(source), "-o", str(tmp_path / "out.tsv")]
    arguments += ["-b", str(made_up_bundle), "--resume", *FAST]
    with open_locked(part, "ab"):
        assert exit_code(arguments) == 1
        assert "another process of cadec is at work" in " ".join(capsys.readouterr().err.split())
        assert part.read_bytes() == b""
    assert exit_code(arguments) == 0 and not part.exists()


def test_a_run_is_trained_by_one_process_at_a_time(
    corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cadec_cli.fs.locks import locked_directory

    run = tmp_path / "run"
    run.mkdir()
    data = ["--data", str(corpora / "docs"), "--dev", str(corpora / "docs-dev")]
    sizes = ["--preset", "tiny", "--max-updates", "1"]
    with locked_directory(run):
        assert exit_code(["train", "lm", "-o", str(run), *data, *sizes, *FAST]) == 1
    assert "another process of cadec is at work" in " ".join(capsys.readouterr().err.split())
    assert not any(run.iterdir())


def _hold(path: str, pipe: Connection) -> None:
    with open_lock_file(Path(path)) as file:
        pipe.send(lock(file.fileno(), wait=False))
        pipe.recv()


def test_a_lock_is_held_by_one_process_and_freed_when_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_hold, args=(str(path), theirs))
    process.start()
    try:
        assert ours.poll(60) and ours.recv() is True
        with open_lock_file(path) as file:
            assert not lock(file.fileno(), wait=False)
            process.kill()
            process.join(60)
            assert lock(file.fileno(), wait=True)
    finally:
        process.kill()


def test_a_lock_ends_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with open_lock_file(path) as first, open_lock_file(path) as second:
        assert lock(first.fileno(), wait=False)
        assert not lock(second.fileno(), wait=False)
        first.close()
        assert lock(second.fileno(), wait=False)


def test_a_lock_is_private_and_leaves_what_it_finds(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with open_lock_file(path) as file:
        assert lock(file.fileno(), wait=False)
        assert not os.get_inheritable(file.fileno())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("somebody's own")
    with open_lock_file(path) as file:
        assert lock(file.fileno(), wait=False)
    assert path.read_text() == "somebody's own"


@pytest.mark.parametrize("kind", ["link", "dangling link", "directory", "FIFO", "device"])
def test_a_lock_is_a_file_of_its_own(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "lock", tmp_path / "other"
    if kind == "link":
        other.write_text("not to be emptied")
        path.symlink_to(other)
    elif kind == "dangling link":
        path.symlink_to(other)
    elif kind == "directory":
        path.mkdir()
    elif kind == "FIFO":
        os.mkfifo(path)
    else:
        path = Path(os.devnull)
    with pytest.raises(CadecError, match=str(path)) as refused:
        open_lock_file(path)
    assert "delete it" in refused.value.hint
    assert not other.exists() if kind != "link" else other.read_text() == "not to be emptied"


def test_a_lock_that_may_not_be_opened_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        open_lock_file(tmp_path / "file" / "lock")
