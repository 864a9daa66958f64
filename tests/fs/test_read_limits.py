"""What is read is bounded: by a limit on whole texts, by the length of a line, and in memory all along."""

import gzip
import json
import lzma
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import MAX_LINE_LENGTH, parse_json, read_json, read_lines, read_text, size_name
from cadec_cli.terminal.flags import size_in_bytes

PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
}
ENOUGH = 48 << 20  # bytes in memory, for a result of one megabyte


def bomb(path: Path, content: bytes, times: int) -> Path:
    """A file that unpacks to `times` the content: compressed files may have several parts."""
    path.write_bytes(PACKED[path.suffix[1:]](content) * times)
    return path


def peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", PACKED)
def test_a_bomb_is_refused_in_bounded_memory(kind: str, tmp_path: Path) -> None:
    path = bomb(tmp_path / f"a.txt.{kind}", bytes(32_000_000), 5)
    assert path.stat().st_size < 400_000

    def read() -> None:
        with pytest.raises(CadecError, match="decompressed, is larger than 1MB") as error:
            read_text(path, most=1_000_000)
        assert 'max_input="2MB"' in error.value.hint

    assert peak(read) < ENOUGH


@pytest.mark.parametrize("kind", PACKED)
def test_lines_stream_whatever_they_unpack_to(kind: str, tmp_path: Path) -> None:
    path = bomb(tmp_path / f"a.txt.{kind}", (b"text " * 1000 + b"\n") * 1000, 16)
    assert peak(lambda: sum(1 for _ in read_lines(path))) < ENOUGH
    with pytest.raises(CadecError, match="larger than 5MB"):
        list(read_lines(path, most=5_000_000))


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_a_line_that_never_ends_is_an_error(name: str, tmp_path: Path) -> None:
    content = b"ok\n" + bytes(MAX_LINE_LENGTH + 1)
    (tmp_path / name).write_bytes(gzip.compress(content, 1) if name.endswith("gz") else content)
    with pytest.raises(CadecError, match=r"line 2 is longer than 16MB"):
        list(read_lines(tmp_path / name))
    (tmp_path / name).write_bytes(content[:4] if name == "a.txt" else gzip.compress(content[:4]))
    assert list(read_lines(tmp_path / name)) == ["ok", "\0"]


def test_the_limit_is_exact_and_counts_what_is_unpacked(tmp_path: Path) -> None:
    content = "слово\n".encode() * 100
    for kind, pack in {**PACKED, "txt": bytes}.items():
        path = tmp_path / f"a.{kind}"
        path.write_bytes(pack(content))
        assert read_text(path, most=len(content)).text.encode() == content
        with pytest.raises(CadecError, match="larger than"):
            read_text(path, most=len(content) - 1)


def huge_window() -> bytes:
    """A zstd frame of five bytes that asks for a window of 2 GiB."""
    last_raw_block = (5 << 3 | 1).to_bytes(3, "little")
    return bytes([0x28, 0xB5, 0x2F, 0xFD, 0, (31 - 10) << 3]) + last_raw_block + b"hello"


def huge_dictionary() -> bytes:
    """An xz file of five bytes that asks for a dictionary of 2 GiB."""
    packed = lzma.compress(b"hello")
    header = bytearray(packed[12 : 12 + (packed[12] + 1) * 4])
    header[header.index(0x21) + 2] = 38
    header[-4:] = zlib.crc32(header[:-4]).to_bytes(4, "little")
    return packed[:12] + bytes(header) + packed[12 + len(header) :]


@pytest.mark.parametrize("before", [b"", b"first\n"], ids=["at once", "later"])
@pytest.mark.parametrize(("kind", "content"), [("zst", huge_window()), ("xz", huge_dictionary())])
def test_unpacking_that_needs_gigabytes_is_refused(
    kind: str, content: bytes, before: bytes, tmp_path: Path
) -> None:
    path = tmp_path / f"a.{kind}"
    path.write_bytes((PACKED[kind](before) if before else b"") + content)
    for read in (read_text, lambda path: list(read_lines(path))):
        with pytest.raises(CadecError, match="more than 256 MiB of memory to decompress"):
            read(path)


@pytest.mark.parametrize("size", [1, 1234, 5_000, 64_000_000, 1_500_000_000, 10**12])
def test_sizes_are_named_as_they_are_given(size: int) -> None:
    assert size_in_bytes(size_name(size)) == size


@pytest.mark.parametrize("text", ["[" * 5000 + "]" * 5000, '{"a":' * 101 + "1" + "}" * 101, "[" * 10**6])
def test_json_nested_absurdly_deep_is_an_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nested"):
        parse_json(text)
    (tmp_path / "a.json").write_text(text, "utf-8")
    with pytest.raises(CadecError, match="not valid JSON"):
        read_json(tmp_path / "a.json")


def test_json_that_is_only_long_is_none() -> None:
    assert parse_json("[" + "[[]]," * 5000 + "[]]") == [*[[[]]] * 5000, []]
    assert parse_json(b'{"a": "' + b"[" * 500 + b'"}') == {"a": "[" * 500}


def test_json_that_is_too_large_has_nothing_to_do_with_a_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cadec_cli.fs.read._MAX_JSON", 1000)
    (tmp_path / "a.json").write_text(json.dumps("a" * 1000))
    with pytest.raises(CadecError, match="is larger than 1kB") as refused:
        read_json(tmp_path / "a.json")
    assert refused.value.hint and "max_input" not in refused.value.hint


@pytest.mark.parametrize("name", ["a\0b", "a\ud800"])
def test_names_that_no_file_can_have(name: str) -> None:
    for read in (read_text, read_json, lambda path: list(read_lines(path))):
        with pytest.raises(CadecError, match="no file can have the name"):
            read(Path(name))
