"""The names of texts that are being translated: found in n-best lists, and added to units.

Of a text that is known to its end, a sample is looked at before any sentence is chosen: the first sentences
of each recurring name. Their lists need no context, and are made only once. Of a document that is still
growing (a pipe, a session) a name's rendering is decided by the sentences so far. Either way it depends on
the text alone, not on waves, workers or interruptions. A text in which no name recurs is translated as if
nobody had looked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cadec_cli.decoding.glossary.candidates import evidence
from cadec_cli.decoding.glossary.name_candidates import NameCandidates
from cadec_cli.decoding.protection.defects import with_names
from cadec_cli.decoding.units import Unit
from cadec_cli.method.hypotheses import NBest
from cadec_cli.text.name_memory import NameMemory, NameSample
from cadec_cli.text.protected.core import Core

_KEPT = 4  # surveys


def learn(memory: NameMemory, core: Core, nbest: NBest) -> None:
    """Let a memory learn from the next sentence of a growing document."""
    if core.capitals:  # nothing tells names from other words
        return
    memory.read(core.text)
    if memory.is_decisive(core.text):
        memory.learn(core.text, evidence(nbest))


def name_unit(unit: Unit, memory: NameMemory) -> Unit:
    """Return a unit with the names whose renderings are known, and no others."""
    core = unit.core
    if core.capitals or not core.text:
        return unit
    named = core.with_names(memory.glossary(core.text))
    return unit if named.names == core.names else replace(unit, core=named)


def name_given(units: Sequence[Unit], lists: Sequence[NBest], memory: NameMemory) -> list[Unit]:
    """Return the units of a whole document, whose lists are given, with the names that these tell."""
    for unit, nbest in zip(units, lists, strict=True):
        learn(memory, unit.core, nbest)
    memory.settle()
    return [name_unit(unit, memory) for unit in units]


@dataclass(frozen=True)
class Survey:
    """What is known of the names of a text, and the lists that were made to find it out."""

    memory: NameMemory
    lists: dict[Core, NBest]


@dataclass
class Surveys:
    """The last few surveys: a worker gets the documents of a text one after the other."""

    known: dict[NameSample, Survey] = field(default_factory=dict)

    def get(self, sample: NameSample) -> Survey | None:
        """Return the survey of a sample, if it is known."""
        return self.known.get(sample)

    def add(self, sample: NameSample, survey: Survey) -> None:
        """Keep a survey, and forget the oldest."""
        self.known[sample] = survey
        while len(self.known) > _KEPT:
            del self.known[next(iter(self.known))]


@dataclass
class DocumentNames:
    """The names of some documents in step. `make` makes the n-best lists of cores, `count` checks one.

    Without `candidates`, sentences are only held to names that their lists have. `cores` cuts the sentences
    of a sample. `samples` has the sample of every document, one for all documents of a text; or `growing` has
    the memories of documents that are not known to the end.
    """

    make: Callable[[Sequence[Core]], list[NBest]]
    count: Callable[[Core, NBest], NBest]
    candidates: NameCandidates | None
    cores: Callable[[NameSample], list[Core]]
    new_memory: Callable[[NameSample], NameMemory]
    samples: Sequence[NameSample] = ()
    growing: Sequence[NameMemory] | None = None
    surveys: Surveys = field(default_factory=Surveys)
    _surveyed: dict[int, Survey] = field(default_factory=dict)  # by the identity of the sample
    _named: dict[tuple[int, int], Unit] = field(default_factory=dict)

    def lists(self, units: Sequence[Unit]) -> list[NBest]:
        """Return the lists of units, the next ones of their documents, with candidates for their names."""
        lists = self._make(units)
        named = [self._name_next(*one) for one in zip(units, lists, strict=True)]
        cores = [unit.core for unit in named]
        if self.candidates is not None:
            known = [self._memory(unit).found for unit in named]
            made = self.candidates.complete(cores, lists, known)
            lists = [
                after if after is before else self.count(core, after)
                for core, before, after in zip(cores, lists, made, strict=True)
            ]
        return [with_names(core, nbest) for core, nbest in zip(cores, lists, strict=True)]

    def _make(self, units: Sequence[Unit]) -> list[NBest]:
        """Make the lists of units, and of the samples of texts that begin here, in one batch."""
        if self.growing is not None:
            return self.make([unit.core for unit in units])
        samples = self._new_samples(sorted({unit.document for unit in units}))
        found = [self._take(unit) for unit in units]
        missing = [unit.core for unit, one in zip(units, found, strict=True) if one is None]
        made = self._survey(samples, missing)
        return [made[unit.core] if one is None else one for unit, one in zip(units, found, strict=True)]

    def named(self, unit: Unit) -> Unit:
        """Return a finished unit with the names that it had when its list was made."""
        if self.growing is not None:
            return self._named.pop((unit.document, unit.piece), unit)
        self._survey(self._new_samples([unit.document]))
        return name_unit(unit, self._memory(unit))

    def _name_next(self, unit: Unit, nbest: NBest) -> Unit:
        """Return a unit with its names; what is known of a growing document grows by it."""
        if self.growing is None:
            return name_unit(unit, self._memory(unit))
        learn(self._memory(unit), unit.core, nbest)
        named = name_unit(unit, self._memory(unit))
        if named is not unit:
            self._named[unit.document, unit.piece] = named
        return named

    def _memory(self, unit: Unit) -> NameMemory:
        if self.growing is not None:
            return self.growing[unit.document]
        return self._surveyed[id(self.samples[unit.document])].memory

    def _take(self, unit: Unit) -> NBest | None:
        """Return the list of a unit if the survey of its text has made it."""
        survey = self._surveyed.get(id(self.samples[unit.document]))
        return None if survey is None else survey.lists.pop(unit.core, None)

    def _new_samples(self, documents: Sequence[int]) -> dict[int, NameSample]:
        """Return the samples of documents whose names are not known yet, by their identity."""
        new: dict[int, NameSample] = {}
        for number in documents:
            sample = self.samples[number]
            if id(sample) not in self._surveyed:
                known = self.surveys.get(sample)
                if known is None:
                    new[id(sample)] = sample
                else:
                    self._surveyed[id(sample)] = known
        return new

    def _survey(self, samples: Mapping[int, NameSample], others: Sequence[Core] = ()) -> dict[Core, NBest]:
        """Decide on the names of texts; return the lists that were made for it, and those of other cores."""
        cores = {number: self.cores(sample) for number, sample in samples.items()}
        sampled = [core for of_text in cores.values() for core in of_text]
        wanted = list(dict.fromkeys([*sampled, *others])) if sampled else list(others)
        lists = dict(zip(wanted, self.make(wanted), strict=True)) if wanted else {}
        here = set(others)
        for number, sample in samples.items():
            memory = self.new_memory(sample)
            for core in cores[number]:
                learn(memory, core, lists[core])
            memory.settle()
            later = {core: lists[core] for core in cores[number] if core not in here}
            self._surveyed[number] = Survey(memory, later)
            self.surveys.add(sample, self._surveyed[number])
        return lists
