"""Subtitles keep their times, order, count and markup; sentences are laid over the cues they came from."""

from pathlib import Path

import pysubs2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.text.documents import Document
from cadec_cli.text.formats import read_text_file
from cadec_cli.text.formats.layout import Source
from cadec_cli.text.formats.subtitles.reader import SubtitleLayout, read_subtitles
from cadec_cli.text.formats.subtitles.wrapping import divide, wrap


def read(text: str, subtitle_format: str = "srt") -> tuple[tuple[Document, ...], SubtitleLayout]:
    return read_subtitles(Source(text, name="f", format=subtitle_format, language="en"))


def sentences(documents: tuple[Document, ...]) -> list[str]:
    return [text for document in documents for text in document.texts]


def srt(*cues: str, step: int = 3) -> str:
    blocks = []
    for number, cue in enumerate(cues, 1):
        start, end = step * number, step * number + 2
        times = f"00:{start // 60:02}:{start % 60:02},000 --> 00:{end // 60:02}:{end % 60:02},500"
        blocks.append(f"{number}\n{times}\n{cue}\n")
    return "\n".join(blocks)


def translated(*cues: str, by: list[str]) -> list[str]:
    """Translate cues and return their texts as pysubs2 reads them."""
    _, layout = read(srt(*cues))
    found = pysubs2.SSAFile.from_string("".join(layout.restore(by)), format_="srt", keep_html_tags=True)
    assert len(found) == len(cues)
    return [event.text for event in found]


@pytest.mark.parametrize(
    ("cues", "expected"),
    [
        (["Hello.", "Bye."], ["Hello.", "Bye."]),
        (["I went to", "the shop."], ["I went to the shop."]),
        (["I went...", "...to the shop. Then", "I left."], ["I went... ...to the shop.", "Then I left."]),
        (["Two lines\nof one."], ["Two lines of one."]),
        (["- Hi.\n- Hello."], ["Hi.", "Hello."]),
        (["– 5 of us.\n<i>- «Oh!»</i>"], ["5 of us.", "«Oh!»"]),
        (["Hi, you\n- Who?"], ["Hi, you", "Who?"]),
        (["It was -5\n-10 degrees"], ["It was -5 -10 degrees"]),
        (["He left\n- and came back."], ["He left - and came back."]),
        (["<i>Hello there.</i>"], ["Hello there."]),
        (["{\\an8}<i>Up\nhere.</i>"], ["Up here."]),
        (["He <b>did</b> it."], ["He did it."]),
        (["[door opens]", "Who is it?"], ["[door opens]", "Who is it?"]),
        (["♪ La la", "♪ la ♪", "Stop it"], ["♪ La la", "♪ la ♪", "Stop it"]),
        (["LONDON", "It rained."], ["LONDON", "It rained."]),
        (["I think we\nJOHN: Come on!"], ["I think we", "JOHN: Come on!"]),
        (["I think we", "Man 2: No!"], ["I think we", "Man 2: No!"]),
        (["He said\nMary: see you."], ["He said Mary: see you."]),
        (["JOHN:\nCome on!"], ["JOHN:", "Come on!"]),
        (["42"], ["42"]),
        (["", "Hi."], ["Hi."]),
    ],
)
def test_sentences(cues: list[str], expected: list[str]) -> None:
    documents, layout = read(srt(*cues))
    assert sentences(documents) == expected
    assert "".join(layout.restore(expected)) == srt(*cues)


def test_a_pause_starts_a_document() -> None:
    assert len(read(srt("One.", "Two.", step=9))[0]) == 1  # 6.5 s between them
    assert len(read(srt("One.", "Two.", step=10))[0]) == 2


def test_times_that_start_again_start_a_document() -> None:
    text = srt(*["One."] * 8) + "\n" + srt("Two.")
    assert [len(document) for document in read(text)[0]] == [8, 1]


