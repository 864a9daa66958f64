"""A bundle's translation models for CTranslate2: what a conversion depends on, and the one way to make one.

Building puts conversions into bundles, opening puts missing ones into the user's cache; both come here. It
knows manifests and what they list, not bundles, whose opening uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cadec_cli.bundle.manifest import Conversion, Manifest
from converters import version

if TYPE_CHECKING:
    from cadec_cli.models.transformer import Transformer
    from cadec_cli.text.pipeline import TextPipeline
    from converters.verify import Drift


def dependencies(manifest: Manifest, part: str = "nmt") -> str:
    """One checksum of all in a bundle that a conversion depends on: the weights, and what the ids mean."""
    return manifest.listing_digest(*depends_on(part))


def depends_on(part: str = "nmt") -> tuple[str, ...]:
    """The parts of a bundle that a conversion of one of them is made of."""
    return (part, "source", "target")


def is_current(conversion: Conversion | None, manifest: Manifest) -> bool:
    """Tell whether there is a conversion, and it is what converting this bundle's S-NMT now would give."""
    if conversion is None:
        return False
    return (conversion.depends_on, conversion.converter) == (
        dependencies(manifest),
        version.CONVERTER_VERSION,
    )


def cache_key(manifest: Manifest, compute_type: str, part: str = "nmt") -> str:
    """A name for a conversion that differs wherever the result would.

    It speaks of files by their checksums, and is shared by all bundles: whoever puts something there under
    this name has seen that the files are these.
    """
    return f"{manifest.digest(*depends_on(part))[:40]}-{compute_type}-{version.CONVERTER_VERSION}"


def conversion_record(manifest: Manifest, drift: Drift) -> Conversion:
    """What a manifest remembers of a conversion of this bundle's S-NMT."""
    return Conversion(dependencies(manifest), version.CONVERTER_VERSION, drift.mean, drift.largest)


def convert(
    network: Transformer,
    source: TextPipeline,
    target: TextPipeline,
    *,
    compute_type: str,
    directory: Path,
    probes: Sequence[tuple[str, str]] = (),
) -> Drift:
    """Write an S-NMT as a CTranslate2 model, whole or not at all; report how far it is from torch.

    Probes are sentence pairs to compare the two on, besides random ones.
    """
    from converters.ctranslate2_models import convert_translation_model

    return convert_translation_model(
        network,
        source.subwords.pieces,
        target.subwords.pieces,
        directory,
        compute_type,
        [(source.encode(text), target.encode(translation)) for text, translation in probes],
    )
