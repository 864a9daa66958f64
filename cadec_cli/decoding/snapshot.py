"""Where a translation stands between two waves: all it takes to go on as if it had never stopped.

Sentences that are settled are not part of it; they are in the output. As JSON it gives back the same floats.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cadec_cli.decoding.search.lattice import Choice, Path
from cadec_cli.decoding.translations import Chosen
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import Hypothesis, NBest


@dataclass
class DocumentState:
    """The open end of one document."""

    beam: list[Path] = field(default_factory=lambda: [Path()])
    lists: list[NBest] = field(default_factory=list)  # whose choice is not settled
    parts: list[Chosen] = field(default_factory=list)  # settled, of a sentence that is not complete

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        paths = [
            {
                "total": path.total,
                "context": path.context.sentences,
                "open": [dataclasses.asdict(p.choice) for p in path.back() if p.choice is not None][::-1],
            }
            for path in self.beam
        ]
        return {
            "paths": paths,
            "lists": [dataclasses.asdict(nbest) for nbest in self.lists],
            "parts": [dataclasses.asdict(part) for part in self.parts],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> DocumentState:
        """The state again; paths that shared their beginnings share them again."""
        lists = [_nbest(item) for item in data["lists"]]
        parts = [
            Chosen(
                part["source"],
                _nbest(part).hypotheses,
                _choice(part["choice"]) if part["choice"] is not None else None,
            )
            for part in data["parts"]
        ]
        root = Path()
        known: dict[tuple[int, int], Path] = {}  # (the path before, the choice) → path
        beam = []
        for stored in data["paths"]:
            path = root
            for choice in map(_choice, stored["open"]):
                key = (id(path), choice.index)
                path = known.setdefault(key, Path(choice=choice, before=path))
            # The newest path of each is its own: it carries the total and the context.
            sentences = tuple(tuple(ids) for ids in stored["context"])
            beam.append(Path(stored["total"], Context(sentences), path.choice, path.before))
        return cls(beam, lists, parts)


@dataclass
class Snapshot:
    """All documents between two waves; `taken` pieces of each have gone into the search."""

    taken: int
    documents: list[DocumentState]

    @classmethod
    def at_start(cls, documents: int) -> Snapshot:
        """Nothing done yet."""
        return cls(0, [DocumentState() for _ in range(documents)])

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"taken": self.taken, "documents": [state.to_json() for state in self.documents]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Snapshot:
        """The snapshot again."""
        return cls(data["taken"], [DocumentState.from_json(state) for state in data["documents"]])

    def forget_keys(self) -> None:
        """Drop cached keys, which are not stored: from here on both, stopped or not, read contexts anew."""
        for state in self.documents:
            for path in state.beam:
                path.context = Context(path.context.sentences)


def _nbest(data: dict[str, Any]) -> NBest:
    hypotheses: Sequence[dict[str, Any]] = data["hypotheses"]
    return NBest(
        data["source"], tuple(Hypothesis(h["text"], tuple(h["ids"]), h["log_prob"]) for h in hypotheses)
    )


def _choice(data: dict[str, Any]) -> Choice:
    return Choice(
        data["index"],
        tuple(data["scores"]),
        tuple(data["conditional"]),
        tuple(data["free"]),
        tuple((given, free) for given, free in data["chosen_tokens"]),
        tuple((given, free) for given, free in data["first_tokens"]),
    )
