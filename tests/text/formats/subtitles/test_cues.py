"""Times of cues as files have them, right and wrong."""

import cProfile

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.text.formats.conversion import convert_subtitles
from cadec_cli.text.formats.subtitles.cues import timed_texts
from cadec_cli.text.formats.subtitles.wrapping import wrap

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ("01:02.500 --> 01:04.000", (62_500, 64_000)),
        ("59:59.999 --> 01:00:00.000", (HOUR - 1, HOUR)),
        ("00:00:01.000 --> 00:00:02.000 line:0 position:20%", (1000, 2000)),
        ("100:00:00.000 --> 1234:00:01.000", (100 * HOUR, 1234 * HOUR + 1000)),
        ("12345:00:00.000 --> 12345:00:01.000", (12345 * HOUR, 12345 * HOUR + 1000)),
        ("-00:00:01.000 --> 00:00:01.000", (0, 1000)),
        ("00:00:05.000 --> 00:00:01.000", (5000, 1000)),
        ("00:00:01.5 --> 00:00:02.000000", (1500, 2000)),
        ("00:00.000-->00:01.000", (0, 1000)),
    ],
)
def test_times_of_webvtt(times: str, expected: tuple[int, int]) -> None:
    text = f"WEBVTT\n\nname\n{times}\nHello.\n"
    assert timed_texts(text, "vtt", "a.vtt") == [(*expected, "Hello.")]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ("1:2:3,4 --> 01:02:04,000", (HOUR + 123_400, HOUR + 124_000)),
        ("100:00:00,000 --> 100:00:01,000", (100 * HOUR, 100 * HOUR + 1000)),
        ("00:00:01.000 --> 00:00:02.000 X1:1 X2:2", (1000, 2000)),
    ],
)
def test_times_of_subrip(times: str, expected: tuple[int, int]) -> None:
    assert timed_texts(f"1\n{times}\nHello.\n", "srt", "a.srt") == [(*expected, "Hello.")]


@pytest.mark.parametrize(
    "times",
    [
        ":01:02.500 --> :01:03.000",
        "01:02 --> 01:03",
        "0000000:00:00.000 --> 0000000:00:01.000",
        "00:00:01.000 -->",
        "--> 00:00:01.000",
    ],
)
def test_broken_times_are_one_error(times: str) -> None:
    for subtitle_format in ("vtt", "srt"):
        with pytest.raises(CadecError, match=r"line 3: the times of the cue are broken"):
            timed_texts(f"WEBVTT\n\n{times}\nHello.\n", subtitle_format, "a.vtt")


def test_times_without_hours_become_times_of_other_formats() -> None:
    text = "WEBVTT\n\n01:02.500 --> 01:04.000\nHello.\n"
    assert "00:01:02,500 --> 00:01:04,000\nHello." in convert_subtitles(text, "vtt", "srt", "a.vtt")
    with pytest.raises(CadecError, match="cues from 100 hours on"):
        convert_subtitles(text.replace("01:04", "100:01:04"), "vtt", "srt", "a.vtt")


def test_a_cue_of_ten_thousand_words_is_wrapped_in_linear_time() -> None:
    steps = []
    for count in (2_000, 10_000):
        profile = cProfile.Profile()
        profile.enable()
        lines = wrap("word " * count, 3)
        profile.disable()
        steps.append(sum(entry.callcount for entry in profile.getstats()))
        assert " ".join(lines).split() == ["word"] * count
        assert len(lines) == 3
    assert steps[1] < 10 * steps[0]
