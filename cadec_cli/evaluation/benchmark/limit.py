"""The machine's own limit: the operations of a job's linears, and how fast this machine multiplies.

Figures are ratios of two speeds, and shares of this limit.

Operations are counted at the linears: all rows that any of them is given, logits included.
Rates are those of the same kernels with the same packed weights, called by themselves: no activation is
scaled, rounded or moved. Attention, norms and everything else between linears count as free, so no job
reaches its limit.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from cadec_cli.models.int8.kernels import QuantisedRows, integer_product
from cadec_cli.models.int8.linear import FineInt8Linear, Int8Linear

# The share of the machine's limit that we want to reach.
SHARE_WANTED = 0.90


@dataclass(frozen=True)
class Limit:
    """The least time a job can take: that of its n-best lists, and that of its products of matrices alone."""

    lists: float  # seconds; 0 where no lists are made
    products: float  # seconds
    operations: Mapping[str, int]  # by number format

    @property
    def seconds(self) -> float:
        """The whole limit, in seconds."""
        return self.lists + self.products

    def share(self, seconds: float) -> float:
        """The limit as a share of the time that a job took."""
        return self.seconds / seconds


@dataclass(frozen=True)
class MeasuredShare:
    """How near a job comes to its limit."""

    seconds: float
    limit: Limit
    # The limit with the quickest number of rows per product, if the job's own products have fewer.
    many_rows: Limit | None = None
    wanted: float = SHARE_WANTED

    @property
    def share(self) -> float:
        """The share of the limit that is reached; 1 is the limit."""
        return self.limit.share(self.seconds)

    def as_json(self) -> dict[str, Any]:
        """The share, and the figures it was computed from."""
        found: dict[str, Any] = {
            "share": self.share,
            "wanted": self.wanted,
            "seconds": self.seconds,
            **asdict(self.limit),
        }
        if self.many_rows is not None:
            found["share with many rows"] = self.many_rows.share(self.seconds)
        return found


@dataclass(frozen=True)
class SpeedRatio:
    """One measured ratio, the ratio we want, the paper's if it has one, and the share of the limit."""

    what: str
    speed: str
    ratio: float
    wanted: float
    paper: float | None = None
    reached: MeasuredShare | None = None
    spent: Mapping[str, float] | None = None  # where the time goes: shares of it, by name

    def as_json(self) -> dict[str, Any]:
        """One object of `cadec bench --json`."""
        found: dict[str, Any] = {
            "what": self.what,
            "speed": self.speed,
            "ratio": self.ratio,
            "wanted": self.wanted,
            "paper": self.paper,
        }
        if self.reached is not None:
            found["limit"] = self.reached.as_json()
        if self.spent is not None:
            found["spent"] = dict(self.spent)
        return found


# Timing of jobs that take turns, and of parts of them.


Job = Callable[[], object]


def take_turns(jobs: Mapping[str, Job], rounds: int, *, warm: bool = False) -> dict[str, float]:
    """Median seconds of every job; they take turns, and the first round warms up, unless all are warm."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(rounds + 1 - warm):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if number or warm:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


@dataclass
class Clock:
    """The seconds of every timed call; a call inside another counts once."""

    laps: list[float] = field(default_factory=list)
    runs: bool = False

    @property
    def seconds(self) -> float:
        """The sum of all laps."""
        return sum(self.laps)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Time the body of a `with` statement."""
        if self.runs:
            yield
            return
        self.runs = True
        start = time.perf_counter()
        try:
            yield
        finally:
            self.laps.append(time.perf_counter() - start)
            self.runs = False


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
