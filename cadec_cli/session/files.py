"""Sessions on disk: every sentence with its translation and the hypotheses it came from.

A session is saved as one JSON file, or as a log that grows with every change. Both are read here. Every file
is untrusted. Of a file from another bundle, or one written by hand, only source and target are read; the
minimum is {"documents": [[{"source": …, "target": …}, …], …]}. A file that claims this format has a checksum
at its end, so damage is an error rather than a wrong text. A damaged log is read up to the damage.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cadec_cli.decoding.state import part_of
from cadec_cli.decoding.translation import TranslatedPart
from cadec_cli.engines.protocols import ContextReader
from cadec_cli.errors import CadecError
from cadec_cli.fs.append_log import AppendLog, LogHeader, read_header, read_log, write_log
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.fs.locks import refuse_special
from cadec_cli.fs.read import read_errors, read_json
from cadec_cli.method.context import room
from cadec_cli.method.objectives import PAIRS
from cadec_cli.method.options import TranslationOptions, options_as_data, options_record
from cadec_cli.session.session import Direction, Entry, Session, context_after

# Of earlier formats only the text is read: format 1 did not store the context of a choice; format 2 had no
# checksum, and identities that bundles no longer have.
FORMAT = "cadec session 3"
LOG_SUFFIX = ".log"

_SUBJECT = "session"
_LONGEST_LINE = 1 << 30  # bytes of a log's line: a change of all sentences at once


@dataclass(frozen=True)
class StoredSession:
    """The content of a session file; `options` is None unless it was written with the same bundle."""

    documents: tuple[tuple[Entry, ...], ...]
    options: TranslationOptions | None
    after: tuple[str, ...] = ()
    damage: str = ""  # a message for the user


def session_json(session: Session) -> str:
    """Return a session as JSON, one sentence per line."""
    head = {
        "format": FORMAT,
        "bundle": session.direction.identity,
        "options": options_record(session.options),
        "after": session.after,
    }
    documents = ",\n".join(
        "[" + ",\n".join(json.dumps(entry.data, ensure_ascii=False) for entry in document) + "]"
        for document in session.documents
    )
    content = json.dumps(head)[:-1] + f', "documents": [\n{documents}]'
    return content + _end(content.encode())


def write_session(path: Path, session: Session) -> None:
    """Write a session as JSON, whole or not at all; other users can't read a new file."""
    with atomic_file(path, private=True) as stream:
        stream.write(session_json(session).encode())


class SessionLog:
    """The log of a session. Every save appends the changes only, so its cost depends on their size.

    A record has a number and the changes since the last record: the first changed document, the number of
    sentences of each document from there on, the new or changed sentences, and changed options.
    """

    def __init__(self, path: Path, session: Session) -> None:
        """Write the whole session, replacing any session at that path, and open its log."""
        refuse_special(path)
        header = LogHeader(_SUBJECT, {"bundle": session.direction.identity})
        self._number = 0
        self._documents = [list(document) for document in session.documents]
        self._settings = _settings(session)
        write_log(path, header, self._all_records(), private=True)
        self._log = AppendLog.resume(path, header)

    def save(self, session: Session) -> None:
        """Append the changes since the last save, if there are any."""
        saved, documents = self._documents, session.documents
        common = min(len(saved), len(documents))
        first = next((place for place in range(common) if saved[place] != documents[place]), common)
        changed = documents[first:]
        settings = _settings(session)
        others = {key: value for key, value in settings.items() if self._settings[key] != value}
        if not changed and len(saved) == len(documents) and not others:
            return
        before = saved[first:] + [[]] * len(changed)
        entries = [
            [first + place, number, entry.data]
            for place, document in enumerate(changed)
            for number, entry in enumerate(document)
            if number >= len(before[place]) or before[place][number] != entry
        ]
        self._log.append(self._record(first, [len(document) for document in changed], entries, others))
        saved[first:] = [list(document) for document in changed]
        self._settings = settings

    def sync(self) -> None:
        """Wait until everything that was saved is on disk."""
        self._log.sync()

    def close(self) -> None:
        """Close the log; the session can be resumed."""
        self._log.close()

    def _all_records(self) -> Iterator[dict[str, Any]]:
        """Yield the whole session, one record per sentence."""
        yield self._record(0, [], [], self._settings)
        for place, document in enumerate(self._documents):
            yield self._record(place, [0], [], {})
            for number, entry in enumerate(document):
                yield self._record(place, [number + 1], [[place, number, entry.data]], {})

    def _record(
        self, first: int, lengths: list[int], entries: list[list[Any]], settings: dict[str, Any]
    ) -> dict[str, Any]:
        self._number += 1
        return {"number": self._number, "first": first, "lengths": lengths, "entries": entries, **settings}


def _settings(session: Session) -> dict[str, Any]:
    return {"options": options_as_data(session.options), "after": list(session.after)}


