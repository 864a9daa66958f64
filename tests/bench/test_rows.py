"""What the benchmarks' parts make of what they measured, and what they would run."""

import itertools
from pathlib import Path

import pytest

from bench import busy, scale, start
from bench.__main__ import PARTS
from bench.dialogues import sentences, write_library
from bench.processes import Memory, Spent
from tests.helpers.shown_commands import unknown_options


def shown(line: list[str]) -> str:
    """A command line as one would type it."""
    return f"cadec {' '.join(line).partition('-m cadec_cli ')[2].removesuffix(' --quiet')}"


@pytest.mark.parametrize(("cpu", "reached"), [(14.0, True), (15.0, True), (15.1, False)])
def test_a_busy_machine_may_cost_half_as_much_again_in_cpu_time(cpu: float, reached: bool) -> None:
    row = busy.row("translate", Spent(cpu, 99.0), Spent(10.0, 5.0))
    assert row.ratio == cpu / 10 and row.reached is reached and row.target == "≤ 1.50"
    assert row.measured == f"{cpu:.1f} / 10.0 CPU s (99.0 / 5.0 s)"


def test_starts_are_held_against_torch_and_against_another_checkout() -> None:
    ours = {start.TORCH: Spent(1.9, 2.0), start.SENTENCE: Spent(0.9, 1.0), "--help": Spent(0.4, 0.5)}
    alone = list(start.rows(ours, ours))
    assert [(row.ratio, row.reached) for row in alone] == [(0.5, None), (0.25, None)]
    both = start.rows(ours, ours | {start.before(name): Spent(1.4, 1.5) for name in ours})
    of_sentence, of_help = list(both)[2:]
    assert of_sentence.what == f"start: {start.SENTENCE} / the other checkout's"
    assert of_sentence.measured == "1.00 / 1.50 s (0.90 / 1.40 CPU s)"
    assert (of_sentence.target, of_sentence.reached) == ("≤ 0.60", False)
    assert (of_help.target, of_help.reached) == ("", None)


def test_another_checkout_has_to_be_one(tmp_path: Path) -> None:
    assert start.against([]) is None
    for wrong in ([], [str(tmp_path)], ["."]):
        with pytest.raises(SystemExit, match="another checkout"):
            start.against(["--against", *wrong])
    (tmp_path / "cadec_cli").mkdir()
    assert start.against(["--against", str(tmp_path)]) == tmp_path


def test_throughput_start_and_memory_of_workers_are_told_against_one_process() -> None:
    one = scale.Run(Spent(9.0, 10.0), (Memory(400.0, 300.0),))
    two = scale.Run(Spent(9.0, 5.0), (Memory(500.0, 330.0), Memory(450.0, 310.0)))
    rows = (
        scale.throughput("2 / 1", 100, two, one),
        scale.start_up("w", one, two),
        scale.memory("m", two, one),
    )
    assert [row.ratio for row in rows] == [2.0, 2.0, 1.25]
    assert [row.measured for row in rows] == [
        "20.0 / 10.0 sentences/s",
        "10.0 / 5.0 s, +5.0 s",
        "500 / 400 MiB, 330 / 300 of them its own",
    ]


def test_what_is_measured_are_commands_that_exist(tmp_path: Path) -> None:
    made = [line(tmp_path) for line in busy.commands(tmp_path).values()]
    made += [line for line in start.commands(tmp_path).values() if "translate" in line]
    made += [scale.line([tmp_path / "a.txt"], tmp_path / "out", 0, "processes", 1)]
    assert len(made) == 7
    assert not {shown(line): found for line in made if (found := unknown_options(shown(line)))}
    assert {"busy", "start", "scale"} <= PARTS.keys()


def test_no_sentence_of_a_library_is_like_another(tmp_path: Path) -> None:
    files = write_library(tmp_path, documents=24, mean=20)
    texts = [path.read_text("utf-8").splitlines() for path in files]
    lines = list(itertools.chain.from_iterable(texts))
    assert len(lines) == len(set(lines)) > 24 * 15
    assert min(map(len, texts)) >= 2 and max(map(len, texts)) >= 2 * min(map(len, texts))
    assert len(list(sentences())) > 10_000
