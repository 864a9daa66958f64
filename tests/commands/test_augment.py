"""`cadec augment back-translate`: line for line, documents parted as they were, whatever happens."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from cadec_cli.data.shards import Shard
from cadec_cli.errors import CadecError
from cadec_cli.fs.append_log import encode_line
from cadec_cli.jobs import back_translation
from cadec_cli.jobs.back_translation import PairFile, PairProgress, pair_lines
from cadec_cli.main import exit_code
from tests.helpers import made_up_pair
from tests.helpers.damages import DAMAGES
from tests.helpers.run_in_process import cadec

# The made-up pair's bundle translates from en to eo: here en is the language of the documents.
DOCUMENTS = made_up_pair.documents(40, seed=5)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "documents.txt"
    blocks = ("".join(f"{source}\n" for source, _ in document) for document in DOCUMENTS)
    path.write_text("\n".join(blocks), "utf-8")
    return path


def arguments(bundle: Path, text: Path, output: Path, *more: str) -> list[str]:
    flags = ["--compute-type", "float32", "--threads", "1"]
    return ["augment", "back-translate", str(text), "-b", str(bundle), "-o", str(output), *flags, *more]


def sides(path: Path) -> tuple[list[str], list[str]]:
    rows = [line.split("\t") if line else ["", ""] for line in path.read_text("utf-8").splitlines()]
    assert all(len(row) == 2 for row in rows)
    return [row[0] for row in rows], [row[1] for row in rows]


def test_every_line_is_paired_and_documents_stay_apart(
    made_up_bundle: Path, corpora: Path, text: Path, tmp_path: Path
) -> None:
    output = tmp_path / "pseudo.tsv"
    assert exit_code(arguments(made_up_bundle, text, output, "-q")) == 0
    translations, originals = sides(output)
    assert originals == text.read_text("utf-8").splitlines()
    wanted = ["" if not line else "x" for line in originals]
    assert [bool(one) for one in translations] == [bool(one) for one in wanted]
    known = {source: target for document in DOCUMENTS for source, target in document}
    right = [known[o].lower() == t.lower() for t, o in zip(translations, originals, strict=True) if o]
    assert sum(right) > 0.5 * len(right)  # the form of address is a guess
    assert sorted(path.name for path in tmp_path.iterdir()) == ["documents.txt", "pseudo.tsv"]
    # What was made can be prepared, and mixed with other pairs by weight.
    prepare = ["prepare", "text", str(output), "--columns", "1,2", "-o", str(tmp_path / "shard"), "-q"]
    assert exit_code([*prepare, "-p", str(corpora / "tgt"), "-p", str(corpora / "src")]) == 0
    assert len(Shard(tmp_path / "shard").document_ends) == len(DOCUMENTS)


def test_a_killed_run_goes_on_where_it_was(made_up_bundle: Path, text: Path, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole.tsv", tmp_path / "broken.tsv"
    assert exit_code(arguments(made_up_bundle, text, whole, "-q")) == 0
    small = "import sys; from cadec_cli.jobs import back_translation as b; b.pair_lines.__defaults__ = (8,)\n"
    small += "from cadec_cli.main import exit_code; sys.exit(exit_code(sys.argv[1:]))"
    command = [sys.executable, "-c", small, *arguments(made_up_bundle, text, broken)]
    rng, kills = random.Random(1), 0
    for attempt in range(3):
        more = ["--resume"] if attempt else []
        process = subprocess.Popen([*command, *more], stderr=subprocess.PIPE)
        part = Path(f"{broken}.cadec-part")
        size = part.stat().st_size if part.exists() else 0
        while process.poll() is None and (not part.exists() or part.stat().st_size <= size + 200):
            time.sleep(0.005)
        time.sleep(rng.random() * 0.01)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        process.communicate()
        if broken.exists():
            break
    assert kills
    if not broken.exists():
        assert exit_code(arguments(made_up_bundle, text, broken, "--resume", "-q")) == 0
    assert broken.read_bytes() == whole.read_bytes()
    assert not Path(f"{broken}.cadec-part").exists()


def test_workers_write_what_one_process_writes(
    made_up_bundle: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where one process began and was stopped; chunks are small, so that there are many."""
    for function in (back_translation.pair_lines, back_translation.pair_in_parallel):
        monkeypatch.setattr(function, "__defaults__", (16,))
    alone, several, resumed = (tmp_path / name for name in ("alone.tsv", "several.tsv", "resumed.tsv"))
    assert exit_code(arguments(made_up_bundle, text, alone, "-q")) == 0
    assert exit_code(arguments(made_up_bundle, text, several, "-q", "--workers", "2")) == 0
    assert several.read_bytes() == alone.read_bytes()

    write = PairFile.write

    def stopped(pairs: PairFile, chunks: Iterable[Sequence[str]], done: int = 0) -> None:
        def some() -> Iterator[Sequence[str]]:
            yield from itertools.islice(chunks, 3)
            raise KeyboardInterrupt

        write(pairs, some(), done)

    with monkeypatch.context() as patched:
        patched.setattr(PairFile, "write", stopped)
        assert exit_code(arguments(made_up_bundle, text, resumed, "-q")) == 130
    assert exit_code(arguments(made_up_bundle, text, resumed, "-q", "--workers", "2", "--resume")) == 0
    assert resumed.read_bytes() == alone.read_bytes()


