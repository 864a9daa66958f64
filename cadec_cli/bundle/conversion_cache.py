"""Converted models in the user's cache: each is made once and appears whole, for any number of processes.

The cache belongs to one user, or to root. Files that other users could have created or changed are never
loaded. Others may read it, unless the umask forbids that: a cache in an image is made by root and serves
everybody. Nothing is deleted automatically, and nothing in it is irreplaceable: all of it may be deleted
while no cadec runs. A cache that is full or can't be used only costs time.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cadec_cli.bundle.manifest import Conversion, Manifest
from cadec_cli.engines.engine import Note, silence
from cadec_cli.errors import CadecError, WriteError
from cadec_cli.fs.atomic import remove_leftovers, scratch_directory, write_errors, write_json
from cadec_cli.fs.locks import lock, open_lock_file
from cadec_cli.fs.paths import cache_directory
from cadec_cli.fs.read import read_json, sha256
from converters import CONVERTER_VERSION, convert_network

if TYPE_CHECKING:
    from cadec_cli.models.transformer import Transformer
    from cadec_cli.text.pipeline import TextPipeline
    from converters import Drift


# Written last: the checksums of all other files. A directory without it is unfinished or not ours.
_SEAL = "cadec.json"
# Bytes. A seal has a few hundred; a larger file is not read.
_LARGEST_SEAL = 1 << 16

_HAS_OWNERS = hasattr(os, "geteuid")
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH

# Temporary directories, used if the cache can't be; they are removed when the process ends.
_temporary: dict[str, Path] = {}
_until_the_end = contextlib.ExitStack()
atexit.register(_until_the_end.close)


class _UnusableError(Exception):
    """Why the cache can't be used, in a few words."""


def converted_once(key: str, convert: Callable[[Path], None], note: Note = silence) -> Path:
    """Return the directory that `convert` fills, from the cache if it is there and undamaged.

    The key must name everything that the result depends on. If the cache can't be used or has no room,
    `note` says so, and a temporary directory is used until the process ends.
    """
    if key in _temporary:
        return _temporary[key]
    parent = cache_directory() / "ctranslate2"
    try:
        return _from_cache(parent, key, convert)
    except _UnusableError as reason:
        note(f"the cache {parent} is not used ({reason}); converting into a temporary directory")
    return _for_now(parent, key, convert)


def _from_cache(parent: Path, key: str, convert: Callable[[Path], None]) -> Path:
    directory = parent / key
    try:
        _make_private(parent)
        if _is_sound(directory):
            return directory
        with tempfile.TemporaryFile(dir=parent):  # fails now rather than after converting
            pass
        lock_file = open_lock_file(parent / f".{key}.lock")
    except OSError as error:
        raise _UnusableError(error.strerror or str(error)) from None
    except CadecError as error:
        raise _UnusableError(f"{error.marked_message}; {error.marked_hint}") from None
    with lock_file:
        lock(lock_file.fileno(), wait=True)
        if not _is_sound(directory):
            try:
                _clear_dead(parent)
                _remove_obstacle(directory)
                convert(directory)
                _seal(directory)
            except CadecError as error:
                # Without working locks another process may have been first; its result is as good.
                if _is_sound(directory):
                    return directory
                if isinstance(error, WriteError):
                    raise _UnusableError(error.marked_message) from None
                raise
    return directory


def _for_now(cache: Path, key: str, convert: Callable[[Path], None]) -> Path:
    scratch = contextlib.ExitStack()
    try:
        directory = scratch.enter_context(scratch_directory()) / key
    except OSError as error:
        raise CadecError(
            f"can't create a temporary directory: {error.strerror or error}", _room(cache)
        ) from None
    try:
        convert(directory)
    except BaseException as error:
        scratch.close()
        if isinstance(error, WriteError):
            raise CadecError(error.marked_message, _room(cache)) from None
        raise
    _until_the_end.push(scratch)
    _temporary[key] = directory
    return directory


def _room(cache: Path) -> str:
    return f"make room for the cache, {cache}, or name another directory for it with CADEC_CACHE"


def _make_private(parent: Path) -> None:
    """Create the cache's directory; raise an _UnusableError if other users can write to it."""
    parent.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    parent.mkdir(mode=0o755, exist_ok=True)
    # Also if it is a link: the owner of a link chose its target.
    if not (_is_ours(parent.lstat()) and _is_ours(found := parent.stat())):
        raise _UnusableError("it belongs to another user")
    if not _is_private(found):
        with contextlib.suppress(OSError):
            parent.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS_MAY_WRITE)
        if not _is_private(parent.stat()):
            raise _UnusableError("other users may write to it")


