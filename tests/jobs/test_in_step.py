"""A translation that is killed keeps what is older than a few seconds, however slow its models are."""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.jobs.in_step import FileTranslation, Track
from cadec_cli.jobs.journal import SAVE_EVERY
from cadec_cli.jobs.outputs import OutputPlan
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.options import TranslationOptions, glossary_sources
from cadec_cli.text.formats import read_text_file
from tests.helpers import beam_pairs
from tests.helpers.fakes import TableLM, TableNMT
from tests.helpers.job_library import CALLS, TABLE

NUMBERS = {
    "4 5 6": {"7 8": -0.5, "7 9 11": -0.6},
    "9": {"5": -0.2, "12 4": -0.3, "8 8 6": -0.35},
    "11 5 4": {"6 10": -0.9, "4": -1.0},
}


class KilledError(Exception):
    """The process ends here."""


GLOSSARY = "rerank with a glossary"


def translator(search: str, rolling: bool) -> Translator:
    glossary = glossary_sources({"9": "12 4"}) if search == GLOSSARY else ()
    search = "rerank" if search == GLOSSARY else search
    options = TranslationOptions(
        search=search, paths=3, beam=2, rolling=rolling, protect=False, glossary=glossary
    )
    pair = beam_pairs.models()
    if search == "beam" or rolling:  # a D-LM that remembers
        return Translator(ModelSet(TableNMT(NUMBERS), pair.language, stepped=pair.translation), options)
    return Translator(ModelSet(TableNMT(TABLE), TableLM(CALLS)), options)


@pytest.fixture(params=[[300], [9] * 40], ids=["one document", "many documents"])
def work(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[[str, bool], tuple[FileTranslation, Path]]:
    def make(search: str, rolling: bool) -> tuple[FileTranslation, Path]:
        sources = itertools.cycle(NUMBERS if search == "beam" or rolling else TABLE)
        blocks = ["\n".join(itertools.islice(sources, count)) for count in request.param]
        (tmp_path / "in.txt").write_text("\n\n".join(blocks) + "\n")
        file = read_text_file(tmp_path / "in.txt", language="en", lines=True)
        plan = OutputPlan((tmp_path / "out.txt",), tmp_path / "journal")
        return FileTranslation(translator(search, rolling), [file], plan=plan), tmp_path / "out.txt"

    return make


def killed_after(count: int, seconds: list[float], each: float) -> Track:
    """Every sentence takes `each` seconds; after some of them the process is killed."""

    def watched(translations: Iterable[Translation], total: int | None) -> Iterator[Translation]:
        for translation in itertools.islice(translations, count):
            seconds[0] += each
            yield translation
        raise KilledError

    return watched


@pytest.mark.parametrize(
    ("search", "rolling"),
    [("rerank", False), ("rerank", True), ("lattice", False), ("beam", False), (GLOSSARY, True)],
)
def test_a_kill_costs_a_few_seconds_and_resumed_is_uninterrupted(
    work: Callable[[str, bool], tuple[FileTranslation, Path]],
    search: str,
    rolling: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cadec_cli.decoding.translator.WAVE", 16)
    whole, output = work(search, rolling)
    whole.to_files(json_lines=True, resume=False)
    expected = output.read_bytes()
    if search == GLOSSARY:
        assert expected.count(b'"outcome"') == expected.count(b'"rendering": "12 4"') > 0
    output.unlink()
    seconds = [0.0]
    slow = replace(whole, clock=lambda: seconds[0])
    done: list[int] = [0]
    for each in (0.1, 1.0, 5.0):
        with pytest.raises(KilledError):
            slow.to_files(
                json_lines=True,
                resume=True,
                track=killed_after(47, seconds, each),
                resumed=done.append,
            )
    slow.to_files(json_lines=True, resume=True, resumed=done.append)
    assert output.read_bytes() == expected
    for before, after, each in zip(done, done[1:], (0.1, 1.0, 5.0), strict=False):
        lost = before + 47 - after
        # The lattice settles a whole document at once, or nearly; what is open is in the snapshot.
        assert search == "lattice" or lost <= SAVE_EVERY / each + 16 + 1


@pytest.mark.parametrize("lengths", [[100], [3] * 50, [1, 40, 2, 0, 17]])
def test_the_clock_decides_what_is_saved_and_not_what_is_chosen(lengths: list[int]) -> None:
    one = translator("rerank", rolling=True)
    sources = itertools.cycle(NUMBERS)
    documents = [list(itertools.islice(sources, count)) for count in lengths]
    asked: list[int] = []
    found = list(one.translate_documents(documents, checkpoint=lambda state: asked.append(state.taken)))
    assert asked == list(range(len(asked)))  # between all waves
    assert found == list(one.translate_documents(documents))


@dataclass(frozen=True)
class SlowNMT(TableNMT):
    """Takes four seconds to make three lists, and is killed after it has done so `left` times."""

    seconds: list[float] = field(default_factory=list)
    left: int = -1
    asked: list[list[str]] = field(default_factory=list)
    batch_size: int = 3

    def nbest(self, sentences: Sequence[str], count: int) -> list[NBest]:
        if len(self.asked) == self.left:
            raise KilledError
        self.asked.append(list(sentences))
        self.seconds[0] += 4
        return super().nbest(sentences, count)


@pytest.mark.parametrize("killed", [2, 7, 12, 23])
def test_lists_that_took_long_are_not_made_again(killed: int, tmp_path: Path) -> None:
    sources = ["<i>you see</i>", "- 3 you go", "a lamp", "good day sir"]
    (tmp_path / "in.txt").write_text("\n".join(itertools.islice(itertools.cycle(sources), 100)) + "\n")
    file = read_text_file(tmp_path / "in.txt", language="en", lines=True)
    plan = OutputPlan((tmp_path / "out.txt",), tmp_path / "journal")
    seconds = [0.0]

    def run(left: int) -> list[list[str]]:
        slow = SlowNMT(TABLE, seconds=seconds, left=left)
        one = Translator(ModelSet(slow, TableLM(CALLS)), TranslationOptions())
        work = FileTranslation(one, [file], plan=plan, clock=lambda: seconds[0])
        with contextlib.suppress(KilledError):
            work.to_files(json_lines=True, resume=True)
        return slow.asked

    whole = run(-1)
    expected = (tmp_path / "out.txt").read_bytes()
    (tmp_path / "out.txt").unlink()
    assert run(killed) == whole[:killed]
    assert len(run(-1)) <= len(whole) - killed
    assert (tmp_path / "out.txt").read_bytes() == expected
