"""Tags taken out of a sentence, and put into its translation."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.markup import take_out_tags, with_tags

EXAMPLES = [
    ("He is <i>really</i> nice.", "He is really nice.", ["<i>", "</i>"]),
    ("Great job 🎉 see you", "Great job  see you", ["🎉"]),
    ("See [the guide](https://x.y/z) now.", "See the guide now.", ["[", "](https://x.y/z)"]),
    ("A **bold** and *thin* word", "A bold and thin word", ["**", "**", "*", "*"]),
    (r"{\i1}So{\i0} what", "So what", [r"{\i1}", r"{\i0}"]),
    (
        "[![a b](c)](d) Press <kbd>A</kbd>+<kbd>B</kbd>",
        " Press <kbd>A</kbd>+<kbd>B</kbd>",
        ["[![a b](c)](d)"],
    ),
    ("Use <code>x</code><br/> now", "Use x now", ["<code>", "</code>", "<br/>"]),
    ("a `<b>` b*c 5 * 3 snake_case_x", "a `<b>` b*c 5 * 3 snake_case_x", []),
    ("👨‍👩‍👧 family 👍🏽", " family ", ["👨‍👩‍👧", "👍🏽"]),
    ("3 < 4 and 5 > 2", "3 < 4 and 5 > 2", []),
]


@pytest.mark.parametrize(("text", "plain", "tags"), EXAMPLES)
def test_tags_go_out_and_come_back(text: str, plain: str, tags: list[str]) -> None:
    without, found = take_out_tags(text)
    assert (without, [tag.text for tag in found]) == (plain, tags)
    back = with_tags(without, without, found, lambda start, end: (start, end))
    assert " ".join(back.split()) == text


PIECES = st.sampled_from(
    ["<i>", "</i>", "<b>", "</b>", "word", " ", "🎉", "**", "[x](u)", r"{\i1}", r"{\i0}", "."]
)


@given(st.lists(PIECES, max_size=12).map("".join), st.text("абв .", max_size=20))
def test_whatever_the_alignment_every_tag_comes_back_once_and_no_word_is_changed(
    text: str, translation: str
) -> None:
    plain, tags = take_out_tags(text)
    places = sorted([len(translation) // 3, len(translation) // 2])
    written = with_tags(translation, plain, tags, lambda start, end: (places[0], places[1]))
    counted = Counter(tag.text for tag in tags)
    assert all(written.count(tag) >= count for tag, count in counted.items())
    for tag in sorted(counted, key=len, reverse=True):
        written = written.replace(tag, "")
    assert written.replace(" ", "") == translation.replace(" ", "")


def test_pairs_stay_nested_and_what_stood_at_an_end_stays_there() -> None:
    plain, tags = take_out_tags("<b>one <i>two</i></b> three 🎉")
    moved = with_tags("три два один", plain, tags, lambda start, end: (4, 12) if start == 0 else (0, 7))
    assert moved == "три <b><i>два</i> один</b> 🎉"


def test_marks_of_time_bring_no_spaces_and_each_sign_has_its_own() -> None:
    plain, tags = take_out_tags(r"{\k20}I {\k20}will {\k20}al{\k20}ways love")
    sung = with_tags("Я буду всегда любить", plain, tags, lambda start, end: (start, end))
    assert "  " not in sung and sung.count(r"{\k20}") == 4
    plain, tags = take_out_tags("one🎉 two 🎉 three")
    assert with_tags("раз два три", plain, tags, lambda start, end: (start, end)) == "раз🎉 два 🎉 три"


def test_a_pair_around_nothing_stays_a_pair() -> None:
    plain, tags = take_out_tags("a <b>b</b> c")
    assert with_tags("x", plain, tags, lambda start, end: (1, 1)) == "x<b></b>"


def test_a_mark_behind_a_word_stays_behind_its_translation() -> None:
    plain, tags = take_out_tags("The house<fn/> is old, see<fn2/>.")
    german = {"house": "Haus", "see": "siehe"}

    def aligned(start: int, end: int) -> tuple[int, int]:
        word = german[plain[start:end]]
        place = "Sieh, alt ist das Haus, siehe.".index(word)
        return place, place + len(word)

    found = with_tags("Sieh, alt ist das Haus, siehe.", plain, tags, aligned)
    assert found == "Sieh, alt ist das Haus<fn/>, siehe<fn2/>."