def _is_ours(found: os.stat_result) -> bool:
    """Tell whether a file belongs to the user, or to root, who may do anything anyway."""
    return not _HAS_OWNERS or found.st_uid in (os.geteuid(), 0)


def _is_private(found: os.stat_result) -> bool:
    return _is_ours(found) and not (_HAS_OWNERS and found.st_mode & _OTHERS_MAY_WRITE)


def _clear_dead(parent: Path) -> None:
    """Remove the leftovers of killed conversions, also of keys that may never be used again.

    Every conversion creates its lock first, so the locks name all keys.
    """
    for path in parent.glob(".*.lock"):
        remove_leftovers(parent / path.name.removeprefix(".").removesuffix(".lock"))


def _remove_obstacle(directory: Path) -> None:
    """Remove a file or foreign directory in the way; our own directory is replaced by the new one."""
    with contextlib.suppress(OSError):  # it does not exist; or it stays, and converting fails with an error
        found = directory.lstat()
        if not stat.S_ISDIR(found.st_mode):
            directory.unlink()
        elif not _is_private(found):  # a new one might inherit owner and permissions
            shutil.rmtree(directory)


def _seal(directory: Path) -> None:
    """Write the checksums; a directory that can't be sealed is removed."""
    try:
        write_json(directory / _SEAL, {path.name: sha256(path) for path in sorted(directory.iterdir())})
        with write_errors(directory):
            # The umask's permissions for a new file, but others may at most read.
            mode = (directory / _SEAL).stat().st_mode & 0o644
            for path in directory.iterdir():
                path.chmod(mode)
            directory.chmod(mode | 0o100 | (mode & 0o044) >> 2)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise


def _is_sound(directory: Path) -> bool:
    """Tell whether a directory has exactly the files that were sealed, unchanged.

    If not, they are converted again. Only plain files of the user, or of root, are opened.
    """
    try:
        if not (stat.S_ISDIR(directory.lstat().st_mode) and _is_private(directory.lstat())):
            return False
        files = {path.name: path.lstat() for path in directory.iterdir()}
        if not all(stat.S_ISREG(found.st_mode) and _is_private(found) for found in files.values()):
            return False
        if _SEAL not in files or files.pop(_SEAL).st_size > _LARGEST_SEAL:
            return False
        sealed = read_json(directory / _SEAL)
        if not isinstance(sealed, dict) or sealed.keys() != files.keys():
            return False
        return all(sha256(directory / name) == sealed[name] for name in sealed)
    except (CadecError, OSError):
        return False


def dependencies(manifest: Manifest, part: str = "nmt") -> str:
    """Return a checksum of everything that a conversion depends on: the weights, and the meaning of ids."""
    return manifest.listing_digest(*depends_on(part))


def depends_on(part: str = "nmt") -> tuple[str, ...]:
    """Return the parts of a bundle that the conversion of a part depends on."""
    return (part, "source", "target")


def is_current(conversion: Conversion | None, manifest: Manifest) -> bool:
    """Tell whether a conversion exists, and is the same as converting this bundle's S-NMT now would give."""
    if conversion is None:
        return False
    return (conversion.depends_on, conversion.converter) == (
        dependencies(manifest),
        CONVERTER_VERSION,
    )


def cache_key(manifest: Manifest, compute_type: str, part: str = "nmt") -> str:
    """Return a name for a conversion, different for every different result.

    All bundles share the cache. The name contains checksums of files, so check the files before you store
    a conversion under it.
    """
    return f"{manifest.digest(*depends_on(part))[:40]}-{compute_type}-{CONVERTER_VERSION}"


def conversion_record(manifest: Manifest, drift: Drift) -> Conversion:
    """Return the manifest's record of a conversion of this bundle's S-NMT."""
    return Conversion(dependencies(manifest), CONVERTER_VERSION, drift.mean, drift.largest)


def convert(
    network: Transformer,
    source: TextPipeline,
    target: TextPipeline,
    *,
    compute_type: str,
    directory: Path,
    probes: Sequence[tuple[str, str]] = (),
) -> Drift:
    """Write an S-NMT as a CTranslate2 model, whole or not at all; return how far it is from torch.

    Probes are sentence pairs to compare the two on, besides random ones.
    """
    return convert_network(
        network,
        source.subwords.pieces,
        target.subwords.pieces,
        directory,
        compute_type,
        [(source.encode(text), target.encode(translation)) for text, translation in probes],
    )
