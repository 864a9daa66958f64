"""Tags inside sentences: read as they are written, written back as tags, and never left open."""

import re
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.formats.layout import Source
from cadec_cli.text.formats.subtitles.cue_tags import (
    carry_open_tags,
    inline_tags,
    keep_known_tags,
    unpaired_tags,
)
from cadec_cli.text.formats.subtitles.reader import SubtitleLayout, read_subtitles
from cadec_cli.text.formats.subtitles.wrapping import Ruler, divide, wrap
from cadec_cli.text.markup import TAGS, subtitle_tags

ASS_HEAD = "[Script Info]\n\n[Events]\nFormat: Layer, Start, End, Style, Name, L, R, V, Effect, Text\n"


def written(subtitle_format: str, cues: list[str]) -> str:
    """Write a file whose cues begin every three seconds."""
    if subtitle_format == "ass":
        return ASS_HEAD + "".join(
            f"Dialogue: 0,0:{3 * number // 60:02}:{3 * number % 60:02}.00,0:{3 * number // 60:02}:"
            f"{3 * number % 60 + 2:02}.00,Default,,0,0,0,,{cue.replace(chr(10), chr(92) + 'N')}\n"
            for number, cue in enumerate(cues)
        )
    mark = "." if subtitle_format == "vtt" else ","
    blocks = [
        f"{number}\n00:{3 * number // 60:02}:{3 * number % 60:02}{mark}000 --> "
        f"00:{3 * number // 60:02}:{3 * number % 60 + 2:02}{mark}500\n{cue}\n"
        for number, cue in enumerate(cues, 1)
    ]
    return ("WEBVTT\n\n" if subtitle_format == "vtt" else "") + "\n".join(blocks)


def cue_texts(text: str, subtitle_format: str) -> list[str]:
    """Find the texts of cues that were written by `written`."""
    if subtitle_format == "ass":
        return re.findall(r"^Dialogue: (?:[^,]*,){9}(.*)$", text, re.MULTILINE)
    return re.findall(r"-->[^\n]*\n(.*?)(?=\n+\d+\n\d\d:|\Z)", text, re.DOTALL)


def read(text: str, subtitle_format: str) -> tuple[list[str], SubtitleLayout]:
    documents, layout = read_subtitles(
        Source(text, name="f", format=subtitle_format, language="en", tags=True)
    )
    return [sentence for document in documents for sentence in document.texts], layout


def translated(subtitle_format: str, cues: list[str], by: list[str]) -> list[str]:
    _, layout = read(written(subtitle_format, cues), subtitle_format)
    output = "".join(layout.restore(by))
    return [text.rstrip("\n") for text in cue_texts(output, subtitle_format)]


@pytest.mark.parametrize(
    ("subtitle_format", "cues", "expected"),
    [
        ("srt", ["He is <i>really</i> nice."], ["He is <i>really</i> nice."]),
        ("srt", ["{\\an8}<i>He</i> did it."], ["<i>He</i> did it."]),
        ("srt", ["<i>He is <b>so</b> nice.</i>"], ["He is <b>so</b> nice."]),
        ("srt", ["<i><b>He</b> is so nice.</i>"], ["<b>He</b> is so nice."]),
        ("srt", ["He <i>did it.</i>"], ["He <i>did it.</i>"]),
        ("srt", ['A <font color="#ff0000">red</font>  one.'], ['A <font color="#ff0000">red</font> one.']),
        ("srt", ["<i>Hello.</i> World."], ["<i>Hello.</i>", "World."]),
        ("srt", ["Oh. <i>Hello.</i> World."], ["Oh.", "<i>Hello.</i>", "World."]),
        ("srt", ["<i>Hello. Dear</i> World."], ["<i>Hello.", "Dear</i> World."]),
        ("srt", ["Hello <i>my\nfriend</i> there."], ["Hello <i>my friend</i> there."]),
        ("srt", ["Hello <i>my", "friend</i> there."], ["Hello <i>my friend</i> there."]),
        ("srt", ["Mr.<i> Gray</i> left. <b>No!</b>"], ["Mr.<i> Gray</i> left.", "<b>No!</b>"]),
        ("srt", ["- <i>Hi</i> you.\n- <i>Hello.</i>"], ["<i>Hi</i> you.", "Hello."]),
        ("srt", ["A < b and <x> is text."], ["A < b and <x> is text."]),
        ("srt", ["It is {b}bold{/b} here."], ["It is {b}bold{/b} here."]),
        ("vtt", ["Fish &amp; <c.loud>chips</c> &lt;b&gt;."], ["Fish & <c.loud>chips</c> <b>."]),
        ("vtt", ["It <00:00:03.500>is <v Bob Smith>me</v> now."],
         ["It <00:00:03.500>is <v Bob Smith>me</v> now."]),
        ("ass", ["It is {\\i1}so{\\i0} nice."], ["It is {\\i1}so{\\i0} nice."]),
        ("ass", ["{\\pos(1,2)}It\\his {\\i1\\b1}so{\\i0\\b0}\nnice."],
         ["It is {\\i1\\b1}so{\\i0\\b0} nice."]),
    ],
)  # fmt: skip
def test_tags_are_part_of_the_sentence(subtitle_format: str, cues: list[str], expected: list[str]) -> None:
    text = written(subtitle_format, cues)
    sentences, layout = read(text, subtitle_format)
    assert sentences == expected
    assert "".join(layout.restore(sentences)) == text


