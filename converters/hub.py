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

# May stand before a name on the hub, to tell it from a path.
HUB = "hf:"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")

# How many models an error names.
SHOWN = 8

# Tokenizers, settings and the licence; no weights of other frameworks.
_ALWAYS = ["*.json", "*.spm", "*.model", "*.txt", "*.yml", "README.md", "LICENSE*"]
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "*.npz", "*.gguf", "*.pt")  # the first that there are


def local_model(given: str) -> Path:
    """The directory or file of a model that the user named; one that can't be had is a CadecError."""
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
            # Asked with a limit of time, and once: to list files would try for half a minute.
            found = huggingface_hub.HfApi().model_info(name, timeout=20, files_metadata=True)
        except (errors.RepositoryNotFoundError, errors.HFValidationError):
            raise
        except Exception as error:  # offline, or a hub in trouble: what the cache has of it, if anything
            return _find_cached(name, error)
        listed = list(found.siblings or ())
        patterns = wanted_files(name, [file.rfilename for file in listed])
        fetched = Path(huggingface_hub.snapshot_download(name, allow_patterns=patterns))
        _check_files(name, fetched, listed)
        return fetched
    except CadecError:
        raise
    except errors.GatedRepoError:  # which the next one is a kind of
        raise CadecError(
            f"{name} can't be fetched: its authors ask for consent to its licence",
            "accept it on the model's page on the hub, then log in with `hf auth login`",
        ) from None
    except errors.RepositoryNotFoundError:
        raise CadecError(
            f"there is no {name}, neither as a directory nor on the Hugging Face hub",
            "a private model needs `hf auth login` first",
        ) from None
    except Exception as error:  # of whatever library the hub's client is built on
        reason = " ".join(str(error).split())[:200]
        before = fetched_before()
        named = ", ".join(before[:SHOWN]) + (" …" if len(before) > SHOWN else "")
        there = f"already downloaded and usable offline: {named}. " if before else ""
        raise CadecError(
            f"{name} is no directory here, and can't be fetched from the Hugging Face hub: {reason}",
            f"{there}`cadec models list` shows what is here; or download it elsewhere and give its directory",
        ) from None


def _find_cached(name: str, error: Exception) -> Path:
    """What was fetched before, of the kind of weights that was wanted then; else what went wrong."""
    import huggingface_hub

    for pattern in _WEIGHTS:
        try:
            # Asked for all of its files, the client would miss those that nobody wanted.
            found = Path(
                huggingface_hub.snapshot_download(
                    name, local_files_only=True, allow_patterns=[*_ALWAYS, pattern]
                )
            )
        except Exception:  # nothing of it, or not all of it
            continue
        if any(found.glob(pattern)):
            return found
    raise error


def fetched_before() -> list[str]:
    """The models that the hub's cache holds with their weights, which need no hub any more."""
    try:
        import huggingface_hub

        found = huggingface_hub.scan_cache_dir().repos
    except Exception:  # no such package, no cache, or one that can't be read
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
    """Hold what was fetched against the checksums that the hub lists; what differs is thrown away.

    The hub's client compares sizes only, and takes what is in its cache for good.
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
            "what was damaged is deleted: the same command fetches it again",
        )


def _git_checksum(path: Path) -> str:
    """What git, and so the hub, calls a small file."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def wanted_files(model: str, files: list[str]) -> list[str]:
    """The patterns of what to fetch of a model with these files: one kind of weights is enough.

    Of several GGUF files, each of them is all of the model, in other numbers of bits.
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
