"""`cadec translate --fit`: the same from every command and any number of workers, and nothing without it."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from cadec_cli.decoding.translation import Translation
from cadec_cli.errors import Interrupted
from cadec_cli.jobs.in_step import FileTranslation
from cadec_cli.jobs.job import InputOptions, TranslationJob
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.jobs.outputs import OutputRequest
from cadec_cli.main import exit_code

MACHINE = ["--nbest", "6", "--compute-type", "float32", "--threads", "1", "--quiet"]
LINES = [
    "hello friend.",
    "do you want the boat?",
    "you see the big old house.",
    "i think you take it.",
    "you love the bird.",
]


def film(seconds: float) -> str:
    """Subtitles whose cues are so short that all of them are too fast."""
    return "\n".join(
        f"{number}\n00:00:{number:02},000 --> 00:00:{number:02},{int(seconds * 1000):03}\n{line}\n"
        for number, line in enumerate(LINES * 8, 1)
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "film.srt"
    path.write_text(film(0.4))
    return path


@pytest.fixture
def run(made_up_bundle: Path, source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    def translate(*arguments: str, given: Path = source) -> str:
        command = ["translate", "-b", str(made_up_bundle), str(given), *MACHINE, *arguments]
        assert exit_code(command) == 0
        return capfd.readouterr().out

    return translate


def test_it_is_shorter_with_every_search_and_the_same_in_every_way(run, source: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    plain = run()
    assert run("--weight", "fit=0") == plain
    fitted = run("--weight", "fit=5")
    assert len(fitted) < len(plain)
    assert fitted.count("-->") == plain.count("-->")
    assert run("--weight", "fit=5", "--search", "lattice", "--paths", "1") == fitted
    for name, more in (("a", []), ("b", ["--workers", "1"]), ("c", ["--fit", "--max-lines", "2"])):
        run("--weight", "fit=5", "-o", str(tmp_path / f"{name}.srt"), *more)
        assert (tmp_path / f"{name}.srt").read_text() == fitted
    # who has time enough loses nothing
    slow = tmp_path / "slow.srt"
    slow.write_text(film(0.4).replace(" --> 00:00:", " --> 00:09:"))
    assert run("--fit", given=slow) == run(given=slow)
    assert run("--fit", "--max-cps", "0") == plain


def test_reranking_its_lists_chooses_the_same(run, made_up_bundle: Path, tmp_path: Path, capfd) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "lists.jsonl"
    path.write_text(run("--weight", "fit=5", "--json"))
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(record["room"] <= 7 for record in records if "hypotheses" in record)
    assert all("fit" in one for record in records for one in record.get("hypotheses", []))
    command = ["rerank", str(path), "-b", str(made_up_bundle), *MACHINE, "--weight", "fit=5", "--json"]
    assert exit_code(command) == 0
    again = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [one["translation"] for one in again] == [one["translation"] for one in records]
    plain = [json.loads(line) for line in run("--json").splitlines()]
    assert not any("room" in record or "fit" in json.dumps(record) for record in plain)


def test_an_interrupted_translation_goes_on_as_it_began(
    made_up_bundle: Path, source: Path, tmp_path: Path
) -> None:
    options = {"nbest": 6, "weight": {"fit": 5.0}}
    job = TranslationJob.open(ModelRequest(made_up_bundle, compute_type="float32", threads=1), options)

    def work(name: str, resume: bool) -> FileTranslation:
        found = job.translation_of(
            [source], InputOptions(), OutputRequest(str(tmp_path / name), resume=resume)
        )
        assert isinstance(found, FileTranslation)
        return found

    def stopping(translations: Iterable[Translation], total: int | None) -> Iterator[Translation]:
        for number, one in enumerate(translations):
            if number == 25:
                raise KeyboardInterrupt
            yield one

    work("whole.srt", False).to_files(json_lines=False, resume=False)
    with pytest.raises(Interrupted):
        work("part.srt", False).to_files(json_lines=False, resume=False, track=stopping)
    work("part.srt", True).to_files(json_lines=False, resume=True)
    assert (tmp_path / "part.srt").read_bytes() == (tmp_path / "whole.srt").read_bytes()


@pytest.mark.parametrize("search", ["sentence", "beam"])
def test_searches_that_choose_from_no_lists_can_not_fit(
    search: str, made_up_bundle: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["translate", "-b", str(made_up_bundle), str(source), "--fit", "--search", search]) == 2
    assert "rerank" in capsys.readouterr().err
