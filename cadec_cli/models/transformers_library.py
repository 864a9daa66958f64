"""The transformers library, an extra: there, or a clear error; and quiet."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from cadec_cli.errors import CadecError


def transformers_library() -> Any:
    """The library, imported now."""
    try:
        import transformers
    except ImportError:
        raise CadecError(
            "for models of Hugging Face and GGUF files the transformers package is needed",
            "pip install 'cadec[huggingface]'",
        ) from None
    return transformers


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Without its progress bars, warnings and advice: what matters is found out and said here."""
    logging = transformers_library().utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
