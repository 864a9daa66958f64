"""Networks of transformers made small: tables of tokens, linears of every kind, and what scales logits."""

import pytest
import torch

from cadec_cli.models.huggingface import HalfEmbedding, Network
from cadec_cli.models.int8.linear import FineInt8Linear, Int8Linear, adds_exactly
from tests.helpers.pretrained_lms import tiny_network


@pytest.mark.parametrize("family", ["gemma3_text", "llama", "gpt2"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_table_of_half_precision_gives_exactly_what_it_did(family: str, dtype: torch.dtype) -> None:
    model = tiny_network(family, 90)
    table = model.get_input_embeddings()
    with torch.no_grad():
        table.weight.copy_(table.weight.to(dtype).float())
    tokens = torch.tensor([[3, 5, 3, 89], [0, 0, 7, 5]])
    expected = table(tokens).clone()
    rows = table.weight.shape
    half = HalfEmbedding.of(table)
    assert isinstance(half, HalfEmbedding)
    assert torch.equal(half(tokens), expected)  # Gemma's is scaled, and still is
    assert half.get_buffer("weight").dtype == dtype and half.get_buffer("weight").shape == rows
    assert sum(parameter.numel() for parameter in half.parameters()) == 0


def test_a_table_that_would_lose_something_stays() -> None:
    model = tiny_network("llama", 90)
    table = model.get_input_embeddings()
    with torch.no_grad():
        table.weight[3, 4] = 1 + 2**-20
    assert HalfEmbedding.of(table) is table


def test_every_linear_of_every_kind_is_replaced() -> None:
    for family in ("gpt2", "llama", "gemma3_text"):
        network = Network(tiny_network(family, 90))
        network.to_int8()
        kinds = {type(part).__name__ for part in network.model.modules()}
        assert "FineInt8Linear" in kinds and not kinds & {"Linear", "Conv1D"}


def test_two_integers_say_more_than_one() -> None:
    torch.manual_seed(1)
    linear = torch.nn.Linear(64, 48)
    x = torch.randn(5, 64)
    x[:, 7] *= 200  # as rows of pretrained networks are
    with torch.inference_mode():
        expected = linear(x)
        coarse = (Int8Linear(linear)(x) - expected).abs().mean()
        fine = (FineInt8Linear(linear)(x) - expected).abs().mean()
    assert fine < coarse / (2 if adds_exactly() else 1.2)


def test_logits_are_scaled_as_the_architecture_does() -> None:
    tokens = torch.tensor([[3, 5, 9]])
    for family in ("cohere", "granite", "gemma2", "gemma3_text", "llama"):
        model = tiny_network(family, 90)
        with torch.inference_mode():
            hidden = model.base_model(input_ids=tokens).last_hidden_state[0]
            torch.testing.assert_close(Network(model).logits(hidden), model(input_ids=tokens).logits[0])
