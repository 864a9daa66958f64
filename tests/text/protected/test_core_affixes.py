"""What stands around the words of a sentence is found, put together again exactly, and found only once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.protected.core import Affixes, affixes, speaker_name

IN_SUBTITLES = [
    ("Hello.", "", "Hello.", ""),
    ("", "", "", ""),
    ("   ", "", "", "   "),
    ("- Hello.", "- ", "Hello.", ""),
    ("-Hello.", "-", "Hello.", ""),
    ("– «Oh!»", "– ", "«Oh!»", ""),
    ("-5 degrees.", "", "-5 degrees.", ""),
    ("JOHN: Hello.", "JOHN: ", "Hello.", ""),
    ("MRS. GRAY: Hello.", "MRS. GRAY: ", "Hello.", ""),
    ("Mrs. Gray: Hello.", "Mrs. Gray: ", "Hello.", ""),
    ("Man 2: Hello.", "Man 2: ", "Hello.", ""),
    ("MAN #2: HELLO.", "MAN #2: ", "HELLO.", ""),
    ("JOHN & MARY: Hello.", "JOHN & MARY: ", "Hello.", ""),
    ("O'NEIL: “Hello.”", "O'NEIL: ", "“Hello.”", ""),
    ("JOHN (quietly): Hello.", "JOHN (quietly): ", "Hello.", ""),
    ("JOHN [on phone]: hello.", "JOHN [on phone]: ", "hello.", ""),
    (">> REPORTER: Hello.", ">> REPORTER: ", "Hello.", ""),
    (">> Good evening.", ">> ", "Good evening.", ""),
    ("ИВАН: Привет.", "ИВАН: ", "Привет.", ""),
    ("JOHN:", "JOHN:", "", ""),
    ("Note: see below.", "", "Note: see below.", ""),
    ("Note: See below.", "", "Note: See below.", ""),
    ("NOTE: SEE BELOW.", "", "NOTE: SEE BELOW.", ""),
    ("Chapter 2: The Return", "", "Chapter 2: The Return", ""),
    ("He said: no.", "", "He said: no.", ""),
    ("He said: No.", "", "He said: No.", ""),
    ("Remember: It is late.", "", "Remember: It is late.", ""),
    ("One thing: don't.", "", "One thing: don't.", ""),
    ("I: Who?", "", "I: Who?", ""),
    ("12:30 is late.", "", "12:30 is late.", ""),
    ("At 12:30.", "", "At 12:30.", ""),
    ("http://x.org is it.", "", "http://x.org is it.", ""),
    ("The Very Long Name: Hello.", "", "The Very Long Name: Hello.", ""),
    ("[DOOR SLAMS]", "[", "DOOR SLAMS", "]"),
    ("(laughs)", "(", "laughs", ")"),
    ("[laughs] Hello.", "[laughs] ", "Hello.", ""),
    ("(SIGHS) [sobs] Hello.", "(SIGHS) [sobs] ", "Hello.", ""),
    ("Hello (you) there.", "", "Hello (you) there.", ""),
    ("- (laughs)", "- (", "laughs", ")"),
    ("[laughs) Hello", "", "[laughs) Hello", ""),
    ("♪ la la ♪", "♪ ", "la la", " ♪"),
    ("♪♪ la la", "♪♪ ", "la la", ""),
    ("la la ♪", "", "la la", " ♪"),
    ("♪", "♪", "", ""),
    ("# la la #", "# ", "la la", " #"),
    ("#hashtag", "", "#hashtag", ""),
    ("- JOHN: [sighs] ♪ Oh my… ♪", "- JOHN: [sighs] ♪ ", "Oh my…", " ♪"),
    ("... and then...", "", "... and then...", ""),
    ("…и всё", "", "…и всё", ""),
    ("\u200b- Hello. ", "\u200b- ", "Hello.", " "),
]  # fmt: skip
IN_TEXT = [
    ("## Installation", "## ", "Installation", ""),
    ("###### Deep #1", "###### ", "Deep #1", ""),
    ("#hashtag", "", "#hashtag", ""),
    ("C# is here", "", "C# is here", ""),
    ("- an item", "- ", "an item", ""),
    ("* an item", "* ", "an item", ""),
    ("+ an item", "+ ", "an item", ""),
    ("• an item", "• ", "an item", ""),
    ("  - an item", "  - ", "an item", ""),
    ("- [ ] a task", "- [ ] ", "a task", ""),
    ("* [x] done", "* [x] ", "done", ""),
    ("1. First", "1. ", "First", ""),
    ("12) Twelfth", "12) ", "Twelfth", ""),
    ("1999. That was it.", "", "1999. That was it.", ""),
    ("5.5 metres", "", "5.5 metres", ""),
    ("> quoted", "> ", "quoted", ""),
    ("> > - ## deep", "> > - ## ", "deep", ""),
    (">=5 is enough", "", ">=5 is enough", ""),
    ("| a cell |", "| ", "a cell", " |"),
    ("| one | two |", "| ", "one | two", " |"),
    ("**Bold words**", "**", "Bold words", "**"),
    ("**Bold** words", "", "**Bold** words", ""),
    ("_Set in italics_", "_", "Set in italics", "_"),
    ("snake_case_", "", "snake_case_", ""),
    ("2 * 3", "", "2 * 3", ""),
    ("--help shows it", "", "--help shows it", ""),
    ("— Привет.", "— ", "Привет.", ""),
    ("[a link](http://x.org) here", "", "[a link](http://x.org) here", ""),
    ("[laughs] Hello.", "", "[laughs] Hello.", ""),
    ("(I know.)", "(", "I know.", ")"),
    ("JOHN: Hello.", "", "JOHN: Hello.", ""),
    ("-Hello.", "", "-Hello.", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "before", "inner", "after"), IN_SUBTITLES)
def test_in_subtitles(text: str, before: str, inner: str, after: str) -> None:
    assert affixes(text, speakers=True) == Affixes(before, inner, after)


@pytest.mark.parametrize(("text", "before", "inner", "after"), IN_TEXT)
def test_in_text(text: str, before: str, inner: str, after: str) -> None:
    assert affixes(text) == Affixes(before, inner, after)


PIECES = ["- ", "—", "JOHN: ", "Man 2:", " ", "[", "]", "(", ")", "laughs", "♪", "#", "> ", "1. ", "| "]
PIECES += ["Hello", "…", "**", "_", "• ", "12:30", "\n", "&"]


@given(st.lists(st.sampled_from(PIECES), max_size=10).map("".join) | st.text(max_size=20), st.booleans())
def test_the_parts_are_exact_and_nothing_is_left_to_find(text: str, speakers: bool) -> None:
    found = affixes(text, speakers=speakers)
    assert found.before + found.inner + found.after == text
    assert affixes(found.inner, speakers=speakers) == Affixes("", found.inner, "")


@given(st.text(max_size=30))
def test_a_name_is_part_of_the_text(text: str) -> None:
    assert 0 <= speaker_name(text) <= len(text)
    assert not speaker_name(text) or ":" in text[: speaker_name(text)]
