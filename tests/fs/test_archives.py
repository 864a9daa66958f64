"""Zip archives: what is read and written again, and what is refused."""

import io
import zipfile
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.fs.archives import open_archive

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\\:\0"), min_size=1, max_size=8).filter(
    lambda name: name != ".."
)


def zipped(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()


def contents(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@given(st.dictionaries(NAMES, st.binary(max_size=40), min_size=1, max_size=5), st.data())
def test_what_is_not_changed_stays_in_its_order(members: dict[str, bytes], data: st.DataObject) -> None:
    archive = open_archive(zipped(members), "a.zip", "an archive")
    assert archive.names == tuple(members)
    assert {name: archive.read(name) for name in archive.names} == members
    changed = data.draw(st.sampled_from(sorted(members)))
    written = archive.with_members({changed: b"other"})
    assert list(contents(written).items()) == list({**members, changed: b"other"}.items())
    assert written == archive.with_members({changed: b"other"})
    assert changed not in contents(archive.with_members({}, without={changed}))


def test_compression_stays() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("mimetype", b"application/epub+zip", zipfile.ZIP_STORED)
        archive.writestr("a.txt", b"a" * 100, zipfile.ZIP_DEFLATED)
    opened = open_archive(made.getvalue(), "a.zip", "an archive")
    again = open_archive(opened.with_members({"a.txt": b"b" * 100}), "a.zip", "an archive")
    assert [again.is_stored(name) for name in again.names] == [True, False]


def with_bytes(data: bytes, old: bytes, new: bytes) -> bytes:
    assert old in data and len(old) == len(new)
    return data.replace(old, new)


def encrypted() -> bytes:
    data = bytearray(zipped({"a": b"text"}))
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    return bytes(data)


def overlapping() -> bytes:
    """Two entries of the directory for one member."""
    data = zipped({"a": b"text", "b": b"text"}, zipfile.ZIP_STORED)
    first = data.index(b"PK\1\2")
    second = data.index(b"PK\1\2", first + 1)
    return data[: second + 42] + bytes(4) + data[second + 46 :]


def understated() -> bytes:
    """A member that says that it is smaller than it is."""
    data = bytearray(zipped({"a": b"x" * 100_000}))
    for place in (22, data.index(b"PK\1\2") + 24):
        data[place : place + 4] = (10).to_bytes(4, "little")
    return bytes(data)


def twice() -> bytes:
    return with_bytes(zipped({"a": b"1", "b": b"2"}, zipfile.ZIP_STORED), b"b", b"a")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not a book: it is not a zip archive"),
        (b"plain text", "is not a book: it is not a zip archive"),
        (zipped({"a": b"text" * 99})[:60], "damaged archive"),
        (zipped({"../a": b""}), "leaves the archive"),
        (zipped({"a/../../b": b""}), "leaves the archive"),
        (zipped({"/etc/passwd": b""}), "leaves the archive"),
        (zipped({"a\\..\\..\\b": b""}), "leaves the archive"),
        (zipped({"C:/a": b""}), "leaves the archive"),
        (zipped({"a": b"text"}, zipfile.ZIP_LZMA), "is compressed in a way"),
        (zipped({"a": b"0" * 3_000_000}), "unpacks to more than 2MB"),
        (zipped({str(number): b"0" * 300_000 for number in range(10)}), "unpacks to more than 2MB"),
        (twice(), "two members of one name"),
        (encrypted(), "is encrypted"),
        (overlapping(), "overlap"),
        (understated(), "damaged archive"),
        (with_bytes(zipped({"a": b"text"}, zipfile.ZIP_STORED), b"text", b"tent"), "damaged archive"),
    ],
)
def test_what_is_hostile_or_damaged_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(CadecError, match=said):
        open_archive(data, "a.epub", "a book", most=2_000_000)


def test_a_member_that_is_missing_or_too_large() -> None:
    archive = open_archive(zipped({"a": b"text" * 10}), "a.epub", "a book")
    with pytest.raises(CadecError, match=r"a\.epub has no b"):
        archive.read("b")
    with pytest.raises(CadecError, match=r"a\.epub: a is larger than 20B"):
        archive.read("a", most=20)


def test_many_members() -> None:
    with pytest.raises(CadecError, match="has more than"):
        open_archive(zipped(dict.fromkeys(map(str, range(20_001)), b"")), "a.epub", "a book")
