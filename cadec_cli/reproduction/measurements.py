"""The results: figures of all systems, gathered from the files that the steps wrote.

A figure that was not measured is absent.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import default_options, load_models
from cadec_cli.decoding.translator import Translator
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.tuning.search import Point, Setting, choose
from cadec_cli.fs.atomic import write_json
from cadec_cli.fs.read import read_json
from cadec_cli.method.options import named_weights, with_flags
from cadec_cli.reproduction.corpora import read_documents
from cadec_cli.reproduction.scales import ALONE, FEWER, FIRST, SYSTEMS, TUNED, ExperimentPaths, System
from cadec_cli.reproduction.steps import Say, as_made, ignore, number, read_records, seconds_of
from cadec_cli.text.sentences import split_sentences

# The results of tuning, as flags: by the best BLEU, or the strongest D-LM that does not lower it.


def chosen_point(curve: Path, protocol: str) -> tuple[Point, bool]:
    """The point that a protocol chooses, and True; if no setting keeps BLEU, the weakest D-LM, and False."""
    stored: Any = read_json(curve)
    with as_made(curve):
        level = _point(stored["sentence_level"])
        points = [_point(one) for one in stored["points"]]
        if not points:
            raise ValueError("no setting was tried")
    try:
        return choose(protocol, level, points), True
    except CadecError:
        return min(points, key=lambda point: point.setting.strength), False


def tuned_flags(system: System, curve: Path) -> tuple[str, ...]:
    """The flags of `translate` for a system."""
    return chosen_point(curve, system.protocol)[0].setting.flags


def _point(stored: dict[str, Any]) -> Point:
    setting = stored["setting"]
    named = tuple((str(name), number(value)) for name, value in setting.get("named", ()))
    temperature = number(setting["temperature"])
    if temperature <= 0:
        raise ValueError(f"a temperature of {temperature}")
    return Point(
        Setting(temperature, number(setting["weight"]), named),
        number(stored["bleu"]),
        number(stored["chrf"]),
        number(stored["changed"]),
    )


BLEU, SACREBLEU = "multi-BLEU", "BLEU"


@dataclass(frozen=True)
class Accuracy:
    """An accuracy on a contrastive set."""

    share: float
    low: float
    high: float
    chance: float
    by_distance: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Quality:
    """A score of translations; p is that of the difference from the sentence level."""

    score: float
    p: float | None = None


@dataclass(frozen=True)
class Row:
    """The figures of a system or a scorer."""

    name: str
    label: str
    scorer: str  # its name in contrastive tests
    quality: Mapping[str, Quality] = field(default_factory=dict)
    accuracies: Mapping[str, Accuracy] = field(default_factory=dict)
    per_second: float | None = None
    paper_speed: float | None = None


@dataclass(frozen=True)
class Panel:
    """A correlation between PMI, or log p, of sources and targets."""

    text: str
    value: str
    contexts: str
    points: int
    pearson: float | None
    spearman: float | None


@dataclass(frozen=True)
class Results:
    """The content of all tables."""

    scale: str
    date: str
    sizes: Mapping[str, int]
    updates: Mapping[str, int]
    sets: tuple[str, ...]
    rows: tuple[Row, ...]
    alone: tuple[Row, ...]
    panels: tuple[Panel, ...]
    tuning: Mapping[str, Mapping[str, Any]]
    minutes: float
    sentences: int | None = None
    figure: Path | None = None

    def row(self, name: str) -> Row:
        """A system's row, or a scorer's."""
        return next(row for row in (*self.rows, *self.alone) if row.name == name)

    def record(self) -> dict[str, Any]:
        """The results as plain data."""
        value = dataclasses.asdict(self)
        return {**value, "figure": str(self.figure) if self.figure is not None else None}


def collect(places: ExperimentPaths, warn: Say = ignore) -> Results:
    """Gather the existing results; `warn` is called if a file is damaged that is not needed."""
    scale = places.scale
    measured = {system.name: _quality(places, system.name) for system in SYSTEMS}
    accuracies = {
        (bundle, objective): found
        for bundle in dict.fromkeys(system.bundle for system in SYSTEMS)
        for objective, found in _accuracies(places.result(f"contrastive-{bundle}.jsonl")).items()
    }
    rows = [
        Row(
            system.name,
            system.label,
            system.scorer or system.label,
            measured[system.name],
            accuracies.get((system.bundle, system.objective), {}),
            _speed(places.result(f"speed-{system.name}.json")),
            system.paper_speed,
        )
        for system in SYSTEMS
    ]
    alone = [
        Row(f"{name}{suffix}", label + more, label + more, {}, accuracies[bundle, name])
        for bundle, suffix, more in ((FIRST, "", ""), (FEWER, "-fewer", ", fewer documents"))
        for name, label in ALONE.items()
        if (bundle, name) in accuracies
    ]
    first = places.result("quality-sentence.jsonl")
    with as_made(first):
        sentences = int(str(read_records(first)[0]["sentences"])) if first.is_file() else None
    figure = places.work / "figures" / "pmi.png"
    return Results(
        scale=scale.name,
        date=date.today().isoformat(),
        sizes=dict(scale.sizes),
        updates={name: training.updates for name, training in scale.trainings.items()},
        sets=scale.contrastive,
        rows=tuple(row for row in rows if row.quality or row.accuracies),
        alone=tuple(alone),
        panels=_panels(places.result("pmi.jsonl")),
        tuning=_tuning(places),
        minutes=round(sum(seconds_of(places.work, warn).values()) / 60, 1),
        sentences=sentences,
        figure=figure if figure.is_file() else None,
    )


def _quality(places: ExperimentPaths, name: str) -> dict[str, Quality]:
    path = places.result(f"quality-{name}.jsonl")
    if not path.is_file():
        return {}
    records: list[Any] = read_records(path)
    with as_made(path):
        against = records[1]["figures"] if len(records) > 1 else {}
        return {
            measure: Quality(
                float(figure["score"]),
                against[measure]["difference"].get("p") if measure in against else None,
            )
            for measure, figure in records[0]["figures"].items()
        }


def _accuracies(path: Path) -> dict[str, dict[str, Accuracy]]:
    """The accuracies by objective and set."""
    found: dict[str, dict[str, Accuracy]] = {}
    records: list[Any] = read_records(path) if path.is_file() else []
    with as_made(path):
        for record in records:
            by_distance = {name: number(one["accuracy"]) for name, one in record["by_distance"].items()}
            low, high = map(number, record["interval"])
            found.setdefault(record["objective"], {})[Path(record["set"]).stem] = Accuracy(
                number(record["accuracy"]), low, high, number(record["chance"]), by_distance
            )
    return found


def _speed(path: Path) -> float | None:
    stored: Any = read_json(path) if path.is_file() else {}
    with as_made(path):
        return float(stored["per_second"]) if "per_second" in stored else None


def _panels(path: Path) -> tuple[Panel, ...]:
    records: list[Any] = read_records(path) if path.is_file() else []
    with as_made(path):
        return tuple(
            Panel(
                Path(record["text"]).name,
                record["value"],
                record["contexts"],
                record["points"],
                record["pearson"],
                record["spearman"],
            )
            for record in records
            if "value" in record
        )


def _tuning(places: ExperimentPaths) -> dict[str, dict[str, Any]]:
    """The choice of each protocol, by objective; `strongest` only for objectives with a single weight."""
    found: dict[str, dict[str, Any]] = {}
    for objective in TUNED:
        curve = places.curve(objective)
        if curve.is_file():
            points = {name: chosen_point(curve, name) for name in ("best", "strongest")}
            if points["best"][0].setting.named:
                del points["strongest"]
            found[objective] = {
                name if kept else f"{name} (none keeps BLEU: the weakest)": {
                    "T": point.setting.temperature,
                    **point.setting.weights,
                    "BLEU": round(point.bleu, 2),
                }
                for name, (point, kept) in points.items()
            }
    return found


# Sentences per second of every system: the same sentences, models loaded and warm.


def write_speed(places: ExperimentPaths, system: System) -> None:
    """Time a system on the beginning of the test text."""
    scale = places.scale
    models = load_models(
        Bundle.open(places.bundle(system.bundle)),
        compute_type=scale.compute_type,
        threads=scale.threads,
    )
    flags: dict[str, object] = {"search": system.search}
    if system.tuned:
        temperature, weight = tuned_flags(system, places.curve(system.tuned))[1::2]
        flags |= {
            "objective": system.objective,
            "temperature": float(temperature),
            "weight": named_weights(weight),
        }
    translator = Translator(models, with_flags(default_options(models.bundle), flags))
    documents = _documents(places, scale.sizes.get("speed", 64))
    list(translator.translate_documents([documents[0][:2]]))  # warm up
    began = time.perf_counter()
    count = sum(1 for _ in translator.translate_documents(documents))
    seconds = time.perf_counter() - began
    record = {"sentences": count, "seconds": round(seconds, 3), "per_second": round(count / seconds, 2)}
    write_json(places.result(f"speed-{system.name}.json"), record)


def _documents(places: ExperimentPaths, most: int) -> list[list[str]]:
    """The first `most` sentences of the test text."""
    documents: list[list[str]] = []
    left = most
    for lines in read_documents(places.aligned_paths("test")[0]):
        sentences = [
            sentence
            for line in lines
            for sentence in (
                split_sentences(line, places.scale.source_language) if places.sentences_per_line else [line]
            )
        ]
        documents.append(sentences[:left])
        left -= len(documents[-1])
        if left <= 0:
            break
    if not documents:
        raise CadecError("the test text is empty")
    return documents