@pytest.mark.parametrize("command", [["back-translate", "--sample"], ["round-trip"]])
def test_what_is_drawn_is_drawn_by_one(
    command: list[str], made_up_bundle: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.tsv"
    given = ["augment", *command, str(text), "-b", str(made_up_bundle), "-o", str(output), "--workers", "2"]
    assert exit_code(given) == 2
    assert "would depend on the workers" in " ".join(capsys.readouterr().err.replace("│", "").split())
    assert not output.exists()


def test_samples_vary_and_keep_the_layout(made_up_bundle: Path, text: Path, tmp_path: Path) -> None:
    found = []
    for seed in ("1", "2"):
        output = tmp_path / f"{seed}.tsv"
        assert exit_code(arguments(made_up_bundle, text, output, "--sample", "--seed", seed, "-q")) == 0
        found.append(sides(output))
    assert found[0][1] == found[1][1] == text.read_text("utf-8").splitlines()
    assert found[0][0] != found[1][0]


def test_what_can_not_be_done_is_said_and_nothing_is_replaced(
    made_up_bundle: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.tsv"
    output.write_text("mine", "utf-8")

    def refused(message: str, *given: str) -> None:
        assert exit_code(list(given)) == 1
        assert message in capsys.readouterr().err

    refused("exists", *arguments(made_up_bundle, text, output))
    refused("is the input", *arguments(made_up_bundle, text, text, "--force"))
    refused("no such file", *arguments(made_up_bundle, tmp_path / "gone", output, "--force"))
    assert output.read_text("utf-8") == "mine"
    assert exit_code(arguments(made_up_bundle, text, output, "--force", "-q")) == 0
    assert output.read_text("utf-8") != "mine"


def test_unfinished_work_is_neither_lost_nor_mixed_up(tmp_path: Path) -> None:
    pairs = PairFile(tmp_path / "out", {"beam": "4"})

    def chunks(stop: int) -> Iterator[list[str]]:
        for number in range(3):
            if number == stop:
                raise KeyboardInterrupt
            yield [f"x{number}\ty{number}", ""]

    with pytest.raises(KeyboardInterrupt):
        pairs.write(chunks(2))
    with pytest.raises(CadecError, match="unfinished augmentation"):
        pairs.progress(resume=False)
    with pytest.raises(CadecError, match="differs in: beam"):
        PairFile(tmp_path / "out", {"beam": "5"}).progress(resume=True)
    with pairs.part.open("ab") as stream:
        stream.write(b"half a l")
    assert pairs.progress(resume=True) == PairProgress(4)
    pairs.write([["x2\ty2", ""]], 4)
    assert (tmp_path / "out").read_text() == "x0\ty0\n\nx1\ty1\n\nx2\ty2\n\n"


def test_chunks_change_nothing() -> None:
    lines = ["a\tb", "", " c  d ", "e"]
    for size in (1, 2, 10):
        made = [
            line
            for chunk in pair_lines(lines, lambda texts: [t.upper() for t in texts], size)
            for line in chunk
        ]
        assert made == ["A B\ta b", "", "C D\tc d", "E\te"]


def test_a_run_that_was_killed_before_its_first_line_begins_anew(tmp_path: Path) -> None:
    pairs = PairFile(tmp_path / "out", {"beam": "4"})
    for left in (0, 20):
        unfinished(pairs)
        os.truncate(pairs.part, left)
        assert pairs.progress(resume=True) == PairProgress()
        pairs.write([["x\ty"]])
        assert (tmp_path / "out").read_text() == "x\ty\n"


def test_what_is_no_work_of_ours_is_not_emptied(tmp_path: Path) -> None:
    pairs = PairFile(tmp_path / "out", {"beam": "4"})
    pairs.part.write_bytes(b"a note of mine")
    with pytest.raises(CadecError, match="can't tell which work it belongs to"):
        pairs.progress(resume=True)
    assert pairs.part.read_bytes() == b"a note of mine"


class Translation:
    """Capitals; counts the lines that it is asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, texts: Sequence[str]) -> list[str]:
        self.asked += len(texts)
        return [text.upper() for text in texts]


LINES = [f"line {number}" if number % 7 else "" for number in range(40)]


def gone_on(pairs: PairFile, left: bytes) -> tuple[bytes, Translation, str]:
    """The output of unfinished work that is found like this, what was asked for, what was told."""
    pairs.part.write_bytes(left)
    translate = Translation()
    done = pairs.progress(resume=True)
    if done.damage:
        pairs.repair(LINES, translate, done)
        assert pairs.progress(resume=True) == PairProgress(done.lines)
    pairs.write(pair_lines(LINES[done.lines :], translate, 8), done.lines)
    assert not pairs.part.exists() and not list(pairs.output.parent.glob("*.cadec-whole"))
    return pairs.output.read_bytes(), translate, done.damage


def unfinished(pairs: PairFile) -> bytes:
    """Work of which all but the last five lines are done."""

    def stopped() -> Iterator[list[str]]:
        yield from pair_lines(LINES[:35], Translation(), 8)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pairs.write(stopped())
    return pairs.part.read_bytes()


def test_damaged_lines_are_made_again_and_none_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(back_translation, "CHUNK", 8)
    pairs = PairFile(tmp_path / "out", {"beam": "4"})
    left = unfinished(pairs)
    whole, translate, told = gone_on(pairs, left)
    assert translate.asked == 4 and not told and whole.count(b"\n") == len(LINES)  # one of five is blank
    header = left.index(b"\n") + 1
    rng = random.Random(5)
    for number in range(8 * len(DAMAGES)):
        damage = DAMAGES[number % len(DAMAGES)]
        found = damage(rng, left)
        try:
            assert gone_on(pairs, found)[0] == whole, damage.__name__
        except CadecError as error:
            assert found[:header] != left[:header] and "damaged" in error.message, damage.__name__
    place = left.index(b"LINE 9")  # a letter that became another used to be a wrong line
    made, translate, told = gone_on(pairs, left[:place] + b"P" + left[place + 1 :])
    assert made == whole and translate.asked == 4 + 1
    assert told == f"1 damaged record in {pairs.part}: 1 line is translated again"
    assert gone_on(pairs, b"\0" + left[1:])[1].asked == 4  # its lines tell whose they are
    with pytest.raises(CadecError, match="which work it belongs to"):
        gone_on(pairs, b"\0" + left[1:header])


def test_a_part_of_before_is_refused_kindly(tmp_path: Path) -> None:
    pairs = PairFile(tmp_path / "out", {"beam": "4"})
    pairs.part.write_bytes(encode_line(b"cadec back-translation 2 0123") + encode_line(b"0 X\tx"))
    with pytest.raises(CadecError, match="was written by another version of cadec"):
        pairs.progress(resume=True)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_force_starts_over(
    made_up_bundle: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, part = tmp_path / "out.tsv", tmp_path / "out.tsv.cadec-part"
    part.write_bytes(encode_line(b"cadec back-translation 2 0123"))
    for flag in ("--quiet", "--resume"):
        assert exit_code(arguments(made_up_bundle, text, output, flag)) == 1
    assert exit_code(arguments(made_up_bundle, text, output, "--force")) == 0
    assert output.exists() and not part.exists()


def test_the_command_says_what_it_makes_again(
    made_up_bundle: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.tsv"
    monkeypatch.setattr(PairFile, "_publish", _interrupted)
    assert exit_code(arguments(made_up_bundle, text, output)) == 130
    monkeypatch.undo()
    part = Path(f"{output}.cadec-part")
    lines = part.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join([*lines[:3], lines[3][:-9] + b"\n", *lines[5:]]))
    done = cadec(*arguments(made_up_bundle, text, output, "--resume"))
    assert done.returncode == 0, done.stderr
    assert "2 lines are translated again" in " ".join(done.stderr.split())
    assert [json.loads(line[17:])[1] for line in lines[1:]] == output.read_text("utf-8").splitlines()
