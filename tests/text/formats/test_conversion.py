"""Files written in another format or encoding: cues, times, text and italics come through."""

import json
from pathlib import Path

import pysubs2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.text.formats import TextFile, read_text_file
from cadec_cli.text.formats.conversion import (
    as_format,
    convert_subtitles,
    in_encoding,
    output_encoding,
    promised_format,
)

# (start, length in ms, lines of words that are in italics or not)
word = st.text(st.sampled_from("aбé&'>.!?-7"), min_size=1, max_size=5).filter(lambda text: "--" not in text)
line = st.lists(st.tuples(word, st.booleans()), min_size=1, max_size=3)
cues = st.lists(
    st.tuples(st.integers(0, 9 * 3_600_000), st.integers(0, 9000), st.lists(line, min_size=1, max_size=2)),
    max_size=5,
)
Cues = list[tuple[int, int, list[list[tuple[str, bool]]]]]


def stamp(ms: int, comma: str = ",") -> str:
    return f"{ms // 3_600_000:02d}:{ms // 60_000 % 60:02d}:{ms // 1000 % 60:02d}{comma}{ms % 1000:03d}"


def plain(lines: list[list[tuple[str, bool]]]) -> str:
    return "\n".join(" ".join(text for text, _ in words) for words in lines)


def srt(wanted: Cues) -> str:
    def shown(words: list[tuple[str, bool]]) -> str:
        return " ".join(f"<i>{text}</i>" if italic else text for text, italic in words)

    return "".join(
        f"{number}\n{stamp(start)} --> {stamp(start + length)}\n" + "\n".join(map(shown, lines)) + "\n\n"
        for number, (start, length, lines) in enumerate(wanted, 1)
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cues, st.sampled_from(["vtt", "ass", "ssa", "ttml", "sbv", "sub"]))
def test_there_and_back_is_the_same_file(wanted: Cues, other: str) -> None:
    wanted = sorted(wanted, key=lambda cue: cue[0])
    step = {"ass": 10, "ssa": 10, "sub": 40}.get(other, 1)  # SubStation has hundredths, MicroDVD frames
    wanted = [(start // step * step, length // step * step, lines) for start, length, lines in wanted]
    if other in ("sbv", "sub"):  # SubViewer has no italics, MicroDVD none of single words
        wanted = [
            (start, length, [[(text, False) for text, _ in words] for words in lines])
            for start, length, lines in wanted
        ]
    there = convert_subtitles(srt(wanted), "srt", other, "x")
    assert convert_subtitles(there, other, "srt", "x") == srt(wanted)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cues, st.sampled_from(["ass", "ssa"]))
def test_pysubs2_reads_what_was_written(wanted: Cues, other: str) -> None:
    text = srt(wanted)
    events = pysubs2.SSAFile.from_string(convert_subtitles(text, "srt", other, "x"), format_=other).events
    rounded = [((start + 5) // 10 * 10, (start + length + 5) // 10 * 10) for start, length, _ in wanted]
    assert [(event.start, event.end) for event in events] == rounded
    assert [event.plaintext for event in events] == [plain(lines) for _, _, lines in wanted]


@given(cues)
def test_pysubs2_reads_ttml_and_microdvd(wanted: Cues) -> None:
    wanted = [(start // 40 * 40, length // 40 * 40, lines) for start, length, lines in wanted]
    for ours, theirs in (("ttml", "ttml"), ("sub", "microdvd")):
        written = convert_subtitles(srt(wanted), "srt", ours, "x")
        events = pysubs2.SSAFile.from_string(written, format_=theirs).events
        assert [(one.start, one.end) for one in events] == [
            (start, start + more) for start, more, _ in wanted
        ]
        assert [one.plaintext for one in events] == [plain(lines) for _, _, lines in wanted]


def test_styles_of_ttml_and_microdvd() -> None:
    cue = '<p begin="1s" end="2s">Not <span tts:fontStyle="italic">so</span>.</p>'
    text = f"<tt><body>{cue}</body></tt>"
    assert "Not <i>so</i>." in convert_subtitles(text, "ttml", "srt", "x")
    whole = convert_subtitles("1\n00:00:01,000 --> 00:00:02,000\n<i>All\nof it</i>\n", "srt", "sub", "x")
    assert whole == "{1}{1}25.000\n{25}{50}{Y:i}All|of it\n"
    assert "<i>All</i>\n<i>of it</i>" in convert_subtitles(whole, "sub", "srt", "x")


def test_webvtt_is_escaped_timed_and_in_order() -> None:
    text = "1\n00:00:02,000 --> 00:00:03,500\n<font color=red>R&D</font> <I>is</I> a < b\n\n"
    text += "2\n00:00:01,000 --> 00:00:02,000\n{\\an8}- Up.\n- <b>No</b>.\n"
    assert convert_subtitles(text, "srt", "vtt", "x") == (
        "WEBVTT\n\n"
        "00:00:01.000 --> 00:00:02.000\n- Up.\n- <b>No</b>.\n\n"
        "00:00:02.000 --> 00:00:03.500\nR&amp;D <i>is</i> a &lt; b\n\n"
    )
    ass = convert_subtitles(text, "srt", "ass", "x")
    assert r"{\an8}- Up.\N- {\b1}No{\b0}." in ass and r"R&D {\i1}is{\i0} a < b" in ass


def test_notes_names_and_settings_of_webvtt_are_no_text() -> None:
    text = (
        "WEBVTT\nLanguage: en\n\nSTYLE\n::cue {}\n\nNOTE nothing\n\nintro\n00:01.000 --> 00:02.000 line:0\n"
        "<v Bob>It is &lt;late&gt;.</v>\n42\n\nNOTE the end\n\n"
        "00:03.000 --> 00:04.000\n<c.loud><i>No!</c></i>"
    )
    assert convert_subtitles(text, "vtt", "srt", "x") == (
        "1\n00:00:01,000 --> 00:00:02,000\nIt is <late>.\n42\n\n"
        "2\n00:00:03,000 --> 00:00:04,000\n<i>No!</i>\n\n"
    )


def test_a_number_in_the_last_line_and_an_empty_cue_stay() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\n\n2\n00:00:03,000 --> 00:00:04,000\nMeet at\n5:00\n"
    vtt = "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n\n\n00:00:03.000 --> 00:00:04.000\nMeet at\n5:00\n\n"
    assert convert_subtitles(text, "srt", "vtt", "x") == vtt
    assert convert_subtitles(text.replace("\n", "\r\n"), "srt", "vtt", "x") == vtt.replace("\n", "\r\n")


def test_styles_of_substation_are_seen_and_what_is_not_text_is_not() -> None:
    subtitles = pysubs2.SSAFile()
    subtitles.styles["Thought"] = pysubs2.SSAStyle(italic=True)
    subtitles.events = [
        pysubs2.SSAEvent(2000, 3000, r"One{\i0} two\Nthree\hfour", style="Thought"),
        pysubs2.SSAEvent(1000, 2000, r"{\pos(1,2)}Sign"),
        pysubs2.SSAEvent(1000, 2000, "a remark", type="Comment"),
        pysubs2.SSAEvent(1000, 2000, r"{\p1}m 0 0 l 1 1{\p0}"),
    ]
    assert convert_subtitles(subtitles.to_string("ass"), "ass", "srt", "x") == (
        "1\n00:00:01,000 --> 00:00:02,000\nSign\n\n"
        "2\n00:00:02,000 --> 00:00:03,000\n<i>One</i> two\nthree\xa0four\n\n"
    )
    kept = pysubs2.SSAFile.from_string(convert_subtitles(subtitles.to_string("ass"), "ass", "ssa", "x"))
    assert kept.styles["Thought"].italic and [event.text for event in kept] == [
        event.text for event in subtitles
    ]


def test_what_substation_would_take_for_markup_is_text() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\n{a} in C:\\New\n"
    ass = convert_subtitles(text, "srt", "ass", "x")
    (event,) = pysubs2.SSAFile.from_string(ass).events
    assert event.plaintext.replace("\u2060", "") == "(a) in C:\\New"


def read(path: Path, content: str) -> TextFile:
    path.write_text(content, "utf-8")
    return read_text_file(path, language="en")


def restored(file: TextFile, *translations: str) -> str:
    return b"".join(file.restore(translations)).decode(file.encoding or "")


def test_text_and_json_lines(tmp_path: Path) -> None:
    text = read(tmp_path / "a.txt", "One. Two.\n\nThree.\n")
    lines = restored(as_format(text, "jsonl", "x"), "1", "2\n", "3")
    assert [json.loads(one) for one in lines.splitlines()] == [
        {"document": 1, "text": "One.", "translation": "1"},
        {"document": 1, "text": "Two.", "translation": "2 "},
        {"document": 2, "text": "Three.", "translation": "3"},
    ]
    again = read(tmp_path / "b.jsonl", lines)
    assert [one.texts for one in again.documents] == [one.texts for one in text.documents]
    assert restored(as_format(again, "text", "x"), "1", "2", "3") == "1\n2\n\n3\n"
    film = read(tmp_path / "c.srt", "1\n00:00:01,000 --> 00:00:02,000\nOne two.\nThree.\n")
    assert restored(as_format(film, "text", "x"), "<i>1</i>", "2") == "1\n2\n"


def test_what_can_t_be_is_refused_and_what_agrees_is_left_alone(tmp_path: Path) -> None:
    text = read(tmp_path / "a.txt", "One.\n")
    with pytest.raises(CadecError, match=r"is plain text and has no times, .* \.srt subtitles"):
        as_format(text, "srt", "x")
    assert as_format(text, "text", "x") is text and as_format(text, None, "x") is text
    late = read(tmp_path / "late.srt", "1\n09:59:59,999 --> 10:00:02,000\nOne.\n")
    with pytest.raises(CadecError, match=r"cues from 10 hours on, which \.ass has no times for"):
        as_format(late, "ass", "late.srt")
    assert "10:00:02.000" in restored(as_format(late, "vtt", "x"), "1")


@pytest.mark.parametrize(
    ("output", "source", "expected"),
    [
        ("b.vtt", "a.srt", "vtt"),
        ("b.srt", "a.srt", None),
        ("b.SRT", "a.srt.gz", None),
        ("b.txt", "a.srt", "text"),
        ("b.txt", "a.txt", None),  # a.txt may be SubRip by --format, and stays that
        ("b", "a.srt", None),
        ("b.ru", "a.srt", None),
        ("b.srt", "-", "srt"),
        ("b.jsonl", "a.txt", "jsonl"),
    ],
)
def test_what_a_name_promises(output: str, source: str, expected: str | None) -> None:
    assert promised_format(Path(output), Path(source)) == expected


@pytest.mark.parametrize(
    ("data", "given", "wanted", "expected"),
    [
        ("é.\n".encode("latin-1"), "latin-1", "utf-8", "Да\n".encode()),
        ("\ufeffé.\n".encode(), "utf-8", "utf-8", "\ufeffДа\n".encode()),
        ("\ufeffé.\n".encode(), "utf-8", "cp1251", "Да\n".encode("cp1251")),
        ("é.\n".encode(), "utf-8", "utf-8-sig", "\ufeffДа\n".encode()),
        ("é.\n".encode("utf-16"), "utf-16", "utf-8", "Да\n".encode()),
        ("é.\n".encode("utf-16"), "utf-16", "utf-16", "\ufeffДа\n".encode("utf-16-le")),
        ("é.\n".encode("utf-16"), "utf-16", "utf-16-be", "Да\n".encode("utf-16-be")),
        ("é.\n".encode(), "utf-8", "UTF8", "Да\n".encode()),
    ],
)
def test_encodings_of_the_output(
    data: bytes, given: str, wanted: str, expected: bytes, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    file = read_text_file(tmp_path / "a.txt", language="fr", encoding=given)
    assert b"".join(in_encoding(file, wanted, "аио").restore(["Да"])) == expected


def test_what_an_encoding_lacks_is_known_before_the_work(tmp_path: Path) -> None:
    file = read(tmp_path / "a.txt", "  ♪ One.\n")
    with pytest.raises(CadecError, match="iso8859-1 has no") as caught:
        in_encoding(file, "latin-1", "аио")
    assert "output_encoding" in caught.value.hint
    film = read(tmp_path / "a.vtt", "WEBVTT\n\nNOTE → here\n\n00:01.000 --> 00:02.000\nOne.\n")
    with pytest.raises(CadecError, match="has no '→'"):
        in_encoding(film, "cp1251")
    for unknown in ("klingon", "base64", "rot13", "a\0b"):
        with pytest.raises(CadecError, match="unknown encoding"):
            output_encoding(unknown)
