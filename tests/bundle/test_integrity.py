"""A bundle from a stranger: whatever it says or holds is one clear error, and nothing is done elsewhere.

Each bundle is a sound one, tampered with by somebody who knows how to compute all checksums again.
"""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.find import EMBEDDED
from cadec_cli.bundle.manifest import name_misfit, read_manifest
from cadec_cli.errors import CadecError
from cadec_cli.text.pipeline import FILES
from cadec_cli.text.pipeline import _checksum as pipeline_checksum
from tests.helpers.bundle_parts import sign_again
from tests.helpers.run_in_process import cadec
from tests.helpers.tampering import Tampering, drop_conversions, refused, tamper


def test_what_nobody_touched_opens(sound: Path, theirs: Path, tmp_path: Path) -> None:
    tamper(theirs, lambda value: None)
    assert Bundle.open(theirs).manifest == Bundle.open(sound).manifest
    assert cadec("convert", theirs, "-o", tmp_path / "mine").returncode == 0
    assert Bundle.open(tmp_path / "mine").manifest.files == Bundle.open(sound).manifest.files
    Bundle.open(EMBEDDED)


# Names


ESCAPE = "\x1b]0;owned\x07"


def rename_conversion(name: str) -> Tampering:
    def change(value: dict[str, Any]) -> None:
        value["conversions"][name] = value["conversions"]["ct2/int8"]
        value["parts"][name] = "ctranslate2"

    return change


@pytest.mark.parametrize(
    "change",
    [
        rename_conversion("../payload"),
        rename_conversion("ct2/../../payload"),
        rename_conversion("ct2/int3"),
        rename_conversion(f"ct2/{ESCAPE}"),
        rename_conversion("ct2/"),
        lambda value: value["conversions"].update({"ct2/float32": value["conversions"]["ct2/int8"]}),
        lambda value: value["conversions"].clear(),
        lambda value: value["parts"].update({"judge": "lm"}),
        lambda value: value["parts"].update({"nmt": "ctranslate2"}),
        lambda value: value["parts"].update({ESCAPE: "lm"}),
        lambda value: value["parts"].update({"lm": ["lm"]}),
        lambda value: value["engines"].update({"lm": ESCAPE}),
        lambda value: value["engines"].update({"doc-nmt": "torch"}),
        lambda value: value["files"].update({"bundle.json": {"sha256": "0" * 64, "size": 1}}),
        lambda value: value["files"].update({f"nmt/{ESCAPE}": {"sha256": "0" * 64, "size": 1}}),
        lambda value: value["files"].update({"elsewhere/a": {"sha256": "0" * 64, "size": 1}}),
        lambda value: value.update(links={"nmt/model.safetensors": "/etc/hostname"}),
        lambda value: value.update(links={"lm/model.safetensors": "/etc/hostname"}),
        lambda value: value.update(links={"lm/model.safetensors": 3}),
        lambda value: value.update(name=ESCAPE),
        lambda value: value.update(name="a\u2028b"),
        lambda value: value.update(name="\u202egpj.exe"),
        lambda value: value.update(name="\ud800"),
        lambda value: value.update(name="x" * 5000),
        lambda value: value.update(name=None),
        lambda value: value.update(name=""),
        lambda value: value["files"].update({"bundle.JSON": {"sha256": "0" * 64, "size": 1}}),
        lambda value: value["files"].update({"C:/x": {"sha256": "0" * 64, "size": 1}}),
        lambda value: value["files"].update({"README:x": {"sha256": "0" * 64, "size": 1}}),
        lambda value: value.update(target_language="r\nu"),
        lambda value: value.update(target_language="/../../pwned"),
        lambda value: value.update(target_language=".."),
        lambda value: value.update(target_language="<2/../../pwned>"),
        lambda value: value.update(target_language="ru\\..\\pwned"),
        lambda value: value.update(target_language=""),
        lambda value: value.update(target_language="r" * 65),
        lambda value: value.update(source_language="../en"),
        lambda value: value.update(source_language=["en"]),
        lambda value: value["versions"].update({"cadec": ESCAPE}),
        lambda value: value["versions"].update({ESCAPE: "1"}),
    ],
)
def test_a_manifest_that_says_what_none_of_ours_does(change: Tampering, theirs: Path) -> None:
    tamper(theirs, change)
    refused(theirs)


