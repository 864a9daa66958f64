"""Marks of a translation are those of its language, where the source has typographic ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.punctuation import NBSP, has_quotation_marks, quotations, restore_marks


@pytest.mark.parametrize(
    ("source", "translation", "language", "restored"),
    [
        ("“Go,” he said.", '"Va", dit-il.', "fr", "« Va », dit-il."),
        ("“Go,” he said.", "« Va », dit-il.", "fr", "« Va », dit-il."),
        ("“Go,” he said.", '"Va," dit-il.', "fr", "« Va », dit-il."),
        ("“Go,” he said.", '"Go," he said.', "en", "“Go,” he said."),
        ("“Go,” he said.", '"Geh", sagte er.', "de", "„Geh“, sagte er."),
        ("“Go,” he said.", '"Иди", сказал он.', "ru", "«Иди», сказал он."),
        ("“Go,” he said.", '"Idź" - powiedział.', "pl", "„Idź” - powiedział."),
        ("“Go,” he said.", '"Mene", hän sanoi.', "fi", "”Mene”, hän sanoi."),
        ("“Go,” he said.", '"行け"と彼は言った。', "ja", "「行け」と彼は言った。"),
        ("“Go,” he said.", '"Vai", disse.', "xx", "“Vai”, disse."),
        ('"Go," he said.', '"Va", dit-il.', "fr", '"Va", dit-il.'),
        ("Go.", "« Va. »", "fr", "« Va. »"),
        ("‘Go,’ he said.", "'Va', dit-il.", "fr", "« Va », dit-il."),
        ("‘Go,’ he said.", '"Va", dit-il.', "fr", "« Va », dit-il."),
        ("Say “never ‘no’”.", "Dis \"jamais 'non'\".", "fr", "Dis « jamais “non” »."),
        ("He said “never say ‘no’”.", 'Er sagte "sag nie \'nein\'".', "de", "Er sagte „sag nie ‚nein‘“."),
        ("“I came. I saw.", '"Je suis venu.', "fr", "« Je suis venu."),
        ("I conquered.”", 'J\'ai vaincu."', "fr", "J’ai vaincu. »"),
        ("The man’s hat", "Le chapeau de l'homme", "fr", "Le chapeau de l’homme"),
        ("“Don't,” he said.", '"N\'y va pas", dit-il.', "fr", "« N'y va pas », dit-il."),
        ("Wait… and see", "Attends... et vois", "fr", "Attends… et vois"),
        ("He left — alone.", "Il est parti - seul.", "fr", "Il est parti — seul."),
        ("“Go,” he said — twice.", "-- Va, dit-il - deux fois.", "fr", "— Va, dit-il — deux fois."),
        ("He – I think – left", "Il est -- je crois -- parti", "fr", "Il est – je crois – parti"),
    ],
)  # fmt: skip
def test_restored(source: str, translation: str, language: str, restored: str) -> None:
    expected = restored.replace("« ", f"«{NBSP}").replace(" »", f"{NBSP}»")
    if not any(mark in source for mark in "“”‘’…—–"):
        expected = restored
    assert restore_marks(source, translation, language) == expected


@given(st.text("ab “”\"'‘’«».—-…", max_size=30), st.text("ab “”\"'‘’«».—-…„", max_size=30))
def test_only_marks_and_their_spaces_change(source: str, translation: str) -> None:
    restored = restore_marks(source, translation, "fr")
    assert [one for one in restored if one.isalpha()] == [one for one in translation if one.isalpha()]
    assert restore_marks(source, restored, "fr") is not None


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("“Go,” he said. “Now.”", ["Go,", "Now."]),
        ('"Go," he said.', ["Go,"]),
        ("‘Don’t,’ he said.", ["Don’t,"]),
        ("He said “say ‘no’ to it”.", ["say ‘no’ to it"]),
        ("« Va », dit-il.", [" Va "]),
        ("„Geh“, sagte er.", ["Geh"]),
        ("“I came.", []),
        ("Don't; it's Tom's.", []),
        ("the dogs' and the cats' food", []),
        ("5' 10\" tall", []),
        ("'Tis the dogs' night.", []),
        ("'Tis night,' he said.", ["Tis night,"]),
    ],
)
def test_quotations(text: str, quoted: list[str]) -> None:
    assert [text[slice(*one.inner)] for one in quotations(text)] == quoted


@pytest.mark.parametrize("text", ["« Va »", '"Va"', "'Va', dit-il", "「行け」"])
def test_marks_of_all_kinds_count(text: str) -> None:
    assert has_quotation_marks(text)
    assert not has_quotation_marks("Va, dit l'homme.")


@given(st.text("ab “”\"'‘’«»„.", max_size=30))
def test_quotations_are_apart(text: str) -> None:
    done = 0
    for one in quotations(text):
        assert done <= one.start < one.end <= len(text)
        done = one.end
