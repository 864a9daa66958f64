"""The three scales: how much of everything, from which texts, and about how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cadec_cli.errors import CadecError

SCALES = ("toy", "small", "paper")


@dataclass(frozen=True)
class Training:
    """How a model is trained: for how many updates, and with which flags."""

    updates: int
    flags: tuple[str, ...] = ()
    per_minute: float = 60.0  # updates a minute, on the machine that the scale is for


@dataclass(frozen=True)
class Scale:
    """All that tells one scale from another, but for its texts."""

    name: str
    source_language: str
    target_language: str
    vocabulary: int
    preset: str
    trainings: Mapping[str, Training]
    sizes: Mapping[str, int]  # of the texts: pairs, documents (in sentences), groups …
    nbest: int = 20
    temperatures: tuple[float, ...] = ()  # tried for the C-score, at weight 1
    tokenizer: tuple[str, ...] = ()
    compute_type: str = "int8"
    threads: int = 0
    processes: int = 0
    note: str = ""
    hours: str = ""  # what it takes, for people
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


def _cosine(rate: float, warmup: int, tokens: int, evaluate_every: int) -> tuple[str, ...]:
    return (
        *("--schedule", "cosine", "--learning-rate", str(rate), "--warmup", str(warmup)),
        *("--update-tokens", str(tokens), "--batch-tokens", str(tokens + tokens // 5)),
        *("--evaluate-every", str(evaluate_every), "--patience", "0", "--keep-best", "1"),
    )


_TINY = ("--evaluate-every", "1000", "--patience", "0", "--keep-best", "1")

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
    tokenizer=("--no-byte-fallback",),
    compute_type="float32",
    processes=1,
    contrastive=("address", "names", "ellipsis", "rare-words"),
    note="a made-up pair of languages; `pairs`, `documents`, `fewer`, `test` and `tuning` are documents",
    hours="three minutes on two cores",
)

# A smaller network than --preset small, which takes twice as long: there are nine of them to train.
_SMALL = ("--width", "192", "--inner", "768", "--dropout", "0.05")
_SMALL_NMT = (*_SMALL, "--encoder-layers", "4")
_SMALL_LM = (*_SMALL, "--layers", "4", "--window", "192", "--stride", "128")

SMALL = Scale(
    name="small",
    source_language="en",
    target_language="ru",
    vocabulary=4000,
    preset="small",
    trainings={
        "nmt": Training(4800, (*_SMALL_NMT, *_cosine(2e-3, 200, 2000, 500)), 110),
        "reverse": Training(3200, (*_SMALL_NMT, *_cosine(2e-3, 200, 2000, 500)), 110),
        "lm": Training(4800, (*_SMALL_LM, *_cosine(2e-3, 200, 2000, 500)), 140),
        "lm-fewer": Training(2400, (*_SMALL_LM, *_cosine(2e-3, 200, 2000, 500)), 140),
        "source-lm": Training(1600, (*_SMALL_LM, *_cosine(2e-3, 100, 2000, 500)), 140),
        "back-translation": Training(1600, (*_SMALL_NMT, *_cosine(1e-3, 50, 2000, 400)), 110),
        "doc-nmt": Training(1600, (*_SMALL_NMT, *_cosine(2e-3, 100, 2000, 400)), 80),
        "2-to-2": Training(1600, (*_SMALL_NMT, *_cosine(1e-3, 50, 2000, 400)), 90),
        "repair": Training(2400, (*_SMALL_NMT, *_cosine(2e-3, 200, 2000, 400)), 80),
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
_PAPER = ("--patience", "10", "--keep-best", "5")

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
