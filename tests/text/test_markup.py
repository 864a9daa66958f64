"""What is a tag in each notation, and what it switches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.markup import TAGS, Switch, Tag, subtitle_tags, text_tags, without_tags

I_ON, I_OFF, B_ON = Switch("i", True), Switch("i", False), Switch("b", True)


@pytest.mark.parametrize(
    ("markup", "text", "tags"),
    [
        ("srt", "A <i>b</i> <x> {\\an8}", ["<i>", "</i>", "{\\an8}"]),
        ("srt", "< I >a {B}b{/B} <00:01.000> {note}", ["< I >", "{B}", "{/B}"]),
        ("vtt", "<v Bob>a <x> <00:01.000>", ["<v Bob>", "<x>", "<00:01.000>"]),
        ("ass", "{\\i1}a{note} <i>b</i> <x>", ["{\\i1}", "{note}", "<i>", "</i>"]),
    ],
)
def test_each_format_has_its_own_tags(markup: str, text: str, tags: list[str]) -> None:
    assert [tag.text for tag in subtitle_tags(text, markup)] == tags


@pytest.mark.parametrize(
    ("text", "switches"),
    [
        ("<i>", (I_ON,)),
        ("</I>", (I_OFF,)),
        ("<br>", ()),
        ("<br/>", ()),
        ("<00:01.000>", ()),
        ("<!-- \\i1 -->", ()),
        ("{\\i1}", (I_ON,)),
        ("{\\b1\\i0}", (B_ON, I_OFF)),
        ("{\\b700}", ()),
        ("{b}", (B_ON,)),
    ],
)
def test_what_a_tag_switches(text: str, switches: tuple[Switch, ...]) -> None:
    assert text_tags(text) == [Tag(text, 0, switches)]


def test_marks_are_tags_in_pairs_and_signs_are_seen() -> None:
    found = text_tags("A **b** c** 🎉 `<i>`")
    assert [(tag.text, tag.opens, tag.closes, tag.visible) for tag in found] == [
        ("**", True, False, False),
        ("**", False, True, False),
        ("🎉", False, False, True),
    ]
    mixed = text_tags("{\\b1\\i0}")[0]
    assert not mixed.opens and not mixed.closes


@given(st.text(alphabet="<>/{}\\ib1 *a", max_size=30))
def test_tags_are_where_they_say(text: str) -> None:
    for tags in (text_tags(text), *(subtitle_tags(text, markup) for markup in TAGS)):
        assert all(text[slice(*tag.span)] == tag.text for tag in tags)
        assert len(without_tags(text, tags)) == len(text) - sum(len(tag.text) for tag in tags)
