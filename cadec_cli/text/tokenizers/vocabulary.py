"""The vocabulary of one side of a converted model, and the tokenizers that another library reads.

A vocabulary maps tokens to ids, and says which tokens are not text. The ids of a tokenizer are not used:
Marian's vocabulary is for both sides, and fairseq's has other special tokens in front.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import read_errors
from cadec_cli.text.tokenizers.line_text import read_tokenizer, whole_characters


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """How one side of a model is written: a kind of tokenizer, its files, and the kind's own options."""

    kind: str  # of text.tokenizers.KINDS
    files: tuple[str, ...]  # beside the settings
    options: Mapping[str, str] = field(default_factory=dict)


_ENDS = ("</s>", "<eos>", "<EOS>", "<|endoftext|>")
_UNKNOWNS = ("<unk>", "<UNK>", "[UNK]")
# The usual names of tokens that are not text.
_SPECIAL = frozenset({"<s>", "<pad>", "<blank>", "<mask>", "<bos>", *_ENDS, *_UNKNOWNS})


@dataclass(frozen=True)
class Vocabulary:
    """Tokens in the order of their ids."""

    tokens: Sequence[str]
    end: str
    unknown: str
    special: frozenset[str] = field(repr=False)

    @classmethod
    def of(cls, tokens: Sequence[str], options: Mapping[str, str]) -> Vocabulary:
        """Make a vocabulary; a CadecError if it has no end-of-sentence token, or no unknown token."""
        known = set(tokens)
        end = options.get("end") or _first(_ENDS, known)
        unknown = options.get("unknown") or _first(_UNKNOWNS, known)
        for name, token in (("end of a sentence", end), ("unknown token", unknown)):
            if token not in known:
                raise CadecError(
                    f"the model's vocabulary of {len(tokens):,} tokens has no {token or name}",
                    "is it the vocabulary of a translation model?",
                )
        special = frozenset(options["special"].split()) if "special" in options else _SPECIAL
        return cls(tokens, end, unknown, special | {end, unknown})

    @cached_property
    def boundary(self) -> int:
        """The id of the end of a sentence."""
        return self._ids[self.end]

    @cached_property
    def skipped_ids(self) -> frozenset[int]:
        """The ids of tokens that are not text."""
        return frozenset(self._ids[token] for token in self.special if token in self._ids)

    def ids(self, tokens: Iterable[str]) -> list[int]:
        """The ids of some tokens; tokens that are not in the vocabulary get the unknown token's id."""
        unknown = self._ids[self.unknown]
        return [self._ids.get(token, unknown) for token in tokens]

    def texts(self, ids: Iterable[int]) -> list[str]:
        """The tokens of some ids, without those that are not text."""
        return [self.tokens[index] for index in map(int, ids) if index not in self.skipped_ids]

    def identity(self, *parts: bytes) -> str:
        """A checksum of the vocabulary and of everything else that the ids of a text depend on."""
        digest = hashlib.sha256(json.dumps([list(self.tokens), sorted(self.special)]).encode())
        for part in parts:
            digest.update(f"\n{len(part)}\n".encode() + part)
        return digest.hexdigest()

    @cached_property
    def _ids(self) -> dict[str, int]:
        # If tokens are equal, CTranslate2 uses the first.
        return {token: index for index, token in reversed(list(enumerate(self.tokens)))}


def _first(names: Sequence[str], known: set[str]) -> str:
    return next((name for name in names if name in known), "")


# What is read instead of marks that a vocabulary lacks: the first that it has. To a model, an unknown token
# may be anything, and it often leaves out what stands beside it.
_SUBSTITUTES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("“”„‟«»″〝〞", ('"', "''")),
    ("‘’‚‛′‹›", ("'",)),
    ("—―", (" — ", " – ", " - ")),
    ("–‒−‐‑", ("-",)),
    ("…", ("...",)),
    ("\u00a0\u202f\u2007\u2009\u200a", (" ",)),
)


