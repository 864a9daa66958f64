"""Text as a pretrained language model reads it: one sentence per line, tokens of its own tokenizer.json.

A sentence ends with a line break, which is one token: the boundary. Most tokenizers read a line break as a
token, whatever precedes it. Some join it to a full stop (`.⏎` is one token of Llama 3 and Qwen), so that the
ids of a sentence would depend on the text after it. For those, another boundary, such as a space and a line
break, keeps sentences apart. `find_boundary` tries several; the one that works is stored with the model.

The `tokenizers` library is imported only when a text is made.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import read_errors

# A tokenizer.json, read by the `tokenizers` library, with special tokens in a text read as text.


_UNHEARD_OF = "\ue000"  # a character that is in no vocabulary


def read_tokenizer(serialised: str, origin: str) -> Any:
    """Read a tokenizer; a CadecError if it is damaged or the library is not installed."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise CadecError(
            f"{origin} needs the tokenizers package, which is not installed",
            "pip install 'cadec[huggingface]'",
        ) from None
    try:
        made = Tokenizer.from_str(serialised)
        made.encode(_UNHEARD_OF, add_special_tokens=False)  # else it fails at the first one in a text
    except BaseException as error:  # the library raises plain Exceptions, and its panics not even those
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise CadecError(
            f"{origin} is not a tokenizer of the tokenizers library, or is damaged: {error}"
        ) from None
    # Settings left from training would silently truncate long sentences, or pad short ones.
    made.no_truncation()
    made.no_padding()
    # "<s>" in a subtitle is text.
    made.encode_special_tokens = True
    return made


def whole_characters(text: str) -> str:
    """Replace lone surrogates, which broken JSON may contain and no tokenizer accepts."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


# Possible boundaries, best first. The first one that is one token, never joined to its neighbours, is used.
BOUNDARIES = ("\n", " \n", "\n\n", " \n\n", "\r\n")
# Sentences with the usual beginnings and endings, in several scripts.
PROBES = (
    *(
        "Yes.",
        "Why?",
        "No!",
        "Well…",
        "Wait...",
        'He said "no"',
        "(softly)",
        "Come here",
        "Room 12",
        "It's 5%",
    ),
    *("« Non. »", "« Merci »", "— Да.", "Что?!", "Нет", "„Ja“", "¿Qué?", "- Oui, je sais.", "«Да»,", "1984."),
    *('"Go."', "'Tis.", "[door]", "♪ la la ♪", "a", "7", "是的。", "لا؟", "i.e.:", "etc.;", "what-", "x*"),
)
SHOWN_BOUNDARY = "⏎"

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
# Put before a line break, both to be cut off afterwards: some tokenizers drop blanks at the beginning.
_ANCHOR = "a"

# Placeholders of a template, each of which it has once.
_SOURCE, _TARGET = "{source}", "{target}"
# A sentence and its translation, a line each.
PLAIN = f"{_SOURCE}\n{_TARGET}\n"


@dataclass(frozen=True)
class PairTemplate:
    """How a language model reads a sentence and its translation: some lines, and the target as the last one.

    The target has the same tokens as in a text of the target language, even if its line begins with more,
    such as the language's name. So lists and chosen sentences need not be encoded twice.
    """

    text: str = PLAIN

    def __post_init__(self) -> None:
        *before, last = self.text.removesuffix("\n").split("\n")
        once = self.text.count(_TARGET) == 1 and "".join(before).count(_SOURCE) == 1
        if not (once and last.endswith(_TARGET) and _SOURCE not in last):
            raise CadecError(
                f"{self.text!r} is not a template for pairs of sentences",
                f"{_SOURCE} stands in one of its lines, and the last one ends with {_TARGET}",
            )

    def lines(self, source: str) -> list[str]:
        """The lines before that of the target; the source's is left out if it is empty, or unknown."""
        *lines, _ = self.text.removesuffix("\n").split("\n")
        return [line.replace(_SOURCE, source) for line in lines if source or _SOURCE not in line]

    @property
    def beginning(self) -> str:
        """The beginning of the target's line."""
        return self.text.removesuffix("\n").removesuffix(_TARGET).split("\n")[-1]