def _read_log(path: Path, header: LogHeader) -> tuple[dict[str, Any], str]:
    """Return the data of a session from its log, up to the first damage, and a message about the damage."""
    data: dict[str, Any] = {"format": FORMAT, "bundle": header.origin.get("bundle"), "documents": []}
    following = 1
    try:
        for record in read_log(path, header, _LONGEST_LINE):
            if record is None or record["number"] > following:
                if following == 1:
                    raise CadecError(f"{path} is damaged: no part of its session can be read")
                return data, f"{path} is damaged: the session was restored up to the damage"
            if record["number"] == following:  # else the line is a repetition
                _apply(record, data)
                following += 1
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise CadecError(f"{path} is not a session of cadec: {error}") from None
    return data, ""


def _apply(record: dict[str, Any], data: dict[str, Any]) -> None:
    documents, first, lengths = data["documents"], record["first"], record["lengths"]
    documents[first + len(lengths) :] = []
    for place, length in enumerate(lengths, first):
        if place == len(documents):
            documents.append([])
        documents[place][length:] = []
    for place, number, entry in record["entries"]:
        documents[place][number : number + 1] = [entry]
    data.update({key: record[key] for key in ("options", "after") if key in record})


def read_session(
    path: Path,
    direction: Direction,
    reader: ContextReader | None,
    options: TranslationOptions | None = None,
) -> StoredSession:
    """Read a session from JSON or a log; a damaged file, or one that is not a session, is one CadecError.

    `options` are for sentences that are stored without options.
    """
    header = read_header(path, _SUBJECT)
    if header is None and path.suffix == LOG_SUFFIX:
        header = LogHeader(_SUBJECT, {"bundle": direction.identity})  # the log's own header may be damaged
    if header is not None:
        data, damage = _read_log(path, header)
        stored = stored_session(data, direction, reader, str(path), options)
        return dataclasses.replace(stored, damage=damage)
    data = read_json(path)
    if isinstance(data, dict) and (data.get("format") == FORMAT or "checksum" in data):
        with read_errors(path):
            raw = path.read_bytes().replace(b"\r\n", b"\n")
        content, separator, _ = raw.rpartition(b",\n")
        if not separator or raw.rstrip() != content + _end(content).encode().rstrip():
            raise CadecError(
                f"{path} is damaged: its checksum does not match",
                'if you edited it by hand, remove "format" and "checksum"; source and target are kept',
            )
    return stored_session(data, direction, reader, str(path), options)


def _end(content: bytes) -> str:
    """Return the end of a session's JSON, with the checksum of everything before it."""
    return f',\n"checksum": "{hashlib.sha256(content).hexdigest()}"}}\n'


