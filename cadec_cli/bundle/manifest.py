"""bundle.json: the manifest of a bundle, with a checksum of every file and of itself.

The manifest knows files, sizes and names; the content of files is left to the engines. Every manifest is
untrusted, so everything is checked when it is read: types, bounds, names, and that no text in it contains
terminal commands.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from cadec_cli.engines.compute_types import COMPUTE_TYPES
from cadec_cli.engines.engine import TranslationEngine
from cadec_cli.engines.table import ENGINES, OWN_ENGINES
from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import atomic_file, restore_directory
from cadec_cli.fs.read import read_json, sha256
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.method.objectives import DOCUMENT_OBJECTIVES
from cadec_cli.method.options import DecodingDefaults, options_as_data
from cadec_cli.models.configs import OWN_FILES
from cadec_cli.text.languages import language_misfit
from cadec_cli.validation import Number, Whole, field_misfits, misfits, quote_value, text_misfit

# Models that read several sentences. Each is a part, trained here with the bundle's own text pipelines.
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
# The directories of conversions. Those of the D-LM come from earlier versions, and are never read.
_CONVERSIONS = ("ct2", "ct2-lm")

# Limits of paths and their components that most file systems support.
_LONGEST_NAME, _LONGEST_COMPONENT = 1000, 255

# The kind of a part → its files, as a regular expression. The engine of a model part defines its own.
_FILES: Mapping[str, str] = {
    "pipeline": r"pipeline\.json|truecaser\.json|subwords\.model",
    CONVERTED: r"model\.bin|config\.json|(\w+_)?vocabulary\.(json|txt)",
    "bundle": r".+",
    **dict.fromkeys(DOCUMENT_KINDS, OWN_FILES),
}


def name_misfit(name: object) -> str | None:
    """Return why a value can't be the name of a file in a bundle, or of a part; None if it can."""
    if problem := text_misfit(name, _LONGEST_NAME):
        return problem
    assert isinstance(name, str)
    components = name.split("/")
    if "\\" in name or ":" in name or any(one in ("", ".", "..") for one in components):
        return f"{quote_value(name)} is not a plain path"
    if any(len(one.encode()) > _LONGEST_COMPONENT for one in components):
        return f"{quote_value(name)} is longer than file systems allow"
    return None


def leads_outside(name: object) -> bool:
    """Tell whether a name is a path that leads out of its directory, on any system."""
    if not isinstance(name, str):
        return False
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "\\" in name or PureWindowsPath(name).drive != ""


def part_misfit(part: str, what: object) -> str | None:
    """Return why a part is not one that a bundle can have; None if it is."""
    place, _, compute_type = part.partition("/")
    if place in _CONVERSIONS and compute_type in COMPUTE_TYPES:
        expected = CONVERTED
    elif part in _PARTS:
        expected = _PARTS[part]
    else:
        return f"it has a part {quote_value(part)}"
    return None if what == expected else f"its part {part} is {quote_value(what)}, not {expected}"


def is_part_path(name: str) -> bool:
    """Tell whether a name is that of a directory of parts, on any system."""
    return name.casefold() in (*_PARTS, *_CONVERSIONS)


def foreign_files(manifest: Manifest) -> list[str]:
    """Return the files in directories that no part can have. At the top level any file is allowed."""
    forms = {
        part: ENGINES[manifest.engine(part)].files if part in OWN_ENGINES else _FILES[what]
        for part, what in manifest.parts.items()
    }
    return [name for name in manifest.files if "/" in name and not _is_known(name, forms)]


def _is_known(name: str, forms: Mapping[str, str]) -> bool:
    return any(
        name.startswith(f"{part}/") and re.fullmatch(form, name.removeprefix(f"{part}/"))
        for part, form in forms.items()
    )


def _link_misfit(name: str, place: object, manifest: Manifest) -> str | None:
    """Return why a file of a linked bundle can't be a link to a place; None if it can."""
    part, _, file = name.partition("/")
    engine = ENGINES[manifest.engine(part)] if part in OWN_ENGINES else None
    if engine is None or not engine.links or not re.fullmatch(engine.links, file):
        return f"{name} can't be a link"
    if problem := text_misfit(place, 4096):
        return f"the link {name}: {problem}"
    assert isinstance(place, str)
    path = PurePosixPath(place)
    if not path.is_absolute() or ".." in path.parts or str(path) != place:
        return f"the link {name} leads to {quote_value(place)}, which is not an absolute path"
    return None


