"""Tokenizers of other toolkits: text to the ids of a model's vocabulary and back.

Ids are positions in the vocabulary of the converted model, whatever ids the tokenizer itself uses. Tokens
around a sentence (its end, a language's token) are not added here.

All kinds have these options: `special`, the tokens that are not text, separated by spaces; `end` and
`unknown`, which are two of them. Without these options, the usual names are looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from cadec_cli.errors import CadecError
from cadec_cli.text.token_text import TokenText
from cadec_cli.text.tokenizers.vocabulary import SentencePieceText, TextSettings, TokenizersText, Vocabulary


class PretrainedText(TokenText, Protocol):
    """The interface of all kinds of tokenizers."""

    @property
    def pieces(self) -> Sequence[str]:
        """The tokens that texts are made of, without special ones."""
        ...


Loader = Callable[[Sequence[Path], Mapping[str, str], Vocabulary, str], PretrainedText]


def load_text(
    directory: Path, settings: TextSettings, vocabulary: Sequence[str], language: str
) -> PretrainedText:
    """Load the tokenizer of one side from its settings; a missing or damaged file is a CadecError."""
    if settings.kind not in KINDS:
        raise CadecError(
            f"unknown kind of tokenizer: {settings.kind!r}",
            f"this version of cadec knows {', '.join(KINDS)}; a newer one may know more",
        )
    files = [directory / name for name in settings.files]
    for path in files:
        if not path.is_file():
            raise CadecError(f"the tokenizer's file {path} is missing", "build the bundle again")
    tokens = Vocabulary.of(vocabulary, settings.options)
    return KINDS[settings.kind](files, settings.options, tokens, language)


def _sentencepiece(
    files: Sequence[Path], options: Mapping[str, str], vocabulary: Vocabulary, language: str
) -> PretrainedText:
    return SentencePieceText(_only(files), vocabulary)


def _tokenizers(
    files: Sequence[Path], options: Mapping[str, str], vocabulary: Vocabulary, language: str
) -> PretrainedText:
    return TokenizersText(_only(files), vocabulary)


def _moses_bpe(
    files: Sequence[Path], options: Mapping[str, str], vocabulary: Vocabulary, language: str
) -> PretrainedText:
    from cadec_cli.text.tokenizers.moses_bpe import MosesBpeText, MosesOptions

    codes = _only(files) if files else None
    return MosesBpeText(codes, vocabulary, language, MosesOptions.of(options))


def _only(files: Sequence[Path]) -> Path:
    if len(files) != 1:
        raise CadecError(f"a tokenizer has one file, not {len(files)}", "build the bundle again")
    return files[0]


KINDS: dict[str, Loader] = {
    "sentencepiece": _sentencepiece,
    "tokenizers": _tokenizers,
    "moses-bpe": _moses_bpe,
}
