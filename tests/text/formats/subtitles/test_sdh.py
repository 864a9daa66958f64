"""Subtitles without what only the hard of hearing need: what goes, what stays, and the numbers after it."""

import re

import pysubs2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.formats.layout import DROP, Source, SubtitleStyle
from cadec_cli.text.formats.subtitles.reader import read_subtitles
from cadec_cli.text.formats.subtitles.sdh import drop_sdh


def srt(*cues: str) -> str:
    return "\n".join(
        f"{number}\n00:00:{number:02},000 --> 00:00:{number:02},900\n{text}\n"
        for number, text in enumerate(cues, 1)
    )


@pytest.mark.parametrize(
    ("cue", "left"),
    [
        ("Hello.", "Hello."),
        ("[DOOR SLAMS]", None),
        ("(sighs)", None),
        ("<i>(sighs)</i>", None),
        ("♪", None),
        ("- [sighs]\n- (coughs)", None),
        ("JOHN:", None),
        ("[sighs] Hello.", "Hello."),
        ("(sighs) (coughs) Hello.", "Hello."),
        ("Hello. (sighs)", "Hello."),
        ("Hello [sighs] there.", "Hello there."),
        ("I told him (twice) no.", "I told him (twice) no."),
        ("Call f(x) now.", "Call f(x) now."),
        ("(555) 0199 is (1) my number", "(555) 0199 is (1) my number"),
        ("JOHN: Hello.", "Hello."),
        ("<i>JOHN:</i> Hello.", "Hello."),
        ("<i>JOHN: Hello.</i>", "<i>Hello.</i>"),
        ("Well: see for yourself.", "Well: see for yourself."),
        ("- [sighs]\n- Hello.", "Hello."),
        ("- JOHN: Hello.\n- MARY: Hi.", "- Hello.\n- Hi."),
        ("♪ La la la ♪", "La la la"),
        ("<i>♪ La la\nla la ♪</i>", "<i>La la\nla la</i>"),
        ("# La la #", "La la"),
        ("#1 of #2 #", "#1 of #2"),
        ("<i>[man speaking\nRussian]</i>\nWho is it?", "Who is it?"),
        ("{\\an8}[sighs] Who?", "{\\an8}Who?"),
        ("[sighs] ...and then?", "...and then?"),
        ("【笑】こんにちは", "こんにちは"),
        ("（ため息）こんにちは", "こんにちは"),
        ("...", "..."),
        ("", ""),
    ],
)
def test_srt(cue: str, left: str | None) -> None:
    before, after = "One.", "Three."
    expected = srt(before, after) if left is None else srt(before, left, after)
    found = drop_sdh(srt(before, cue, after), "srt", "f")
    assert re.sub(r"00:00:\d\d", "", found) == re.sub(r"00:00:\d\d", "", expected)
    assert drop_sdh(found, "srt", "f") == found


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_numbers_and_ends_of_lines_stay_right(end: str) -> None:
    text = "\ufeff" + srt("[a bang]", "One.", "♪♪", "[sighs] Two\nlines.", "Three.").replace("\n", end)
    found = drop_sdh(text, "srt", "f")
    assert found.startswith("\ufeff" if end else "")
    assert re.findall(rf"(?:^|{end})\ufeff?(\d+){end}", found) == ["1", "2", "3"]
    assert set(re.findall(r"\r\n|\r|\n", found)) == {end}
    assert f"Two{end}lines." in found


def test_numbers_that_begin_again_are_counted_again() -> None:
    twice = srt("[a bang]", "One.") + "\n" + srt("Two.", "[bang]", "Three.")
    assert re.findall(r"^\d+$", drop_sdh(twice, "srt", "f"), re.MULTILINE) == ["1", "1", "2"]
    zeros = "001\n00:00:01,000 --> 00:00:02,000\n[bang]\n\n002\n00:00:03,000 --> 00:00:04,000\nTwo.\n"
    assert drop_sdh(zeros, "srt", "f").startswith("001\n00:00:03")


