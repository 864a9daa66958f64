"""Where outputs go, checked so that errors are reported before the work.

No input is ever overwritten, and no other file unless the user asks for it. Everything that writes to a path
from the user calls `check_outputs`; an `OutputRequest` says where and how translations are written: in
one file, a directory, or under a name made for every input from a template.

    film.en.srt → out/film.ru.srt               (-o out/)
    film.en.srt → film.ru.vtt                   (-o '{stem}.{to}.vtt')
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import write_errors
from cadec_cli.fs.paths import check_writable, is_stream, resolve_path, sibling_path
from cadec_cli.text.formats import COMPRESSED, FORMATS, format_with_ending
from cadec_cli.text.formats.foreign import FOREIGN_ENDINGS
from cadec_cli.validation import quote_value

if TYPE_CHECKING:
    from cadec_cli.text.formats import TextFile


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

    def part(self, numbers: Sequence[int], journal: Path | None) -> OutputPlan:
        """The plan for some of the files, with a journal of their own."""
        return replace(self, paths=tuple(self.paths[number] for number in numbers), journal=journal)


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
    for number, path in enumerate(paths):
        ending = path.suffix.lower()
        # A file that is read as text, whatever its name says, may be written under such a name.
        as_read = number < len(inputs) and ending == inputs[number].suffix.lower()
        if ending in FOREIGN_ENDINGS and not as_read and format_with_ending(ending) is None:
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
    return format_with_ending(Path(name).suffix) is not None


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
    from cadec_cli.text.languages import iso_code

    return bool(language) and iso_code(ending.removeprefix(".")) == iso_code(language)


STANDARD_STREAM = Path("-")
FORCE = f"{option('force')} replaces {{them}}"
_NOT_KNOWN = "there is no record that this translation of these inputs wrote {them}; " + FORCE

# Letters that every text in the script has, to notice early that an encoding lacks them.
_LETTERS = {
    "Greek": "αιο",
    "Cyrillic": "аиосн",
    "Armenian": "աեի",
    "Hebrew": "אוי",
    "Arabic": "اول",
    "Devanagari": "कार",
    "Bengali": "কার",
    "Tamil": "கார",
    "Telugu": "కార",
    "Malayalam": "കാര",
    "Sinhala": "කාර",
    "Thai": "กาน",
    "Georgian": "აეი",
    "Kana": "のにか",
    "Hangul": "이다",
}


def check_outputs(
    outputs: Iterable[Path | None],
    *,
    inputs: Iterable[Path | str | None] = (),
    force: bool = False,
    hint: str = FORCE,
    directories: bool = False,
    kept: Iterable[Path | None] = (),
) -> None:
    """Refuse to overwrite an input, and without `force` any other file; the error names all of them.

    An output that is known to be unwritable is refused as well. Standard streams and None are ignored. Pipes,
    devices and, with `directories`, empty directories may be written to. Files that are `kept` beside the
    outputs, such as the journal, must differ from all inputs and outputs.
    """
    wanted = [path for path in outputs if path is not None and path != STANDARD_STREAM]
    given = [Path(path) for path in inputs if path is not None and Path(path) != STANDARD_STREAM]
    known: _Inputs | None = None  # looked at only if something is to be written
    there = []
    for output in wanted:
        with write_errors(output):
            if not _is_device(output):  # a terminal may be both input and output
                known = known or _Inputs.of(given)
                known.refuse(output)
            check_writable(output, directory=directories)
            if not force and _is_occupied(output):
                there.append(output)
    for path in kept:
        if path is not None:
            known = known or _Inputs.of(given)
            known.refuse(path)
            wanted.append(path)
    _refuse_twins([path for path in wanted if not is_stream(path)])
    if there:
        verb, them = ("exists", "it") if len(there) == 1 else ("exist", "them")
        raise CadecError(f"{join_paths(there)} {verb} already", hint.format(them=them))


def join_paths(paths: Sequence[Path]) -> str:
    """Join paths with commas and "and"."""
    *first, last = map(str, paths)
    return f"{', '.join(first)} and {last}" if first else last


def _is_device(path: Path) -> bool:
    return path.is_char_device()


def _refuse_twins(outputs: Sequence[Path]) -> None:
    """Refuse two outputs that are the same file, also through links."""
    names: dict[Path, Path] = {}
    for path in outputs:
        other = names.setdefault(resolve_path(path), path)
        if other is not path:
            raise CadecError(f"{other} and {path} are the same file", "write to different ones")


def _is_occupied(path: Path) -> bool:
    if is_stream(path):
        return False
    if path.is_dir() and not path.is_symlink():
        return any(path.iterdir())
    return os.path.lexists(path)  # a dangling link counts too


@dataclass(frozen=True)
class _Inputs:
    """The inputs, links resolved; each is examined once, because there may be thousands of them."""

    files: Mapping[tuple[int, int], Path]
    directories: Mapping[Path, Path]  # each with one input that it contains

    @classmethod
    def of(cls, paths: Iterable[Path]) -> _Inputs:
        files, directories = {}, {}
        for path in paths:
            if path.exists():
                files[_identity(path)] = path
                directories.update(dict.fromkeys(resolve_path(path).parents, path))
        return cls(files, directories)

    def refuse(self, output: Path) -> None:
        """Refuse an output that is an input, or a directory that holds one."""
        same = output.exists() and _identity(output) in self.files
        held = self.directories.get(resolve_path(output))
        if same or held is not None:
            what = "is the input" if same else f"holds the input {held}"
            raise CadecError(
                f"{output} {what}: it would be replaced",
                f"write to another place; {option('force')} does not help",
            )


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


@dataclass(frozen=True)
class OutputRequest:
    """Where translations go: a file, a directory or a template; None is standard output."""

    output: str | None
    encoding: str = "utf-8"
    json_lines: bool = False
    force: bool = False
    resume: bool = False

    @property
    def to_files(self) -> bool:
        """Tell whether to write files; `-` means standard output."""
        return self.output not in (None, str(STANDARD_STREAM))

    def plan(
        self, inputs: Sequence[Path], source: str, target: str, also_read: Sequence[Path | None] = ()
    ) -> OutputPlan | None:
        """Plan the files to write. None may be an input, and none may exist unless `force` is set."""
        if not self.to_files:
            return None
        plan = self.name(inputs, source, target)
        if any(map(is_stream, plan.paths)):
            plan = dataclasses.replace(plan, journal=None)
        return self.check(plan, [*inputs, *also_read])

    def name(self, inputs: Sequence[Path], source: str, target: str) -> OutputPlan:
        """Name the output of each input, without checking it."""

        assert self.output is not None, "it goes to standard output"
        ext = ".jsonl" if self.json_lines else None
        return plan_outputs(self.output, inputs, Languages(source, target), ext=ext)

    def check(self, plan: OutputPlan, read: Sequence[Path | None], record: Path | None = None) -> OutputPlan:
        """Return a plan that can be carried out; a CadecError if an output exists or is also read.

        `record` is where finished files are recorded, if they are.
        """
        from cadec_cli.fs.append_log import refuse_unfinished
        from cadec_cli.fs.locks import ensure_unlocked

        # Existing files may be an unfinished translation's own: the error should be about that instead.
        unfinished = plan.journal is not None and os.path.lexists(plan.journal)
        check_outputs(
            plan.paths,
            inputs=read,
            force=self.force or unfinished,
            hint=_NOT_KNOWN if self.resume else FORCE,
            kept=[plan.journal, record],
        )
        if plan.journal is None or self.resume:
            return plan
        if not self.force:
            refuse_unfinished(plan.journal)
            return plan
        ensure_unlocked(plan.journal)
        return dataclasses.replace(plan, starts_over=True)

    def convert(
        self, files: Sequence[TextFile], inputs: Sequence[Path], plan: OutputPlan | None, target: str
    ) -> list[TextFile]:
        """Convert the files to the format of their output's name, and to the output encoding."""
        from cadec_cli.fs.read import name_of
        from cadec_cli.text.formats.conversion import as_format, in_encoding, promised_format

        if self.json_lines:
            return list(files)
        letters = _letters(target)
        wanted = [None] * len(files) if plan is None else map(promised_format, plan.paths, inputs)
        return [
            in_encoding(as_format(file, format_, name_of(path)), self.encoding, letters)
            for file, path, format_ in zip(files, inputs, wanted, strict=True)
        ]

    def convert_stream(self, file: TextFile, target: str) -> TextFile:
        """Convert a stream to the output encoding."""
        from cadec_cli.text.formats.conversion import as_it_comes_in_encoding

        return file if self.json_lines else as_it_comes_in_encoding(file, self.encoding, _letters(target))


def _letters(language: str) -> str:
    """Some letters that every text in a language has."""
    from cadec_cli.text.protected.spans import scripts_of

    scripts = scripts_of(language)
    return _LETTERS.get(scripts[0], "") if len(scripts) == 1 else ""
