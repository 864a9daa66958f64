"""The three scales: how much of everything, from which texts, and about how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from cadec_cli.errors import CadecError

SCALES = ("toy", "small", "paper")

Options = Mapping[str, object]  # of a command, by keyword


@dataclass(frozen=True)
class Training:
    """How a model is trained: for how many updates, and with which options."""

    updates: int
    options: Options = field(default_factory=dict)
    per_minute: float = 60.0  # updates a minute, on the machine that the scale is for


@dataclass(frozen=True)
class Scale:
    """Everything that distinguishes one scale from another, except its texts."""

    name: str
    source_language: str
    target_language: str
    vocabulary: int
    preset: str
    trainings: Mapping[str, Training]
    sizes: Mapping[str, int]  # of the texts: pairs, documents (in sentences), groups …
    nbest: int = 20
    temperatures: tuple[float, ...] = ()  # tried for the C-score, at weight 1
    tokenizer: Options = field(default_factory=dict)
    compute_type: str = "int8"
    threads: int = 0
    processes: int = 0
    note: str = ""
    hours: str = ""  # how long it takes, as text
    contrastive: tuple[str, ...] = ()

    def with_sizes(self, effort: float, sizes: Mapping[str, int]) -> Scale:
        """The same scale with more or less training, and with other sizes."""
        unknown = [name for name in sizes if name not in self.sizes and name not in self.trainings]
        if unknown:
            known = ", ".join([*self.sizes, *self.trainings])
            raise CadecError(f"no size {', '.join(unknown)} at this scale", f"there are {known}")
        if not 0 < effort <= 100 or any(value < 1 for value in sizes.values()):
            raise CadecError("effort and sizes must be above 0")
        trainings = {
            name: replace(one, updates=sizes.get(name) or max(1, round(one.updates * effort)))
            for name, one in self.trainings.items()
        }
        return replace(
            self,
            trainings=trainings,
            sizes={name: sizes.get(name, value) for name, value in self.sizes.items()},
        )


def _cosine(rate: float, warmup: int, tokens: int, evaluate_every: int) -> Options:
    return {
        "schedule": "cosine",
        "learning_rate": rate,
        "warmup": warmup,
        "update_tokens": tokens,
        "batch_tokens": tokens + tokens // 5,
        "evaluate_every": evaluate_every,
        "patience": 0,
        "keep_best": 1,
    }


_TINY = {"evaluate_every": 1000, "patience": 0, "keep_best": 1}

TOY = Scale(
    name="toy",
    source_language="en",
    target_language="eo",
    vocabulary=90,
    preset="tiny",
    trainings={
        "nmt": Training(220, _TINY, 1500),
        "reverse": Training(160, _TINY, 1500),
        "lm": Training(900, _TINY, 2400),
        "lm-fewer": Training(200, _TINY, 2400),
        "source-lm": Training(400, _TINY, 2400),
        "back-translation": Training(80, _TINY, 1500),
        "doc-nmt": Training(100, _TINY, 700),
        "2-to-2": Training(150, _TINY, 1200),
        "repair": Training(320, _TINY, 1200),
    },
    sizes={"pairs": 700, "documents": 4000, "fewer": 500, "test": 40, "tuning": 30, "groups": 200},
    nbest=6,
    temperatures=(1.0, 2.0, 4.0),
    tokenizer={"byte_fallback": False},
    compute_type="float32",
    processes=1,
    contrastive=("address", "names", "ellipsis", "rare-words"),
    note="a made-up pair of languages; `pairs`, `documents`, `fewer`, `test` and `tuning` are documents",
    hours="three minutes on two cores",
)

# Smaller than the networks of the preset "small", which take twice as long: there are nine to train.
_SMALL = {"width": 192, "inner": 768, "dropout": 0.05}
_SMALL_NMT = {**_SMALL, "encoder_layers": 4}
_SMALL_LM = {**_SMALL, "layers": 4, "window": 192, "stride": 128}

SMALL = Scale(
    name="small",
    source_language="en",
    target_language="ru",
    vocabulary=4000,
    preset="small",
    trainings={
        "nmt": Training(4800, {**_SMALL_NMT, **_cosine(2e-3, 200, 2000, 500)}, 110),
        "reverse": Training(3200, {**_SMALL_NMT, **_cosine(2e-3, 200, 2000, 500)}, 110),
        "lm": Training(4800, {**_SMALL_LM, **_cosine(2e-3, 200, 2000, 500)}, 140),
        "lm-fewer": Training(2400, {**_SMALL_LM, **_cosine(2e-3, 200, 2000, 500)}, 140),
        "source-lm": Training(1600, {**_SMALL_LM, **_cosine(2e-3, 100, 2000, 500)}, 140),
        "back-translation": Training(1600, {**_SMALL_NMT, **_cosine(1e-3, 50, 2000, 400)}, 110),
        "doc-nmt": Training(1600, {**_SMALL_NMT, **_cosine(2e-3, 100, 2000, 400)}, 80),
        "2-to-2": Training(1600, {**_SMALL_NMT, **_cosine(1e-3, 50, 2000, 400)}, 90),
        "repair": Training(2400, {**_SMALL_NMT, **_cosine(2e-3, 200, 2000, 400)}, 80),
    },
    sizes={
        **{"pairs": 1_000_000, "documents": 240_000, "fewer": 60_000, "augmented": 60_000},
        **{"tuning": 2400, "test": 2400, "speed": 64},
    },
    nbest=12,
    temperatures=(1.0, 2.0, 4.0, 8.0, 16.0),
    note="`documents`, `fewer` and `augmented` are sentences of documents; `tuning` and `test` lines",
    hours="about four hours on two cores",
    contrastive=("deixis_dev", "lex_cohesion_dev"),
)

# Sugiyama & Yoshinaga 2021; updates are those of the presets.
_PAPER = {"patience": 10, "keep_best": 5}

PAPER = Scale(
    name="paper",
    source_language="en",
    target_language="ru",
    vocabulary=16_000,
    preset="paper",
    trainings={
        "nmt": Training(300_000, _PAPER, 500),
        "reverse": Training(300_000, _PAPER, 500),
        "lm": Training(300_000, _PAPER, 350),
        "lm-fewer": Training(100_000, _PAPER, 350),
        "source-lm": Training(100_000, _PAPER, 350),
        "back-translation": Training(100_000, _PAPER, 500),
        "doc-nmt": Training(50_000, _PAPER, 400),
        "2-to-2": Training(50_000, _PAPER, 450),
        "repair": Training(100_000, _PAPER, 450),
    },
    temperatures=(1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0),
    sizes={"fewer": 3_000_000, "augmented": 30_000_000, "test": 20, "tuning": 20, "speed": 512},
    contrastive=(
        "deixis_test",
        "lex_cohesion_test",
        "ellipsis_infl",
        "ellipsis_vp",
    ),
    note="`fewer` and `augmented` are sentences of documents, `tuning` and `test` films; minutes are "
    "estimates for one GPU of today with bfloat16",
    hours="about a week on one GPU, a day or two on eight; 60 GB of disk",
)

BY_NAME = {scale.name: scale for scale in (TOY, SMALL, PAPER)}


# The systems that the paper compares: the names of rows in its tables, and how each is run here.


# Bundles of a reproduction: S-NMT, D-LM and backward model; with the S-NMT that saw back-translations; with a
# D-LM of fewer documents. A bundle with a model that reads several sentences has the name of that model.
FIRST, AUGMENTED, FEWER = "first", "augmented", "fewer"


@dataclass(frozen=True)
class System:
    """A row of the tables."""

    name: str
    label: str
    search: str
    objective: str = "sentence"  # in contrastive tests, and of searches that ask for one
    bundle: str = FIRST
    tuned: str = ""  # the objective whose tuned values it takes
    protocol: str = "best"  # which of the paper's two protocols chose them
    scorer: str = ""  # its name in contrastive tests, if several systems score alike
    paper_speed: float | None = None  # sentences a second on their GPU, as the paper reports


SYSTEMS: tuple[System, ...] = (
    System("sentence", "SentTransformer", "sentence", paper_speed=66),
    System(
        "back-translation",
        "SentTransformer + back-translation",
        "sentence",
        bundle=AUGMENTED,
    ),
    System(
        "shallow-fusion",
        "shallow fusion",
        "beam",
        "shallow-fusion",
        tuned="shallow-fusion",
    ),
    System(
        "conditional-shallow-fusion",
        "conditional shallow fusion",
        "beam",
        "conditional-shallow-fusion",
        tuned="conditional-shallow-fusion",
    ),
    System("doc-nmt", "DocTransformer", "doc-nmt", "doc-nmt", bundle="doc-nmt", paper_speed=40),
    System("2-to-2", "2-to-2", "2-to-2", "2-to-2", bundle="2-to-2"),
    System("repair", "DocRepair", "repair", "repair", bundle="repair", paper_speed=28),
    System(
        "bayes-without-context",
        "Bayes DocReranker, without context",
        "lattice",
        "bayes-without-context",
        tuned="bayes-without-context",
    ),
    System("bayes", "Bayes DocReranker", "lattice", "bayes", tuned="bayes", paper_speed=7.7),
    System(
        "rerank", "C-aware rerank", "rerank", "c-score", tuned="c-score", scorer="C-score", paper_speed=4.3
    ),
    System(
        "rerank-strongest",
        "C-aware rerank, strongest D-LM",
        "rerank",
        "c-score",
        tuned="c-score",
        protocol="strongest",
        scorer="C-score",
    ),
    System("beam", "C-aware beam", "beam", "c-score", tuned="c-score", scorer="C-score", paper_speed=13),
    System(
        "rerank-fewer",
        "C-aware rerank, fewer documents",
        "rerank",
        "c-score",
        bundle=FEWER,
        tuned="c-score",
        scorer="C-score, fewer documents",
    ),
)

# Additional scorers of contrastive tests, which use the context's part alone.
ALONE = {"pmi": "PMI alone", "conditional": "log p(y | context) alone"}

# Objectives with something to tune.
TUNED = tuple(dict.fromkeys(system.tuned for system in SYSTEMS if system.tuned))


# The paths of a reproduction, below its working directory.


@dataclass(frozen=True)
class ExperimentPaths:
    """A scale and its working directory; `data` is the directory of its corpora, unless it makes them."""

    scale: Scale
    work: Path
    data: Path | None = None

    def text(self, name: str) -> Path:
        """The path of a text."""
        return self.work / "text" / name

    def aligned_paths(self, name: str) -> tuple[Path, Path]:
        """The paths of both sides of a text: `tuning` or `test`."""
        return self.text(f"{name}.{self.scale.source_language}"), self.text(
            f"{name}.{self.scale.target_language}"
        )

    def bundle(self, name: str) -> Path:
        """The path of a bundle."""
        return self.work / "bundles" / name

    def run(self, name: str) -> Path:
        """The directory of a training run."""
        return self.work / "runs" / name

    def translation(self, name: str) -> Path:
        """The path of a system's translation of the test text."""
        return self.work / "translations" / f"{name}.txt"

    def result(self, name: str) -> Path:
        """The path of a file of results."""
        return self.work / "results" / name

    @property
    def sets(self) -> list[Path]:
        """The paths of the contrastive sets."""
        if self.scale.name == "toy":
            return [self.text(f"{name}.jsonl") for name in self.scale.contrastive]
        assert self.data is not None
        return [self.data / "contrastive" / f"{name}.json" for name in self.scale.contrastive]

    @property
    def sentences_per_line(self) -> bool:
        """Tell whether a line of the test text may hold several sentences."""
        return self.scale.name == "small"

    def curve(self, objective: str) -> Path:
        """The path of the results of tuning an objective."""
        return self.work / "tuning" / objective / "curve.json"
