"""A table of the names that were found in a translation, which can be edited and used as a glossary.

    # name	rendering, in its forms	times	otherwise	where
    Aurelia	Аурелия|Аурелии|Аурелию	39	1	line 112

The first two columns are a glossary's; the others are for people.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cadec_cli.decoding.confidence import Judge
from cadec_cli.decoding.explain import ExplainedTranslation
from cadec_cli.decoding.glossary.outcomes import TermOutcome, name_outcomes
from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.jobs.in_step import SegmentRecord, SideOutput
from cadec_cli.text.glossary.reader import NAMES_HEADING, OR

_PLACES = 10  # that are listed
# (name, its rendering in all forms, how the translation calls it or None)
NameRecord = tuple[str, tuple[str, ...], str | None]


@dataclass(frozen=True)
class NameUse:
    """A name of a text: what it is called, how often it occurs, and where it is called otherwise."""

    name: str
    forms: tuple[str, ...]
    times: int
    otherwise: tuple[str, ...] = ()  # places

    @property
    def line(self) -> str:
        """The line of a table."""
        more = f" and {len(self.otherwise) - _PLACES} more" if len(self.otherwise) > _PLACES else ""
        where = ", ".join(filter(None, self.otherwise[:_PLACES])) + more
        return f"{self.name}\t{OR.join(self.forms)}\t{self.times}\t{len(self.otherwise)}\t{where}\n"


def name_uses(records: Iterable[tuple[str, Sequence[NameRecord]]]) -> list[NameUse]:
    """Count the names of a text, whose sentences are given as places and names; frequent names come first.

    Where parts of a text call a name differently, the most frequent rendering is given.
    """
    found: dict[str, _Count] = {}
    for place, names in records:
        for name, forms, said in names:
            count = found.setdefault(name, _Count())
            count.renderings[tuple(forms)] += 1
            count.places.append((place, tuple(forms) if said is not None else None))
    uses = [count.use(name) for name, count in found.items()]
    return sorted(uses, key=lambda one: -one.times)


@dataclass
class _Count:
    renderings: Counter[tuple[str, ...]] = field(default_factory=Counter)
    places: list[tuple[str, tuple[str, ...] | None]] = field(default_factory=list)

    def use(self, name: str) -> NameUse:
        ((forms, _),) = self.renderings.most_common(1)
        otherwise = tuple(place for place, said in self.places if said != forms)
        return NameUse(name, forms, len(self.places), otherwise)


def table(uses: Iterable[NameUse]) -> str:
    """Return names as the lines of a table."""
    return NAMES_HEADING + "".join(one.line for one in uses)


def names_output(path: Path, names: Sequence[str]) -> SideOutput:
    """Return the table as an output beside a translation; `names` are the names of the files."""
    if path.suffix.lower() not in (".tsv", ".txt"):
        raise CadecError(f"{path}: found names are written as a tab-separated table", "name it .tsv")

    def write(records: Iterable[SegmentRecord]) -> None:
        placed = ((_place(one, names), [_record(item) for item in one.made]) for one in records)
        content = table(name_uses(placed))
        with atomic_file(path) as stream:
            stream.write(content.encode("utf-8", "replace"))

    return SideOutput(path, name_segment, write, "names", explains=False)


def name_segment(explained: ExplainedTranslation, judge: Judge) -> list[NameRecord]:
    """Return the names of a sentence as plain data."""
    return [name_record(one) for one in name_outcomes(explained.translation.parts)]


def name_record(outcome: TermOutcome) -> NameRecord:
    """Return what became of a name as plain data."""
    return outcome.term, outcome.targets, outcome.rendering


def _record(item: Sequence[object]) -> NameRecord:
    name, forms, said = item
    assert isinstance(forms, list | tuple)
    return str(name), tuple(map(str, forms)), None if said is None else str(said)


def _place(one: SegmentRecord, names: Sequence[str]) -> str:
    place = one.place or f"sentence {one.sentence + 1} of document {one.document + 1}"
    return f"{names[one.file]}: {place}" if len(names) > 1 else place
