"""Context-aware translation from any sentence-level model and a document language model.

    import cadec_cli

    translator = cadec_cli.load()
    for translation in translator.translate(["Who are you?", "I saw you yesterday."]):
        print(translation.text)

`load` opens a bundle: the embedded one, or yours. docs/python.md shows the rest of the interface. Importing
the package is cheap: torch and its like are imported when something is loaded.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cadec_cli.version import __version__

if TYPE_CHECKING:
    from cadec_cli.api import (
        Alternative,
        CadecError,
        Session,
        Translation,
        TranslationOptions,
        Translator,
        load,
    )

__all__ = [
    "Alternative",
    "CadecError",
    "Session",
    "Translation",
    "TranslationOptions",
    "Translator",
    "__version__",
    "load",
]

# OpenMP's threads spin while they wait for each other, which on a busy machine takes more time than the work.
# Let them sleep, but not at once: most waits are short, and without any spinning a single list took 1.7 times
# as long. torch and CTranslate2 read these variables when they are loaded, so they are set here.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def __getattr__(name: str) -> Any:
    """Import the interface when one of its names is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cadec_cli import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
