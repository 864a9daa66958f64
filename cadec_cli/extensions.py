"""Additions from other packages: a table of ours, and what installed packages add to it by entry points.

A package on an index adds an engine, a format, a term or an objective by naming it in its own metadata:

    [project.entry-points."cadec.formats"]
    po = "my_package.po:FORMAT"

Nothing of a package is imported before its entry is looked up, so listing the names stays cheap. A bundle can
name an entry, but it never brings code of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from cadec_cli.errors import CadecError

Entry = TypeVar("Entry")


class Registry(Mapping[str, Entry], Generic[Entry]):
    """A read-only table by name: our own entries, then those of installed packages.

    `group` is the entry-point group, such as "cadec.formats"; `kind` is the class that an entry must have.
    Our own names can't be taken by a package. Looking up an entry that can't be imported, or is something
    else, is a CadecError that names the package.
    """

    def __init__(self, group: str, kind: type[Any], own: Mapping[str, Entry]) -> None:
        self.group = group
        self.kind = kind
        self._own = dict(own)

    @cached_property
    def _found(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=self.group) if point.name not in self._own}

    def __getitem__(self, name: str) -> Entry:
        if name in self._own:
            return self._own[name]
        self._own[name] = self._load(self._found[name])
        return self._own[name]

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._found

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys([*self._own, *self._found])

    def __len__(self) -> int:
        return len(set(self._own) | set(self._found))

    def _load(self, point: EntryPoint) -> Entry:
        package = point.dist.name if point.dist is not None else point.module
        try:
            entry: Entry = point.load()
        except Exception as error:  # a package may fail in any way when it is imported
            raise CadecError(
                f"{point.name!r} of the package {package} can't be used: {type(error).__name__}: {error}",
                f"update or uninstall {package}",
            ) from error
        if not isinstance(entry, self.kind):
            raise CadecError(
                f"{point.name!r} of the package {package} is not a {self.kind.__name__}",
                f"update or uninstall {package}",
            )
        return entry