def test_no_output_is_written_outside_of_the_directory_that_was_named(theirs: Path, tmp_path: Path) -> None:
    """All that names the target language agrees on a path: names of outputs are made of it."""
    language = "/../../pwned"
    settings = theirs / "target" / "pipeline.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "language": language}))
    checksum = pipeline_checksum({name: (theirs / "target" / name).read_bytes() for name in FILES})
    for model in ("nmt", "lm"):
        config = theirs / model / "config.json"
        stored = json.loads(config.read_text())
        del stored["pipelines"]["ru"]
        stored["pipelines"][language] = checksum
        config.write_text(json.dumps(stored))
    tamper(theirs, drop_conversions)
    shutil.rmtree(theirs / "ct2")
    sign_again(theirs)
    tamper(theirs, lambda value: value.update(target_language=language))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "README").write_text("The captain sees it.\n")
    before = sorted(tmp_path.rglob("*"))
    ended = cadec("translate", tmp_path / "sub" / "README", "-o", f"{tmp_path}/sub/out/", "--bundle", theirs)
    assert sorted(tmp_path.rglob("*")) == before
    assert ended.returncode == 1 and "target_language" in ended.stderr


@given(st.text(max_size=30) | st.lists(st.sampled_from(["a", "..", ".", "", "ct2", "b c"])).map("/".join))
def test_a_name_stays_in_its_directory_and_in_its_line(name: str) -> None:
    """What is accepted is one line, means itself on every system, and is inside."""
    if name_misfit(name) is None:
        assert name.splitlines() == [name] and "\x1b" not in name and "\u202e" not in name
        assert os.path.normpath(name) == name and not name.startswith(("/", "..")) and "\\" not in name


def test_names_that_bundles_have_are_names() -> None:
    for name in ("lm/model-00001-of-00002.safetensors", "nmt/sentencepiece.bpe.model", "nmt/модель.spm"):
        assert name_misfit(name) is None
    assert name_misfit("a/" * 300 + "b") is None and name_misfit("a/" * 600 + "b") is not None
    assert name_misfit("я" * 127) is None and name_misfit("я" * 128) is not None


LONG = "k" * 300_000


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value["files"]["nmt/config.json"].update({LONG: 1}),
        lambda value: value["files"]["nmt/config.json"].update({f"{number}k": 1 for number in range(10_000)}),
        lambda value: value["conversions"]["ct2/int8"].update({LONG: 1}),
        lambda value: value["defaults"].update({LONG: 1}),
        lambda value: value["defaults"].update({f"{number}k": 1 for number in range(10_000)}),
    ],
)
def test_an_error_is_short_whatever_a_manifest_says(change: Tampering, theirs: Path) -> None:
    tamper(theirs, change)
    assert len(refused(theirs).replace(str(theirs), "")) < 500


def test_a_later_manifest_may_say_more(theirs: Path) -> None:
    """Fields that earlier versions can do without are added to the same format, as engines were."""
    tamper(theirs, lambda value: value.update(later={"anything": 1}))
    Bundle.open(theirs)


# Numbers


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("beam", [10**18, 0, -1, 1.0, True, "4", None, "9" * 5000]),
        ("nbest", [10**18, 0, 2.5, False]),
        ("context", [10**18, -1, "3"]),
        ("temperature", [0, -1, 1e300, "1", True, [1]]),
        ("weight", [-1, 1e300, {"lm": "1"}, {"lm": True}, [1]]),
        ("search", ["hope", 3, ["rerank"]]),
        ("objective", [ESCAPE, None, {}]),
    ],
)
def test_defaults_have_bounds(name: str, values: list[object], theirs: Path) -> None:
    for value in values:
        tamper(theirs, lambda manifest, value=value: manifest["defaults"].update({name: value}))  # type: ignore[misc]
        with pytest.raises(CadecError, match=name):
            Bundle.open(theirs)
    refused(theirs)


@pytest.mark.parametrize(
    ("lengths", "named"),
    [
        ({"ratio": -0.1, "extra": 9}, "ratio"),
        ({"ratio": 10**18, "extra": 9}, "ratio"),
        ({"ratio": "2", "extra": 9}, "ratio"),
        ({"ratio": True, "extra": 9}, "ratio"),
        ({"ratio": None, "extra": 9}, "ratio"),
        ({"ratio": 2, "extra": 0}, "extra"),
        ({"ratio": 2, "extra": -1}, "extra"),
        ({"ratio": 2, "extra": 10**18}, "extra"),
        ({"ratio": 2, "extra": 9.5}, "extra"),
        ({"ratio": 2, "extra": "9"}, "extra"),
        ({"ratio": 2, "extra": 9, "floor": 1}, "floor"),
        ([2, 9], "lengths"),
        ("2", "lengths"),
        (None, "lengths"),
    ],
)
def test_limits_of_length_have_bounds(lengths: object, named: str, theirs: Path) -> None:
    tamper(theirs, lambda value: value.update(lengths=lengths))
    with pytest.raises(CadecError, match=named):
        Bundle.open(theirs)
    refused(theirs)


