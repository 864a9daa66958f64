"""What the README and the pages of docs/ show, by the kind of its fence.

sh        commands to copy; a comment begins with two spaces and #
console   commands after $, each followed by the output that it really has
python    runs as it stands; a text block right after it is its output
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {
    path.name: path.read_text("utf-8") for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
}
_CADEC = re.compile(r"^(?:[^#]*\| )?cadec ")


@dataclass(frozen=True)
class Shown:
    """A command with the output that a page promises for it."""

    command: str
    output: str


def blocks(page: str, kind: str) -> list[str]:
    """The text of all fences of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[str]:
    """All commands of cadec that a page shows to copy: one line each, without comments."""
    text = re.sub(
        r"^torchrun .* -m cadec_cli", "cadec", "".join(blocks(page, "sh")).replace("\\\n", " "), flags=re.M
    )
    lines = [re.split(r"\s{2,}#", line)[0].strip() for line in text.splitlines()]
    return [line for line in lines if _CADEC.match(line)]


def sessions(page: str) -> list[list[Shown]]:
    """The commands of each console fence, in order."""
    found = []
    for block in blocks(page, "console"):
        parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
        found.append([Shown(*part.split("\n", 1)) for part in parts])
    return found


def mentioned(page: str) -> list[str]:
    """Commands that stand within sentences and tables."""
    text = re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    spans = [" ".join(span.split()) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]
    return [span for span in spans if span.startswith("cadec ")]
