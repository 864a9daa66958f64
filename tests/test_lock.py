"""The lock of exact versions: within the ranges that the wheel has, complete, and what the tests run with."""

import importlib.metadata
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LINES = [line for line in (ROOT / "requirements.lock").read_text("utf-8").splitlines() if line[:1] != "#"]
LOCKED = {canonicalize_name(line.split("==")[0]): Version(line.split("==")[1]) for line in LINES}

# What builds of torch for CUDA bring. No lock for all machines can name it.
OF_THE_MACHINE = re.compile(r"nvidia-|cuda-|triton$")


def asked_for() -> list[Requirement]:
    """What pyproject.toml asks for, with every extra, and to build."""
    project = PROJECT["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    lines = [*project["dependencies"], *extras, *PROJECT["build-system"]["requires"]]
    return [asked for asked in map(Requirement, lines) if asked.name != project["name"]]


def applies(asked: Requirement, extra: str) -> bool:
    """Tell whether a package that is installed with this extra asks for it on this machine."""
    return asked.marker is None or asked.marker.evaluate({"extra": extra})


def needed() -> dict[NormalizedName, str]:
    """All that is installed for what pyproject.toml asks for, directly or not, by name: who needs it."""
    waiting = [(asked, "pyproject.toml") for asked in asked_for()]
    found: dict[NormalizedName, str] = {}
    seen: set[tuple[str, str]] = set()
    while waiting:
        asked, who = waiting.pop()
        name = canonicalize_name(asked.name)
        try:
            requires = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:  # what builds the package lives in a place apart
            continue
        found.setdefault(name, who)
        for extra in ("", *asked.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                further = map(Requirement, requires)
                waiting += [(one, name) for one in further if applies(one, extra)]
    return found


def test_it_is_exact_versions_in_order_and_nothing_else() -> None:
    assert [line for line in LINES if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9a-z.]*", line)] == []
    assert sorted(LINES, key=str.upper) == LINES
    assert len(LOCKED) == len(LINES)


def test_it_has_all_that_is_asked_for_within_the_ranges() -> None:
    wrong = [
        str(asked)
        for asked in asked_for()
        if not (version := LOCKED.get(canonicalize_name(asked.name))) or version not in asked.specifier
    ]
    assert wrong == []


def test_the_tests_run_with_it() -> None:
    """A package that the lock does not name, or not in this version, would float: `make lock`."""
    floating = []
    for name, who in needed().items():
        installed = Version(importlib.metadata.version(name))
        if LOCKED.get(name) != Version(installed.public) and not OF_THE_MACHINE.match(name):
            floating.append(f"{name} {installed} (for {who}); locked: {LOCKED.get(name)}")
    assert floating == []
    assert {"torch", "numpy", "pytest", "ruff", "markupsafe"} <= needed().keys()  # of all kinds, and indirect


@pytest.mark.parametrize("target", [".venv/.ready", "bench"])
def test_make_installs_nothing_without_it(target: str) -> None:
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", target], cwd=ROOT, capture_output=True, text=True, check=True
    )
    installs = [line for line in done.stdout.splitlines() if "pip install" in line]
    assert installs
    for line in installs:
        assert line.startswith("PIP_CONSTRAINT=requirements.lock PIP_BUILD_CONSTRAINT=requirements.lock ")
