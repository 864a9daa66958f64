"""How translated subtitles look: lines and their length, two languages, the header; and how fast they are."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.formats.layout import CueLimits, Source, SubtitleStyle
from cadec_cli.text.formats.subtitles.cue_tags import dash_of, with_dash
from cadec_cli.text.formats.subtitles.cues import shown_cues
from cadec_cli.text.formats.subtitles.limits import problems
from cadec_cli.text.formats.subtitles.reader import read_subtitles
from cadec_cli.text.formats.subtitles.wrapping import Ruler, divide, wrap
from cadec_cli.text.markup import TAGS

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
    ("language", "text", "first"),
    [
        ("en", "Nobody in the village ever saw the doctor again.", "Nobody in the village"),
        ("en", "I have never in my life seen a house like this one.", "I have never in my life"),
        ("fr", "Il a dit que la maison de son père est à vendre.", "Il a dit que la maison"),
        ("fr", "Vous savez vraiment ce qui se passe là-bas, vous ?", "Vous savez vraiment"),
        ("de", "Ich habe den alten Arzt in der Stadt noch gesehen.", "Ich habe den alten Arzt"),
        ("es", "No sabemos si la mujer de mi hermano viene a casa.", "No sabemos si la mujer"),
        ("it", "Non sappiamo se la moglie di mio fratello verrà.", "Non sappiamo se la moglie"),
        ("pt", "Não sabemos se a mulher do meu irmão vem a casa.", "Não sabemos se a mulher"),
        ("ru", "Никто не знает, что он сказал ей в тот вечер дома.", "Никто не знает,"),
        ("xx", "aaaa bbbb cc dddd eeee ffff gggg hhhh iiii jjjj", "aaaa bbbb cc dddd eeee"),
    ],
)  # fmt: skip
def test_lines_break_where_the_grammar_lets_them(language: str, text: str, first: str) -> None:
    assert wrap(text, 2, 34, Ruler(language=language))[0] == first


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "Vous voulez savoir pourquoi « ils » sont là ?",
            ["Vous voulez savoir", "pourquoi « ils » sont là ?"],
        ),
        ("Tu le sais bien, n'est-ce pas, mon petit ?", ["Tu le sais bien,", "n'est-ce pas, mon petit ?"]),
        ("- Où est-il ? - Je ne sais pas, monsieur.", ["- Où est-il ?", "- Je ne sais pas, monsieur."]),
        ("Москва – столица нашей большой родины.", ["Москва –", "столица нашей большой родины."]),
    ],
)
def test_signs_stay_with_their_words(text: str, lines: list[str]) -> None:
    assert wrap(text, 2, 30, Ruler(language="ru" if "М" in text else "fr")) == lines


LANGUAGES = ("", "en", "fr", "de", "es", "it", "pt", "ru", "uk", "nl", "pl", "ja")
TEXTS = st.lists(
    st.sampled_from(
        ["the", "of", "la", "de", "в", "не", "der", "house", "maison", "дом", "Mr.", "?", "«", "»", "–", "-",
         "...", "l'", "l'homme,", "fin.", "<i>", "</i>", "日本", "5", "km", "a\u00a0b", "x" * 50]
    ),
    max_size=30,
)  # fmt: skip


@given(TEXTS, st.integers(1, 4), st.sampled_from(LANGUAGES), st.booleans())
def test_wrapping_never_loses_or_moves_a_word(
    words: list[str], lines: int, language: str, tags: bool
) -> None:
    text = " ".join(words)
    ruler = Ruler(TAGS["srt"] if tags else None, language=language)
    wrapped = wrap(text, lines, 20, ruler)
    assert len(wrapped) <= lines
    assert "".join("".join(wrapped).split()) == "".join(text.split())
    parts = divide(text, [3, 1, 2][:lines], ruler)
    assert "".join("".join(parts).split()) == "".join(text.split())


@given(TEXTS, st.sampled_from(LANGUAGES))
def test_a_line_ends_with_a_clinging_word_only_where_no_other_place_fits(
    words: list[str], language: str
) -> None:
    ruler = Ruler(language=language)
    wrapped = wrap(" ".join(words), 2, 30, ruler)
    if len(wrapped) < 2 or not ruler.clings(wrapped[0].split()[-1]):
        return
    units = ruler.words(" ".join(words))
    for stop in range(1, len(units)):
        one, other = ("".join(half).strip() for half in (units[:stop], units[stop:]))
        fits = max(len(one), len(other)) <= max(30, *map(len, wrapped))
        assert not fits or ruler.clings(units[stop - 1])


@pytest.mark.parametrize(
    ("style", "cue", "by", "expected"),
    [
        ("keep", "- One.\n-Two.", ["А.", "Б."], "- А.\n-Б."),
        ("auto", "- One.\n-Two.", ["А.", "Б."], "— А.\n— Б."),
        ("– ", "<i>-One.</i>\n- <i>Two.</i>", ["А.", "Б."], "<i>– А.</i>\n– <i>Б.</i>"),
        ("auto", "Well - one.", ["А - б."], "А - б."),
        ("auto", "It was -5\n-10 degrees.", ["Было."], "Было."),
        ("-", "<v a-b>- One.", ["А."], "<v a-b>-А."),
        ("auto", "- [sighs] One.\n-[coughs]", ["А.", "Б."], "— А.\n— Б."),
    ],
)  # fmt: skip
def test_dashes(style: str, cue: str, by: list[str], expected: str) -> None:
    output = translated(SRT.format(cue, "Bye."), [*by, "Bye."], SubtitleStyle(dash=style, language="ru"))
    assert output == SRT.format(expected, "Bye.")


@pytest.mark.parametrize(
    ("language", "dash"), [("fr", "– "), ("fr-CA", "– "), ("es", "—"), ("ru", "— "), ("de", "- ")]
)
def test_each_language_has_its_dash(language: str, dash: str) -> None:
    assert dash_of(language) == dash
    assert with_dash(SRT.format("--", "")[:2] + "-<i>", dash, "srt") == "1\n" + dash + "<i>"


def test_positioned_lines_of_substation_stay_one_line_and_karaoke_stays_as_it_is() -> None:
    assert r"места,\Nи одной" in translated(ASS.format("One."), [LONG], SubtitleStyle(), "ass")
    for place in (r"{\pos(10,20)}", r"{\an8\move(1,2,3,4)}", r"{\fad(1,2)\frz30}"):
        output = translated(ASS.format(place + "One."), [LONG], SubtitleStyle(), "ass")
        assert output == ASS.format(place + LONG)
    for song in (r"{\k20}La {\k30}la", r"{\an8\kf20}La", r"{\K5}La", r"{\be1}La{\ko10} la"):
        assert translated(ASS.format(song), [], SubtitleStyle(dash="auto", sdh="drop"), "ass") == ASS.format(
            song
        )


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
