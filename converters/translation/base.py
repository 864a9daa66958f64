"""A model of another toolkit whose weights were read: written as a CTranslate2 model, held to the original.

CTranslate2's specification is filled by its own functions for the toolkit, the network that it is compared
with by ours, from the same weights: a name that one of them mistakes is found by the other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from cadec_cli.engines.compute_types import check_compute_type
from cadec_cli.engines.ctranslate2 import Framing
from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_directory, scratch_directory, write_errors
from cadec_cli.models.pretrained_settings import TranslationSettings
from converters.own_networks import quantise, weight_misfits
from converters.translation.reference_network import Network, reference_of
from converters.verify import Drift, Probes, drift_from, random_probes

# A translation model of another toolkit, as a converter has found it and as a bundle takes it.


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


VERIFIED = "every token of probe sentences, against the original's weights run by torch"

# Said to whoever runs the program: what was taken for granted, what is unusual.
Note = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """What a user said of a model, besides where it is."""

    source_language: str | None = None
    target_language: str | None = None
    source_tokenizer: Path | None = None
    target_tokenizer: Path | None = None
    note: Note = field(default=lambda text: None, repr=False)


@dataclass(frozen=True, kw_only=True)
class WeightsImport:
    """A translation model whose weights are in memory; see `TranslationImport`."""

    settings: TranslationSettings
    languages: tuple[str | None, str | None]
    files: Mapping[str, Path]
    network: Network
    source_vocabulary: Sequence[str]
    target_vocabulary: Sequence[str]
    framing: Framing
    spec: Callable[[], Any]  # CTranslate2's, filled anew at each call: quantising ruins it
    source_ends_with: tuple[int, ...] = ()  # what CTranslate2 adds to the source by itself

    def convert(self, output: Path, compute_type: str) -> Drift:
        """Write it as a CTranslate2 model; one that disagrees with the original is a CadecError."""
        check_compute_type(compute_type)
        wrong = weight_misfits(self.network.weights, compute_type)
        if wrong:
            more = f" and {len(wrong) - 8} more" if len(wrong) > 8 else ""
            raise CadecError(f"this model can't be converted to {compute_type}: {'; '.join(wrong[:8])}{more}")
        # Exact first: with fewer bits a mistake would look like rounding.
        if compute_type != "float32":
            with write_errors(output), scratch_directory() as exact:
                self._write(exact, "float32")
        with atomic_directory(output) as part:
            return self._write(part, compute_type)

    def _write(self, directory: Path, compute_type: str) -> Drift:
        spec = self.spec()
        quantise(spec, compute_type)
        spec.save(str(directory))
        reference = reference_of(
            self.network,
            self.source_vocabulary,
            self.target_vocabulary,
            source_ends_with=self.source_ends_with,
        )
        drift = drift_from(reference, directory, compute_type, self._probes())
        drift.check()
        return drift

    def _probes(self) -> Probes:
        return random_probes(
            self.framing,
            ordinary(self.source_vocabulary),
            ordinary(self.target_vocabulary),
            self.settings.positions - len(self.source_ends_with),
        )


def ordinary(vocabulary: Sequence[str]) -> list[str]:
    """The tokens that probes are made of: no special ones, and none that is there twice."""
    count = Counter(vocabulary)
    found = [
        token
        for token in vocabulary
        if count[token] == 1
        and not re.fullmatch(r"<.*>|>>.*<<|__\w+__|[a-z]{3}_[A-Z][a-z]{3}|[a-z]{2}_[A-Z]{2}|", token)
    ]
    if not found:
        raise CadecError("the model's vocabulary holds nothing but special tokens")
    return found


def check_vocabulary(vocabulary: Sequence[str], rows: int, needed: Sequence[str], name: str) -> None:
    """Refuse a vocabulary that is not the one of the embeddings."""
    missing = [token for token in needed if token not in set(vocabulary)]
    if len(vocabulary) != rows:
        raise CadecError(
            f"{name} has {len(vocabulary):,} tokens, the model's embeddings are {rows:,}",
            "is it another model's vocabulary?",
        )
    if missing:
        raise CadecError(f"{name} has no {' and no '.join(missing)}", "is it another model's vocabulary?")


def refuse_unsupported(toolkit: str, reasons: Sequence[str]) -> None:
    """Raise one error that lists all that stands in the way, if anything does."""
    if reasons:
        raise CadecError(f"this {toolkit} model can't be converted: {'; '.join(reasons)}")


def unread_weights(names: Sequence[str]) -> list[str]:
    """What to say of weights that nothing here reads: the model is of another kind than it seems."""
    if not names:
        return []
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return [f"it has weights that no such transformer has: {', '.join(names[:5])}{more}"]