@pytest.mark.parametrize(
    ("cues", "by", "expected"),
    [
        (["I went to", "the shop."], ["Я пошёл в магазин."], ["Я пошёл", "в магазин."]),
        (["One two three four", "five."], ["Раз два, три."], ["Раз два,", "три."]),
        (["I went to", "the shop."], ["Да."], ["Да.", ""]),
        (["One. Two", "three."], ["Раз.", "Два три."], ["Раз. Два", "три."]),
        (["<i>Hello there.</i>"], ["Привет."], ["<i>Привет.</i>"]),
        (["{\\an8}Hello."], ["Привет."], ["{\\an8}Привет."]),
        (["He <b>did</b> it."], ["Он сделал это."], ["Он сделал это."]),
        (["He <i>did it.</i>"], ["Он сделал это."], ["Он сделал это."]),
        (["<i>He</i> did it."], ["Он сделал это."], ["Он сделал это."]),
        (["<i>Hello</i>\n<i>there.</i>"], ["Привет."], ["<i>Привет.</i>"]),
        (["<i>Hello</i>\nthere."], ["Привет."], ["<i>Привет.</i>"]),
        (["- Hi.\n- <i>Hello.</i>"], ["Да.", "Нет."], [r"- Да.\N- <i>Нет.</i>"]),
        (["Short one.\nShort two."], ["Раз.", "Два."], [r"Раз.\NДва."]),
        (["Two lines\nhere."], ["Одна строка."], ["Одна строка."]),
        (
            ["This is a sentence that takes\ntwo lines to be read."],
            ["Это предложение занимает две строки, как и раньше."],
            [r"Это предложение занимает\Nдве строки, как и раньше."],
        ),
        (
            ["One line."],
            ["Слово " * 10 + "конец."],
            [(("Слово " * 5).strip() + r"\N" + "Слово " * 5 + "конец.")],
        ),
        (["Arrow."], ["a --> b\nc"], ["a -> b c"]),
    ],
)
def test_translations_are_laid_over_the_cues(cues: list[str], by: list[str], expected: list[str]) -> None:
    assert translated(*cues, by=by) == expected


def test_captions_without_punctuation_are_taken_cue_by_cue() -> None:
    cues = [f"and then number {number} went on" for number in range(30)]
    assert sentences(read(srt(*cues))[0]) == cues


def test_vtt_keeps_all_that_is_not_text() -> None:
    text = (
        "\ufeffWEBVTT - title\r\nKind: captions\r\n\r\nSTYLE\r\n::cue { color: red }\r\n\r\n"
        "NOTE not this\r\n\r\nintro\r\n00:01.000 --> 00:02.000 align:start position:0%\r\n"
        "<v Bob>Fish &amp; <c.loud>chips</c>\r\n\r\n"
        "NOTE nor\r\nthis\r\n\r\n00:00:03.000 --> 00:00:04.000\r\nare <00:00:03.500>good.\r\n"
    )
    documents, layout = read(text, "vtt")
    assert sentences(documents) == ["Fish & chips are good."]
    assert "".join(layout.restore(sentences(documents))) == text
    output = "".join(layout.restore(["Рыба & картошка <вкусны>."]))
    assert output == text.replace("Fish &amp; <c.loud>chips</c>", "Рыба &amp; картошка").replace(
        "are <00:00:03.500>good.", "&lt;вкусны&gt;."
    )


ASS = """[Script Info]
; a remark
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname
Style: Default,Arial,20,&H00FFFFFF,&H00FFFFFF,&H0,&H0,0,0,0,0,100,100,0,0,1,1,1,2,0,0,0,1

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:05.00,0:00:06.00,Default,,0,0,0,,{\\i1}to, see{\\i0}\\Nme.
Comment: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,Leave me alone.
Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,{\\p1}m 0 0 l 100 0{\\p0}
Dialogue: 0,0:00:01.00,0:00:02.00,Sign,,0,0,0,,{\\pos(1,2)}SHOP
Dialogue: 0,0:00:03.00,0:00:04.00,Default,Bob,0,0,0,,You\\hcame
"""


def test_html_in_ass_is_no_part_of_a_sentence() -> None:
    head = (
        "[Script Info]\n\n[V4+ Styles]\n\n[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR,"
    )
    cues = ["I saw him <b>there</b>.", "<i>I am tired.</i>", "Go home."]
    text = f"{head} MarginV, Effect, Text\n" + "".join(
        f"Dialogue: 0,0:00:0{number}.00,0:00:0{number + 1}.00,Default,,0,0,0,,{cue}\n"
        for number, cue in enumerate(cues)
    )
    documents, layout = read(text, "ass")
    assert sentences(documents) == ["I saw him there.", "I am tired.", "Go home."]
    shown = "".join(layout.restore(["Да.", "Я устал.", "Домой."]))
    assert [line.rsplit(",,", 1)[1] for line in shown.splitlines()[-3:]] == [
        "Да.",
        "<i>Я устал.</i>",
        "Домой.",
    ]


def test_entities_of_vtt_are_text_to_the_model_and_entities_in_the_file() -> None:
    text = "WEBVTT\n\n00:01.000 --> 00:03.000\nTom &amp; Jerry &lt;3 you.\n"
    documents, layout = read(text, "vtt")
    assert sentences(documents) == ["Tom & Jerry <3 you."]
    shown = "".join(layout.restore(["Том & Джерри <3 вас."]))
    assert shown.endswith("\nТом &amp; Джерри &lt;3 вас.\n")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_ass_is_read_in_the_order_of_time(end: str) -> None:
    text = ASS.replace("\n", end)
    documents, layout = read(text, "ass")
    assert sentences(documents) == ["SHOP", "You came to, see me."]
    assert "".join(layout.restore(sentences(documents))) == text
    output = "".join(layout.restore(["ЛАВКА", "Ты пришёл {меня} навестить."]))
    assert output == text.replace("SHOP", "ЛАВКА").replace("You\\hcame", "Ты пришёл").replace(
        "{\\i1}to, see{\\i0}\\Nme.", "{\\i1}(меня) навестить.{\\i0}"
    )


