"""Tampering with bundles like somebody who knows how to compute all checksums again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.manifest import record
from cadec_cli.errors import CadecError
from cadec_cli.validation import is_showable
from tests.helpers.bundle_parts import write_manifest
from tests.helpers.run_in_process import cadec

Tampering = Callable[[dict[str, Any]], None]


def tamper(bundle: Path, change: Tampering) -> None:
    """Change the manifest, and sign it again."""
    value = json.loads((bundle / "bundle.json").read_text())
    change(value)
    write_manifest(bundle, value)


def list_file(bundle: Path, name: str) -> None:
    """Enter a file into the manifest, as it is."""
    tamper(bundle, lambda value: value["files"].update({name: vars(record(bundle / name))}))


def refused(bundle: Path) -> str:
    """Every command that reads the bundle says so in a line that can be shown, and writes nothing."""
    with pytest.raises(CadecError) as caught:
        Bundle.open(bundle)
    mine = bundle.parent.parent / "mine"
    before = sorted(bundle.parent.rglob("*"))
    for command in (
        ("info", bundle),
        ("translate", "--bundle", bundle, "-"),
        ("convert", bundle, "-o", mine),
    ):
        ended = cadec(*command, stdin="Hello.\n", CADEC_DATA=str(bundle.parent.parent / "data"))
        assert ended.returncode == 1 and ended.stdout == ""
        assert "bug in cadec" not in ended.stderr
        assert all(is_showable(line) for line in ended.stderr.split("\n"))
        assert ended.stderr.count("error:") == 1
    assert not mine.exists() and sorted(bundle.parent.rglob("*")) == before
    return caught.value.message


def drop_conversions(value: dict[str, Any]) -> None:
    value["conversions"].clear()
    for names in (value["parts"], value["files"]):
        for name in [name for name in names if name.startswith("ct2/")]:
            del names[name]
