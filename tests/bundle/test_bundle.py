"""A bundle opens as it was made, or not at all: whatever happened to it is one clear error."""

import dataclasses
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from cadec_cli.bundle.build import BundleRequest, build_bundle
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.integrity import check_files
from cadec_cli.bundle.manifest import FileRecord, read_manifest, record
from cadec_cli.errors import CadecError
from cadec_cli.method.options import DecodingDefaults
from cadec_cli.models.storage import load_model, save_model
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.subwords import train_subwords
from tests.helpers.bundle_parts import checksums, sign_again, tiny_lm, tiny_nmt, write_bundle

PARTS = ("source", "target", "nmt", "lm", "ct2/int8")


@pytest.fixture(scope="module")
def complete(english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with everything."""
    return write_bundle(tmp_path_factory.mktemp("bundle"), english, russian)


@pytest.fixture(scope="module")
def parts(complete: Path) -> Path:
    """What it was made of: pipelines en/ and ru/, models nmt/ and lm/."""
    return complete.parent


@pytest.fixture
def copied(complete: Path, tmp_path: Path) -> Path:
    """The same, to be broken."""
    shutil.copytree(complete, tmp_path / "bundle")
    return tmp_path / "bundle"


@pytest.fixture(scope="session")
def other_russian(russian: TextPipeline) -> TextPipeline:
    subwords = train_subwords(["это другой словарь .", "он совсем маленький ."] * 20, vocabulary_size=290)
    return TextPipeline("ru", russian.truecaser, subwords)


def test_all_that_went_in_comes_out(
    complete: Path, parts: Path, english: TextPipeline, russian: TextPipeline
) -> None:
    bundle = Bundle.open(complete)
    assert (bundle.name, bundle.source_language, bundle.target_language) == ("en-ru", "en", "ru")
    assert (bundle.source.checksum, bundle.target.checksum) == (english.checksum, russian.checksum)
    assert bundle.lm_text is bundle.target
    assert bundle.defaults == DecodingDefaults()
    assert bundle.has_lm and bundle.has_translation
    for kind, model in (("nmt", bundle.translation_network()), ("lm", bundle.lm_network())):
        assert not model.training
        for name, tensor in load_model(parts / kind).model.state_dict().items():
            assert torch.equal(tensor, model.state_dict()[name])
    assert (bundle.engine("nmt"), bundle.engine("lm")) == ("ctranslate2", "torch")
    assert (bundle.translation_positions, bundle.lm_positions) == (40, 48)
    assert bundle.conversion("int8") == complete / "ct2" / "int8"
    assert (complete / "MODEL_CARD.md").read_text() == "# en-ru\n"
    assert set(bundle.manifest.parts) == set(PARTS)


FILES = [
    "bundle.json",
    "MODEL_CARD.md",
    *(f"{side}/{name}" for side in ("source", "target") for name in ("pipeline.json", "truecaser.json")),
    "source/subwords.model",
    "target/subwords.model",
    *(f"{kind}/{name}" for kind in ("nmt", "lm") for name in ("config.json", "model.safetensors")),
    "ct2/int8/model.bin",
    "ct2/int8/config.json",
    "ct2/int8/source_vocabulary.json",
    "ct2/int8/target_vocabulary.json",
]


def test_the_list_of_files_is_all_there_is(complete: Path) -> None:
    there = {path.relative_to(complete).as_posix() for path in complete.rglob("*") if path.is_file()}
    assert there == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_damage_to_any_file_is_one_error_that_names_it(name: str, copied: Path) -> None:
    path = copied / name
    content = path.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    for damaged in (flipped, content[:-7], content[:middle], b"", content + b"\n{}"):
        path.write_bytes(damaged)
        with pytest.raises(CadecError) as caught:
            Bundle.open(copied)
        assert name in caught.value.message
    path.unlink()
    with pytest.raises(CadecError) as caught:
        Bundle.open(copied)
    assert name in caught.value.message
    path.write_bytes(content)
    Bundle.open(copied)


def test_a_quick_look_still_sees_truncation(copied: Path) -> None:
    weights = copied / "nmt" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(CadecError, match=r"nmt/model\.safetensors is truncated"):
        Bundle.open(copied, verify=False)


def test_a_modified_file_of_the_same_size_is_called_that(copied: Path) -> None:
    weights = copied / "nmt" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    with pytest.raises(CadecError) as caught:
        Bundle.open(copied)
    assert caught.value.message == (
        f"the bundle {copied} is damaged: nmt/model.safetensors (checksum mismatch: modified or damaged)"
    )


def test_several_damages_are_reported_at_once(copied: Path) -> None:
    (copied / "lm" / "config.json").unlink()
    (copied / "source" / "pipeline.json").write_text("{}")
    with pytest.raises(CadecError) as caught:
        Bundle.open(copied)
    assert "lm/config.json is missing" in caught.value.message
    assert "source/pipeline.json is truncated" in caught.value.message


@pytest.mark.parametrize(
    ("version", "hint"), [(0, "build it again"), (2, "upgrade cadec"), ("1", ""), (None, "")]
)
def test_another_format_version_is_refused(version: object, hint: str, copied: Path) -> None:
    path = copied / "bundle.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": version}))
    with pytest.raises(CadecError, match=r"bundle\.json") as caught:
        Bundle.open(copied)
    assert hint in caught.value.hint


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", "{", "\x00", '{"format": 1}'])
def test_a_manifest_that_is_none_is_refused(text: str, copied: Path) -> None:
    (copied / "bundle.json").write_text(text)
    with pytest.raises(CadecError, match=r"bundle\.json"):
        Bundle.open(copied)


def test_a_swapped_lm_of_another_vocabulary_is_refused(copied: Path, other_russian: TextPipeline) -> None:
    save_model(copied / "lm", tiny_lm(len(other_russian)), checksums(other_russian))
    (copied / "lm" / "checksums.json").unlink()  # a bundle has its manifest
    with pytest.raises(CadecError, match="lm/"):
        Bundle.open(copied)
    sign_again(copied)
    with pytest.raises(CadecError, match="lm/: the model was trained with another text pipeline for 'ru'"):
        Bundle.open(copied)


def test_a_swapped_nmt_does_not_go_with_its_conversion(
    copied: Path, english: TextPipeline, russian: TextPipeline
) -> None:
    other = tiny_nmt(len(english), len(russian), activation="gelu")
    save_model(copied / "nmt", other, checksums(english, russian))
    (copied / "nmt" / "checksums.json").unlink()
    sign_again(copied)
    with pytest.raises(CadecError, match="ct2/int8/ was converted from another model than nmt/"):
        Bundle.open(copied)


def test_a_swapped_pipeline_is_refused(copied: Path, other_russian: TextPipeline) -> None:
    other_russian.save(copied / "target")
    sign_again(copied)
    with pytest.raises(CadecError, match="trained with another text pipeline for 'ru'"):
        Bundle.open(copied)


def test_a_pipeline_of_another_language_is_refused(copied: Path) -> None:
    sign_again(copied, replace(read_manifest(copied), source_language="de"))
    with pytest.raises(CadecError, match="pipeline for 'en', not for 'de'"):
        Bundle.open(copied)


# Building


def test_half_is_half_the_size_and_float32_when_loaded(parts: Path, complete: Path, tmp_path: Path) -> None:
    build_bundle(
        tmp_path / "half",
        BundleRequest(
            source=parts / "en",
            target=parts / "ru",
            nmt=parts / "nmt",
            lm=parts / "lm",
            half=True,
            compute_types=["float32"],
        ),
    )
    for kind in ("nmt", "lm"):
        weights = [directory / kind / "model.safetensors" for directory in (tmp_path / "half", complete)]
        half, full = (sum(t.nbytes for t in safetensors.torch.load_file(path).values()) for path in weights)
        assert half * 2 == full
    bundle = Bundle.open(tmp_path / "half")
    whole = Bundle.open(complete)
    for model, other in (
        (bundle.translation_network(), whole.translation_network()),
        (bundle.lm_network(), whole.lm_network()),
    ):
        for name, tensor in model.state_dict().items():
            assert tensor.dtype == torch.float32
            torch.testing.assert_close(tensor, other.state_dict()[name], rtol=1e-3, atol=1e-4)


def test_a_bundle_without_lm(parts: Path, tmp_path: Path) -> None:
    build_bundle(tmp_path / "b", BundleRequest(source=parts / "en", target=parts / "ru", nmt=parts / "nmt"))
    bundle = Bundle.open(tmp_path / "b")
    assert not bundle.has_lm
    for use in (bundle.lm_network, lambda: bundle.engine("lm")):
        with pytest.raises(CadecError, match="has no D-LM") as caught:
            use()
        assert "lm" in caught.value.hint


def test_a_bundle_without_nmt(parts: Path, tmp_path: Path) -> None:
    build_bundle(tmp_path / "b", BundleRequest(target=parts / "ru", lm=parts / "lm"))
    bundle = Bundle.open(tmp_path / "b")
    assert (bundle.source_language, bundle.has_translation) == (None, False)
    assert bundle.lm_network().config.vocabulary == len(bundle.lm_text)
    with pytest.raises(CadecError, match="has no S-NMT"):
        bundle.conversion("int8")
    with pytest.raises(CadecError, match="has no source/"):
        _ = bundle.source
    with pytest.raises(CadecError, match="there is no S-NMT to convert"):
        build_bundle(tmp_path / "b", BundleRequest(base=tmp_path / "b", compute_types=["int8"]))


def test_an_lm_with_a_pipeline_of_its_own(parts: Path, tmp_path: Path, other_russian: TextPipeline) -> None:
    other_russian.save(tmp_path / "other")
    save_model(tmp_path / "lm", tiny_lm(len(other_russian)), checksums(other_russian))
    request = BundleRequest(source=parts / "en", target=parts / "ru", nmt=parts / "nmt", lm=tmp_path / "lm")
    with pytest.raises(CadecError, match="another text pipeline for 'ru'"):
        build_bundle(tmp_path / "b", request)
    assert not (tmp_path / "b").exists()
    build_bundle(tmp_path / "b", dataclasses.replace(request, lm_pipeline=tmp_path / "other"))
    bundle = Bundle.open(tmp_path / "b")
    assert bundle.lm_text.checksum == other_russian.checksum != bundle.target.checksum
    # The D-LM that does go with the target pipeline needs none of its own.
    build_bundle(tmp_path / "b", BundleRequest(base=tmp_path / "b", lm=parts / "lm"))
    assert not (tmp_path / "b" / "lm-pipeline").exists()
    assert Bundle.open(tmp_path / "b").lm_text.checksum == bundle.target.checksum


def test_all_misfits_are_reported_at_once_and_nothing_is_written(
    parts: Path, tmp_path: Path, english: TextPipeline
) -> None:
    save_model(tmp_path / "lm", tiny_lm(33), checksums(english))
    with pytest.raises(CadecError) as caught:
        build_bundle(
            tmp_path / "b",
            BundleRequest(
                source=parts / "ru",
                target=parts / "en",
                nmt=parts / "nmt",
                lm=tmp_path / "lm",
                compute_types=["int4"],
                card=tmp_path / "none.md",
            ),
        )
    for problem in ("vocabulary of 33 in the model", "no compute type 'int4'", "no such file"):
        assert problem in caught.value.message
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("what", ["truncated", "nan", "huge", "kind", "nothing", "no source"])
def test_a_model_that_can_not_be_used_is_refused(
    what: str, parts: Path, tmp_path: Path, russian: TextPipeline
) -> None:
    shutil.copytree(parts / "lm", tmp_path / "lm")
    weights = tmp_path / "lm" / "model.safetensors"
    tensors = safetensors.torch.load_file(weights)
    nmt: Path | None = None
    lm: Path | None = tmp_path / "lm"
    if what == "truncated":
        weights.write_bytes(weights.read_bytes()[:-9])
    elif what in ("nan", "huge"):
        tensors["norm.bias"][0] = float("nan") if what == "nan" else 1e9
        weights.write_bytes(safetensors.torch.save(tensors))
    elif what == "kind":
        lm = parts / "nmt"
    elif what == "nothing":
        lm = None
    else:
        nmt, lm = parts / "nmt", None
    with pytest.raises(CadecError, match="this bundle can't be built"):
        build_bundle(tmp_path / "b", BundleRequest(target=parts / "ru", nmt=nmt, lm=lm, half=True))
    assert not (tmp_path / "b").exists()


def test_what_is_no_bundle_is_not_replaced(parts: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(CadecError, match="holds something else"):
        build_bundle(tmp_path / "mine", BundleRequest(target=parts / "ru", lm=parts / "lm"))
    assert (tmp_path / "mine" / "thesis.txt").is_file()


def test_completing_keeps_what_is_there(complete: Path, copied: Path) -> None:
    drifts = build_bundle(copied, BundleRequest(base=copied, compute_types=["float32", "int8"], name="other"))
    assert [drift.compute_type for drift in drifts] == ["float32"]  # int8 was there
    bundle = Bundle.open(copied)
    assert set(bundle.manifest.parts) == {*PARTS, "ct2/float32"}
    assert bundle.name == "other"
    assert bundle.manifest.files.items() > Bundle.open(complete).manifest.files.items()


def test_a_bundle_that_is_replaced_while_it_is_opened_is_the_new_one(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = tmp_path / "newer"
    shutil.copytree(copied, newer)
    build_bundle(newer, BundleRequest(base=newer, compute_types=["float32"]))
    looks: list[Path] = []

    def replaced_at_the_first_look(directory: Path, *args: Any, **kwargs: Any) -> None:
        if not looks:
            copied.rename(tmp_path / "older")
            newer.rename(copied)
        looks.append(directory)
        check_files(directory, *args, **kwargs)

    monkeypatch.setattr("cadec_cli.bundle.bundle.check_files", replaced_at_the_first_look)
    opened = Bundle.open(copied)
    assert len(looks) == 2
    assert set(opened.manifest.translation_conversions) == {"int8", "float32"}


def test_replacing_the_nmt_converts_again(copied: Path, english: TextPipeline, russian: TextPipeline) -> None:
    other = tiny_nmt(len(english), len(russian), activation="gelu")
    save_model(copied.parent / "nmt", other, checksums(english, russian))
    drifts = build_bundle(copied, BundleRequest(base=copied, nmt=copied.parent / "nmt"))
    assert [drift.compute_type for drift in drifts] == ["int8"]
    Bundle.open(copied)


def test_defaults_are_kept(parts: Path, tmp_path: Path) -> None:
    defaults = DecodingDefaults("lattice", "c-score", {"lm": 0.5}, 2, 8.0, 10, 5)
    build_bundle(tmp_path / "b", BundleRequest(target=parts / "ru", lm=parts / "lm", defaults=defaults))
    assert Bundle.open(tmp_path / "b").defaults == defaults
    build_bundle(tmp_path / "b", BundleRequest(base=tmp_path / "b"))
    assert Bundle.open(tmp_path / "b").defaults == defaults


def test_every_file_is_hashed_once(parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def count(path: Path) -> FileRecord:
        read.append(path)
        return record(path)

    monkeypatch.setattr("cadec_cli.bundle.build.record", count)
    monkeypatch.setattr("cadec_cli.bundle.integrity.sha256", lambda path: pytest.fail(f"{path} again"))
    request = BundleRequest(source=parts / "en", target=parts / "ru", nmt=parts / "nmt", lm=parts / "lm")
    build_bundle(tmp_path / "b", dataclasses.replace(request, compute_types=["int8", "float32"]))
    manifest = read_manifest(tmp_path / "b")
    assert len(read) == len(set(read)) == len(manifest.files)
    monkeypatch.undo()
    assert Bundle.open(tmp_path / "b").manifest == manifest
    # What is copied from a base is hashed while it is copied, and no second time.
    read.clear()
    monkeypatch.setattr("cadec_cli.bundle.build.record", count)
    build_bundle(tmp_path / "c", BundleRequest(base=tmp_path / "b", name=manifest.name))
    assert not any("ct2" in path.parts for path in read) and len(read) == len(set(read))
    assert read_manifest(tmp_path / "c") == manifest
