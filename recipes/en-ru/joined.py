"""Join unrelated short pairs into longer ones: python recipes/en-ru/joined.py OUTPUT PAIRS.tsv[=N]

An S-NMT trained on single short sentences alone stops half-way through a long one. PAIRS=N leaves out every
Nth pair, which `cadec prepare text --no-documents --dev-every N` holds out.
"""

import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from passages import documents

from cadec_cli.fs.atomic import atomic_file

SHORTEST, LONGEST = 15, 75  # words of a joined source


def main(output: str, pairs: str) -> None:
    """Write the joined pairs, whole or not at all; every pair is in one of them."""
    lines = [line for (line,) in documents(pairs, sentences=True)]
    chance = random.Random(1)
    chance.shuffle(lines)
    with atomic_file(Path(output)) as stream:
        for source, target in joined((line.split("\t") for line in lines), chance):
            stream.write(f"{source}\t{target}\n".encode())


def joined(pairs: Iterable[list[str]], chance: random.Random) -> Iterator[tuple[str, str]]:
    """Join pairs until their source has a random number of words, drawn again for every joined pair."""
    sources: list[str] = []
    targets: list[str] = []
    wanted = chance.randint(SHORTEST, LONGEST)
    for source, target in pairs:
        sources.append(source)
        targets.append(target)
        if sum(len(one.split()) for one in sources) >= wanted:
            yield " ".join(sources), " ".join(targets)
            sources, targets = [], []
            wanted = chance.randint(SHORTEST, LONGEST)
    if sources:
        yield " ".join(sources), " ".join(targets)


if __name__ == "__main__":
    main(*sys.argv[1:])
