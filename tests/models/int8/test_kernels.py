"""What is compiled does what torch does, on every level of the instruction set, to every row by itself."""

import copy
import ctypes
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cadec_cli.models.configs import Shape
from cadec_cli.models.int8 import compile, kernels
from cadec_cli.models.int8.block import FusedBlock
from cadec_cli.models.int8.kernels import QuantisedRows, coarse, fine
from cadec_cli.models.int8.linear import FineInt8Linear, Int8Linear
from cadec_cli.models.layers import Block, Cache, Part, RoomyCache, attend, places_of
from cadec_cli.models.output_layer import all_log_probs, logit_log_probs, output_log_probs

# Of vectors of 8 and 16 numbers some, a part of one, and both.
WIDTHS = [1, 7, 8, 16, 24, 33, 64, 256, 771]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "swish": F.silu}


needs_compiler = pytest.mark.skipif(not compile.compilers(), reason="there is no C compiler here")
pytestmark = needs_compiler


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ctypes.CDLL | None]:
    """All levels that this CPU has, compiled from the sources as they are now."""
    directory = tmp_path_factory.mktemp("kernels")
    compile.compile_all(directory)
    return {level: kernels.load(compile.library_path(level, directory)) for level in kernels.runnable()}


@pytest.fixture(params=kernels.runnable())
def level(
    request: pytest.FixtureRequest,
    libraries: dict[str, ctypes.CDLL | None],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[str]:
    assert libraries[request.param] is not None
    monkeypatch.setattr(kernels, "library", lambda: libraries[request.param])
    with torch.inference_mode():
        torch.manual_seed(1)
        yield request.param


def meant(rounded: QuantisedRows) -> Tensor:
    """What rounded rows stand for."""
    integers = rounded.integers[: rounded.rows].float()
    return (integers - 128) * rounded.largest[:, None] / 127


def half_steps(rounded: QuantisedRows) -> Tensor:
    """How far rounding may be off, and a little more."""
    return rounded.largest[:, None] / 254 * 1.001 + 1e-6


def test_the_install_has_compiled_what_this_cpu_takes() -> None:
    assert kernels.library() is not None and kernels.level() == kernels.runnable()[0]
    assert kernels.available()


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_are_rounded_to_the_nearest(level: str, width: int) -> None:
    x = torch.randn(13, width) * torch.logspace(-6, 6, 13)[:, None]
    x[3] = 0
    made = kernels.quantise_rows(x)
    assert made.rows == 13 and made.integers.size(0) == 16
    assert torch.equal(made.largest, x.abs().amax(1).clamp(min=1e-20))
    assert ((meant(made) - x).abs() <= half_steps(made)).all()


@pytest.mark.parametrize("width", WIDTHS)
def test_long_doubles_are_numbers_afterwards(level: str, width: int) -> None:
    norm = nn.LayerNorm(width).eval()
    kernels.quantise_rows(torch.randn(13, width))
    kernels.norm_and_quantise(torch.randn(13, width), norm)
    # several at a time: the x87 unit has eight registers, and MMX would have left them occupied
    squares = [np.longdouble(number) * np.longdouble(number) for number in range(1, 10)]
    assert float(sum(squares, np.longdouble(0))) == 285


@pytest.mark.parametrize("width", WIDTHS)
def test_a_row_is_the_same_alone_and_wherever_it_stands(level: str, width: int) -> None:
    x = torch.randn(9, width)
    together = kernels.quantise_rows(x)
    norm = nn.LayerNorm(width).eval()
    normed = kernels.norm_and_quantise(x, norm)
    for row in range(9):
        elsewhere = torch.empty(width + row)[row:].copy_(x[row])[None]  # at any address
        for one, all_rows in (
            (kernels.quantise_rows(elsewhere), together),
            (kernels.norm_and_quantise(elsewhere, norm), normed),
        ):
            assert torch.equal(one.integers[0], all_rows.integers[row])
            assert one.largest[0] == all_rows.largest[row]


@pytest.mark.parametrize("width", WIDTHS)
def test_norms(level: str, width: int) -> None:
    x, norm = torch.randn(5, width) * 3 + 1, nn.LayerNorm(width)
    norm.weight.copy_(torch.randn(width))
    norm.bias.copy_(torch.randn(width))
    made = kernels.norm_and_quantise(x, norm)
    torch.testing.assert_close(made.largest, norm(x).abs().amax(1), rtol=1e-4, atol=1e-5)
    assert ((meant(made) - norm(x)).abs() <= half_steps(made) + 1e-4).all()


@pytest.mark.parametrize("width", WIDTHS)
def test_columns_are_multiplied_and_rows_rounded(level: str, width: int) -> None:
    rows, factors = torch.randn(5, width + 3)[:, :width] * 9, torch.rand(width) + 0.1
    rounded = kernels.level_and_quantise(rows, factors)
    expected = rows * factors
    torch.testing.assert_close(rounded.largest, expected.abs().amax(1))
    assert ((meant(rounded) - expected).abs() <= half_steps(rounded)).all()


@pytest.mark.parametrize("width", WIDTHS)
def test_norms_by_the_mean_of_squares(level: str, width: int) -> None:
    rows, gain = torch.randn(5, width) * 4, torch.randn(width)
    made = kernels.rms_norm(rows, gain, 1e-6)
    torch.testing.assert_close(made, F.rms_norm(rows, (width,), gain, 1e-6), rtol=1e-5, atol=1e-6)
    alone = torch.cat([kernels.rms_norm(row[None], gain, 1e-6) for row in rows])
    assert torch.equal(made, alone)
    rows[1, 0] = float("nan")
    spoilt = kernels.rms_norm(rows, gain, 1e-6)
    assert spoilt[1].isnan().all() and torch.equal(spoilt[[0, 2, 3, 4]], made[[0, 2, 3, 4]])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(level: str, name: str) -> None:
    # One row per number: then it is the largest, and comes through rounding as it is.
    x = torch.cat([torch.linspace(-12, 12, 4001), torch.tensor([-1e4, -90.0, 90.0, 1e4])])[:, None]
    product, scales, bias = x * 4 - 2, torch.full((len(x),), 0.25), torch.tensor([0.5])
    made = kernels.activate_and_quantise(
        product, QuantisedRows(torch.empty(0), scales), bias, kernels.ACTIVATIONS[name]
    )
    expected = ACTIVATIONS[name](x)
    torch.testing.assert_close(made.largest, expected.abs()[:, 0].clamp(min=1e-20), rtol=1e-5, atol=1e-6)
    assert ((meant(made) - expected).abs() <= half_steps(made)).all()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("size", [(8, 3), (64, 24), (768, 40)])
def test_linears_are_those_of_torch(level: str, bias: bool, size: tuple[int, int]) -> None:
    linear = nn.Linear(*size, bias=bias)
    x = torch.randn(2, 5, size[0])
    int8, finer = Int8Linear(linear), FineInt8Linear(linear)
    # The same integers: all that is left to differ is a product and a sum in one step, or in two.
    plain = coarse(x, int8.weight, int8.scales, int8.zeros, int8.bias)
    torch.testing.assert_close(int8(x), plain, rtol=1e-5, atol=1e-5)
    plain = fine(x, finer.weight, finer.scales, finer.zeros, finer.bias)
    torch.testing.assert_close(finer(x), plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("operation", ["rounded", "normed", "activated"])
@pytest.mark.parametrize("damage", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_spoils_its_row_and_no_other(level: str, operation: str, damage: float) -> None:
    x = torch.randn(3, 40)
    x[1, 17] = damage
    if operation == "rounded":
        made = kernels.quantise_rows(x)
    elif operation == "normed":
        made = kernels.norm_and_quantise(x, nn.LayerNorm(40))
    else:
        ones = QuantisedRows(torch.empty(0), torch.ones(3))
        made = kernels.activate_and_quantise(x, ones, torch.zeros(40), 1)
        if damage == -float("inf"):  # as good as nothing, after an activation
            return
    assert made.largest.isnan().tolist() == [False, True, False]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("vocabulary", [5, 64, 1003])
@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_log_probabilities(level: str, bias: bool, vocabulary: int, temperature: float) -> None:
    output = Int8Linear(nn.Linear(32, vocabulary, bias=bias))
    hidden = torch.randn(2, 4, 32) * 20  # some very likely, and most very unlikely
    logits = output(hidden)
    expected = (logits.double() / temperature).log_softmax(-1).float()
    made = all_log_probs(output, hidden, temperature)
    torch.testing.assert_close(made, expected, rtol=1e-5, atol=2e-5)
    rows, tokens = torch.tensor([0, 0, 2, 7]), torch.tensor([1, 4, 0, 3])
    given = (hidden.flatten(0, 1), rows, tokens, [temperature, 2.0])
    torch.testing.assert_close(output_log_probs(output)(*given)[0], made.flatten(0, 1)[rows, tokens])
    torch.testing.assert_close(
        output_log_probs(output)(*given), logit_log_probs(output)(*given), rtol=1e-5, atol=2e-5
    )


def parts_of(random: np.random.Generator, cached: int) -> tuple[Part, ...]:
    """Contexts and trees behind each other in a row, and all keys that were there before."""
    parts = []
    start = 0
    for context, nodes in ((0, 5), (7, 1), (4, 30), (30, 19)):
        parents = np.array([*range(-1, context - 1), *(random.integers(-1, i) for i in range(nodes))])
        parents[context:] += context  # a root is after the whole context
        parents[:context] = np.arange(-1, context - 1)
        own = slice(cached + start, cached + start + context + nodes)
        held = slice(0, cached)
        if context:
            read = slice(own.start, own.start + context)
            parts.append(Part(slice(start, start + context), held, read, parents[:context], asked=False))
        parts.append(Part(slice(start + context, start + context + nodes), held, own, parents))
        start += context + nodes
    return tuple(parts)


@pytest.mark.parametrize("size", [3, 8, 16, 32, 48, 64])
@pytest.mark.parametrize("cached", [0, 21])
def test_attention_in_parts(level: str, size: int, cached: int) -> None:
    parts = parts_of(np.random.default_rng(1), cached)
    for chosen in (parts, tuple(part for part in parts if part.asked)):
        length = parts[-1].queries.stop
        queries, keys, values = torch.randn(3, 1, 2, cached + length, size).unbind(0)
        queries = queries[:, :, :length]
        expected = attend(queries, keys, values, chosen).transpose(1, 2).flatten(0, 1).flatten(1)
        made = kernels.attend_in_parts_and_quantise(
            queries, keys, values, places_of(chosen), [part.parents for part in chosen]
        )
        torch.testing.assert_close(made.largest, expected.abs().amax(1), rtol=1e-4, atol=1e-5)
        assert ((meant(made) - expected).abs() <= half_steps(made) + 1e-5).all()


@pytest.mark.parametrize("size", [6, 16, 64, 256])
@pytest.mark.parametrize("sharing", [1, 2, 4, 7])
def test_attention_of_heads_that_share_their_keys(level: str, size: int, sharing: int) -> None:
    parts = tuple(part for part in parts_of(np.random.default_rng(1), 9) if part.asked)
    length = parts[-1].queries.stop
    queries = torch.randn(1, length, 2 * sharing, size).transpose(1, 2)
    keys, values = torch.randn(2, 1, 2, 9 + length, size).unbind(0)
    every_key, every_value = (each.repeat_interleave(sharing, 1) for each in (keys, values))
    expected = attend(2 * queries, every_key, every_value, parts).transpose(1, 2).flatten(0, 1).flatten(1)
    work = kernels.PartJobs.of(places_of(parts), [part.parents for part in parts])
    made = kernels.attend_in_parts(queries, keys, values, work, 2 * size**-0.5)
    torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [6, 32, 256])
@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_heads_are_split_normed_and_turned(level: str, size: int, normed: bool, biased: bool) -> None:
    rows, many, few = 7, 4, 2
    of = kernels.quantise_rows(torch.randn(rows, 5))
    product = torch.randn(8, (many + 2 * few) * size)  # with a spare row
    bias = torch.randn(product.size(1)) if biased else None
    gains = (torch.rand(size), torch.rand(size)) if normed else None
    cosine, sine = torch.randn(2, rows, size).unbind(0)
    made = kernels.split_and_turn(product, of, bias, (many, few), gains, 1e-5, (cosine, sine))
    scaled = product[:rows] * of.largest[:, None] + (0 if bias is None else bias)
    first, second = many * size, (many + few) * size
    apart = (scaled[:, :first], scaled[:, first:second], scaled[:, second:])
    for place, (found, whole) in enumerate(zip(made, apart, strict=True)):
        expected = whole.view(rows, -1, size)
        if place < 2:
            if gains is not None:
                expected = F.rms_norm(expected, (size,), gains[place], 1e-5)
            low, high = expected.chunk(2, -1)
            expected = expected * cosine[:, None] + torch.cat([-high, low], -1) * sine[:, None]
        torch.testing.assert_close(found[0].transpose(0, 1), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("gate", sorted(kernels.GATES))
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("width", [5, 64, 200])
def test_gates(level: str, gate: str, biased: bool, width: int) -> None:
    of = kernels.quantise_rows(torch.randn(3, 5) * torch.tensor([1.0, 50.0, 0.01])[:, None])
    product, factors = torch.randn(8, 2 * width), torch.rand(width)
    bias = torch.randn(2 * width) if biased else None
    made = kernels.gate_and_quantise(product, of, bias, kernels.GATES[gate], factors)
    scaled = product[:3] * of.largest[:, None] + (0 if bias is None else bias)
    own, other = scaled.chunk(2, 1)
    if gate == "swish":
        activated = F.silu(own)
    else:
        activated = F.gelu(own, approximate="tanh" if gate == "gelu_tanh" else "none")
    expected = activated * other * factors
    torch.testing.assert_close(made.largest, expected.abs().amax(1), rtol=1e-4, atol=1e-6)
    assert ((meant(made) - expected).abs() <= half_steps(made) + 1e-5).all()


def test_masks_are_where_the_network_is_and_made_once() -> None:
    part = parts_of(np.random.default_rng(1), 3)[-1]
    elsewhere = torch.empty(1, dtype=torch.float16, device="meta")
    mask = part.mask(elsewhere)
    assert (mask.device, mask.dtype) == (elsewhere.device, elsewhere.dtype)
    assert part.mask(elsewhere) is mask and part.mask(torch.empty(1)).shape == mask.shape


@pytest.mark.parametrize("size", [5, 32, 64])
@pytest.mark.parametrize("kind", ["none", "of keys", "of queries", "of all rows"])
def test_attention_by_masks(level: str, size: int, kind: str) -> None:
    queries = torch.randn(4, 6, 3, size).transpose(1, 2)
    keys, values = torch.randn(2, 4, 3, 41, size).unbind(0)
    shape = {"of keys": (4, 1, 1, 41), "of queries": (4, 1, 6, 41), "of all rows": (1, 1, 6, 41)}
    mask = torch.rand(shape[kind]) < 0.4 if kind in shape else None
    if mask is not None:
        mask[..., 0] = True
    expected = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
    expected = expected.transpose(1, 2).flatten(2).flatten(0, 1)
    made = kernels.attend_and_quantise(queries, keys, values, mask)
    torch.testing.assert_close(made.largest, expected.abs().amax(1), rtol=1e-4, atol=1e-5)
    assert ((meant(made) - expected).abs() <= half_steps(made) + 1e-5).all()


def int8_block(pre_norm: bool, activation: str) -> Block:
    block = Block(Shape(32, 2, 80, 0.0, pre_norm, activation), cross=True).eval()
    linears = [part for part in block.modules() if type(part) is nn.Linear]
    return copy.deepcopy(block, {id(linear): Int8Linear(linear) for linear in linears})


def assert_near(made: Tensor, expected: Tensor) -> None:
    """Last digits can turn a rounding, which is a step of 1 in 127."""
    torch.testing.assert_close(made, expected, atol=0.05, rtol=0)


@pytest.mark.parametrize("pre_norm", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_block_is_that_of_torch(level: str, pre_norm: bool, activation: str) -> None:
    block = int8_block(pre_norm, activation)
    fused = FusedBlock(block)
    x = torch.randn(3, 6, 32)
    source, source_mask = tuple(torch.randn(2, 3, 2, 5, 16).unbind(0)), torch.rand(3, 1, 1, 5) < 0.7
    source_mask[..., 0] = True
    context = nn.Linear(32, 32)
    for given in (
        {"causal": True},
        {"mask": torch.ones(1, 1, 6, 6, dtype=torch.bool).tril()},
        {"source": source, "source_mask": source_mask},
        {"source": source, "source_mask": source_mask, "context": context},
        {"context": context},
    ):
        given = {"mask": None, **given}
        assert_near(fused(x, **given), block(x, **given))
    for cache in (Cache, RoomyCache):
        stepped, plain = cache(), cache()
        for first, last in ((0, 4), (4, 5), (5, 6)):
            seen = torch.ones(1, 1, last - first, last, dtype=torch.bool).tril(first)
            new = x[:, first:last]
            assert_near(fused(new, seen, cache=stepped), block(new, seen, cache=plain))


def test_parts_that_are_not_asked_for_are_left_out(level: str) -> None:
    fused = FusedBlock(int8_block(True, "gelu"))
    parts = parts_of(np.random.default_rng(2), 0)
    x = torch.randn(1, parts[-1].queries.stop, 32)
    asking = tuple(part for part in parts if part.asked)
    asked = torch.cat([torch.arange(x.size(1))[part.queries] for part in asking])
    assert torch.equal(fused(x, asking, asked=asked), fused(x, parts)[:, asked])


def test_a_query_that_sees_nothing_is_nothing(level: str) -> None:
    queries, (keys, values) = torch.randn(2, 1, 3, 16), torch.randn(2, 2, 1, 5, 16).unbind(0)
    mask = torch.ones(2, 1, 3, 5, dtype=torch.bool)
    mask[1, 0, 2] = False
    made = meant(kernels.attend_and_quantise(queries, keys, values, mask))
    assert made.abs().amax(1).gt(0).tolist() == [True] * 5 + [False]


def test_one_row_of_keys_serves_many_of_queries(level: str) -> None:
    queries, (keys, values) = torch.randn(3, 2, 4, 16), torch.randn(2, 1, 2, 5, 16).unbind(0)
    each = [kernels.attend_and_quantise(one[None], keys, values, None) for one in queries]
    made = kernels.attend_and_quantise(queries, keys, values, None)
    assert torch.equal(made.largest, torch.cat([one.largest for one in each]))


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16, torch.int8])
def test_other_numbers_are_left_to_torch(level: str, kind: torch.dtype) -> None:
    x = (torch.randn(3, 16) * 10).to(kind)
    for linear, plain in ((Int8Linear(nn.Linear(16, 8)), coarse), (FineInt8Linear(nn.Linear(16, 8)), fine)):
        given = (x, linear.weight, linear.scales, linear.zeros, linear.bias)
        if kind is torch.int8:
            with pytest.raises(RuntimeError):
                linear(x)
        else:
            assert torch.equal(linear(x), plain(*given))
    some = torch.randn(1, 1, 2, 8)
    for odd in ((some.to(kind), some, some), (some, some.to(kind), some.to(kind))):
        with pytest.raises(TypeError):
            kernels.attend_and_quantise(*odd, None)
    with pytest.raises(TypeError, match="mask"):
        kernels.attend_and_quantise(some, some, some, torch.ones(1, 1, 2, 2))


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_torch_s_defaults_do_not_matter(level: str, kind: torch.dtype) -> None:
    linear, x = Int8Linear(nn.Linear(40, 8)), torch.randn(5, 40)
    norm, expected = nn.LayerNorm(40), linear(x)
    torch.set_default_dtype(kind)
    try:
        assert torch.equal(linear(x), expected)
        assert kernels.norm_and_quantise(x, norm).largest.dtype is torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_is_missing_or_none_of_ours_is_not_loaded(tmp_path: Path) -> None:
    assert kernels.load(tmp_path / "kernels-plain.so") is None
    (tmp_path / "kernels-plain.so").write_bytes(b"no library")
    assert kernels.load(tmp_path / "kernels-plain.so") is None


@pytest.mark.parametrize("change", ["other sources", "a part of it"])
def test_what_was_compiled_from_other_sources_is_not_loaded(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in compile.SOURCES:
        shutil.copyfile(compile.KERNELS / name, tmp_path / name)
    if change == "other sources":
        (tmp_path / "lanes.h").write_text((tmp_path / "lanes.h").read_text("utf-8") + "\n", "utf-8")
    else:
        (tmp_path / "attention.c").write_text("")
        monkeypatch.setattr(kernels, "identity", lambda: compile.identity(tmp_path))
    made = compile.compile_all(tmp_path, tmp_path)
    assert made and not any(map(kernels.load, made))


def test_it_can_be_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CADEC_COMPILED", "0")
    assert kernels._load_best.__wrapped__() == (None, None)


def test_a_compiler_that_fails_or_is_not_there_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    sources, into, odd = tmp_path / "sources", tmp_path / "into", tmp_path / "odd"
    into.mkdir()
    shutil.copytree(compile.KERNELS, sources)
    (sources / "rows.c").write_text("this is no C")
    compile.library_path("plain", into).write_bytes(b"of before")
    assert compile.compile_all(into, sources) == [] and not list(into.iterdir())
    assert "kernels-plain.so: " in capfd.readouterr().err
    odd.write_bytes(b"\0 no program")
    odd.chmod(0o700)
    monkeypatch.setenv("CC", str(odd))  # another one does it
    assert len(compile.compile_all(into)) >= 1 and str(odd) in capfd.readouterr().err
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC")
    assert compile.compile_all(into) == [] and capfd.readouterr().err == ""
