"""int8 weights: nearly the same scores, and the same equivalences as in float32."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

from cadec_cli.errors import CadecError
from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig
from cadec_cli.models.int8 import kernels
from cadec_cli.models.int8.block import quantise
from cadec_cli.models.int8.kernels import Linear, coarse, fine
from cadec_cli.models.int8.linear import FineInt8Linear, Int8Linear, int8_available
from cadec_cli.models.layers import Cache, script
from cadec_cli.models.transformer import Transformer, TransformerConfig

needs_int8 = pytest.mark.skipif(not int8_available(), reason="this build of torch has no int8 linears")


@pytest.fixture(autouse=True, params=["compiled", "torch"])
def between_products(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it with what is compiled, and without."""
    if request.param == "torch":
        monkeypatch.setattr(kernels, "library", lambda: None)
    elif not kernels.available():
        pytest.skip("nothing is compiled here")  # whether it should be, test_row_operations asks


def language_model(tied: bool = True) -> DocumentLM:
    torch.manual_seed(1)
    config = DocumentLMConfig(vocabulary=40, layers=2, width=32, heads=4, inner=48, positions=64, tied=tied)
    return DocumentLM(config).eval()


def translation_model() -> Transformer:
    torch.manual_seed(1)
    config = TransformerConfig(30, 40, encoder_layers=2, decoder_layers=2, width=32, heads=4, inner=48)
    return Transformer(config).eval()


def tokens(*shape: int) -> torch.Tensor:
    return torch.randint(4, 30, shape)


@needs_int8
@pytest.mark.parametrize("bias", [True, False])
@torch.inference_mode()
def test_a_linear_loses_little(bias: bool) -> None:
    torch.manual_seed(1)
    linear = nn.Linear(768, 500, bias=bias)
    x = torch.randn(3, 7, 768)
    x[0, 0] *= 1000  # one row's outliers must not cost the others' precision
    expected, made = linear(x), Int8Linear(linear)(x)
    assert made.shape == expected.shape
    error = (made - expected).std(-1) / expected.std(-1)
    assert error.max() < 0.025


@needs_int8
@pytest.mark.parametrize("kind", [Int8Linear, FineInt8Linear])
@torch.inference_mode()
def test_a_row_comes_out_the_same_however_many_there_are(kind: type[Int8Linear]) -> None:
    torch.manual_seed(1)
    linear, x = kind(nn.Linear(64, 24)), torch.randn(19, 64)
    whole = linear(x)
    for count in range(1, 19):
        assert torch.equal(linear(x[:count]), whole[:count])


@needs_int8
@torch.inference_mode()
def test_extreme_weights_and_inputs_do_not_overflow() -> None:
    linear = nn.Linear(256, 8, bias=False)
    linear.weight.fill_(0.5)
    linear.weight[1].fill_(-0.5)
    linear.weight[2].zero_()
    x = torch.ones(4, 256) * torch.tensor([[1.0], [-1.0], [1e-3], [0.0]])
    torch.testing.assert_close(Int8Linear(linear)(x), linear(x), rtol=1e-5, atol=1e-6)


@needs_int8
@pytest.mark.parametrize("tied", [True, False])
@torch.inference_mode()
def test_a_language_model_scores_nearly_the_same(tied: bool) -> None:
    lm = language_model(tied)
    sequence = tokens(5, 20)
    expected, made = lm(sequence).log_softmax(-1), quantise(lm)(sequence).log_softmax(-1)
    error = (made - expected).abs()
    assert 0 < error.mean() < 0.03
    assert error.max() < 0.2


@needs_int8
@torch.inference_mode()
def test_a_translation_model_scores_nearly_the_same() -> None:
    nmt = translation_model()
    source, target = tokens(4, 6), tokens(4, 9)
    expected, made = nmt(source, target).log_softmax(-1), quantise(nmt)(source, target).log_softmax(-1)
    error = (made - expected).abs()
    assert 0 < error.mean() < 0.05
    assert error.max() < 0.4


@needs_int8
@torch.inference_mode()
def test_a_row_does_not_depend_on_the_rest_of_its_batch() -> None:
    lm = quantise(language_model())
    sequence = tokens(6, 12)
    together = lm(sequence)
    for row in range(6):
        torch.testing.assert_close(lm(sequence[row : row + 1])[0], together[row], atol=2e-2, rtol=0)
    # The linears themselves are exact: sums of integers have one order only.
    x = torch.randn(9, 32)
    linear = lm.get_submodule("blocks.0.attention.qkv")
    assert isinstance(linear, Int8Linear)
    assert torch.equal(torch.cat([linear(x[start : start + 2]) for start in range(0, 9, 2)]), linear(x))


@needs_int8
@torch.inference_mode()
def test_caches_work_as_before() -> None:
    lm = quantise(language_model())
    sequence = tokens(3, 12)
    cache = Cache()
    parts = [
        lm.hidden_states(part, cache=cache) for part in (sequence[:, :5], sequence[:, 5:6], sequence[:, 6:])
    ]
    torch.testing.assert_close(lm.logits(torch.cat(parts, 1)), lm(sequence), atol=2e-2, rtol=0)


@needs_int8
@pytest.mark.parametrize("make", [language_model, translation_model])
def test_every_linear_is_replaced_and_the_input_left_as_it_was(
    make: Callable[[], DocumentLM | Transformer],
) -> None:
    model = make()
    before = copy.deepcopy(model.state_dict())
    made = quantise(model)
    assert type(made) is type(model)
    assert made.config == model.config
    assert not any(isinstance(part, nn.Linear) for part in made.modules())
    assert any(isinstance(part, nn.Linear) for part in model.modules())
    assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in before.items())
    assert not any(parameter.requires_grad for parameter in made.parameters())
    for parameter in made.parameters():
        parameter.zero_()
    assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in before.items())


@needs_int8
@torch.inference_mode()
def test_quantising_twice_changes_nothing() -> None:
    once = quantise(language_model())
    sequence = tokens(2, 5)
    assert torch.equal(quantise(once)(sequence), once(sequence))


def test_a_model_on_another_device_is_refused() -> None:
    with pytest.raises(CadecError, match="int8 weights are for CPUs"):
        quantise(language_model().to("meta"))


@needs_int8
@pytest.mark.parametrize(("kind", "linear"), [(Int8Linear, coarse), (FineInt8Linear, fine)])
@pytest.mark.parametrize("bias", [True, False])
@torch.inference_mode()
def test_torchscript_gives_the_same_numbers_bit_for_bit(
    kind: type[Int8Linear], linear: Linear, bias: bool
) -> None:
    torch.manual_seed(1)
    made = kind(nn.Linear(64, 24, bias=bias))
    assert isinstance(script(linear), torch.jit.ScriptFunction)
    for shape in ((1, 64), (2, 3, 64), (8, 64), (5, 1, 17, 64)):
        x = torch.randn(shape)
        given = (x, made.weight, made.scales, made.zeros, made.bias)
        assert torch.equal(script(linear)(*given), linear(*given))


def test_what_torchscript_refuses_runs_as_it_stands() -> None:
    def strange(x: torch.Tensor, weight: object, scales: object, zeros: object, bias: object) -> torch.Tensor:
        return x + len({**vars(strange)})  # nothing that TorchScript has

    assert script(strange) is strange
