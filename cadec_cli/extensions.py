"""Tables by name that installed packages can add to.

A package adds an engine, a format, a term or an objective by naming it in its own metadata:

    [project.entry-points."cadec.formats"]
    po = "my_package.po:FORMAT"

The metadata of installed packages is searched when a table first needs it: when it is listed, or when a name
is not one of ours. A package's code is imported when its entry is looked up. A bundle can name an entry but
never brings code of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, MutableMapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from cadec_cli.errors import CadecError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Entry = TypeVar("Entry")
Loaded = TypeVar("Loaded")


def load(reference: str | Loaded) -> Loaded:
    """Import the object that "package.module:name" names; anything but a string is returned unchanged."""
    if not isinstance(reference, str):
        return reference
    module, _, name = reference.partition(":")
    loaded: Loaded = getattr(importlib.import_module(module), name)
    return loaded


class Registry(MutableMapping[str, Entry], Generic[Entry]):
    """Entries by name: first our own, then those added in this process, then those of installed packages.

    `group` is the entry-point group, such as "cadec.formats". `kind` is the class that an entry must have;
    its `name` must be that of the entry point. Our own names can't be taken. Looking up an entry that can't
    be imported, or isn't of that kind, raises a CadecError that names the package.
    """

    def __init__(self, group: str, kind: type[Any], own: Mapping[str, Entry]) -> None:
        self.group = group
        self.kind = kind
        self._own = dict(own)
        self._added: dict[str, Entry] = {}
        self._loaded: dict[str, Entry] = {}

    @cached_property
    def _points(self) -> dict[str, list[EntryPoint]]:
        from importlib.metadata import entry_points  # slow to import, and seldom needed

        points: dict[str, list[EntryPoint]] = {}
        for point in entry_points(group=self.group):
            points.setdefault(point.name, []).append(point)
        return points

    def __getitem__(self, name: str) -> Entry:
        for entries in (self._own, self._added, self._loaded):
            if name in entries:
                return entries[name]
        self._loaded[name] = self._load(self._points[name])
        return self._loaded[name]

    def __setitem__(self, name: str, entry: Entry) -> None:
        """Add an entry in this process."""
        if name in self._own:
            raise CadecError(f"{name!r} is a built-in name of cadec", "choose another name")
        self._added[name] = entry

    def __delitem__(self, name: str) -> None:
        """Remove an entry that was added in this process."""
        del self._added[name]

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._added or name in self._points

    def __iter__(self) -> Iterator[str]:
        """All names. No package is imported."""
        return iter(dict.fromkeys([*self._own, *self._added, *self._points]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    @property
    def own(self) -> tuple[Entry, ...]:
        """Our own entries. Installed packages are not searched."""
        return tuple(self._own.values())

    def usable(self) -> Iterator[Entry]:
        """All entries but those of packages that can't be imported."""
        for name in self:
            try:
                yield self[name]
            except CadecError:
                continue

    def _load(self, points: list[EntryPoint]) -> Entry:
        packages = sorted({point.dist.name if point.dist is not None else point.module for point in points})
        point, package = points[0], packages[0]
        if len(packages) > 1:
            raise CadecError(
                f"the packages {' and '.join(packages)} both add {point.name!r} to {self.group}",
                "uninstall one of them",
            )
        try:
            entry: Entry = point.load()
        except Exception as error:  # a package may fail in any way when it is imported
            problem = f"{type(error).__name__}: {error}"
        else:
            if isinstance(entry, self.kind) and getattr(entry, "name", point.name) == point.name:
                return entry
            problem = f"it is not a {self.kind.__name__} with that name"
        raise CadecError(
            f"{point.name!r} of the package {package} can't be used: {problem}",
            f"update or uninstall {package}",
        )
