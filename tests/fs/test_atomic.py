"""What is written appears whole or not at all, where it was meant to, and for those who may read it."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_directory, atomic_file, write_json
from tests.helpers.directory_contents import contents


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
from cadec_cli.fs.atomic import atomic_directory, atomic_file
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


# Links: they stay, and what they lead to is replaced.


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "old").write_bytes(b"before")
    (tmp_path / "there" / "d").mkdir()
    (tmp_path / "one").symlink_to("two")
    for link, target in (("two", "there/old"), ("dangling", "there/deep/new"), ("d", "there/d")):
        (tmp_path / link).symlink_to(target)
    for name in ("one", "dangling"):
        with atomic_file(tmp_path / name) as stream:
            assert not list(tmp_path.glob(".*"))  # on its way it is beside what it becomes
            stream.write(b"after")
    with atomic_directory(tmp_path / "d") as part:
        (part / "a").write_bytes(b"after")
    assert all((tmp_path / name).is_symlink() for name in ("one", "two", "dangling", "d"))
    assert contents(tmp_path / "there") == {"old": b"after", "deep/new": b"after", "d/a": b"after"}


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for write in (atomic_file, atomic_directory):
        with pytest.raises(CadecError, match="leads to itself"), write(tmp_path / "a"):
            pass
    with pytest.raises(CadecError, match="can't write"), atomic_file(tmp_path / "a" / "x"):
        pass


# Permissions: nobody gets to see what they did not see before.


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o444, 0o755])
def test_permissions_are_kept(tmp_path: Path, permissions: int) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(permissions)
    (tmp_path / "d").mkdir()
    (tmp_path / "d").chmod(permissions | 0o300)
    with atomic_file(tmp_path / "file") as stream, atomic_directory(tmp_path / "d") as part:
        assert part.is_dir()
        for path in tmp_path.glob(".*"):
            assert mode(path) & 0o077 == 0, "open to others before it is whole"
        stream.write(b"text")
    assert mode(tmp_path / "file") == permissions
    assert mode(tmp_path / "d") == permissions | 0o300


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.chown(tmp_path / "file", 1234, 5678)
    with atomic_file(tmp_path / "file") as stream:
        stream.write(b"text")
    found = (tmp_path / "file").stat()
    assert (found.st_uid, found.st_gid) == (1234, 5678)


def test_a_group_that_can_not_be_kept_gets_what_everybody_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(errno.EPERM, "not yours to give")

    monkeypatch.setattr(os, "fchown", forbidden)
    for before, after in ((0o640, 0o600), (0o664, 0o644), (0o755, 0o755)):
        (tmp_path / "file").touch()
        (tmp_path / "file").chmod(before)
        with atomic_file(tmp_path / "file"):
            pass
        assert mode(tmp_path / "file") == after


def test_private_files_are_for_nobody_else(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "new", private=True):
        assert [mode(path) for path in tmp_path.iterdir()] == [0o600]
    assert mode(tmp_path / "new") == 0o600


def test_the_name_is_on_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    write_json(tmp_path / "a.json", 1)
    assert synced[-1] == tmp_path and len(synced) == 2
    with atomic_directory(tmp_path / "d") as part:
        (part / "sub").mkdir()
        (part / "sub" / "a").touch()
    assert {path.name for path in synced[2:]} == {"a", "sub", part.name, tmp_path.name}