@pytest.mark.parametrize(
    "entry",
    [
        {"sha256": "0" * 63 + "A", "size": 1},
        {"sha256": "0" * 63, "size": 1},
        {"sha256": "0" * 64 + "\n", "size": 1},
        {"sha256": 0, "size": 1},
        {"sha256": "0" * 64, "size": -1},
        {"sha256": "0" * 64, "size": 10**30},
        {"sha256": "0" * 64, "size": 1.0},
        {"sha256": "0" * 64, "size": True},
        {"sha256": "0" * 64},
        {"sha256": "0" * 64, "size": 1, "mode": 7},
        [],
    ],
)
def test_records_of_files_are_checksums_and_sizes(entry: object, theirs: Path) -> None:
    tamper(theirs, lambda value: value["files"].update({"MODEL_CARD.md": entry}))
    with pytest.raises(CadecError, match=r"bundle\.json is damaged"):
        read_manifest(theirs)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("converter", 1.0),
        ("converter", 10**18),
        ("mean_drift", "0"),
        ("largest_drift", 1e300),
        ("made_of", "x"),
    ],
)
def test_records_of_conversions_have_bounds(name: str, value: object, theirs: Path) -> None:
    tamper(theirs, lambda manifest: manifest["conversions"]["ct2/int8"].update({name: value}))
    with pytest.raises(CadecError, match=r"bundle\.json is damaged"):
        read_manifest(theirs)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_no_number_in_json_is_none_here(number: str, theirs: Path) -> None:
    tamper(theirs, lambda value: value["defaults"].update(temperature=float(number)))
    refused(theirs)


def test_a_key_is_there_once(theirs: Path) -> None:
    text = (theirs / "bundle.json").read_text()
    (theirs / "bundle.json").write_text(text.replace('"name":', '"name": "another", "name":', 1))
    assert "duplicate key" in refused(theirs)


def test_a_manifest_has_a_size(theirs: Path) -> None:
    with (theirs / "bundle.json").open("a") as stream:
        stream.write(" " * (1 << 21))
    assert "too large for the manifest" in refused(theirs)


@pytest.mark.parametrize(
    ("part", "sizes"),
    [
        ("lm", {"layers": 10**9}),
        ("lm", {"layers": 512}),
        ("lm", {"width": 1 << 16, "inner": 1 << 18, "layers": 500}),
        ("lm", {"positions": 1 << 20, "width": 1 << 16}),
        ("nmt", {"positions": 10**9}),
        ("nmt", {"encoder_layers": 10**18}),
        ("nmt", {"width": 10**9, "heads": 1}),
        ("nmt", {"heads": 3}),
        ("nmt", {"heads": 0}),
        ("nmt", {"inner": 24.0}),
        ("nmt", {"decoder_layers": True}),
        ("nmt", {"dropout": "0.1"}),
        ("nmt", {"pre_norm": 0}),
        ("nmt", {"activation": ["relu"]}),
        ("nmt", {"more": 1}),
    ],
)
def test_a_network_is_no_larger_than_its_file(part: str, sizes: dict[str, object], theirs: Path) -> None:
    """A file of a few bytes asks for any amount of memory; it is refused before there is any."""
    path = theirs / part / "config.json"
    stored = json.loads(path.read_text())
    stored["config"].update(sizes)
    path.write_text(json.dumps(stored))
    manifest = read_manifest(theirs)
    sign_again(theirs, replace(manifest, parts={**manifest.parts}, conversions=manifest.conversions))
    if part == "nmt":  # whose conversion is of another model now, which is found as well
        tamper(theirs, drop_conversions)
        shutil.rmtree(theirs / "ct2")
    with pytest.raises(CadecError) as caught:
        bundle = Bundle.open(theirs)
        _ = bundle.lm_network() if part == "lm" else bundle.translation_network()
    assert any(name in caught.value.message for name in (*sizes, "do not fit", "not a multiple"))
