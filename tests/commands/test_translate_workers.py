"""`cadec translate --workers` and `--shard`: each document by itself, with the same result always."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.jobs import job
from cadec_cli.jobs.done import RECORD, DoneDocuments
from cadec_cli.parallel import SerialPool, available_cores
from cadec_cli.terminal.run_job import worker_pool
from tests.helpers import made_up_pair
from tests.helpers.ray_cluster import RayCluster
from tests.helpers.run_in_process import cadec

FAST = ("--nbest", "4", "--compute-type", "float32", "--threads", "1")
FILM = "".join(f"{n}\n00:0{n}:00,000 --> 00:0{n}:02,900\n<i>you see the lamp.</i>\n\n" for n in range(1, 5))

Run = Callable[..., Any]


@pytest.fixture
def run(made_up_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    talks = [[source for source, _ in document] for document in made_up_pair.documents(6, 3)]
    (tmp_path / "in").mkdir()
    for name, some in (("a.txt", talks[:3]), ("b.txt", talks[2:3]), ("c.txt", talks[3:])):
        (tmp_path / "in" / name).write_text("\n\n".join("\n".join(lines) for lines in some) + "\n")
    (tmp_path / "in" / "film.srt").write_text(FILM)
    return lambda *arguments: cadec("translate", "-b", made_up_bundle, *FAST, *arguments)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """--workers is this process: others take seconds to start, and one test is enough to compare them."""
    monkeypatch.setattr("cadec_cli.terminal.run_job.worker_pool", lambda *_, **__: SerialPool())


def inputs() -> list[str]:
    return sorted(map(str, Path("in").iterdir()))


def written(directory: str | Path) -> dict[str, bytes]:
    """What is there but for the record of what is finished."""
    found = {path.name: path.read_bytes() for path in Path(directory).iterdir()}
    return {name: content for name, content in found.items() if not name.startswith(RECORD)}


def told(done: Any) -> str:
    return " ".join(done.stderr.split())


def test_two_processes_are_as_one_and_as_two_jobs_with_a_part_each(run: Run) -> None:
    flags = ("--json", "--flag-below", 1)
    done = run(*inputs(), "-o", "two", "--workers", 2, *flags)
    assert done.returncode == 0, done.stderr
    flagged = done.stderr
    for part in ("1/2", "2/2"):
        done = run(*inputs(), "-o", "parts", "--shard", part, *flags)
        assert done.returncode == 0, done.stderr
    assert sorted(written("two")) == ["a.eo.jsonl", "b.eo.jsonl", "c.eo.jsonl", "film.eo.jsonl"]
    assert written("parts") == written("two")
    assert "a.txt, line 1: " in flagged and "sentences are worth a look" in flagged


def test_parts_are_the_same_in_whatever_order_a_shell_lists_the_files(run: Run) -> None:
    for name in "wxyz":  # of one size
        Path("in", f"{name}.txt").write_bytes(Path("in", "b.txt").read_bytes())
    assert run(*inputs(), "-o", "out", "--shard", "1/2").returncode == 0
    done = run(*reversed(inputs()), "-o", "out", "--shard", "2/2")
    assert done.returncode == 0, done.stderr
    assert len(written("out")) == len(inputs())


@pytest.mark.slow
def test_a_ray_cluster_is_as_one_process_though_a_worker_is_killed(
    run: Run, ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("cadec_cli.terminal.run_job.worker_pool", lambda *_, **__: SerialPool())
        assert run(*inputs(), "-o", "one", "--workers", 1, "--json").returncode == 0
    killing = ThreadPoolExecutor(1).submit(ray_cluster.kill_one_at_work)
    on_ray = ("--engine", "ray", "--address", ray_cluster.address)
    done = run(*inputs(), "-o", "ray", *on_ray, "--json")
    assert done.returncode == 0, done.stderr
    assert killing.result()
    assert written("ray") == written("one")


def test_a_single_document_is_translated_as_it_is_without_workers(run: Run, alone: None) -> None:
    for name, flags in (
        ("b.txt", ["--json"]),
        ("b.txt", ["--flag-below", "0.9"]),
        ("film.srt", ["--bilingual", "below", "--max-chars", "12"]),
        ("b.txt", ["--search", "sentence"]),
        ("b.txt", ["--after", "in/b.txt"]),
    ):
        report = ["--report", "{}.html"]
        said = {}
        for way, more in (("in step", []), ("by itself", ["--workers", "1"])):
            output = [*(part.format(way) for part in report), "-o", f"{way}/"]
            done = run(f"in/{name}", *flags, *output, *more)
            assert done.returncode == 0, done.stderr
            said[way] = done.stderr
        assert written("by itself") == written("in step") and said["by itself"] == said["in step"]
        assert Path("by itself.html").read_bytes() == Path("in step.html").read_bytes()
        for way in said:
            shutil.rmtree(way)
            Path(f"{way}.html").unlink()


def test_workers_are_sent_no_more_of_what_comes_before_than_they_read(
    run: Run, alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, ...]] = []
    begin = job.start_worker

    def noted(instructions: job.WorkerInstructions) -> Any:
        sent.append(instructions.after)
        return begin(instructions)

    monkeypatch.setattr(job, "start_worker", noted)
    lines = Path("in/a.txt").read_text().split("\n")
    Path("long.txt").write_text("\n".join(lines * 50))
    assert run("in/c.txt", "-o", "step/", "--after", "long.txt", "--json").returncode == 0
    assert run("in/c.txt", "-o", "out/", "--after", "long.txt", "--json", "--workers", 1).returncode == 0
    assert len(sent[0]) < 10 and sent[0][-1] == lines[-2]
    assert written("out") == written("step")


@pytest.mark.parametrize("flags", [("--json",), ("--after", "in/b.txt"), ("--search", "lattice")])
def test_a_file_is_translated_as_by_a_command_of_its_own(run: Run, alone: None, flags: tuple[str]) -> None:
    assert run(*reversed(inputs()), "-o", "all/", "--workers", 3, *flags).returncode == 0
    for path in inputs():
        assert run(path, "-o", "each/", "--workers", 1, *flags).returncode == 0
    assert written("all") == written("each")


def test_formats_are_those_of_the_names(run: Run, alone: None) -> None:
    assert run("in/film.srt", "-o", "{stem}.{to}.vtt", "--workers", 1).returncode == 0
    assert Path("film.eo.vtt").read_text().startswith("WEBVTT")
    done = run("in/film.srt", "in/a.txt", "-o", "{stem}.ass", "--workers", 1)
    assert done.returncode == 1 and "can't become .ass" in told(done)
    assert not list(Path().glob("*.ass")) and not list(Path().glob(".cadec*"))


@pytest.mark.parametrize("ends", [1, 3])
def test_ctrl_c_says_how_much_is_done_and_resume_goes_on(
    run: Run, alone: None, monkeypatch: pytest.MonkeyPatch, ends: int
) -> None:
    assert run(*inputs(), "-o", "whole", "--workers", 1).returncode == 0
    add = DoneDocuments.add
    keys: list[str] = []

    def interrupted(self: DoneDocuments, key: str, sentences: Any) -> None:
        if len(keys) == ends:
            raise KeyboardInterrupt
        keys.append(key)
        add(self, key, sentences)

    monkeypatch.setattr(DoneDocuments, "add", interrupted)
    done = run(*inputs(), "-o", "out", "--workers", 1)
    assert done.returncode == 130 and "sentences are done; the same command with --resume" in told(done)
    assert Path("out/.cadec-journal").exists()
    ends = -1
    done = run(*inputs(), "-o", "out", "--workers", 1)
    assert done.returncode == 1 and "unfinished translation" in told(done)
    Path("in/film.srt").rename("in/movie.srt")
    done = run(*inputs(), "-o", "out", "--workers", 1, "--resume")
    assert done.returncode == 0 and "sentences are done already" in told(done)
    assert len(keys) == len(set(keys))  # nothing was done twice
    renamed = {name.replace("film", "movie"): content for name, content in written("whole").items()}
    assert written("out") == renamed


def test_cues_too_fast_to_read_are_named_in_the_order_of_the_inputs(run: Run, alone: None) -> None:
    """Those with the longest documents are done first."""
    for name, start, count in (("short", 1, 1), ("long", 2, 3)):
        cues = (
            f"{n}\n00:0{start}:0{n},000 --> 00:0{start}:0{n},100\nyou see the lamp.\n\n" for n in range(count)
        )
        Path(f"{name}.srt").write_text("".join(cues))
    films = ("short.srt", "long.srt")
    in_step = run(*films, "-o", "step/")
    assert "4 cues" in told(in_step) and "the first at 0:01:00" in told(in_step)
    by_itself = run(*films, "-o", "bulk/", "--workers", 1)
    assert by_itself.returncode == 0 and by_itself.stderr == in_step.stderr


def test_nothing_is_replaced_unasked(run: Run, alone: None) -> None:
    Path("out").mkdir()
    Path("out/a.eo.txt").write_text("mine\n")
    done = run(*inputs(), "-o", "out", "--workers", 1)
    assert done.returncode == 1 and "out/a.eo.txt exists already" in told(done)
    assert written("out") == {"a.eo.txt": b"mine\n"}
    assert run(*inputs(), "-o", "out", "--workers", 1, "--force").returncode == 0
    assert len(written("out")) == 4 and written("out")["a.eo.txt"] != b"mine\n"


LEFT = "nothing is left to do"


@pytest.mark.parametrize("division", [("--shard", "1/2"), ("--workers", 1)])
def test_what_is_finished_may_be_started_again(run: Run, alone: None, division: tuple[str, str]) -> None:
    command = (*inputs(), "-o", "out/", *division, "--resume")
    assert run(*command).returncode == 0
    before = {path: path.stat().st_mtime_ns for path in Path("out").iterdir()}
    Path("out").chmod(0o500)  # nothing is even tried
    again = run(*command)
    Path("out").chmod(0o700)
    assert again.returncode == 0 and LEFT in told(again), again.stderr
    assert {path: path.stat().st_mtime_ns for path in Path("out").iterdir()} == before
    # Moved as a whole, and in another order: it is the same work.
    Path("out").rename("moved")
    moved = run(*reversed(inputs()), "-o", "moved/", *division, "--resume")
    assert moved.returncode == 0 and LEFT in told(moved)


def test_a_single_file_that_is_finished_too(run: Run, alone: None) -> None:
    command = ("in/b.txt", "-o", "b.eo.txt", "--workers", 1, "--resume")
    assert run(*command).returncode == 0
    done = run(*command)
    assert done.returncode == 0 and f"{LEFT}: the file is there" in told(done)
    assert [path.name for path in Path().glob("*.*") if not path.name.startswith(".")] == ["b.eo.txt"]


def test_what_another_division_has_finished_is_known_too(run: Run, alone: None) -> None:
    for part in ("1/2", "2/2"):
        assert run(*inputs(), "-o", "out/", "--shard", part, "--resume").returncode == 0
    for division in (("--shard", "1/3"), ("--shard", "3/3"), ("--workers", 1)):
        done = run(*inputs(), "-o", "out/", *division, "--resume")
        assert done.returncode == 0 and LEFT in told(done), done.stderr


def test_what_may_not_be_this_very_work_is_refused(run: Run, alone: None) -> None:
    command = (*inputs(), "-o", "out/", "--workers", 1)
    assert run(*command).returncode == 0  # and leaves no record
    done = run(*command, "--resume")
    assert done.returncode == 1 and "there is no record that this translation" in told(done)
    assert run(*command, "--resume", "--force").returncode == 0
    assert LEFT in told(run(*command, "--resume"))
    film, text = Path("in/film.srt"), Path("out/a.eo.txt")
    timed = film.read_text()
    film.write_text(timed.replace("00:01:00,000", "00:01:00,500"))  # the same sentences
    done = run(*command, "--resume")
    assert done.returncode == 1 and "out/film.eo.srt exists already" in told(done)
    film.write_text(timed)
    written_before = text.read_bytes()
    text.write_bytes(b"corrected\n")
    done = run(*command, "--resume")
    assert done.returncode == 1 and "out/a.eo.txt exists already" in told(done)
    text.write_bytes(written_before)
    for more in (
        ("--nbest", 2),
        ("--max-chars", 20),
        ("--after", "in/b.txt"),
        ("--output-encoding", "utf-16"),
    ):
        done = run(*command, "--resume", *more)
        assert done.returncode == 1 and "out/film.eo.srt" in told(done), more
    (record,) = Path("out").glob(f"{RECORD}*")
    record.write_bytes(record.read_bytes().replace(b"film.eo", b"folm.eo"))
    done = run(*command, "--resume")
    assert done.returncode == 1 and "out/film.eo.srt exists already" in told(done)


def test_a_record_is_no_input_and_no_output(run: Run, alone: None) -> None:
    for name in ("out/.cadec-finished", "in/.cadec-finished.txt"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("you see the lamp.\n")
    flags = ("--workers", 1, "--resume", "--force")
    done = run("out/.cadec-finished", "-o", "out/", *flags)
    assert done.returncode == 1 and "out/.cadec-finished is the input" in told(done)
    assert written("out") == {} and Path("out/.cadec-finished").read_text() == "you see the lamp.\n"
    done = run("in/.cadec-finished.txt", "-o", "other/{stem}", *flags)
    assert done.returncode == 1 and "are the same file" in told(done)
    assert not Path("other").exists()


def test_of_what_is_finished_only_the_rest_is_made(run: Run, alone: None) -> None:
    command = ("-o", "out/", "--workers", 1, "--resume")
    assert run(*inputs(), *command).returncode == 0
    whole = written("out")
    Path("out/film.eo.srt").unlink()
    times = {path: path.stat().st_mtime_ns for path in Path("out").glob("*.txt")}
    Path("in/new.txt").write_text("you see the lamp.\n")
    assert run(*inputs(), *command).returncode == 0
    assert written("out").items() > whole.items() and "new.eo.txt" in written("out")
    assert times == {path: path.stat().st_mtime_ns for path in times}
    assert LEFT in told(run(*inputs(), *command))


def test_killed_between_the_record_and_its_end(
    run: Run, alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: DoneDocuments) -> None:
        raise RuntimeError

    command = (*inputs(), "-o", "out/", "--workers", 1, "--resume")
    with monkeypatch.context() as patched:
        patched.setattr(DoneDocuments, "finish", killed)
        assert run(*command).returncode == 1
    assert Path("out/.cadec-journal").exists()
    done = run(*command)
    assert done.returncode == 0 and LEFT in told(done)
    assert not Path("out/.cadec-journal").exists()


def test_what_two_parts_would_both_write_is_refused_in_each(run: Run) -> None:
    Path("in/more").mkdir()
    Path("in/more/a.txt").write_text("you see it.\n")
    for part in ("1/2", "2/2"):
        done = run("in/a.txt", "in/more/a.txt", "-o", "out/", "--shard", part)
        assert done.returncode == 1 and "would both become" in told(done)


def test_a_part_may_be_empty(run: Run) -> None:
    done = run("in/a.txt", "in/b.txt", "-o", "out/", "--shard", "3/3")
    assert done.returncode == 0 and "none of the 2 files is in part 3/3" in told(done)
    assert not Path("out").exists()


def test_more_workers_than_the_cores_have_use_for_are_not_started(
    capsys: pytest.CaptureFixture[str],
) -> None:
    crew = worker_pool(1000, "processes", None)
    assert crew is not None and crew.size == 2 * available_cores()
    assert "instead of 1,000" in capsys.readouterr().err
    crew = worker_pool(2, "processes", None)
    assert crew is not None and crew.size == 2 and capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("in/a.txt --workers 2", "needs --output"),
        ("in/a.txt --workers 2 -o -", "needs --output"),
        ("- --workers 2 -o out.txt", "needs files"),
        ("/dev/null --shard 1/2 -o out/", "needs files"),
        ("in/a.txt --workers 2 -o /dev/null", "write files"),
        ("in/a.txt --workers 2 --compare", "--compare can't be combined with --workers"),
        ("in/a.txt --shard 1/2 --explain", "--explain can't be combined with --shard"),
        ("in/a.txt --shard 1/2 -o out.txt", "a directory or a template"),
        ("in/a.txt --shard 1/2 -o out/ --report page.html", "--report is one page for all files"),
        ("in/a.txt --shard 0/4 -o out/", "invalid shard '0/4'"),
        ("in/a.txt --shard 5/4 -o out/", "invalid shard '5/4'"),
        ("in/a.txt --shard a/b -o out/", "invalid shard 'a/b'"),
        ("in/a.txt --address auto -o out/", "add --engine ray"),
        ("in/a.txt --workers 2 -o out/ --search sentence --after in/b.txt", "reads none"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(run: Run, flags: str, message: str) -> None:
    done = run(*flags.split())
    assert done.returncode == 2 and message in told(done), done.stderr
    assert sorted(path.name for path in Path().iterdir()) == ["in"]