def test_vtt_loses_the_name_of_a_cue_with_it_and_nothing_else() -> None:
    head, note = "WEBVTT\n\nSTYLE\n::cue(b) {}\n\n", "NOTE [of mine]\n\n"
    first = "id1\n00:01.000 --> 00:02.000 line:0\n[bang]\n\n"
    second = "00:03.000 --> 00:04.000\n<v Bob>BOB: Hi &amp; bye [coughs]\n"
    assert drop_sdh(head + first + note + second, "vtt", "f") == (
        head + note + "00:03.000 --> 00:04.000\n<v Bob>Hi &amp; bye\n"
    )


ASS = "[Script Info]\n\n[Events]\nFormat: Layer, Start, End, Style, Name, L, R, V, Effect, Text\n"
EVENT = "{}: 0,0:00:01.00,0:00:03.00,Default,,0,0,0,,{}\n"


def test_substation_loses_events_and_keeps_comments_drawings_and_karaoke() -> None:
    kept = [
        EVENT.format("Comment", "[not] (this)"),
        EVENT.format("Dialogue", r"{\p1}m 0 0 l 1 1 (x){\p0}"),
        EVENT.format("Dialogue", r"{\k20}[la]{\k30} la"),
    ]
    dropped = EVENT.format("Dialogue", r"{\pos(1,2)}[bang]")
    changed = EVENT.format("Dialogue", r"{\fad(1,2)\i1}(sighs)\NMARY: Hi.\NYes{\i0}")
    expected = EVENT.format("Dialogue", r"{\fad(1,2)\i1}Hi.\NYes{\i0}")
    assert drop_sdh(ASS + dropped + "".join(kept) + changed, "ass", "f") == ASS + "".join(kept) + expected


def test_the_reader_drops_what_it_is_asked_to_drop() -> None:
    text = srt("[bang]", "JOHN: Hello.")
    source = Source(text, name="f", format="srt", language="en", tags=True, screen=SubtitleStyle(sdh=DROP))
    documents, layout = read_subtitles(source)
    assert documents[0].texts == ("Hello.",)
    expected = srt("", "Привет.").partition("\n\n\n")[2].replace("2\n", "1\n", 1)
    assert "".join(layout.restore(["Привет."])) == expected
    kept, layout = read_subtitles(Source(text, name="f", format="srt", language="en", tags=True))
    assert kept[0].texts == ("[bang]", "JOHN: Hello.")
    assert "".join(layout.restore(kept[0].texts)) == text


PIECES = st.sampled_from(
    [
        "[bang]",
        "(sighs)",
        "JOHN:",
        "- ",
        "♪",
        "#",
        " ",
        "Hello",
        "no.",
        "<i>",
        "</i>",
        "{\\an8}",
        "\n",
        "(",
        "]",
        "x",
    ]
)


@given(st.lists(st.lists(PIECES, max_size=8).map("".join), min_size=1, max_size=5))
def test_words_outside_brackets_are_never_lost_and_numbers_count(cues: list[str]) -> None:
    text = srt(*(re.sub(r"\n\s*\n", "\n", cue).strip("\n") for cue in cues))
    found = drop_sdh(text, "srt", "f")
    spoken = re.findall(r"Hello|no\.", re.sub(r"\[[^][]*\]|\([^()]*\)", "", text))
    assert len(re.findall(r"Hello|no\.", found)) >= len(spoken)
    assert drop_sdh(found, "srt", "f").count("-->") <= found.count("-->") <= text.count("-->")
    if found.strip():
        numbers = re.findall(r"^(\d+)\n00:", found, re.MULTILINE)
        assert numbers == [str(number) for number in range(1, len(numbers) + 1)]
        pysubs2.SSAFile.from_string(found, format_="srt")


@pytest.mark.parametrize("cue", ["(a) ", "[", "( ", "# ", "<i>", "<i></i>", "JOHN: ", "- ", "[x", "  "])
def test_time_grows_with_the_length(cue: str) -> None:
    for markup in ("srt", "vtt"):
        head = "WEBVTT\n\n" if markup == "vtt" else "1\n"
        drop_sdh(f"{head}00:00:01.000 --> 00:00:02.000\n[x] {cue * 100_000} (sighs)\n", markup, "f")
