"""The parts of a pretrained network's layers with compiled operations between int8 products.

Most decoders of the last years have the same two: attention whose queries and keys are turned by their
positions, and a feed-forward with a gate. Their modules go by the same names in transformers. Here each is
one pass over the rows between two products. `fuse` replaces those modules that compute just this, which it
finds out by trying; any other module stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cadec_cli.models import parts_attention
from cadec_cli.models.int8.kernels import (
    GATES,
    attend_in_parts,
    available,
    gate_and_quantise,
    scale,
    split_and_turn,
    takes,
)
from cadec_cli.models.int8.linear import LevelInt8Linear, RMSNorm, SiblingLinear
from cadec_cli.models.layers import Part

# By how much of the largest value the result of a probe may differ: a rounding to 8 bits that goes the other
# way is far less, another computation far more.
_TOLERANCE = 0.02
_PROBE = 6  # positions
# By the names in `kernels.GATES`.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "swish": F.silu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
}


def fuse(model: nn.Module) -> int:
    """Replace the attention and the feed-forward of each layer where the result is the same; count them."""
    if not available():
        return 0
    count = 0
    for name, part in list(model.named_modules()):
        made: nn.Module | None = FusedAttention.of(part) or GatedFeedForward.of(part)
        if made is not None:
            model.set_submodule(name, made)
            count += 1
    return count


class FusedAttention(nn.Module):
    """Attention of rows in parts; anything else is left to the module that it is made of."""

    def __init__(
        self,
        attention: Any,
        inputs: LevelInt8Linear,
        heads: tuple[int, int],
        norms: tuple[RMSNorm, RMSNorm] | None,
    ) -> None:
        super().__init__()
        self.original = attention
        self._inputs, self._heads = inputs, heads
        self._gains = None if norms is None else (norms[0].gain, norms[1].gain)
        self._epsilon = 0.0 if norms is None else norms[0].epsilon
        self._scaling = getattr(attention, "scaling", None)

    @classmethod
    def of(cls, attention: Any) -> FusedAttention | None:
        """The same attention; None if it is none, or another."""
        names = ("q_proj", "k_proj", "v_proj")
        siblings = [getattr(attention, name, None) for name in names]
        inputs = _shared(siblings)
        size = getattr(attention, "head_dim", None)
        if inputs is None or not isinstance(size, int) or size % 2 or not hasattr(attention, "o_proj"):
            return None
        norms = tuple(getattr(attention, name, None) for name in ("q_norm", "k_norm"))
        known = all(isinstance(norm, RMSNorm) and len(norm.gain) == size for norm in norms)
        if not known and norms != (None, None):
            return None
        if known and norms[0].epsilon != norms[1].epsilon:  # type: ignore[union-attr]
            return None
        widths = [_width(sibling) for sibling in siblings]
        if any(width % size for width in widths) or widths[1] != widths[2] or widths[0] % widths[1]:
            return None
        heads = (widths[0] // size, widths[1] // size)
        made = cls(attention, inputs, heads, norms if known else None)  # type: ignore[arg-type]
        x, cosine, sine = (
            _noise(1, _PROBE, width, seed) for seed, width in enumerate((inputs.in_features, size, size))
        )
        line = Part(slice(0, _PROBE), slice(0, 0), slice(0, _PROBE), torch.arange(-1, _PROBE - 1).numpy())

        def attend(module: nn.Module) -> Tensor:
            with parts_attention.attention_in_parts([line]):
                result: Tensor = module(
                    hidden_states=x,
                    position_embeddings=(cosine, sine),
                    attention_mask=None,
                    past_key_values=None,
                )[0]
                return result

        return made if _agree(attend, attention, made) else None

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor] | None = None,
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        **more: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """(1, T, D) → (1, T, D), as in transformers."""
        row = parts_attention.current_row()
        if row is None or position_embeddings is None or not takes(hidden_states):
            made: tuple[Tensor, Tensor | None] = self.original(
                hidden_states=hidden_states,
                position_embeddings=position_embeddings,
                attention_mask=attention_mask,
                past_key_values=past_key_values,
                **more,
            )
            return made
        rows = self._inputs.round_rows(hidden_states[0])
        queries, keys, values = split_and_turn(
            self._inputs(rows),
            rows,
            self._inputs.bias,
            self._heads,
            self._gains,
            self._epsilon,
            (position_embeddings[0][0], position_embeddings[1][0]),
        )
        if past_key_values is not None:
            keys, values = past_key_values.update(keys, values, self.original.layer_idx)
        attended = attend_in_parts(queries, keys, values, row.jobs, self._scaling)
        return self.original.o_proj(attended[None]), None


class GatedFeedForward(nn.Module):
    """A feed-forward with a gate, of int8 linears."""

    def __init__(self, original: Any, inputs: LevelInt8Linear, gate: int) -> None:
        super().__init__()
        self.original = original
        self._inputs, self._gate = inputs, gate

    @classmethod
    def of(cls, feed_forward: Any) -> GatedFeedForward | None:
        """The same feed-forward; None if it is none, or another."""
        inputs = _shared([getattr(feed_forward, name, None) for name in ("gate_proj", "up_proj")])
        activation = getattr(feed_forward, "act_fn", None)
        if inputs is None or activation is None:
            return None
        if type(getattr(feed_forward, "down_proj", None)) is not LevelInt8Linear:
            return None
        probe = torch.linspace(-6, 6, 101)
        noise = _noise(1, _PROBE, inputs.in_features)
        for name, gate in ACTIVATIONS.items():
            if torch.allclose(activation(probe), gate(probe), atol=1e-6):
                made = cls(feed_forward, inputs, GATES[name])
                return made if _agree(lambda module: module(noise), feed_forward, made) else None
        return None

    def forward(self, x: Tensor) -> Tensor:
        """(…, D) → (…, D)."""
        if not takes(x):
            made: Tensor = self.original(x)
            return made
        rows = self._inputs.round_rows(x.reshape(-1, x.size(-1)))
        down = self.original.down_proj
        inner = gate_and_quantise(self._inputs(rows), rows, self._inputs.bias, self._gate, down.factors)
        return scale(down(inner), inner, down.bias).view(*x.shape[:-1], -1)


def _shared(siblings: Sequence[Any]) -> LevelInt8Linear | None:
    """The linear that has the outputs of just these siblings, in their order."""
    if not all(isinstance(sibling, SiblingLinear) for sibling in siblings):
        return None
    linear = siblings[0].shared.linear
    end = 0
    for sibling in siblings:
        if sibling.shared is not siblings[0].shared or sibling.columns.start != end:
            return None
        end = sibling.columns.stop
    return linear if type(linear) is LevelInt8Linear and end == linear.out_features else None


def _width(sibling: Any) -> int:
    return int(sibling.columns.stop - sibling.columns.start)


def _noise(*shape: int) -> Tensor:
    *sizes, seed = shape if len(shape) > 3 else (*shape, 0)
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


@torch.inference_mode()
def _agree(run: Callable[[nn.Module], Tensor], original: nn.Module, made: nn.Module) -> bool:
    """Tell whether two modules give the same result."""
    try:
        expected, found = run(original), run(made)
    except Exception:  # modules of an architecture that we do not know can fail in any way
        return False
    if expected.shape != found.shape:
        return False
    return bool((found - expected).abs().max() <= _TOLERANCE * expected.abs().max())
