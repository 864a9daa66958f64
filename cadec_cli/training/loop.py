"""The training loop: updates, checkpoints and limits. The `Task` holds the model and its data.

A run can be killed at any moment and continued to the same weights, bit for bit (CPU, one process): the
data order and the dropout of an update depend only on the seed and the update's number; the rest is in
the checkpoint. `torchrun` may start several processes, which average their gradients.

Development BLEU of an S-NMT is that of `greedy` translations.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from cadec_cli.data.batches import NO_LABEL, Batch, Examples, Update, in_order, plan_updates
from cadec_cli.data.shards import Shard
from cadec_cli.errors import CadecError, option
from cadec_cli.models.layers import Cache
from cadec_cli.models.storage import Model, fill, save_model
from cadec_cli.models.transformer import Transformer
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.subwords import BOS, EOS, PAD
from cadec_cli.training.checkpoints import Checkpoints, Evaluation, Progress
from cadec_cli.training.metrics import Metrics, Pace, Reporter, perplexity
from cadec_cli.training.presets import TrainingOptions

# The loss of a batch, summed over its labels.
Loss = Callable[[nn.Module, Batch], Tensor]


def cross_entropy(label_smoothing: float = 0.0) -> Loss:
    """−log p(label), for a network that takes its inputs and a selection of positions, and returns logits."""

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        select = batch.labels != NO_LABEL
        logits = model(*batch.inputs, select)  # (labels, V)
        return F.cross_entropy(
            logits.float(), batch.labels[select], reduction="sum", label_smoothing=label_smoothing
        )

    return loss


def learning_rate(options: TrainingOptions, update: int) -> float:
    """The learning rate of an update, counted from 1: linear warm-up to the peak, then the schedule."""
    warmup = max(options.warmup, 1)
    if update < warmup:
        return options.learning_rate * update / warmup
    if options.schedule == "inverse-sqrt":
        return options.learning_rate * math.sqrt(warmup / update)
    if options.schedule == "cosine":
        done = min(1.0, (update - warmup) / max(options.max_updates - warmup, 1))
        return options.learning_rate * 0.5 * (1 + math.cos(math.pi * done))
    if options.schedule == "cooldown":
        # Constant, then linear to 0 over the last fifth, so that the end can be moved until then.
        left = (options.max_updates - update) / max(options.max_updates / 5, 1)
        return options.learning_rate * min(1.0, max(0.0, left))
    return options.learning_rate


@dataclass(frozen=True)
class Task:
    """A model and its training data; `bleu` translates the dev data, for models that translate.

    Parameters that require no gradient are not trained.
    """

    model: Model
    examples: Examples
    dev: Examples
    loss: Loss
    dev_loss: Loss
    pipelines: Mapping[str, str]
    bleu: Callable[[Model], float] | None = None
    save: Callable[[Path, Model, Mapping[str, str]], None] = save_model  # how the finished model is written


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    reason: str
    progress: Progress
    interrupted: bool = False
    averaged: tuple[int, ...] = ()


def train(
    task: Task,
    options: TrainingOptions,
    directory: Path,
    device: torch.device,
    processes: Processes,
    reporter: Reporter,
) -> Outcome:
    """Train from the newest checkpoint in `directory`, or from the start, until a limit is reached.

    Writes checkpoints/, metrics.jsonl and, at the end, model/: the average of the best checkpoints.
    """
    task.model.to(device)
    optimizer = torch.optim.AdamW(
        [parameter for parameter in task.model.parameters() if parameter.requires_grad],
        lr=options.learning_rate,
        betas=(0.9, options.beta2),
        weight_decay=options.weight_decay,
        fused=True,
    )
    checkpoints = Checkpoints(directory / "checkpoints", task.pipelines, reporter.warn)
    if processes.first:
        checkpoints.clear_dead()
    processes.barrier()  # so that all find the same checkpoints
    progress = checkpoints.resume(task.model, optimizer, first=processes.first)
    metrics = Metrics(
        directory / "metrics.jsonl" if processes.first else None, progress.update, reporter.warn
    )
    pace = Pace(options, task.examples.tokens / options.update_tokens)
    stepper = Stepper(task, options, optimizer, device, processes)
    started = time.monotonic() - progress.seconds

    def evaluate() -> None:
        evaluation = Evaluation(
            progress.update,
            dev_loss(task, options.batch_tokens, device, processes),
            _bleu(task, processes) if options.stop_on == "bleu" else None,
        )
        progress.evaluations.append(evaluation)
        metrics.write(
            {
                "update": progress.update,
                "dev_loss": evaluation.loss,
                "dev_perplexity": perplexity(evaluation.loss),
                **({"dev_bleu": evaluation.bleu} if evaluation.bleu is not None else {}),
            }
        )
        best = progress.best(options.stop_on, 1)[0] == evaluation
        line = pace.evaluation(evaluation, best, progress)
        if processes.first:
            reporter.note(line)

    def save() -> None:
        progress.seconds = time.monotonic() - started
        if processes.first:
            checkpoints.save(task.model, optimizer, progress)
            checkpoints.prune(progress, options.stop_on, options.keep_best)
        processes.barrier()

    session = time.monotonic()
    with reporter.running() if processes.first else contextlib.nullcontext(), _stop_signals() as stop:
        for update in _updates(task.examples, options, progress):
            reason = _limit(options, progress, session)
            wanted, stopped = processes.total(float(reason == "max_minutes"), float(stop.is_set))
            if stopped:
                save()
                return Outcome("interrupted", progress, interrupted=True)
            if reason or wanted:
                break
            loss = stepper.step(update, progress.update + 1)
            if not math.isfinite(loss):
                raise CadecError(
                    f"the loss is {loss} after update {progress.update + 1}",
                    f"try a lower {option('learning-rate')} or a longer {option('warmup')}; the last "
                    "checkpoint is good",
                )
            progress.update += 1
            progress.update_in_epoch += 1
            progress.tokens += update.tokens
            rate = learning_rate(options, progress.update)
            report = pace.step(progress, loss, rate)
            if processes.first:
                reporter.update(report)
            if progress.update % options.log_every == 0:
                metrics.write(
                    {
                        "update": progress.update,
                        "epoch": progress.epoch,
                        "loss": loss,
                        "learning_rate": rate,
                        "tokens": progress.tokens,
                        "tokens_per_second": round(report.tokens_per_second, 1),
                        "seconds": round(time.monotonic() - started, 1),
                    }
                )
            if due := progress.update % options.evaluate_every == 0:
                evaluate()
            if due or progress.update % options.checkpoint_every == 0:
                save()
        reason = _limit(options, progress, session) or "max_minutes"
        if not progress.evaluations or progress.evaluations[-1].update != progress.update:
            evaluate()
        save()
    averaged = _finish(task, checkpoints, options, progress, directory, processes)
    return Outcome(reason, progress, averaged=averaged)


class Stepper:
    """Does one update: accumulates gradients over its batches and over all processes, then steps Adam."""

    def __init__(
        self,
        task: Task,
        options: TrainingOptions,
        optimizer: torch.optim.Optimizer,
        device: torch.device,
        processes: Processes,
    ) -> None:
        self._task, self._options, self._optimizer = task, options, optimizer
        self._device, self._processes = device, processes
        network = processes.wrap(task.model)
        # torch.compile gives a callable with the module's interface, typed as a callable
        self._network: nn.Module = torch.compile(network, dynamic=True) if options.compile else network  # type: ignore[assignment]

    def step(self, update: Update, number: int) -> float:
        """Make an update, and return the mean loss of its labels before it."""
        processes, options = self._processes, self._options
        torch.manual_seed((options.seed << 32) + number * processes.count + processes.rank)
        self._task.model.train()
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate(options, number)
        own = update.batches[processes.rank :: processes.count]
        # With more processes than batches, idle ones run a batch with weight 0: all must exchange gradients.
        batches, weight = (own, 1.0) if own else (update.batches[:1], 0.0)
        total = 0.0
        for index, examples in enumerate(batches):
            batch = self._task.examples.batch(examples).to(self._device)
            with self._meeting(index == len(batches) - 1), autocast(self._device, options.precision):
                loss = self._task.loss(self._network, batch)
            # DDP averages gradients over processes; they should be summed.
            with self._meeting(index == len(batches) - 1):
                # torch has no types for backward
                (loss * (weight * processes.count / update.tokens)).backward()  # type: ignore[no-untyped-call]
            total += weight * loss.item()
        if options.clip:
            nn.utils.clip_grad_norm_(self._task.model.parameters(), options.clip)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return processes.total(total)[0] / update.tokens

    def _meeting(self, last: bool) -> contextlib.AbstractContextManager[object]:
        """Exchange gradients with the other processes in the last batch only."""
        if self._processes.count == 1 or last:
            return contextlib.nullcontext()
        # with several processes the network is DDP's wrapper, which has no_sync
        return self._network.no_sync()  # type: ignore[operator, no-any-return]


def dev_loss(task: Task, batch_tokens: int, device: torch.device, processes: Processes) -> float:
    """Mean loss of the dev data's labels."""
    task.model.eval()
    total = tokens = 0.0
    batches = in_order(task.dev, batch_tokens)
    labels = task.dev.labels()
    with torch.inference_mode():
        for examples in batches[processes.rank :: processes.count]:
            total += task.dev_loss(task.model, task.dev.batch(examples).to(device)).item()
            tokens += int(labels[examples].sum())
    total, tokens = processes.total(total, tokens)
    return total / tokens


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[object]:
    """A context with bfloat16, if that is the precision, or if it is `auto` and the GPU has it."""
    half = precision == "bfloat16" or (
        precision == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported()
    )
    return torch.autocast(device.type, torch.bfloat16) if half else contextlib.nullcontext()


