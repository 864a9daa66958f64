"""A damaged journal costs what was damaged: what is resumed is the undisturbed translation, byte for byte."""

import itertools
import json
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.decoding import translator, units
from cadec_cli.decoding.confidence import Judge
from cadec_cli.decoding.explain import ExplainedTranslation
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.errors import CadecError, Interrupted
from cadec_cli.fs.append_log import LogHeader
from cadec_cli.jobs.in_step import FileTranslation, SegmentRecord, SideOutput
from cadec_cli.jobs.journal import SAVE_EVERY, Journal
from cadec_cli.jobs.outputs import OutputPlan
from cadec_cli.method.options import TranslationOptions
from cadec_cli.text.formats import read_text_file
from tests.helpers import beam_pairs
from tests.helpers.damages import DAMAGES
from tests.helpers.fakes import TableLM, TableNMT
from tests.helpers.job_library import CALLS, TABLE


class CountedNMT(TableNMT):
    """Counts the sentences that it is asked for."""

    asked = 0

    def nbest(self, sentences: Sequence[str], count: int) -> Any:
        type(self).asked += len(sentences)
        return super().nbest(sentences, count)


@dataclass(frozen=True)
class Case:
    """A translation of two files with several documents each, and the journal of nearly all of it."""

    work: FileTranslation
    json_lines: bool
    whole: dict[str, bytes]
    journal: bytes

    def resumed(self, directory: Path, journal: bytes) -> tuple[dict[str, bytes], list[str]]:
        """What comes of a journal that is found like this, and what the user is told."""
        work = placed(self.work, directory)
        assert work.plan is not None and work.plan.journal is not None
        work.plan.journal.write_bytes(journal)
        told: list[str] = []
        work.to_files(json_lines=self.json_lines, resume=True, damaged=told.append)
        assert not work.plan.journal.exists()
        return written(directory), told


def placed(work: FileTranslation, directory: Path) -> FileTranslation:
    directory.mkdir(exist_ok=True)
    paths = tuple(directory / f"{number}.txt" for number in range(len(work.files)))
    side_output = None if work.side_output is None else report(directory)
    return replace(work, plan=OutputPlan(paths, directory / "journal"), side_output=side_output)


def written(directory: Path) -> dict[str, bytes]:
    found = {path.name: path.read_bytes() for path in sorted(directory.iterdir())}
    for path in directory.iterdir():
        path.unlink()
    return found


def report(directory: Path) -> SideOutput:
    def write(records: Iterable[SegmentRecord]) -> None:
        (directory / "report").write_text(json.dumps([asdict(record) for record in records]))

    def segment(explained: ExplainedTranslation, judge: Judge) -> Any:
        return [explained.translation.text, explained.sentence_level, len(explained.explanations)]

    return SideOutput(directory / "report", segment, write)


def made(
    directory: Path,
    translator: Translator,
    sentences: Sequence[str],
    *,
    json_lines: bool = False,
    side_output: bool = False,
) -> Case:
    rng = random.Random(3)
    files = []
    for number, lengths in enumerate([(9, 4), (13, 2)]):
        path = directory / f"in{number}"
        path.write_text("\n\n".join("\n".join(rng.choices(sentences, k=count)) for count in lengths) + "\n")
        files.append(read_text_file(path, language="en"))
    place = directory / "out"
    beside = report(place) if side_output else None
    every_wave = itertools.count(step=SAVE_EVERY).__next__
    work = FileTranslation(translator, files, below=0.6, side_output=beside, clock=every_wave)

    class FullError(Exception):
        """It ends before the last few sentences."""

    def run(stop: int) -> None:
        one = placed(work, place)
        add, left = Journal.add, [stop]

        def stopped(self: Journal, *arguments: Any) -> None:
            if not left[0]:
                raise FullError
            left[0] -= 1
            add(self, *arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Journal, "add", stopped)
            one.to_files(json_lines=json_lines, resume=False)

    run(-1)
    whole = written(place)
    with pytest.raises(FullError):
        run(work.sentences - 1)
    journal = written(place)["journal"]
    assert journal.count(b'"snapshot"') > 4 and journal.count(b'"output"') == work.sentences - 1 == 27
    return Case(work, json_lines, whole, journal)


@pytest.fixture(autouse=True)
def small_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translator, "WAVE", 2)
    monkeypatch.setattr(units, "FIRST_BATCH", 4)
    monkeypatch.setattr(units, "BATCH", 8)


def table_case(directory: Path, **options: Any) -> Case:
    how = {name: options.pop(name) for name in ("json_lines", "side_output") if name in options}
    models = ModelSet(CountedNMT(TABLE), TableLM(CALLS))
    return made(directory, Translator(models, TranslationOptions(**options)), list(TABLE), **how)


def beam_case(directory: Path) -> Case:
    pair = beam_pairs.models()
    models = ModelSet(TableNMT({}), pair.language, stepped=pair.translation)
    options = TranslationOptions(search="beam", beam=2, protect=False)
    return made(directory, Translator(models, options), ["4 5 6", "7 8", "9", "11 5 4"], json_lines=True)


