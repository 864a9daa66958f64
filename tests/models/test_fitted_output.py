"""The output layer over a part of the vocabulary: compiled operations give what torch gives."""

import pytest
import torch

from cadec_cli.models.fitted_output import FittedOutput
from cadec_cli.models.huggingface import single_logits
from cadec_cli.models.int8.kernels import available
from cadec_cli.models.int8.linear import LevelWeights, WideOutput

WIDTH, VOCABULARY = 48, 290
TOKENS = torch.arange(0, VOCABULARY, 2)  # odd ones are outside


@pytest.mark.skipif(not available(), reason="nothing is compiled here")
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("columns", [64, 4096])
@torch.inference_mode()
def test_one_compiled_pass_gives_what_torch_gives(
    biased: bool, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cadec_cli.models.int8.linear.OUTPUT_COLUMNS", columns)
    torch.manual_seed(1)
    table, hidden = torch.randn(VOCABULARY, WIDTH), torch.randn(5, WIDTH)
    bias = torch.randn(VOCABULARY) if biased else None
    weights = LevelWeights.of(table[TOKENS], hidden.abs().amax(0))
    output = WideOutput(
        weights.integers, weights.scales, weights.factors, None if bias is None else bias[TOKENS]
    )
    assert len(output.parts) == (3 if columns == 64 else 1)
    single = single_logits(lambda: table, lambda: bias)
    fast = FittedOutput(TOKENS, output, single, None)
    plain = FittedOutput(TOKENS, output, single, lambda logits: logits)
    rows = torch.tensor([0, 0, 1, 3, 3, 4])
    tokens = torch.tensor([4, 7, 0, 288, 289, 130])
    for temperatures in ([1.0], [1.0, 2.5]):
        found = fast.log_probs(hidden, rows, tokens, temperatures)
        assert torch.allclose(found, plain.log_probs(hidden, rows, tokens, temperatures), atol=1e-4)
    for temperature in (1.0, 2.5):
        assert torch.allclose(
            fast.following(hidden, temperature), plain.following(hidden, temperature), atol=1e-4
        )
