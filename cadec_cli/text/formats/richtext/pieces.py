"""The pieces of a paragraph: text, marks and copied words, each inside the elements around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from cadec_cli.text.documents import Sentence


class Translatable(Protocol):
    """A part of a file that has sentences."""

    def sentences(self) -> Iterator[Sentence]:
        """Yield the sentences in their order."""
        ...

    def restore(self, translations: Iterator[str], bilingual: str | None = None) -> str:
        """Return the part with the translations of its sentences, which are the next to come."""
        ...


# What a file is made of: text that is kept, and what has sentences.
Content = tuple[str | Translatable, ...]
Wrap = tuple[str, str]
Escape = Callable[[str], str]


@dataclass(frozen=True)
class Pair:
    """An element around words: what its tags are called in sentences, and how it is written.

    With `wrap`, the text in it is written between these two.
    """

    name: str
    start: Content
    end: str
    wrap: Wrap | None = None


@dataclass(frozen=True)
class Item:
    """A piece of a paragraph inside the elements of `stack`, the outermost first.

    Its text is `shown` in sentences; that of a mark is empty. With `raw` of the same length as `shown`, it
    can be cut at any character.
    """

    raw: Content
    shown: str
    stack: tuple[int, ...]
    name: str = ""  # of a mark
    copied: bool = False
    breaks: bool = False  # a mark that may end a line

    @property
    def is_text(self) -> bool:
        """Tell whether it is text to translate, or white space."""
        return not self.name and not self.copied


def shared_depth(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many elements two places have in common, from the outermost on."""
    shared = 0
    while shared < min(len(one), len(other)) and one[shared] == other[shared]:
        shared += 1
    return shared


def as_mark(pair: Pair, inside: Sequence[Item], stack: tuple[int, ...]) -> Item:
    """Return an element and all that is inside of it as one mark."""
    raw = (*pair.start, *(piece for item in inside for piece in item.raw), pair.end)
    return Item(raw, "", stack, name=pair.name, breaks=any(item.breaks for item in inside))
