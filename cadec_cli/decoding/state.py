"""Where a translation stands between two waves: all it takes to go on as if it had never stopped.

Sentences that are settled are not part of it; they are in the output. As JSON it gives back the same floats.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cadec_cli.decoding.translation import Choice, TranslatedPart
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import Hypothesis, NBest

# What every list has; what stands around a sentence is written only where there is something.
_ALWAYS = ("source", "hypotheses", "vocabulary")


@dataclass(eq=False)
class PartialPath:
    """Choices so far (linked, the newest first), their total, and the context of the next sentence."""

    total: float = 0.0
    context: Context = field(default_factory=Context)
    choice: Choice | None = None
    before: PartialPath | None = None

    def back(self) -> Iterator[PartialPath]:
        """This one and what it continues, the newest first; settled ones are gone."""
        partial: PartialPath | None = self
        while partial is not None and partial.choice is not None:
            yield partial
            partial = partial.before


@dataclass
class DocumentState:
    """The open end of one document."""

    beam: list[PartialPath] = field(default_factory=lambda: [PartialPath()])
    lists: list[NBest] = field(default_factory=list)  # whose choice is not settled
    parts: list[TranslatedPart] = field(default_factory=list)  # settled, of a sentence that is not complete

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        paths = [
            {
                "total": partial.total,
                "context": partial.context.own,  # a seed is put before it again
                "open": [dataclasses.asdict(p.choice) for p in partial.back() if p.choice is not None][::-1],
            }
            for partial in self.beam
        ]
        return {
            "paths": paths,
            "lists": [_nbest_json(nbest) for nbest in self.lists],
            "parts": [part_json(part) for part in self.parts],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> DocumentState:
        """The state again; partial paths that shared their beginnings share them again."""
        root = PartialPath()
        known: dict[tuple[int, int], PartialPath] = {}  # (the one before, the choice) → partial path
        beam = []
        for stored in data["paths"]:
            partial = root
            for choice in map(_choice, stored["open"]):
                key = (id(partial), choice.index)
                partial = known.setdefault(key, PartialPath(choice=choice, before=partial))
            # The newest of each is its own: it carries the total and the context.
            context = Context(_sentences(stored["context"]))
            beam.append(PartialPath(stored["total"], context, partial.choice, partial.before))
        return cls(beam, [_nbest(item) for item in data["lists"]], [part_of(item) for item in data["parts"]])


@dataclass
class State:
    """All documents between two waves; `taken` pieces of each have gone into the search."""

    taken: int
    documents: list[DocumentState]

    @classmethod
    def at_start(cls, documents: int, contexts: Sequence[Context] | None = None) -> State:
        """Nothing done yet; `contexts` is what stands before each of the documents."""
        before = contexts if contexts is not None else [Context()] * documents
        if len(before) != documents:
            raise ValueError(f"{len(before)} contexts for {documents} documents")
        return cls(0, [DocumentState([PartialPath(context=context)]) for context in before])

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"taken": self.taken, "documents": [state.to_json() for state in self.documents]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> State:
        """The state again."""
        return cls(data["taken"], [DocumentState.from_json(state) for state in data["documents"]])

    def forget(self) -> None:
        """Drop what engines remember, which is not stored: from here on, stopped or not, all is read anew."""
        for state in self.documents:
            for partial in state.beam:
                partial.context = partial.context.without_memory()


def part_json(part: TranslatedPart) -> dict[str, Any]:
    """A part as plain data."""
    choice = part.choice and dataclasses.asdict(part.choice)
    placed = {"placed": part.placed} if part.placed is not None else {}
    return {**_nbest_json(part.nbest), "choice": choice, **placed}


def part_of(data: dict[str, Any]) -> TranslatedPart:
    """The part again."""
    choice = _choice(data["choice"]) if data["choice"] is not None else None
    return TranslatedPart(_nbest(data), choice, data.get("placed"))


def _nbest_json(nbest: NBest) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(nbest).items() if name in _ALWAYS or value}


def _nbest(data: dict[str, Any]) -> NBest:
    hypotheses: Sequence[dict[str, Any]] = data["hypotheses"]
    return NBest(
        data["source"],
        tuple(Hypothesis(h["text"], h["log_prob"], tuple(h["ids"])) for h in hypotheses),
        data["vocabulary"],
        data.get("before", ""),
        data.get("after", ""),
    )


def _choice(data: dict[str, Any]) -> Choice:
    terms = {name: tuple(values) for name, values in data["terms"].items()}
    context = _sentences(data["context"])
    return Choice(data["index"], tuple(data["scores"]), terms, context, data.get("pinned", 0))


def _sentences(data: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(ids) for ids in data)
