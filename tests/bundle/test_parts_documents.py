"""Models that read several sentences as parts of a bundle: checked, kept, described; misfits are named."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from cadec_cli.bundle.build import BundleRequest, build_bundle
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code
from cadec_cli.models.doctransformer import DocTransformer, is_new
from cadec_cli.models.storage import model_state, save_model
from cadec_cli.models.transformer import DocRepair, TwoToTwo
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.bundle_parts import checksums, tiny_nmt

KINDS = ("doc-nmt", "2-to-2", "repair")


def test_parts_are_kept_when_a_bundle_is_changed_and_shown(
    document_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        exit_code(["convert", str(document_bundle), "--context", "2", "-o", str(tmp_path / "b"), "-q"]) == 0
    )
    changed, before = Bundle.open(tmp_path / "b"), Bundle.open(document_bundle)
    assert changed.document_kinds == before.document_kinds == KINDS
    assert changed.manifest.identity == before.manifest.identity
    capsys.readouterr()
    assert exit_code(["info", str(tmp_path / "b"), "--json"]) == 0
    parts = {part["part"]: part for part in json.loads(capsys.readouterr().out)["parts"]}
    assert [parts[kind]["what"] for kind in KINDS] == ["DocTransformer", "2-to-2", "DocRepair"]
    assert parts["repair"]["details"]["width"] == "64"


def test_only_what_is_new_in_a_doctransformer_has_learnt(document_bundle: Path) -> None:
    bundle = Bundle.open(document_bundle)
    sentence = model_state(bundle.translation_network())
    document = model_state(bundle.document_network())
    assert set(sentence) == {name for name in document if not is_new(name)}
    for name, weights in sentence.items():
        assert torch.equal(document[name], weights), name
    torch.manual_seed(1)  # a run's default
    fresh = model_state(DocTransformer(bundle.document_network().config))
    assert all(
        not torch.equal(document[name], fresh[name]) for name in document if name.endswith("gate.bias")
    )


def test_half_precision_is_for_them_too(document_bundle: Path, tmp_path: Path) -> None:
    build_bundle(tmp_path / "half", BundleRequest(base=document_bundle, half=True))
    half, whole = tmp_path / "half" / "doc-nmt", document_bundle / "doc-nmt"
    sizes = [(path / "model.safetensors").stat().st_size for path in (half, whole)]
    assert sizes[0] < 0.6 * sizes[1]
    Bundle.open(tmp_path / "half").document_network()


def test_a_damaged_part_is_refused(document_bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(document_bundle, tmp_path / "b")
    weights = tmp_path / "b" / "repair" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(CadecError, match=r"repair/model.safetensors is truncated"):
        Bundle.open(tmp_path / "b")


def test_models_of_other_kinds_languages_and_pipelines_are_named(
    made_up_bundle: Path, corpora: Path, english: TextPipeline, russian: TextPipeline, tmp_path: Path
) -> None:
    source, target = (TextPipeline.load(corpora / name) for name in ("src", "tgt"))
    plain = tiny_nmt(len(source), len(target))
    save_model(tmp_path / "nmt", plain, checksums(source, target))
    save_model(tmp_path / "foreign", TwoToTwo(plain.config), checksums(english, russian))
    save_model(tmp_path / "two-sided", DocRepair(plain.config), checksums(source, target))

    def refused(kind: str, name: str) -> str:
        with pytest.raises(CadecError) as error:
            build_bundle(
                tmp_path / "out", BundleRequest(base=made_up_bundle, documents={kind: tmp_path / name})
            )
        assert not (tmp_path / "out").exists()
        return error.value.message

    assert "kind 'nmt', not 'repair'" in refused("repair", "nmt")
    assert "kind 'nmt', not 'doc-nmt'" in refused("doc-nmt", "nmt")
    assert "trained for 'en', 'ru'" in refused("2-to-2", "foreign")
    # From one language to another is no repair: what it reads is not the target language's.
    assert "source vocabulary" in refused("repair", "two-sided") or len(source) == len(target)


def test_a_run_needs_the_model_that_it_starts_from(
    corpora: Path, made_up_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data", str(corpora / "pairs"), "--dev", str(corpora / "pairs-dev"), "--preset", "tiny"]
    assert exit_code(["train", "doc-nmt", *data, "-o", str(tmp_path / "run")]) == 2
    assert "starts from an S-NMT" in capsys.readouterr().err
    lm = made_up_bundle.parent / "lm"
    assert exit_code(["train", "2-to-2", *data, "--start-from", str(lm), "-o", str(tmp_path / "run")]) == 1
    assert "kind 'lm', not 'nmt' or '2-to-2'" in capsys.readouterr().err
    start = ["--start-from", str(made_up_bundle.parent / "nmt"), "--width", "32", "-o", str(tmp_path / "run")]
    assert exit_code(["train", "doc-nmt", *data, *start]) == 1
    assert "a network of other sizes: width 64" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
