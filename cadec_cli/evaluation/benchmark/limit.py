"""The machine's own limit: the operations of a job's linears, and how fast this machine multiplies.

Operations are counted at the linears: all rows that any of them is given, logits included.
Rates are those of the same kernels with the same packed weights, called by themselves: no activation is
scaled, rounded or moved. Attention, norms and everything else between linears count as free, so no job
reaches its limit.
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
# Matrices of weights that take turns with many rows. With few rows all matrices do, since the time goes into
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
    """The products that linears computed."""

    calls: Counter[tuple[Shape, int]] = field(default_factory=Counter)  # by shape and rows
    kernels: dict[Shape, dict[int, Kernel]] = field(default_factory=lambda: defaultdict(dict))  # by linear
    _lock: Lock = field(default_factory=Lock)

    @property
    def operations(self) -> dict[str, int]:
        """The operations of all calls, by number format."""
        found: Counter[str] = Counter()
        for (shape, rows), times in self.calls.items():
            found[shape.format] += shape.operations * rows * times
        return dict(found)

    def positions(self, shape: Shape) -> int:
        """The number of rows that were multiplied with weights of a shape."""
        return sum(rows * times for (own, rows), times in self.calls.items() if own == shape)

    def add(self, module: nn.Module, inputs: Sequence[Tensor | QuantisedRows]) -> None:
        """Count the products of a linear; other modules have none."""
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
    """Count the products inside a `with` statement, in any thread."""
    found = ProductCounts()
    hook = register_module_forward_pre_hook(found.add)
    try:
        yield found
    finally:
        hook.remove()


def _product_of(module: nn.Module) -> tuple[Shape, int, Kernel] | None:
    """A linear's shape, its products per row, and a function for the bare product; None for other modules."""
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
    """How long plain products take here; measure them in turns with the jobs they are compared to."""

    def __init__(self, counted: Sequence[ProductCounts], own_rows: Sequence[ProductCounts] = ()) -> None:
        """Prepare to measure all counted shapes; those of `own_rows` also with the rows they had."""
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
        """Measure one more round, on one core: at best, every core has products of its own."""
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
                kernels[0](rows)  # the first call does extra work
            start = time.perf_counter()
            for kernel in kernels:
                kernel(rows)
            self._seconds[shape, count].append((time.perf_counter() - start) / len(kernels) / cores)

    def seconds(self, shape: Shape, rows: int) -> float:
        """The seconds of one product, as if all cores had a part of it and none had to wait."""
        return statistics.median(self._seconds[shape, rows])

    def limit(self, counted: ProductCounts, lists: float = 0.0) -> Limit:
        """The least time for the counted products, as if all had their quickest number of rows."""
        quickest = {
            shape: min(self.seconds(shape, rows) / rows for rows in MANY_ROWS) for shape in counted.kernels
        }
        seconds = sum(counted.positions(shape) * per_row for shape, per_row in quickest.items())
        return Limit(lists, seconds, counted.operations)

    def limit_at_own_rows(self, counted: ProductCounts, lists: float = 0.0) -> Limit:
        """The least time for the counted products, with the rows that they had."""
        seconds = sum(times * self.seconds(shape, rows) for (shape, rows), times in counted.calls.items())
        return Limit(lists, seconds, counted.operations)


def _made_up_rows(shape: Shape, count: int) -> Tensor:
    if shape.format == "int8":
        return torch.randint(1, 256, (count, shape.inputs), dtype=torch.uint8)
    rows = torch.randn(count, shape.inputs)
    return rows.to(getattr(torch, shape.format))
