"""The pages themselves: the command reference is that of the help, links lead somewhere, the tree is true."""

import re
import runpy
from pathlib import Path

import pytest

from tests.helpers.doc_pages import PAGES, ROOT
from tests.helpers.shown_commands import KNOWN

TEXTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def test_the_command_reference_is_up_to_date() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "tools" / "make_cli.py"))["reference"]()
    assert PAGES["cli.md"] == made, "run python docs/tools/make_cli.py"


def test_the_list_of_commands_is_that_of_the_help() -> None:
    rows = dict(re.findall(r"^\| \[`cadec ([a-z0-9 -]+)`\]\(.*?\) \| (.*) \|$", PAGES["cli.md"], re.M))
    told = {name: " ".join((command.help or "").split("\n\n")[0].split()) for name, command in KNOWN.items()}
    assert rows == told


def test_every_option_is_in_the_command_reference() -> None:
    for name, command in KNOWN.items():
        (section,) = re.findall(rf"^### cadec {name}\n(.*?)(?=^##|\Z)", PAGES["cli.md"], re.M | re.S)
        names = {one for parameter in command.params for one in parameter.opts if one.startswith("--")}
        assert {one for one in names - {"--help"} if one not in section} == set()


def test_the_tree_is_that_of_the_files() -> None:
    (tree,) = re.findall(r"^## The tree\n.*?\n((?:    .*\n)+)", PAGES["architecture.md"], re.M | re.S)
    folders: list[str] = []
    named = []
    for line in tree.splitlines():
        depth = (len(line) - len(line.lstrip()) - 4) // 2
        for name in re.split(r" {2,}", line.strip())[: 1 if depth < 1 or ".py" not in line else None]:
            if name.endswith("/"):
                folders[depth:] = [name]
            if name.endswith(("/", ".py")):
                named.append("".join(folders[:depth]) + name)
    assert len(named) > 25
    assert not [name for name in named if not (ROOT / name).exists()]
    packages = {f"cadec_cli/{path.name}/" for path in (ROOT / "cadec_cli").iterdir() if path.is_dir()}
    modules = {f"cadec_cli/{path.name}" for path in (ROOT / "cadec_cli").glob("*.py")}
    missing = (packages | modules) - set(named) - {"cadec_cli/__pycache__/", "cadec_cli/__main__.py"}
    assert missing <= {"cadec_cli/api.py"}


@pytest.mark.parametrize("page", TEXTS, ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    text = re.sub(r"(`+).+?\1", "", text)
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert not broken


def _anchors(page: Path) -> set[str]:
    """The names that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_readmes_index() -> None:
    missing = {name for name in PAGES if name != "README.md" and f"](docs/{name})" not in PAGES["README.md"]}
    assert not missing


def test_the_readme_is_read_in_five_minutes() -> None:
    assert len(PAGES["README.md"].split()) <= 1500
    assert max(map(len, PAGES["README.md"].splitlines())) <= 120
