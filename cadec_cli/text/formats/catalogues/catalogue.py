"""The layout of all catalogues: the file's own text, in which translations replace what they translate.

A reader finds the entries of a file, in its order: `Entry` is translated, `Translated` has a translation
already, and is context for the entries after it. Entries in a row with the same `section` are one document.
Nothing but the places of entries changes, so what is not translated is the same to the byte.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cadec_cli.errors import CadecError
from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.formats.catalogues.message import Message
from cadec_cli.text.formats.layout import RatedText, Source, finish, take
from cadec_cli.text.sentences import split_sentences

MAX_ENTRIES = 500_000  # of a file, which is held in memory
_MAX_PLACE = 60  # characters of a key in messages


@dataclass(frozen=True)
class Outcome:
    """The translations of an entry's messages.

    Not `complete` if some sentence had to stay as it was, because its translation had lost a placeholder.
    `confidence` is the lowest of its sentences' if that is too low, and `flags` says why.
    """

    texts: tuple[str, ...]
    complete: bool
    confidence: float | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A place in the file, what is translated for it, and how the translation is written there.

    A place whose messages come back as they were is not written anew, unless it `fills`: then it has, before
    it is written, something else than its messages. Without messages, `write` is always called.
    """

    start: int
    end: int
    messages: tuple[Message, ...]
    write: Callable[[Outcome], str]
    place: str = ""
    section: str = ""
    fills: bool = False


@dataclass(frozen=True)
class Translated:
    """A string that has a translation, which stays as it is."""

    text: str
    translation: str
    place: str = ""
    section: str = ""


def fixed(start: int, end: int, written: str) -> Entry:
    """Return a place whose content is known, such as the language in a header."""
    return Entry(start, end, (), lambda _: written)


# How many strings before an entry are read with their translations, and the most characters of one.
_KNOWN = 4
_MAX_KNOWN = 400


@dataclass(frozen=True)
class _Given:
    """A number of sentences whose translations are given; they are not written anywhere."""

    count: int


@dataclass(frozen=True)
class CatalogueLayout:
    """A file without the strings that are translated."""

    text: str
    items: tuple[Entry | _Given, ...]

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the file with translations for sentences, entry by entry."""
        incoming = iter(translations)
        done = 0
        for item in self.items:
            if isinstance(item, _Given):
                for _ in range(item.count):
                    take(incoming)
                continue
            outcome = _outcome(item.messages, incoming)
            if done < item.start:
                yield self.text[done : item.start]
            unchanged = outcome.texts == tuple(message.text for message in item.messages)
            if unchanged and item.messages and not item.fills:
                yield self.text[item.start : item.end]
            elif written := item.write(outcome):
                yield written
            done = item.end
        if done < len(self.text):
            yield self.text[done:]
        finish(incoming)


def _outcome(messages: Sequence[Message], incoming: Iterator[str]) -> Outcome:
    seen: list[str] = []

    def watched() -> Iterator[str]:
        for translation in incoming:
            seen.append(translation)
            yield translation

    taken = watched()
    restored = [message.restore(taken) for message in messages]
    doubtful = [one for one in seen if isinstance(one, RatedText) and one.flags]
    worst = min(doubtful, key=lambda one: one.confidence or 0.0, default=None)
    return Outcome(
        tuple(one.text for one in restored),
        all(one.complete for one in restored),
        worst.confidence if worst is not None else None,
        worst.flags if worst is not None else (),
    )


Item: TypeAlias = Entry | Translated


def catalogue(source: Source, items: Iterable[Item]) -> tuple[tuple[Document, ...], CatalogueLayout]:
    """Return the documents and the layout of a file, whose entries are given in its order.

    A file with more than `MAX_ENTRIES` is a CadecError.
    """
    languages = source.language, source.screen.language
    documents: list[list[Sentence]] = []
    laid: list[Entry | _Given] = []
    section: str | None = None  # of the last string
    waiting: deque[Translated] = deque(maxlen=_KNOWN)  # strings with translations, since the last other one
    for item in _counted(items, source.name):
        if isinstance(item, Entry) and not item.messages:
            laid.append(item)
            continue
        if item.section != section:
            documents.append([])
            waiting.clear()
            section = item.section
        if isinstance(item, Translated):
            waiting.append(item)
            continue
        given = [sentence for known in waiting for sentence in _pairs(known, languages)]
        waiting.clear()
        own = (sentence for message in item.messages for sentence in message.sentences)
        documents[-1] += [*given, *(Sentence(sentence, _shown(item.place)) for sentence in own)]
        laid += [_Given(len(given)), item] if given else [item]
    filled = tuple(Document(tuple(sentences)) for sentences in documents if sentences)
    return filled, CatalogueLayout(source.text, tuple(laid))


def _counted(items: Iterable[Item], name: str) -> Iterator[Item]:
    for number, item in enumerate(items, 1):
        if number > MAX_ENTRIES:
            raise CadecError(f"{name} has more than {MAX_ENTRIES:,} strings", "divide it into several files")
        yield item


def _pairs(known: Translated, languages: tuple[str, str | None]) -> list[Sentence]:
    """Return a translated string as sentences with their translations; of a long one, nothing."""
    source, target = languages
    if max(len(known.text), len(known.translation)) > _MAX_KNOWN:
        return []
    texts, translations = (" ".join(one.split()) for one in (known.text, known.translation))
    if not texts or not translations:
        return []
    own, other = split_sentences(texts, source), split_sentences(translations, target or "")
    pairs = zip(own, other, strict=True) if len(own) == len(other) else [(texts, translations)]
    return [Sentence(one, _shown(known.place), given=translation) for one, translation in pairs]


def _shown(place: str) -> str:
    """Return a place as messages show it: short, and nothing in it that a terminal would act on."""
    shown = "".join(letter if letter.isprintable() else " " for letter in place[: _MAX_PLACE + 1])
    return shown if len(shown) <= _MAX_PLACE else shown[: _MAX_PLACE - 1] + "…"