@pytest.mark.parametrize(
    ("subtitle_format", "cues", "by", "expected"),
    [
        ("srt", ["He is <i>really</i> nice."], ["Он <i>очень</i> мил."], ["Он <i>очень</i> мил."]),
        ("srt", ["{\\an8}<i>He</i> did it."], ["Это <i>он</i>."], ["{\\an8}Это <i>он</i>."]),
        ("srt", ["<i>He is <b>so</b> nice.</i>"], ["<b>Так</b> мил."], ["<i><b>Так</b> мил.</i>"]),
        # a tag that the source has not is no tag, and one too many neither
        ("srt", ["Hello."], ["<i>Привет</i>."], ["Привет."]),
        ("srt", ["A <i>b</i> c."], ["<<b>i>А <i>б</i> <i>в</i>."], ["А <i>б</i> в."]),
        ("vtt", ["Hello."], ["<i>Да</i> & нет."], ["&lt;i&gt;Да&lt;/i&gt; &amp; нет."]),
        ("vtt", ["A <i>b</i> &lt;b&gt;."], ["<b> <i>б</i> <b>."], ["&lt;b&gt; <i>б</i> &lt;b&gt;."]),
        ("ass", ["Hello."], ["{\\i1}Да{\\i0}."], ["(\\i1)Да(\\i0)."]),
        # over two cues
        ("srt", ["I went <i>to", "the shop</i> now."], ["<i>Я пошёл в магазин</i> сейчас же."],
         ["<i>Я пошёл</i>", "<i>в магазин</i> сейчас же."]),
        ("srt", ["I went <i>to", "the shop</i>."], ["Я пошёл в <i>магазин</i>."],
         ["Я пошёл", "в <i>магазин</i>."]),
        ("srt", ["I went", "to <i>the shop</i>."], ["<i>Магазин</i>, туда я."],
         ["<i>Магазин</i>,", "туда я."]),
        ("vtt", ["One <c.red>two", "three</c> four."], ["<c.red>Раз два три</c> четыре."],
         ["<c.red>Раз два</c>", "<c.red>три</c> четыре."]),
        ("ass", ["One {\\i1\\b1}two", "three{\\i0} four{\\b0}."],
         ["{\\i1\\b1}Раз два{\\i0} три четыре{\\b0}."],
         ["{\\i1\\b1}Раз два{\\i0}{\\b0}", "{\\b1}три четыре{\\b0}."]),
        # in the same cue, a pair may begin in one sentence and end in another
        ("srt", ["Oh <i>my. Dear</i> me."], ["О <i>мой.", "Дорогой</i> я."], ["О <i>мой. Дорогой</i> я."]),
        ("srt", ["<i>Oh my. Dear</i> me."], ["О мой.", "Дорогой</i> я."], ["<i>О мой. Дорогой</i> я."]),
        # a translation that lost one half
        ("srt", ["He is <i>so</i> nice."], ["Он <i>так мил."], ["Он <i>так мил.</i>"]),
        ("srt", ["He is <i>so</i> nice."], ["Он так</i> мил."], ["<i>Он так</i> мил."]),
        ("srt", ["He is <i>so</i> nice."], ["Он так мил."], ["Он так мил."]),
        ("srt", ["<i>Hello</i>\n<i>there.</i>"], ["Привет."], ["<i>Привет.</i>"]),
        ("srt", ["<i>Hello</i>\nthere."], ["Привет."], ["<i>Привет.</i>"]),
        # a tag that closes two things, of which one is opened again
        ("ass", ["{\\i1\\u1}Hello{\\u0\\i0}\n{\\i1}there.{\\i0}"], ["Привет."],
         ["{\\i1\\u1}Привет.{\\u0}{\\i0}"]),
        ("srt", ["<i>Oh. My</i> dear."], ["О.", "Мой."], ["О. Мой."]),
    ],
)  # fmt: skip
def test_tags_of_the_translation(
    subtitle_format: str, cues: list[str], by: list[str], expected: list[str]
) -> None:
    assert translated(subtitle_format, cues, by) == expected


PAIRS = {
    "srt": [("<i>", "</i>"), ('<font color="red">', "</font>"), ("{\\i1}", "{\\i0}")],
    "vtt": [("<i>", "</i>"), ("<c.loud x>", "</c>"), ("<v Bob B>", "</v>")],
    "ass": [("{\\i1}", "{\\i0}"), ("{\\b1}", "{\\b0}"), ("{\\i1\\u1}", "{\\u0\\i0}")],
}
WORDS = ["Hello.", "so", "I", "went", "Fish & co", "...", "?", "No!", "語語。", "5"]
SEEDS = st.integers(0, 2**32)  # drawing every word would take longer than reading them


