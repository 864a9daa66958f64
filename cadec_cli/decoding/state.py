"""The state of a translation between two waves: all that is needed to resume it exactly.

Settled sentences are not part of the state; they are in the output. Floats survive the round trip through
JSON.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cadec_cli.decoding.translation import Choice, TranslatedPart
from cadec_cli.method.context import Context, Pair
from cadec_cli.method.hypotheses import Hypothesis, NBest


@dataclass(eq=False)
class PartialPath:
    """The choices of a path (linked, the newest first), their total, and the context of the next sentence."""

    total: float = 0.0
    context: Context = field(default_factory=Context)
    choice: Choice | None = None
    before: PartialPath | None = None

    def back(self) -> Iterator[PartialPath]:
        """Yield this path and the ones it continues, the newest first, up to the settled ones."""
        partial: PartialPath | None = self
        while partial is not None and partial.choice is not None:
            yield partial
            partial = partial.before


@dataclass
class DocumentState:
    """The unsettled end of one document."""

    beam: list[PartialPath] = field(default_factory=lambda: [PartialPath()])
    lists: list[NBest] = field(default_factory=list)  # their choices are not settled
    parts: list[TranslatedPart] = field(default_factory=list)  # settled pieces of an incomplete sentence

    def to_json(self) -> dict[str, Any]:
        """Return the state as plain data."""
        paths = [
            {
                "total": partial.total,
                "context": partial.context.own,  # without the seed, which the search adds
                "pairs": [(pair.source, pair.target) for pair in partial.context.pairs],
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
        """Restore a state; paths that shared their beginnings share them again."""
        root = PartialPath()
        known: dict[tuple[int, int], PartialPath] = {}  # (the one before, the choice) → partial path
        beam = []
        for stored in data["paths"]:
            partial = root
            for choice in map(_choice, stored["open"]):
                key = (id(partial), choice.index)
                partial = known.setdefault(key, PartialPath(choice=choice, before=partial))
            # The newest path is never shared: it has a total and a context of its own.
            pairs = tuple(Pair(source, target) for source, target in stored["pairs"])
            context = Context(_sentences(stored["context"]), pairs=pairs)
            beam.append(PartialPath(stored["total"], context, partial.choice, partial.before))
        return cls(beam, [_nbest(item) for item in data["lists"]], [part_of(item) for item in data["parts"]])


@dataclass
class State:
    """The states of the documents in step, by their numbers, after `taken` waves."""

    taken: int
    documents: dict[int, DocumentState]

    @classmethod
    def at_start(cls, documents: int, contexts: Sequence[Context] | None = None) -> State:
        """Return the state before all documents begin; `contexts` has the context before each."""
        before = contexts if contexts is not None else [Context()] * documents
        if len(before) != documents:
            raise ValueError(f"{len(before)} contexts for {documents} documents")
        states = (DocumentState([PartialPath(context=context)]) for context in before)
        return cls(0, dict(enumerate(states)))

    def to_json(self) -> dict[str, Any]:
        """Return the state as plain data."""
        documents = {str(number): state.to_json() for number, state in self.documents.items()}
        return {"taken": self.taken, "documents": documents}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> State:
        """Restore a state."""
        documents = data["documents"].items()
        return cls(
            data["taken"], {int(number): DocumentState.from_json(state) for number, state in documents}
        )

    def forget(self) -> None:
        """Drop the engines' memory, so that a resumed run and an uninterrupted one compute the same."""
        for state in self.documents.values():
            for partial in state.beam:
                partial.context = partial.context.without_memory()


def part_json(part: TranslatedPart) -> dict[str, Any]:
    """Return a part as plain data; its unit is left out."""
    choice = part.choice and dataclasses.asdict(part.choice)
    placed = {"placed": part.placed} if part.placed is not None else {}
    return {**_nbest_json(part.nbest), "choice": choice, **placed}


def part_of(data: dict[str, Any]) -> TranslatedPart:
    """Restore a part, without its unit."""
    choice = _choice(data["choice"]) if data["choice"] is not None else None
    return TranslatedPart(_nbest(data), choice, data.get("placed"))


def list_json(nbest: NBest) -> dict[str, Any]:
    """Return a list from which nothing is chosen yet as plain data, with the counts of defects and terms."""
    respected = [one.respected for one in nbest.hypotheses]
    terms = {"respected": respected} if any(count is not None for count in respected) else {}
    return {**_nbest_json(nbest), "defects": [one.defects for one in nbest.hypotheses], **terms}


def list_of(data: dict[str, Any]) -> NBest:
    """Restore a list from which nothing is chosen yet."""
    nbest = _nbest(data)
    respected = data.get("respected", [None] * len(nbest.hypotheses))
    counted = zip(nbest.hypotheses, data["defects"], respected, strict=True)
    return replace(
        nbest,
        hypotheses=tuple(replace(one, defects=defects, respected=terms) for one, defects, terms in counted),
    )


def _nbest_json(nbest: NBest) -> dict[str, Any]:
    hypotheses = [{"text": one.text, "log_prob": one.log_prob, "ids": one.ids} for one in nbest.hypotheses]
    around = {side: text for side in ("before", "after") if (text := getattr(nbest, side))}
    return {"source": nbest.source, "hypotheses": hypotheses, "vocabulary": nbest.vocabulary, **around}


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
