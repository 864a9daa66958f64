"""`cadec translate` as a person uses it: layouts kept, nothing lost when killed, nothing raw on screen."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cadec_cli.fs.append_log import LogHeader, encode_line
from cadec_cli.main import exit_code
from tests.helpers import made_up_pair
from tests.helpers.run_in_process import cadec

CADEC = [sys.executable, "-m", "cadec_cli"]
FAST = ["--nbest", "4", "--compute-type", "float32", "--threads", "1"]


def text_of(count: int, seed: int = 3) -> str:
    """Documents of the made-up language with blank lines between them."""
    documents = made_up_pair.documents(count, seed)
    return "\n".join("".join(f"{source}\n" for source, _ in document) for document in documents)


def translate(
    bundle: Path, *arguments: object, stdin: str = "", columns: int = 80
) -> "subprocess.CompletedProcess[str]":
    return cadec("translate", "-b", bundle, *FAST, *arguments, stdin=stdin, COLUMNS=str(columns))


def test_a_pipe_keeps_its_layout(made_up_bundle: Path) -> None:
    text = "  you see the lamp. the lamp is red.\n\n\thello friend.\nyou want it."
    command = [*CADEC, "translate", "-b", str(made_up_bundle), *FAST]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.split("\n")
    assert lines[0].startswith("  ") and lines[0].endswith(" La lampo esta ruga.")
    assert lines[1] == "" and lines[2] == "\tSalu ami." and len(lines) == 4


def test_subtitles_keep_their_times_and_their_number(made_up_bundle: Path, tmp_path: Path) -> None:
    source = tmp_path / "film.srt"
    cues = [f"{n}\n00:00:{n:02d},000 --> 00:00:{n:02d},900\nyou see the lamp.\n" for n in range(1, 8)]
    source.write_text("\n".join(cues))
    assert translate(made_up_bundle, source, "-o", tmp_path / "out.srt").returncode == 0
    before, after = source.read_text().split("\n"), (tmp_path / "out.srt").read_text().split("\n")
    assert [line for line in before if "-->" in line] == [line for line in after if "-->" in line]
    assert len(before) == len(after) and sum("lampo" in line for line in after) == 7


def test_json_has_every_term_and_feeds_rerank(made_up_bundle: Path, tmp_path: Path) -> None:
    done = translate(made_up_bundle, "--json", "--lines", stdin=text_of(2))
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["document"] for record in records] == [0] * 7 + [1] * 7
    for record in records:
        for hypothesis in record["hypotheses"]:
            pmi = hypothesis["conditional"] - hypothesis["free"]
            assert hypothesis["pmi"] == pytest.approx(pmi)
            assert hypothesis["score"] == pytest.approx(hypothesis["log_prob"] + pmi, abs=1e-6)
        best = max(hypothesis["score"] for hypothesis in record["hypotheses"])
        assert record["hypotheses"][record["chosen"]]["score"] == best
    assert all(h["pmi"] == 0 for record in records if record["sentence"] == 0 for h in record["hypotheses"])
    (tmp_path / "nbest.jsonl").write_text(done.stdout)
    again = cadec("rerank", tmp_path / "nbest.jsonl", "-b", made_up_bundle, *FAST)
    expected = [record["translation"] for record in records]
    assert [line for line in again.stdout.splitlines() if line] == expected, again.stderr
    assert again.stdout.splitlines()[7] == ""


def test_moses_lists_can_be_reranked(
    made_up_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lists = tmp_path / "lists.nbest"
    rows = [
        "0 ||| bondia senor. ||| F0= -1 ||| -0.2",
        "1 ||| tu vides la lampo. ||| F0= -1.0 ||| -0.1",
        "1 ||| vos videz la lampo. ||| F0= -1.1 ||| -0.2",
    ]
    lists.write_text("\n".join(rows) + "\n")
    arguments = ["rerank", str(lists), "-b", str(made_up_bundle), "--compute-type", "float32"]
    assert exit_code(arguments) == 0
    assert capsys.readouterr().out.splitlines()[1] == "vos videz la lampo."
    assert exit_code([*arguments, "--feature", "F7"]) == 1
    assert "F7" in capsys.readouterr().err
    context = tmp_path / "before.txt"
    context.write_text("Salu ami.\nTu voles lo.\n")
    lists.write_text("\n".join(rows[1:]) + "\n")
    assert exit_code([*arguments, "--after", str(context)]) == 0
    assert capsys.readouterr().out == "tu vides la lampo.\n"
    film = tmp_path / "before.srt"
    film.write_text(
        "1\n00:00:01,000 --> 00:00:02,000\n<i>Salu ami.</i>\n\n"
        "2\n00:00:03,000 --> 00:00:04,000\nTu voles lo.\n"
    )
    assert exit_code([*arguments, "--after", str(film)]) == 0
    assert capsys.readouterr().out == "tu vides la lampo.\n"
    assert exit_code([*arguments, "--after", str(film), "--objective", "sentence"]) == 2
    assert "--objective sentence reads none" in capsys.readouterr().err
    film.write_text("")
    assert exit_code([*arguments, "--after", str(film)]) == 1
    assert "has no sentences" in capsys.readouterr().err


def test_several_files_go_to_a_directory_and_are_as_if_alone(made_up_bundle: Path, tmp_path: Path) -> None:
    for name, seed in (("a.txt", 1), ("b.txt", 2)):
        (tmp_path / name).write_text(text_of(2, seed))
    inputs = [tmp_path / "a.txt", tmp_path / "b.txt"]
    assert translate(made_up_bundle, *inputs, "-o", tmp_path / "out").returncode == 0
    outputs = [tmp_path / "out" / f"{path.stem}.eo.txt" for path in inputs]
    for path, output in zip(inputs, outputs, strict=True):
        assert output.read_text() == translate(made_up_bundle, path).stdout
    assert translate(made_up_bundle, *inputs).stdout == "".join(output.read_text() for output in outputs)
    assert sorted((tmp_path / "out").iterdir()) == outputs


@pytest.mark.slow
@pytest.mark.parametrize("search", ["rerank", "lattice"])
def test_killed_at_random_moments_and_resumed_the_output_is_the_same(
    made_up_bundle: Path, tmp_path: Path, search: str
) -> None:
    source = tmp_path / "in.txt"
    source.write_text(text_of(60))
    more = ["--search", search, "--json"] if search == "lattice" else ["--search", search]
    whole = tmp_path / "whole"
    assert translate(made_up_bundle, source, *more, "-o", whole).returncode == 0
    output = tmp_path / "out"
    journal = tmp_path / "out.cadec-journal"
    command = [*CADEC, "translate", "-b", str(made_up_bundle), *FAST, str(source), *more, "-o", str(output)]
    rng = random.Random(os.getpid())
    kills = 0
    for attempt in range(12):
        process = subprocess.Popen([*command, *(["--resume"] if attempt else [])], stderr=subprocess.DEVNULL)
        goal = (journal.stat().st_size if journal.exists() else 0) + rng.randint(3000, 30000)
        while kills < 3 and process.poll() is None:
            if journal.exists() and journal.stat().st_size >= goal:
                process.send_signal(rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGINT]))
                kills += 1
                break
            time.sleep(0.002)
        if process.wait() == 0:
            break
        assert not output.exists()  # whole or not at all
    assert kills > 0
    assert output.read_bytes() == whole.read_bytes()
    assert not journal.exists()


def test_a_full_disk_loses_nothing(made_up_bundle: Path, tmp_path: Path) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text(text_of(20))
    arguments = ["translate", "-b", str(made_up_bundle), *FAST, str(source), "-o", str(output)]
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))"
    code = f"{limit}; from cadec_cli.main import run; run({arguments!r})"
    full = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert full.returncode == 1 and "no space left" in full.stderr and "--resume" in full.stderr
    assert "Traceback" not in full.stderr and not output.exists()
    assert exit_code([*arguments, "--resume", "-q"]) == 0
    assert output.read_text() == translate(made_up_bundle, source).stdout


def test_an_unfinished_translation_is_not_overwritten_nor_mixed_up(
    made_up_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("you see it.\n")
    journal = tmp_path / "out.txt.cadec-journal"
    arguments = ["translate", "-b", str(made_up_bundle), *FAST, str(source), "-o", str(output)]
    journal.write_text("")
    assert exit_code(arguments) == 1
    assert "--resume" in capsys.readouterr().err
    whole = LogHeader("translation", {"input": "another"}).line
    early, earlier = (json.dumps({"format": version, "input": "another"}).encode() for version in (1, 4))
    refused = {
        whole: "differs in: input",
        early + b"\n": "was written by another version of cadec",
        encode_line(earlier): "was written by another version of cadec",
        whole.replace(b"other", b"ather"): "is damaged: can't tell which work it belongs to",
    }
    for left, message in refused.items():
        journal.write_bytes(left)
        assert exit_code([*arguments, "--resume"]) == 1
        assert message in " ".join(capsys.readouterr().err.split())
    journal.unlink()
    assert exit_code([*arguments, "--resume"]) == 0  # nothing to resume: it starts


def test_markup_and_escape_codes_are_text_and_never_reach_the_terminal(made_up_bundle: Path) -> None:
    hostile = "[red]you see[/red] the lamp.\n\x1b[31myou see the \x1b]0;owned\x07lamp.\n[bold\n"
    done = translate(made_up_bundle, "--compare", "--explain", "--lines", stdin=hostile)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout and "\x07" not in done.stdout
    assert "[red]" in done.stdout and "␛" in done.stdout


def test_compare_and_explain_show_what_changed(made_up_bundle: Path) -> None:
    """Row by row what --json says of the same text: both translations, log p and PMI."""
    text = text_of(3)
    records = [
        json.loads(line)
        for line in translate(made_up_bundle, "--json", "--lines", stdin=text).stdout.splitlines()
    ]
    done = translate(made_up_bundle, "--compare", "--explain", "--lines", stdin=text, columns=240)
    heading, *lines = done.stdout.splitlines()
    assert re.split(r"\s{2,}", heading.strip()) == ["source", "sentence level", "in context"]
    shown = iter(line for line in lines if line.strip())
    for record in records:
        hypotheses, chosen = record["hypotheses"], record["chosen"]
        assert re.split(r"\s{2,}", next(shown).strip()) == [
            str(record["sentence"] + 1),
            record["source"],
            hypotheses[0]["text"],
            record["translation"],
        ]
        for name, index in (("chosen", chosen), ("first", 0)):
            if name == "first" and chosen == 0:
                continue
            row = re.fullmatch(r"\s+(\w+)\s+log p\s+(\S+)\s+PMI\s+(\S+)  (.*)", next(shown).rstrip())
            assert row is not None and row[1] == name
            assert float(row[2]) == pytest.approx(hypotheses[index]["log_prob"], abs=0.0051)
            assert float(row[3]) == pytest.approx(hypotheses[index]["pmi"], abs=0.0061)
            said = row[4].removesuffix("</s>").lower()
            assert said.replace(" ", "") == hypotheses[index]["text"].replace(" ", "").lower()
    assert list(shown) == []
    assert any(record["chosen"] for record in records)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 0),
        (b"\n\n \n", 0),
        (b"\x00\x01\x02\n", 0),
        (b"\xff\xfe\xfa", 1),
        (b"word " * 10_000 + b".\n", 0),
    ],
)
def test_odd_files_give_a_result_or_one_clear_error(
    made_up_bundle: Path, tmp_path: Path, content: bytes, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "odd.txt"
    source.write_bytes(content)
    assert exit_code(["translate", "-b", str(made_up_bundle), *FAST, str(source)]) == status
    captured = capfd.readouterr()
    assert "Traceback" not in captured.err
    if status:
        assert captured.err.startswith("error:") and "--encoding" in captured.err
    elif not content.strip(b"\n \x00\x01\x02"):
        assert captured.out.encode() == content


@pytest.mark.parametrize(
    ("damage", "part"),
    [
        ("missing", "lm/model.safetensors"),
        ("empty", "nmt/model.safetensors"),
        ("binary", "target/subwords.model"),
        ("truncated", "lm/model.safetensors"),
        ("truncated", "ct2/float32/model.bin"),
        ("swapped", "nmt/model.safetensors"),
    ],
)
def test_damaged_bundles_are_one_clear_error(
    made_up_bundle: Path, tmp_path: Path, damage: str, part: str, capfd: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(made_up_bundle, bundle)
    path = bundle / part
    if damage == "missing":
        path.unlink()
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "binary":
        path.write_bytes(bytes(range(256)))
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[:-50])
    else:
        path.write_bytes((bundle / "lm" / "model.safetensors").read_bytes())
    source = tmp_path / "in.txt"
    source.write_text("you see it.\n")
    assert exit_code(["translate", "-b", str(bundle), *FAST, str(source)]) == 1
    err = capfd.readouterr().err
    assert err.startswith("error:") and part in err.replace("\n", "") and "Traceback" not in err


def test_usage_errors(made_up_bundle: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    base = ["translate", "-b", str(made_up_bundle)]
    assert exit_code([*base, "--resume"]) == 2
    assert exit_code([*base, "--json", "--compare"]) == 2
    assert exit_code([*base, "nowhere.txt"]) == 1
    assert "no such file" in capfd.readouterr().err
    assert exit_code([*base, "--search", "luck", str(tmp_path)]) == 2
    assert exit_code(["translate", "-b", str(tmp_path), "nowhere.txt"]) == 1


def test_flag_lists_what_is_worth_a_look_and_leaves_results_as_they_are(
    made_up_bundle: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    places = {
        "you see the lamp.": "a.txt, line 1",
        "xyzzy [red]plugh[/red] qwrt.": "a.txt, line 3",
        "hello friend.": "b.txt, line 1",
    }
    first, second, third = places
    (tmp_path / "a.txt").write_text(f"{first}\n\n{second}\n\x07\n")
    (tmp_path / "b.txt").write_text(f"{third}\n")
    inputs = [str(tmp_path / name) for name in ("a.txt", "b.txt")]
    base = ["translate", "-b", str(made_up_bundle), *FAST, "--lines", *inputs]

    def run(*more: str) -> tuple[str, str]:
        assert exit_code([*base, *more]) == 0
        shown = capfd.readouterr()
        return shown.out, shown.err

    records = [json.loads(line) for line in run("--json")[0].splitlines()]
    assert ["confidence" in record for record in records] == ["chosen" in record for record in records]
    worst, other, *_ = sorted(
        (record for record in records if "chosen" in record), key=lambda record: record["confidence"]
    )
    limit = ("--flag-below", str((worst["confidence"] + other["confidence"]) / 2))
    plain, silence = run()
    out, err = run("--flag", *limit)
    assert out == plain and silence == ""
    assert f"{places[worst['source']]}: {worst['source']} → " in err
    assert places[other["source"]] not in err and "1 of 3 sentences is worth a look" in err
    assert run("--json", "-o", str(tmp_path / "out"), *limit) == ("", err)
    written = [
        json.loads(line) for name in ("a.eo.jsonl", "b.eo.jsonl") for line in (tmp_path / "out" / name).open()
    ]
    assert [record["source"] for record in written if "flags" in record] == [worst["source"]]
    everything = run("--flag-below", "1")[1]  # and none of it is markup
    assert all(f"{place}: {source} → " in everything for source, place in places.items())
    assert "no doubts about 3 sentences" in run("--flag-below", "0")[1]
    assert exit_code([*base, "--flag-below", "2"]) == 2
