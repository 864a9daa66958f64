"""Checks where outputs go, so that errors are reported before the work.

No input is ever overwritten, and no other file unless the user asks for it. Everything that writes to a path
from the user calls `check_outputs`; an `OutputRequest` says where and how translations are written.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import write_errors
from cadec_cli.fs.paths import check_writable, is_stream, resolve_path

if TYPE_CHECKING:
    from cadec_cli.jobs.output_names import OutputPlan
    from cadec_cli.text.formats import TextFile


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
        from cadec_cli.jobs.output_names import Languages, plan_outputs

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