def readable_marks(encode: Callable[[str], Sequence[int]], unknown: int) -> dict[int, str]:
    """Return what to read instead of the punctuation that a tokenizer does not know, as for `str.translate`.

    `encode` gives the ids of a text, in which `unknown` stands for what the vocabulary lacks.
    """

    def knows(mark: str) -> bool:
        return unknown not in encode(f"a{mark}b")

    found = {}
    for marks, substitutes in _SUBSTITUTES:
        for mark in marks:
            instead = next((one for one in substitutes if knows(one)), None)
            if instead is not None and not knows(mark):
                found[ord(mark)] = instead
    return found


class VocabularyText:
    """The base of all kinds of tokenizers: ids are positions in the vocabulary of the converted model.

    `serialised` is the content of the tokenizer's file; `kind` names everything else that the ids depend on.
    Both are part of the identity.
    """

    def __init__(self, vocabulary: Vocabulary, serialised: bytes, kind: str) -> None:
        self._vocabulary, self._serialised, self._kind = vocabulary, serialised, kind

    @cached_property
    def identity(self) -> str:
        """A checksum of everything that the ids of a text depend on."""
        return self._vocabulary.identity(self._kind.encode(), self._serialised)

    @property
    def boundary(self) -> int:
        """The id that ends a sentence."""
        return self._vocabulary.boundary

    @property
    def vocabulary(self) -> Sequence[str]:
        """All tokens, in the order of their ids."""
        return self._vocabulary.tokens

    def encode(self, text: str) -> list[int]:
        """Turn a sentence into ids, without the boundary; marks that the vocabulary lacks become plain."""
        return self._vocabulary.ids(self._tokens(self.with_known_marks(text)))

    def with_known_marks(self, text: str) -> str:
        """Return a text with plain quotes, dashes and the like where the vocabulary lacks its own."""
        return text if text.isascii() else text.translate(self._marks)

    def _tokens(self, text: str) -> Iterable[str]:
        """Cut a text into tokens, those that the vocabulary lacks included."""
        raise NotImplementedError

    @cached_property
    def _marks(self) -> dict[int, str]:
        vocabulary = self._vocabulary
        unknown = vocabulary.ids([vocabulary.unknown])[0]
        return readable_marks(lambda text: vocabulary.ids(self._tokens(text)), unknown)


# The marks of a space:
_SPACES = re.compile("[\u2581\u0120]")  # of SentencePiece, and of byte-level BPE


class TokenizersText(VocabularyText):
    """One side of a model, written with the `tokenizers` library, without its template and special tokens.

    A "</s>" in a text is text: it does not end the sentence.
    """

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

    def _tokens(self, text: str) -> Iterable[str]:
        tokens: list[str] = self._tokenizer.encode(whole_characters(text), add_special_tokens=False).tokens
        return tokens

    def decode(self, ids: Sequence[int]) -> str:
        """Turn ids into a sentence; special and unknown ones are skipped."""
        tokens = self._vocabulary.texts(ids)
        own = [self._own_ids[token] for token in tokens if token in self._own_ids]
        return str(self._tokenizer.decode(own, skip_special_tokens=True)).strip()

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        """Each piece as a person reads it, a space where a word begins."""
        return [_SPACES.sub(" ", self._vocabulary.tokens[index]) for index in ids]


_SPACE = "\u2581"


class SentencePieceText(VocabularyText):
    """One side of a model, written with SentencePiece."""

    def __init__(self, path: Path, vocabulary: Vocabulary) -> None:
        from cadec_cli.text.subwords import open_sentencepiece  # settings are read without the library

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

    def _tokens(self, text: str) -> Iterable[str]:
        pieces: list[str] = self._processor.EncodeAsPieces(whole_characters(text))
        return pieces

    def decode(self, ids: Sequence[int]) -> str:
        """Turn ids into a sentence; special and unknown ones are skipped."""
        # SentencePiece does not know pieces of the other side, and leaves the space mark in them.
        text = str(self._processor.DecodePieces(self._vocabulary.texts(ids)))
        return text.replace(_SPACE, " ").strip()

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        """Each piece as a person reads it, a space where a word begins."""
        return [self._vocabulary.tokens[index].replace(_SPACE, " ") for index in ids]
