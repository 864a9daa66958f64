"""The Python interface: a bundle becomes a translator in one call. `import cadec_cli` is all it takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.errors import CadecError
from cadec_cli.jobs.job import TranslationJob
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.method.options import TranslationOptions

__all__ = ["CadecError", "Translation", "TranslationOptions", "Translator", "load"]


def load(
    bundle: str | Path | None = None,
    *,
    options: Mapping[str, Any] | TranslationOptions | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    device: str = "auto",
    compute_type: str = "int8",
    threads: int = 0,
) -> Translator:
    """Open a bundle and make a translator of it.

    Without `bundle` it is $CADEC_BUNDLE's, else the embedded one. `options` are all of them, or a mapping of
    what shall differ from the bundle's defaults: {"temperature": 1, "search": "lattice"}. Languages are the
    bundle's own, unless its models know more. What can't be done is a CadecError, which says why.
    """
    request = ModelRequest(
        Path(bundle) if bundle is not None else None,
        source_language,
        target_language,
        device,
        compute_type,
        threads,
    )
    return TranslationJob.open(request, options).translator
