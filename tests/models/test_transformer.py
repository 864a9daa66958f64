"""The S-NMT gives the same scores stepped or at once, alone or in a padded batch."""

import pytest
import torch

from cadec_cli.errors import CadecError
from cadec_cli.models.layers import Cache, sinusoids
from cadec_cli.models.transformer import Transformer, TransformerConfig
from tests.helpers.bundle_parts import tiny_nmt

TOLERANCE = 2e-5


def network(pre_norm: bool = True, tied: bool = True) -> Transformer:
    torch.manual_seed(1)  # of the tokens
    return tiny_nmt(30, 40, pre_norm, tied, decoder_layers=2)


NMT = network()


def tokens(vocabulary: int, *shape: int) -> torch.Tensor:
    return torch.randint(4, vocabulary, shape)


@pytest.mark.parametrize("pre_norm", [True, False])
@pytest.mark.parametrize("tied", [True, False])
@torch.inference_mode()
def test_steps_equal_one_pass(pre_norm: bool, tied: bool) -> None:
    nmt = network(pre_norm, tied)
    source, target = tokens(30, 3, 6), tokens(40, 3, 9)
    encoded, cache = nmt.encode(source), Cache()
    parts = [
        nmt.hidden_states(part, encoded, cache) for part in (target[:, :4], target[:, 4:5], target[:, 5:])
    ]
    torch.testing.assert_close(nmt.logits(torch.cat(parts, 1)), nmt(source, target), atol=TOLERANCE, rtol=0)


@torch.inference_mode()
def test_a_sentence_in_a_padded_batch_is_scored_as_if_alone() -> None:
    short, long = tokens(30, 1, 3), tokens(30, 1, 8)
    target = tokens(40, 2, 5)
    batch = torch.cat([torch.nn.functional.pad(short, (0, 5)), long])
    together = NMT(batch, target)
    torch.testing.assert_close(together[:1], NMT(short, target[:1]), atol=TOLERANCE, rtol=0)
    torch.testing.assert_close(together[1:], NMT(long, target[1:]), atol=TOLERANCE, rtol=0)


@torch.inference_mode()
def test_beams_can_be_reordered() -> None:
    source, target = tokens(30, 3, 6), tokens(40, 3, 4)
    encoded, cache = NMT.encode(source), Cache()
    NMT.hidden_states(target, encoded, cache)
    order = torch.tensor([1, 1, 2, 0])
    step = tokens(40, 4, 1)
    stepped = NMT.logits(NMT.hidden_states(step, encoded.rows(order), cache.rows(order)))[:, -1]
    expected = NMT(source[order], torch.cat([target[order], step], 1))[:, -1]
    torch.testing.assert_close(stepped, expected, atol=TOLERANCE, rtol=0)


def test_tied_embeddings_are_one_tensor() -> None:
    assert NMT.output.weight is NMT.target_embedding.weight
    assert network(tied=False).output.bias is not None


def test_shared_embeddings_need_one_vocabulary() -> None:
    with pytest.raises(CadecError, match="one vocabulary"):
        TransformerConfig(source_vocabulary=30, target_vocabulary=40, shared_embeddings=True)


def test_sinusoids_are_unit_pairs() -> None:
    table = sinusoids(50, 16)
    torch.testing.assert_close(table[:, :8] ** 2 + table[:, 8:] ** 2, torch.ones(50, 8))
    assert sinusoids(5, 7).shape == (5, 7)