def _updates(examples: Examples, options: TrainingOptions, progress: Progress) -> Iterator[Update]:
    """The updates after `progress`, epoch after epoch, without end."""
    while True:
        planned = plan_updates(
            examples,
            batch_tokens=options.batch_tokens,
            update_tokens=options.update_tokens,
            seed=options.seed,
            epoch=progress.epoch,
        )
        yield from itertools.islice(planned, progress.update_in_epoch, None)
        progress.epoch += 1
        progress.update_in_epoch = 0


def _limit(options: TrainingOptions, progress: Progress, session: float) -> str | None:
    """The limit that has been reached, if any."""
    if progress.update >= options.max_updates:
        return "max_updates"
    if options.max_epochs and progress.epoch >= options.max_epochs:
        return "max_epochs"
    if options.patience and progress.since_best(options.stop_on) >= options.patience:
        return "patience"
    if options.max_minutes and time.monotonic() - session >= options.max_minutes * 60:
        return "max_minutes"
    return None


def _bleu(task: Task, processes: Processes) -> float:
    assert task.bleu is not None
    task.model.eval()
    return processes.total(task.bleu(task.model) if processes.first else 0.0)[0]


def _finish(
    task: Task,
    checkpoints: Checkpoints,
    options: TrainingOptions,
    progress: Progress,
    directory: Path,
    processes: Processes,
) -> tuple[int, ...]:
    state, updates = checkpoints.average(progress, options.stop_on, options.keep_best)
    fill(task.model, state, checkpoints.directory)
    if processes.first:
        task.save(directory / "model", task.model, task.pipelines)
    processes.barrier()
    return tuple(updates)


