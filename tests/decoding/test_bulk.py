"""Documents translated each by itself: the same files come out, whoever works, in whatever order."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from damages import DAMAGES
from fakes import TableLM, TableNMT
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.crews import Alone, Crew, LostMembersError, Task
from cadec_cli.crews.shares import Share
from cadec_cli.decoding.before import context_of
from cadec_cli.decoding.bulk import Beside, BulkTranslation, ByItself, WholeDocument
from cadec_cli.decoding.confidence import Judge
from cadec_cli.decoding.doubts import Doubt
from cadec_cli.decoding.file_translation import FileTranslation
from cadec_cli.decoding.translations import Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.given import GivenModels
from cadec_cli.errors import CadecError, Interrupted, UsageError
from cadec_cli.method.options import TranslationOptions
from cadec_cli.text.formats import read_text_file
from cadec_cli.text.output_names import OutputPlan

TABLE = {
    "good day sir": {"bondia": -0.5, "bondia senor": -0.9},
    "you see": {"tu": -1.0, "vu": -1.01},
    "you go": {"tu vades": -0.8, "vos vadez": -1.1},
    "a lamp": {"lampa": -0.4, "lampa vos": -0.6},
}
CALLS = {("senor", "vos"): 0.6, ("senor", "vu"): 0.4, ("vu", "vadez"): 0.7, ("vos", "vu"): 0.3}
BELOW = 0.99
BEFORE = ("bondia senor", "vos")


@dataclass
class Told:
    """What the members of a crew did."""

    documents: list[WholeDocument]


def begin(told: Told, json_lines: bool, report: bool, before: tuple[str, ...]) -> Any:
    models, options = GivenModels(TableNMT(TABLE), TableLM(CALLS)), TranslationOptions(context=3)
    work = ByItself(
        Translator(models, options),
        Judge(BELOW),
        json_lines,
        context_of(models, options, before),
        _segment if report else None,
    )

    def counted(document: WholeDocument) -> list[Any]:
        told.documents.append(document)
        return work(document)

    return counted


def _segment(translation: Translation) -> list[Any]:
    return [translation.text, len(translation.parts)]


@dataclass(frozen=True)
class Shuffled:
    """A crew that has several documents in hand, and is done with them in any order."""

    members: int
    seed: int = 0

    def run(self, task: Task[Any, Any], items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        rng = random.Random(self.seed)
        work = task.begin(*task.arguments)
        in_hand: list[tuple[int, Any]] = []
        for numbered in enumerate(items):
            in_hand.append(numbered)
            if len(in_hand) == self.members:
                number, item = in_hand.pop(rng.randrange(len(in_hand)))
                yield number, work(item)
        rng.shuffle(in_hand)
        for number, item in in_hand:
            yield number, work(item)


@dataclass
class Library:
    """Files in a directory, and how they are translated."""

    inputs: list[Path]
    target: Path
    json_lines: bool = False
    report: bool = False
    before: tuple[str, ...] = ()
    replace: bool = False

    def __post_init__(self) -> None:
        self.told = Told([])
        self.reported: list[Beside] = []

    def bulk(self, journal: str = ".journal") -> BulkTranslation:
        outputs = tuple(self.target / path.name for path in self.inputs)
        return BulkTranslation(
            OutputPlan(outputs, self.target / journal),
            lambda number: read_text_file(self.inputs[number], language="en"),
            Task(begin, (self.told, self.json_lines, self.report, self.before)),
            {"options": "these", "json": self.json_lines},
            self.json_lines,
            self.before,
            self.replace,
            self.reported.extend if self.report else None,
        )

    def run(self, crew: Crew | None = None, *, resume: bool = False, **told: Any) -> dict[str, bytes]:
        bulk = self.bulk()
        bulk.run(crew or Alone(), bulk.survey(), resume=resume, **told)
        return self.written()

    def written(self) -> dict[str, bytes]:
        found = self.target.iterdir() if self.target.exists() else ()
        return {path.name: path.read_bytes() for path in found}

    @property
    def sentences(self) -> int:
        return sum(len(document.texts) for document in self.told.documents)


@pytest.fixture
def library(tmp_path: Path) -> Callable[..., Library]:
    rng = random.Random(5)
    lengths = {"a.txt": (9, 4), "b.txt": (13,), "c.txt": (1, 2, 3), "empty.txt": ()}
    shared = "\n".join(rng.choices(list(TABLE), k=6))
    (tmp_path / "in").mkdir()
    for name, counts in lengths.items():
        texts = ["\n".join(rng.choices(list(TABLE), k=count)) for count in counts]
        # A document that stands in two files, but in neither as the first.
        texts += [shared] if name in ("a.txt", "c.txt") else []
        (tmp_path / "in" / name).write_text("\n\n".join(texts) + "\n" if texts else "")

    def made(target: str = "out", **how: Any) -> Library:
        return Library(sorted((tmp_path / "in").iterdir()), tmp_path / target, **how)

    return made


@pytest.mark.parametrize("json_lines", [False, True])
@pytest.mark.parametrize("before", [(), BEFORE])
def test_whoever_works_in_whatever_order_the_files_are_the_same(
    library: Callable[..., Library], json_lines: bool, before: tuple[str, ...]
) -> None:
    how = {"json_lines": json_lines, "before": before, "report": True}
    first = library(**how)
    whole = first.run()
    assert sorted(whole) == ["a.txt", "b.txt", "c.txt", "empty.txt"]
    segments = [(one.file, one.document, one.sentence, one.place, one.made) for one in first.reported]
    for number, crew in enumerate([Shuffled(2), Shuffled(3, 1), Shuffled(9, 2)]):
        other = library(f"again{number}", **how)
        other.inputs.reverse()
        assert other.run(crew) == whole
        other.inputs.reverse()
        assert other.sentences == first.sentences  # what is there twice is done once
        assert sorted(
            (3 - one.file, one.document, one.sentence, one.place, one.made) for one in other.reported
        ) == sorted(segments)
    for path in first.inputs:  # each by its own command
        alone = library("alone", **how)
        alone.inputs = [path]
        alone.run()
    assert library("alone").written() == whole


def test_a_file_alone_is_what_translating_it_in_step_makes_of_it(library: Callable[..., Library]) -> None:
    """The tables of these models know nothing of batches: documents in step are documents by themselves."""
    bulk = library(before=BEFORE, json_lines=True)
    whole = bulk.run()
    models, options = GivenModels(TableNMT(TABLE), TableLM(CALLS)), TranslationOptions(context=3)
    for path in bulk.inputs:
        work = FileTranslation(
            Translator(models, options),
            [read_text_file(path, language="en")],
            plan=OutputPlan((bulk.target / "step",), bulk.target / "journal"),
            judge=Judge(BELOW),
            before=context_of(models, options, BEFORE),
        )
        in_step = work.to_files(json_lines=True, resume=False)
        assert (bulk.target / "step").read_bytes() == whole[path.name]
        found: dict[int, Sequence[Doubt]] = {}
        alone = library("one", before=BEFORE, json_lines=True, replace=True)
        alone.inputs = [path]
        alone.run(doubted=found.__setitem__)
        assert found[0] == in_step
    assert any(b'"flags"' in content for content in whole.values())


class KilledError(Exception):
    """The process is no more."""


def killed_after(library: Library, documents: int, crew: Crew | None = None) -> None:
    """Translate until so many documents are done, then die."""
    bulk = library.bulk()
    begin_, arguments = bulk.task.begin, bulk.task.arguments

    def begin_and_die(*arguments: Any) -> Any:
        work = begin_(*arguments)

        def dying(document: WholeDocument) -> Any:
            if len(library.told.documents) == documents:
                raise KilledError
            return work(document)

        return dying

    bulk = replace(bulk, task=Task(begin_and_die, arguments))
    with pytest.raises(KilledError):
        bulk.run(crew or Alone(), bulk.survey(), resume=True)


@pytest.mark.parametrize("json_lines", [False, True])
def test_what_was_done_before_a_kill_is_not_done_again(
    library: Callable[..., Library], json_lines: bool
) -> None:
    first = library(json_lines=json_lines, before=BEFORE)
    whole = first.run()
    count = len(first.told.documents)
    assert count == 7  # of 8: one is there twice
    for killed in range(1, count):
        again = library(f"out{killed}", json_lines=json_lines, before=BEFORE)
        killed_after(again, killed, Shuffled(2, killed))
        assert len(again.told.documents) == killed
        done = {name: content for name, content in again.written().items() if name != ".journal"}
        assert done.items() <= whole.items()  # whole, or not there
        kept: list[int] = []
        again.inputs.reverse()
        assert again.run(Shuffled(3, killed), resume=True, resumed=kept.append) == whole
        assert len(again.told.documents) == count and kept[0] >= 1


def test_files_may_be_renamed_added_and_left_out_before_it_is_resumed(
    library: Callable[..., Library], tmp_path: Path
) -> None:
    whole = library().run()
    again = library("later")
    killed_after(again, 5)
    done = len(again.told.documents)
    again.inputs[0] = again.inputs[0].rename(tmp_path / "in" / "renamed.txt")
    (tmp_path / "in" / "new.txt").write_text("you see\nyou go\n")
    again.inputs = [tmp_path / "in" / "new.txt", *again.inputs]
    left_out = again.inputs.pop()
    assert left_out.name == "empty.txt"
    found = again.run(resume=True)
    assert found["renamed.txt"] == whole["a.txt"] and "empty.txt" not in found
    assert found["c.txt"] == whole["c.txt"] and ".journal" not in found
    assert len(again.told.documents) - done == 3  # the two that were missing, and the new one


def test_what_is_written_already_is_left_alone_and_what_is_not_ours_too(
    library: Callable[..., Library],
) -> None:
    whole = library().run()
    again = library("later")
    killed_after(again, 6)
    ours = [name for name in again.written() if name != ".journal"]
    assert 0 < len(ours) < len(whole)
    changed, *_ = ours
    times = {name: (again.target / name).stat().st_mtime_ns for name in ours}
    journal = (again.target / ".journal").read_bytes()
    (again.target / changed).write_text("a person has corrected this\n")
    with pytest.raises(CadecError, match=f"{changed}: exists already") as refused:
        again.run(resume=True)
    assert "--force" in refused.value.hint and (again.target / ".journal").read_bytes() == journal
    assert (again.target / changed).read_text() == "a person has corrected this\n"
    (again.target / changed).unlink()
    assert again.run(resume=True) == whole
    for name in ours[1:]:
        assert (again.target / name).stat().st_mtime_ns == times[name]


def test_it_is_interrupted_with_what_there_is_to_say(library: Callable[..., Library]) -> None:
    work = library()

    def interrupted(sentences: Iterable[Any], total: int) -> Iterator[Any]:
        for number, _ in enumerate(sentences):
            if number == 20:
                raise KeyboardInterrupt
            yield

    total = work.bulk().survey().total
    with pytest.raises(Interrupted, match=rf"\d+ of {total} sentences are done; .* --resume goes on"):
        work.run(count=interrupted)
    with pytest.raises(CadecError, match="there is an unfinished translation"):
        work.run()
    counted: list[int] = []
    assert work.run(resume=True, resumed=counted.append) == library("other").run()
    assert 20 <= counted[0] < total


def test_nothing_is_left_where_nothing_was_done(library: Callable[..., Library]) -> None:
    work = library()
    killed_after(work, 0)
    assert work.written() == {}


def test_damage_costs_the_documents_that_it_is_in(library: Callable[..., Library], tmp_path: Path) -> None:
    whole = library(json_lines=True).run()
    rng = random.Random(11)
    begun = library("later", json_lines=True)
    killed_after(begun, 6)
    journal = (begun.target / ".journal").read_bytes()
    header = len(journal.splitlines(keepends=True)[0])
    refused = 0
    for number in range(8 * len(DAMAGES)):
        damage = DAMAGES[number % len(DAMAGES)]
        found = damage(rng, journal)
        again = library(f"damaged{number}", json_lines=True)
        again.target.mkdir()
        (again.target / ".journal").write_bytes(found)
        try:
            assert again.run(resume=True) == whole, damage.__name__
        except CadecError as error:
            assert found[:header] != journal[:header] and "damaged" in error.message, damage.__name__
            refused += 1
    assert refused < 8
    lines = journal.splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if b'"document"' in line)
    lines[place] = lines[place].replace(b"lampa", b"lampo", 1).replace(b"tu", b"ta", 1)
    again = library("one", json_lines=True)
    told: list[str] = []
    again.target.mkdir()
    (again.target / ".journal").write_bytes(b"".join(lines))
    assert again.run(resume=True, damaged=told.append) == whole
    assert len(again.told.documents) == 2  # the one that was damaged, and the one that was never done
    assert told == [
        f"1 damaged record in {again.target / '.journal'}: no more documents than that are translated again"
    ]


def test_a_file_is_known_as_ours_though_the_line_that_says_so_is_damaged(
    library: Callable[..., Library],
) -> None:
    whole = library().run()
    again = library("later")
    killed_after(again, 6)
    journal = again.target / ".journal"
    assert b'"written"' in journal.read_bytes()
    journal.write_bytes(journal.read_bytes().replace(b'"written"', b'"wretten"'))
    assert again.run(resume=True) == whole


@dataclass(frozen=True)
class Idle:
    """A crew that takes everything, and does nothing; or is lost with the third document."""

    lost: bool = False
    members = 1

    def run(self, task: Task[Any, Any], items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        for number, _ in enumerate(items):
            if self.lost and number == 2:
                raise LostMembersError("item 3 takes members down", "use others", number)
        yield from ()


def test_what_a_crew_has_not_done_is_not_taken_for_done(library: Callable[..., Library]) -> None:
    work = library()
    with pytest.raises(RuntimeError, match="left documents undone"):
        work.run(Idle())
    assert not work.written().keys() - {"empty.txt", ".journal"}


def test_a_document_that_takes_workers_down_is_named(library: Callable[..., Library]) -> None:
    with pytest.raises(CadecError, match=r"document \d of what becomes .*\.txt: item 3 takes members down"):
        library().run(Idle(lost=True))


@dataclass(frozen=True)
class Losing:
    """A crew that does all but the third document, which takes its members down."""

    members = 1

    def run(self, task: Task[Any, Any], items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        work = task.begin(*task.arguments)
        for number, item in enumerate(items):
            lost = LostMembersError("item 3 takes members down", "use others", number)
            yield number, lost if number == 2 else work(item)


def test_all_other_documents_are_done_beside_one_that_takes_workers_down(
    library: Callable[..., Library],
) -> None:
    whole = library("whole").run()
    work = library()
    with pytest.raises(
        CadecError, match=r"document \d of what becomes .*: item 3 takes members down"
    ) as found:
        work.run(Losing())
    assert "all else is done" in found.value.hint
    assert len(work.told.documents) == 6
    assert whole.keys() - work.written().keys() == {"a.txt", "c.txt"}  # both have it
    assert work.run(resume=True) == whole and len(work.told.documents) == 7


def test_an_input_that_changes_meanwhile_is_one_clear_error(library: Callable[..., Library]) -> None:
    work = library(report=True)
    file = work.inputs[1]
    before = file.read_bytes()

    def changing(sentences: Iterable[Any], total: int) -> Iterator[Any]:
        yield from sentences
        file.write_bytes(b"One more.\n\n" + before)

    with pytest.raises(CadecError, match=rf"the input of .*{file.name} has changed in the meantime"):
        work.run(count=changing)
    file.write_bytes(before)
    whole = library("other").run()
    assert work.run(resume=True) == whole and len(work.reported) > 0


def test_a_journal_that_changes_under_our_hands_is_no_output(library: Callable[..., Library]) -> None:
    work = library()

    def scribbled(sentences: Iterable[Any], total: int) -> Iterator[Any]:
        for number, one in enumerate(sentences):
            if number == 14:  # of a document whose file waits for others
                journal = work.target / ".journal"
                journal.write_bytes(journal.read_bytes().replace(b"lampa", b"lampo"))
            yield one

    with pytest.raises(CadecError, match="is not as it was written"):
        work.run(count=scribbled)
    assert work.run(resume=True) == library("other").run()


def test_another_way_of_translating_is_another_translation(library: Callable[..., Library]) -> None:
    killed_after(library(), 3)
    with pytest.raises(CadecError, match="differs in: json"):
        library(json_lines=True).run(resume=True)


def test_all_done_and_only_the_outputs_gone_nobody_needs_to_begin(library: Callable[..., Library]) -> None:
    work = library(report=True)
    bulk = work.bulk()

    def killed(made: Iterable[Beside]) -> None:
        raise KilledError

    with pytest.raises(KilledError):
        replace(bulk, beside=killed).run(Alone(), bulk.survey(), resume=False)
    whole = work.written()
    assert whole.pop(".journal") and len(whole) == 4
    (work.target / "b.txt").unlink()

    def nobody(*arguments: Any) -> Any:
        raise AssertionError("there is nothing to do")

    replace(bulk, task=Task(nobody)).run(Alone(), bulk.survey(), resume=True)
    assert work.written() == whole and len(work.reported) == bulk.survey().total


@pytest.mark.parametrize(
    "text", ["0/4", "5/4", "a/b", "1", "1/", "/4", "1/2/3", "-1/4", "1/0", "¹/²", "1/1000000"]
)
def test_no_share(text: str) -> None:
    with pytest.raises(UsageError, match="no share"):
        Share.parsed(text)


@given(st.lists(st.integers(0, 1000), max_size=40), st.integers(1, 12))
@settings(max_examples=60)
def test_shares_are_all_of_it_once_and_about_equal(sizes: list[int], count: int) -> None:
    shares = [Share.parsed(f"{number}/{count}").of_sizes(sizes) for number in range(1, count + 1)]
    assert sorted(item for share in shares for item in share) == list(range(len(sizes)))
    assert all(share == sorted(share) for share in shares)
    filled = [sum(sizes[item] for item in share) for share in shares]
    assert max(filled) - min(filled) <= max(sizes, default=0)
