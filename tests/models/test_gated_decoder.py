"""Our decoder computes what transformers computes for the families that it knows, and for no other."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.engines.transformers_lm import Probes, TransformersLanguageModel
from cadec_cli.method.context import Context
from cadec_cli.method.objectives import CONDITIONAL, FREE
from cadec_cli.method.options import ScoringOptions
from cadec_cli.models.gated_decoder import DecoderShape, GatedDecoder, GatedNetwork
from cadec_cli.models.huggingface import Network
from tests.converters.language.test_fit import fit, made, needs_vnni
from tests.engines.test_transformers_lm import TOKENIZER, encoded, line_text, scorer
from tests.helpers.pretrained_lms import FAMILIES, SENTENCES, tiny_network, tokenizer_size

OURS = ("gemma", "gemma3_text", "llama", "mistral", "qwen2", "qwen3")


def shape_of(family: str, **changes: Any) -> tuple[Any, DecoderShape | None]:
    model = tiny_network(family, tokenizer_size(TOKENIZER[family]), **changes)
    return model, DecoderShape.of(model)


def ours(family: str, **changes: Any) -> TransformersLanguageModel:
    model, shape = shape_of(family, **changes)
    assert shape is not None
    decoder = GatedDecoder(shape)
    decoder.load_state_dict(model.state_dict())
    network = GatedNetwork(decoder.eval().requires_grad_(False))
    return TransformersLanguageModel(network, line_text(TOKENIZER[family]), positions=64)


@pytest.mark.parametrize("parts", [True, False])
@pytest.mark.parametrize("family", OURS)
def test_scores_are_those_of_transformers(family: str, parts: bool) -> None:
    own, theirs = ours(family), scorer(family, positions=64)
    own.network.attend_in_parts(parts)
    probes = Probes.of(theirs, 64)  # with a cache, too
    np.testing.assert_allclose(probes.scores(own), probes.scores(theirs), atol=1e-4)
    np.testing.assert_allclose(*probes.alone(own), atol=1e-4)


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("llama", {"attention_bias": True, "mlp_bias": True}),
        ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 500.0}}),
        ("qwen3", {"attention_bias": True}),
        ("gemma3_text", {"num_hidden_layers": 7}),  # a layer of another kind, with other frequencies
    ],
)
def test_what_a_family_may_vary(family: str, changes: dict[str, Any]) -> None:
    own, theirs = ours(family, **changes), scorer(family, positions=64, **changes)
    probes = Probes.of(theirs, 64)
    np.testing.assert_allclose(probes.scores(own), probes.scores(theirs), atol=1e-4)


@pytest.mark.parametrize("family", ["gemma3_text", "llama"])
def test_the_beam_reads_beginnings_alike(family: str) -> None:
    found = []
    for model in (ours(family), scorer(family, positions=64)):
        model.network.attend_in_parts(False)
        trees = model.trees([Context(encoded(model, SENTENCES[5:6]))], [CONDITIONAL, FREE], ScoringOptions())
        ids = encoded(model, SENTENCES[:1])[0]
        found.append([trees.read([(0, ids[:length])])[0] for length in range(len(ids) + 1)])
    for one, other in zip(*found, strict=True):
        for term in (CONDITIONAL, FREE):
            assert one[term].total == pytest.approx(other[term].total, abs=1e-3)
            np.testing.assert_allclose(one[term].following, other[term].following, atol=1e-3)


@pytest.mark.parametrize("family", sorted({*FAMILIES} - {*OURS}))
def test_other_networks_are_not_taken_for_ours(family: str) -> None:
    model, shape = shape_of(family)
    # What passes for one (Granite has factors of its own) is found out by its scores.
    if shape is not None:
        decoder = GatedDecoder(shape)
        decoder.load_state_dict(model.state_dict())
        row = torch.tensor([[3, 1, 4, 1, 5]])
        assert (Network(model).own_logits(row, None, 5) - decoder(row)).abs().max() > 0.1


def test_a_rotation_that_grows_with_the_text_is_not_ours() -> None:
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
    assert shape_of("llama", rope_parameters=rope)[1] is None


def test_shapes_survive_json() -> None:
    for family in OURS:
        _, shape = shape_of(family)
        assert shape is not None
        assert DecoderShape.from_dict(json.loads(json.dumps(shape.to_dict()))) == shape


LLAMA = shape_of("llama")[1]
anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=3),
)


@settings(max_examples=300)
@given(st.data())
def test_other_values_are_one_clear_error_or_a_shape(data: st.DataObject) -> None:
    assert LLAMA is not None
    known = LLAMA.to_dict()
    name = data.draw(st.sampled_from([*known, "extra"]))
    changed = {**known, name: data.draw(anything)}
    try:
        made = DecoderShape.from_dict(changed)
    except ValueError:
        return
    assert made.to_dict() == changed


def test_what_is_no_object_is_no_shape() -> None:
    nothing: tuple[object, ...] = (None, [], "x", {}, 1.5)
    for value in nothing:
        with pytest.raises(ValueError):
            DecoderShape.from_dict(value)


@needs_vnni
def test_a_fitted_model_is_loaded_without_transformers(tmp_path: Path) -> None:
    place = made(tmp_path, "gemma3_text", "gemma")
    fit(place)
    code = f"""
import sys
from pathlib import Path
import torch
from cadec_cli.engines.protocols import trie_for
from cadec_cli.engines.transformers_lm import load_language_model
from cadec_cli.method.context import Context
from cadec_cli.method.options import ScoringOptions
model = load_language_model(Path({str(place)!r}), language="fr", device=torch.device("cpu"),
                            compute_type="int8", note=print)
ids = tuple(model.text.encode("Il est rouge."))
model.score([trie_for(model, [ids])], [Context((ids,))], ScoringOptions())
print("transformers" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
