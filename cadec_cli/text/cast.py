"""Who speaks to whom: a cast in a table, and the conversation that its people have.

    # name, gender, and how they address whom
    Anna|Mrs Reed	f	formal: Boris, *	informal: Max
    Boris	m	formal: *
    Max	m

Columns are separated by tabs. Names of one person are separated by `|`; the gender is f, m, or - if it is
not to show. `*` is everybody who is not named. Lines that begin with # are comments.

A speaker is known from the name before a colon (“ANNA (quietly): …”), from a name field of the subtitles, or
because a sentence goes on where a named speaker has begun, in the same line. Whoever spoke before, and is
another one, is addressed. Where either is not known, nothing is asked for.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.fs.paths import is_stream
from cadec_cli.fs.read import decode, name_of, read_data
from cadec_cli.text.documents import Sentence
from cadec_cli.text.manner import FORMS, Manner
from cadec_cli.text.protected.core import name_in

EVERYBODY = "*"
_GENDERS = {"f": "f", "m": "m", "-": "", "": ""}
_MOST, _LONGEST = 10_000, 100
_TURNS = 64  # names that are remembered of a stream: some may be of one person, or of nobody
_HINT = "write a name, a tab, f or m, and then such columns as “formal: Anna, *” or “informal: Max”"
_ASIDE = re.compile(r"\s?(?:\([^()]*\)|\[[^][]*\])")


@dataclass(frozen=True)
class Person:
    """A person of a cast: a gender (empty if it is not to show), and whom they address how, by key."""

    names: tuple[str, ...]
    gender: str
    address: Mapping[str, str] = field(default_factory=dict)  # key of a name, or *, → T or V


class Cast:
    """People by their names; case, spaces and remarks in brackets don't count."""

    def __init__(self, people: Iterable[Person]) -> None:
        self.people = tuple(people)
        self._by_key = {key_of(name): person for person in self.people for name in person.names}

    def __len__(self) -> int:
        return len(self.people)

    def __contains__(self, name: str) -> bool:
        return key_of(name) in self._by_key

    def manner(self, speaker: str, addressee: str, language: str, address: str = "") -> Manner | None:
        """How a speaker is to talk to an addressee; both may be unknown, and then are empty.

        `address` is the form for whom the cast says nothing. None if nothing is asked for.
        """
        person = self._by_key.get(key_of(speaker)) if speaker else None
        other = self._by_key.get(key_of(addressee)) if addressee else None
        if person is not None:
            names = other.names if other is not None else (addressee,) if addressee else ()
            keys = (*map(key_of, names), EVERYBODY)
            address = next((person.address[key] for key in keys if key in person.address), address)
        manner = Manner(
            language,
            address,
            person.gender if person is not None else "",
            other.gender.upper() if other is not None else "",
        )
        return manner if manner.demands else None

    def same(self, one: str, other: str) -> bool:
        """Tell whether two names are one person's."""
        first, second = key_of(one), key_of(other)
        return first == second or (first in self._by_key and self._by_key[first] is self._by_key.get(second))


def key_of(name: str) -> str:
    """A name without what does not count in it."""
    plain = _ASIDE.sub(" ", " ".join(name.split()))  # runs of spaces would take the pattern long
    return " ".join(plain.casefold().split()).rstrip(":").rstrip()


@dataclass
class Conversation:
    """Follows the speakers of a document, sentence by sentence.

    `address` is the form that the user asks for where the cast says nothing.
    """

    cast: Cast | None
    language: str
    address: str = ""
    _speaker: str = ""
    _others: list[str] = field(default_factory=list)  # the last speaker, and the last other one

    def follow(self, sentence: Sentence, *, speakers: bool) -> tuple[Manner | None, bool]:
        """Return how the next sentence is to be said, and whether a name before a colon is its speaker's.

        `speakers` tells whether it is from subtitles, where any such name is a speaker's.
        """
        if self.cast is None:
            return (Manner(self.language, self.address) if self.address else None), speakers
        label = name_in(sentence.text)
        labelled = bool(label) and (speakers or label in self.cast)
        if labelled or sentence.speaker:
            speaker = label if labelled else sentence.speaker
        else:  # a reader of subtitles knows who goes on
            speaker = self._speaker if sentence.goes_on and not speakers else ""
        self._speaker = speaker
        if speaker and not (self._others and self.cast.same(self._others[0], speaker)):
            self._others = [speaker, *self._others[:1]]
        addressee = self._others[1] if speaker and len(self._others) > 1 else ""
        return self.cast.manner(speaker, addressee, self.language, self.address), speakers or labelled


