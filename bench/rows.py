"""One line of the result."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    what: str
    measured: str
    ratio: float
    target: str
    reached: bool | None = None
