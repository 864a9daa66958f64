"""What bundle.json says, and how long it has been saying it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.find import EMBEDDED
from cadec_cli.bundle.manifest import Conversion, FileRecord, Manifest, read_manifest, save_defaults
from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code
from tests.helpers.bundle_parts import write_manifest

MODELS = Manifest(
    name="b",
    source_language="en",
    target_language="ru",
    parts={"source": "pipeline", "target": "pipeline", "nmt": "nmt", "lm": "lm"},
    files={
        f"{part}/a": FileRecord(f"{number:064}", 1) for number, part in enumerate(("nmt", "lm", "source"))
    },
)


def write(directory: Path, manifest: Manifest) -> Manifest:
    (directory / "bundle.json").write_bytes(manifest.content())
    return read_manifest(directory)


def test_an_earlier_manifest_is_written_as_it_was_read(tmp_path: Path) -> None:
    content = (EMBEDDED / "bundle.json").read_bytes()
    assert b"engines" not in content
    assert read_manifest(EMBEDDED).content() == content
    (tmp_path / "bundle.json").write_bytes(content)
    save_defaults(tmp_path, read_manifest(EMBEDDED).defaults)
    assert (tmp_path / "bundle.json").read_bytes() == content


def test_the_embedded_bundle_is_still_the_same() -> None:
    """Saved sessions name it by the one, earlier versions' conversions of it by the other."""
    manifest = Bundle.open(EMBEDDED).manifest
    assert manifest.identity == "48cfaf697e9ad2a3e7d206248adaf45e914c54109fdd9d66e94a043d15fbe353"
    assert replace(manifest, lengths=None).identity == (
        "d899814d6ef8f3ed2a2a656352cc801c962df3c637d3f82789ae65a49ddfcb79"
    )
    earlier = "c36e3668cab243aa969042253b38f10f4d6ecdda781965e6c61caf91a352d54c"
    assert manifest.listing_digest(*manifest.parts) == earlier


def test_parts_name_their_engines_and_need_not(tmp_path: Path) -> None:
    unsaid = write(tmp_path, MODELS)
    assert "engines" not in json.loads((tmp_path / "bundle.json").read_text())
    said = write(tmp_path, replace(MODELS, engines={"nmt": "ctranslate2", "lm": "torch"}))
    assert json.loads((tmp_path / "bundle.json").read_text())["engines"] == said.engines
    for manifest in (unsaid, said):
        assert (manifest.engine("nmt"), manifest.engine("lm")) == ("ctranslate2", "torch")
    assert unsaid.identity == said.identity


@pytest.mark.parametrize(
    ("engines", "named"),
    [
        ({"nmt": "marian"}, "nmt/ needs the engine 'marian'"),
        ({"nmt": "torch"}, "nmt/ needs the engine 'torch'"),
        ({"nmt": "ctranslate2", "lm": "gguf"}, "lm/ needs the engine 'gguf'"),
        ({"judge": "torch"}, "judge/ needs the engine 'torch'"),
    ],
)
def test_an_engine_that_is_not_there_is_one_error(
    engines: dict[str, str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CadecError) as caught:
        write(tmp_path, replace(MODELS, engines=engines))
    assert f"{named}, which is not installed here" in caught.value.message
    assert caught.value.hint == "install the package that adds it, or upgrade cadec"
    assert exit_code(["translate", "--bundle", str(tmp_path), "-"]) == 1
    error, hint = capsys.readouterr().err.splitlines()
    assert named in error
    assert hint == "hint: install the package that adds it, or upgrade cadec"


@pytest.mark.parametrize("engines", [None, 3, ["nmt"], "nmt"])
def test_engines_that_are_none_are_damage(engines: object, tmp_path: Path) -> None:
    write_manifest(tmp_path, {**json.loads(MODELS.content()), "engines": engines})
    with pytest.raises(CadecError, match=r"bundle\.json is damaged"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../b", "ct2/../../b", "a\\b"])
@pytest.mark.parametrize("listed", ["files", "parts", "conversions"])
def test_a_manifest_stays_inside(listed: str, name: str, tmp_path: Path) -> None:
    conversion = Conversion("0" * 64, 1, 0.0, 0.0)
    with pytest.raises(CadecError, match="outside of the bundle"):
        write(
            tmp_path,
            replace(
                MODELS,
                files={**MODELS.files, **({name: FileRecord("0" * 64, 1)} if listed == "files" else {})},
                parts={**MODELS.parts, **({name: "pipeline"} if listed == "parts" else {})},
                conversions={name: conversion} if listed == "conversions" else {},
            ),
        )
