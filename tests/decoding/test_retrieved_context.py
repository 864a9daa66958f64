"""What a document remembers: the same however its sentences arrive, and nothing at all unless asked for."""

import dataclasses
import json
import random
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.decoding.state import State
from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.errors import UsageError
from cadec_cli.jobs.in_step import FileTranslation, StreamTranslation
from cadec_cli.jobs.json_lines import json_records
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.options import TranslationOptions, options_as_data, with_flags
from cadec_cli.session.session import Session
from cadec_cli.text.documents import Sentence
from cadec_cli.text.formats import StreamedText, TextFile, read_text_file
from cadec_cli.text.formats.layout import Layout, Line
from tests.helpers.fakes import TableLM, TableNMT

NAMES = ("Aurelia", "Okonkwo", "Hargreave", "Bob")


class SpellingNMT:
    """Three ways to write a sentence, all of the same probability: the context decides."""

    def nbest(self, sentences: Sequence[str], count: int) -> list[NBest]:
        return [
            NBest(one, tuple(Hypothesis(f"{one} {end}", -1.0) for end in ("!", "?", "…"))[:count])
            for one in sentences
        ]

    def log_probs(self, sentences: Sequence[str], targets: Sequence[str]) -> list[float]:
        return [-1.0 for _ in targets]

    def fits(self, sentence: str, target: str = "") -> bool:
        return len(sentence.split()) <= 6

    def split(self, sentence: str) -> list[str]:
        words = sentence.split()
        return [" ".join(words[start : start + 6]) for start in range(0, len(words), 6)]


class Calls(dict[tuple[str, str], float]):
    """Every word calls for every other, by a number that stands for nothing."""

    def get(self, key: Any, default: Any = None) -> float:
        return zlib.crc32(" ".join(key).encode()) % 1000 / 1000


def sentences(count: int, seed: int = 1) -> list[str]:
    chance = random.Random(seed)
    middles = ("I see", "Now there is", "It was", "He takes the lantern of", "The harbour of", "No, not")
    ends = (".", " again.", " and the dog of the harbour master.", " is here.")
    return [f"{chance.choice(middles)} {chance.choice(NAMES)}{chance.choice(ends)}" for _ in range(count)]


DOCUMENTS = [sentences(70), sentences(9, seed=2), sentences(33, seed=3)]


# One vocabulary for all: it gives ids as words are met.
MODELS = ModelSet(SpellingNMT(), TableLM(Calls(), positions=64))


def options(search: str = "rerank", retrieve: int = 2, **given: Any) -> TranslationOptions:
    return TranslationOptions(search=search, retrieve=retrieve, context=2, paths=3, protect=False, **given)


def translator(search: str = "rerank", retrieve: int = 2, **given: Any) -> Translator:
    return Translator(MODELS, options(search, retrieve, **given), language="en")


def records(one: Translator, found: Iterator[Translation]) -> list[dict[str, Any]]:
    """Everything that is said of the translations, the sentences that were read included."""
    ordered = sorted(found, key=lambda each: (each.document, each.sentence))
    return [
        {**record, "read": part.choice and part.choice.context}
        for each in ordered
        for record, part in zip(json_records(each, one.judge()), each.parts, strict=True)
    ]


def translated(search: str = "rerank", retrieve: int = 2, **given: Any) -> list[dict[str, Any]]:
    one = translator(search, retrieve, **given)
    return records(one, one.translate_documents(DOCUMENTS))


SEARCHES = pytest.mark.parametrize("search", ["rerank", "lattice"])


def test_a_name_is_spelt_as_the_document_spells_it() -> None:
    table = {
        "I know Aurelia": {"Aurel": -0.1},
        "yes": {"da": -0.1},
        "Is it Aurelia": {"Orel": -1.0, "Aurel": -1.2},
    }
    language = TableLM({("Aurel", "Aurel"): 0.9})
    made = ModelSet(TableNMT(table), language)
    document = ["I know Aurelia", "yes", "yes", "yes", "Is it Aurelia"]

    def last(retrieve: int) -> Translation:
        return list(Translator(made, TranslationOptions(context=1, retrieve=retrieve)).translate(document))[
            -1
        ]

    assert last(0).text == "Orel"
    assert last(1).text == "Aurel"
    choice = last(1).parts[0].choice
    assert choice is not None and [language.text.decode(ids) for ids in choice.context] == [
        "Aurel",
        "da",
    ]


@SEARCHES
def test_what_is_remembered_matters_and_0_is_as_before(search: str) -> None:
    found = translated(search)
    assert max(len(one["read"]) for one in found) == 4
    assert found != translated(search, retrieve=0) != translated(search, retrieve=1) != found
    assert all(len(one["read"]) <= 2 for one in translated(search, retrieve=0))
    assert "retrieve" not in options_as_data(options(retrieve=0))
    states: list[str] = []
    for retrieve in (0, 2):
        one = translator(search, retrieve)
        found_here = one.translate_documents(
            DOCUMENTS, checkpoint=lambda state: states.append(json.dumps(state.to_json()))
        )
        assert len(list(found_here)) == sum(map(len, DOCUMENTS))
    assert ["earlier" in state for state in states] == [False] * 3 + [True] * 2 or '"earlier"' not in states[
        0
    ]


