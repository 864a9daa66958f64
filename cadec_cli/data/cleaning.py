"""Which sentences and pairs are worth training on, with counts of the reasons against the others.

Judges one text or pair at a time and knows nothing of files. Memory does not grow with the corpus.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from cadec_cli.errors import UsageError
from cadec_cli.text.documents import documents_of

T = TypeVar("T")

_FINGERPRINTS = 1 << 22  # slots of 8 bytes: 32 MiB

_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class CleaningOptions:
    """What to leave out. Empty texts always are; every other rule is off by default."""

    max_words: int = field(
        default=0, metadata={"help": "Leave out sentences of more than this many words; 0 is no limit."}
    )
    max_characters: int = field(
        default=0, metadata={"help": "Leave out sentences of more than this many characters; 0 is no limit."}
    )
    max_ratio: float = field(
        default=0.0,
        metadata={
            "help": "Leave out pairs with one side more than this many times as long as the other; "
            "0 is no limit."
        },
    )
    drop_duplicates: bool = field(
        default=False,
        metadata={
            "help": "Leave out repeated sentences or pairs; some that are far apart may stay. "
            "A document ends wherever one is left out."
        },
    )
    check_script: bool = field(
        default=False,
        metadata={
            "help": "Leave out sentences with less than half of their letters in their language's script."
        },
    )

    def __post_init__(self) -> None:
        if self.max_words < 0 or self.max_characters < 0:
            raise UsageError("a maximum length can't be negative", "0 means no limit")
        if self.max_ratio and not self.max_ratio >= 1:
            raise UsageError(
                f"a length ratio can't be below 1: {self.max_ratio}", "for example 3; 0 means no limit"
            )


class Cleaner:
    """Checks texts or pairs one after the other, and counts the reasons.

    Duplicates are found with a table of 64-bit fingerprints where a new text overwrites the one in its slot.
    So no new text is taken for a duplicate (but for a collision of 64 bits), memory never grows, and a
    duplicate whose first occurrence has been overwritten is kept.
    """

    def __init__(
        self,
        options: CleaningOptions,
        source_language: str = "",
        target_language: str = "",
        slots: int = _FINGERPRINTS,
    ) -> None:
        from cadec_cli.text.protected.spans import foreign_letter

        self.options = options
        self.counts: dict[str, int] = Counter()
        self._foreign = (foreign_letter(source_language), foreign_letter(target_language))
        if options.drop_duplicates:
            import numpy as np

            self._seen = np.zeros(slots, dtype=np.uint64)

    def accepts(self, source: str, target: str | None = None) -> bool:
        """Tell whether to keep a pair, or a single text when there is no target."""
        reason = self.reason(source) if target is None else self.reason(source, target)
        self.counts[reason or "kept"] += 1
        return not reason

    def reason(self, *texts: str) -> str:
        """The reason to leave a text or a pair out; an empty string if it is to be kept."""
        options = self.options
        if not all(text.strip() for text in texts):
            return "empty"
        if options.max_characters and any(len(text) > options.max_characters for text in texts):
            return "too long"
        if options.max_words and any(len(text.split()) > options.max_words for text in texts):
            return "too long"
        if options.max_ratio and max(map(len, texts)) > options.max_ratio * min(map(len, texts)):
            return "length ratio"
        if options.check_script and any(map(_wrong_script, texts, self._foreign)):
            return "wrong script"
        # Last, so that only a text that is kept makes a later one a duplicate.
        if options.drop_duplicates and self._is_duplicate(texts):
            return "duplicate"
        return ""

    def _is_duplicate(self, texts: tuple[str, ...]) -> bool:
        digest = hashlib.blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        fingerprint = int.from_bytes(digest, "little") or 1  # 0 is an empty slot
        slot = fingerprint % len(self._seen)
        if int(self._seen[slot]) == fingerprint:
            return True
        self._seen[slot] = fingerprint
        return False


def contiguous_runs(items: Iterable[T], keeps: Callable[[T], bool]) -> Iterator[tuple[T, ...]]:
    """Return the runs of neighbours that are kept, each to be a document of its own.

    A dropped item leaves a hole, and a sentence must not be read with a context from across it.
    """
    return map(tuple, documents_of(items, lambda item: not keeps(item)))


def _wrong_script(text: str, foreign: re.Pattern[str] | None) -> bool:
    if foreign is None:
        return False
    letters = "".join(_LETTER.findall(text))
    return 2 * len(foreign.findall(letters)) > len(letters)