class LineText:
    """A tokenizer.json with the boundary and the start token that its model uses."""

    def __init__(self, serialised: str, *, boundary: str, start: str | None, origin: str = "") -> None:
        self._tokenizer = read_tokenizer(serialised, origin or "tokenizer.json")
        self._boundary_text, self.start_text = boundary, start
        self._before = tuple(self._ids(_ANCHOR + boundary))
        found = boundary_id(self._tokenizer, boundary)
        if found is None:
            raise CadecError(f"{origin or 'the tokenizer'} has no token for the boundary {boundary!r}")
        self.boundary: int = found
        begin = self.boundary if start is None else self._tokenizer.token_to_id(start)
        if begin is None:
            raise CadecError(f"{origin or 'the tokenizer'} has no token {start!r} to begin with")
        self.start: int = begin
        digest = hashlib.sha256(serialised.encode()).hexdigest()
        self.identity = f"lines of {digest}, parted by {boundary!r}"

    @classmethod
    def load(cls, path: Path, *, boundary: str, start: str | None) -> LineText:
        """Read a tokenizer.json."""
        with read_errors(path):
            raw = path.read_bytes()
        try:
            return cls(raw.decode("utf-8"), boundary=boundary, start=start, origin=str(path))
        except UnicodeDecodeError:
            raise CadecError(f"{path} is damaged: it is not UTF-8") from None

    def __len__(self) -> int:
        """One more than the highest id."""
        return int(max(self._tokenizer.get_vocab(with_added_tokens=True).values())) + 1

    @cached_property
    def vocabulary(self) -> Sequence[str]:
        """All tokens, in the order of their ids; an id that no token has is empty."""
        tokens = [""] * len(self)
        for token, index in self._tokenizer.get_vocab(with_added_tokens=True).items():
            tokens[index] = token
        return tokens

    def encode(self, text: str) -> list[int]:
        """The ids of a sentence after a line break: at the start of a text, some tokenizers add a blank."""
        line = as_line(text)
        ids = self._after_break(line)
        if self._special.keys() & set(ids):
            # A unigram model finds "<s>" among its pieces, special or not: as text it needs another spelling.
            for token in self._special.values():
                line = line.replace(token, f"{token[:1]} {token[1:]}")
            ids = self._after_break(line)
        return ids

    def encode_beginning(self, text: str) -> list[int]:
        """The ids of the beginning of a line, up to its last blank."""
        return self._after_break(text)

    def _after_break(self, line: str) -> list[int]:
        if not line:
            return []
        ids = self._ids(_ANCHOR + self._boundary_text + line)
        before = len(self._before)
        # If the tokenizer joins the text to the line break, the sentence alone is the best approximation.
        return ids[before:] if tuple(ids[:before]) == self._before else self._ids(line)

    @cached_property
    def _special(self) -> dict[int, str]:
        """Special tokens, which no text has. The unknown token is left out: it may stand for text."""
        tokens = self._tokenizer.get_added_tokens_decoder()
        return {
            index: str(token.content)
            for index, token in tokens.items()
            if token.special and index != self.boundary and "unk" not in token.content
        }

    @property
    def special_tokens(self) -> frozenset[int]:
        """The ids of tokens that no text has."""
        return frozenset(self._special)

    def tokens_of_pieces(self, pieces: Sequence[str]) -> set[int]:
        """The ids that pieces of words or lines have, each as it is, by itself and at the start of a line."""
        texts = [whole_characters(piece) for piece in pieces]
        lines = [f"{_ANCHOR}{self._boundary_text}{text}" for text in texts]
        alone, after = (
            self._tokenizer.encode_batch(some, add_special_tokens=False) for some in (texts, lines)
        )
        before = len(self._before)
        return {index for made in alone for index in made.ids} | {
            index for made in after for index in made.ids[before:]
        }

    def encode_lines(self, sentences: Sequence[str]) -> list[int]:
        """The ids of several sentences, one per line, tokenized as running text."""
        lines = self._boundary_text.join(as_line(sentence) for sentence in sentences)
        return self._ids(_ANCHOR + self._boundary_text + lines)[len(self._before) :]

    def decode(self, ids: Sequence[int]) -> str:
        """Turn ids into a sentence."""
        return str(self._tokenizer.decode([int(index) for index in ids], skip_special_tokens=True)).strip()

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        """Each token as a person reads it, a space where a word begins; part of a character is its bytes."""
        return [self._display_token(int(index)) for index in ids]

    def _display_token(self, index: int) -> str:
        if index == self.boundary:
            return SHOWN_BOUNDARY
        token = self._tokenizer.id_to_token(index)
        if token is None:
            return f"<{index}>"
        byte = _BYTE.fullmatch(token)
        if byte:
            code = int(byte[1], 16)
            return chr(code) if 0x20 < code < 0x7F else token
        if self._byte_level:
            return _of_bytes(token)
        return str(token).replace("▁", " ")

    @cached_property
    def _byte_level(self) -> bool:
        """Tell whether tokens are bytes in disguise, as GPT-2's are."""
        decoder = self._tokenizer.decoder
        return decoder is not None and "ByteLevel" in repr(decoder)

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(whole_characters(text), add_special_tokens=False).ids)


