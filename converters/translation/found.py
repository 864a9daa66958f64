"""A translation model of another toolkit, as a converter has found it and as a bundle takes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from cadec_cli.models.pretrained import TranslationSettings
from converters.verify import Drift


class TranslationImport(Protocol):
    """A model that was read and fits its tokenizer: nothing but `convert` writes anything."""

    @property
    def settings(self) -> TranslationSettings:
        """All that a bundle has to know of it."""
        ...

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """From which language to which, as ISO codes, by default: None where nothing says so."""
        ...

    @property
    def files(self) -> Mapping[str, Path]:
        """The files of its tokenizers, by the names that the settings use."""
        ...

    def convert(self, output: Path, compute_type: str) -> Drift:
        """Write it as a CTranslate2 model; one that disagrees with the original is a CadecError."""
        ...


@runtime_checkable
class NetworkImport(TranslationImport, Protocol):
    """A model whose network torch can step, for the C-aware beam."""

    def write_network(self, directory: Path) -> None:
        """Write the network into a new directory; one that then says something else is a CadecError."""
        ...