def test_the_content_tells_the_format(tmp_path: Path) -> None:
    for content, name, found in (
        (ASS, "ass", ["SHOP", "You came to, see me."]),
        ("WEBVTT\n\n00:01.000 --> 00:02.000\nHi.\n", "vtt", ["Hi."]),
    ):
        (tmp_path / "a.srt").write_text(content, "utf-8")
        file = read_text_file(tmp_path / "a.srt", language="en")
        assert (file.format, sentences(file.documents)) == (name, found)


@pytest.mark.parametrize("subtitle_format", ["srt", "vtt", "ass"])
@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff"])
def test_empty_files(text: str, subtitle_format: str) -> None:
    documents, layout = read(text, subtitle_format)
    assert documents == ()
    assert "".join(layout.restore([])) == text


@pytest.mark.parametrize(
    ("text", "subtitle_format"),
    [
        ("Just some text.\n", "srt"),
        ("{1}{25}MicroDVD\n", "srt"),
        ("Just some text.\n", "vtt"),
        ("Just some text.\n", "ass"),
        ("1\n00:00:01,000 -->\nHi.\n", "srt"),
        (srt("One.") + "\n2\n00:00:04,000 --> 00:0", "srt"),
        (ASS.replace("0:00:05.00", "soon"), "ass"),
    ],
)
def test_foreign_and_torn_files_are_one_clear_error(text: str, subtitle_format: str) -> None:
    with pytest.raises(CadecError, match="f"):
        read(text, subtitle_format)


@pytest.mark.parametrize("torn", ["2\n", "2\n00:00:0", "2"])
def test_a_cue_that_never_came_is_no_text(torn: str) -> None:
    text = srt("One.") + "\n" + torn
    documents, layout = read(text)
    assert sentences(documents) == ["One."]
    assert "".join(layout.restore(["One."])) == text


CUE_TEXTS = st.lists(
    st.sampled_from(
        [
            "Hello.",
            "so",
            "I",
            "went",
            " ",
            "\n",
            "- ",
            "<i>",
            "</i>",
            "{\\an8}",
            "<b>x</b>",
            "...",
            "?",
            "♪",
            "(Hm)",
            "5",
        ]
    ),
    max_size=8,
).map("".join)


@given(st.lists(CUE_TEXTS, max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_unchanged_sentences_give_the_file_back(cues: list[str], end: str) -> None:
    text = srt(*cues).replace("\n", end)
    documents, layout = read(text)
    assert "".join(layout.restore(sentences(documents))) == text


@given(st.lists(CUE_TEXTS, max_size=6), st.text(max_size=40))
def test_times_and_count_are_kept_whatever_comes_back(cues: list[str], translation: str) -> None:
    text = srt(*cues)
    documents, layout = read(text)
    output = "".join(layout.restore([translation] * len(sentences(documents))))
    times = [line for line in text.split("\n") if "-->" in line]
    assert [line for line in output.split("\n") if "-->" in line] == times


@given(st.text(), st.sampled_from(["srt", "vtt", "ass"]))
def test_any_text_is_read_or_refused(text: str, subtitle_format: str) -> None:
    head = {
        "srt": "1\n00:00:01,000 --> 00:00:02,000\n",
        "vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\n",
        "ass": ASS,
    }
    for candidate in (text, head[subtitle_format] + text):
        try:
            documents, layout = read(candidate, subtitle_format)
        except CadecError:
            continue
        assert "".join(layout.restore(sentences(documents))) == candidate


@given(
    st.lists(st.text("ab,。語", min_size=1, max_size=6), max_size=12), st.lists(st.integers(0, 9), min_size=1)
)
def test_divide_keeps_all_words(words: list[str], weights: list[int]) -> None:
    parts = divide(" ".join(words), weights)
    assert len(parts) == len(weights)
    assert "".join(parts).replace(" ", "") == "".join(words)
    if len(words) >= len(weights):
        assert all(parts)


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        ("short", 2, ["short"]),
        ("a" * 50, 2, ["a" * 50]),
        ("x " * 30, 1, ["x " * 30]),
        (
            "Twenty characters ok, and then some more of it.",
            2,
            ["Twenty characters ok,", "and then some more of it."],
        ),
        ("語" * 50, 2, ["語" * 25, "語" * 25]),
    ],
)
def test_wrap(text: str, lines: int, expected: list[str]) -> None:
    assert wrap(text, lines) == expected
