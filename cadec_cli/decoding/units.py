"""Units: the pieces of sentences that are translated one at a time.

A unit is made once, when a document is cut into pieces that the models can read. It travels beside its n-best
list through waves and searches to the finished translation, so that nothing about the source is derived
twice: which document and sentence it belongs to, the part of its text that is translated (its core), and
where a person finds the sentence in its file.

Waves are the next few items of the documents in step; several waves are prepared in one batch. Items are
units, n-best lists, texts or passages: whatever a search reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from cadec_cli.errors import CadecError, option
from cadec_cli.text.cast import Conversation
from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.glossary.entries import Glossary
from cadec_cli.text.manner import Manner
from cadec_cli.text.markup import take_out_tags
from cadec_cli.text.protected.core import Core, core_of, parts_of


@dataclass(frozen=True)
class Unit:
    """A piece of a sentence; most sentences are one piece.

    `document` and `piece` are counted from 0, pieces within their document. `source` is the whole sentence
    and `number` its position in the document; `text` is the piece of it that `core` takes apart. `room` is
    how many characters the translation of the core may have to fit its cues; None if that is not known.
    """

    document: int
    number: int
    piece: int
    source: Sentence
    text: str
    core: Core
    ends_sentence: bool = True
    room: int | None = None

    @property
    def text_read(self) -> str:
        """The text as models read it: without what is put back around its translation."""
        return self.core.text or self.text


_NOTHING = Core("", "", "")


@dataclass(frozen=True)
class Splitter:
    """Cuts documents into units.

    `fits` tells whether the models can read a text whole; `split` cuts a text that they can't. The language
    is that of the source. Without `protect` everything is translated; without `cut`, a sentence that does not
    fit is a CadecError. `conversation` begins to follow a document in which sentences are to be said in a
    certain manner.
    """

    fits: Callable[[str], bool]
    split: Callable[[str], list[str]]
    language: str
    protect: bool
    cut: bool
    glossary: Glossary | None = None
    conversation: Callable[[], Conversation] | None = None

    def core(self, text: str, *, speakers: bool = False, manner: Manner | None = None) -> Core:
        """Return the core of a text, all of it unless the options ask for protection, with its terms."""
        core = core_of(text, self.language, speakers=speakers) if self.protect else Core.whole(text)
        return core.with_mentions(self.glossary).with_manner(manner)

    def units(self, number: int, document: Document, before: Sequence[str] = ()) -> list[Unit]:
        """Return the units of a document, which is the given number among those translated together.

        `before` has the sentences before it, if it goes on.
        """
        units: list[Unit] = []
        conversation = self.conversation() if self.conversation is not None else None
        if conversation is not None:
            for text in before[-_LOOK_BACK:]:
                conversation.follow(Sentence(text), speakers=document.speakers)
        for place, sentence in enumerate(document.sentences):
            manner, speakers = None, document.speakers
            if conversation is not None:
                manner, speakers = conversation.follow(sentence, speakers=document.speakers)
            if sentence.given:  # nothing of it is translated
                units.append(Unit(number, place, len(units), sentence, sentence.text, _NOTHING))
                continue
            pieces = list(self._pieces(place, sentence.text, speakers, manner))
            for position, (text, core) in enumerate(pieces, 1):
                ends, room = position == len(pieces), _room(sentence, text, core)
                units.append(Unit(number, place, len(units), sentence, text, core, ends, room))
        return units

    def _pieces(
        self, place: int, sentence: str, speakers: bool, manner: Manner | None
    ) -> Iterator[tuple[str, Core]]:
        whole = self.core(sentence, speakers=speakers, manner=manner)
        if not whole.text or self.fits(sentence):
            pieces = parts_of(sentence, speakers=speakers) if self.protect else [sentence]
        elif self.cut:
            pieces = list(self._cut(sentence))
        else:
            raise CadecError(
                f"sentence {place + 1} is longer than the model reads: {sentence[:60]!r}…",
                f"{option('long', 'split')} translates it in pieces",
            )
        for piece in pieces:
            own = whole if piece == sentence else self.core(piece, speakers=speakers, manner=manner)
            yield piece, own

    def _cut(self, sentence: str) -> Iterator[str]:
        """Cut a sentence until every piece fits or can't be cut any further."""
        for piece in self.split(sentence):
            halves = [piece] if self.fits(piece) else _halves(piece)
            if len(halves) == 1:
                yield piece
            else:
                for half in halves:
                    yield from self._cut(half)


