"""The D-LM gives the same scores however its input is cut, cached, padded or laid out as a tree."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig
from cadec_cli.models.layers import Cache

TOLERANCE = 2e-5


def network(pre_norm: bool = True, tied: bool = True) -> DocumentLM:
    torch.manual_seed(1)
    config = DocumentLMConfig(
        vocabulary=40, layers=2, width=32, heads=4, inner=48, positions=64, pre_norm=pre_norm, tied=tied
    )
    return DocumentLM(config).eval()


LM = network()


def tokens(*shape: int) -> torch.Tensor:
    return torch.randint(4, 40, shape)


@pytest.mark.parametrize("pre_norm", [True, False])
@pytest.mark.parametrize("tied", [True, False])
@torch.inference_mode()
def test_prefill_and_steps_equal_one_pass(pre_norm: bool, tied: bool) -> None:
    lm = network(pre_norm, tied)
    sequence = tokens(3, 12)
    cache = Cache()
    parts = [
        lm.hidden_states(part, cache=cache) for part in (sequence[:, :5], sequence[:, 5:6], sequence[:, 6:])
    ]
    torch.testing.assert_close(lm.logits(torch.cat(parts, 1)), lm(sequence), atol=TOLERANCE, rtol=0)


@torch.inference_mode()
def test_padding_on_the_right_changes_nothing() -> None:
    sequence = tokens(1, 7)
    padded = torch.cat([sequence, torch.zeros(1, 5, dtype=torch.long)], 1)
    torch.testing.assert_close(LM(padded)[:, :7], LM(sequence), atol=TOLERANCE, rtol=0)


@torch.inference_mode()
def test_a_selection_gives_the_selected_rows_of_all_logits() -> None:
    sequence = tokens(3, 6)
    select = torch.rand(3, 6) > 0.5
    torch.testing.assert_close(LM(sequence, select), LM(sequence)[select], atol=TOLERANCE, rtol=0)


@torch.inference_mode()
def test_rows_of_a_cache_can_be_reordered_and_repeated() -> None:
    sequence = tokens(3, 6)
    cache = Cache()
    LM.hidden_states(sequence, cache=cache)
    order = torch.tensor([2, 0, 0, 1])
    step = tokens(4, 1)
    stepped = LM.logits(LM.hidden_states(step, cache=cache.rows(order)))[:, -1]
    expected = LM(torch.cat([sequence[order], step], 1))[:, -1]
    torch.testing.assert_close(stepped, expected, atol=TOLERANCE, rtol=0)


@torch.inference_mode()
def test_one_context_serves_many_continuations() -> None:
    context = tokens(1, 8)
    cache = Cache()
    LM.hidden_states(context, cache=cache)
    continuations = tokens(5, 4)
    scored = LM.logits(LM.hidden_states(continuations, cache=cache))
    expected = LM(torch.cat([context.expand(5, -1), continuations], 1))[:, 8:]
    torch.testing.assert_close(scored, expected, atol=TOLERANCE, rtol=0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-1, 8), min_size=1, max_size=9), st.integers(0, 6), st.randoms())
@torch.inference_mode()
def test_a_tree_in_one_row_equals_each_of_its_paths_alone(
    parents: list[int], context_length: int, rng: object
) -> None:
    parents = [min(parent, index - 1) for index, parent in enumerate(parents)]
    context, nodes = tokens(1, context_length + 1), tokens(1, len(parents))
    paths: list[list[int]] = []
    for index, parent in enumerate(parents):
        paths.append([*(paths[parent] if parent >= 0 else []), index])
    mask = torch.zeros(1, len(parents), context.size(1) + len(parents), dtype=torch.bool)
    mask[:, :, : context.size(1)] = True
    for index, path in enumerate(paths):
        mask[0, index, [context.size(1) + node for node in path]] = True
    positions = torch.tensor([[context.size(1) + len(path) - 1 for path in paths]])
    cache = Cache()
    LM.hidden_states(context, cache=cache)
    scored = LM.logits(LM.hidden_states(nodes, positions=positions, mask=mask, cache=cache))
    for index, path in enumerate(paths):
        alone = LM(torch.cat([context, nodes[:, path]], 1))[0, -1]
        torch.testing.assert_close(scored[0, index], alone, atol=TOLERANCE, rtol=0)


def test_a_token_never_sees_what_comes_after_it() -> None:
    sequence = tokens(1, 8)
    changed = sequence.clone()
    changed[0, 5] = (changed[0, 5] + 1 - 4) % 36 + 4
    with torch.inference_mode():
        before, after = LM(sequence), LM(changed)
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5], after[:, 5])


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ({"width": 30, "heads": 4}, "not a multiple"),
        ({"layers": 0}, "layers must be a whole number from 1"),
        ({"dropout": 1.0}, "dropout"),
        ({"activation": "sine"}, "activation"),
    ],
)
def test_a_network_that_can_not_be_built_is_refused(sizes: dict[str, Any], told: str) -> None:
    with pytest.raises(CadecError, match=told):
        DocumentLMConfig(vocabulary=40, **sizes)
