import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.files import read_json, read_lines, sha256
from cadec_cli.whole_files import atomic_directory, atomic_file, write_json


def contents(directory: Path) -> dict[str, bytes]:
    """All files below a directory, hidden ones too."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_a_whole_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a.txt"
    with atomic_file(path) as stream:
        stream.write(b"text")
        assert not path.exists()
    assert contents(tmp_path) == {"new/folder/a.txt": b"text"}


def test_a_whole_directory_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "new" / "d"
    with atomic_directory(path) as part:
        (part / "sub").mkdir()
        (part / "sub" / "a").write_bytes(b"1")
        assert not path.exists()
    assert contents(tmp_path) == {"new/d/sub/a": b"1"}


def test_files_get_the_usual_permissions(tmp_path: Path) -> None:
    usual_file, usual_directory = tmp_path / "usual", tmp_path / "usual-d"
    usual_file.touch()
    usual_directory.mkdir()
    with atomic_file(tmp_path / "file"), atomic_directory(tmp_path / "d"):
        pass
    for ours, usual in ((tmp_path / "file", usual_file), (tmp_path / "d", usual_directory)):
        assert stat.S_IMODE(ours.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)


@pytest.mark.parametrize("failure", [RuntimeError(), KeyboardInterrupt(), CadecError("so"), OSError("so")])
def test_a_failure_leaves_nothing_behind(tmp_path: Path, failure: BaseException) -> None:
    expected = CadecError if isinstance(failure, OSError) else type(failure)
    with pytest.raises(expected), atomic_file(tmp_path / "a") as stream:
        stream.write(b"half")
        raise failure
    with pytest.raises(expected), atomic_directory(tmp_path / "d") as part:
        (part / "a").write_bytes(b"half")
        raise failure
    assert list(tmp_path.iterdir()) == []


def test_a_failure_keeps_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"before")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_bytes(b"before")
    before = contents(tmp_path)
    with pytest.raises(RuntimeError), atomic_file(tmp_path / "a") as stream:
        stream.write(b"after")
        raise RuntimeError
    with pytest.raises(RuntimeError), atomic_directory(tmp_path / "d") as part:
        (part / "b").write_bytes(b"after")
        raise RuntimeError
    assert contents(tmp_path) == before


def test_success_replaces_what_was_there(tmp_path: Path) -> None:
    for text in (b"before", b"after"):
        with atomic_file(tmp_path / "a") as stream, atomic_directory(tmp_path / "d") as part:
            stream.write(text)
            (part / text.decode()).write_bytes(text)
    assert contents(tmp_path) == {"a": b"after", "d/after": b"after"}


def test_a_directory_of_another_kind_is_not_replaced(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    with atomic_directory(mine, marker="kind.json") as part:  # an empty one may be
        (part / "kind.json").touch()
    with atomic_directory(mine, marker="kind.json") as part:  # so may one of its kind
        (part / "kind.json").write_bytes(b"2")
    (mine / "kind.json").rename(mine / "letters.txt")
    with pytest.raises(CadecError, match="something else"), atomic_directory(mine, marker="kind.json"):
        pass
    assert contents(tmp_path) == {"mine/letters.txt": b"2"}


# A limit on the size of files is as real as a full disk, and needs none.
_LIMITED = """
import resource, sys
from pathlib import Path
from cadec_cli.errors import CadecError
from cadec_cli.whole_files import atomic_directory, atomic_file
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
path, kind, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
try:
    if kind == "file":
        with atomic_file(path, "make room") as stream:
            stream.write(bytes(size))
    else:
        with atomic_directory(path) as part:
            (part / "a").write_bytes(bytes(size))
except CadecError as error:
    print(error.message, error.hint, sep=";")
    sys.exit(1)
"""


@pytest.mark.parametrize("kind", ["file", "directory"])
@pytest.mark.parametrize("size", [4097, 100_000])  # found when the buffer is flushed, and while writing
def test_a_full_disk_is_an_error_that_names_the_file(tmp_path: Path, kind: str, size: int) -> None:
    target = tmp_path / "target"
    if kind == "file":
        target.write_bytes(b"before")
    else:
        target.mkdir()
        (target / "a").write_bytes(b"before")
    before = contents(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(target), kind, str(size)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (1, "")
    message, hint = done.stdout.strip().split(";")
    assert message == f"no space left to write {target}"
    assert hint == ("make room" if kind == "file" else "free some space and run it again")
    assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_a_place_that_can_not_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    with pytest.raises(CadecError, match="can't write"), atomic_file(tmp_path / "file" / "a"):
        pass
    with pytest.raises(CadecError, match="directory"), atomic_file(tmp_path / "directory"):
        pass
    with pytest.raises(CadecError, match="file"), atomic_directory(tmp_path / "file"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["directory", "file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_what_is_forbidden_is_an_error(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.touch()
    closed.chmod(0)
    with pytest.raises(CadecError, match="not allowed to read"):
        list(read_lines(closed))


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\n\r\nb\r\n", ["a", "", "b"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        ("a\u2028b\x0bc\x85d\n".encode(), ["a\u2028b\x0bc\x85d"]),  # ends of lines for str.splitlines only
    ],
)
def test_lines_are_what_wc_counts(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    assert list(read_lines(tmp_path / "a.txt")) == lines


@pytest.mark.parametrize(
    ("name", "content", "encoding", "message"),
    [
        ("a.txt", None, "utf-8", "no such file"),
        ("a.txt", b"ok\n\xff\n", "utf-8", r"line 2 is not utf-8 \(byte 0xff\)"),
        ("a.txt", b"ok\n", "klingon", "unknown encoding: klingon"),
        ("a.txt", b"ok\n", "rot13", "unknown encoding"),
        ("a.txt", b"ok\n", "a\0b", "unknown encoding"),
        ("a.txt.gz", b"plain text", "utf-8", "can't read"),
        ("a.txt.xz", b"plain text", "utf-8", "can't read"),
        ("a.txt.zst", b"plain text", "utf-8", "can't read"),
    ],
)
def test_lines_that_can_not_be_read_are_an_error(
    tmp_path: Path, name: str, content: bytes | None, encoding: str, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(CadecError, match=message):
        list(read_lines(tmp_path / name, encoding))


def test_a_directory_is_not_a_file(tmp_path: Path) -> None:
    for read in (lambda path: list(read_lines(path)), read_json, sha256):
        with pytest.raises(CadecError, match="is a directory"):
            read(tmp_path)


def test_other_encodings_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("Да\nнет\n".encode("cp1251"))
    assert list(read_lines(tmp_path / "a.txt", "cp1251")) == ["Да", "нет"]


def test_json_comes_back(tmp_path: Path) -> None:
    value = {"слово": [1, 2.5, None, "\u2028"]}
    write_json(tmp_path / "a.json", value)
    assert read_json(tmp_path / "a.json") == value
    assert "слово" in (tmp_path / "a.json").read_text("utf-8")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000])
def test_broken_json_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(CadecError, match="not valid JSON"):
        read_json(tmp_path / "a.json")
