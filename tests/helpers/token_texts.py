"""Text over plain numbers, for models that have no pipeline."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cadec_cli.text.subwords import EOS, SPECIAL_PIECES


@dataclass(frozen=True)
class NumberText:
    """A language whose words are its ids: "p4 p7" is (4, 7)."""

    size: int
    name: str = "numbers"

    @property
    def identity(self) -> str:
        return f"{self.name} up to {self.size}"

    @property
    def boundary(self) -> int:
        return EOS

    @cached_property
    def vocabulary(self) -> Sequence[str]:
        return [*SPECIAL_PIECES, *(f"p{index}" for index in range(len(SPECIAL_PIECES), self.size))]

    def encode(self, text: str) -> list[int]:
        return [int(word.removeprefix("p")) for word in text.split()]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(f"p{index}" for index in ids)

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        return [f" {self.vocabulary[index]}" for index in ids]
