"""Tags find their words by occlusion: what the translation loses without the tagged words stands for them."""

import re
from collections.abc import Sequence

import pytest

from cadec_cli.decoding.protection.tag_placement import place_tags
from cadec_cli.text.protected.core import core_of

# word of the source → word of the translation
MEANS = {"old": "vieux", "man": "homme", "sees": "voit", "the": "le", "red": "rouge", "car": "voiture"}


class Dictionary:
    """A target word is likely if the source word that it translates is there."""

    def token_log_probs(
        self, sentences: Sequence[str], targets: Sequence[str]
    ) -> list[list[tuple[int, float]]]:
        return [
            [
                (
                    place,
                    -0.1
                    if any(MEANS.get(one) == word.strip(".") for one in re.findall(r"\w+", sentence))
                    else -8.0,
                )
                for place, word in enumerate(target.split())
            ]
            for sentence, target in zip(sentences, targets, strict=True)
        ]


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("the red <b>car</b>", "le voiture rouge", "le <b>voiture</b> rouge"),
        ("the <i>red</i> car", "le voiture rouge", "le voiture <i>rouge</i>"),
        ("the <i>old man</i> sees", "voit le vieux homme", "voit le <i>vieux homme</i>"),
        ("<i>the old man</i>", "le vieux homme", "<i>le vieux homme</i>"),
        ("the <b><i>red</i> car</b>", "le voiture rouge", "le <b>voiture <i>rouge</i></b>"),
        ("the [red](u.html) car", "le voiture rouge", "le voiture [rouge](u.html)"),
        ("the old man 🎉", "le vieux homme", "le vieux homme 🎉"),
        ("the <code>42</code> man", "homme 42", "homme <code>42</code>"),
    ],
)
def test_tags_land_on_their_words(source: str, translation: str, expected: str) -> None:
    assert place_tags(core_of(source, "en"), translation, Dictionary()) == expected


def test_without_scores_a_tag_goes_where_it_was_in_proportion() -> None:
    core = core_of("one two <b>three</b> four", "en")
    assert place_tags(core, "un deux trois quatre", None) == "un deux <b>trois</b> quatre"


def test_punctuation_that_was_outside_stays_outside() -> None:
    core = core_of("the red <b>car</b>.", "en")
    assert place_tags(core, "rouge le voiture.", Dictionary()).endswith("<b>voiture</b>.")
