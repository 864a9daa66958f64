"""The texts of the `toy` scale: a made-up pair of languages whose ambiguities only context resolves.

Properties of a document that carry over from sentence to sentence, and the side that shows them:

    address     `you` is tu or vos, with the verb to match; a document keeps to one. The source hides it.
    names       a name has two spellings; a document keeps to one of them. The source hides it.
    ellipsis    "so do i." leaves out the verb, which the target needs: the sentence before shows it, in
                either language.
    topics      the things of a house, or those outdoors. Both sides show it, and nothing is ambiguous; it
                makes sentences likelier, or less likely, in either language alike.
    rare words  a drink has a common name and two rare ones. A document may lean towards a rare one, but
                never so much that it is the likelier: after the rare one the common one is still the best
                guess, and yet the context speaks for the rare one. Frequency misleads.

The commoner form of address and the commoner spellings are as common as in life, so that a model of sentences
prefers them, and is wrong for the others.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cadec_cli.fs.atomic import atomic_file
from cadec_cli.reproduction.corpora import write_documents

Pair = tuple[str, str]

SOURCE_LANGUAGE, TARGET_LANGUAGE = "en", "eo"

TOPICS = (
    {"lamp": "lampo", "house": "domo", "book": "libro"},
    {"river": "rivo", "stone": "stono", "bird": "birdo"},
)
NOUNS = {source: target for topic in TOPICS for source, target in topic.items()}
VERBS = {"see": "vid", "want": "vol", "take": "tak", "sell": "vend", "hide": "kash"}
COLOURS = {"red": "ruga", "green": "verda", "old": "olda"}
NAMES = {"kate": ("kata", "kejta")}
ENDINGS = {"tu": "es", "vos": "ez"}
COMMON_DRINK, RARE_DRINKS = "teo", ("chajo", "mato")

# The share of the commoner of two forms, and how often a document keeps to its topic.
COMMON, KEEPS = 0.65, 0.95
# The share of documents that lean towards a rare word, and how often they use it.
LEANING, RARE = 0.8, 0.36

SETS = ("address", "names", "ellipsis", "rare-words")


@dataclass(frozen=True)
class World:
    """The properties that hold throughout a document."""

    form: str
    spellings: dict[str, str]
    drink: str  # the word that the document leans towards
    topic: int

    def noun(self, rng: random.Random) -> str:
        """Draw a noun, mostly of the topic."""
        return rng.choice(list(TOPICS[self.topic if rng.random() < KEEPS else 1 - self.topic]))


def world(rng: random.Random) -> World:
    """Draw a world."""
    return World(
        form="tu" if rng.random() < COMMON else "vos",
        spellings={name: both[rng.random() >= COMMON] for name, both in NAMES.items()},
        drink=rng.choice(RARE_DRINKS) if rng.random() < LEANING else COMMON_DRINK,
        topic=rng.randrange(len(TOPICS)),
    )


def document(rng: random.Random, within: World, length: int = 8) -> list[Pair]:
    """Draw sentences that keep to a world."""
    sentences: list[Pair] = []
    verb = ""
    while len(sentences) < length:
        kind = rng.choice(("address", "address", "name", "name", "ellipsis", "drink", "drink", "filler"))
        if kind == "ellipsis":
            if sentences and not verb:
                continue
            # A document may begin in the middle: then nothing shows the verb.
            sentences.append(ellipsis(verb or rng.choice(list(VERBS))))
            verb = ""
        elif kind == "address":
            verb, noun = rng.choice(list(VERBS)), within.noun(rng)
            sentences.append(address(within.form, verb, noun, asks=rng.random() < 0.3))
        elif kind == "name":
            verb, noun, name = rng.choice(list(VERBS)), within.noun(rng), rng.choice(list(NAMES))
            sentences.append(name_pair(name, within.spellings[name], verb, noun))
        elif kind == "drink":
            drink = within.drink if rng.random() < RARE else COMMON_DRINK
            sentences.append(drinking(rng.choice(("we", "they")), drink))
            verb = ""
        else:
            sentences.append(filler(rng, within.noun(rng)))
            verb = ""
    return sentences


def address(form: str, verb: str, noun: str, asks: bool = False) -> Pair:
    """A sentence about `you`."""
    inflected = VERBS[verb] + ENDINGS[form]
    if asks:
        return f"do you {verb} the {noun}?", f"{inflected} {form} la {NOUNS[noun]}?"
    return f"you {verb} the {noun}.", f"{form} {inflected} la {NOUNS[noun]}."


def name_pair(name: str, spelling: str, verb: str, noun: str) -> Pair:
    """A sentence about a person."""
    return f"{name} will {verb} the {noun}.", f"{spelling} {VERBS[verb]}os la {NOUNS[noun]}."


def ellipsis(verb: str) -> Pair:
    """A sentence whose source leaves out the verb."""
    return "so do i.", f"mi anke {VERBS[verb]}as."


def drinking(who: str, drink: str) -> Pair:
    """A sentence about a drink."""
    return f"{who} drink tea.", f"{'ni' if who == 'we' else 'ili'} trinkas {drink}."


def filler(rng: random.Random, noun: str) -> Pair:
    """A sentence to which only the topic carries over."""
    colour = rng.choice(list(COLOURS))
    return f"the {noun} is {colour}.", f"la {NOUNS[noun]} esta {COLOURS[colour]}."


def documents(count: int, seed: int, length: int = 8) -> list[list[Pair]]:
    """Draw documents, each with a world of its own."""
    rng = random.Random(seed)
    return [document(rng, world(rng), length) for _ in range(count)]


def groups(kind: str, count: int, seed: int) -> list[dict[str, object]]:
    """Draw contrastive groups of one kind; each of the possible forms is the true one equally often.

    For rare words the rare one is always true: a scorer that goes by frequency is always wrong there.
    """
    rng = random.Random(seed)
    made = [_GROUPS[kind](rng, index) for index in range(count)]
    return [{**group, "truth": 0} for group in made]


def _capitalise(sentence: str) -> str:
    """Begin a sentence with a capital letter."""
    return sentence[:1].upper() + sentence[1:]


def _group(before: Sequence[Pair], current: Sequence[Pair], distance: int) -> dict[str, object]:
    return {
        "source": _capitalise(current[0][0]),
        "context_source": [_capitalise(source) for source, _ in before],
        "context": [_capitalise(target) for _, target in before],
        "candidates": list(dict.fromkeys(_capitalise(target) for _, target in current)),
        "distance": distance,
    }


def _insert_clue(rng: random.Random, telling: Pair) -> tuple[list[Pair], int]:
    """Three sentences of which one is the clue, and its distance from the current sentence."""
    distance = rng.randint(1, 3)
    before = [filler(rng, rng.choice(list(NOUNS))) for _ in range(3)]
    before[3 - distance] = telling
    return before, distance


def _address_group(rng: random.Random, index: int) -> dict[str, object]:
    forms = ("tu", "vos") if index % 2 else ("vos", "tu")
    verb, noun, asks = rng.choice(list(VERBS)), rng.choice(list(NOUNS)), rng.random() < 0.3
    telling = address(forms[0], rng.choice(list(VERBS)), rng.choice(list(NOUNS)))
    return _group(*_in_place(_insert_clue(rng, telling), [address(form, verb, noun, asks) for form in forms]))


def _names_group(rng: random.Random, index: int) -> dict[str, object]:
    name = rng.choice(list(NAMES))
    spellings = NAMES[name][:: 1 if index % 2 else -1]
    telling = name_pair(name, spellings[0], rng.choice(list(VERBS)), rng.choice(list(NOUNS)))
    verb, noun = rng.choice(list(VERBS)), rng.choice(list(NOUNS))
    return _group(
        *_in_place(_insert_clue(rng, telling), [name_pair(name, one, verb, noun) for one in spellings])
    )


def _ellipsis_group(rng: random.Random, index: int) -> dict[str, object]:
    verbs = rng.sample(list(VERBS), 3)
    telling = (
        address(rng.choice(list(ENDINGS)), verbs[0], rng.choice(list(NOUNS)))
        if index % 2
        else name_pair("kate", rng.choice(NAMES["kate"]), verbs[0], rng.choice(list(NOUNS)))
    )
    before = [filler(rng, rng.choice(list(NOUNS))) for _ in range(2)] + [telling]
    return _group(before, [ellipsis(verb) for verb in verbs], 1)


def _rare_group(rng: random.Random, index: int) -> dict[str, object]:
    drinks = (RARE_DRINKS[index % 2], COMMON_DRINK)
    telling = drinking(rng.choice(("we", "they")), drinks[0])
    who = rng.choice(("we", "they"))
    return _group(*_in_place(_insert_clue(rng, telling), [drinking(who, drink) for drink in drinks]))


def _in_place(placed: tuple[list[Pair], int], current: list[Pair]) -> tuple[list[Pair], list[Pair], int]:
    return placed[0], current, placed[1]


_GROUPS = {
    "address": _address_group,
    "names": _names_group,
    "ellipsis": _ellipsis_group,
    "rare-words": _rare_group,
}


def write_pairs(output: Path, made: Sequence[Sequence[Pair]]) -> None:
    """Write lines of source TAB target, a blank line between documents."""
    write_documents(output, [[f"{_capitalise(x)}\t{_capitalise(y)}" for x, y in one] for one in made])


def write_side(output: Path, made: Sequence[Sequence[Pair]], side: int) -> None:
    """Write one side of documents, one sentence per line."""
    write_documents(output, [[_capitalise(pair[side]) for pair in one] for one in made])


def write_groups(output: Path, kind: str, count: int, seed: int) -> None:
    """Write a contrastive set."""
    with atomic_file(output) as stream:
        for group in groups(kind, count, seed):
            stream.write((json.dumps(group, ensure_ascii=False) + "\n").encode())