MANIFEST = "bundle.json"
FORMAT_VERSION = 1

# The names of model parts in messages.
PART_NAMES: Mapping[str, str] = {
    "nmt": "S-NMT",
    "lm": "D-LM",
    "doc-nmt": "DocTransformer",
    "2-to-2": "2-to-2",
    "repair": "DocRepair",
}

# A file that a bundle may have beside its models: seed sentences of its own (text.formality).
FORMALITY = "formality.json"

# More than the manifest of a bundle with a thousand files.
_MAX_BYTES = 1 << 20
MAX_TEXT_LENGTH = 1000
_CHECKSUM = re.compile(r"[0-9a-f]{64}")

AGAIN = "copy or download the bundle again, or build it again with `cadec convert`"


@dataclass(frozen=True)
class FileRecord:
    """The checksum and size of a file when the bundle was made."""

    sha256: str
    size: int


@dataclass(frozen=True)
class Conversion:
    """A CTranslate2 model: a checksum of its origin, the converter's version, and its drift from torch."""

    depends_on: str
    converter: int
    mean_drift: float
    largest_drift: float


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The content of bundle.json."""

    name: str
    source_language: str | None
    target_language: str
    parts: Mapping[str, str]  # directory → its kind: pipeline, nmt, lm, ctranslate2 …
    engines: Mapping[str, str] = field(default_factory=dict)  # model part → engine; see `engine`
    files: Mapping[str, FileRecord]
    links: Mapping[str, str] = field(default_factory=dict)  # file → the target of its link, outside
    conversions: Mapping[str, Conversion] = field(default_factory=dict)  # directory → how it was made
    defaults: DecodingDefaults = field(default_factory=DecodingDefaults)
    lengths: LengthLimits | None = None  # of the S-NMT's translations, in its tokens; None: the default
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """One checksum of everything that the bundle's translations and scores depend on.

        Defaults are left out, and so are conversions, unless they are the only weights.
        """
        engine = ENGINES[self.engine("nmt")]
        left_out = () if isinstance(engine, TranslationEngine) and engine.converted else (CONVERTED,)
        parts = (part for part, what in self.parts.items() if what not in left_out)
        files = self.digest(*parts, *(name for name in (FORMALITY,) if name in self.files))
        if self.lengths is None:
            return files
        content = json.dumps([files, dataclasses.asdict(self.lengths)])
        return hashlib.sha256(content.encode()).hexdigest()

    def engine(self, part: str) -> str:
        """Return the name of the engine that runs a model part, nmt or lm.

        The default is our own engine, as in all early manifests. (The format is still 1: an early cadec
        ignores the field, so it reads a bundle of our engine correctly, and in others it misses files.)
        """
        return self.engines.get(part, OWN_ENGINES[part].name)

    def trained_here(self, part: str) -> bool:
        """Tell whether there is a model part, and our own engine runs it."""
        return part in self.parts and self.engine(part) == OWN_ENGINES[part].name

    @property
    def translation_conversions(self) -> dict[str, Conversion]:
        """The conversions of the S-NMT by compute type.

        Earlier bundles may have conversions of the D-LM, too (ct2-lm/int8). They were never read: their files
        are checked like all others, and not used.
        """
        place = conversion_part("")
        return {
            name.removeprefix(place): conversion
            for name, conversion in self.conversions.items()
            if name.startswith(place)
        }

    def digest(self, *parts: str) -> str:
        """Return one checksum over all files of some parts: it differs for other names or contents."""
        listed = [[name, entry.sha256, entry.size] for name, entry in self._of(parts)]
        return hashlib.sha256(json.dumps(listed).encode()).hexdigest()

    def listing_digest(self, *parts: str) -> str:
        """Return a checksum over lines of names and checksums; conversions have always been marked with it.

        No name contains a line break, so it distinguishes as much as `digest` does. It proves nothing: the
        author of a bundle wrote both the files and the mark.
        """
        lines = (f"{name} {entry.sha256}\n" for name, entry in self._of(parts))
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def _of(self, parts: Iterable[str]) -> list[tuple[str, FileRecord]]:
        starts = tuple(f"{part}/" for part in parts)
        if not starts:
            raise ValueError("a checksum needs at least one part")
        return [item for item in sorted(self.files.items()) if f"{item[0]}/".startswith(starts)]

    def content(self) -> bytes:
        """Return the content of bundle.json, with its own checksum."""
        value = {"format": FORMAT_VERSION, **dataclasses.asdict(self)}
        for name in ("engines", "links", "lengths"):
            if not value[name]:  # an earlier manifest is written back unchanged
                del value[name]
        value["defaults"] = options_as_data(self.defaults)
        # The D-LM's weight alone is written as a number, no weights as null: earlier versions can read that.
        weights = dict(self.defaults.weight)
        value["defaults"]["weight"] = weights["lm"] if weights.keys() == {"lm"} else weights or None
        value["conversions"] = {name: _conversion_json(one) for name, one in self.conversions.items()}
        value["checksum"] = _checksum(value)
        return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def conversion_part(compute_type: str) -> str:
    """Return the directory, in a bundle, of the S-NMT converted to a compute type."""
    return f"ct2/{compute_type}"


def record(path: Path) -> FileRecord:
    """Return the manifest's record of a file."""
    return FileRecord(sha256(path), path.stat().st_size)


