"""What the runs read: models of the made-up pair, and documents of it in several formats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.robustness.kills import forked


@dataclass(frozen=True)
class Materials:
    """Where everything is; nobody changes it."""

    root: Path
    corpora: Path
    bundle: Path

    @property
    def cache(self) -> Path:
        """A cache that has the conversions which the bundle lacks."""
        return self.root / "cache"

    def texts(self, count: int = 3) -> list[Path]:
        """Some text files."""
        return [self.root / f"{number}.txt" for number in range(count)]

    @property
    def subtitles(self) -> Path:
        """A film."""
        return self.root / "film.srt"

    @property
    def short(self) -> Path:
        """A text for searches that take longer."""
        return self.root / "short.txt"

    @property
    def pairs(self) -> Path:
        """Sentences and their translations."""
        return self.root / "pairs.tsv"

    @property
    def lines(self) -> Path:
        """A text of more lines than are written at a time."""
        return self.root / "lines.txt"


def make_materials(
    root: Path, corpora: Path | None, bundle: Path | None, *, small: bool = False
) -> Materials:
    """Write documents into a directory, and train the models that are not given."""
    from tests.helpers.made_up_pair import documents

    root.mkdir(parents=True, exist_ok=True)
    if corpora is None or bundle is None:
        corpora, bundle = _trained(root)
    sides = documents(180, seed=5)
    blocks = ["".join(f"{source}\n" for source, _ in document) for document in sides]
    materials = Materials(root, corpora, bundle)
    # Enough sentences for several snapshots: those of 32 sentences, of the next 256, and the rest.
    long, short = (10, 10) if small else (44, 14)
    # No document stands in two of them: of those that are alike, one would be done for both.
    first, *others = materials.texts()
    first.write_text("\n".join(blocks[:long]))
    for number, place in enumerate(others):
        place.write_text("\n".join(blocks[long + 2 * number :][:2]))
    materials.short.write_text("\n".join(blocks[:short]))
    materials.lines.write_text("\n".join(blocks[:160]))
    pairs = ("".join(f"{source}\t{target}\n" for source, target in document) for document in sides)
    materials.pairs.write_text("\n".join(pairs))
    materials.subtitles.write_text(_cues([[source for source, _ in document] for document in sides[:long]]))
    warm = ("translate", materials.short, "-b", bundle, "--lines", "-q")
    _done(forked.command(warm, root, materials.cache))
    return materials


def _cues(documents: list[list[str]]) -> str:
    """A cue per sentence; between documents nobody speaks for a while."""
    cues: list[str] = []
    second = 0
    for document in documents:
        for text in document:
            times = " --> ".join(f"00:{at // 60:02}:{at % 60:02},000" for at in (second, second + 1))
            cues.append(f"{len(cues) + 1}\n{times}\n{text}\n")
            second += 2
        second += 30
    return "\n".join(cues)


def _trained(root: Path) -> tuple[Path, Path]:
    from tests.helpers.made_up_models import make_bundle, make_corpora, train_model

    corpora, models = root / "corpora", root / "models"
    steps: list[Callable[[], None]] = [
        partial(make_corpora, corpora),
        partial(train_model, "nmt", "pairs", corpora, models),
        partial(train_model, "lm", "docs", corpora, models),
        partial(make_bundle, corpora, models),
    ]
    for step in steps:
        _done(lambda step=step: step() or 0)  # type: ignore[misc]
    return corpora, models / "bundle"


def _done(work: forked.Work) -> None:
    """Run something in a process of its own: what forks must not have run anything itself."""
    ending = forked.start(work).ended()
    assert ending.code == 0, ending.told
