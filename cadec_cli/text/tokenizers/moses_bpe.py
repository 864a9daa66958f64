"""Moses tokenisation and BPE codes of subword-nmt or fastBPE, as older models use them.

As in those tools, Moses separates words and BPE cuts them, with `@@` after every piece but a word's last.
Casing is left alone unless the model wants lower case.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import read_errors
from cadec_cli.text.tokenizers.vocabulary import Vocabulary, VocabularyText

_WORD_END = "</w>"
_CACHED_WORDS = 50_000


@dataclass(frozen=True, kw_only=True)
class MosesOptions:
    """The steps before BPE when the model was trained. Options are written `yes` and `no`."""

    tokenise: bool = True  # otherwise the text is split at its spaces
    normalise: bool = False  # punctuation
    escape: bool = False  # & as &amp;
    split_dashes: bool = False  # a-b as a @-@ b
    lowercase: bool = False
    separator: str = "@@"

    @classmethod
    def of(cls, options: Mapping[str, str]) -> MosesOptions:
        """Parse the options of a tokenizer's settings."""
        said = {name: value for name, value in options.items() if name in cls.__dataclass_fields__}
        wrong = [name for name, value in said.items() if name != "separator" and value not in ("yes", "no")]
        if wrong:
            raise CadecError(f"the tokenizer's {wrong[0]!r} is {said[wrong[0]]!r}, but must be yes or no")
        separator = said.pop("separator", "@@")
        return cls(separator=separator, **{name: value == "yes" for name, value in said.items()})


class Bpe:
    """Merges learnt by subword-nmt or fastBPE, applied to one word at a time."""

    def __init__(self, codes: str, origin: str = "the BPE codes") -> None:
        # Not splitlines(): pieces may hold characters that Python takes for ends of lines.
        lines = codes.split("\n")
        header = re.fullmatch(r"#version:\s*(\d{1,9})\.(\d{1,9})\s*", lines[0])
        written = [line.strip("\r ") for line in lines[1 if header else 0 :]]
        merges = [tuple(line.split(" ")) for line in written if line]
        # fastBPE writes the count of each pair, and no version.
        counted = bool(merges) and all(len(merge) == 3 and merge[2].isdigit() for merge in merges)
        unknown = header is None and lines[0].startswith("#version:")
        if unknown or not merges or not (counted or all(len(merge) == 2 for merge in merges)):
            raise CadecError(f"{origin} is not a file of BPE codes: a line holds two pieces")
        version = (int(header[1]), int(header[2])) if header else (0, 1)
        # Before version 0.2 of subword-nmt, the end of a word was a piece of its own.
        self._end_apart = not counted and version < (0, 2)
        self._ranks: dict[tuple[str, str], int] = {}
        for rank, merge in enumerate(merges):
            self._ranks.setdefault((merge[0], merge[1]), rank)
        self._known: dict[str, list[str]] = {}

    def pieces(self, word: str) -> list[str]:
        """Split a word into pieces; joined, they are the word."""
        found = self._known.get(word)
        if found is None:
            if len(self._known) >= _CACHED_WORDS:
                self._known.clear()
            found = self._known[word] = self._cut(word)
        return found

    def _cut(self, word: str) -> list[str]:
        if len(word) < 2:
            return [word]
        pieces = [*word, _WORD_END] if self._end_apart else [*word[:-1], word[-1] + _WORD_END]
        while len(pieces) > 1:
            ranked = [(self._ranks[pair], pair) for pair in itertools.pairwise(pieces) if pair in self._ranks]
            if not ranked:
                break
            pieces = _merge_pair(pieces, min(ranked)[1])
        last = pieces[-1].removesuffix(_WORD_END)
        return [*pieces[:-1], last] if last else pieces[:-1]


def _merge_pair(pieces: Sequence[str], pair: tuple[str, str]) -> list[str]:
    """Merge every occurrence of a pair into one piece, from the left."""
    merged: list[str] = []
    index = 0
    while index < len(pieces):
        if tuple(pieces[index : index + 2]) == pair:
            merged.append(pair[0] + pair[1])
            index += 2
        else:
            merged.append(pieces[index])
            index += 1
    return merged


class MosesBpeText(VocabularyText):
    """One side of a model, written with Moses and BPE; without codes, with whole words."""

    def __init__(
        self, codes: Path | None, vocabulary: Vocabulary, language: str, options: MosesOptions
    ) -> None:
        serialised = b""
        self._bpe = None
        if codes is not None:
            with read_errors(codes):
                serialised = codes.read_bytes()
            try:
                self._bpe = Bpe(serialised.decode("utf-8"), str(codes))
            except UnicodeDecodeError:
                raise CadecError(f"{codes} is not a file of BPE codes: it is not UTF-8") from None
        super().__init__(vocabulary, serialised, f"moses-bpe {language} {options}")
        self._options = options
        self._normaliser = MosesPunctNormalizer(lang=language)
        self._tokeniser = MosesTokenizer(lang=language)
        self._detokeniser = MosesDetokenizer(lang=language)

    @cached_property
    def pieces(self) -> list[str]:
        """The pieces that texts are made of."""
        return [token for token in self._vocabulary.tokens if token not in self._vocabulary.special]

    def _tokens(self, text: str) -> Iterable[str]:
        return (piece for word in self.words(text) for piece in self._cut(word))

    def words(self, text: str) -> list[str]:
        """Split a sentence into the words that BPE cuts."""
        options = self._options
        if options.normalise:
            text = self._normaliser.normalize(text)
        if options.lowercase:
            text = text.lower()
        if not options.tokenise:
            return text.split()
        # Split again: sacremoses can leave an unusual space of another script inside a token.
        tokens: list[str] = self._tokeniser.tokenize(
            text, escape=options.escape, aggressive_dash_splits=options.split_dashes
        )
        return [word for token in tokens for word in token.split()]

    def decode(self, ids: Sequence[int]) -> str:
        """Turn ids into a sentence; special and unknown ones are skipped."""
        joined = " ".join(self._vocabulary.texts(ids)) + " "
        words = [word for word in joined.replace(f"{self._options.separator} ", "").split(" ") if word]
        if not self._options.tokenise:
            return " ".join(words)
        if not words:
            return ""
        return str(self._detokeniser.detokenize(words, unescape=self._options.escape)).strip()

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        """Each piece as a person reads it, a space where a word begins."""
        separator = self._options.separator
        tokens = [self._vocabulary.tokens[index] for index in ids]
        begins = [True, *(not token.endswith(separator) for token in tokens[:-1])]
        return [
            (" " if begin else "") + token.removesuffix(separator)
            for begin, token in zip(begins, tokens, strict=False)
        ]

    def _cut(self, word: str) -> list[str]:
        if self._bpe is None:
            return [word]
        *before, last = self._bpe.pieces(word)
        return [*(piece + self._options.separator for piece in before), last]
