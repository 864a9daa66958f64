"""A bundle from a stranger: whatever it says or holds is one clear error, and nothing is done elsewhere.

Each bundle is a sound one, tampered with by somebody who knows how to compute all checksums again.
"""

import copy
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bundle_parts import checksums, sign_again, tiny_nmt, write_bundle, write_manifest
from hypothesis import given
from hypothesis import strategies as st
from in_process import cadec

from cadec_cli.bounds import is_showable
from cadec_cli.bundle.building import build_bundle
from cadec_cli.bundle.finding import EMBEDDED
from cadec_cli.bundle.layout import name_misfit
from cadec_cli.bundle.manifest import FileRecord, read_manifest, record
from cadec_cli.bundle.opening import Bundle
from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code
from cadec_cli.models.storage import save_model
from cadec_cli.text.pipeline import TextPipeline

Tampering = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def sound(english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that is as it should be."""
    return write_bundle(tmp_path_factory.mktemp("sound"), english, russian)


@pytest.fixture
def theirs(sound: Path, tmp_path: Path) -> Path:
    """The same, to be tampered with; it is alone in its directory."""
    shutil.copytree(sound, tmp_path / "download" / "theirs")
    return tmp_path / "download" / "theirs"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CADEC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ctranslate2"


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
        lambda value: value.update(target_language="r\nu"),
        lambda value: value.update(source_language=["en"]),
        lambda value: value["versions"].update({"cadec": ESCAPE}),
        lambda value: value["versions"].update({ESCAPE: "1"}),
    ],
)
def test_a_manifest_that_says_what_none_of_ours_does(change: Tampering, theirs: Path) -> None:
    tamper(theirs, change)
    refused(theirs)


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
    assert "a key is there twice" in refused(theirs)


def test_a_manifest_has_a_size(theirs: Path) -> None:
    with (theirs / "bundle.json").open("a") as stream:
        stream.write(" " * (1 << 21))
    assert "larger than any manifest" in refused(theirs)


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


def drop_conversions(value: dict[str, Any]) -> None:
    value["conversions"].clear()
    for names in (value["parts"], value["files"]):
        for name in [name for name in names if name.startswith("ct2/")]:
            del names[name]


# Files


def secret(theirs: Path) -> Path:
    path = theirs.parent.parent / "id_rsa"
    path.write_text("PRIVATE")
    return path


@pytest.mark.parametrize("name", ["ct2/int8/model.bin", "lm/model.safetensors", "source/subwords.model"])
def test_a_file_is_no_link(name: str, theirs: Path) -> None:
    """Not even where what it leads to is what was listed."""
    original = theirs.parent / "original"
    (theirs / name).rename(original)
    (theirs / name).symlink_to(original)
    assert f"{name} is a symbolic link" in refused(theirs)
    tamper(theirs, lambda value: value.update(links={name: str(original)}))  # nor where it is said to be one
    refused(theirs)


def test_nothing_that_links_lead_to_is_copied(theirs: Path) -> None:
    (theirs / "ct2" / "int8" / "stolen.json").symlink_to(secret(theirs))
    assert "is a symbolic link" in refused(theirs)


def test_a_directory_is_no_link(theirs: Path) -> None:
    (theirs / "ct2").rename(theirs.parent / "elsewhere")
    (theirs / "ct2").symlink_to(theirs.parent / "elsewhere")
    assert "'ct2' is a symbolic link" in refused(theirs)


def test_a_manifest_is_no_link(theirs: Path) -> None:
    (theirs / "bundle.json").rename(theirs.parent / "elsewhere.json")
    (theirs / "bundle.json").symlink_to(theirs.parent / "elsewhere.json")
    assert "is a symbolic link" in refused(theirs)


@pytest.mark.parametrize("name", ["nmt/model.safetensors", "MODEL_CARD.md", "pipe", "lm/pipe"])
def test_a_pipe_is_no_file_and_nothing_waits_for_it(name: str, theirs: Path) -> None:
    (theirs / name).unlink(missing_ok=True)
    os.mkfifo(theirs / name)
    assert name in refused(theirs)


@pytest.mark.parametrize(
    "name",
    [
        *("lm/generation_config.json", "lm/modeling_lm.py", "nmt/model-2.safetensors", "nmt/tokenizer.json"),
        *("ct2/int8/shared_vocabulary.json", "ct2/float32/model.bin", "source/extra", "more/file", "lm/lm/a"),
    ],
)
def test_a_part_holds_what_is_listed_and_what_such_a_part_has(name: str, theirs: Path) -> None:
    (theirs / name).parent.mkdir(exist_ok=True)
    (theirs / name).write_text("{}")
    assert "is not listed in bundle.json" in refused(theirs)
    if name != "ct2/int8/shared_vocabulary.json":
        list_file(theirs, name)
        assert "no bundle has a file" in refused(theirs)


def test_what_lies_beside_the_parts_is_left_alone(theirs: Path, tmp_path: Path) -> None:
    """Neither read nor copied: a README, what a version control system or a file browser leaves."""
    (theirs / ".git").mkdir()
    for name in ("README.md", "LICENSE", ".DS_Store", "lm/.DS_Store", ".git/config"):
        (theirs / name).write_text("…")
    (theirs / ".link").symlink_to(secret(theirs))
    Bundle.open(theirs)
    listed = {*read_manifest(theirs).files, "bundle.json"}
    assert cadec("convert", theirs, "-o", tmp_path / "mine").returncode == 0
    added = cadec("models", "add", theirs, CADEC_DATA=str(tmp_path / "data"))
    assert added.returncode == 0, added.stderr
    for copied in (tmp_path / "mine", tmp_path / "data" / "bundles" / "theirs"):
        there = {path.relative_to(copied).as_posix() for path in copied.rglob("*") if not path.is_dir()}
        assert there == listed
        Bundle.open(copied)


def test_sentences_that_are_not_listed_are_not_read(theirs: Path, tmp_path: Path) -> None:
    from cadec_cli.bundle.loading import load_models

    own = {"ru": {"formal": ["Здравствуйте."], "informal": ["Привет."]}}
    (theirs / "formality.json").write_text(json.dumps(own))
    with pytest.raises(CadecError, match="is not listed in the bundle") as caught:
        load_models(Bundle.open(theirs)).seed("formal")
    assert "cadec convert" in caught.value.hint
    before = read_manifest(theirs).identity
    assert exit_code(["convert", str(theirs), "--quiet"]) == 0
    assert list(load_models(Bundle.open(theirs)).seed("formal")) == ["Здравствуйте."]
    assert read_manifest(theirs).identity != before


# Checksums


def line_by_line(files: dict[str, FileRecord]) -> str:
    """What earlier versions hashed."""
    return "".join(f"{name} {entry.sha256}\n" for name, entry in sorted(files.items()))


def test_no_other_files_have_the_digest_of_the_embedded_bundle() -> None:
    """Names with ends of lines did: one entry that reads like several."""
    manifest = read_manifest(EMBEDDED)
    files = {name: entry for name, entry in manifest.files.items() if "/" in name}
    lines = line_by_line(files)
    crafted = {lines[:-66].rstrip(" "): FileRecord(lines[-65:-1], 1)}
    assert line_by_line(crafted) == lines
    forged = replace(manifest, files=crafted, parts={"lm": "lm"})
    assert forged.digest("lm") != manifest.digest(*manifest.parts)
    assert name_misfit(next(iter(crafted))) is not None


names = st.lists(st.text(max_size=4), min_size=1, max_size=2).map(lambda ends: "nmt/" + "/".join(ends))
records = st.builds(FileRecord, st.sampled_from(["a" * 64, "b" * 64]), st.integers(0, 2))
listings = st.dictionaries(names, records, max_size=3)


@given(listings, listings)
def test_a_digest_tells_all_listings_apart(one: dict[str, FileRecord], other: dict[str, FileRecord]) -> None:
    manifest = read_manifest(EMBEDDED)
    digests = [replace(manifest, files=files).digest("nmt") for files in (one, other)]
    assert (digests[0] == digests[1]) == (one == other)


def test_the_cache_gets_nothing_under_others_checksums(
    theirs: Path, sound: Path, cache: Path, english: TextPipeline, russian: TextPipeline
) -> None:
    """A bundle within a bundle may lie about its files, which the outer one lists as they are."""
    tamper(theirs, drop_conversions)
    shutil.rmtree(theirs / "ct2")
    innocent = Bundle.open(theirs)
    other = tiny_nmt(len(english), len(russian), seed=7)
    save_model(theirs.parent / "nmt", other, checksums(english, russian))
    shutil.copyfile(theirs.parent / "nmt" / "model.safetensors", theirs / "nmt" / "model.safetensors")
    lying = Bundle(theirs, innocent.manifest)  # as one that was opened without its checksums being computed
    with pytest.raises(CadecError, match="checksum mismatch"):
        lying.ctranslate2_model("float32")
    assert not cache.exists() or not [path for path in cache.iterdir() if path.is_dir()]
    # The honest one is converted; and what an earlier version was made to put there is under other names.
    kept = Bundle.open(sound).ctranslate2_model("float32")
    assert kept.parent == cache
    assert innocent.manifest.listing_digest("nmt", "source", "target")[:40] not in kept.name


def test_a_bundle_within_a_bundle_is_the_one_that_was_listed(
    theirs: Path, english: TextPipeline, russian: TextPipeline, tmp_path: Path
) -> None:
    model = tiny_nmt(len(russian), len(english))
    save_model(tmp_path / "nmt", model, checksums(english, russian))
    english.save(tmp_path / "en")
    russian.save(tmp_path / "ru")
    parts: dict[str, Path] = {"source": tmp_path / "ru", "target": tmp_path / "en", "nmt": tmp_path / "nmt"}
    build_bundle(tmp_path / "ru-en", **parts)  # type: ignore[arg-type]
    build_bundle(theirs, base=theirs, back=tmp_path / "ru-en")
    assert Bundle.open(theirs).has_backward
    good = json.loads((theirs / "back" / "bundle.json").read_text())
    stranger = copy.deepcopy(good)
    stranger["files"]["nmt/model.safetensors"]["sha256"] = "0" * 64  # or that of somebody's model
    fewer = copy.deepcopy(good)
    del fewer["files"]["nmt/model.safetensors"]
    for value in (stranger, fewer):
        write_manifest(theirs / "back", value)
        sign_again(theirs)
        refused(theirs)
    write_manifest(theirs / "back", good)
    sign_again(theirs)
    Bundle.open(theirs)
