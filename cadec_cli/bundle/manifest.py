"""bundle.json: what a bundle consists of, with a checksum of every file and of itself.

It knows files, sizes and names; what is in the files it leaves to those who load them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.files import read_json, sha256
from cadec_cli.method.objectives import DOCUMENT_OBJECTIVES
from cadec_cli.method.options import DecodingDefaults
from cadec_cli.whole_files import atomic_file

MANIFEST = "bundle.json"
FORMAT_VERSION = 1

# The engines that can run a model part: ours first, then those of other toolkits' models. A manifest that
# names none, as all earlier ones, means the first. The format is still 1: an earlier cadec ignores the field,
# and so reads a bundle of ours as it is meant; of the others it misses the files that it knows.
PRETRAINED_NMT, PRETRAINED_LM = "ctranslate2-pretrained", "transformers"
ENGINES: Mapping[str, tuple[str, ...]] = {
    "nmt": ("ctranslate2", PRETRAINED_NMT),
    "lm": ("torch", PRETRAINED_LM),
}

# Models that read several sentences, all trained here, with the bundle's own text pipelines; each a part.
DOCUMENT_KINDS = tuple(DOCUMENT_OBJECTIVES)

# What people call the parts that are models.
PART_NAMES: Mapping[str, str] = {
    "nmt": "S-NMT",
    "lm": "D-LM",
    "doc-nmt": "DocTransformer",
    "2-to-2": "2-to-2",
    "repair": "DocRepair",
}

# A part that is a bundle itself.
BACKWARD = "back"

_AGAIN = "copy or download the bundle again, or build it anew with `cadec convert`"


@dataclass(frozen=True)
class FileRecord:
    """A file as it was when the bundle was made."""

    sha256: str
    size: int


@dataclass(frozen=True)
class Conversion:
    """A CTranslate2 model: a checksum of what it depends on, its converter, and its drift from torch."""

    depends_on: str
    converter: int
    mean_drift: float
    largest_drift: float


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """All that bundle.json says."""

    name: str
    source_language: str | None
    target_language: str
    parts: Mapping[str, str]  # directory → what it holds: pipeline, nmt, lm, ctranslate2 …
    engines: Mapping[str, str] = field(default_factory=dict)  # model part → engine; see `engine`
    files: Mapping[str, FileRecord]
    links: Mapping[str, str] = field(default_factory=dict)  # file → where it is linked to, outside
    conversions: Mapping[str, Conversion] = field(default_factory=dict)  # directory → how it was made
    defaults: DecodingDefaults = field(default_factory=DecodingDefaults)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """One checksum of all that decides what a bundle says: conversions and defaults are no part of it."""
        return self.digest(*(part for part, what in self.parts.items() if what != "ctranslate2"))

    def engine(self, part: str) -> str:
        """The engine that runs a model part, nmt or lm."""
        return self.engines.get(part, ENGINES[part][0])

    @property
    def translation_conversions(self) -> dict[str, Conversion]:
        """The conversions of the S-NMT by compute type.

        Earlier bundles may have some of the D-LM too (ct2-lm/int8), which nothing ever read: their files are
        checked like all others, and nothing more.
        """
        place = conversion_part("")
        return {
            name.removeprefix(place): conversion
            for name, conversion in self.conversions.items()
            if name.startswith(place)
        }

    def digest(self, *parts: str) -> str:
        """One checksum over all the files of some parts."""
        if not parts:
            raise ValueError("a checksum of nothing says nothing")
        total = hashlib.sha256()
        for name, record in sorted(self.files.items()):
            if any(name.startswith(f"{part}/") for part in parts):
                total.update(f"{name} {record.sha256}\n".encode())
        return total.hexdigest()

    def content(self) -> bytes:
        """The file, with its own checksum."""
        value = {"format": FORMAT_VERSION, **dataclasses.asdict(self)}
        for name in ("engines", "links"):
            if not value[name]:  # an earlier manifest is written as it was read
                del value[name]
        # The D-LM's weight alone is a number, and none is null: so earlier versions read it too.
        weights = dict(self.defaults.weight)
        value["defaults"]["weight"] = weights["lm"] if weights.keys() == {"lm"} else weights or None
        value["conversions"] = {name: _conversion_json(one) for name, one in self.conversions.items()}
        value["checksum"] = _checksum(value)
        return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def conversion_part(compute_type: str) -> str:
    """Where in a bundle its S-NMT is, converted to a compute type."""
    return f"ct2/{compute_type}"


def record(path: Path) -> FileRecord:
    """What a manifest remembers of a file."""
    return FileRecord(sha256(path), path.stat().st_size)


def read_manifest(directory: Path) -> Manifest:
    """Read the manifest of a bundle; anything odd about it is a CadecError."""
    path = directory / MANIFEST
    if not path.is_file():
        raise CadecError(
            f"{directory} is not a bundle (it has no {MANIFEST})", "build one with `cadec convert`"
        )
    value = read_json(path)
    if not isinstance(value, dict) or type(value.get("format")) is not int:
        raise CadecError(f"{path} is not the manifest of a bundle", _AGAIN)
    if value["format"] != FORMAT_VERSION:
        raise CadecError(
            f"{path} is of format {value['format']}; this version of cadec reads format {FORMAT_VERSION}",
            "upgrade cadec" if value["format"] > FORMAT_VERSION else "build it anew with `cadec convert`",
        )
    if value.pop("checksum", None) != _checksum(value):
        raise CadecError(
            f"{path} was changed after the bundle was made",
            "decoding defaults are changed with `cadec convert BUNDLE --context 2` and its like",
        )
    try:
        manifest = _parsed(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CadecError(f"{path} is damaged: {type(error).__name__} {error}", _AGAIN) from None
    _check_engines(path, manifest)
    named = (*manifest.files, *manifest.parts, *manifest.conversions)
    outside = [name for name in named if not _is_inside(name)]
    if outside:
        raise CadecError(f"{path} names files outside of the bundle: {', '.join(outside)}")
    return manifest


def save_defaults(directory: Path, defaults: DecodingDefaults) -> None:
    """Write how a bundle is to be used into its manifest; all else stays as it is."""
    manifest = dataclasses.replace(read_manifest(directory), defaults=defaults)
    with atomic_file(directory / MANIFEST) as stream:
        stream.write(manifest.content())


def check_files(directory: Path, manifest: Manifest, checksums: bool = True) -> None:
    """Refuse a bundle with files missing, truncated or modified, and name all of them."""
    wrong = []
    for name, expected in manifest.files.items():
        path = directory / name
        if name in manifest.links and not (
            path.is_symlink() and str(path.readlink()) == manifest.links[name]
        ):
            wrong.append(f"{name} is no link to {manifest.links[name]}")
        elif not path.is_file():
            linked = f" (it was linked to {manifest.links[name]})" if name in manifest.links else ""
            wrong.append(f"{name} is missing{linked}")
        elif (size := path.stat().st_size) != expected.size:
            state = "truncated" if size < expected.size else "modified"
            wrong.append(f"{name} is {state} ({size:,} bytes, not {expected.size:,})")
        elif checksums and sha256(path) != expected.sha256:
            wrong.append(f"{name} (checksum mismatch: modified or damaged)")
    if wrong:
        more = f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise CadecError(f"the bundle {directory} is damaged: " + "; ".join(wrong[:5]) + more, _AGAIN)


def _parsed(value: Mapping[str, Any]) -> Manifest:
    return Manifest(
        name=str(value["name"]),
        source_language=value["source_language"],
        target_language=str(value["target_language"]),
        parts=dict(value["parts"]),
        engines=dict(value.get("engines", {})),
        files={name: FileRecord(**entry) for name, entry in value["files"].items()},
        links={str(name): str(place) for name, place in value.get("links", {}).items()},
        conversions={name: _conversion(entry) for name, entry in value["conversions"].items()},
        defaults=DecodingDefaults(**value["defaults"]),
        versions=dict(value["versions"]),
    )


# The JSON key is older than the name of the field.
_DEPENDS_ON = "made_of"


def _conversion(entry: Mapping[str, Any]) -> Conversion:
    return Conversion(**{"depends_on" if key == _DEPENDS_ON else key: entry[key] for key in entry})


def _conversion_json(conversion: Conversion) -> dict[str, Any]:
    value = dataclasses.asdict(conversion)
    return {_DEPENDS_ON if key == "depends_on" else key: value[key] for key in value}


def _check_engines(path: Path, manifest: Manifest) -> None:
    unknown = [
        f"{part}/ needs the engine {engine!r}"
        for part, engine in manifest.engines.items()
        if engine not in ENGINES.get(part, ())
    ]
    if unknown:
        raise CadecError(f"{path}: {'; '.join(unknown)}, which this version of cadec lacks", "upgrade cadec")


def _checksum(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts and "\\" not in name
