"""The systems that the paper compares: what rows of its tables are called, and how each is run here."""

from __future__ import annotations

from dataclasses import dataclass

# Bundles of a reproduction: S-NMT, D-LM and backward model; with the S-NMT that saw back-translations; with a
# D-LM of fewer documents; those with a model that reads several sentences are called as that is.
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
    protocol: str = "best"  # by which of the paper's two ways they were chosen
    scorer: str = ""  # what it is called in contrastive tests, where several systems score alike
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

# Scorers that contrastive tests have beside the systems: the context's part alone.
ALONE = {"pmi": "PMI alone", "conditional": "log p(y | context) alone"}

# Objectives with something to tune.
TUNED = tuple(dict.fromkeys(system.tuned for system in SYSTEMS if system.tuned))
