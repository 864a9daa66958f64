"""The made-up pair with a source that marks the form of address too: both sides need the same contexts.

A document speaks mostly to `thou` (target `tu`) or mostly to `you` (target `vos`), sentence by sentence the
same on both sides. Mostly, not always: were it always, a random context would be wrong by so much on both
sides that sentences without any address would stand apart: correlation without a common cause.
"""

import random
from pathlib import Path

from tests.helpers import made_up_pair

KEPT = 0.9  # the share of sentences that keep to the document's form

Documents = list[list[made_up_pair.Pair]]


def documents(count: int, seed: int, length: int = 6) -> Documents:
    """Documents of sentence pairs."""
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        usual, other = rng.sample(["tu", "vos"], 2)
        document = []
        for _ in range(length):
            form = usual if rng.random() < KEPT else other
            source, target = made_up_pair.sentence(form, rng)
            document.append((source.replace("you", "thou") if form == "tu" else source, target))
        made.append(document)
    return made


def write(made: Documents, source: Path, target: Path) -> None:
    """Write the two sides, blank lines between documents."""
    for side, path in enumerate((source, target)):
        texts = ["".join(f"{pair[side]}\n" for pair in document) for document in made]
        path.write_text("\n".join(texts), "utf-8")
