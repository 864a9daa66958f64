"""What a bundle may consist of: names of files, the parts there are, and which files each of them has.

A manifest may have been written by anybody. What it names is held against what cadec itself would write, so
that no name leads anywhere else and no library finds a file that cadec does not know it reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath, PureWindowsPath

from cadec_cli.bounds import quote_value, text_misfit
from cadec_cli.engines.compute_types import COMPUTE_TYPES
from cadec_cli.method.objectives import DOCUMENT_OBJECTIVES
from cadec_cli.models.pretrained import LANGUAGE_SETTINGS, NETWORK, TRANSLATION_SETTINGS

# Models that read several sentences, all trained here, with the bundle's own text pipelines; each a part.
DOCUMENT_KINDS = tuple(DOCUMENT_OBJECTIVES)

# A part that is a bundle itself.
BACKWARD = "back"

# Text pipelines, models, a bundle: part → what it holds.
_PARTS: Mapping[str, str] = {
    **dict.fromkeys(("source", "target", "lm-pipeline"), "pipeline"),
    **{kind: kind for kind in ("nmt", "lm", *DOCUMENT_KINDS)},
    BACKWARD: "bundle",
}
CONVERTED = "ctranslate2"
# Where conversions are; the D-LM's are of earlier versions, and nothing reads them.
_CONVERSIONS = ("ct2", "ct2-lm")

# Paths and their components as most file systems can have them.
_LONGEST_NAME, _LONGEST_COMPONENT = 1000, 255

# What a part holds → the files that it has, as regular expressions. Of a pretrained S-NMT the settings name
# the files of its tokenizers, and nothing but what they name is read.
_MODEL = r"config\.json|model\.safetensors"
_TRANSFORMERS = r"config\.json|[^/]+\.safetensors|model\.safetensors\.index\.json"
_FILES: Mapping[str, str] = {
    "pipeline": r"pipeline\.json|truecaser\.json|subwords\.model",
    CONVERTED: r"model\.bin|config\.json|(\w+_)?vocabulary\.(json|txt)",
    "bundle": r".+",
    **dict.fromkeys(("nmt", "lm", *DOCUMENT_KINDS), _MODEL),
}
PRETRAINED_FILES: Mapping[str, str] = {
    "nmt": rf"{re.escape(TRANSLATION_SETTINGS)}|[^/]+|{NETWORK}/({_TRANSFORMERS})",
    "lm": rf"{re.escape(LANGUAGE_SETTINGS)}|tokenizer\.json|{_TRANSFORMERS}",
}
# The files that may be links to outside, where the user asked for it: weights of a pretrained D-LM.
_LINKED = re.compile(r"lm/[^/]+\.safetensors")


def name_misfit(name: object) -> str | None:
    """Why something can't be the name of a file in a bundle, or of a part; None where it can."""
    if problem := text_misfit(name, _LONGEST_NAME):
        return problem
    assert isinstance(name, str)
    components = name.split("/")
    if "\\" in name or ":" in name or any(one in ("", ".", "..") for one in components):
        return f"{quote_value(name)} is no plain path"
    if any(len(one.encode()) > _LONGEST_COMPONENT for one in components):
        return f"{quote_value(name)} is longer than file systems allow"
    return None


def leads_outside(name: object) -> bool:
    """Tell whether a name is a path that leaves the directory it is relative to, on whatever system."""
    if not isinstance(name, str):
        return False
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "\\" in name or PureWindowsPath(name).drive != ""


def part_misfit(part: str, what: object) -> str | None:
    """Why there is no such part; None where there is."""
    place, _, compute_type = part.partition("/")
    if place in _CONVERSIONS and compute_type in COMPUTE_TYPES:
        expected = CONVERTED
    elif part in _PARTS:
        expected = _PARTS[part]
    else:
        return f"it has a part {quote_value(part)}"
    return None if what == expected else f"its part {part} is {quote_value(what)}, not {expected}"


def is_part_path(name: str) -> bool:
    """Tell whether a directory has the name of one that parts are in, on whatever system."""
    return name.casefold() in (*_PARTS, *_CONVERSIONS)


def foreign_files(files: Iterable[str], parts: Mapping[str, str], pretrained: Iterable[str]) -> list[str]:
    """The files that no part of theirs has; beside the parts there may be any. `pretrained` parts differ."""
    forms = {part: _FILES[what] for part, what in parts.items()}
    forms.update({part: PRETRAINED_FILES[part] for part in pretrained if part in parts})
    return [name for name in files if "/" in name and not _is_known(name, forms)]


def _is_known(name: str, forms: Mapping[str, str]) -> bool:
    return any(
        name.startswith(f"{part}/") and re.fullmatch(form, name.removeprefix(f"{part}/"))
        for part, form in forms.items()
    )


def link_misfit(name: str, place: object, pretrained: Iterable[str]) -> str | None:
    """Why a file can't be a link to a place; None where it can: as `cadec convert --link` makes them."""
    if "lm" not in pretrained or not _LINKED.fullmatch(name):
        return f"{name} can't be a link"
    if problem := text_misfit(place, 4096):
        return f"the link {name}: {problem}"
    assert isinstance(place, str)
    path = PurePosixPath(place)
    if not path.is_absolute() or ".." in path.parts or str(path) != place:
        return f"the link {name} leads to {quote_value(place)}, which is no full path"
    return None