CASES: dict[str, tuple[Callable[[Path], Case], int]] = {
    "rerank": (lambda path: table_case(path, search="rerank"), 10),
    "rerank, json, report": (lambda path: table_case(path, json_lines=True, side_output=True), 10),
    "lattice": (lambda path: table_case(path, search="lattice", paths=3, side_output=True), 10),
    "lattice, json": (lambda path: table_case(path, search="lattice", paths=3, json_lines=True), 5),
    "rolling": (lambda path: table_case(path, context=100), 3),
    "beam": (beam_case, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_whatever_happened_to_it_the_output_is_the_same(name: str, tmp_path: Path) -> None:
    make, rounds = CASES[name]
    case = make(tmp_path)
    header = len(case.journal.splitlines(keepends=True)[0])
    rng = random.Random(name)
    refused = 0
    for number in range(rounds * len(DAMAGES)):
        damage = DAMAGES[number % len(DAMAGES)]
        found = damage(rng, case.journal)
        try:
            assert case.resumed(tmp_path / "out", found)[0] == case.whole, damage.__name__
        except CadecError as error:
            # Only what it belongs to can be beyond doubt or not; the hint says what to do then.
            assert found[:header] != case.journal[:header] and "damaged" in error.message, damage.__name__
            assert "force" in error.hint
            refused += 1
            written(tmp_path / "out")
    assert refused < rounds  # a header that is damaged is made up for by what comes after it


def test_every_bit_of_a_record_counts(tmp_path: Path) -> None:
    """A letter of a translation that became another used to be a wrong line, with exit code 0."""
    case = table_case(tmp_path)
    place = case.journal.index(b'"output": {"text": "bondia') + len(b'"output": {"text": "b')
    changed = case.journal[:place] + b"a" + case.journal[place + 1 :]
    assert b'"text": "bandia' in changed
    outputs, told = case.resumed(tmp_path / "out", changed)
    assert outputs == case.whole
    assert told == [f"1 damaged record in {tmp_path / 'out' / 'journal'}: 1 sentence is translated again"]


def test_damage_costs_the_waves_that_it_is_in(tmp_path: Path) -> None:
    case = table_case(tmp_path)
    lines = [line for line in case.journal.splitlines(keepends=True) if b'"key"' not in line]
    outputs = [number for number, line in enumerate(lines) if b'"output"' in line]
    snapshots = [number for number, line in enumerate(lines) if b'"snapshot"' in line]

    def asked(*without: int) -> int:
        CountedNMT.asked = 0
        kept = (line for number, line in enumerate(lines) if number not in without)
        assert case.resumed(tmp_path / "out", b"".join(kept))[0] == case.whole
        return CountedNMT.asked

    undamaged = asked()
    assert 0 < undamaged <= 8  # the last wave
    early = outputs[2]
    assert undamaged < asked(early) <= undamaged + 4  # the first wave, and none between them
    assert asked(outputs[5], outputs[14]) <= undamaged + 2 * 8
    assert asked(snapshots[2]) == undamaged  # another one is as good
    assert asked(snapshots[-1]) <= undamaged + 8


def test_it_is_sound_again_once_it_was_resumed_and_can_be_killed_at_any_time(tmp_path: Path) -> None:
    case = table_case(tmp_path, search="lattice", paths=3)
    lines = case.journal.splitlines(keepends=True)
    outputs = [number for number, line in enumerate(lines) if b'"output"' in line]
    lines[outputs[1]] = b"\0" + lines[outputs[1]][1:]
    del lines[outputs[5]]
    work = placed(case.work, tmp_path / "out")
    assert work.plan is not None and work.plan.journal is not None
    path = work.plan.journal
    path.write_bytes(b"".join(lines))
    notes: list[str] = []

    def interrupted(found: Any, total: int | None) -> Any:
        yield next(iter(found))
        raise KeyboardInterrupt

    for _ in range(3):  # it comes a sentence further each time
        with pytest.raises(Interrupted):
            work.to_files(json_lines=False, resume=True, damaged=notes.append, track=interrupted)
        assert all(
            re.fullmatch(rb"[0-9a-f]{16} \{.*\}\n", line) for line in path.read_bytes().splitlines(True)
        )
    assert [note.split(": ")[-1] for note in notes] == [
        "2 sentences are translated again",
        "1 sentence is translated again",
    ]
    work.to_files(json_lines=False, resume=True, damaged=notes.append)
    assert len(notes) == 2 and written(tmp_path / "out") == case.whole


def test_what_is_well_sealed_and_yet_not_ours_is_one_error(tmp_path: Path) -> None:
    case = table_case(tmp_path)
    header, *lines = case.journal.splitlines(keepends=True)
    found = json.loads(header[17:])
    log = LogHeader(found.pop("log"), {key: found[key] for key in found if key != "format"})
    assert log.line == header
    last = max(number for number, line in enumerate(lines) if b'"snapshot"' in line)
    snapshot = json.loads(lines[last][17:])
    for forged in (
        {**snapshot, "done": [50] * len(snapshot["done"])},
        {**snapshot, "snapshot": {**snapshot["snapshot"], "documents": {"0": {}}}},
    ):
        lines[last] = log.encode(forged)
        with pytest.raises(CadecError):
            case.resumed(tmp_path / "out", header + b"".join(lines))
        written(tmp_path / "out")
    for no_record in (
        [1],
        {"document": 0, "sentence": "0", "output": 1},
        {"snapshot": 1, "done": []},
    ):
        lines[last] = log.encode(no_record)
        assert case.resumed(tmp_path / "out", header + b"".join(lines))[0] == case.whole


def test_a_line_of_another_translation_does_not_pass_for_one_of_this(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    one = table_case(tmp_path / "one")
    other = table_case(tmp_path / "other", context=1)
    first, second = (case.journal.splitlines(keepends=True) for case in (one, other))
    mixed = b"".join(first[:5] + second[5:])
    assert one.resumed(tmp_path / "out", mixed)[0] == one.whole
    with pytest.raises(CadecError, match="differs in: options"):
        one.resumed(tmp_path / "out", other.journal)
