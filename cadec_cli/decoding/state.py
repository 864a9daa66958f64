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
from cadec_cli.method.retrieval import EarlierSentence, EarlierSentences
from cadec_cli.text.manner import Manner


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
        """Return the state as plain data; a list that several sentences or paths share is written once."""
        pairs = [pair for partial in self.beam for pair in partial.context.pairs]
        lists = list(dict.fromkeys(pair.nbest for pair in pairs if pair.nbest is not None))
        earlier: dict[EarlierSentence, int] = {}  # by their numbers here
        paths = [
            {
                "total": partial.total,
                "context": partial.context.own,  # without the seed, which the search adds
                "pairs": [_pair_json(pair, lists) for pair in partial.context.pairs],
                **({"earlier": known.to_json(earlier)} if (known := partial.context.earlier) else {}),
                "open": [_choice_json(p.choice) for p in partial.back() if p.choice is not None][::-1],
            }
            for partial in self.beam
        ]
        sentences = [(one.number, one.source, one.ids) for one in earlier]
        return {
            "paths": paths,
            "lists": [_nbest_json(nbest) for nbest in self.lists],
            "parts": [part_json(part) for part in self.parts],
            **({"chosen from": [_nbest_json(nbest) for nbest in lists]} if lists else {}),
            **({"earlier": sentences} if sentences else {}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> DocumentState:
        """Restore a state; paths that shared their beginnings share them again."""
        root = PartialPath()
        known: dict[tuple[int, int], PartialPath] = {}  # (the one before, the choice) → partial path
        chosen_from = [_nbest(item) for item in data.get("chosen from", ())]
        sentences = {
            place: EarlierSentence(int(number), str(source), tuple(ids))
            for place, (number, source, ids) in enumerate(data.get("earlier", ()))
        }
        beam = []
        for stored in data["paths"]:
            partial = root
            for choice in map(_choice, stored["open"]):
                key = (id(partial), choice.index)
                partial = known.setdefault(key, PartialPath(choice=choice, before=partial))
            # The newest path is never shared: it has a total and a context of its own.
            pairs = tuple(_pair(pair, chosen_from) for pair in stored["pairs"])
            context = Context(_sentences(stored["context"]), pairs=pairs)
            if "earlier" in stored:
                earlier = EarlierSentences.from_json(stored["earlier"], sentences)
                context = replace(context, earlier=earlier)
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
    choice = part.choice and _choice_json(part.choice)
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


def _pair_json(pair: Pair, lists: Sequence[NBest]) -> tuple[Any, ...]:
    """A pair as plain data; its list is a number among `lists`."""
    own = () if pair.nbest is None else (lists.index(pair.nbest),)
    return pair.source, pair.target, *own


def _pair(data: Sequence[Any], lists: Sequence[NBest]) -> Pair:
    source, target, *own = data
    return Pair(source, target, *(lists[number] for number in own))


def _nbest_json(nbest: NBest) -> dict[str, Any]:
    hypotheses = [
        {"text": one.text, "log_prob": one.log_prob, "ids": one.ids, **({"made": True} if one.made else {})}
        for one in nbest.hypotheses
    ]
    around = {side: text for side in ("before", "after") if (text := getattr(nbest, side))}
    room = {"room": nbest.room} if nbest.room is not None else {}
    manner = {"manner": dataclasses.asdict(nbest.manner)} if nbest.manner is not None else {}
    known = {"source": nbest.source, "hypotheses": hypotheses, "vocabulary": nbest.vocabulary}
    return {**known, **around, **room, **manner}


def _nbest(data: dict[str, Any]) -> NBest:
    hypotheses: Sequence[dict[str, Any]] = data["hypotheses"]
    return NBest(
        data["source"],
        tuple(
            Hypothesis(h["text"], h["log_prob"], tuple(h["ids"]), made=h.get("made") is True)
            for h in hypotheses
        ),
        data["vocabulary"],
        data.get("before", ""),
        data.get("after", ""),
        data.get("room"),
        Manner(**data["manner"]) if "manner" in data else None,
    )


def _choice_json(choice: Choice) -> dict[str, Any]:
    data = dataclasses.asdict(choice)
    if not choice.sources:  # as before there were any
        del data["sources"]
    return data


def _choice(data: dict[str, Any]) -> Choice:
    terms = {name: tuple(values) for name, values in data["terms"].items()}
    context = _sentences(data["context"])
    sources = tuple(data.get("sources", ()))
    return Choice(data["index"], tuple(data["scores"]), terms, context, data.get("pinned", 0), sources)


def _sentences(data: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(ids) for ids in data)
