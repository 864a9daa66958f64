"""The chapter that names are measured on, and how a name is counted."""

import re

from bench.names import CHAPTER, NAMES, majority
from cadec_cli.text.name_memory import NameSample

LINES = CHAPTER.read_text("utf-8").splitlines()


def test_names_recur_far_apart() -> None:
    assert len(LINES) == 310 and all(map(str.strip, LINES))
    for name in NAMES:
        places = [number for number, line in enumerate(LINES) if re.search(rf"\b{name}\b", line)]
        assert 5 <= len(places) <= 40 and places[-1] - places[0] > 100
    assert NameSample.of(LINES, "en").names == {name.lower() for name in NAMES}


def test_the_majority_is_counted_in_all_its_forms() -> None:
    sources = ["Aurelia left.", "He saw Aurelia.", "Where is Aurelia?", "It is late."]
    said = ["Аурелия ушла.", "Он видел Аурелию.", "Где Аврелия?", "Поздно, Мария."]
    assert majority("Aurelia", sources, said, "ru") == [True, True, False]
