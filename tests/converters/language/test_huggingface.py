"""Pretrained language models become D-LMs: read, compared, written, read again, and the same scores."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from cadec_cli.engines import transformers_lm
from cadec_cli.engines.protocols import trie_for
from cadec_cli.engines.transformers_lm import TransformersLanguageModel, load_language_model
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context
from cadec_cli.method.options import ScoringOptions
from cadec_cli.models.pretrained_settings import LanguageSettings, read_language_settings
from converters.language.huggingface import LanguageModelImport, open_language_model
from tests.helpers.pretrained_lms import SENTENCES, tokenizer_json, write_gguf, write_lm, write_tokenizer

CPU = torch.device("cpu")
TEXTS = {"fr": (("Bonjour.", "Oui."), ("Non.",))}


def opened(path: Path, notes: list[str] | None = None) -> LanguageModelImport:
    told: list[str] = [] if notes is None else notes
    return open_language_model(str(path), note=told.append, no_context=TEXTS)


def written(found: LanguageModelImport, directory: Path, *, link: bool = False) -> Path:
    directory.mkdir()
    found.write(directory, link=link)
    return directory


def loaded(
    directory: Path, *, compute_type: str = "float32", language: str = "ru", notes: list[str] | None = None
) -> TransformersLanguageModel:
    told: list[str] = [] if notes is None else notes
    return load_language_model(
        directory, language=language, device=CPU, compute_type=compute_type, note=told.append
    )


@torch.inference_mode()
def naive(network: Any, model: TransformersLanguageModel, context: list[str], sentence: str) -> float:
    """log p(ỹ | c̃) by the network that the test made, over the whole sequence."""
    tokens = [model.text.start]
    for text in context:
        tokens += [*model.text.encode(text), model.text.boundary]
    before = len(tokens)
    tokens += [*model.text.encode(sentence), model.text.boundary]
    log_probs = network(input_ids=torch.tensor([tokens[:-1]])).logits[0].double().log_softmax(-1)
    return float(log_probs[range(before - 1, len(tokens) - 1), tokens[before:]].sum())


def assert_scores(network: Any, model: TransformersLanguageModel, tolerance: float = 2e-3) -> None:
    context, sentences = list(SENTENCES[5:7]), SENTENCES[:4]
    trie = trie_for(model, [tuple(model.text.encode(text)) for text in sentences])
    before = Context(tuple(tuple(model.text.encode(text)) for text in context))
    (scored,) = model.score([trie], [before], ScoringOptions())
    expected = [naive(network, model, context, text) for text in sentences]
    np.testing.assert_allclose(scored.totals[0], expected, atol=tolerance)


# What comes in, and comes out the same


@pytest.mark.parametrize(
    ("family", "tokenizer", "start", "boundary"),
    [
        ("gpt2", "byte-level", "<|endoftext|>", "\n"),
        ("llama", "spm-bpe", "<s>", "\n"),
        ("qwen3", "glued", "<|begin|>", " \n"),
        ("gemma3_text", "gemma", "<s>", "\n"),
        ("bloom", "unigram", "<s>", "\n"),  # one that is scored the slow way
    ],
)
def test_a_directory_comes_in_and_scores_as_it_did(
    family: str, tokenizer: str, start: str, boundary: str, tmp_path: Path
) -> None:
    network = write_lm(tmp_path / "tiny", family, tokenizer)
    notes: list[str] = []
    found = opened(tmp_path / "tiny", notes)
    made = written(found, tmp_path / "made")
    settings = read_language_settings(made)
    assert settings == found.settings
    assert (settings.family, settings.start, settings.boundary) == (family, start, boundary)
    assert (settings.origin, settings.licence, settings.no_context) == ("tiny", "apache-2.0", TEXTS)
    assert ("one by one" in settings.verified) == (family == "bloom")
    assert bool(notes) == (family == "bloom")
    assert sorted(path.name for path in made.iterdir()) == [
        *("config.json", "language-model.json", "model.safetensors", "tokenizer.json"),
    ]
    assert_scores(network, loaded(made))


def test_weights_in_several_files(tmp_path: Path) -> None:
    network = write_lm(tmp_path / "tiny", "llama")
    network.save_pretrained(tmp_path / "tiny", max_shard_size="40KB")
    (tmp_path / "tiny" / "model.safetensors").unlink(missing_ok=True)
    made = written(opened(tmp_path / "tiny"), tmp_path / "made")
    assert len(list(made.glob("model-*.safetensors"))) > 1
    assert_scores(network, loaded(made))
    next((tmp_path / "tiny").glob("model-*.safetensors")).unlink()
    with pytest.raises(CadecError, match="lacks model-"):
        opened(tmp_path / "tiny")


def test_pickled_weights_are_written_as_safetensors(tmp_path: Path) -> None:
    network = write_lm(tmp_path / "tiny", "gpt2")
    (tmp_path / "tiny" / "model.safetensors").unlink()
    torch.save(network.state_dict(), tmp_path / "tiny" / "pytorch_model.bin")
    found = opened(tmp_path / "tiny")
    made = written(found, tmp_path / "made")
    assert (made / "model.safetensors").is_file() and not list(made.glob("*.bin"))
    assert "without loss" in found.settings.verified
    assert_scores(network, loaded(made))


class Bomb:
    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        import os

        return os.system, ("touch exploded",)


def test_a_pickle_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    network = write_lm(tmp_path / "tiny", "gpt2")
    (tmp_path / "tiny" / "model.safetensors").unlink()
    torch.save({**network.state_dict(), "bomb": Bomb()}, tmp_path / "tiny" / "pytorch_model.bin")
    with pytest.raises(CadecError, match="can't be loaded"):
        opened(tmp_path / "tiny")
    assert not (tmp_path / "exploded").exists()


def test_links_instead_of_copies(tmp_path: Path) -> None:
    network = write_lm(tmp_path / "tiny", "gpt2")
    made = written(opened(tmp_path / "tiny"), tmp_path / "made", link=True)
    link = made / "model.safetensors"
    assert link.is_symlink() and link.resolve() == (tmp_path / "tiny" / "model.safetensors").resolve()
    assert not (made / "config.json").is_symlink()
    assert_scores(network, loaded(made))
    write_gguf(tmp_path / "tiny.gguf")
    (tmp_path / "other").mkdir()
    with pytest.raises(CadecError, match="can't be linked"):
        opened(tmp_path / "tiny.gguf").write(tmp_path / "other", link=True)


def test_a_gguf_file_comes_in_and_scores_as_it_did(tmp_path: Path) -> None:
    network = write_gguf(tmp_path / "tiny.gguf")
    found = opened(tmp_path / "tiny.gguf")
    settings = found.settings
    assert (settings.family, settings.origin, settings.licence) == ("llama", "Tiny Llama", "mit")
    assert settings.start == "<|endoftext|>" and settings.positions == 128
    assert "float16" in settings.verified
    made = written(found, tmp_path / "made")
    stored = load_file(made / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    assert_scores(network, loaded(made))
    # A directory with nothing else in it is as good.
    (tmp_path / "fetched").mkdir()
    shutil.copy(tmp_path / "tiny.gguf", tmp_path / "fetched")
    assert opened(tmp_path / "fetched").settings == settings


def test_no_context_is_read_in_the_language_that_is_written(tmp_path: Path) -> None:
    network = write_lm(tmp_path / "tiny", "gpt2")
    made = written(opened(tmp_path / "tiny"), tmp_path / "made")
    sentence = SENTENCES[0]
    for language, contexts in (("fr", TEXTS["fr"]), ("ru", ((),))):
        model = loaded(made, language=language)
        trie = trie_for(model, [tuple(model.text.encode(sentence))])
        (free,) = model.score([trie], [Context()], ScoringOptions())
        expected = np.mean([naive(network, model, list(lines), sentence) for lines in contexts])
        assert free.totals[0, 0] == pytest.approx(expected, abs=2e-3)


# int8


def test_int8_weights_take_less_memory_and_lose_little(tmp_path: Path) -> None:
    network = write_lm(tmp_path / "tiny", "gpt2")
    made = written(opened(tmp_path / "tiny"), tmp_path / "made")
    notes: list[str] = []
    model = loaded(made, compute_type="int8", notes=notes)
    assert not notes
    assert "FineInt8Linear" in {type(part).__name__ for part in model.network.model.modules()}
    floats = [name for name, part in model.network.model.named_parameters() if part.dim() > 1]
    assert floats == ["transformer.wte.weight", "transformer.wpe.weight"]  # tables that are looked up in
    assert_scores(network, model, tolerance=2.0)


def test_where_int8_loses_too_much_floats_are_used_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = write_lm(tmp_path / "tiny", "gpt2")
    made = written(opened(tmp_path / "tiny"), tmp_path / "made")
    monkeypatch.setattr(transformers_lm, "MAX_LOST", 1e-9)
    notes: list[str] = []
    model = loaded(made, compute_type="int8", notes=notes)
    assert "loses too much" in notes[0] and "float32" in notes[0]
    assert_scores(network, model)


# What is wrong is one clear error, and nothing is written


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    write_lm(tmp_path / "tiny", "llama", "spm-bpe")
    return tmp_path / "tiny"


def refused(path: Path, message: str) -> CadecError:
    before = sorted(path.parent.iterdir())
    with pytest.raises(CadecError, match=message) as caught:
        opened(path)
    assert sorted(path.parent.iterdir()) == before
    return caught.value


def changed_config(directory: Path, **values: object) -> None:
    config = json.loads((directory / "config.json").read_text("utf-8"))
    (directory / "config.json").write_text(json.dumps({**config, **values}), "utf-8")


def test_files_that_are_missing(tiny: Path) -> None:
    refused(tiny.parent / "nowhere", "no such file or directory")
    (tiny / "model.safetensors").rename(tiny / "kept")
    refused(tiny, "has no weights")
    (tiny / "kept").rename(tiny / "model.safetensors")
    (tiny / "tokenizer.json").rename(tiny / "kept")
    refused(tiny, "has no tokenizer")
    (tiny / "kept").rename(tiny / "tokenizer.json")
    (tiny / "config.json").unlink()
    refused(tiny, r"no config\.json")


def test_files_that_are_damaged(tiny: Path) -> None:
    whole = (tiny / "model.safetensors").read_bytes()
    (tiny / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    refused(tiny, "can't be loaded")
    (tiny / "model.safetensors").write_bytes(whole)
    (tiny / "tokenizer.json").write_text("{}", "utf-8")
    refused(tiny, "damaged")
    (tiny / "tokenizer.json").write_bytes(b"\xff\xfe")
    refused(tiny, "not UTF-8")
    write_tokenizer(tiny, "spm-bpe")
    (tiny / "config.json").write_text("{", "utf-8")
    refused(tiny, "config.json is not valid JSON")


def test_other_architectures(tiny: Path) -> None:
    changed_config(tiny, model_type="t5", architectures=["T5ForConditionalGeneration"])
    assert "causal" in refused(tiny, "is an encoder-decoder").hint
    changed_config(tiny, model_type="bert", architectures=["BertForMaskedLM"])
    refused(tiny, "not a causal language model")
    changed_config(tiny, model_type="made_up")
    refused(tiny, "can't be read")


@pytest.mark.parametrize("architectures", [[None], 7, {"a": 1}])
def test_architectures_that_are_no_names(tiny: Path, architectures: object) -> None:
    changed_config(tiny, architectures=architectures)
    refused(tiny, "architectures")


def test_weights_that_do_not_fit_or_are_no_numbers(tiny: Path) -> None:
    state = load_file(tiny / "model.safetensors")
    name = "model.layers.1.mlp.up_proj.weight"
    kept = state[name].clone()

    def save(**changes: torch.Tensor) -> None:
        save_file({**state, **changes}, tiny / "model.safetensors", metadata={"format": "pt"})

    spoiled = kept.clone()
    spoiled[2, 1] = torch.nan
    save(**{name: spoiled})
    refused(tiny, f"hold NaN or infinite values: {name}")
    del state[name]
    save()
    refused(tiny, f"lacks weights, or has them in other shapes: {name}")


def test_a_tokenizer_of_another_model(tiny: Path) -> None:
    write_tokenizer(tiny, "byte-level")  # of more tokens than the network has rows
    more = len(json.loads(tokenizer_json("byte-level"))["model"]["vocab"])
    error = refused(tiny, "tokens and its network only")
    assert f"{more:,}" in error.message and "belong together" in error.hint


def test_a_tokenizer_without_lines(tiny: Path) -> None:
    write_tokenizer(tiny, "no-lines")
    refused(tiny, "no token for a line break")


def test_gguf_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write_gguf(path)
    whole = path.read_bytes()
    for size in (len(whole) - 1000, len(whole) // 2, 1000, 20, 5):
        path.write_bytes(whole[:size])
        refused(path, "can't be read as GGUF")
    path.write_bytes(b"")
    refused(path, "not a GGUF file")
    path.write_bytes(b"PK\x03\x04" + whole[4:])
    refused(path, "not a GGUF file")


def test_a_gguf_file_with_weights_that_are_no_numbers(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write_gguf(path)
    content = bytearray(path.read_bytes())
    content[-4:] = b"\x00\x7e\x00\x7e"  # two NaNs in half precision, at the end of the last tensor
    path.write_bytes(content)
    refused(path, "NaN or infinite")


@pytest.mark.parametrize("missing", ["transformers", "gguf"])
def test_without_the_extra_the_error_says_what_to_install(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_gguf(tmp_path / "tiny.gguf")
    monkeypatch.setitem(sys.modules, missing, None)
    error = refused(tmp_path / "tiny.gguf", missing)
    assert error.hint == "pip install 'cadec[huggingface]'"


def test_settings_are_checked_when_they_are_read(tmp_path: Path) -> None:
    write_lm(tmp_path / "tiny", "gpt2")
    made = written(opened(tmp_path / "tiny"), tmp_path / "made")
    path = made / "language-model.json"
    good = json.loads(path.read_text("utf-8"))
    changes: list[dict[str, object]] = [
        {"format": 2},
        {"positions": "many"},
        {"positions": 3},
        {"no_context": [["Bonjour."]]},
        {"no_context": {"fr": ["Bonjour."]}},
        {"boundary": 10},
        {"start": 1},
        {"unheard_of": 1},
    ]
    for change in changes:
        path.write_text(json.dumps({**good, **change}), "utf-8")
        with pytest.raises(CadecError):
            read_language_settings(made)
    path.write_text(json.dumps(good), "utf-8")
    assert isinstance(read_language_settings(made), LanguageSettings)
