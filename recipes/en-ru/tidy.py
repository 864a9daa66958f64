"""Undo the spacing of tokenised corpora: python recipes/en-ru/tidy.py CORPUS.xz OUTPUT [COLUMN,COLUMN]

Removes spaces before punctuation and inside quotes and brackets; keeps only the given columns, if any.
"""

import re
import sys
from pathlib import Path

from cadec_cli.fs.atomic import atomic_file
from cadec_cli.fs.read import read_lines


def main(corpus: str, output: str, columns: str = "") -> None:
    """Write a tidied copy, whole or not at all."""
    kept = [int(column) - 1 for column in columns.split(",") if column]
    with atomic_file(Path(output)) as stream:
        for line in read_lines(Path(corpus)):
            cells = line.split("\t")
            text = "\t".join(cells[column] for column in kept) if kept else line
            text = re.sub(r" +([?!.,;:…»)])", r"\1", text)
            stream.write(re.sub(r"([«(]) +", r"\1", text).encode() + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
