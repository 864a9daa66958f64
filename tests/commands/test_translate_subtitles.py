"""`cadec translate` of subtitles: two languages at once, lines as asked for, and cues too fast to read."""

import json
from pathlib import Path

import pytest

from cadec_cli.jobs.cue_checks import CueChecks
from cadec_cli.main import exit_code
from cadec_cli.terminal.views.cues import report_cues
from cadec_cli.text.formats import read_text_file
from cadec_cli.text.formats.conversion import as_format, promised_format
from cadec_cli.text.formats.layout import SubtitleStyle

FAST = ["--nbest", "4", "--compute-type", "float32", "--threads", "1"]
CUE = "WEBVTT\nLanguage: en\n\n00:01.000 --> 00:01.500\n<i>you see the lamp.</i>\n"


@pytest.mark.parametrize(
    "arguments", [["a.txt"], ["a.jsonl"], [], ["a.srt", "--json"], ["a.srt", "--format", "text"]]
)
def test_two_languages_are_for_subtitles(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["translate", *arguments, "--bilingual", "above"]) == 2
    assert "--bilingual" in capsys.readouterr().err


def test_flags_of_subtitles_reach_the_file(
    made_up_bundle: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    film = tmp_path / "film.vtt"
    film.write_text(CUE)
    arguments = ["translate", "-b", str(made_up_bundle), *FAST, str(film)]
    assert exit_code([*arguments, "--max-chars", "8", "--max-lines", "2"]) == 0
    shown = capfd.readouterr()
    head, _, cue = shown.out.rpartition("500\n")
    assert head == CUE.replace("Language: en", "Language: eo").rpartition("500\n")[0]
    assert cue.count("\n") == 2 and "lampo" in cue
    assert "17 characters per second" in shown.err and "0:00:01" in shown.err
    assert exit_code([*arguments, "--bilingual", "below"]) == 0
    shown = capfd.readouterr()
    assert shown.out.endswith("lampo.</i>\n<i>you see the lamp.</i>\n")
    assert shown.err == ""


@pytest.mark.parametrize("ending", ["vtt", "srt", "ass", "txt", "jsonl"])
def test_only_what_becomes_subtitles_is_checked(ending: str, tmp_path: Path) -> None:
    film = tmp_path / "film.vtt"
    film.write_text(CUE)
    wanted = promised_format(tmp_path / f"film.{ending}", film)
    file = as_format(read_text_file(film, language="en"), wanted, "film")
    cues = CueChecks()
    cues.look(0, file, ["Слишком много букв для половины секунды."])
    assert [one.characters for _, one in cues.in_order] == ([40] if ending in ("vtt", "srt", "ass") else [])
    assert sum(one.too_fast_in_source for one in cues.found.values()) == len(cues.in_order)


def test_two_languages_need_subtitles_as_output_too(
    made_up_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    film = tmp_path / "film.vtt"
    film.write_text(CUE)
    arguments = ["translate", "-b", str(made_up_bundle), *FAST, str(film), "--bilingual", "above"]
    assert exit_code([*arguments, "-o", str(tmp_path / "film.txt")]) == 2
    assert "--bilingual is for subtitles" in capsys.readouterr().err
    assert not (tmp_path / "film.txt").exists()


@pytest.mark.parametrize(
    ("most", "lines", "cps", "reasons"),
    [
        (12, 2, 0, ()),
        (11, 2, 0, ("a line of 12 characters",)),
        (12, 1, 0, ("2 lines",)),
        (12, None, 2, ("2.8 characters per second",)),
        (11, 1, 2.74, ("2.8 characters per second", "a line of 12 characters", "2 lines")),
        (12, None, 2.75, ()),
    ],
)
def test_a_cue_is_reported_with_all_that_is_wrong(
    most: int,
    lines: int | None,
    cps: float,
    reasons: tuple[str, ...],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    film = tmp_path / "film.vtt"
    film.write_text("WEBVTT\n\n00:01.000 --> 00:09.000\nEin <i>Wort</i> und\nnoch eines\n")
    style = SubtitleStyle(max_chars=most, max_lines=lines, max_cps=cps)
    file = read_text_file(film, language="de", tags=True, screen=style)
    cues = CueChecks()
    cues.look(0, file, file.documents[0].texts)
    assert [one.reasons for _, one in cues.in_order] == ([reasons] if reasons else [])
    report_cues(cues, [film], list_all=True)
    said = capfd.readouterr().err
    assert ("1 cue does not fit" in said) == any("line" in reason for reason in reasons)
    assert ("too fast" in said) == any("second" in reason for reason in reasons)
    assert ("1, 0:00:01" in said) == bool(reasons)


def test_all_cues_are_listed_everywhere(
    made_up_bundle: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    film = tmp_path / "film.srt"
    film.write_text(
        "\n".join(f"{n}\n00:00:{n:02},000 --> 00:00:{n:02},400\nyou see the lamp.\n" for n in range(1, 9)),
    )
    arguments = ["translate", "-b", str(made_up_bundle), *FAST, str(film), "--max-chars", "5"]
    ways: tuple[list[str], ...] = (
        ["-o", str(tmp_path / "out")],
        ["-o", str(tmp_path / "other"), "--workers", "1"],
        [],
    )
    for number, way in enumerate(ways):
        report = tmp_path / f"{number}.html"
        assert exit_code([*arguments, *way, "--flag", "--report", str(report)]) == 0
        listed = [line for line in capfd.readouterr().err.splitlines() if line.startswith("cue  ")]
        assert [line.split(", ")[0] for line in listed] == [f"cue  {n}" for n in range(1, 9)]
        assert all("characters per second" in line and "a line of" in line for line in listed)
        assert "Cues that are too fast or too long" in report.read_text()
        assert "cue 8: " in report.read_text()
    by_way = []
    for way in ways:
        way = [part if part[:1] == "-" or part == "1" else f"{part}.jsonl" for part in way]
        assert exit_code([*arguments, *way, "--json"]) == 0
        shown = capfd.readouterr().out
        by_way.append(Path(way[1]).read_text() if way else shown)
    assert by_way[0] == by_way[1] == by_way[2]
    records = [json.loads(line) for line in by_way[0].splitlines()]
    assert [record["cues"][0]["cue"] for record in records] == list(range(1, 9))
    assert {"characters", "cps", "lines", "problems", "time", "cue"} == records[0]["cues"][0].keys()
