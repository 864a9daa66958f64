"""TTML: whatever a translation has in it, the file stays well-formed, and its times and cues stay."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.formats.subtitles.cues import find_cues
from tests.helpers.catalogue_files import read, translate

WORDS = st.sampled_from(
    ["He left", "without a word.", "Who?", "- Yes.", "&amp;", "I said so", "[BANG]", " ", "\n  "]
)
INSIDE = st.recursive(
    WORDS | st.just("<br/>"),
    lambda inner: st.lists(inner, max_size=3).map(lambda parts: f'<span style="a">{" ".join(parts)}</span>'),
    max_leaves=6,
)
CUES = st.lists(st.lists(INSIDE, max_size=4).map(" ".join), min_size=1, max_size=4)


def document(cues: list[str]) -> str:
    shown = "".join(
        f'<p begin="{number}s" end="{number + 1}s">{cue}</p>\n' for number, cue in enumerate(cues)
    )
    return f'<tt xmlns="http://www.w3.org/ns/ttml" xml:lang="en"><body><div>{shown}</div></body></tt>'


@given(CUES, st.lists(st.sampled_from(["{}", "</span>", "<br/>", "<span>", "&", "x y", "<b>"]), max_size=4))
def test_it_stays_well_formed(cues: list[str], around: list[str]) -> None:
    content = document(cues)
    assert translate(content, "ttml") == content
    for tags in (True, False):
        written = translate(content, "ttml", "".join(around) or "x", tags=tags, to="fr")
        root = ElementTree.fromstring(written)
        assert [one.attrib for one in root.iter() if one.tag.endswith("}p")] == [
            one.attrib for one in ElementTree.fromstring(content).iter() if one.tag.endswith("}p")
        ]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ('begin="00:00:01.5" end="00:00:02"', (1500, 2000)),
        ('begin="1.5s" dur="500ms"', (1500, 2000)),
        ('begin="90000t" end="00:01:02:12"', (9, 62400)),
        ('begin="0.5m" end="0.01h"', (30000, 36000)),
        ('begin="25f" end="75f"', (833, 2500)),
        ("", (0, 0)),
    ],
)
def test_times(times: str, expected: tuple[int, int]) -> None:
    head = 'xmlns:p="http://www.w3.org/ns/ttml#parameter" p:frameRate="30" p:tickRate="10000000"'
    (cue,) = find_cues(f"<tt {head}><body><p {times}>Now.</p></body></tt>", "ttml", "a.ttml")
    assert (cue.start, cue.end) == expected


def test_times_are_relative_to_what_they_are_in() -> None:
    inner = '<div begin="10s"><div begin="5s"><p begin="1s" end="2s">Now.</p></div></div>'
    (cue,) = find_cues(f"<tt><body begin='100s'>{inner}</body></tt>", "ttml", "a.ttml")
    assert (cue.start, cue.end) == (116_000, 117_000)


def test_the_language_is_that_of_the_translation_wherever_it_was_named() -> None:
    head = '<?xml version="1.0" encoding="iso-8859-1"?>'
    head += '<tt xml:lang="en"><body xml:lang="en-GB"><div xml:lang="de">'
    written = translate(f'{head}<p begin="0s" end="1s">Now.</p></div></body></tt>', "ttml", "Ну {}", to="ru")
    assert 'encoding="UTF-8"' in written
    assert '<tt xml:lang="ru"><body xml:lang="ru"><div xml:lang="de">' in written


def test_pauses_end_documents() -> None:
    documents, _ = read(
        '<tt><body><p begin="0s" end="1s">One.</p><p begin="60s" end="61s">Two.</p></body></tt>', "ttml"
    )
    assert [one.texts for one in documents] == [("One.",), ("Two.",)]
