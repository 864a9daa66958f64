"""Where translations of files go: one file, a directory, or a name made for every input from a template.

    film.en.srt → out/film.ru.srt               (-o out/)
    film.en.srt → film.ru.vtt                   (-o '{stem}.{to}.vtt')

Deals with names only; `outputs` checks whether a file exists and may be replaced.
"""

import itertools
import os
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cadec_cli.errors import CadecError
from cadec_cli.fs.paths import resolve_path, sibling_path
from cadec_cli.text.formats import COMPRESSED, FORMATS, format_with_ending
from cadec_cli.text.languages import iso_code
from cadec_cli.validation import quote_value

PLACEHOLDERS = ("stem", "name", "from", "to", "ext")
_IN_A_DIRECTORY = "{stem}.{to}{ext}"


class TemplateError(ValueError):
    """An output's name has braces around something that is not a placeholder."""


@dataclass(frozen=True)
class Languages:
    """The source and target language, as file names show them."""

    source: str
    target: str


@dataclass(frozen=True)
class OutputPlan:
    """The output path of each input, and the path of the journal."""

    paths: tuple[Path, ...]
    journal: Path | None  # None if an output is a pipe, beside which no file can be kept
    starts_over: bool = False  # an existing journal is removed when a new one begins

    def has(self, path: Path) -> bool:
        """Tell whether a path is an output or the journal, even if it is spelt differently."""
        own = [*self.paths, *([self.journal] if self.journal is not None else [])]
        return resolve_path(path) in map(resolve_path, own)

    def part(self, numbers: Sequence[int], journal: Path | None) -> "OutputPlan":
        """The plan for some of the files, with a journal of their own."""
        return replace(self, paths=tuple(self.paths[number] for number in numbers), journal=journal)


# Endings of files (not directories), besides those of the formats.
_OTHER_FILES = frozenset({".md", ".html"})
# Endings of files that are not text. An installed format may have them nevertheless.
_FOREIGN = frozenset({".pdf", ".doc", ".docx", ".odt", ".rtf", ".xlsx", ".epub", ".mp4", ".mkv"})


def is_template(output: str) -> bool:
    """Tell whether a name has placeholders; braces with anything else in them are a TemplateError."""
    try:
        found = [part[1:] for part in string.Formatter().parse(output) if part[1] is not None]
    except ValueError:
        raise TemplateError(f"{output!r} has an unmatched brace; write {{{{ for a literal one") from None
    for name, form, conversion in found:
        if name not in PLACEHOLDERS or form or conversion:
            known = ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
            raise TemplateError(f"{{{name}}} is not a placeholder; use {known}, or {{{{ for a literal brace")
    return bool(found)


def plan_outputs(
    output: str, inputs: Sequence[Path], languages: Languages, *, ext: str | None = None
) -> OutputPlan:
    """Return the output path of each input; `ext` is the ending of all outputs, if not that of the input.

    Two inputs with the same output, and names that can't be made, are a CadecError.
    """
    templated = is_template(output)
    if templated:
        paths = [Path(_fill_template(output, path, languages, ext)) for path in inputs]
    elif _is_directory(output, inputs):
        output = _unescape(output)
        paths = [Path(output, _fill_template(_IN_A_DIRECTORY, path, languages, ext)) for path in inputs]
    else:
        paths = [Path(_unescape(output))]
    if not all(path.name for path in paths):
        raise CadecError(f"{output} leaves a file without a name", "use {stem}, the name of the input")
    in_directory = len(paths) > 1 and not templated
    twice = [path for path, count in Counter(paths).items() if count > 1]
    if twice:
        same = [str(path) for path, target in zip(inputs, paths, strict=True) if target == twice[0]]
        raise CadecError(
            f"{' and '.join(same)} would both become {twice[0]}",
            "translate them one by one",
        )
    for path in paths:
        if path.suffix.lower() in _FOREIGN and format_with_ending(path.suffix) is None:
            raise CadecError(f"{path}: {path.suffix} can't be written", f"these can: {', '.join(FORMATS)}")
        if path.suffix.lower() in COMPRESSED:
            raise CadecError(f"{path}: outputs are not compressed", f"leave out {path.suffix}")
    journal = Path(output, ".cadec-journal") if in_directory else sibling_path(paths[0], ".cadec-journal")
    return OutputPlan(tuple(paths), journal)