def stored_session(
    data: Any,
    direction: Direction,
    reader: ContextReader | None,
    name: str,
    options: TranslationOptions | None = None,
) -> StoredSession:
    """Check a session's data and return the session; data that does not fit is one CadecError.

    `options` are for sentences that are stored without options. Messages call the file `name`.
    """
    try:
        _require(isinstance(data, dict) and isinstance(data.get("documents"), list), "it has no documents")
        whole = data.get("bundle") == direction.identity and data.get("format") == FORMAT
        stored = _options(data["options"]) if whole else None
        after = data.get("after", [])
        _require(isinstance(after, list), '"after" is not a list of sentences')
        after = tuple(_text(text, 'sentence of "after"') for text in after)
        entries = _EntryReader(reader, stored or options or TranslationOptions(), whole=whole)
        documents = tuple(
            entries.document(document, place) for place, document in enumerate(data["documents"], 1)
        )
    except (_MisfitError, KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise CadecError(f"{name} is not a session of cadec: {error}") from None
    return StoredSession(documents, stored, after)


class _MisfitError(Exception):
    """Why data is not a session."""


def _require(fits: bool, message: str) -> None:
    if not fits:
        raise _MisfitError(message)


@dataclass(frozen=True)
class _EntryReader:
    reader: ContextReader | None
    options: TranslationOptions
    whole: bool  # with hypotheses; else source and target only

    def document(self, data: Any, place: int) -> tuple[Entry, ...]:
        _require(isinstance(data, list), f"document {place} is not a list of sentences")
        entries: list[Entry] = []
        for number, item in enumerate(data, 1):
            entries.append(self.entry(item, f"sentence {number} of document {place}", entries))
        return tuple(entries)

    def entry(self, data: Any, where: str, before: Sequence[Entry]) -> Entry:
        _require(isinstance(data, dict), f"{where} is not an object")
        source, target = (_text(data.get(key), f"{key} of {where}") for key in ("source", "target"))
        if not self.whole:
            return self._bare(source, target, before)
        parts = tuple(part_of(part) for part in data["parts"])
        for part in parts:
            self._check_part(part, where)
        edited = target if data["edited"] is True else None
        context_ids, read = (tuple(tuple(ids) for ids in data[key]) for key in ("context_ids", "read"))
        self._check_ids([*context_ids, *read], where)
        pinned, picked = data.get("pinned", 0), data.get("picked", False)
        _check_pinned(pinned, read, where)
        _require(type(picked) is bool, f'"picked" of {where} must be true or false, not {picked!r}')
        speakers = data.get("speakers", False)
        _require(type(speakers) is bool, f'"speakers" of {where} must be true or false, not {speakers!r}')
        sources = _sources(data.get("sources", []), where)
        options = _options(data["options"])
        entry = Entry(source, parts, context_ids, read, options, edited, pinned, picked, speakers, sources)
        _require(entry.text == target, f"the target of {where} is not the chosen hypothesis")
        return entry

    def _bare(self, source: str, target: str, before: Sequence[Entry]) -> Entry:
        """Return the entry of a sentence with a known source and target but no hypotheses."""
        if self.reader is None:
            return Entry(source, (), (), (), self.options, target)
        ids = tuple(self.reader.text.encode(target))
        newest = before if self.options.policy.rolling else before[-self.options.context - 1 :]
        fits = room(self.reader.positions, max(len(ids), 1))
        read = self.options.policy.read(context_after(newest, self.options), fits)
        in_pairs = PAIRS in self.options.weighted_objective.readings
        sources = self.options.policy.sources(read) if in_pairs else ()
        return Entry(source, (), (ids,) if ids else (), read.sentences, self.options, target, sources=sources)

    def _check_part(self, part: TranslatedPart, where: str) -> None:
        _text(part.source, f"a part of {where}")
        _text(part.nbest.vocabulary, f"the vocabulary of {where}")
        for hypothesis in part.hypotheses:
            _text(hypothesis.text, f"a hypothesis of {where}")
            _require(_is_number(hypothesis.log_prob), f"a log_prob of {where} is not a number")
        if self.reader is not None and part.nbest.vocabulary == self.reader.text.identity:
            self._check_ids([hypothesis.ids for hypothesis in part.hypotheses], where)
        count = len(part.hypotheses)
        _require((part.choice is None) == (count == 0), f"{where} lacks hypotheses or a choice")
        if part.choice is None:
            return
        choice = part.choice
        _require(
            type(choice.index) is int and 0 <= choice.index < count, f"the choice of {where} is out of range"
        )
        for scores in (choice.scores, *choice.terms.values()):
            fits = len(scores) == count and all(map(_is_number, scores))
            _require(fits, f"{where} does not have one score per hypothesis")
        self._check_ids(choice.context, where)
        _sources(list(choice.sources), where)
        _check_pinned(choice.pinned, choice.context, where)

    def _check_ids(self, sentences: Sequence[Sequence[Any]], where: str) -> None:
        size = len(self.reader.text.vocabulary) if self.reader is not None else math.inf
        fits = all(type(index) is int and 0 <= index < size for ids in sentences for index in ids)
        _require(fits, f"{where} has tokens that are not in the vocabulary")


def _options(data: Any) -> TranslationOptions:
    """Return saved options; a value of another type, or out of range, is a misfit."""
    _require(isinstance(data, dict), "its options are not an object")
    weights = data.get("weight", {})
    _require(
        isinstance(weights, dict) and all(map(_is_number, weights.values())), "its weights are not numbers"
    )
    terms = data.get("term", {})
    _require(
        isinstance(terms, dict) and all(isinstance(value, str) for value in terms.values()),
        "the options of its terms are not text",
    )
    glossary = data.get("glossary", [])
    _require(
        isinstance(glossary, list) and all(isinstance(value, str) for value in glossary),
        "its glossaries are not names",
    )
    memory = data.get("memory", [])
    _require(
        isinstance(memory, list) and all(isinstance(value, str) for value in memory),
        "its memories are not names",
    )
    for item in dataclasses.fields(TranslationOptions):
        if item.name in ("weight", "term", "glossary", "memory"):
            continue
        value, kind = data.get(item.name, item.default), item.metadata["type"]
        fits = _is_number(value) if kind is float else type(value) is kind
        _require(fits, f"invalid value of the option {item.name}: {value!r}")
    try:
        return TranslationOptions(**data)
    except CadecError as error:
        raise _MisfitError(error.marked_message) from None


def _sources(data: Any, where: str) -> tuple[str, ...]:
    _require(isinstance(data, list), f"the sources of {where} are not a list")
    return tuple(_text(source, f"a source read before {where}") for source in data)


def _check_pinned(pinned: Any, read: Sequence[Any], where: str) -> None:
    fits = type(pinned) is int and 0 <= pinned <= len(read)
    _require(fits, f"{where} has a seed of {pinned!r} sentences in a context of {len(read)}")


def _text(value: Any, what: str) -> str:
    _require(isinstance(value, str), f"the {what} is not text")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _MisfitError(f"the {what} can't be encoded as UTF-8") from None
    return str(value)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
