"""The machine's limit: what is counted is what a hand counts, and a share is what it says."""

import itertools

import pytest
import torch
from torch import nn

from cadec_cli.engines.protocols import trie_for
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.evaluation.benchmark.limit import (
    MANY_ROWS,
    Limit,
    MeasuredShare,
    Rates,
    Shape,
    SpeedRatio,
    count_products,
)
from cadec_cli.evaluation.benchmark.speed import Networks, WordText
from cadec_cli.method.context import Context
from cadec_cli.method.options import ScoringOptions
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.models.int8.block import quantise
from cadec_cli.models.int8.linear import FineInt8Linear
from tests.helpers.bundle_parts import tiny_lm, tiny_nmt

VOCABULARY = 60
WIDTH, INNER, LAYERS = 16, 24, 2  # of tiny_lm
PER_KEYS = 2 * WIDTH * 3 * WIDTH  # and queries, and values: one linear of a layer
PER_REST = 2 * (WIDTH * WIDTH + 2 * WIDTH * INNER)  # all others of a layer
PER_POSITION = LAYERS * (PER_KEYS + PER_REST)
PER_LOGITS = 2 * WIDTH * VOCABULARY
NETWORKS = {"float32": tiny_lm(VOCABULARY), "int8": quantise(tiny_lm(VOCABULARY))}


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_trie_after_its_context_takes_as_many_operations_as_a_hand_counts(kind: str) -> None:
    model = TorchLanguageModel(NETWORKS[kind], WordText(VOCABULARY))
    hypotheses = [(5, 6, 7), (5, 6), (5, 8, 9, 10), (11,)]
    # The root, 5, 5 6, 5 6 7, 5 8, 5 8 9, 5 8 9 10, 11: after each of them comes at least the end.
    nodes = 8
    for context in (Context(), Context(((20, 21), (22,)))):
        # Its last boundary is the root.
        before = 1 + sum(len(sentence) + 1 for sentence in context.sentences) - 1
        with count_products() as found:
            model.score([trie_for(model, hypotheses)], [context], ScoringOptions())
        # Of the context, the last layer needs keys alone.
        by_hand = (before + nodes) * PER_POSITION - before * PER_REST + nodes * PER_LOGITS
        assert found.operations == {kind: by_hand}
        assert found.positions(Shape(kind, WIDTH, 3 * WIDTH)) == LAYERS * (before + nodes)
        assert found.positions(Shape(kind, WIDTH, VOCABULARY)) == nodes


def test_rows_that_are_computed_side_by_side_are_all_counted() -> None:
    model = TorchLanguageModel(NETWORKS["int8"], WordText(VOCABULARY))
    tries = [trie_for(model, [(5, 6, 7), (5, number)]) for number in range(8, 14)]
    operations = []
    threads = torch.get_num_threads()
    try:
        for cores in (1, 2):
            torch.set_num_threads(cores)
            with count_products() as found:
                model.score(tries, [Context(((20, 21),))] * len(tries), ScoringOptions())
            operations.append(found.operations)
    finally:
        torch.set_num_threads(threads)
    assert operations[0] == operations[1]


def test_a_linear_of_two_products_counts_twice() -> None:
    linear = FineInt8Linear(nn.Linear(32, 16))
    with count_products() as found:
        linear(torch.ones(3, 32))
    assert found.operations == {"int8": 2 * 3 * 2 * 32 * 16}


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_a_linear_counts_the_same_in_every_mode(mode: type[torch.no_grad]) -> None:
    for linear in (nn.Linear(8, 12), nn.Linear(8, 12, bias=False)):
        with mode(), count_products() as found:
            linear(torch.ones(3, 2, 8))
            linear(torch.ones(1, 2, 8))
        assert found.operations == {"float32": 8 * 2 * 8 * 12}
        assert sum(found.calls.values()) == 2
        assert len(found.kernels[Shape("float32", 8, 12)]) == 1  # the same weights


def test_both_kinds_of_numbers_are_counted_apart_and_nothing_outside() -> None:
    networks = Networks.of(tiny_nmt(50, VOCABULARY), NETWORKS["float32"])
    tokens = torch.tensor([[3, 4, 5]])
    networks.lm(tokens)
    with torch.inference_mode(), count_products() as found:
        networks.lm(tokens)
        networks.lm_int8(tokens)
    networks.lm(tokens)
    each = 3 * (PER_POSITION + PER_LOGITS)
    assert found.operations == {"float32": each, "int8": each}


@pytest.mark.parametrize("kind", NETWORKS)
def test_kernels_by_themselves_are_the_network_s_own_products(kind: str) -> None:
    network = NETWORKS[kind]
    with torch.inference_mode(), count_products() as found:
        network(torch.tensor([[3, 4, 5, 6]]))
    assert set(found.kernels) == {shape for shape, _ in found.calls}
    for shape, kernels in found.kernels.items():
        made = 1 if shape.outputs == VOCABULARY else LAYERS
        assert len(kernels) == made, shape
        rows = torch.ones(5, shape.inputs, dtype=torch.uint8 if kind == "int8" else torch.float32)
        for kernel in kernels.values():
            assert kernel(rows).shape == (5, shape.outputs)


def test_a_limit_is_the_time_of_lists_and_of_products_one_by_one() -> None:
    network = NETWORKS["float32"]
    with torch.inference_mode(), count_products() as found:
        network(torch.tensor([[3, 4, 5, 6]]))
        network(torch.tensor([[3, 4]]))
    rates = Rates([], own_rows=[found])
    for _ in range(3):
        rates.measure()
    for limit in (rates.limit(found, 0.25), rates.limit_at_own_rows(found, 0.25)):
        assert limit.lists == 0.25 and limit.seconds == 0.25 + limit.products
        assert limit.operations == found.operations
    shapes = [shape for shape, _ in found.calls]
    by_hand = sum(
        found.calls[shape, rows] * rates.seconds(shape, rows)
        for shape, rows in itertools.product(dict.fromkeys(shapes), (4, 2))
    )
    assert rates.limit_at_own_rows(found).products == pytest.approx(by_hand)
    best = sum(
        found.calls[shape, rows] * rows * min(rates.seconds(shape, many) / many for many in MANY_ROWS)
        for shape, rows in found.calls
    )
    assert rates.limit(found).products == pytest.approx(best)


def test_a_share_is_the_limit_over_the_time_taken() -> None:
    limit = Limit(lists=1.0, products=2.0, operations={"int8": 7})
    reached = MeasuredShare(4.0, limit, many_rows=Limit(0.0, 1.0, {"int8": 7}))
    assert reached.share == 0.75
    figure = SpeedRatio("beam", "1 / 2", 0.5, 0.4, reached=reached).as_json()
    assert figure["limit"] == {
        "share": 0.75,
        "wanted": 0.90,
        "seconds": 4.0,
        "lists": 1.0,
        "products": 2.0,
        "operations": {"int8": 7},
        "share with many rows": 0.25,
    }
    assert "limit" not in SpeedRatio("beam", "1 / 2", 0.5, 0.4).as_json()


def test_networks_are_what_the_hand_counted() -> None:
    for network in NETWORKS.values():
        assert isinstance(network, DocumentLM)
        config = network.config
        assert (config.width, config.inner, config.layers) == (WIDTH, INNER, LAYERS)