class _Stop:
    is_set = False


@contextlib.contextmanager
def _stop_signals() -> Iterator[_Stop]:
    """Turn Ctrl-C and SIGTERM into a request to save and stop; a second Ctrl-C interrupts at once."""
    stop = _Stop()

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.is_set and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.is_set = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class Processes:
    """This process among all processes that train one model."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Tell whether this process writes files and reports progress for all."""
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """Return a network whose gradients are averaged over all processes."""
        return DistributedDataParallel(model) if self.count > 1 else model

    def total(self, *values: float) -> list[float]:
        """Return the sum of each value over all processes."""
        if self.count == 1:
            return list(values)
        device = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else None
        tensor = torch.tensor(values, dtype=torch.float64, device=device)
        dist.all_reduce(tensor)
        return tensor.tolist()

    def barrier(self) -> None:
        """Wait until every process has reached this point."""
        if self.count > 1:
            dist.barrier()


@contextlib.contextmanager
def join_processes(device: torch.device) -> Iterator[Processes]:
    """Join the processes that `torchrun` started; without `torchrun`, there is one."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes()
        return
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Processes(dist.get_rank(), count)
    finally:
        dist.destroy_process_group()


@torch.inference_mode()
def greedy(model: Transformer, sources: Sequence[Sequence[int]], batch: int = 64) -> list[list[int]]:
    """Translate sentences (ids without EOS) by the likeliest token at every step, up to 2 × length + 10."""
    order = sorted(range(len(sources)), key=lambda index: len(sources[index]))
    translations: list[list[int]] = [[] for _ in sources]
    for start in range(0, len(order), batch):
        part = order[start : start + batch]
        for index, ids in zip(part, _greedy_batch(model, [sources[index] for index in part]), strict=True):
            translations[index] = ids
    return translations


def _greedy_batch(model: Transformer, sources: Sequence[Sequence[int]]) -> list[list[int]]:
    device = model.output.weight.device
    longest = max(map(len, sources)) + 1
    rows = [[*source, EOS, *[PAD] * (longest - len(source) - 1)] for source in sources]
    encoded = model.encode(torch.tensor(rows, device=device))
    cache = Cache()
    token = torch.full((len(sources), 1), BOS, device=device)
    done = torch.zeros(len(sources), dtype=torch.bool, device=device)
    chosen: list[Tensor] = []
    for _ in range(min(2 * longest + 10, model.config.positions)):
        token = model.logits(model.hidden_states(token, encoded, cache)[:, -1]).argmax(-1, keepdim=True)
        token[done] = EOS
        done |= token[:, 0] == EOS
        if done.all():
            break
        chosen.append(token)
    table = torch.cat(chosen, 1).tolist() if chosen else [[] for _ in sources]
    return [row[: row.index(EOS)] if EOS in row else row for row in table]


def corpus_bleu(
    model: Transformer, shards: Sequence[Shard], target: TextPipeline, limit: int = 1000
) -> float:
    """sacreBLEU of greedy translations of (at most `limit`) pairs, evenly spaced over each shard."""
    from sacrebleu.metrics.bleu import BLEU

    sources, references = [], []
    for shard in shards:
        source_side, target_side = shard.sides
        for index in np.unique(np.linspace(0, len(shard) - 1, limit // len(shards), dtype=int)):
            sources.append(source_side.sentence(index)[:-1].tolist())
            references.append(target.decode(target_side.sentence(index)[:-1].tolist()))
    hypotheses = [target.decode(ids) for ids in greedy(model, sources)]
    return float(BLEU().corpus_score(hypotheses, [references]).score)
