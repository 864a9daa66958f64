"""Zip archives from anybody: read within bounds, never unpacked to disk, and written with other members.

Formats such as .docx, .odt and .epub are archives of many files. An archive is checked as a whole before any
of it is used: what is damaged, encrypted, ambiguous or too large to unpack is one CadecError. Sizes that the
archive states are not trusted; every member is decompressed once, in pieces, and compared with its checksum.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import size_name

MAX_MEMBERS = 20_000
MAX_UNPACKED = 512_000_000  # bytes of all members together
MAX_MEMBER = 64_000_000  # bytes of a member that is read whole

_CHUNK = 1 << 20
_LONGEST_NAME = 1000
_DAMAGED = "the file may be truncated or of another format"


@dataclass(frozen=True)
class Archive:
    """A zip archive whose members have been checked; a member is decompressed when it is read."""

    name: str  # of the file, for messages
    _file: zipfile.ZipFile = field(repr=False)
    _members: Mapping[str, zipfile.ZipInfo] = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The members in the order of the archive, directories included."""
        return tuple(self._members)

    def __contains__(self, member: object) -> bool:
        return member in self._members

    def is_stored(self, member: str) -> bool:
        """Tell whether a member is not compressed."""
        return self._members[member].compress_type == zipfile.ZIP_STORED

    def read(self, member: str, *, most: int = MAX_MEMBER) -> bytes:
        """Return the content of a member; one that is missing or larger than `most` is a CadecError."""
        if member not in self._members:
            raise CadecError(f"{self.name} has no {member}", _DAMAGED)
        if self._members[member].file_size > most:
            raise CadecError(f"{self.name}: {member} is larger than {size_name(most)}")
        return b"".join(self._pieces(member))

    def with_members(
        self, changed: Mapping[str, bytes], *, without: Collection[str] = (), first: str = ""
    ) -> bytes:
        """Return an archive like this one with the content of some members changed, and `without` others.

        Order, names, times and compression stay, so that the same changes give the same bytes; but a member
        that has to be `first`, such as one that says what the archive is, is so, and is not compressed.
        """
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as copy:
            for member, info in sorted(self._members.items(), key=lambda one: one[0] != first):
                if member in without:
                    continue
                like = zipfile.ZipInfo(member, info.date_time)
                like.compress_type, like.external_attr = info.compress_type, info.external_attr
                like.create_system, like.comment = info.create_system, info.comment
                if member == first:
                    like.compress_type = zipfile.ZIP_STORED
                if member in changed:
                    copy.writestr(like, changed[member])
                    continue
                like.file_size = info.file_size
                with copy.open(like, "w") as out:
                    for piece in self._pieces(member):
                        out.write(piece)
        return written.getvalue()

    def _pieces(self, member: str) -> Iterator[bytes]:
        info = self._members[member]
        left = info.file_size
        with self._file.open(info) as stream:
            while piece := stream.read(_CHUNK):
                left -= len(piece)
                if left < 0:
                    raise zipfile.BadZipFile(f"{member} is larger than it says")
                yield piece
        if left:
            raise zipfile.BadZipFile(f"{member} is truncated")


def open_archive(data: bytes, name: str, what: str, *, most: int = MAX_UNPACKED) -> Archive:
    """Check a whole archive and return it; `what` is the kind of file that was expected, as “a .docx file”.

    An archive that can't be read in full, that would unpack to more than `most` bytes, or that has names
    which are used twice or leave the archive, is a CadecError.
    """
    if not data.startswith(b"PK"):
        raise CadecError(f"{name} is not {what}: it is not a zip archive", _DAMAGED)
    try:
        file = zipfile.ZipFile(io.BytesIO(data))
        members = _checked(file.infolist(), name, most)
        archive = Archive(name, file, members)
        for member in members:
            for _ in archive._pieces(member):
                pass
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
        raise CadecError(f"{name} is a damaged archive: {error}", _DAMAGED) from None
    except RuntimeError:
        raise CadecError(f"{name} is encrypted", "save it without a password first") from None
    return archive


def _checked(found: list[zipfile.ZipInfo], name: str, most: int) -> dict[str, zipfile.ZipInfo]:
    if len(found) > MAX_MEMBERS:
        raise CadecError(f"{name} has more than {MAX_MEMBERS:,} members")
    if sum(info.file_size for info in found) > most:
        raise CadecError(f"{name} unpacks to more than {size_name(most)}", "is it from somebody you trust?")
    members: dict[str, zipfile.ZipInfo] = {}
    end = 0
    for info in sorted(found, key=lambda info: info.header_offset):
        member = info.orig_filename
        shown = repr(member[:80])
        if not _stays_inside(member):
            raise CadecError(f"{name} has a member that leaves the archive: {shown}")
        if member in members:
            raise CadecError(f"{name} has two members of one name: {shown}")
        if info.flag_bits & 0x1:
            raise CadecError(f"{name} is encrypted", "save it without a password first")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise CadecError(f"{name}: {shown} is compressed in a way that such a file never is")
        # Members that overlap can unpack to far more than the archive has room for.
        if info.header_offset < end:
            raise CadecError(f"{name} has members that overlap: {shown}")
        end = info.header_offset + 30 + info.compress_size
        members[member] = info
    return {info.orig_filename: info for info in found}


def _stays_inside(member: str) -> bool:
    """Tell whether a name is that of a file or directory below the archive's top."""
    parts = member.replace("\\", "/").split("/")
    odd = not member or len(member) > _LONGEST_NAME or "\0" in member or parts[0].endswith(":")
    return not (odd or parts[0] == "" or ".." in parts)
