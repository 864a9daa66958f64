import os
from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import write_json
from cadec_cli.fs.read import read_json, read_lines, sha256


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
