"""A SentencePiece model whose pieces are looked up in the model's own vocabulary.

Its own ids are not used: Marian's vocabulary is for both sides, fairseq's has other special tokens in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from cadec_cli.fs.read import read_errors
from cadec_cli.text.subwords import open_sentencepiece
from cadec_cli.text.tokenizers.lines import whole_characters
from cadec_cli.text.tokenizers.vocabulary import Vocabulary, VocabularyText

_SPACE = "\u2581"


class SentencePieceText(VocabularyText):
    """One side of a model, written with SentencePiece."""

    def __init__(self, path: Path, vocabulary: Vocabulary) -> None:
        with read_errors(path):
            super().__init__(vocabulary, path.read_bytes(), "sentencepiece")
        self._processor = open_sentencepiece(self._serialised, str(path))

    @cached_property
    def pieces(self) -> list[str]:
        """The pieces that texts are made of: those of SentencePiece, without its special ones."""
        processor = self._processor
        return [
            processor.IdToPiece(index)
            for index in range(processor.GetPieceSize())
            if not (processor.IsControl(index) or processor.IsUnknown(index) or processor.IsUnused(index))
        ]

    def encode(self, text: str) -> list[int]:
        """Turn a sentence into ids, without the boundary."""
        return self._vocabulary.ids(self._processor.EncodeAsPieces(whole_characters(text)))

    def decode(self, ids: Sequence[int]) -> str:
        """Turn ids into a sentence; special and unknown ones are skipped."""
        # SentencePiece does not know pieces of the other side, and leaves the space mark in them.
        text = str(self._processor.DecodePieces(self._vocabulary.texts(ids)))
        return text.replace(_SPACE, " ").strip()

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        """Each piece as a person reads it, a space where a word begins."""
        return [self._vocabulary.tokens[index].replace(_SPACE, " ") for index in ids]
