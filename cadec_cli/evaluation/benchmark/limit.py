"""The machine's own limit: how many operations a job's linears ask for, and how fast this machine multiplies.

Operations are counted where they are asked for: all rows that any linear is given, logits included.
Rates are those of the same kernels with the same packed weights, called by themselves: no activation is
scaled, rounded or moved. Attention, norms and all between linears count as nothing, so no job reaches all of
its limit.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from cadec_cli.evaluation.benchmark.figures import Limit
from cadec_cli.models.int8.kernels import QuantisedRows, integer_product
from cadec_cli.models.int8.linear import FineInt8Linear, Int8Linear

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
class ProductCounts:
    """The products that were asked for."""

    calls: Counter[tuple[Shape, int]] = field(default_factory=Counter)  # by shape and rows
    kernels: dict[Shape, dict[int, Kernel]] = field(default_factory=lambda: defaultdict(dict))  # by linear
    _lock: Lock = field(default_factory=Lock)

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

    def add(self, module: nn.Module, inputs: Sequence[Tensor | QuantisedRows]) -> None:
        """Take down what a linear is asked for; other modules multiply nothing."""
        found = _product_of(module)
        if found is None:
            return
        shape, times, kernel = found
        given = inputs[0]
        rows = given.rows if isinstance(given, QuantisedRows) else given.numel() // shape.inputs
        if not rows:
            return
        with self._lock:  # rows may be computed side by side
            self.calls[shape, rows] += times
            self.kernels[shape].setdefault(id(module), kernel)


@contextmanager
def count_products() -> Iterator[ProductCounts]:
    """Count the products of what is run meanwhile, in whatever thread."""
    found = ProductCounts()
    hook = register_module_forward_pre_hook(found.add)
    try:
        yield found
    finally:
        hook.remove()


def _product_of(module: nn.Module) -> tuple[Shape, int, Kernel] | None:
    """What a linear multiplies, how often for one row, and how to do nothing but that."""
    if isinstance(module, Int8Linear):
        shape = Shape("int8", module.in_features, module.out_features)
        return shape, 2 if isinstance(module, FineInt8Linear) else 1, _integer_kernel(module)
    if isinstance(module, nn.Linear):
        weight = module.weight.detach().t()
        name = str(weight.dtype).removeprefix("torch.")
        shape = Shape(name, module.in_features, module.out_features)
        return shape, 1, lambda rows: torch.mm(rows, weight)
    return None


def _integer_kernel(linear: Int8Linear) -> Kernel:
    return lambda rows: integer_product(rows, linear.weight, linear.scales, linear.zeros)


class Rates:
    """How long plain products take here; they are to be measured in turns with what they are compared to."""

    def __init__(self, counted: Sequence[ProductCounts], own_rows: Sequence[ProductCounts] = ()) -> None:
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

    def measure(self) -> None:
        """One round more, on one core: at best, all of them have products of their own."""
        cores = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            self._measure(cores)
        finally:
            torch.set_num_threads(cores)

    @torch.inference_mode()
    def _measure(self, cores: int) -> None:
        for (shape, count), kernels in self._kernels.items():
            rows = _made_up_rows(shape, count)
            if not self._seconds[shape, count]:
                kernels[0](rows)  # what is only done the first time
            start = time.perf_counter()
            for kernel in kernels:
                kernel(rows)
            self._seconds[shape, count].append((time.perf_counter() - start) / len(kernels) / cores)

    def seconds(self, shape: Shape, rows: int) -> float:
        """Of one product, as if all cores had a part of it and none had to wait."""
        return statistics.median(self._seconds[shape, rows])

    def limit(self, counted: ProductCounts, lists: float = 0.0) -> Limit:
        """The least time for what was counted, as if all products had as many rows as they like."""
        quickest = {
            shape: min(self.seconds(shape, rows) / rows for rows in MANY_ROWS) for shape in counted.kernels
        }
        seconds = sum(counted.positions(shape) * per_row for shape, per_row in quickest.items())
        return Limit(lists, seconds, counted.operations)

    def limit_at_own_rows(self, counted: ProductCounts, lists: float = 0.0) -> Limit:
        """The least time for what was counted, in the very portions it came in."""
        seconds = sum(times * self.seconds(shape, rows) for (shape, rows), times in counted.calls.items())
        return Limit(lists, seconds, counted.operations)


def _made_up_rows(shape: Shape, count: int) -> Tensor:
    if shape.format == "int8":
        return torch.randint(1, 256, (count, shape.inputs), dtype=torch.uint8)
    rows = torch.randn(count, shape.inputs)
    return rows.to(getattr(torch, shape.format))
