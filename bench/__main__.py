"""A table of speeds and sizes, as ratios: all without arguments, but for padding.

python -m bench [training] [padding DIR…] [prepare] [contrastive] [pretrained [BUNDLE]]
"""

import sys

from rich.console import Console
from rich.table import Table

from bench import contrastive, prepare, pretrained, training

PARTS = {
    "training": training.measure,
    "prepare": prepare.measure,
    "contrastive": contrastive.measure,
    "pretrained": pretrained.measure,
    "padding": training.measure_padding,
}


def main(arguments: list[str]) -> None:
    names = [name for name in arguments if name in PARTS] or [
        "training",
        "prepare",
        "contrastive",
        "pretrained",
    ]
    directories = [argument for argument in arguments if argument not in PARTS]
    table = Table("what", "measured", "ratio", "target", title="cadec bench", title_justify="left")
    for name in names:
        for row in PARTS[name](directories):
            mark = {True: "[green]✓[/]", False: "[red]✗[/]", None: ""}[row.reached]
            table.add_row(row.what, row.measured, f"{row.ratio:.2f} {mark}", row.target)
    Console().print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
