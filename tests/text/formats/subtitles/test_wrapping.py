"""How translated subtitles look: lines and their length, two languages, the header; and how fast they are."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.formats.layout import Source, SubtitleStyle
from cadec_cli.text.formats.subtitles.cues import shown_cues
from cadec_cli.text.formats.subtitles.limits import CueLimits, problems
from cadec_cli.text.formats.subtitles.reader import read_subtitles
from cadec_cli.text.formats.subtitles.wrapping import wrap

SRT = "1\n00:00:01,000 --> 00:00:03,000\n{}\n\n2\n00:00:04,000 --> 00:00:05,000 X1:2\n{}\n"
VTT = "WEBVTT\nKind: captions\nLanguage: en\n\nNOTE Language: en\n\nid\n00:01.000 --> 00:03.000 line:0\n{}\n"
ASS = "[Script Info]\n\n[Events]\nFormat: Layer, Start, End, Style, Name, L, R, V, Effect, Text\n"
ASS += "Comment: 0,0:00:01.00,0:00:03.00,Default,,0,0,0,,Not this.\n"
ASS += "Dialogue: 0,0:00:01.00,0:00:03.00,Default,,0,0,0,,{}\n"


def translated(text: str, by: list[str], screen: SubtitleStyle, subtitle_format: str = "srt") -> str:
    _, layout = read_subtitles(
        Source(text, name="f", format=subtitle_format, language="en", tags=True, screen=screen)
    )
    return "".join(layout.restore(by))


LONG = "Это предложение занимает много места, и одной строки для него мало."


@pytest.mark.parametrize(
    ("cue", "by", "screen", "expected"),
    [
        ("One line.", [LONG], SubtitleStyle(),
         "Это предложение занимает много места,\nи одной строки для него мало."),
        ("One line.", [LONG], SubtitleStyle(max_lines=1), LONG),
        ("One line.", [LONG], SubtitleStyle(max_lines=2),
         "Это предложение занимает много места,\nи одной строки для него мало."),
        ("One line.", [LONG], SubtitleStyle(max_chars=21, max_lines=4),
         "Это предложение\nзанимает много места,\nи одной строки\nдля него мало."),
        ("<i>One line.</i>", [LONG], SubtitleStyle(max_lines=2),
         "<i>Это предложение занимает много места,\nи одной строки для него мало.</i>"),
        ("Two lines\nof it.", [LONG], SubtitleStyle(max_lines=1), LONG),
        ("- One. \n- <i>Two.</i>", [LONG, LONG], SubtitleStyle(max_lines=2), f"- {LONG} \n- <i>{LONG}</i>"),
        ("- One.\n- Two.", [LONG, "Два."], SubtitleStyle(max_lines=3),
         "- Это предложение занимает много места,\nи одной строки для него мало.\n- Два."),
        ("- Oh.\n- No.\n- Hm.", ["А.", "Б.", "В."], SubtitleStyle(max_lines=2), "- А.\n- Б.\n- В."),
    ],
)  # fmt: skip
def test_lines(cue: str, by: list[str], screen: SubtitleStyle, expected: str) -> None:
    assert translated(SRT.format(cue, "Bye."), [*by, "Bye."], screen) == SRT.format(expected, "Bye.")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_new_lines_end_as_those_of_the_file(end: str) -> None:
    text = SRT.format("One.", "Two.").replace("\n", end)
    output = translated(text, [LONG, "Два."], SubtitleStyle(max_lines=2))
    assert set(re.findall(r"\r\n|\r|\n", output)) == {end}
    output = translated(ASS.format("One.").replace("\n", end), [LONG], SubtitleStyle(max_lines=2), "ass")
    assert r"места,\Nи одной" in output


WORDS = st.lists(st.text("ab,", min_size=1, max_size=12), min_size=1, max_size=20)


@given(WORDS, st.integers(1, 5), st.integers(12, 30))
def test_a_line_is_too_long_only_where_words_leave_no_choice(
    words: list[str], lines: int, width: int
) -> None:
    wrapped = wrap(" ".join(words), lines, width)
    assert " ".join(wrapped) == " ".join(words)
    assert len(wrapped) <= lines
    greedy = [""]  # takes the fewest lines there can be
    for word in words:
        if len(f"{greedy[-1]} {word}".strip()) > width:
            greedy.append("")
        greedy[-1] = f"{greedy[-1]} {word}".strip()
    if len(greedy) <= min(lines, 4):
        assert all(len(line) <= width for line in wrapped)


@pytest.mark.parametrize(
    ("subtitle_format", "file", "cue", "by", "above"),
    [
        ("srt", SRT, "Hello.", "Привет.", "Hello.\nПривет."),
        ("srt", SRT, "<i>Two\nlines.</i>", "Две.", "<i>Two\nlines.</i>\n<i>Две.</i>"),
        ("srt", SRT, "- <b>Oh</b> there.", "<b>О</b> я.", "- <b>Oh</b> there.\n- <b>О</b> я."),
        ("srt", SRT, "Number 42!", "Number 42!", "Number 42!"),
        ("srt", SRT, "Well.", "", "Well."),
        ("vtt", VTT, "Fish &amp; <i>chips</i>", "Рыба & <i>ещё</i>",
         "Fish &amp; <i>chips</i>\nРыба &amp; <i>ещё</i>"),
        ("ass", ASS, "Two\\Nlines.", "Две.", "Two\\Nlines.\\NДве."),
        ("ass", ASS, "{\\an8}Hello.", "Привет.", "{\\an8}Hello.\\N{\\r}{\\an8}Привет."),
    ],
)  # fmt: skip
def test_two_languages(subtitle_format: str, file: str, cue: str, by: str, above: str) -> None:
    rest = ["Bye."] * (file.count("{}") - 1)
    output = translated(
        file.format(cue, *rest), [by, *rest], SubtitleStyle(bilingual="above"), subtitle_format
    )
    assert output == file.format(above, *rest)


def test_the_source_may_be_below() -> None:
    output = translated(SRT.format("Hello.", "Bye."), ["Привет.", "Пока."], SubtitleStyle(bilingual="below"))
    assert output == SRT.format("Привет.\nHello.", "Пока.\nBye.")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_header_names_the_language_of_the_translation(end: str, mark: str) -> None:
    text = (mark + VTT).format("Hello.").replace("\n", end)
    output = translated(text, ["Привет."], SubtitleStyle(language="ru"), "vtt")
    assert output == text.replace(f"Language: en{end}{end}NOTE", f"Language: ru{end}{end}NOTE").replace(
        "Hello.", "Привет."
    )


def test_a_header_without_a_language_gets_none() -> None:
    text = "WEBVTT\nKind: captions\n\n00:01.000 --> 00:03.000\nLanguage: en\n"
    assert translated(text, ["Language: en"], SubtitleStyle(language="ru"), "vtt") == text
    header = "WEBVTT\nLanguage: {}\n"
    assert translated(header.format("en-GB"), [], SubtitleStyle(language="ru"), "vtt") == header.format("ru")
    srt = SRT.format("Language: en!", "Bye.")
    assert translated(srt, ["Language: en!", "Bye."], SubtitleStyle(language="ru")) == srt


@pytest.mark.parametrize(
    ("text", "subtitle_format", "expected"),
    [
        (SRT.format("x" * 34, "y" * 17), "srt", []),
        (SRT.format("x" * 35, "<i>" + "y" * 20 + "</i>"), "srt",
         [(1, 35, 17.5), (2, 20, 20.0)]),
        (SRT.format("x" * 17 + "\n" + "x" * 17, ""), "srt", []),
        (VTT.format("&amp;" * 34), "vtt", []),
        (VTT.format("<v Bob>" + "&amp;" * 40), "vtt", [(1, 40, 20.0)]),
        (ASS.format("{\\an8}" + "x" * 20 + "\\N" + "x" * 20), "ass", [(2, 40, 20.0)]),
        ("1\n00:00:01,000 --> 00:00:01,000\nHi\n", "srt", [(1, 2, float("inf"))]),
    ],
)  # fmt: skip
def test_reading_speed(text: str, subtitle_format: str, expected: list[tuple[int, int, float]]) -> None:
    found = problems(shown_cues(text, subtitle_format), CueLimits(max_cps=17))
    assert [(one.number, one.characters, one.cps) for one in found] == expected
    documents, layout = read_subtitles(Source(text, name="f", format=subtitle_format, language="en"))
    sentences = [one for document in documents for one in document.texts]
    assert problems(layout.shown_cues(sentences), CueLimits(max_cps=17)) == found
