"""The files of a stranger's bundle: no links, nothing that is not listed, checksums that no others have."""

import copy
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.bundle import find
from cadec_cli.bundle.build import BundleRequest, build_bundle
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.find import EMBEDDED
from cadec_cli.bundle.manifest import FileRecord, name_misfit, read_manifest
from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code
from cadec_cli.models.storage import save_model
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.bundle_parts import checksums, sign_again, tiny_nmt, write_manifest
from tests.helpers.run_in_process import cadec
from tests.helpers.tampering import drop_conversions, list_file, refused, tamper


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CADEC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ctranslate2"


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
        *("ct2/int8/shared_vocabulary.json", "ct2/float32/model.bin", "source/extra", "lm/lm/a", "back/a"),
        *("doc-nmt/a", "ct2-lm/a", "NMT/config.json", "lm/._hidden/a"),
    ],
)
def test_a_part_holds_what_is_listed_and_what_such_a_part_has(name: str, theirs: Path) -> None:
    (theirs / name).parent.mkdir(exist_ok=True)
    (theirs / name).write_text("{}")
    assert "is not listed in bundle.json" in refused(theirs)
    if name != "ct2/int8/shared_vocabulary.json":
        list_file(theirs, name)
        assert "no bundle has a file" in refused(theirs)


def test_what_is_not_listed_is_to_be_deleted(theirs: Path) -> None:
    (theirs / "lm" / "notes.txt").write_text("…")
    with pytest.raises(CadecError, match="is not listed") as caught:
        Bundle.open(theirs)
    assert "delete" in caught.value.hint and "download" not in caught.value.hint
    (theirs / "lm" / "model.safetensors").unlink()
    with pytest.raises(CadecError, match="is missing") as caught:
        Bundle.open(theirs)
    assert "download" in caught.value.hint


def test_a_directory_that_no_part_has_holds_nothing_that_is_listed(theirs: Path) -> None:
    (theirs / "more").mkdir()
    (theirs / "more" / "file").write_text("{}")
    Bundle.open(theirs)
    list_file(theirs, "more/file")
    assert "no bundle has a file" in refused(theirs)


def test_what_lies_beside_the_parts_is_left_alone(theirs: Path, tmp_path: Path) -> None:
    """Neither read nor copied: a README, what a version control system or a file browser leaves."""
    for name in (".git", "docs", "lost+found"):
        (theirs / name).mkdir()
    left = ("nmt/._config.json", "lm/._model.safetensors", "ct2/int8/.nfs0001", "ct2/._int8", "._nmt")
    for name in ("README.md", "LICENSE", ".DS_Store", "lm/.DS_Store", ".git/config", "docs/a.md", *left):
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
    from cadec_cli.bundle.load import load_models

    own = {"ru": {"formal": ["Здравствуйте."], "informal": ["Привет."]}}
    (theirs / "formality.json").write_text(json.dumps(own))
    with pytest.raises(CadecError, match="is not listed in the bundle") as caught:
        load_models(Bundle.open(theirs)).seed("formal")
    assert "cadec convert" in caught.value.hint
    before = read_manifest(theirs).identity
    assert exit_code(["convert", str(theirs), "--quiet"]) == 0
    assert list(load_models(Bundle.open(theirs)).seed("formal")) == ["Здравствуйте."]
    assert read_manifest(theirs).identity != before


# The bundle that came with cadec


def linked_tree(original: Path, place: Path) -> Path:
    """As installers make it that link instead of copying: directories, and in them links to files."""
    shutil.copytree(original, place, copy_function=lambda file, link: Path(link).symlink_to(file))
    return place


def test_the_embedded_bundle_may_be_links(
    sound: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = linked_tree(sound, tmp_path / "installed")
    with pytest.raises(CadecError, match="is a symbolic link"):
        Bundle.open(installed)
    monkeypatch.setattr(find, "EMBEDDED", installed)
    bundle = Bundle.open(installed)
    assert bundle.conversion("float32").parent == cache
    assert cadec("translate", "-", stdin="The captain sees it.\n").returncode == 0
    assert cadec("convert", installed, "-o", tmp_path / "mine").returncode == 0
    added = cadec("models", "add", installed, CADEC_DATA=str(tmp_path / "data"))
    assert added.returncode == 0, added.stderr
    for copied in (tmp_path / "mine", tmp_path / "data" / "bundles" / "installed"):
        assert not any(path.is_symlink() for path in copied.rglob("*"))
        assert Bundle.open(copied).manifest.files == bundle.manifest.files


def test_links_of_the_embedded_bundle_lead_to_what_was_listed(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = linked_tree(sound, tmp_path / "installed")
    monkeypatch.setattr(find, "EMBEDDED", installed)
    weights = installed / "lm" / "model.safetensors"
    other = tmp_path / "other"
    other.write_bytes(b"?" * weights.stat().st_size)
    weights.unlink()
    weights.symlink_to(other)
    with pytest.raises(CadecError, match="checksum mismatch"):
        Bundle.open(installed)
    other.unlink()
    with pytest.raises(CadecError, match=r"lm/model\.safetensors is missing"):
        Bundle.open(installed)


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
        lying.conversion("float32")
    assert not cache.exists() or not [path for path in cache.iterdir() if path.is_dir()]
    # The honest one is converted; and what an earlier version was made to put there is under other names.
    kept = Bundle.open(sound).conversion("float32")
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
    build_bundle(tmp_path / "ru-en", BundleRequest(**parts))  # type: ignore[arg-type]
    build_bundle(theirs, BundleRequest(base=theirs, back=tmp_path / "ru-en"))
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
    # Listed as it is, but of parts that are not made for one another.
    config = theirs / "back" / "nmt" / "config.json"
    stored = json.loads(config.read_text())
    stored["pipelines"] = dict.fromkeys(stored["pipelines"], "0" * 64)
    config.write_text(json.dumps(stored))
    sign_again(theirs / "back")
    sign_again(theirs)
    assert "back do not fit each other" in refused(theirs)
