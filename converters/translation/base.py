"""Translation models of other toolkits: the interface that a bundle uses, and the conversion of weights.

CTranslate2's own functions for a toolkit fill its specification. Our functions fill the network that the
result is compared with, from the same weights. So a weight that one of them mistakes is found by the other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from cadec_cli.engines.compute_types import check_compute_type
from cadec_cli.engines.ctranslate2 import Framing, framing_for
from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_directory, scratch_directory, write_errors
from cadec_cli.fs.read import sha256
from cadec_cli.models.pretrained_settings import TranslationSettings
from converters.own_networks import quantise, weight_misfits
from converters.request import PretrainedRequest
from converters.translation.reference_network import Network, reference_of
from converters.translation.tokenizer_files import tokenizers_of
from converters.verify import Drift, Probes, drift_from, random_probes, stated_licence


class TranslationImport(Protocol):
    """A model that was read and fits its tokenizer. Only `convert` writes anything."""

    @property
    def settings(self) -> TranslationSettings:
        """Everything that a bundle needs to know about it."""
        ...

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """The default source and target language, as ISO codes; None for one that is unknown."""
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
    """A model whose network torch can run token by token, for the C-aware beam."""

    def write_network(self, directory: Path) -> None:
        """Write the network into a new directory; a CadecError if the written copy scores differently."""
        ...


VERIFIED = "every token of probe sentences, against the original's weights run by torch"


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
    spec: Callable[[], Any]  # CTranslate2's, filled again at each call: quantising changes it
    source_ends_with: tuple[int, ...] = ()  # the ids that CTranslate2 adds to the source by itself

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


def import_weights(
    request: PretrainedRequest,
    *,
    family: str,
    weights: Path,
    origin: str,
    network: Network,
    vocabularies: tuple[Sequence[str], Sequence[str]],
    names: tuple[str, str],
    needed: tuple[Sequence[str], Sequence[str]],
    positions: int,
    spec: Callable[[], Any],
    source_begin: tuple[str, ...] = (),
    source_end: tuple[str, ...] = (),
    target_languages: tuple[str, ...] = (),
    source_ends_with: tuple[int, ...] = (),
) -> WeightsImport:
    """Check the weights of a toolkit's model against its vocabularies and tokenizers, and describe it.

    `weights` is the file they were read from; tokenizers and a licence are looked for beside it. `names` are
    the names of the two vocabularies in errors, `needed` the tokens that each must have.
    """
    source, target = vocabularies
    for vocabulary, side, name, tokens in zip(
        vocabularies, ("encoder", "decoder"), names, needed, strict=True
    ):
        check_vocabulary(vocabulary, network.weights[f"{side}.embedding"].shape[0], tokens, name)
    texts = tokenizers_of(weights.parent, request, source, target, target_languages)
    settings = TranslationSettings(
        family=family,
        origin=origin,
        licence=stated_licence(weights.parent),
        weights=sha256(weights),
        positions=positions,
        source=texts.source,
        target=texts.target,
        source_begin=source_begin,
        source_end=source_end,
        target_languages=target_languages,
        verified=VERIFIED,
    )
    return WeightsImport(
        settings=settings,
        languages=(request.source_language, request.target_language),
        files=texts.files,
        network=network,
        source_vocabulary=source,
        target_vocabulary=target,
        framing=framing_for(settings, request.source_language, request.target_language),
        spec=spec,
        source_ends_with=source_ends_with,
    )


def only_checkpoint(path: Path, toolkit: str, preferred: Sequence[str] = ()) -> Path:
    """The .pt file of a model: the path itself, or the only one in a directory, or the only preferred one."""
    if path.is_file():
        return path
    found = sorted(path.glob("*.pt"))
    best = [one for one in found if one.name in preferred]
    if len(found) == 1 or len(best) == 1:
        return (best or found)[0]
    seen = f"are several: {', '.join(one.name for one in found)}" if found else "is none"
    raise CadecError(f"{toolkit} model is a single .pt file; in {path} there {seen}", "give the file itself")


def ordinary(vocabulary: Sequence[str]) -> list[str]:
    """Return the tokens to make probes of: without special ones, and without those listed twice."""
    count = Counter(vocabulary)
    found = [
        token
        for token in vocabulary
        if count[token] == 1
        and not re.fullmatch(r"<.*>|>>.*<<|__\w+__|[a-z]{3}_[A-Z][a-z]{3}|[a-z]{2}_[A-Z]{2}|", token)
    ]
    if not found:
        raise CadecError("the model's vocabulary has only special tokens")
    return found


def check_vocabulary(vocabulary: Sequence[str], rows: int, needed: Sequence[str], name: str) -> None:
    """Raise a CadecError if a vocabulary does not fit the embeddings, or lacks a needed token."""
    missing = [token for token in needed if token not in set(vocabulary)]
    if len(vocabulary) != rows:
        raise CadecError(
            f"{name} has {len(vocabulary):,} tokens, the model's embeddings have {rows:,} rows",
            "is it another model's vocabulary?",
        )
    if missing:
        raise CadecError(f"{name} has no {' and no '.join(missing)}", "is it another model's vocabulary?")


def refuse_unsupported(toolkit: str, reasons: Sequence[str]) -> None:
    """Raise one error that lists all reasons why a model can't be converted, if there are any."""
    if reasons:
        raise CadecError(f"this {toolkit} model can't be converted: {'; '.join(reasons)}")


def unread_weights(names: Sequence[str]) -> list[str]:
    """Report weights that nothing here reads: a model with such weights is not of the kind it seems."""
    if not names:
        return []
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return [f"it has weights that no such transformer has: {', '.join(names[:5])}{more}"]
