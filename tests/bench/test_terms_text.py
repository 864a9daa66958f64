"""The text that terms are counted in: every term is there, and what counts is counted."""

import pytest

from bench.terms import TEXTS, kept, uncalled_for
from cadec_cli.text.glossary.entries import Entry, Glossary
from cadec_cli.text.glossary.reader import read_glossary


@pytest.mark.parametrize("language", ["ru", "fr"])
def test_every_sentence_has_a_term_and_every_term_a_sentence(language: str) -> None:
    glossary = read_glossary([str(TEXTS / f"terms.en-{language}.tsv")], "en")
    sentences = (TEXTS / "terms.en.txt").read_text("utf-8").splitlines()
    mentions = [glossary.mentions(sentence) for sentence in sentences]
    assert len(sentences) >= 60 and all(mentions)
    assert {one.entry for of_sentence in mentions for one in of_sentence} == set(glossary.entries)


def test_what_is_counted() -> None:
    glossary = Glossary([Entry("lamp", ("farol",)), Entry("red lamp", ("farol rojo",))], "en")
    assert kept(glossary, ["a lamp", "lamps", "a door"], ["un farol", "luces", "un farol"]) == (1, 2)
    assert uncalled_for(glossary, ["a lamp", "a red lamp"], ["un farol", "un farol rojo"]) == []
    assert uncalled_for(glossary, ["a door"], ["un farol"]) == ["lamp → farol in un farol"]