def as_line(text: str) -> str:
    """Write a sentence as one line: line breaks and control characters become spaces, ends are stripped."""
    blank = ("Cc", "Zl", "Zp")
    return "".join(" " if unicodedata.category(char) in blank else char for char in text).strip()


def find_boundary(serialised: str, origin: str) -> tuple[str, bool]:
    """Find the boundary for this tokenizer; also return whether it always keeps sentences apart.

    A tokenizer without a token for a line break can't separate sentences: that is a CadecError.
    """
    tokenizer = read_tokenizer(serialised, origin or "tokenizer.json")
    single = [boundary for boundary in BOUNDARIES if boundary_id(tokenizer, boundary) is not None]
    for boundary in single:
        if _keeps_apart(LineText(serialised, boundary=boundary, start=None, origin=origin)):
            return boundary, True
    if not single:
        raise CadecError(
            f"{origin}: the tokenizer has no token for a line break, which has to separate sentences",
            "use a language model that was trained on text with line breaks",
        )
    return single[0], False


def boundary_id(tokenizer: Any, boundary: str) -> int | None:
    """The id of a boundary after a word; None if it is not exactly one token, or not a line break."""
    alone = tokenizer.encode(_ANCHOR, add_special_tokens=False).ids
    both = tokenizer.encode(_ANCHOR + boundary, add_special_tokens=False).ids
    if len(both) != len(alone) + 1 or both[: len(alone)] != alone:
        return None
    # A blank or the unknown token would also be one token.
    written = tokenizer.decode(both, skip_special_tokens=False)[len(tokenizer.decode(alone)) :]
    return int(both[-1]) if "\n" in written else None


def _keeps_apart(text: LineText) -> bool:
    """Tell whether lines have the ids of their sentences, for every usual end and beginning."""
    for first, second in zip(PROBES, (*PROBES[7:], *PROBES[:7]), strict=True):
        together = text.encode_lines([first, second])
        if together != [*text.encode(first), text.boundary, *text.encode(second)]:
            return False
    return True


def _of_bytes(token: str) -> str:
    """A byte-level token as text; bytes of incomplete characters are shown as such."""
    table = _byte_alphabet()
    if any(char not in table for char in token):
        return token  # an added token is written as it is
    text = bytes(table[char] for char in token).decode("utf-8", "surrogateescape")
    return "".join(f"<0x{ord(char) - 0xDC00:02X}>" if "\udc80" <= char <= "\udcff" else char for char in text)


@cache
def _byte_alphabet() -> dict[str, int]:
    """GPT-2's characters for bytes: printable bytes are themselves, the others are 256 and above."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    return {chr(byte): byte for byte in own} | {chr(256 + place): byte for place, byte in enumerate(others)}
