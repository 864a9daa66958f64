"""Who speaks in subtitles, as far as the file tells."""

import pytest

from cadec_cli.text.formats.layout import Source
from cadec_cli.text.formats.subtitles.reader import read_subtitles

SRT = """1
00:00:01,000 --> 00:00:02,000
ANNA: Where were you
all day? I waited.

2
00:00:02,000 --> 00:00:03,000
- Here. And you?
- MAX (quietly): At home.

3
00:00:03,000 --> 00:00:04,000
Who said that?
"""
ASS = """[Script Info]

[V4+ Styles]
Format: Name, Fontname
Style: Default,Arial

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:01.00,0:00:02.00,Default,Anna,0,0,0,,Where were you? I waited.
Dialogue: 0,0:00:02.00,0:00:03.00,Default,,0,0,0,,Here.
Dialogue: 0,0:00:03.00,0:00:04.00,Default, Mrs  Reed ,0,0,0,,Max\\Nis here.\\N- BORIS: No.
"""
VTT = """WEBVTT

00:01.000 --> 00:02.000
<v.loud Anna Smith>Where were you?</v>

00:02.000 --> 00:03.000
Here.
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "srt",
            SRT,
            [
                ("ANNA: Where were you all day?", "ANNA"),
                ("I waited.", "ANNA"),
                ("Here.", ""),
                ("And you?", ""),
                ("MAX (quietly): At home.", "MAX (quietly)"),
                ("Who said that?", ""),
            ],
        ),
        (
            "ass",
            ASS,
            [
                ("Where were you?", "Anna"),
                ("I waited.", "Anna"),
                ("Here.", ""),
                ("Max is here.", "Mrs Reed"),
                ("BORIS: No.", "BORIS"),
            ],
        ),
        ("vtt", VTT, [("Where were you?", "Anna Smith"), ("Here.", "")]),
    ],
)
def test_speakers_of_sentences(name: str, text: str, expected: list[tuple[str, str]]) -> None:
    (document,), _ = read_subtitles(Source(text, f"film.{name}", name, "en"))
    assert [(one.text, one.speaker) for one in document.sentences] == expected
