"""How many characters the cues of a sentence have room for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.formats.layout import CueLimits, Source, SubtitleStyle
from cadec_cli.text.formats.subtitles.limits import problems
from cadec_cli.text.formats.subtitles.reader import read_subtitles


def cue(number: int, start: float, end: float, text: str) -> str:
    times = " --> ".join(f"00:00:{int(one):02},{round(one % 1 * 1000):03}" for one in (start, end))
    return f"{number}\n{times}\n{text}\n\n"


def rooms(text: str, **style: object) -> list[float | None]:
    screen = SubtitleStyle(fit=True, **style)  # type: ignore[arg-type]
    documents, _ = read_subtitles(
        Source(text, name="f", format="srt", language="en", tags=True, screen=screen)
    )
    return [sentence.room for document in documents for sentence in document.sentences]


@pytest.mark.parametrize(
    ("text", "style", "expected"),
    [
        (cue(1, 1, 2, "I see you."), {}, [17]),
        (cue(1, 1, 9, "I see you."), {}, [84]),
        (cue(1, 1, 9, "I see you."), {"max_lines": 1}, [42]),
        (cue(1, 1, 9, "I see you."), {"max_chars": 30}, [60]),
        (cue(1, 1, 9, "I see\nyou\nhere."), {}, [126]),
        (cue(1, 1, 9, "I see\nyou\nhere."), {"max_lines": 2, "max_cps": 0}, [84]),
        (cue(1, 1, 2, "I see you."), {"max_cps": 0}, [84]),
        (cue(1, 1, 1, "I see you."), {}, [0]),
        (cue(1, 2, 1, "I see you."), {}, [0]),
        # two speakers: each has a line, and a share of the time without the dashes
        (cue(1, 1, 3, "- I see.\n- You do."), {}, [30 * 6 / 13, 30 * 7 / 13]),
        (cue(1, 1, 30, "- I see.\n- You do."), {}, [42, 42]),
        # one sentence in two cues, and a cue of two sentences
        (cue(1, 1, 2, "I see") + cue(2, 2, 4, "you."), {}, [17 + 34]),
        (cue(1, 1, 2, "Oh. I see.") + cue(2, 2, 4, "No."), {}, [17 * 3 / 10, 17 * 6 / 10, 34]),
    ],
)
def test_room(text: str, style: dict[str, object], expected: list[float]) -> None:
    assert rooms(text, **style) == pytest.approx(expected)


def test_nobody_knows_who_does_not_ask() -> None:
    documents, _ = read_subtitles(
        Source(cue(1, 1, 2, "I see you."), name="f", format="srt", language="en", tags=True)
    )
    assert documents[0].rooms == ()


WORD = st.text("abc", min_size=2, max_size=8)


@given(st.lists(st.tuples(st.floats(0.2, 9), st.lists(WORD, min_size=1, max_size=9)), min_size=1, max_size=6))
def test_a_translation_within_the_room_of_its_one_cue_is_not_too_fast(
    cues: list[tuple[float, list[str]]],
) -> None:
    text, now = "", 1.0
    for number, (seconds, words) in enumerate(cues, 1):
        sentence = " ".join(words).capitalize() + "."
        text += cue(number, round(now, 3), round(now + seconds, 3), sentence)
        now += seconds
    screen = SubtitleStyle(fit=True)
    documents, layout = read_subtitles(
        Source(text, name="f", format="srt", language="en", tags=True, screen=screen)
    )
    sentences = [sentence for document in documents for sentence in document.sentences]
    translations = ["x" * int(sentence.room or 0) for sentence in sentences]
    found = problems(layout.shown_cues(translations), CueLimits(max_cps=17, max_lines=2))
    assert not found