def common_journal(output: str, plan: OutputPlan, part: str = "") -> Path:
    """The path of the journal in the directory of all outputs, whichever files are translated.

    A single output has its journal beside it. `part` distinguishes the journals of shards.
    """
    directory = _common_directory(output, plan)
    name = f".cadec-journal{part}"
    return sibling_path(plan.paths[0], name) if directory is None else directory / name


def common_record(output: str, plan: OutputPlan, name: str, part: str = "") -> Path:
    """The path of the hidden record of finished files."""
    directory = _common_directory(output, plan)
    first = plan.paths[0]
    return (
        sibling_path(first.with_name(f".{first.name}"), name)
        if directory is None
        else directory / f"{name}{part}"
    )


def _common_directory(output: str, plan: OutputPlan) -> Path | None:
    """The directory that contains all outputs; None if there is a single output."""
    if is_template(output):
        fixed = itertools.takewhile(lambda name: not is_template(name), Path(output).parts[:-1])
        return Path(*map(_unescape, fixed))
    return Path(_unescape(output)) if is_directory_of(output, plan) else None


def is_directory_of(output: str, plan: OutputPlan) -> bool:
    """Tell whether `output` is the directory of all files of a plan."""
    return all(path.parent == Path(_unescape(output)) for path in plan.paths)


def _unescape(output: str) -> str:
    return output.replace("{{", "{").replace("}}", "}")


def _is_directory(output: str, inputs: Sequence[Path]) -> bool:
    place = str(Path(_unescape(output)))
    if output.endswith("/") or os.path.isdir(place):  # noqa: PTH112 - returns False for an impossible path
        return True
    if len(inputs) > 1 and (os.path.exists(place) or _is_file_name(place)):  # noqa: PTH110
        raise CadecError(
            f"{output} is a file, and there are {len(inputs)} inputs",
            "name a directory, or files by a template such as '{stem}.{to}{ext}'",
        )
    return len(inputs) > 1


def _is_file_name(name: str) -> bool:
    ending = Path(name).suffix.lower()
    return ending in _OTHER_FILES or format_with_ending(ending) is not None


def _fill_template(template: str, path: Path, languages: Languages, ext: str | None) -> str:
    stem, ending = stem_and_ending(path.name, languages.source)
    if str(path) == "-":
        used = {name for _, name, _, _ in string.Formatter().parse(template)}
        if used & {"stem", "name", "ext"}:
            raise CadecError("standard input has no name to derive another from", "name the file to write")
    values = {
        "stem": stem,
        "name": path.name,
        "from": languages.source,
        "to": languages.target,
        "ext": ending if ext is None else ext,
    }
    for placeholder in ("from", "to"):
        if not _stays(values[placeholder]):
            raise CadecError(
                f"{quote_value(values[placeholder])} can't be used for {{{placeholder}}} in a file name"
            )
    return template.format_map(values)


def _stays(value: str) -> bool:
    """Tell whether a value, perhaps from an untrusted bundle, keeps a file within its directory."""
    return value not in (".", "..") and not any(character in value for character in "/\\\0")


def stem_and_ending(name: str, language: str) -> tuple[str, str]:
    """Split a file's name into its stem and its format's ending; an ending of `language` is dropped.

    `film.en.srt.gz` becomes (`film`, `.srt`), `dev.en` becomes (`dev`, ``).
    """
    path = Path(name)
    if path.suffix.lower() in COMPRESSED:
        path = Path(path.stem)
    ending = path.suffix
    if _is_of(ending, language):
        return path.stem, ""
    stem = path.stem
    language_ending = Path(stem).suffix
    return (Path(stem).stem if _is_of(language_ending, language) else stem), ending


def _is_of(ending: str, language: str) -> bool:
    return bool(language) and iso_code(ending.removeprefix(".")) == iso_code(language)
