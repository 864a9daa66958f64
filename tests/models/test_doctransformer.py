"""The DocTransformer is its S-NMT wherever the context has nothing to say; stepped, it says the same."""

from pathlib import Path

import pytest
import torch

from cadec_cli.models.doctransformer import ContextAttention, DocTransformer, DocTransformerConfig, is_new
from cadec_cli.models.layers import Cache
from cadec_cli.models.storage import load_model, save_model
from cadec_cli.models.transformer import Transformer
from tests.helpers.bundle_parts import shaken, tiny_nmt

TOLERANCE = 2e-5


def sentence_model(pre_norm: bool = True) -> Transformer:
    return tiny_nmt(30, 40, pre_norm, decoder_layers=2)


def document_model(of: Transformer) -> DocTransformer:
    """A DocTransformer with the S-NMT's weights, and random ones where it is new."""
    sizes = {name: getattr(of.config, name) for name in of.config.__dataclass_fields__}
    model = shaken(DocTransformer(DocTransformerConfig(**sizes)), seed=5)
    assert isinstance(model, DocTransformer)
    missing, unexpected = model.load_state_dict(of.state_dict(), strict=False)
    assert all(map(is_new, missing))
    assert not unexpected
    return model


def close_gates(model: DocTransformer) -> None:
    with torch.no_grad():
        for part in model.modules():
            if isinstance(part, ContextAttention):
                part.gate.weight.zero_()
                part.gate.bias.fill_(1e4)  # σ is 1 exactly


def tokens(vocabulary: int, *shape: int) -> torch.Tensor:
    return torch.randint(4, vocabulary, shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize("pre_norm", [True, False])
@torch.inference_mode()
def test_a_closed_gate_leaves_the_sentence_model(pre_norm: bool) -> None:
    nmt = sentence_model(pre_norm)
    model = document_model(nmt)
    source, context, target = tokens(30, 3, 6), tokens(30, 3, 9), tokens(40, 3, 7)
    plain = nmt(source, target)
    assert (model(source, context, target) - plain).abs().max() > 0.1  # open, the context matters
    close_gates(model)
    assert torch.equal(model(source, context, target), plain)


@torch.inference_mode()
def test_a_sentence_without_context_is_the_sentence_model_s_whoever_is_in_its_batch() -> None:
    nmt = sentence_model()
    model = document_model(nmt)
    source, target = tokens(30, 2, 6), tokens(40, 2, 5)
    context = tokens(30, 2, 4)
    context[0] = 0
    found = model(source, context, target)
    torch.testing.assert_close(found[:1], nmt(source[:1], target[:1]), atol=TOLERANCE, rtol=0)
    alone = model(source[1:], context[1:], target[1:])
    torch.testing.assert_close(found[1:], alone, atol=TOLERANCE, rtol=0)
    assert (alone - nmt(source[1:], target[1:])).abs().max() > 0.1


@torch.inference_mode()
def test_padding_of_contexts_changes_nothing() -> None:
    model = document_model(sentence_model())
    source, context, target = tokens(30, 1, 6), tokens(30, 1, 4), tokens(40, 1, 5)
    wide = torch.nn.functional.pad(context, (0, 7))
    torch.testing.assert_close(
        model(source, wide, target), model(source, context, target), atol=TOLERANCE, rtol=0
    )


@torch.inference_mode()
def test_steps_equal_one_pass_and_rows_can_be_reordered() -> None:
    model = document_model(sentence_model())
    source, context, target = tokens(30, 3, 6), tokens(30, 3, 9), tokens(40, 3, 6)
    encoded, cache = model.encode_in_context(source, context), Cache()
    parts = [model.hidden_states(part, encoded, cache) for part in (target[:, :3], target[:, 3:4])]
    order = torch.tensor([2, 0, 0])
    last = model.hidden_states(target[order, 4:5], encoded.rows(order), cache.rows(order))
    whole = model(source, context, target)
    torch.testing.assert_close(model.logits(torch.cat(parts, 1)), whole[:, :4], atol=TOLERANCE, rtol=0)
    read = torch.cat([target[order, :4], target[order, 4:5]], 1)
    expected = model(source[order], context[order], read)[:, -1:]
    torch.testing.assert_close(model.logits(last), expected, atol=TOLERANCE, rtol=0)


def test_it_is_stored_under_its_own_name(tmp_path: Path) -> None:
    directory = tmp_path / "model"
    model = document_model(sentence_model())
    save_model(directory, model, {})
    stored = load_model(directory, "doc-nmt")
    assert isinstance(stored.model, DocTransformer)
    assert stored.model.config == model.config
