"""`-o` as a shell's `>` would: pipes and devices written to, links followed, permissions kept, long names."""

import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cadec_cli.jobs.back_translation import PairFile
from cadec_cli.jobs.journal import Journal
from cadec_cli.main import exit_code
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.devices import device
from tests.helpers.directory_contents import contents
from tests.helpers.repl_parts import SENTENCES, tiny_bundle

FAST = ["--nbest", "4", "--compute-type", "float32", "--threads", "1"]

Run = Callable[..., int]


@pytest.fixture(scope="module")
def bundle(english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bundle(tmp_path_factory.mktemp("special"), english, russian)


@pytest.fixture
def run(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Translate in a directory that holds `a.txt`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("\n".join(SENTENCES) + "\n")
    return lambda *arguments: exit_code(["translate", "-b", str(bundle), *FAST, "-q", *arguments])


@pytest.fixture
def expected(run: Run, tmp_path: Path) -> bytes:
    """What `a.txt` becomes."""
    assert run("a.txt", "-o", "expected") == 0
    made = (tmp_path / "expected").read_bytes()
    (tmp_path / "expected").unlink()
    return made


def error(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())


def through_a_pipe(run: Callable[[str], int]) -> bytes:
    """What a command writes to /dev/fd/N, as in `-o >(…)`."""
    read_end, write_end = os.pipe()
    given: list[bytes] = []
    with os.fdopen(read_end, "rb") as stream:
        reader = threading.Thread(target=lambda: given.append(stream.read()), daemon=True)
        reader.start()
        try:
            assert run(f"/dev/fd/{write_end}") == 0
        finally:
            os.close(write_end)
        reader.join(30)
    return b"".join(given)


def test_a_translation_goes_down_a_pipe(run: Run, expected: bytes, tmp_path: Path) -> None:
    assert through_a_pipe(lambda name: run("a.txt", "-o", name)) == expected
    os.mkfifo("pipe")
    given: list[bytes] = []
    reader = threading.Thread(target=lambda: given.append(Path("pipe").read_bytes()), daemon=True)
    reader.start()
    assert run("a.txt", "-o", "pipe") == 0
    reader.join(30)
    assert given == [expected]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "pipe"]  # and no journal


def test_a_translation_goes_to_a_device(
    run: Run, expected: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    null, full = device(tmp_path, "null"), device(tmp_path, "full")
    before = set(tmp_path.iterdir())
    for _ in range(2):
        assert run("a.txt", "-o", str(null)) == 0
    assert null.is_char_device() and set(tmp_path.iterdir()) == before
    assert run("a.txt", "-o", "/dev/fd/1") == 0
    assert capfd.readouterr().out.encode() == expected
    assert run("a.txt", "-o", str(full)) == 1
    assert "no space left to write" in capfd.readouterr().err


def test_what_goes_down_a_pipe_can_not_be_resumed(
    run: Run, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    null = str(device(tmp_path, "null"))
    assert run("a.txt", "-o", null, "--resume") == 2
    assert "--resume needs a file" in error(capsys)
    augment = [
        "augment",
        "back-translate",
        "a.txt",
        "-b",
        str(bundle),
        "--compute-type",
        "float32",
        "-q",
        "-o",
    ]
    assert exit_code([*augment, null, "--resume"]) == 2
    assert "--resume needs a file" in error(capsys)
    assert exit_code([*augment, "pairs.tsv"]) == 0
    assert through_a_pipe(lambda name: exit_code([*augment, name])) == Path("pairs.tsv").read_bytes()


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("We saw the ship and the ship saw us .\n")
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = ["train", "truecaser", "a.txt", "-l", "en", "--processes", "1", "-o", f"/dev/fd/{write_end}"]
    done = subprocess.run(
        [sys.executable, "-m", "cadec_cli", *command, "-q"],
        pass_fds=[write_end],
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    os.close(write_end)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_link_stays_and_what_it_leads_to_is_replaced(
    run: Run, expected: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "b.txt").write_text("before")
    for name, target in (("link", "there/b.txt"), ("dangling", "there/c.txt"), ("input", "a.txt")):
        (tmp_path / name).symlink_to(target)
    (tmp_path / "circle").symlink_to("circle")
    for name in ("link", "dangling"):
        assert run("a.txt", "-o", name) == 1 and "exists already" in error(capsys)
        assert run("a.txt", "-o", name, "--force") == 0
        assert (tmp_path / name).is_symlink()
    assert contents(tmp_path / "there") == {"b.txt": expected, "c.txt": expected}
    assert run("a.txt", "-o", "input", "--force") == 1 and "is the input" in error(capsys)
    assert run("a.txt", "-o", "circle", "--force") == 1 and "leads to itself" in error(capsys)


def test_two_outputs_that_are_one_file_are_refused(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b.txt").write_text("Tom wants it.\n")
    (tmp_path / "a.ru.txt").symlink_to("b.ru.txt")
    assert run("a.txt", "b.txt", "-o", ".", "--force") == 1
    assert "a.ru.txt and b.ru.txt are the same file" in error(capsys)


def test_a_private_file_stays_private(run: Run, expected: bytes, tmp_path: Path) -> None:
    (tmp_path / "out.txt").touch()
    (tmp_path / "out.txt").chmod(0o600)
    assert run("a.txt", "-o", "out.txt", "--force") == 0
    assert (tmp_path / "out.txt").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "out.txt").read_bytes() == expected


def test_unfinished_work_is_for_nobody_else(tmp_path: Path) -> None:
    def stopped() -> Iterator[list[str]]:
        yield ["Tom.\tТом."]
        raise KeyboardInterrupt

    pairs = PairFile(tmp_path / "pairs.tsv", {})
    with pytest.raises(KeyboardInterrupt):
        pairs.write(stopped())
    Journal.begin(tmp_path / "journal", {})
    for path in (pairs.part, tmp_path / "journal"):
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_name_may_be_as_long_as_names_are(run: Run, expected: bytes, tmp_path: Path) -> None:
    for name in ("x" * 255, "я" * 125 + ".txt"):
        assert run("a.txt", "-o", name) == 0
        assert (tmp_path / name).read_bytes() == expected
    assert len(list(tmp_path.iterdir())) == 3


def test_a_name_that_is_too_long_is_known_before_the_work(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def translated(*_: object) -> None:
        raise AssertionError("the work was begun")

    monkeypatch.setattr("cadec_cli.jobs.in_step.FileTranslation.to_files", translated)
    source = tmp_path / ("я" * 125 + ".txt")  # 254 bytes: with .ru there are more than a name has
    source.write_text("Tom wants it.\n")
    before = contents(tmp_path)
    for output in ("out/", "out/{stem}.{to}{ext}", "new/{name}.{to}", "x" * 256, "out/" + "x" * 256):
        assert run(source.name, "-o", output) == 1
        assert "too long" in error(capsys)
    for output in ("a.txt/b.txt", "a.txt/{stem}/c.txt"):
        assert run(source.name, "-o", output) == 1
        assert "a.txt is a file, not a directory" in error(capsys)
    assert contents(tmp_path) == before and not (tmp_path / "out").exists()


def test_what_can_not_become_a_directory_or_a_file_is_known_before_the_work(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "b").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    for command, output, message in (
        ("truecaser", "d", "d is a directory, not a file"),
        ("tokenizer", "b", "b is a file, not a directory"),
        ("tokenizer", "full", "full exists and holds something else"),
        ("tokenizer", str(device(tmp_path, "null")), "null is not a directory"),
    ):
        arguments = ["missing.txt", "-l", "en", "-o", output, "--processes", "1", "--force"]
        assert exit_code(["train", command, *arguments]) == 1
        assert message in error(capsys)


def test_compressed_input_comes_out_under_the_name_of_what_it_is(
    run: Run, expected: bytes, tmp_path: Path
) -> None:
    (tmp_path / "z.txt.gz").write_bytes(gzip.compress((tmp_path / "a.txt").read_bytes()))
    assert run("z.txt.gz", "-o", "out/") == 0
    assert contents(tmp_path / "out") == {"z.ru.txt": expected}
