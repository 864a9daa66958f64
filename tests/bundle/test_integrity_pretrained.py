"""A stranger's bundle of other toolkits' models: links, indexes and sizes that lead elsewhere, or nowhere."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import load_models
from cadec_cli.bundle.manifest import read_manifest, record
from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code
from cadec_cli.models.pretrained_settings import check_configuration
from converters.language.gguf import read_gguf
from tests.helpers.bundle_parts import write_manifest
from tests.helpers.pretrained_lms import write_gguf, write_lm
from tests.helpers.run_in_process import cadec

WEIGHTS = "lm/model.safetensors"


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A D-LM of Hugging Face, linked."""
    root = tmp_path_factory.mktemp("linked")
    write_lm(root / "gpt2", "gpt2")
    given = ("--lm", root / "gpt2", "--target-language", "eo", "--link", "-o", root / "bundle")
    assert exit_code(["convert", *map(str, given), "--quiet"]) == 0
    return root / "bundle"


@pytest.fixture
def theirs(linked: Path, tmp_path: Path) -> Path:
    shutil.copytree(linked, tmp_path / "theirs", symlinks=True)
    return tmp_path / "theirs"


def tamper(bundle: Path, **changes: Any) -> None:
    write_manifest(bundle, {**json.loads((bundle / "bundle.json").read_text()), **changes})


def listed(bundle: Path, *names: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((bundle / "bundle.json").read_text())["files"]
    return {**value, **{name: vars(record(bundle / name)) for name in names}}


def relink(bundle: Path, place: str) -> None:
    (bundle / WEIGHTS).unlink()
    (bundle / WEIGHTS).symlink_to(place)
    tamper(bundle, links={WEIGHTS: place})


def test_a_link_that_the_user_made_works(theirs: Path) -> None:
    assert load_models(Bundle.open(theirs), compute_type="float32").language is not None


def test_a_link_leads_to_what_was_listed_and_its_content_is_never_copied(
    theirs: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "id_rsa"
    secret.write_bytes(b"?" * (theirs / WEIGHTS).stat().st_size)
    relink(theirs, str(secret))
    ended = cadec("convert", theirs, "-o", tmp_path / "mine")
    assert ended.returncode == 1 and "checksum mismatch" in ended.stderr
    assert not (tmp_path / "mine").exists()
    # Whoever knows the content has nothing to gain: the copy is a link again.
    tamper(theirs, files=listed(theirs, WEIGHTS))
    assert cadec("convert", theirs, "-o", tmp_path / "mine").returncode == 0
    assert cadec("models", "add", theirs, CADEC_DATA=str(tmp_path / "data")).returncode == 0
    for copied in (tmp_path / "mine", tmp_path / "data" / "bundles" / "theirs"):
        assert (copied / WEIGHTS).readlink() == secret


@pytest.mark.parametrize("place", ["../../id_rsa", "id_rsa", "/a/../etc/passwd", "/etc//passwd", "/a\x1bb"])
def test_a_link_is_a_full_path(place: str, theirs: Path) -> None:
    relink(theirs, place)
    with pytest.raises(CadecError, match=r"bundle\.json is damaged"):
        Bundle.open(theirs)


def test_a_link_leads_to_a_file(theirs: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (str(tmp_path / "pipe"), "/dev/zero", str(tmp_path)):
        relink(theirs, place)
        with pytest.raises(CadecError, match="is not a regular file"):
            Bundle.open(theirs)


@pytest.mark.parametrize("name", ["lm/config.json", "lm/tokenizer.json", "lm/language-model.json"])
def test_only_weights_are_linked(name: str, theirs: Path, tmp_path: Path) -> None:
    (theirs / name).rename(tmp_path / "elsewhere")
    (theirs / name).symlink_to(tmp_path / "elsewhere")
    tamper(theirs, links={**read_manifest(theirs).links, name: str(tmp_path / "elsewhere")})
    with pytest.raises(CadecError, match="can't be a link"):
        Bundle.open(theirs)


@pytest.mark.parametrize("name", ["modeling_gpt2.py", "adapter_config.json", "pytorch_model.bin", "lm.pt"])
def test_what_transformers_would_look_for_and_cadec_would_not(name: str, theirs: Path) -> None:
    (theirs / "lm" / name).write_text("{}")
    with pytest.raises(CadecError, match="is not listed"):
        Bundle.open(theirs)
    tamper(theirs, files=listed(theirs, f"lm/{name}"))
    with pytest.raises(CadecError, match="no bundle has a file"):
        Bundle.open(theirs)


def test_an_index_names_files_of_the_bundle(theirs: Path) -> None:
    index = theirs / "lm" / "model.safetensors.index.json"
    for place in ("../../elsewhere.safetensors", "/elsewhere.safetensors", "other.safetensors", 3):
        index.write_text(json.dumps({"weight_map": {"a": place}}))
        tamper(theirs, files=listed(theirs, f"lm/{index.name}"))
        with pytest.raises(CadecError, match="which is not listed"):
            Bundle.open(theirs)


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ({"n_layer": 10**9}, "n_layer must be"),
        ({"n_layer": 40, "n_embd": 1 << 16, "n_head": 1}, "which its files can't hold"),
        ({"vocab_size": 10**12}, "vocab_size must be"),
        ({"n_head": 10**9}, "n_head must be"),
        ({"n_embd": 10**12}, "n_embd must be"),
        ({"n_positions": 1 << 24}, "which its files can't hold"),
        ({"auto_map": {"AutoConfig": "theirs.Config"}, "model_type": "theirs"}, "can't be read"),
    ],
)
def test_a_network_is_no_larger_than_its_files(sizes: dict[str, Any], told: str, theirs: Path) -> None:
    path = theirs / "lm" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **sizes}))
    tamper(theirs, files=listed(theirs, "lm/config.json"))
    with pytest.raises(CadecError, match=told):
        _ = load_models(Bundle.open(theirs), compute_type="float32").language


GOOD = {"hidden_size": 64, "num_hidden_layers": 2, "n_inner": None, "text_config": {"vocab_size": 9}}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"hidden_size": True}, "hidden_size must be"),
        ({"hidden_size": 64.0}, "hidden_size must be"),
        ({"num_hidden_layers": "2"}, "num_hidden_layers must be"),
        ({"text_config": {"vocab_size": 10**12}}, "vocab_size must be"),
        ({"num_key_value_heads": [1, 10**12]}, "num_key_value_heads must be"),
        ({"num_labels": 10**9}, "num_labels must be"),
        ({"logit_scale": "x"}, "logit_scale must be"),
        ({"_attn_implementation": "somebody/kernels"}, "code from elsewhere"),
    ],
)
def test_a_configuration_is_looked_at_everywhere(change: dict[str, Any], told: str) -> None:
    check_configuration({**GOOD, "sliding_window": -1, "num_key_value_heads": [1, 2], "rope_theta": 1e9}, "a")
    with pytest.raises(CadecError, match=told):
        check_configuration({**GOOD, **change}, "a")


def test_a_gguf_file_asks_for_no_more_than_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gguf

    original = gguf.GGUFWriter.add_block_count
    for count, told in ((10**9, "num_hidden_layers must be"), (500, "which its files can't hold")):

        def large(writer: Any, _: int, count: int = count) -> None:
            original(writer, count)

        monkeypatch.setattr(gguf.GGUFWriter, "add_block_count", large)
        write_gguf(tmp_path / "large.gguf")
        with pytest.raises(CadecError, match=told):
            read_gguf(tmp_path / "large.gguf")