def last_turns(texts: Sequence[str]) -> tuple[str, ...]:
    """The sentences, among the first to the last of a document, that tell who has spoken last, and before."""
    found: dict[str, str] = {}
    for text in reversed(texts):
        if (name := name_in(text)) and key_of(name) not in found:
            found[key_of(name)] = text
    return tuple(found.values())[:_TURNS][::-1]


def read_cast(source: str) -> Cast:
    """Read a cast from a file, or from lines: a source with a tab is not a name.

    What is wrong is one CadecError.
    """
    return _cast(source, _data(source))


def cast_origin(source: str) -> list[tuple[str, str]]:
    """The checksum of a cast, on which results depend; nothing without one."""
    return [("cast", hashlib.sha256(_data(source)).hexdigest())] if source else []


def _data(source: str) -> bytes:
    if "\t" in source:
        return source.encode("utf-8", "replace")
    path = Path(source)
    if str(path) == "-" or is_stream(path):
        raise UsageError(f"{option('cast')} needs a file: it is read several times, and a pipe can't be")
    return read_data(path)


@lru_cache(maxsize=4)
def _cast(source: str, data: bytes) -> Cast:
    lines = "\t" in source
    name = "the cast" if lines else name_of(Path(source))
    text = decode(data, None, name)[0].removeprefix("\ufeff")
    if "\0" in text:
        raise CadecError(f"{name} is not a cast: it has NUL characters", _HINT)
    people: list[Person] = []
    places: list[str] = []
    keys: dict[str, str] = {}  # → where it is
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        where = f"{name}: line {number}"
        columns = line.split("\t")
        if not people and [column.strip().casefold() for column in columns[:2]] == ["name", "gender"]:
            continue  # headings
        if len(people) == _MOST:
            raise CadecError(f"{name} has more than {_MOST:,} people", _HINT)
        person = _person(columns, where)
        for own in person.names:
            if key_of(own) in keys:
                raise CadecError(
                    f"{where}: {own!r} is on {keys[key_of(own)]} already", "a name belongs to one person"
                )
            keys[key_of(own)] = f"line {number}"
        people.append(person)
        places.append(where)
    if not people:
        raise CadecError(f"{name} has no people", _HINT)
    for person, where in zip(people, places, strict=True):
        for key in person.address:
            if key != EVERYBODY and key not in keys:
                raise CadecError(
                    f"{where}: {person.names[0]} addresses {key!r}, who is not in the cast",
                    "give everybody a line; * is everybody else",
                )
    return Cast(people)


def _person(columns: Sequence[str], where: str) -> Person:
    if len(columns) < 2:
        raise CadecError(f"{where} has no tab: {columns[0][:60]!r}", _HINT)
    first, gender, *rest = (column.strip() for column in columns)
    names = tuple(dict.fromkeys(name for part in first.split("|") if (name := " ".join(part.split()))))
    if not names or not all(key_of(name) for name in names):
        raise CadecError(f"{where} has no name", _HINT)
    if max(map(len, names)) > _LONGEST:
        raise CadecError(f"{where} is too long for a name: {names[0][:60]!r}…", _HINT)
    if gender.casefold() not in _GENDERS:
        raise CadecError(f"{where}: the gender is f, m or -, not {gender[:60]!r}", _HINT)
    address: dict[str, str] = {}
    for column in filter(None, rest):
        form, colon, addressees = column.partition(":")
        if not colon or form.strip().casefold() not in FORMS:
            raise CadecError(f"{where}: {column[:60]!r} does not say who is addressed how", _HINT)
        for one in filter(None, map(str.strip, addressees.split(","))):
            key = EVERYBODY if one == EVERYBODY else key_of(one)
            wanted = FORMS[form.strip().casefold()]
            if address.setdefault(key, wanted) != wanted:
                raise CadecError(
                    f"{where}: {names[0]} addresses {one[:60]!r} both formally and informally",
                    "name everybody once",
                )
    return Person(names, _GENDERS[gender.casefold()], address)
