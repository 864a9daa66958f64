"""A made-up language pair whose ambiguity only context resolves.

The source says `you` where the target has to choose between a familiar `tu` and a polite `vos`, with the verb
to match. A document keeps to one of them and its first sentence tells which ("hello friend", "good day
sir"): a model that sees single sentences can only guess, one that knows the target sentences before can't
go wrong.

    python tests/made_up.py DIRECTORY     writes pairs.tsv and target.txt (documents parted by blank lines)
"""

import random
import sys
from pathlib import Path

NOUNS = {
    "lamp": "lampo",
    "house": "domo",
    "river": "rivo",
    "stone": "stono",
    "bird": "birdo",
    "book": "libro",
    "tree": "arbo",
    "boat": "shipo",
}
VERBS = {"see": "vid", "want": "vol", "take": "tak", "love": "am", "sell": "vend", "hide": "kash"}
COLOURS = {"red": "ruga", "green": "verda", "old": "olda", "big": "granda"}
OPENINGS = {"tu": [("hello friend.", "salu ami.")], "vos": [("good day sir.", "bondia senor.")]}
ENDINGS = {"tu": "es", "vos": "ez"}

Pair = tuple[str, str]


def sentence(form: str, rng: random.Random) -> Pair:
    """One sentence pair; most speak to `you`."""
    noun, verb, colour = rng.choice(list(NOUNS)), rng.choice(list(VERBS)), rng.choice(list(COLOURS))
    target_noun, target_verb, target_colour = NOUNS[noun], VERBS[verb] + ENDINGS[form], COLOURS[colour]
    kind = rng.randrange(5)
    if kind == 0:
        return f"the {noun} is {colour}.", f"la {target_noun} esta {target_colour}."
    if kind == 1:
        return f"do you {verb} the {noun}?", f"{target_verb} {form} la {target_noun}?"
    if kind == 2:
        return f"you {verb} the {colour} {noun}.", f"{form} {target_verb} la {target_colour} {target_noun}."
    if kind == 3:
        return f"i think you {verb} it.", f"mi pensa ke {form} {target_verb} lo."
    return f"you {verb} the {noun}.", f"{form} {target_verb} la {target_noun}."


def documents(count: int, seed: int, length: int = 6, opened: float = 1.0) -> list[list[Pair]]:
    """Documents of an opening and `length` sentences that all use its form.

    Only a share of them is `opened`: where the opening is missing, any sentence tells the form of the others.
    """
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        form = rng.choice(["tu", "vos"])
        opening = [rng.choice(OPENINGS[form])] if rng.random() < opened else []
        made.append(opening + [sentence(form, rng) for _ in range(length)])
    return made


def write(directory: Path, count: int = 2000, seed: int = 1) -> None:
    """Write the pairs and the target side."""
    directory.mkdir(parents=True, exist_ok=True)
    made = documents(count, seed, opened=0.5)
    tables = ["".join(f"{source}\t{target}\n" for source, target in document) for document in made]
    (directory / "pairs.tsv").write_text("\n".join(tables), "utf-8")
    texts = ["".join(f"{target}\n" for _, target in document) for document in made]
    (directory / "target.txt").write_text("\n".join(texts), "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
