"""Detects the kind of translation model at a path, by the names of its files or by a checkpoint's keys.

Openers are imported when they are called. Detection needs neither torch nor CTranslate2, unless a checkpoint
has to be opened to find out which toolkit wrote it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.read import parse_json

if TYPE_CHECKING:
    from converters.request import PretrainedRequest
    from converters.translation.base import TranslationImport

Opener = Callable[[Path, "PretrainedRequest"], "TranslationImport"]

LOOKED_FOR = (
    "a config.json with a model_type (Hugging Face), a model.bin with its vocabulary (CTranslate2), "
    "an .npz file (Marian), a .pt file with dict.*.txt (fairseq) or with vocab and opt in it (OpenNMT-py)"
)


def open_translation(given: str, request: PretrainedRequest) -> TranslationImport:
    """Open another toolkit's translation model. Its kind is detected unless the request names it."""
    from converters.hub import local_model

    if request.kind is not None and request.kind not in KINDS:
        raise CadecError(
            f"unknown kind of translation model: {request.kind!r}", f"use one of {', '.join(KINDS)}"
        )
    path = local_model(given)
    for tokenizer in (request.source_tokenizer, request.target_tokenizer):
        if tokenizer is not None and not tokenizer.is_file():
            raise CadecError(f"no such file: {tokenizer}")
    found = request.kind or kind_of(path)
    if found is None:
        raise CadecError(
            f"can't tell what kind of translation model {given} is; looked for {LOOKED_FOR}",
            f"if it is one of these, name its kind: {option('nmt-kind')} {'|'.join(KINDS)}",
        )
    return KINDS[found](path, request)


def kind_of(path: Path) -> str | None:
    """Detect the kind of another toolkit's model at a path; None for anything else, such as our own models.

    A path that looks like several kinds is a CadecError.
    """
    found = [kind for kind, looks in _LOOKS.items() if looks(path)]
    if not found and path.is_dir():
        checkpoints = sorted(path.glob("*.pt"))
        found = [kind for kind in (_kind_of_checkpoint(checkpoints[0]),) if kind] if checkpoints else []
    elif not found and path.suffix == ".pt" and path.is_file():
        found = [kind for kind in (_kind_of_checkpoint(path),) if kind]
    if len(found) > 1:
        raise CadecError(
            f"{path} looks like several kinds of translation models: {', '.join(found)}",
            f"say which with {option('nmt-kind')}, e.g. {option('nmt-kind')} {found[0]}",
        )
    return found[0] if found else None


def _looks_huggingface(path: Path) -> bool:
    return isinstance(_config(path).get("model_type"), str)


def _looks_ctranslate2(path: Path) -> bool:
    return (path / "model.bin").is_file() and any(path.glob("*vocabulary.*"))


def _looks_marian(path: Path) -> bool:
    return path.suffix == ".npz" if path.is_file() else any(path.glob("*.npz"))


def _looks_fairseq(path: Path) -> bool:
    directory = path.parent if path.is_file() else path
    checkpoints = path.suffix == ".pt" if path.is_file() else any(path.glob("*.pt"))
    return checkpoints and any(directory.glob("dict.*.txt"))


def _kind_of_checkpoint(path: Path) -> str | None:
    from converters.translation.torch_checkpoints import read_checkpoint

    # The weights are mapped, not read. A file that can't be opened has no kind, which is not an error yet.
    with contextlib.suppress(CadecError):
        names = set(read_checkpoint(path))
        if {"vocab", "opt", "model"} <= names:
            return "opennmt"
        if "model" in names and names & {"args", "cfg"}:
            return "fairseq"
    return None


def _config(path: Path) -> Mapping[str, object]:
    try:
        value = parse_json((path / "config.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _open_huggingface(path: Path, request: PretrainedRequest) -> TranslationImport:
    from converters.translation.huggingface import open_huggingface

    if request.source_tokenizer or request.target_tokenizer:
        raise CadecError(
            "a Hugging Face model has its own tokenizer",
            f"leave out {option('source-tokenizer')} and {option('target-tokenizer')}",
        )
    if not path.is_dir():
        raise CadecError(f"{path} is a file; a Hugging Face model is a directory", "give the directory")
    return open_huggingface(path, request)


def _open_ctranslate2(path: Path, request: PretrainedRequest) -> TranslationImport:
    from converters.translation.ctranslate2_models import open_ctranslate2

    # If model.bin itself is given, take its directory.
    return open_ctranslate2(path.parent if path.is_file() else path, request)


def _open_marian(path: Path, request: PretrainedRequest) -> TranslationImport:
    from converters.translation.marian import open_marian

    return open_marian(path, request)


def _open_fairseq(path: Path, request: PretrainedRequest) -> TranslationImport:
    from converters.translation.fairseq import open_fairseq

    return open_fairseq(path, request)


def _open_opennmt(path: Path, request: PretrainedRequest) -> TranslationImport:
    from converters.translation.opennmt import open_opennmt

    return open_opennmt(path, request)


# A plain table: value of --nmt-kind → opener.
KINDS: Mapping[str, Opener] = {
    "huggingface": _open_huggingface,
    "ctranslate2": _open_ctranslate2,
    "marian": _open_marian,
    "fairseq": _open_fairseq,
    "opennmt": _open_opennmt,
}

_LOOKS: Mapping[str, Callable[[Path], bool]] = {
    "huggingface": _looks_huggingface,
    "ctranslate2": _looks_ctranslate2,
    "marian": _looks_marian,
    "fairseq": _looks_fairseq,
}