def read_manifest(directory: Path) -> Manifest:
    """Read the manifest of a bundle; a CadecError if it is missing, damaged or not valid."""
    restore_directory(directory)
    path = directory / MANIFEST
    if not directory.exists():
        raise CadecError(
            f"{directory} is not a bundle: there is no such directory, and no model of that name",
            "`cadec models list` shows what is here; `cadec convert` builds one",
        )
    if not path.is_file():
        raise CadecError(
            f"{directory} is not a bundle (it has no {MANIFEST})", "build one with `cadec convert`"
        )
    if path.stat().st_size > _MAX_BYTES:
        raise CadecError(f"{path} is too large for the manifest of a bundle ({path.stat().st_size:,} bytes)")
    value = read_json(path, strict=True)
    if not isinstance(value, dict) or type(value.get("format")) is not int:
        raise CadecError(f"{path} is not the manifest of a bundle", AGAIN)
    if value["format"] != FORMAT_VERSION:
        raise CadecError(
            f"{path} is of format {quote_value(value['format'])}; this version of cadec reads format "
            f"{FORMAT_VERSION}",
            "upgrade cadec" if value["format"] > FORMAT_VERSION else "build it again with `cadec convert`",
        )
    if value.pop("checksum", None) != _checksum(value):
        raise CadecError(
            f"{path} was changed after the bundle was made",
            f"decoding defaults are changed with `cadec convert BUNDLE {option('context', '2')}` and "
            "similar options",
        )
    try:
        manifest = _parse_manifest(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CadecError(f"{path} is damaged: {type(error).__name__} {error}", AGAIN) from None
    except CadecError as error:
        raise CadecError(f"{path}: {error.marked_message}", AGAIN) from None
    _check_engines(path, manifest)
    _check_names(path, manifest)
    return manifest


def save_defaults(directory: Path, defaults: DecodingDefaults) -> None:
    """Write new decoding defaults into a bundle's manifest. Everything else stays as it is."""
    _save(directory, dataclasses.replace(read_manifest(directory), defaults=defaults))


def save_lengths(directory: Path, lengths: LengthLimits) -> None:
    """Write limits on the length of translations into a bundle's manifest."""
    _save(directory, dataclasses.replace(read_manifest(directory), lengths=lengths))


def _save(directory: Path, manifest: Manifest) -> None:
    with atomic_file(directory / MANIFEST) as stream:
        stream.write(manifest.content())


def _parse_manifest(value: Mapping[str, Any]) -> Manifest:
    """Parse a manifest. Unknown fields are ignored, since later versions may add some."""
    source = value["source_language"]
    if value["name"] == "":
        raise ValueError("name: it is empty")
    return Manifest(
        name=_text(value["name"], "name"),
        source_language=None if source is None else _language(source, "source_language"),
        target_language=_language(value["target_language"], "target_language"),
        parts={part: _text(what, "parts") for part, what in value["parts"].items()},
        engines={
            _text(part, "engines"): _text(one, "engines") for part, one in value.get("engines", {}).items()
        },
        files={name: _file(entry) for name, entry in value["files"].items()},
        links={name: _text(place, "links", 4096) for name, place in value.get("links", {}).items()},
        conversions={name: _conversion(entry) for name, entry in value["conversions"].items()},
        defaults=_defaults(value["defaults"]),
        lengths=_lengths(value["lengths"]) if "lengths" in value else None,
        versions={_text(of, "versions"): _text(one, "versions") for of, one in value["versions"].items()},
    )


def _text(value: object, where: str, most: int = MAX_TEXT_LENGTH) -> str:
    if problem := text_misfit(value, most):
        raise ValueError(f"{where}: {problem}")
    assert isinstance(value, str)
    return value


def _defaults(value: Any) -> DecodingDefaults:
    if wrong := field_misfits(value, DecodingDefaults):
        raise ValueError(f"defaults: {'; '.join(wrong)}")
    return DecodingDefaults(**value)


def _lengths(value: Any) -> LengthLimits:
    if wrong := field_misfits(value, LengthLimits):
        raise ValueError(f"lengths: {'; '.join(wrong)}")
    return LengthLimits(**value)


def _language(value: object, where: str) -> str:
    if problem := language_misfit(value):
        raise ValueError(f"{where}: {problem}")
    assert isinstance(value, str)
    return value


def _file(entry: Mapping[str, Any]) -> FileRecord:
    _refuse(field_misfits(entry, FileRecord))
    made = FileRecord(**entry)
    _check_checksum(made.sha256)
    _refuse(misfits(made, {"size": Whole(0, 1 << 40)}))
    return made


def _check_checksum(value: object) -> None:
    if not isinstance(value, str) or not _CHECKSUM.fullmatch(value):
        raise ValueError(f"{quote_value(value)} is not a checksum")


def _refuse(wrong: list[str]) -> None:
    if wrong:
        raise ValueError("; ".join(wrong))


# The JSON key is older than the name of the field.
_DEPENDS_ON = "made_of"


def _conversion(entry: Mapping[str, Any]) -> Conversion:
    fields = {"depends_on" if key == _DEPENDS_ON else key: entry[key] for key in entry}
    _refuse(field_misfits(fields, Conversion))
    made = Conversion(**fields)
    _check_checksum(made.depends_on)
    drift = Number(0, 1e9)
    _refuse(misfits(made, {"converter": Whole(0, 10**6), "mean_drift": drift, "largest_drift": drift}))
    return made


def _conversion_json(conversion: Conversion) -> dict[str, Any]:
    value = dataclasses.asdict(conversion)
    return {_DEPENDS_ON if key == "depends_on" else key: value[key] for key in value}


def _check_engines(path: Path, manifest: Manifest) -> None:
    unknown = [
        f"{part}/ needs the engine {quote_value(name)}"
        for part, name in manifest.engines.items()
        if name not in ENGINES or ENGINES[name].part != part
    ]
    if unknown:
        raise CadecError(
            f"{path}: {'; '.join(unknown)}, which is not installed here",
            "install the package that adds it, or upgrade cadec",
        )


def _check_names(path: Path, manifest: Manifest) -> None:
    """Raise a CadecError for names outside the bundle, unknown parts, and links that are not allowed."""
    named = (*manifest.files, *manifest.parts, *manifest.conversions, *manifest.links)
    outside = [name for name in named if leads_outside(name)]
    if outside:
        raise CadecError(f"{path} names files outside of the bundle: {_some(map(quote_value, outside))}")
    wrong = [problem for name in named if (problem := name_misfit(name))]
    if wrong:
        raise CadecError(f"{path} is damaged: {_some(wrong)}", AGAIN)
    wrong = [problem for part, what in manifest.parts.items() if (problem := part_misfit(part, what))]
    if wrong:
        raise CadecError(f"{path}: {_some(wrong)}, which this version of cadec lacks", "upgrade cadec")
    converted = {part for part, what in manifest.parts.items() if what == CONVERTED}
    wrong = [
        f"conversions and parts disagree: {part}/" for part in sorted(converted ^ manifest.conversions.keys())
    ]
    wrong += [f"{part}/ has an engine but is not a part" for part in manifest.engines.keys() - manifest.parts]
    wrong += [
        problem for name, place in manifest.links.items() if (problem := _link_misfit(name, place, manifest))
    ]
    wrong += [f"{name} is a link but not a listed file" for name in manifest.links.keys() - manifest.files]
    wrong += [f"it lists {name} itself" for name in manifest.files if name.casefold() == MANIFEST]
    if wrong:
        raise CadecError(f"{path} is damaged: {_some(wrong)}", AGAIN)


def _some(problems: Iterable[str]) -> str:
    found = list(problems)
    return "; ".join(found[:5]) + (f"; and {len(found) - 5} more" if len(found) > 5 else "")


def _checksum(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
