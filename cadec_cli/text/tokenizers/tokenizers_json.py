"""A `tokenizer.json` of the `tokenizers` library, without its template and its special tokens.

A "</s>" in a text is text: it does not end the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import read_errors
from cadec_cli.text.tokenizers.lines import read_tokenizer, whole_characters
from cadec_cli.text.tokenizers.vocabulary import Vocabulary, VocabularyText

_SPACES = re.compile("[\u2581\u0120]")  # of SentencePiece, and of byte-level BPE


class TokenizersText(VocabularyText):
    """One side of a model, written with the `tokenizers` library."""

    def __init__(self, path: Path, vocabulary: Vocabulary) -> None:
        with read_errors(path):
            super().__init__(vocabulary, path.read_bytes(), "tokenizers")
        try:
            self._tokenizer = read_tokenizer(self._serialised.decode("utf-8"), str(path))
        except UnicodeDecodeError:
            raise CadecError(f"{path} is damaged: it is not UTF-8") from None
        self._own_ids: dict[str, int] = self._tokenizer.get_vocab(with_added_tokens=True)

    @cached_property
    def pieces(self) -> list[str]:
        """The pieces that texts are made of, without special ones."""
        return [token for token in self._own_ids if token not in self._vocabulary.special]

    def encode(self, text: str) -> list[int]:
        """Turn a sentence into ids, without the boundary."""
        tokens = self._tokenizer.encode(whole_characters(text), add_special_tokens=False).tokens
        return self._vocabulary.ids(tokens)

    def decode(self, ids: Sequence[int]) -> str:
        """Turn ids into a sentence; special and unknown ones are skipped."""
        tokens = self._vocabulary.texts(ids)
        own = [self._own_ids[token] for token in tokens if token in self._own_ids]
        return str(self._tokenizer.decode(own, skip_special_tokens=True)).strip()

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        """Each piece as a person reads it, a space where a word begins."""
        return [_SPACES.sub(" ", self._vocabulary.tokens[index]) for index in ids]
