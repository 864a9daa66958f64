"""A table of speeds and sizes, as ratios: all without arguments, but for padding, invariance and names.

python -m bench [training] [padding DIR…] [prepare] [contrastive] [pretrained [BUNDLE]]
                [busy] [start [--against DIR]] [scale] [invariance FILE…] [names [BUNDLE…]]

busy: CPU time beside eight busy loops, against alone. start: one line, cold, against `import torch`; with
--against also against the code of another checkout. scale: a library of documents with one worker and two, as
processes and on Ray. invariance: how often a sentence of some texts becomes another in another batch.
"""

import sys

from rich.console import Console
from rich.table import Table

from bench import busy, contrastive, invariance, names, prepare, pretrained, scale, start, training

PARTS = {
    "training": training.measure,
    "prepare": prepare.measure,
    "contrastive": contrastive.measure,
    "pretrained": pretrained.measure,
    "busy": busy.measure,
    "start": start.measure,
    "scale": scale.measure,
    "padding": training.measure_padding,
    "invariance": invariance.measure,
    "names": names.measure,
}
# Of texts that somebody names.
ASKED_FOR = ("padding", "invariance", "names")


def main(arguments: list[str]) -> None:
    names = [name for name in arguments if name in PARTS] or [name for name in PARTS if name not in ASKED_FOR]
    directories = [argument for argument in arguments if argument not in PARTS]
    table = Table("what", "measured", "ratio", "target", title="cadec bench", title_justify="left")
    for name in names:
        for row in PARTS[name](directories):
            mark = {True: "[green]✓[/]", False: "[red]✗[/]", None: ""}[row.reached]
            table.add_row(row.what, row.measured, f"{row.ratio:.2f} {mark}", row.target)
    Console().print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
