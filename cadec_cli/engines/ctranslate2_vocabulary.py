"""What a CTranslate2 directory says beside its weights: its vocabularies, lists of tokens in the order of
their ids, and what it wants around sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.files import read_errors, read_json

# What CTranslate2 reads of its config.json; of much it notices the type only when it translates.
_SETTINGS: Mapping[str, tuple[type, ...]] = {
    "add_source_bos": (bool,),
    "add_source_eos": (bool,),
    "bos_token": (str,),
    "eos_token": (str,),
    "unk_token": (str,),
    "decoder_start_token": (str, type(None)),
    "layer_norm_epsilon": (float, int, type(None)),
    "multi_query_attention": (bool,),
}
# Without these it reads what happens to be in memory.
_REQUIRED = ("add_source_bos", "add_source_eos")


def read_settings(directory: Path) -> dict[str, Any]:
    """A config.json; one whose settings are of other types than CTranslate2 takes is a CadecError."""
    path = directory / "config.json"
    stored = read_json(path)
    if not isinstance(stored, dict):
        raise CadecError(f"{path} is no configuration of CTranslate2's")
    wrong = [
        name
        for name, kinds in _SETTINGS.items()
        if (name in stored or name in _REQUIRED) and type(stored.get(name)) not in kinds
    ]
    if wrong:
        raise CadecError(f"{path} is damaged: {', '.join(wrong)} can't be what it says")
    return stored


def read_vocabularies(directory: Path) -> tuple[list[str], list[str]]:
    """The tokens of the source and of the target; a missing or damaged file is a CadecError."""
    shared = _read(directory, "shared_vocabulary")
    if shared is not None:
        return shared, shared
    source, target = _read(directory, "source_vocabulary"), _read(directory, "target_vocabulary")
    if source is None or target is None:
        raise CadecError(
            f"{directory} has no vocabulary: neither shared_vocabulary.json nor one for each side",
            "is it the directory of a translation model of CTranslate2?",
        )
    return source, target


def _read(directory: Path, name: str) -> list[str] | None:
    if (path := directory / f"{name}.json").is_file():
        tokens = read_json(path)
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens) or not tokens:
            raise CadecError(f"{path} is not a vocabulary: a list of tokens")
        return tokens
    # How CTranslate2 wrote it before version 3.
    if (path := directory / f"{name}.txt").is_file():
        with read_errors(path):
            raw = path.read_bytes()
        try:
            # Not splitlines(): tokens may hold characters that Python takes for ends of lines.
            tokens = raw.decode("utf-8").removesuffix("\n").split("\n")
        except UnicodeDecodeError:
            raise CadecError(f"{path} is not a vocabulary: it is not UTF-8") from None
        return [token.removesuffix("\r") for token in tokens]
    return None
