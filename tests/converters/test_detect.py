"""What a path is is found by looking; what can't be told is one error that says what was looked for."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from cadec_cli.errors import CadecError
from converters import PretrainedRequest
from converters.detect import KINDS, kind_of, open_translation


def huggingface(directory: Path) -> None:
    (directory / "config.json").write_text(json.dumps({"model_type": "marian"}))
    (directory / "pytorch_model.bin").write_bytes(b"")


def ctranslate2(directory: Path) -> None:
    (directory / "config.json").write_text(json.dumps({"add_source_eos": True}))
    (directory / "model.bin").write_bytes(b"")
    (directory / "shared_vocabulary.json").write_text("[]")


def marian(directory: Path) -> None:
    (directory / "opus.npz").write_bytes(b"")
    (directory / "decoder.yml").write_text("vocabs: [vocab.yml]\n")


def fairseq(directory: Path) -> None:
    (directory / "model.pt").write_bytes(b"")
    (directory / "dict.en.txt").write_text("")


def fairseq_by_keys(directory: Path) -> None:
    torch.save({"args": argparse.Namespace(arch="transformer"), "model": {}}, directory / "model.pt")


def opennmt(directory: Path) -> None:
    torch.save(
        {"model": {}, "generator": {}, "vocab": {}, "opt": argparse.Namespace()}, directory / "model.pt"
    )


def our_own(directory: Path) -> None:
    (directory / "config.json").write_text(json.dumps({"format": 1, "kind": "nmt", "config": {}}))
    (directory / "model.safetensors").write_bytes(b"")


def our_run(directory: Path) -> None:
    for part in ("best", "last"):
        (directory / part).mkdir()
        our_own(directory / part)


def nothing(directory: Path) -> None:
    (directory / "README.md").write_text("")


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (huggingface, "huggingface"),
        (ctranslate2, "ctranslate2"),
        (marian, "marian"),
        (fairseq, "fairseq"),
        (fairseq_by_keys, "fairseq"),
        (opennmt, "opennmt"),
        (our_own, None),
        (our_run, None),
        (nothing, None),
    ],
)
def test_a_directory_is_known_by_its_files(make: object, kind: str | None, tmp_path: Path) -> None:
    assert callable(make)
    make(tmp_path)
    assert kind_of(tmp_path) == kind
    for suffix in ("npz", "pt"):
        for path in tmp_path.glob(f"*.{suffix}"):
            assert kind_of(path) == kind


def test_every_kind_has_a_look_and_an_opener() -> None:
    assert list(KINDS) == ["huggingface", "ctranslate2", "marian", "fairseq", "opennmt"]


def test_a_checkpoint_of_nobody_is_of_no_kind(tmp_path: Path) -> None:
    torch.save({"weights": torch.zeros(1)}, tmp_path / "model.pt")
    assert kind_of(tmp_path) is None
    (tmp_path / "model.pt").write_bytes(b"no checkpoint at all")
    assert kind_of(tmp_path / "model.pt") is None


def test_two_kinds_in_one_place_have_to_be_said(tmp_path: Path) -> None:
    huggingface(tmp_path)
    marian(tmp_path)
    with pytest.raises(CadecError, match="huggingface, marian") as caught:
        open_translation(str(tmp_path), PretrainedRequest())
    assert "nmt_kind" in caught.value.hint
    with pytest.raises(CadecError, match=r"vocab\.yml"):
        open_translation(str(tmp_path), PretrainedRequest(kind="marian"))


def test_what_can_not_be_told_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(CadecError) as caught:
        open_translation(str(tmp_path), PretrainedRequest())
    for sign in ("config.json", "model.bin", ".npz", "dict.*.txt", "vocab and opt"):
        assert sign in caught.value.message
    assert "nmt_kind huggingface|ctranslate2|marian|fairseq|opennmt" in caught.value.hint


def test_wrong_words_are_errors(tmp_path: Path) -> None:
    with pytest.raises(CadecError, match="unknown kind of translation model: 'sockeye'"):
        open_translation(str(tmp_path), PretrainedRequest(kind="sockeye"))
    with pytest.raises(CadecError, match="no such file"):
        open_translation(str(tmp_path), PretrainedRequest(source_tokenizer=tmp_path / "missing.spm"))
    huggingface(tmp_path)
    (tmp_path / "some.spm").write_bytes(b"")
    with pytest.raises(CadecError, match="its own tokenizer"):
        open_translation(str(tmp_path), PretrainedRequest(source_tokenizer=tmp_path / "some.spm"))


def test_looking_takes_no_heavy_library(tmp_path: Path) -> None:
    marian(tmp_path)
    code = (
        "import sys; from pathlib import Path; from converters.detect import KINDS, kind_of\n"
        "assert kind_of(Path(sys.argv[1])) == 'marian'; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert not {"torch", "ctranslate2", "numpy", "transformers"} & set(done.stdout.split())
