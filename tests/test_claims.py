"""Work that another process is at is left alone, whatever a user asks for."""

import os
from pathlib import Path

import pytest

from cadec_cli.claims import open_claimed, remove_claimed, remove_unclaimed
from cadec_cli.decoding.journal import Journal
from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code

FAST = ["--threads", "1", "--quiet"]


def test_a_claim_is_for_one_and_ends_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "work"
    with open_claimed(path, "ab") as first:
        first.write(b"begun\n")
        for attempt in (lambda: open_claimed(path, "ab"), lambda: remove_unclaimed(path)):
            with pytest.raises(CadecError, match="another process"):
                attempt()
    with open_claimed(path, "ab") as second:
        assert second.tell() == len(b"begun\n")
        remove_claimed(second, path)
    assert not path.exists()
    remove_unclaimed(path)  # there is nothing to remove


def test_a_claim_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "work"
    if not (child := os.fork()):
        open_claimed(path, "ab")
        os._exit(0)
    os.waitpid(child, 0)
    open_claimed(path, "ab").close()


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


@pytest.mark.parametrize("flag", ["--force", "--resume", ""])
def test_translating_to_where_another_process_does_changes_nothing(
    flag: str, made_up_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("you see it.\n")
    journal = tmp_path / "out.txt.cadec-journal"
    arguments = ["translate", str(source), "-o", str(output), "-b", str(made_up_bundle), *FAST]
    with open_claimed(journal, "ab") as stream:
        stream.write(b"what the other has done\n")
        stream.flush()
        assert exit_code([*arguments, *([flag] if flag else [])]) == 1
        assert "another process of cadec is at work" in " ".join(capsys.readouterr().err.split())
        assert journal.read_bytes() == b"what the other has done\n" and not output.exists()
        remove_claimed(stream, journal)
    assert exit_code(arguments) == 0 and output.exists()


def test_augmenting_to_where_another_process_does_changes_nothing(
    made_up_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, part = tmp_path / "in.txt", tmp_path / "out.tsv.cadec-part"
    source.write_text("you see it.\n")
    arguments = ["augment", "back-translate", str(source), "-o", str(tmp_path / "out.tsv")]
    arguments += ["-b", str(made_up_bundle), "--resume", *FAST]
    with open_claimed(part, "ab"):
        assert exit_code(arguments) == 1
        assert "another process of cadec is at work" in " ".join(capsys.readouterr().err.split())
        assert part.read_bytes() == b""
    assert exit_code(arguments) == 0 and not part.exists()


def test_a_run_is_trained_by_one_process_at_a_time(
    corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cadec_cli.claims import claimed_directory

    run = tmp_path / "run"
    run.mkdir()
    data = ["--data", str(corpora / "docs"), "--dev", str(corpora / "docs-dev")]
    sizes = ["--preset", "tiny", "--max-updates", "1"]
    with claimed_directory(run):
        assert exit_code(["train", "lm", "-o", str(run), *data, *sizes, *FAST]) == 1
    assert "another process of cadec is at work" in " ".join(capsys.readouterr().err.split())
    assert not any(run.iterdir())
