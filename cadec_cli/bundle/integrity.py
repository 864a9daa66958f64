"""Checks the files of a bundle against its manifest: all listed files exist, and no others.

Files must be regular files, in real directories. A link is followed only if the manifest lists it with its
target. The directories of parts contain only listed files, except files that operating systems leave behind
and no loader takes for a model. So a library that reads such a directory finds only checked files. Beside the
parts, at the top level, other files are allowed (a README, docs/, names that start with a dot): they are
never read or copied.

The bundle that came with cadec may consist of links, which some installers make (uv, Nix, Bazel). Anybody
who could change those could change the program too. Its checksums are computed like all others.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
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
_EXTRA = "delete the files that are not listed, or move them elsewhere"

# Files that file browsers leave in every directory they show, files that macOS adds on other systems' disks,
# and files that NFS keeps of deleted files that are still open. pathlib's `*` finds those with a dot:
# models.foreign_sizes leaves them out.
_LEFT_BEHIND = (".DS_Store", "Thumbs.db", "desktop.ini")
_LEFT_BEHIND_STARTS = ("._", ".nfs")

# How many problems an error names, and how many are collected.
_SHOWN, _MOST = 5, 100


def check_files(
    directory: Path,
    manifest: Manifest,
    checksums: bool = True,
    parts: Iterable[str] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Raise a CadecError that names the files that are missing, truncated, modified or not listed.

    With `parts`, checksums are computed only for the files of these parts. `meanwhile` is called while they
    are computed.
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
    wrong += _find_modified(directory, manifest, sound, meanwhile)
    if wrong:
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise CadecError(
            f"the bundle {directory} is damaged: " + "; ".join(sorted(wrong)[:_SHOWN]) + more, _hint(wrong)
        )


def _find_modified(
    directory: Path, manifest: Manifest, names: Sequence[str], meanwhile: Callable[[], None]
) -> list[str]:
    """Return a message for each file whose content was modified; several files are read at a time."""
    # The largest first: a core should not begin one when the others are done.
    names = sorted(names, key=lambda name: -manifest.files[name].size)
    with ThreadPoolExecutor(available_cores()) as threads:
        found = threads.map(sha256, [directory / name for name in names])
        meanwhile()
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
    """Copy the files of some parts of a bundle, or single ones, links as links; return the copied files.

    A file that differs from the manifest is a CadecError. Links are not read, and not in the result.
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
                raise CadecError(f"{directory / name} was changed after the bundle was made", AGAIN)
    return copied


def _copy_file(path: Path, copy: Path, *, follow: bool) -> FileRecord:
    """Copy a file and return its record; a link is an error unless links are followed."""
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
    """Yield the names and kinds of the files that matter: those in parts, and listed ones at the top."""
    expected = {str(parent) for name in manifest.files for parent in PurePosixPath(name).parents}
    follow = is_embedded(directory)
    waiting = [""]
    while waiting:
        place = waiting.pop()
        with read_errors(directory / place), os.scandir(directory / place) as found:
            entries = sorted(
                (entry.name, entry.stat(follow_symlinks=follow).st_mode)
                for entry in found
                if not follow or Path(entry).exists()  # a broken link is a missing file
            )
        for own, mode in entries:
            name, kind = f"{place}{own}", stat.S_IFMT(mode)
            if kind == stat.S_IFDIR and name in expected:
                waiting.append(f"{name}/")
            elif name in manifest.files or not _is_harmless(name, kind):
                yield name, kind


def _is_harmless(name: str, kind: int) -> bool:
    """Tell whether an unlisted file or directory is allowed, since nothing reads it."""
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
    """Return what is wrong with a listed file, apart from its content; None if nothing is."""
    expected, linked = manifest.files[name], manifest.links.get(name)
    if linked is not None:
        if kind != stat.S_IFLNK or str(path.readlink()) != linked:
            return f"{name} is not a link to {linked}"
        if not path.exists():
            return _missing(name, manifest)
    elif kind == stat.S_IFLNK:
        return f"{name} {_LINK}"
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        return f"{name} is not a regular file"
    if about.st_size != expected.size:
        state = "truncated" if about.st_size < expected.size else "modified"
        return f"{name} is {state} ({about.st_size:,} bytes, not {expected.size:,})"
    if linked is not None and not about.st_size:  # files of the kernel claim to be empty, and are not
        return f"{name} is linked to an empty file"
    return None


def _missing(name: str, manifest: Manifest) -> str:
    linked = f" (it was linked to {manifest.links[name]})" if name in manifest.links else ""
    return f"{name} is missing{linked}"
