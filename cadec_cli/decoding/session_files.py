"""A session as JSON, and back: every sentence with its translation and the hypotheses it came from.

What is read may have been written by anybody, and with another bundle: then only source and target count. A
file by hand needs no more than {"documents": [[{"source": …, "target": …}, …], …]}.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cadec_cli.bundle.opening import Bundle
from cadec_cli.decoding.session import Entry, Session
from cadec_cli.decoding.snapshot import DocumentState
from cadec_cli.decoding.translations import Chosen
from cadec_cli.errors import CadecError
from cadec_cli.method.options import TranslationOptions

FORMAT = "cadec session 1"


@dataclass(frozen=True)
class StoredSession:
    """What a file says; `options` only where it was written with the same bundle."""

    documents: tuple[tuple[Entry, ...], ...]
    options: TranslationOptions | None


def session_json(session: Session) -> str:
    """A session as JSON, a sentence a line."""
    head = {
        "format": FORMAT,
        "bundle": session.bundle.manifest.identity,
        "options": dataclasses.asdict(session.options),
    }
    documents = ",\n".join(
        "[" + ",\n".join(entry.json for entry in document) + "]" for document in session.documents
    )
    return json.dumps(head)[:-1] + f', "documents": [\n{documents}]}}\n'


def is_session(data: Any) -> bool:
    """Tell whether data read from somewhere was written as a session."""
    return isinstance(data, dict) and data.get("format") == FORMAT


def stored_session(
    data: Any, bundle: Bundle, name: str, options: TranslationOptions | None = None
) -> StoredSession:
    """Check a session's data; anything that does not fit is one CadecError. `options` is for bare texts."""
    try:
        _require(isinstance(data, dict) and isinstance(data.get("documents"), list), "it has no documents")
        own = data.get("bundle") == bundle.manifest.identity and is_session(data)
        found = _options(data["options"]) if own else None
        reader = _Reader(bundle, found or options or TranslationOptions(), whole=own)
        documents = tuple(
            reader.document(document, place) for place, document in enumerate(data["documents"], 1)
        )
    except (_MisfitError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise CadecError(f"{name} is not a session of cadec: {error}") from None
    return StoredSession(documents, found)


class _MisfitError(Exception):
    """Why data is no session."""


def _require(fits: bool, message: str) -> None:
    if not fits:
        raise _MisfitError(message)


@dataclass(frozen=True)
class _Reader:
    bundle: Bundle
    options: TranslationOptions
    whole: bool  # with hypotheses; else source and target only

    def document(self, data: Any, place: int) -> tuple[Entry, ...]:
        _require(isinstance(data, list), f"document {place} is no list of sentences")
        entries: list[Entry] = []
        before = 0
        for number, item in enumerate(data, 1):
            entries.append(self.entry(item, f"sentence {number} of document {place}", before))
            before += len(entries[-1].units)
        return tuple(entries)

    def entry(self, data: Any, where: str, before: int) -> Entry:
        """`before` is how many sentences of context there are."""
        _require(isinstance(data, dict), f"{where} is no object")
        source, target = (_text(data.get(key), f"{key} of {where}") for key in ("source", "target"))
        if not self.whole:
            ids = tuple(self.bundle.lm_pipeline.encode(target))
            window = before if self.options.rolls else min(before, self.options.context)
            return Entry(source, (), (ids,) if ids else (), window, self.options, target)
        parts = DocumentState.from_json({"paths": [], "lists": [], "parts": data["parts"]}).parts
        for part in parts:
            self._check_part(part, where)
        edited = target if data["edited"] is True else None
        units = tuple(tuple(ids) for ids in data["units"])
        _check_ids(units, len(self.bundle.lm_pipeline), where)
        _require(type(data["window"]) is int and data["window"] >= 0, f"the window of {where} is no number")
        entry = Entry(source, tuple(parts), units, data["window"], _options(data["options"]), edited)
        _require(entry.text == target, f"the hypotheses of {where} do not have its target")
        return entry

    def _check_part(self, part: Chosen, where: str) -> None:
        _text(part.source, f"a part of {where}")
        for hypothesis in part.hypotheses:
            _text(hypothesis.text, f"a hypothesis of {where}")
            _require(_is_number(hypothesis.log_prob), f"a log_prob of {where} is no number")
        _check_ids([hypothesis.ids for hypothesis in part.hypotheses], len(self.bundle.target), where)
        count = len(part.hypotheses)
        _require((part.choice is None) == (count == 0), f"{where} has hypotheses or a choice, not both")
        if part.choice is None:
            return
        choice = part.choice
        _require(
            type(choice.index) is int and 0 <= choice.index < count, f"{where} chose what is not in its list"
        )
        for scores in (choice.scores, choice.conditional, choice.free):
            fits = len(scores) == count or (not scores and scores is not choice.scores)
            _require(fits and all(map(_is_number, scores)), f"{where} has not one score a hypothesis")


def _options(data: Any) -> TranslationOptions:
    """Options as stored: every value of its own type, and possible."""
    _require(isinstance(data, dict), "its options are no object")
    for item in dataclasses.fields(TranslationOptions):
        value, kind = data.get(item.name, item.default), item.metadata["type"]
        fits = _is_number(value) if kind is float else type(value) is kind
        _require(fits or (value is None and item.default is None), f"the option {item.name} is {value!r}")
    try:
        return TranslationOptions(**data)
    except CadecError as error:
        raise _MisfitError(error.message) from None


def _text(value: Any, what: str) -> str:
    _require(isinstance(value, str), f"the {what} is no text")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _MisfitError(f"the {what} is no text that can be written") from None
    return str(value)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _check_ids(sentences: Sequence[Sequence[Any]], size: int, where: str) -> None:
    fits = all(type(index) is int and 0 <= index < size for ids in sentences for index in ids)
    _require(fits, f"{where} has tokens that are not in the vocabulary")
