"""The machine's own limit: how many operations a job's linears ask for, and how fast this machine multiplies.

Operations are counted as torch is asked for them, whoever asks: all rows of all linears, logits included.
Rates are those of the same kernels with the same packed weights, called by themselves: no activation is
scaled, rounded or moved. Attention, norms and all between linears count as nothing, so no job reaches all of
its limit.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from cadec_cli.evaluation.benchmark.figures import Limit

# Rows with which one or the other product is quickest: fewer leave a core waiting, more leave its cache.
MANY_ROWS = (128, 512)
# Weights that take turns where rows are many; with few, all weights there are do, since time goes into
# fetching them from memory.
FEW_WEIGHTS = 4


@dataclass(frozen=True)
class Shape:
    """A product of any number of rows with weights of one size."""

    format: str  # of the numbers that are multiplied
    inputs: int
    outputs: int

    @property
    def operations(self) -> int:
        """Multiplications and additions per row."""
        return 2 * self.inputs * self.outputs


Kernel = Callable[[Tensor], Tensor]  # rows of a shape, times one matrix of weights


@dataclass
class Counted:
    """The products that were asked for."""

    calls: Counter[tuple[Shape, int]] = field(default_factory=Counter)  # by shape and rows
    kernels: dict[Shape, dict[int, Kernel]] = field(default_factory=lambda: defaultdict(dict))  # by weights

    @property
    def operations(self) -> dict[str, int]:
        """Of all calls, by number format."""
        found: Counter[str] = Counter()
        for (shape, rows), times in self.calls.items():
            found[shape.format] += shape.operations * rows * times
        return dict(found)

    def positions(self, shape: Shape) -> int:
        """Rows that were multiplied with weights of a shape."""
        return sum(rows * times for (own, rows), times in self.calls.items() if own == shape)

    def add(self, rows: Tensor, outputs: int, weight: Tensor, kernel: Kernel) -> None:
        """Take one product down."""
        shape = Shape(_FORMATS.get(rows.dtype, str(rows.dtype)), rows.size(-1), outputs)
        self.calls[shape, rows.numel() // max(1, rows.size(-1))] += 1
        self.kernels[shape].setdefault(_identity(weight), kernel)


def _identity(weight: Tensor) -> int:
    # Packed weights have no address, but are never turned, so that they stay one object.
    return weight.data_ptr() if weight.layout is torch.strided else id(weight)


_FORMATS = {torch.float32: "float32", torch.uint8: "int8", torch.bfloat16: "bfloat16"}


@contextmanager
def counted() -> Iterator[Counted]:
    """Count the products of what is run meanwhile, which takes longer than it would."""
    found = Counted()
    with _Watched(found):
        yield found


class _Watched(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own
    def __init__(self, found: Counted) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._found = found

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        find = _PRODUCTS.get(str(func.overloadpacket))
        if find is not None:
            rows, weight, kernel = find(args)
            self._found.add(rows, result.size(-1), weight, kernel)
        return result


def _linear(args: Sequence[Any]) -> tuple[Tensor, Tensor, Kernel]:
    rows, weight = args[:2]
    return _product(rows, weight.t())


def _product(rows: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Kernel]:
    return rows, weight, lambda other: torch.mm(other, weight)


def _integer_product(args: Sequence[Any]) -> tuple[Tensor, Tensor, Kernel]:
    """The product as it was asked for, without all that can be done on the way out."""
    scale, zero, weight, scales, zeros = args[1:6]

    def product(rows: Tensor) -> Tensor:
        made: Tensor = torch.ops.onednn.qlinear_pointwise(
            *(rows, scale, zero, weight, scales, zeros, None, 1.0, 0, torch.float32, "none", [], "")
        )
        return made

    return args[0], weight, product


# What multiplies rows with weights, by its name in torch → (rows, weights, the product of other rows).
_PRODUCTS: Mapping[str, Callable[[Sequence[Any]], tuple[Tensor, Tensor, Kernel]]] = {
    "aten.linear": _linear,
    "aten.addmm": lambda args: _product(args[1], args[2]),  # a linear outside of inference mode
    "aten.mm": lambda args: _product(args[0], args[1]),
    "onednn.qlinear_pointwise": _integer_product,
}


class Rates:
    """How long plain products take here; they are to be measured in turns with what they are compared to."""

    def __init__(self, counted: Sequence[Counted], own_rows: Sequence[Counted] = ()) -> None:
        """Want to know of all shapes that were counted, and of some also with just the rows they had."""
        self._kernels: dict[tuple[Shape, int], list[Kernel]] = {}
        for one in (*counted, *own_rows):
            for shape, kernels in one.kernels.items():
                for rows in MANY_ROWS:
                    self._kernels.setdefault((shape, rows), list(kernels.values())[:FEW_WEIGHTS])
        for one in own_rows:
            for shape, rows in one.calls:
                self._kernels[shape, rows] = list(one.kernels[shape].values())
        self._seconds: dict[tuple[Shape, int], list[float]] = defaultdict(list)

    @torch.inference_mode()
    def measure(self) -> None:
        """One round more."""
        for (shape, count), kernels in self._kernels.items():
            rows = _made_up_rows(shape, count)
            if not self._seconds[shape, count]:
                kernels[0](rows)  # what is only done the first time
            start = time.perf_counter()
            for kernel in kernels:
                kernel(rows)
            self._seconds[shape, count].append((time.perf_counter() - start) / len(kernels))

    def seconds(self, shape: Shape, rows: int) -> float:
        """Of one product."""
        return statistics.median(self._seconds[shape, rows])

    def limit(self, counted: Counted, lists: float = 0.0) -> Limit:
        """The least time for what was counted, as if all products had as many rows as they like."""
        quickest = {
            shape: min(self.seconds(shape, rows) / rows for rows in MANY_ROWS) for shape in counted.kernels
        }
        seconds = sum(counted.positions(shape) * per_row for shape, per_row in quickest.items())
        return Limit(lists, seconds, counted.operations)

    def limit_at_own_rows(self, counted: Counted, lists: float = 0.0) -> Limit:
        """The least time for what was counted, in the very portions it came in."""
        seconds = sum(times * self.seconds(shape, rows) for (shape, rows), times in counted.calls.items())
        return Limit(lists, seconds, counted.operations)


def _made_up_rows(shape: Shape, count: int) -> Tensor:
    if shape.format == "int8":
        return torch.randint(1, 256, (count, shape.inputs), dtype=torch.uint8)
    formats = {name: kind for kind, name in _FORMATS.items()}
    return torch.randn(count, shape.inputs).to(formats.get(shape.format, torch.float32))