@SEARCHES
@pytest.mark.parametrize("size", [1, 5, 64])
def test_waves_and_snapshots_change_nothing(search: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = translated(search)
    monkeypatch.setattr("cadec_cli.decoding.translator.WAVE", size)
    assert translated(search) == expected
    one = translator(search)
    states: list[tuple[int, str]] = []
    done: list[Translation] = []
    for translation in one.translate_documents(
        DOCUMENTS, checkpoint=lambda state: states.append((len(done), json.dumps(state.to_json())))
    ):
        done.append(translation)
    for count, state in states[:: max(1, len(states) // 4)]:
        start = State.from_json(json.loads(state))
        rest = translator(search).translate_documents(DOCUMENTS, start=start)
        assert records(one, iter([*done[:count], *rest])) == expected


@SEARCHES
def test_each_document_by_itself_is_the_same(search: str) -> None:
    one = translator(search)
    found = [
        dataclasses.replace(translation, document=number)
        for number, document in enumerate(DOCUMENTS)
        for translation in one.translate(document)
    ]
    assert records(one, iter(found)) == translated(search)


def test_a_stream_is_the_same() -> None:
    class Whole:
        def restore(self, translations: Any) -> Any:
            yield from translations

    chance = random.Random(5)
    lines: list[Line[Layout]] = [
        Line(tuple(map(Sentence, [text])), Whole(), ends_after=number == len(document) - 1)
        for document in DOCUMENTS
        for number, text in enumerate(document)
    ]
    pieces: list[list[Line[Layout]]] = []
    while lines:
        count = chance.randint(1, 30)
        pieces.append(lines[:count])
        del lines[:count]
    one = translator()
    text = StreamedText(iter(pieces))
    streamed = StreamTranslation(one, text, TextFile((), text, "utf-8", "text"))
    assert records(one, streamed.in_order()) == translated()


@pytest.mark.parametrize("retrieve", [0, 1, 3])
def test_a_session_is_the_same_and_corrections_are_remembered(retrieve: int) -> None:
    expected = translated(retrieve=retrieve)
    session = Session(MODELS, options(retrieve=retrieve))
    for document in DOCUMENTS:
        session.new()
        for _ in session.translate(document):
            pass
    entries = [entry for document in session.documents for entry in document]
    parts = [(part.choice.context if part.choice else None, part.text) for e in entries for part in e.parts]
    assert parts == [(one["read"], one["translation"]) for one in expected]


def test_whatever_is_changed_in_a_session_the_next_sentence_knows() -> None:
    """After picks, edits, undoing and choosing again, as if the session had been read from a file."""
    chance = random.Random(7)
    session = Session(MODELS, options())
    coming = iter(sentences(200, seed=8))
    for _ in session.translate([next(coming) for _ in range(20)]):
        pass
    for step in range(60):
        place = chance.randint(1, len(session.current))
        action = chance.choice(["pick", "edit", "undo", "redo", "go on", "go on"])
        if action == "pick":
            session.pick(chance.randint(1, 3), place)
        elif action == "edit":
            session.edit(f"{chance.choice(NAMES)} {step} !", place)
        elif action == "undo":
            session.undo()
        elif action == "redo":
            session.redo(place)
        elif step % 3 == 0:
            list(session.translate([f"It is {' '.join(NAMES)} and {' '.join(NAMES)} again"]))  # two parts
        fresh = Session(MODELS, options(), documents=session.documents)
        source = next(coming)
        (one,), (other,) = (list(each.translate([source])) for each in (session, fresh))
        assert (one.read, one.text) == (other.read, other.text)


MEMORY = [
    ("I see Aurelia.", "Ich sehe Aurelia !"),
    ("The harbour of Okonkwo is here.", "Der Hafen ist hier ?"),
    ("Bob", "Robert …"),
]


def test_a_memory_is_read_from_the_first_sentence_of_every_document(tmp_path: Path) -> None:
    table = tmp_path / "memory.tsv"
    table.write_text("".join(f"{one}\t{other}\n" for one, other in MEMORY), "utf-8")
    found = translated(memory=[str(table)])
    firsts = [one for one in found if one["sentence"] == 0]
    assert all(one["read"] for one in firsts) and found != translated()
    in_python = translated(memory=MEMORY)
    assert in_python == found
    # It is in files, streams and sessions as it is in documents.
    (tmp_path / "in.txt").write_text("\n\n".join("\n".join(one) for one in DOCUMENTS) + "\n", "utf-8")
    file = read_text_file(tmp_path / "in.txt", language="en", lines=True)
    one = translator(memory=[str(table)])
    assert [each.text for each in FileTranslation(one, [file]).in_order()] == texts(found)
    session = Session(MODELS, options(memory=[str(table)]))
    assert [entry.text for entry in session.translate(DOCUMENTS[0])] == texts(
        [record for record in found if record["document"] == 0]
    )


def texts(found: list[dict[str, Any]]) -> list[str]:
    whole: dict[tuple[int, int], list[str]] = {}
    for one in found:
        whole.setdefault((one["document"], one["sentence"]), []).append(one["translation"])
    return [" ".join(parts) for parts in whole.values()]


def test_options_that_contradict_each_other() -> None:
    usual = TranslationOptions()
    assert with_flags(usual, {"memory": ["a.tmx"]}).retrieve == 2
    assert with_flags(usual, {"memory": ["a.tmx"], "retrieve": 5}).retrieve == 5
    assert with_flags(TranslationOptions(retrieve=3), {"memory": ["a.tmx"]}).retrieve == 3
    assert with_flags(TranslationOptions(retrieve=3), {"rolling": True}).retrieve == 0
    for wrong in (
        {"memory": ["a.tmx"], "retrieve": 0},
        {"rolling": True, "retrieve": 1},
        {"memory": ["a.tmx"], "search": "sentence"},
    ):
        with pytest.raises(UsageError):
            with_flags(usual, wrong)