def balanced_cues(random: Random, subtitle_format: str) -> list[str]:
    """Make up cues in whose words pairs open and close, each in its cue."""
    cues = []
    for _ in range(random.randint(1, 5)):
        cue = ""
        opened: list[str] = []
        for word in random.choices(WORDS, k=random.randint(1, 6)):
            while opened and random.random() < 0.5:
                cue += opened.pop()
            cue += random.choice([" ", " ", " ", "\n"]) if cue and not cue.endswith("\n") else ""
            if random.random() < 0.5:
                before, after = random.choice(PAIRS[subtitle_format])
                cue += before
                opened.append(after)
            cue += word
        cues.append((cue + "".join(reversed(opened))).strip())
    return cues


def tags_of(text: str, subtitle_format: str) -> list[str]:
    return TAGS[subtitle_format].findall(text)


def other_words(random: Random, sentence: str, subtitle_format: str) -> str:
    """Make up a translation: other words, as many as there may be, and the same tags in their order."""
    result = ""
    for tag in [*(tag.text for tag in inline_tags(sentence, subtitle_format)), ""]:
        result += " ".join(random.choices(["раз", "два,", "двадцать", "& <x"], k=random.randint(0, 4)))
        result += random.choice(["", " "]) + tag + random.choice(["", " "])
    return result


@pytest.mark.parametrize("subtitle_format", ["srt", "vtt", "ass"])
@given(seed=SEEDS)
def test_cues_stay_balanced_and_no_tag_is_lost(subtitle_format: str, seed: int) -> None:
    random = Random(seed)
    text = written(subtitle_format, balanced_cues(random, subtitle_format))
    sentences, layout = read(text, subtitle_format)
    assert "".join(layout.restore(sentences)) == text
    by = [other_words(random, sentence, subtitle_format) for sentence in sentences]
    output = cue_texts("".join(layout.restore(by)), subtitle_format)
    assert len(output) == len(cue_texts(text, subtitle_format))
    for before, after in zip(cue_texts(text, subtitle_format), output, strict=True):
        assert unpaired_tags(subtitle_tags(before, subtitle_format)) == ([], [])
        assert unpaired_tags(subtitle_tags(after, subtitle_format)) == ([], [])
    inside = Counter(tag for translation in by for tag in tags_of(translation, subtitle_format))
    assert inside <= Counter(tag for cue in output for tag in tags_of(cue, subtitle_format))


@pytest.mark.parametrize("subtitle_format", ["srt", "vtt", "ass"])
@given(seed=SEEDS)
def test_sentences_of_one_line_keep_exactly_their_tags(subtitle_format: str, seed: int) -> None:
    random = Random(seed)
    cues = [f"{cue.replace(chr(10), ' ')} End." for cue in balanced_cues(random, subtitle_format)]
    text = written(subtitle_format, cues)
    sentences, layout = read(text, subtitle_format)
    by = [other_words(random, sentence, subtitle_format) for sentence in sentences]
    output = "".join(layout.restore(by))
    if all(len(sentence.shares) == 1 for sentence in layout.sentences):
        assert Counter(tags_of(output, subtitle_format)) == Counter(tags_of(text, subtitle_format))


@given(st.text(alphabet="<>/ib{}\\1 &;", max_size=30), st.sampled_from(["srt", "vtt", "ass"]))
def test_no_tag_is_smuggled_in(translation: str, subtitle_format: str) -> None:
    shown = keep_known_tags(translation, ["<i>"], subtitle_format)
    assert tags_of(shown, subtitle_format) in ([], ["<i>"])


TAGGED = st.lists(st.sampled_from(["a ", "bb, ", "<i>", "</i>", "<b>", "</b>", "語"]), max_size=12).map(
    "".join
)


@given(TAGGED, st.integers(1, 4))
def test_tags_take_no_room(text: str, count: int) -> None:
    ruler = Ruler(TAGS["srt"])
    weights = list(range(1, count + 1))
    parts = divide(text, weights, ruler)
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")
    plain = TAGS["srt"].sub("", text)
    assert [ruler.visible_text(part).strip() for part in parts] == divide(plain, weights)
    assert [ruler.visible_text(line).strip() for line in wrap(text, count, 3, ruler)] == [
        line.strip() for line in wrap(plain, count, 3)
    ]


@given(TAGGED, st.integers(1, 4))
def test_nothing_stays_open_at_the_end_of_a_part(text: str, count: int) -> None:
    parts = carry_open_tags(divide(text, [1] * count, Ruler(TAGS["srt"])), "srt")
    assert all(unpaired_tags(subtitle_tags(part, "srt"))[0] == [] for part in parts[:-1])
    left_open = [half.name for half in unpaired_tags(subtitle_tags(text, "srt"))[0]]
    assert sorted(half.name for half in unpaired_tags(subtitle_tags(parts[-1], "srt"))[0]) == sorted(
        left_open
    )
