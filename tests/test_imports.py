"""Imports go one way: the graph is drawn from the source, imports inside functions included."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Everyone may import these; they import none of the rooms but each other.
BASE = {"arrays", "errors", "extensions", "fs", "parallel", "plotting", "validation", "version"}

MAY_IMPORT: dict[str, set[str]] = {
    **{name: set() for name in BASE},
    "text": set(),
    "method": {"text"},
    "data": {"text"},
    "models": {"text"},
    "training": {"text", "data", "models"},
    "engines": {"text", "method", "models"},
    "converters": {"text", "models", "engines"},
    "bundle": {"text", "method", "models", "engines", "converters"},
    "decoding": {"text", "method", "engines"},
    "jobs": {"text", "method", "engines", "bundle", "decoding"},
    "session": {"text", "method", "engines", "bundle", "decoding", "jobs"},
    "evaluation": {"text", "method", "models", "engines", "bundle", "converters", "decoding", "jobs"},
    "reports": {"text", "method", "decoding", "jobs", "evaluation"},
    "reproduction": {"text", "method", "data", "bundle", "decoding", "jobs", "evaluation"},
    "terminal": {
        *("text", "method", "data", "models", "training", "engines", "converters", "bundle", "decoding"),
        *("jobs", "session", "evaluation", "reports", "reproduction"),
    },
    "commands": {
        *("text", "method", "data", "models", "training", "engines", "converters", "bundle", "decoding"),
        *("jobs", "session", "evaluation", "reports", "reproduction", "terminal"),
    },
    "api": {"text", "method", "decoding", "jobs", "session"},
    "": {"api"},
    "main": {"commands", "terminal"},
    "__main__": {"main"},
}


def modules() -> dict[str, Path]:
    """All modules of the project by their dotted names."""
    found = {}
    for package in ("cadec_cli", "converters"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the project that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} imports relatively"
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                names.add(submodule if submodule in known else str(node.module))
    return {name for name in names if name.split(".")[0] in ("cadec_cli", "converters")}


def place(module: str) -> str:
    """The package of a module, or the module itself when it stands beside the packages."""
    first, *rest = module.split(".")
    return first if first == "converters" else (rest or [""])[0]


def graph() -> dict[str, set[str]]:
    known = modules()
    return {name: imported(path, known) - {name} for name, path in known.items()}


def test_every_module_has_its_place() -> None:
    unknown = {module for module in modules() if place(module) not in MAY_IMPORT}
    assert not unknown, "say in MAY_IMPORT what these may import"


def test_every_import_exists() -> None:
    drawn = graph()
    missing = {name for imports in drawn.values() for name in imports} - set(drawn)
    assert not missing


def test_packages_import_one_way() -> None:
    upward = [
        f"{importer} imports {module}"
        for importer, imports in graph().items()
        for module in imports
        if place(module) not in {place(importer), *MAY_IMPORT[place(importer)], *BASE}
    ]
    assert not upward


def test_no_module_imports_itself_in_a_circle() -> None:
    TopologicalSorter(graph()).prepare()  # a CycleError shows the circle


def test_bundles_come_to_the_converters_through_one_door() -> None:
    inside = [
        f"{importer} imports {module}"
        for importer, imports in graph().items()
        for module in imports
        if module.startswith("converters.") and place(importer) == "bundle"
    ]
    assert not inside


def test_no_command_needs_another() -> None:
    borrowed = [
        f"{importer} imports {module}"
        for importer, imports in graph().items()
        for module in imports
        if module.startswith("cadec_cli.commands.") and importer.startswith("cadec_cli.commands.")
        if module.split(".")[2] != importer.split(".")[2]
    ]
    assert not borrowed


def test_the_method_needs_numpy_at_most() -> None:
    outside = {
        name.split(".")[0]
        for path in (ROOT / "cadec_cli" / "method").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert outside - set(sys.stdlib_module_names) == {"cadec_cli", "numpy"}


def test_the_graph_is_not_empty() -> None:
    drawn = graph()
    assert len(drawn) > 30
    assert "cadec_cli.text.sentences" in drawn["cadec_cli.data.preparation"]
    assert "cadec_cli.data.shards" in drawn["cadec_cli.commands.prepare"]  # inside a function


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["train", "lm", "--help"], ["prepare", "text", "--help"]]
)
def test_help_waits_for_no_heavy_library(arguments: list[str]) -> None:
    heavy = {"torch", "ctranslate2", "sacremoses", "sentencepiece", "numpy", "transformers", "sacrebleu"}
    code = (
        "import sys; from cadec_cli.main import exit_code\n"
        "code = exit_code(sys.argv[1:]); print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert "cadec_cli.main" in done.stderr.split()
    assert not heavy & set(done.stderr.split())
