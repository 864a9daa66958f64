"""`cadec translate` of subtitles: two languages at once, lines as asked for, and cues too fast to read."""

from pathlib import Path

import pytest

from cadec_cli.main import exit_code
from cadec_cli.terminal.views.translations import ReadingSpeeds
from cadec_cli.text.formats import StreamedText, TextFile, read_text_file
from cadec_cli.text.formats.conversion import as_format, promised_format

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


def as_read(text: str, written_as: str) -> TextFile:
    """A WebVTT file that becomes one of another format, or of the same."""
    return TextFile((), StreamedText(iter(())), "utf-8", written_as, ("vtt", text))


def test_a_limit_of_none_and_other_formats_report_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    for limit, text_format in ((0, "vtt"), (17, "text")):
        speeds = ReadingSpeeds(limit)
        speeds.look(0, as_read(CUE, text_format), CUE.encode())
        speeds.report()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("ending", ["vtt", "srt", "ass", "txt", "jsonl"])
def test_what_is_converted_is_looked_at_as_what_it_becomes(ending: str, tmp_path: Path) -> None:
    film = tmp_path / "film.vtt"
    film.write_text(CUE)
    speeds = ReadingSpeeds(17)
    wanted = promised_format(tmp_path / f"film.{ending}", film)
    file = as_format(read_text_file(film, language="en"), wanted, "film")
    speeds.look(0, file, b"".join(file.restore(["Слишком много букв для половины секунды."])))
    assert [cue.characters for cue in speeds.too_fast] == ([40] if ending in ("vtt", "srt", "ass") else [])
    assert speeds.in_source == (1 if speeds.too_fast else 0)


def test_two_languages_need_subtitles_as_output_too(
    made_up_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    film = tmp_path / "film.vtt"
    film.write_text(CUE)
    arguments = ["translate", "-b", str(made_up_bundle), *FAST, str(film), "--bilingual", "above"]
    assert exit_code([*arguments, "-o", str(tmp_path / "film.txt")]) == 2
    assert "--bilingual is for subtitles" in capsys.readouterr().err
    assert not (tmp_path / "film.txt").exists()


def test_cues_that_do_not_fit_are_counted(capfd: pytest.CaptureFixture[str]) -> None:
    wide = "WEBVTT\n\n00:01.000 --> 00:09.000\nEin <i>Wort</i> und\nnoch eines\n"
    for most, lines, said in ((12, 2, False), (11, 2, True), (12, 1, True), (None, None, False)):
        speeds = ReadingSpeeds(0, most, lines)
        speeds.look(0, as_read(wide, "vtt"), wide.encode())
        speeds.report()
        assert ("1 cue does not fit" in capfd.readouterr().err) == said, (most, lines)
