"""The tokens of a language model that one translation model can need: a vocabulary that fits a language.

A pretrained language model of many languages has a token for every script and every programming language. As
a D-LM it scores one S-NMT's translations. Its softmax over the tokens that such translations are made of is a
language model in its own right, and far smaller.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from cadec_cli.text.token_text import TokenText
from cadec_cli.text.tokenizers.lines import LineText

# A byte, or a part of a character that is not complete, as `display_tokens` shows it.
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
_SPACE = "\u2581"


def written_pieces(text: TokenText) -> list[str]:
    """The pieces that a translation model's target side is written with, a space where a word begins."""
    pieces: Sequence[str] | None = getattr(text, "pieces", None)  # without those of the other side
    if pieces is not None:
        return [piece.replace(_SPACE, " ") for piece in pieces]
    return text.display_tokens(range(len(text.vocabulary)))


def fitted_vocabulary(text: LineText, pieces: Iterable[str]) -> list[int]:
    """The tokens of `text` that texts made of these pieces need, in rising order.

    These are the boundary, all tokens without letters, and those that write a piece: as it is, within a line,
    at the beginning of one, with a capital and without.
    """
    shown = text.display_tokens(range(len(text)))
    special = text.special_tokens
    tokens = {index for index, token in enumerate(shown) if not _has_letters(token)} - special
    forms = {form for piece in pieces for form in _forms(piece)}
    tokens.update(text.tokens_of_pieces(sorted(forms)) - special)
    tokens.add(text.boundary)
    return sorted(tokens)


def _has_letters(token: str) -> bool:
    """Tell whether a token has letters, or is a part of a character between other ones."""
    if _BYTE.fullmatch(token):
        return False
    return any(unicodedata.category(char)[0] == "L" for char in _BYTE.sub("x", token))


def _forms(piece: str) -> set[str]:
    word = piece.strip()
    if not word:
        return set()
    capital = word[:1].upper() + word[1:]
    return {piece, word, f" {word}", capital, f" {capital}"}
