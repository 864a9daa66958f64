"""Finds a model by its path, or fetches it by its name from the Hugging Face hub into the hub's cache."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.fs.paths import expand_user
from cadec_cli.fs.read import sha256

# An optional prefix of a name on the hub, to tell it from a path.
HUB = "hf:"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")

# How many models an error names.
SHOWN = 8

# Tokenizers, settings and the licence; no weights of other frameworks.
_ALWAYS = ["*.json", "*.spm", "*.model", "*.txt", "*.yml", "README.md", "LICENSE*"]
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "*.npz", "*.gguf", "*.pt")  # only the first kind found


def local_model(given: str) -> Path:
    """Return a model's path, given a path or hub name; a CadecError if it can't be found or fetched."""
    path = expand_user(given)
    named = given.startswith(HUB)
    if path.exists() and not named:
        return path
    name = given.removeprefix(HUB)
    if not _NAME.fullmatch(name):
        if named:
            raise CadecError(f"{name!r} can't be a name on the Hugging Face hub", f"as in {HUB}openai/gpt2")
        raise CadecError(f"no such file or directory: {given}")
    return _fetch(name)


def _fetch(name: str) -> Path:
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError:
        raise CadecError(
            f"no such file or directory: {name}",
            "to fetch a model of that name from the Hugging Face hub: pip install 'cadec[huggingface]'",
        ) from None
    try:
        try:
            # One request with a timeout: listing the files would retry for half a minute.
            found = huggingface_hub.HfApi().model_info(name, timeout=20, files_metadata=True)
        except (errors.RepositoryNotFoundError, errors.HFValidationError):
            raise
        except Exception as error:  # offline, or the hub is failing: use the cached model, if any
            return _find_cached(name, error)
        listed = list(found.siblings or ())
        patterns = wanted_files(name, [file.rfilename for file in listed])
        fetched = Path(huggingface_hub.snapshot_download(name, allow_patterns=patterns))
        _check_files(name, fetched, listed)
        return fetched
    except CadecError:
        raise
    except errors.GatedRepoError:  # a subclass of the next one
        raise CadecError(
            f"{name} can't be fetched: its authors ask for consent to its licence",
            "accept it on the model's page on the hub, then log in with `hf auth login`",
        ) from None
    except errors.RepositoryNotFoundError:
        raise CadecError(
            f"{name} was found neither as a directory nor on the Hugging Face hub",
            "a private model needs `hf auth login` first",
        ) from None
    except Exception as error:  # from whichever library the hub's client is built on
        reason = " ".join(str(error).split())[:200]
        before = fetched_before()
        named = ", ".join(before[:SHOWN]) + (" …" if len(before) > SHOWN else "")
        there = f"already downloaded and usable offline: {named}. " if before else ""
        raise CadecError(
            f"{name} is not a local directory, and can't be fetched from the Hugging Face hub: {reason}",
            f"{there}`cadec models list` shows local models; or download it elsewhere and give its directory",
        ) from None


def _find_cached(name: str, error: Exception) -> Path:
    """Return the cached model if it has all files of one kind of weights; otherwise raise `error`."""
    import huggingface_hub

    for pattern in _WEIGHTS:
        try:
            # Without patterns, the client would miss the files that were left out on purpose.
            found = Path(
                huggingface_hub.snapshot_download(
                    name, local_files_only=True, allow_patterns=[*_ALWAYS, pattern]
                )
            )
        except Exception:  # not cached, or not completely
            continue
        if any(found.glob(pattern)):
            return found
    raise error


def fetched_before() -> list[str]:
    """List the models whose weights are in the hub's cache, so that they can be used offline."""
    try:
        import huggingface_hub

        found = huggingface_hub.scan_cache_dir().repos
    except Exception:  # no such package, no cache, or an unreadable one
        return []
    return sorted(
        repo.repo_id
        for repo in found
        if repo.repo_type == "model"
        and any(
            Path(file.file_name).match(pattern)
            for revision in repo.revisions
            for file in revision.files
            for pattern in _WEIGHTS
        )
    )


def _check_files(model: str, fetched: Path, listed: Sequence[Any]) -> None:
    """Compare fetched files with the hub's checksums; delete those that differ, and raise a CadecError.

    The hub's client compares sizes only, and trusts the files in its cache.
    """
    damaged = []
    for file in listed:
        path = fetched / file.rfilename
        if not path.is_file():
            continue
        lfs, blob = getattr(file, "lfs", None), getattr(file, "blob_id", None)
        wanted = lfs.sha256 if lfs is not None else blob
        if wanted is not None and wanted != (sha256(path) if lfs is not None else _git_checksum(path)):
            damaged.append(file.rfilename)
            path.resolve().unlink()
            path.unlink(missing_ok=True)
    if damaged:
        raise CadecError(
            f"{model}: {', '.join(damaged)} came damaged from the hub (wrong checksum)",
            "damaged files were deleted: the same command fetches them again",
        )


def _git_checksum(path: Path) -> str:
    """Git's checksum of a file's content, which the hub lists for small files."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def wanted_files(model: str, files: list[str]) -> list[str]:
    """Return the patterns of the files to fetch, of all files of a model: one kind of weights is enough.

    Several GGUF files are a CadecError: each is the whole model, in a different number of bits.
    """
    for pattern in _WEIGHTS:
        fitting = [name for name in files if Path(name).match(pattern) and "/" not in name]
        if pattern == "*.gguf" and len(fitting) > 1:
            raise CadecError(
                f"{model} has several GGUF files: {', '.join(fitting)}",
                f"fetch one of them with `hf download {model} {fitting[0]}` and give its path",
            )
        if fitting:
            return [*_ALWAYS, pattern]
    return _ALWAYS
