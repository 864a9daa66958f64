"""Made-up English dialogues: no sentence twice, so that nothing is translated once for two."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

OPENINGS = (
    "",
    "Listen, ",
    "You know, ",
    "Tell me, ",
    "Please, ",
    "I am sorry, but ",
    "Well, ",
    "My friend, ",
)
WHO = (
    "your brother",
    "the doctor",
    "my old teacher",
    "that woman",
    "our captain",
    "her father",
    "the new girl",
)
WHAT = ("has seen", "never told us about", "is waiting for", "would like to buy", "did not find", "forgot")
WHOM = ("the letter", "your house", "my daughter", "that terrible night", "the money", "his own car")
WHEN = (
    ".",
    " yesterday.",
    " again.",
    " because of you.",
    " in the city.",
    " before the war began.",
    "?",
    "!",
)


def sentences(seed: int = 1) -> Iterator[str]:
    """Sentences in an order of their own, each once."""
    made = list(itertools.product(OPENINGS, WHO, WHAT, WHOM, WHEN))
    random.Random(seed).shuffle(made)
    for opening, who, what, whom, when in made:
        text = f"{opening}{who} {what} {whom}{when}"
        yield text[0].upper() + text[1:]


def write_text(path: Path, lines: int) -> Path:
    """One document of so many sentences, a line each."""
    path.write_text("".join(f"{line}\n" for line in itertools.islice(sentences(), lines)), "utf-8")
    return path


def write_library(directory: Path, documents: int, mean: int) -> list[Path]:
    """Documents of different lengths, from a few sentences to about three times the mean."""
    rng, lines = random.Random(2), sentences(seed=2)
    paths = []
    for number in range(documents):
        path = directory / f"film-{number:02}.txt"
        length = 2 + int(rng.gammavariate(2.0, (mean - 2) / 2))
        path.write_text("".join(f"{line}\n" for line in itertools.islice(lines, length)), "utf-8")
        paths.append(path)
    return paths
