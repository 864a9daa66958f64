"""Checks the files of a bundle against its manifest: every listed file is there, and nothing else is.

Files must be ordinary ones, in ordinary directories. A link is followed only if the manifest says that it is
one and where it leads. The directories of parts hold nothing that is not listed, except files that operating
systems leave behind and no loader takes for a model. So a library that reads such a directory finds only what
was checked. Beside the parts, at the top, there may be anything (a README, docs/, names that start with a
dot): it is never read or copied.

The bundle that came with cadec may consist of links, which some installers make (uv, Nix, Bazel). Anybody
who could change those could change the program too. Its checksums are computed like all others.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from cadec_cli.bundle.find import is_embedded
from cadec_cli.bundle.manifest import AGAIN, MANIFEST, FileRecord, Manifest, foreign_files, is_part_path
from cadec_cli.errors import CadecError
from cadec_cli.fs.read import read_errors, sha256
from cadec_cli.parallel import available_cores
from cadec_cli.validation import quote_value

_LINK, _NOT_LISTED = "is a symbolic link", f"is not listed in {MANIFEST}"
_NO_LINKS = "a copy without links can be used: cp -rL BUNDLE COPY"
_EXTRA = "delete what is not listed, or move it elsewhere"

# What file browsers leave in every directory that somebody looks at, what macOS adds to each file on other
# systems' disks, and what NFS keeps of a deleted file that is still open. A `*` of pathlib finds those with a
# dot: models.foreign_sizes leaves them out.
_LEFT_BEHIND = (".DS_Store", "Thumbs.db", "desktop.ini")
_LEFT_BEHIND_STARTS = ("._", ".nfs")

# How many problems an error names, and how many are looked for.
_SHOWN, _MOST = 5, 100


def check_files(
    directory: Path, manifest: Manifest, checksums: bool = True, parts: Iterable[str] | None = None
) -> None:
    """Refuse a bundle with files missing, truncated, modified or not listed, and name all of them.

    With `parts`, checksums are computed of their files only.
    """
    wrong = [f"no bundle has a file {quote_value(name)}" for name in foreign_files(manifest)]
    there = set()
    sound = []
    starts = None if parts is None else tuple(f"{part}/" for part in parts)
    for name, kind in _entries(directory, manifest):
        there.add(name)
        if name not in manifest.files:
            wrong.append(_describe_unlisted(name, kind))
        elif problem := _misfit(directory / name, name, kind, manifest):
            wrong.append(problem)
        elif checksums and (starts is None or name.startswith(starts)):
            sound.append(name)
        if len(wrong) >= _MOST:
            break
    else:
        wrong += [_missing(name, manifest) for name in manifest.files if name not in there]
    wrong += _find_modified(directory, manifest, sound)
    if wrong:
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise CadecError(
            f"the bundle {directory} is damaged: " + "; ".join(sorted(wrong)[:_SHOWN]) + more, _hint(wrong)
        )


def _find_modified(directory: Path, manifest: Manifest, names: Sequence[str]) -> list[str]:
    """What is wrong with the content of files, several of which are read at a time."""
    with ThreadPoolExecutor(available_cores()) as threads:
        found = threads.map(sha256, [directory / name for name in names])
        return [
            f"{name} (checksum mismatch: modified or damaged)"
            for name, checksum in zip(names, found, strict=True)
            if checksum != manifest.files[name].sha256
        ]


def _hint(wrong: Sequence[str]) -> str:
    if any(problem.endswith(_LINK) for problem in wrong):
        return _NO_LINKS
    return _EXTRA if all(problem.endswith(_NOT_LISTED) for problem in wrong) else AGAIN


def copy_files(
    directory: Path, manifest: Manifest, parts: Iterable[str], output: Path
) -> dict[str, FileRecord]:
    """Copy the files of some parts of a bundle, or single ones, links as links. Return what was copied.

    A file that is not what the manifest lists is a CadecError. Links are not read, and not in the result.
    """
    starts, follow = tuple(f"{part}/" for part in parts), is_embedded(directory)
    copied = {}
    for name, expected in manifest.files.items():
        if not f"{name}/".startswith(starts):
            continue
        copy = output / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if name in manifest.links:
            copy.symlink_to(manifest.links[name])
        else:
            copied[name] = _copy_file(directory / name, copy, follow=follow)
            if copied[name] != expected:
                raise CadecError(f"{directory / name} is not what the bundle lists any more", AGAIN)
    return copied


def _copy_file(path: Path, copy: Path, *, follow: bool) -> FileRecord:
    """Copy a file, which is a link only where those are followed, and return what was copied."""
    digest, size = hashlib.sha256(), 0
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
    if not follow:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    with read_errors(path):
        descriptor = os.open(path, flags)
    with os.fdopen(descriptor, "rb") as stream, copy.open("wb") as written:
        while block := stream.read(1 << 20):
            digest.update(block)
            size += len(block)
            written.write(block)
    return FileRecord(digest.hexdigest(), size)


def _entries(directory: Path, manifest: Manifest) -> Iterator[tuple[str, int]]:
    """All that matters in a directory, by name, with its kind: files of parts, and listed ones at the top."""
    expected = {str(parent) for name in manifest.files for parent in PurePosixPath(name).parents}
    follow = is_embedded(directory)
    waiting = [""]
    while waiting:
        place = waiting.pop()
        with read_errors(directory / place), os.scandir(directory / place) as found:
            entries = sorted(
                (entry.name, entry.stat(follow_symlinks=follow).st_mode)
                for entry in found
                if not follow or Path(entry).exists()  # a link that leads nowhere is a file that is missing
            )
        for own, mode in entries:
            name, kind = f"{place}{own}", stat.S_IFMT(mode)
            if kind == stat.S_IFDIR and name in expected:
                waiting.append(f"{name}/")
            elif name in manifest.files or not _is_harmless(name, kind):
                yield name, kind


def _is_harmless(name: str, kind: int) -> bool:
    """Tell whether something that is not listed may lie there: nothing reads it."""
    path = PurePosixPath(name)
    if len(path.parts) == 1:
        is_beside = kind == stat.S_IFREG or (kind == stat.S_IFDIR and not is_part_path(name))
        return name.startswith(".") or is_beside
    left_behind = path.name in _LEFT_BEHIND or path.name.startswith(_LEFT_BEHIND_STARTS)
    return kind == stat.S_IFREG and left_behind


def _describe_unlisted(name: str, kind: int) -> str:
    if kind == stat.S_IFLNK:
        return f"{quote_value(name)} {_LINK}"
    what = "/" if kind == stat.S_IFDIR else ""
    return f"{quote_value(name + what)} {_NOT_LISTED}"


def _misfit(path: Path, name: str, kind: int, manifest: Manifest) -> str | None:
    """What is wrong with a file that is listed, its content aside."""
    expected, linked = manifest.files[name], manifest.links.get(name)
    if linked is not None:
        if kind != stat.S_IFLNK or str(path.readlink()) != linked:
            return f"{name} is no link to {linked}"
        if not path.exists():
            return _missing(name, manifest)
    elif kind == stat.S_IFLNK:
        return f"{name} {_LINK}"
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        return f"{name} is no ordinary file"
    if about.st_size != expected.size:
        state = "truncated" if about.st_size < expected.size else "modified"
        return f"{name} is {state} ({about.st_size:,} bytes, not {expected.size:,})"
    if linked is not None and not about.st_size:  # files of the kernel say that they are empty, and go on
        return f"{name} is linked to an empty file"
    return None


def _missing(name: str, manifest: Manifest) -> str:
    linked = f" (it was linked to {manifest.links[name]})" if name in manifest.links else ""
    return f"{name} is missing{linked}"
