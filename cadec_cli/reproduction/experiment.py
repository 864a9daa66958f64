"""The whole experiment as steps: texts, models, bundles, tuning, translations, figures; at every scale."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cadec_cli.bundle.manifest import DOCUMENT_KINDS
from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import write_json
from cadec_cli.fs.read import read_json
from cadec_cli.reproduction import corpora, toy_corpora
from cadec_cli.reproduction.corpora import paper_texts
from cadec_cli.reproduction.measurements import tuned_flags, write_speed
from cadec_cli.reproduction.scales import (
    ALONE,
    AUGMENTED,
    BY_NAME,
    FEWER,
    FIRST,
    SYSTEMS,
    TUNED,
    ExperimentPaths,
    System,
)
from cadec_cli.reproduction.steps import Command, Plan, Step, flags


@dataclass(frozen=True)
class Experiment(ExperimentPaths):
    """A scale at work in a directory."""

    _steps: list[Step] = field(default_factory=list, init=False)

    def plan(self) -> Plan:
        """All steps."""
        self._steps.clear()
        self._texts()
        self._first_models()
        self._pseudo_parallel()
        self._document_models()
        self._bundles()
        for objective in TUNED:
            self._tuning(objective)
        for system in SYSTEMS:
            self._system(system)
        self._contrastive()
        self._pmi()
        return Plan(self.work, tuple(self._steps))

    def _add(
        self,
        name: str,
        output: Path,
        *needs: str,
        command: Sequence[object] | Callable[[], Command] = (),
        make: Callable[[], None] | None = None,
        captured: bool = False,
        minutes: float = 0.0,
    ) -> None:
        line = command if callable(command) else tuple(str(part) for part in command) or None
        self._steps.append(Step(name, output, needs, line, make, captured, minutes))

    def _pipeline(self, side: str) -> Path:
        return self.work / "pipelines" / side

    @property
    def _both(self) -> tuple[Path, Path]:
        return self._pipeline(self.scale.source_language), self._pipeline(self.scale.target_language)

    def _texts(self) -> None:
        scale = self.scale
        ready = self.text("ready")
        if scale.name == "paper":
            assert self.data is not None
            paper_texts(self, self._add)
        else:
            make = self._made_up_texts if scale.name == "toy" else self._small_texts
            self._add("texts", ready, make=make)
        for column, language in enumerate((scale.source_language, scale.target_language), 1):
            self._add(
                f"pipeline {language}",
                self._pipeline(language),
                "texts",
                command=(
                    *("train", "tokenizer", self.text("pairs.tsv"), *flags(column=column), "-l", language),
                    *flags(vocab_size=scale.vocabulary, processes=scale.processes, **scale.tokenizer),
                    *("-o", self._pipeline(language)),
                ),
                minutes=1 if scale.name != "toy" else 0,
            )

    def _made_up_texts(self) -> None:
        sizes = self.scale.sizes
        toy_corpora.write_pairs(self.text("pairs.tsv"), toy_corpora.documents(sizes["pairs"], seed=1))
        monolingual = toy_corpora.documents(sizes["documents"], seed=2)
        toy_corpora.write_side(self.text("documents.txt"), monolingual, 1)
        toy_corpora.write_side(self.text("source.txt"), monolingual, 0)
        toy_corpora.write_side(self.text("fewer.txt"), monolingual[: sizes["fewer"]], 1)
        toy_corpora.write_side(self.text("augmented.txt"), monolingual[: 2 * sizes["fewer"]], 1)
        for name, seed in (("tuning", 3), ("test", 4)):
            documents = toy_corpora.documents(sizes[name], seed)
            for side, path in enumerate(self.aligned_paths(name)):
                toy_corpora.write_side(path, documents, side)
        for kind in self.scale.contrastive:
            toy_corpora.write_groups(self.text(f"{kind}.jsonl"), kind, sizes["groups"], seed=5)
        self.text("ready").touch()

    def _small_texts(self) -> None:
        assert self.data is not None
        corpora.check_small_corpora(self.data)
        sizes = self.scale.sizes
        corpora.write_pairs(self.data, self.text("pairs.tsv"), sizes["pairs"])
        for name in ("documents", "fewer", "augmented"):
            corpora.write_monolingual(self.data, self.text(f"{name}.txt"), sizes[name])
        for part, name in enumerate(("tuning", "test")):
            corpora.write_aligned(self.data, self.aligned_paths(name), part=part, most=sizes[name])
        self.text("ready").touch()

    def _corpus(self, name: str, text: Path, languages: Sequence[str], needs: str, **options: object) -> None:
        """A prepared corpus, with some of it held out."""
        output = self.work / "data" / name
        pipelines = [flag for language in languages for flag in ("-p", self._pipeline(language))]
        every = 20 if self.scale.name == "toy" else 200
        self._add(
            f"corpus {name}",
            output,
            needs,
            *(f"pipeline {language}" for language in dict.fromkeys(languages)),
            command=(
                # --force, since an interrupted run may have left the held-out part
                *("prepare", "text", text, *pipelines, *flags(lines=True, force=True, **options)),
                *flags(processes=self.scale.processes, dev_output=f"{output}-dev", dev_every=every),
                *("-o", output),
            ),
            minutes=1 if self.scale.name != "toy" else 0,
        )

    def _train(
        self,
        name: str,
        kind: str,
        corpora: Sequence[str],
        dev: str = "",
        needs: str = "",
        **options: object,
    ) -> None:
        training = self.scale.trainings[name]
        data = [self.work / "data" / corpus for corpus in corpora]
        held_out = self.work / "data" / f"{(dev or corpora[0]).partition('=')[0]}-dev"
        self._add(
            f"train {name}",
            self.run(name) / "model",
            *(f"corpus {corpus.partition('=')[0]}" for corpus in dict.fromkeys((*corpora, dev)) if corpus),
            *((needs,) if needs else ()),
            command=(
                *(
                    "train",
                    kind,
                    *flags(data=data, dev=held_out, preset=self.scale.preset, **training.options),
                ),
                *flags(max_updates=training.updates, threads=self.scale.threads, **options),
                *("-o", self.run(name)),
            ),
            minutes=training.updates / training.per_minute,
        )

    def _first_models(self) -> None:
        source, target = self.scale.source_language, self.scale.target_language
        cleaning: dict[str, object] = {"documents": self.scale.name != "small"}
        if self.scale.name == "small":
            cleaning |= {"max_words": 60, "max_ratio": 3, "drop_duplicates": True, "check_script": True}
        pairs = self.text("pairs.tsv")
        self._corpus("pairs", pairs, (source, target), needs="texts", columns="1,2", **cleaning)
        self._corpus("reverse", pairs, (target, source), needs="texts", columns="2,1", **cleaning)
        for name in ("documents", "fewer"):
            self._corpus(name, self.text(f"{name}.txt"), (target,), needs="texts")
        self._train("nmt", "nmt", ["pairs"])
        self._train("reverse", "nmt", ["reverse"])
        self._train("lm", "lm", ["documents"])
        self._train("lm-fewer", "lm", ["fewer"], dev="documents")
        self._bundle(
            "reverse", needs=["train reverse"], nmt=self.run("reverse"), **self._pipelines(reverse=True)
        )
        self._bundle(
            FIRST,
            needs=["train nmt", "train lm", "bundle reverse"],
            nmt=self.run("nmt"),
            lm=self.run("lm"),
            back=self.bundle("reverse"),
            **self._pipelines(),
        )

    def _pipelines(self, reverse: bool = False) -> dict[str, object]:
        source, target = self._both[::-1] if reverse else self._both
        return {"source_pipeline": source, "target_pipeline": target}

    def _bundle(self, name: str, *start: Path, needs: Sequence[str], **options: object) -> None:
        self._add(
            f"bundle {name}",
            self.bundle(name),
            *needs,
            command=("convert", *start, *flags(**options, nbest=self.scale.nbest), "-o", self.bundle(name)),
        )

    def _pseudo_parallel(self) -> None:
        """Back-translations and round trips of target-side documents."""
        source, target = self.scale.source_language, self.scale.target_language
        for name, bundle, pair in (
            ("back-translate", "reverse", (source, target)),
            ("round-trip", FIRST, (target, target)),
        ):
            output = self.text(f"{name}.tsv")
            beam = 1 if self.scale.name == "small" else None
            self._add(
                name,
                output,
                f"bundle {bundle}",
                command=(
                    *(
                        "augment",
                        name,
                        self.text("augmented.txt"),
                        *flags(bundle=self.bundle(bundle), beam=beam),
                    ),
                    *(*self._machine(), "-o", output),
                ),
                minutes=self.scale.sizes.get("augmented", 0) / 6000,
            )
            self._corpus(name, output, pair, needs=name, columns="1,2")
        # The source side, for a D-LM of the source language.
        if self.scale.name == "toy":
            self._corpus("source", self.text("source.txt"), (source,), needs="texts")
        else:
            self._corpus(
                "source", self.text("back-translate.tsv"), (source,), needs="back-translate", columns="1"
            )
        self._train("source-lm", "lm", ["source"])

    def _document_models(self) -> None:
        # The made-up pairs have documents; elsewhere they come from back-translation.
        documents = "pairs" if self.scale.name != "small" else "back-translate"
        start = self.run("nmt")
        self._train(
            "back-translation",
            "nmt",
            ["pairs", "back-translate"],
            "pairs",
            needs="train nmt",
            start_from=start,
        )
        self._train("doc-nmt", "doc-nmt", [documents], needs="train nmt", start_from=start)
        self._train("2-to-2", "2-to-2", [documents], needs="train nmt", start_from=start)
        self._train("repair", "repair", ["round-trip"])

    def _bundles(self) -> None:
        first = self.bundle(FIRST)
        for kind in DOCUMENT_KINDS:
            self._bundle(kind, first, needs=[f"bundle {FIRST}", f"train {kind}"], **{kind: self.run(kind)})
        augmented = self.run("back-translation")
        self._bundle(AUGMENTED, first, needs=[f"bundle {FIRST}", "train back-translation"], nmt=augmented)
        self._bundle(FEWER, first, needs=[f"bundle {FIRST}", "train lm-fewer"], lm=self.run("lm-fewer"))
        self._bundle(
            "source-lm",
            needs=["train source-lm"],
            lm=self.run("source-lm"),
            target_pipeline=self._both[0],
        )

    def _machine(self) -> tuple[object, ...]:
        return flags(compute_type=self.scale.compute_type, threads=self.scale.threads)

    def _tuning(self, objective: str) -> None:
        source, target = self.aligned_paths("tuning")
        output = self.curve(objective).parent
        temperatures = ["-w", 1, *(flag for one in self.scale.temperatures for flag in ("-T", one))]
        self._add(
            f"tune {objective}",
            self.curve(objective),
            f"bundle {FIRST}",
            command=(
                *("tune", source, *flags(ref=target, bundle=self.bundle(FIRST), objective=objective)),
                *(temperatures if objective == "c-score" else ()),
                *flags(split=self.sentences_per_line or None, plot=False, save=False),
                *(*self._machine(), "-o", output),
            ),
            minutes=0 if self.scale.name == "toy" else 4,
        )

    def _system(self, system: System) -> None:
        source, target = self.aligned_paths("test")
        name, bundle = system.name, self.bundle(system.bundle)
        needs = [f"bundle {system.bundle}", *([f"tune {system.tuned}"] if system.tuned else [])]
        lines = None if self.sentences_per_line else True

        def translate() -> Command:
            tuned = tuned_flags(system, self.curve(system.tuned)) if system.tuned else ()
            objective = system.objective if system.tuned else None
            line = (
                *(
                    "translate",
                    source,
                    *flags(bundle=bundle, search=system.search, objective=objective),
                    *tuned,
                ),
                *(*flags(lines=lines), *self._machine(), "-o", self.translation(name)),
            )
            return tuple(str(part) for part in line)

        self._add(
            f"translate {name}",
            self.translation(name),
            *needs,
            command=translate,
            minutes=0 if self.scale.name == "toy" else 3,
        )
        baseline = self.translation("sentence") if name != "sentence" else None
        self._add(
            f"quality {name}",
            self.result(f"quality-{name}.jsonl"),
            *dict.fromkeys((f"translate {name}", "translate sentence")),
            command=(
                *("evaluate", self.translation(name), *flags(ref=target, baseline=baseline, json=True)),
                *("-l", self.scale.target_language),
            ),
            captured=True,
        )
        self._add(
            f"speed {name}",
            self.result(f"speed-{name}.json"),
            *needs,
            make=lambda: write_speed(self, system),
        )

    def _contrastive(self) -> None:
        """One command per bundle: all objectives that it can score, at the authors' T."""
        for bundle in dict.fromkeys(system.bundle for system in SYSTEMS):
            asked = [system.objective for system in SYSTEMS if system.bundle == bundle]
            names = dict.fromkeys([*asked, *(ALONE if bundle in (FIRST, FEWER) else ())])
            self._add(
                f"contrastive {bundle}",
                self.result(f"contrastive-{bundle}.jsonl"),
                f"bundle {bundle}",
                command=(
                    *("eval-contrastive", *self.sets, *flags(bundle=self.bundle(bundle), objective=[*names])),
                    *flags(temperature=1, json=True, threads=self.scale.threads),
                ),
                captured=True,
                minutes=0 if self.scale.name == "toy" else 2,
            )

    def _pmi(self) -> None:
        source, target = self.aligned_paths("test")
        shown = ("sentence", "rerank")
        outputs = [self.translation(name) for name in shown]
        self._add(
            "pmi",
            self.result("pmi.jsonl"),
            *("bundle source-lm", f"bundle {FIRST}", *(f"translate {name}" for name in shown)),
            command=lambda: tuple(
                str(part)
                for part in (
                    *("analyze", "pmi", source, target, *flags(source_lm=self.bundle("source-lm"))),
                    *flags(target_lm=self.bundle(FIRST), outputs=outputs, json=True),
                    *flags(threads=self.scale.threads),
                    *_figure(self.work / "figures" / "pmi.png"),
                )
            ),
            captured=True,
        )