def _room(sentence: Sentence, text: str, core: Core) -> int | None:
    """Return the room for the core of a piece: its share of the sentence's, less what is put around it."""
    if sentence.room is None:
        return None
    whole, piece, around = (_width(one) for one in (sentence.text, text, core.before + core.after))
    return max(0, int(sentence.room * piece / max(1, whole) - around))


def _width(text: str) -> int:
    return len(take_out_tags(text)[0])


def _halves(text: str) -> list[str]:
    """Cut a text at the space nearest to its middle; a text without one stays whole."""
    spaces = [place for place, character in enumerate(text) if character == " " and 0 < place < len(text) - 1]
    if not spaces:
        return [text]
    middle = min(spaces, key=lambda place: abs(place - len(text) // 2))
    return [text[:middle].strip(), text[middle:].strip()]


# Items of a wave, and the most documents that are in step. A translation can be resumed between two waves, so
# that a wave must not take long: a slow D-LM says how many it takes (`engines.protocols.Paced`).
WAVE = 64
# Items that are prepared at once, in waves. With a slow D-LM the first are few, so that the first
# translations appear soon. Otherwise to prepare them is most of the work, and takes longer in small batches.
FIRST_BATCH, BATCH = 32, 256

# Sentences before a document that goes on, in which those who speak are looked for.
_LOOK_BACK = 500

Item = TypeVar("Item")
Other = TypeVar("Other")


@dataclass(frozen=True)
class Wave(Generic[Item]):
    """The next few items of the documents in step, by the numbers of the documents."""

    documents: dict[int, list[Item]]
    ending: frozenset[int]  # the documents that end with this wave

    def __iter__(self) -> Iterator[tuple[int, Item]]:
        """Yield all items with the numbers of their documents, document by document."""
        return ((number, item) for number, items in self.documents.items() for item in items)

    def map(self, function: Callable[[list[Item]], Iterable[Other]]) -> Wave[Other]:
        """Return the wave with other items, made of all items in one call; `function` keeps their order."""
        made = iter(function([item for _, item in self]))
        return Wave(
            {number: [next(made) for _ in items] for number, items in self.documents.items()}, self.ending
        )

    def steps(self) -> Iterator[dict[int, Item]]:
        """Yield the first item of every document that has one, by document number; then the second; …"""
        for step in range(max(map(len, self.documents.values()))):
            yield {number: items[step] for number, items in self.documents.items() if step < len(items)}

    def is_last(self, number: int, step: int) -> bool:
        """Tell whether a document ends with this step of the wave."""
        return number in self.ending and step + 1 == len(self.documents[number])


def waves(documents: Sequence[Sequence[Item]], size: int = WAVE) -> Iterator[Wave[Item]]:
    """Yield waves of `size` items until all documents are used up; when one ends, the next one joins.

    Waves depend on the lengths of the documents alone, so that a resumed translation meets the same ones.
    """
    waiting = (number for number, items in enumerate(documents) if items)
    position = dict.fromkeys(itertools.islice(waiting, size), 0)
    while position:
        share = max(1, size // len(position))
        ending = frozenset(
            number for number, first in position.items() if first + share >= len(documents[number])
        )
        yield Wave(
            {number: list(documents[number][first : first + share]) for number, first in position.items()},
            ending,
        )
        position = {number: first + share for number, first in position.items() if number not in ending}
        position |= dict.fromkeys(itertools.islice(waiting, size - len(position)), 0)


def batches(
    documents: Sequence[Sequence[Item]], size: int = WAVE, taken: int = 0
) -> Iterator[tuple[list[Wave[Item]], int]]:
    """Yield the waves in batches that are prepared together, and how many waves of each are already taken.

    Batches of which all waves are among the first `taken` are left out. They depend on lengths and on `size`
    alone, too; waves smaller than usual are those of a slow D-LM.
    """
    batch, items, first = list[Wave[Item]](), 0, 0
    enough = FIRST_BATCH if size < WAVE else BATCH
    for number, wave in enumerate(waves(documents, size), 1):
        batch.append(wave)
        items += sum(map(len, wave.documents.values()))
        if items >= enough:
            if number > taken:
                yield batch, max(0, taken - first)
            enough, batch, items, first = min(2 * enough, BATCH), [], 0, number
    if batch:
        yield batch, max(0, taken - first)


def map_batch(
    batch: Sequence[Wave[Item]], function: Callable[[list[Item]], Iterable[Other]]
) -> list[Wave[Other]]:
    """Return the waves with other items, made of all items in one call; `function` keeps their order."""
    made = iter(function([item for wave in batch for _, item in wave]))
    return [wave.map(lambda items: itertools.islice(made, len(items))) for wave in batch]
