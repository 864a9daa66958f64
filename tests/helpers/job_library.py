"""A library of files with documents in common, and crews of all kinds that translate it in bulk."""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.decoding.preceding_context import context_of
from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.jobs.by_document import BulkTranslation, DocumentTask, DocumentWorker
from cadec_cli.jobs.in_step import SegmentRecord
from cadec_cli.jobs.outputs import OutputPlan
from cadec_cli.method.options import TranslationOptions
from cadec_cli.parallel import SerialPool, Task, WorkerPool
from cadec_cli.text.formats import read_text_file
from tests.helpers.fakes import TableLM, TableNMT

TABLE = {
    "good day sir": {"bondia": -0.5, "bondia senor": -0.9},
    "you see": {"tu": -1.0, "vu": -1.01},
    "you go": {"tu vades": -0.8, "vos vadez": -1.1},
    "a lamp": {"lampa": -0.4, "lampa vos": -0.6},
}


CALLS = {("senor", "vos"): 0.6, ("senor", "vu"): 0.4, ("vu", "vadez"): 0.7, ("vos", "vu"): 0.3}


BELOW = 0.99


BEFORE = ("bondia senor", "vos")


@dataclass
class Told:
    """What the members of a crew did."""

    documents: list[DocumentTask]


def begin(told: Told, json_lines: bool, report: bool, before: tuple[str, ...]) -> Any:
    models, options = ModelSet(TableNMT(TABLE), TableLM(CALLS)), TranslationOptions(context=3)
    translator = Translator(models, options)
    work = DocumentWorker(
        translator,
        translator.judge(BELOW),
        json_lines,
        context_of(models, options, before),
        _segment if report else None,
    )

    def counted(document: DocumentTask) -> list[Any]:
        told.documents.append(document)
        return work(document)

    return counted


def _segment(translation: Translation) -> list[Any]:
    return [translation.text, len(translation.parts)]


@dataclass(frozen=True)
class Shuffled:
    """A crew that has several documents in hand, and is done with them in any order."""

    size: int
    seed: int = 0

    def run(self, task: Task[Any, Any], items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        rng = random.Random(self.seed)
        work = task.begin(*task.arguments)
        in_hand: list[tuple[int, Any]] = []
        for numbered in enumerate(items):
            in_hand.append(numbered)
            if len(in_hand) == self.size:
                number, item = in_hand.pop(rng.randrange(len(in_hand)))
                yield number, work(item)
        rng.shuffle(in_hand)
        for number, item in in_hand:
            yield number, work(item)


@dataclass
class Library:
    """Files in a directory, and how they are translated."""

    inputs: list[Path]
    target: Path
    json_lines: bool = False
    report: bool = False
    before: tuple[str, ...] = ()
    replace: bool = False

    def __post_init__(self) -> None:
        self.told = Told([])
        self.reported: list[SegmentRecord] = []

    def bulk(self, journal: str = ".journal") -> BulkTranslation:
        outputs = tuple(self.target / path.name for path in self.inputs)
        return BulkTranslation(
            OutputPlan(outputs, self.target / journal),
            lambda number: read_text_file(self.inputs[number], language="en"),
            Task(begin, (self.told, self.json_lines, self.report, self.before)),
            {"options": "these", "json": self.json_lines},
            self.json_lines,
            self.before,
            self.replace,
            self.reported.extend if self.report else None,
        )

    def run(self, pool: WorkerPool | None = None, *, resume: bool = False, **told: Any) -> dict[str, bytes]:
        bulk = self.bulk()
        bulk.run(pool or SerialPool(), bulk.survey(), resume=resume, **told)
        return self.written()

    def written(self) -> dict[str, bytes]:
        found = self.target.iterdir() if self.target.exists() else ()
        return {path.name: path.read_bytes() for path in found}

    @property
    def sentences(self) -> int:
        return sum(len(task.document) for task in self.told.documents)


class KilledError(Exception):
    """The process is no more."""


def killed_after(library: Library, documents: int, pool: WorkerPool | None = None) -> None:
    """Translate until so many documents are done, then die."""
    bulk = library.bulk()
    begin_, arguments = bulk.task.begin, bulk.task.arguments

    def begin_and_die(*arguments: Any) -> Any:
        work = begin_(*arguments)

        def dying(document: DocumentTask) -> Any:
            if len(library.told.documents) == documents:
                raise KilledError
            return work(document)

        return dying

    bulk = replace(bulk, task=Task(begin_and_die, arguments))
    with pytest.raises(KilledError):
        bulk.run(pool or SerialPool(), bulk.survey(), resume=True)


def libraries(tmp_path: Path) -> Callable[..., Library]:
    """Write the files, and return what makes translations of them, each to a place of its own."""
    rng = random.Random(5)
    lengths = {"a.txt": (9, 4), "b.txt": (13,), "c.txt": (1, 2, 3), "empty.txt": ()}
    shared = "\n".join(rng.choices(list(TABLE), k=6))
    (tmp_path / "in").mkdir()
    for name, counts in lengths.items():
        texts = ["\n".join(rng.choices(list(TABLE), k=count)) for count in counts]
        # A document that stands in two files, but in neither as the first.
        texts += [shared] if name in ("a.txt", "c.txt") else []
        (tmp_path / "in" / name).write_text("\n\n".join(texts) + "\n" if texts else "")

    def made(target: str = "out", **how: Any) -> Library:
        return Library(sorted((tmp_path / "in").iterdir()), tmp_path / target, **how)

    return made