def _figure(path: Path) -> tuple[str, ...]:
    """The flags for a picture; none without matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        return ()
    path.parent.mkdir(parents=True, exist_ok=True)
    return ("-o", str(path), *flags(force=True))  # an interrupted run may have left one


def steps_for(plan: Plan, systems: Sequence[str]) -> tuple[Step, ...]:
    """The steps that fill the rows of some systems; all steps if no system is named."""
    if not systems:
        return plan.steps
    chosen = {system.name: system for system in SYSTEMS}
    wanted = ["quality sentence", "speed sentence", f"contrastive {FIRST}"]
    for name in systems:
        wanted += [f"quality {name}", f"speed {name}", f"contrastive {chosen[name].bundle}"]
    return plan.with_dependencies(wanted)


# Starting a reproduction, or continuing one: the same settings in the same directory, or a new directory.


SETTINGS = "settings.json"


def start_experiment(
    name: str,
    work: Path,
    data: Path | None,
    *,
    effort: float = 1.0,
    sizes: Mapping[str, int] | None = None,
    threads: int = 0,
    write: bool = True,
) -> Experiment:
    """An experiment in a directory that is new, or was begun with the same settings.

    Without `effort` and `sizes`, an experiment continues with the sizes that it was begun with.
    """
    path = work / SETTINGS
    before: Any = read_json(path) if path.is_file() else None
    if isinstance(before, dict) and before.get("scale") == name and effort == 1 and not sizes:
        parts = [before.get("sizes"), before.get("updates")]
        sizes = {key: size for part in parts if isinstance(part, dict) for key, size in part.items()}
        if not all(isinstance(part, dict) for part in parts) or any(
            type(n) is not int for n in sizes.values()
        ):
            raise CadecError(f"{path} is damaged: invalid sizes", f"give a new directory to {option('work')}")
    scale = replace(BY_NAME[name].with_sizes(effort, sizes or {}), threads=threads)
    work, data = work.absolute(), data.absolute() if data is not None else None
    experiment = Experiment(scale, work, data)
    _check_data(experiment)
    settings: dict[str, Any] = {
        "scale": name,
        "data": str(data) if data is not None else None,
        "sizes": dict(scale.sizes),
        "updates": {kind: training.updates for kind, training in scale.trainings.items()},
    }
    path = work / SETTINGS
    if before is not None:
        other = [key for key in settings if not isinstance(before, dict) or before.get(key) != settings[key]]
        if other:
            raise CadecError(
                f"{work} was begun with other settings: {', '.join(other)}",
                f"give the same ones (they are in {path}), or another {option('work')}",
            )
    elif work.exists() and any(not one.name.endswith(".part") for one in work.iterdir()):
        raise CadecError(f"{work} holds something else", f"give a new directory to {option('work')}")
    elif write:
        work.mkdir(parents=True, exist_ok=True)
        write_json(path, settings)
    return experiment


def _check_data(experiment: Experiment) -> None:
    """Refuse missing or incomplete corpora before any step is run."""
    name, data = experiment.scale.name, experiment.data
    if name == "toy":
        if data is not None:
            raise CadecError("the toy scale makes its own texts", f"leave out {option('data')}")
    elif data is None:
        raise CadecError(f"the {name} scale needs corpora", f"name their directory with {option('data')}")
    elif name == "small":
        corpora.check_small_corpora(data)
    else:
        corpora.check_paper_corpora(experiment)
