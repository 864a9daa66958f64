"""A model is a path, or a name on the hub; what can't be had is one clear error."""

import sys
from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from converters.hub import local_model, wanted_files


def test_a_path_is_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "owner" / "name").mkdir(parents=True)
    (tmp_path / "model.gguf").touch()
    assert local_model(str(tmp_path)) == tmp_path
    assert local_model(str(tmp_path / "model.gguf")) == tmp_path / "model.gguf"
    monkeypatch.chdir(tmp_path)
    assert local_model("owner/name") == Path("owner/name")  # what is here comes first
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_model("~/owner") == tmp_path / "owner"


@pytest.mark.parametrize(
    "given", ["gone", "/gone/away", "./gone/away", "a/b/c", "../x", "name with/space", ""]
)
def test_what_is_neither_a_path_nor_a_name_is_not_looked_for(
    given: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    if not given:  # an empty name is the current directory, as for every program
        assert local_model(given) == Path()
        return
    with pytest.raises(CadecError, match="no such file or directory"):
        local_model(given)


def test_a_name_that_can_not_be_fetched_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        CadecError, match="nobody/nothing-en-ru is not a local directory, and can't be fetched"
    ) as caught:
        local_model("nobody/nothing-en-ru")
    assert "directory" in caught.value.hint


def test_a_model_that_was_fetched_before_needs_no_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import huggingface_hub.constants

    commit = "0" * 40
    cached = tmp_path / "models--owner--name"
    (cached / "snapshots" / commit).mkdir(parents=True)
    (cached / "snapshots" / commit / "config.json").write_text("{}")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(commit)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(CadecError, match="offline mode"):  # a download that broke off
        local_model("owner/name")
    (cached / "snapshots" / commit / "model.safetensors").write_text("")
    assert local_model("owner/name") == cached / "snapshots" / commit
    assert local_model("hf:owner/name") == cached / "snapshots" / commit


def test_without_the_hubs_client_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(CadecError, match="no such file or directory") as caught:
        local_model("nobody/nothing")
    assert "pip install 'cadec[huggingface]'" in caught.value.hint


@pytest.mark.parametrize(
    ("files", "weights"),
    [
        (["model.safetensors", "pytorch_model.bin", "tf_model.h5"], "*.safetensors"),
        (["pytorch_model-00001-of-00002.bin", "flax_model.msgpack"], "pytorch_model*.bin"),
        (["onnx/model.safetensors", "pytorch_model.bin"], "pytorch_model*.bin"),
        (["tf_model.h5"], None),
    ],
)
def test_one_kind_of_weights_is_fetched(files: list[str], weights: str | None) -> None:
    patterns = wanted_files("some/model", ["config.json", *files])
    found = [pattern for pattern in patterns if "safetensors" in pattern or ".bin" in pattern]
    assert found == ([weights] if weights else [])
    assert "*.spm" in patterns


def test_of_several_gguf_files_none_is_fetched() -> None:
    with pytest.raises(CadecError, match=r"several GGUF files: a-q4\.gguf, a-q8\.gguf") as caught:
        wanted_files("some/model", ["a-q4.gguf", "a-q8.gguf", "README.md"])
    assert "hf download some/model a-q4.gguf" in caught.value.hint


def test_a_model_that_asks_for_consent_is_not_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    # Without the answer of a server, which it is usually made of.
    refusal = huggingface_hub.errors.GatedRepoError.__new__(huggingface_hub.errors.GatedRepoError)

    def gated(*_: object, **__: object) -> None:
        raise refusal

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", gated)
    with pytest.raises(CadecError, match="consent to its licence"):
        local_model("google/gemma-3-270m")
