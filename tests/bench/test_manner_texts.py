"""The dialogues of a cast: everybody who speaks is in it, and says I."""

import re

from bench.manner import ADDRESS, TEXTS, documents
from cadec_cli.text.cast import Conversation, read_cast
from cadec_cli.text.documents import Sentence


def test_everybody_of_the_dialogues_is_in_the_cast() -> None:
    cast = read_cast(str(TEXTS / "cast.tsv"))
    genders = []
    for document in documents(TEXTS / "cast.en.txt"):
        conversation = Conversation(cast, "ru")
        for line in document:
            manner, labelled = conversation.follow(Sentence(line), speakers=False)
            assert labelled and manner is not None and re.search(r": I\b", line)
            genders.append(manner.gender)
    assert genders.count("f") == genders.count("m") == 20


def test_the_text_about_address_has_forty_lines() -> None:
    assert [len(document) for document in documents(ADDRESS)] == [5] * 8
