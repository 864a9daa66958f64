"""Run a command and keep what it shows as a picture.

    python docs/tools/terminal_picture.py PICTURE.svg COMMAND…

The picture is the command's own output, colours included; nothing in it is written by hand.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 100


def main(picture: Path, command: list[str]) -> None:
    """Run the command as if at a terminal in colour, and save its standard output."""
    environment = os.environ | {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "COLUMNS": str(WIDTH)}
    environment.pop("NO_COLOR", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    shown = shlex.join([Path(command[0]).name, *command[1:]])
    with Path(os.devnull).open("w") as nowhere:
        console = Console(
            record=True, width=WIDTH, file=nowhere, force_terminal=True, color_system="truecolor"
        )
        console.print(Text.assemble(("$ ", "bold green"), (shown, "bold")))
        console.print(Text.from_ansi(done.stdout))
        console.save_svg(str(picture), title="cadec")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
