"""Where everything of a reproduction is, below its working directory.

text/ pipelines/ data/ runs/ bundles/    what is read and trained
tuning/ translations/ results/ figures/  what comes out
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cadec_cli.reproduction.scales import Scale


@dataclass(frozen=True)
class ExperimentPaths:
    """A scale and a directory; `data` is where its corpora are, if it does not make them."""

    scale: Scale
    work: Path
    data: Path | None = None

    def text(self, name: str) -> Path:
        """A text."""
        return self.work / "text" / name

    def aligned_paths(self, name: str) -> tuple[Path, Path]:
        """Both sides of a text: `tuning` or `test`."""
        return self.text(f"{name}.{self.scale.source_language}"), self.text(
            f"{name}.{self.scale.target_language}"
        )

    def bundle(self, name: str) -> Path:
        """A bundle."""
        return self.work / "bundles" / name

    def run(self, name: str) -> Path:
        """A training run."""
        return self.work / "runs" / name

    def translation(self, name: str) -> Path:
        """A system's translation of the test text."""
        return self.work / "translations" / f"{name}.txt"

    def result(self, name: str) -> Path:
        """What was measured."""
        return self.work / "results" / name

    @property
    def sets(self) -> list[Path]:
        """The contrastive sets."""
        if self.scale.name == "toy":
            return [self.text(f"{name}.jsonl") for name in self.scale.contrastive]
        assert self.data is not None
        return [self.data / "contrastive" / f"{name}.json" for name in self.scale.contrastive]

    @property
    def sentences_per_line(self) -> bool:
        """Tell whether a line of the test text may hold several sentences."""
        return self.scale.name == "small"

    def curve(self, objective: str) -> Path:
        """What tuning an objective found."""
        return self.work / "tuning" / objective / "curve.json"
