"""A tokenizer.json as the `tokenizers` library reads it, made to read text as text."""

from __future__ import annotations

from typing import Any

from cadec_cli.errors import CadecError

_UNHEARD_OF = "\ue000"  # a character that is in no vocabulary


def read_tokenizer(serialised: str, origin: str) -> Any:
    """A tokenizer; one that is damaged, and the library missing, is a CadecError."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise CadecError(
            f"{origin} needs the tokenizers package, which is not installed",
            "pip install 'cadec[huggingface]'",
        ) from None
    try:
        made = Tokenizer.from_str(serialised)
        made.encode(_UNHEARD_OF, add_special_tokens=False)  # or it fails at the first one in a text
    except BaseException as error:  # the library raises nothing more exact, and panics with less
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise CadecError(
            f"{origin} is no tokenizer of the tokenizers library, or is damaged: {error}"
        ) from None
    # What a file remembers of its last training run would cut long sentences, or pad short ones, unsaid.
    made.no_truncation()
    made.no_padding()
    # "<s>" in a subtitle is text.
    made.encode_special_tokens = True
    return made


def whole_characters(text: str) -> str:
    """The text with halves of characters, as broken JSON has, replaced: no tokenizer takes them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
