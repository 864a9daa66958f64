"""One rendering per name, whatever the order of work; and nothing new where no name recurs."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.decoding.glossary.outcomes import name_outcomes
from cadec_cli.decoding.state import State
from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import choose
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.jobs.by_document import BulkTranslation, DocumentWorker
from cadec_cli.jobs.found_names import names_output
from cadec_cli.jobs.in_step import FileTranslation, SideOutput, segment_maker
from cadec_cli.jobs.json_lines import json_records
from cadec_cli.jobs.outputs import OutputPlan
from cadec_cli.method.options import TranslationOptions
from cadec_cli.parallel import SerialPool, Task
from cadec_cli.text.formats import read_text_file
from cadec_cli.text.glossary.reader import read_glossary
from cadec_cli.text.name_memory import NameSample
from tests.helpers.fakes import TableLM
from tests.helpers.names_model import SPELLINGS, NamesNMT, names_translator

FRAMES = ("Then {} left.", "He saw {}.", "Where is {}?", "Nobody saw {} then.", "It is {} again.")
CHAPTER = [frame.format(name) for frame in FRAMES for name in ("Aurelia", "Hargreave", "the Kestrel")] + [
    "It is late.",
    "Then it is late.",
]
PLAIN = ["Then it is late.", "He saw it.", "Then Aurelia left.", "Where is it?"]  # one name, once


def records(translations: Sequence[Translation]) -> list[str]:
    ordered = sorted(translations, key=lambda one: (one.document, one.sentence))
    return [json.dumps(json_records(one), ensure_ascii=False) for one in ordered]


def spellings(translations: Sequence[Translation], name: str) -> set[str]:
    return {
        spelling for one in translations for spelling in SPELLINGS[name] if spelling in one.text.strip(".?")
    }


def test_every_name_is_called_one_thing() -> None:
    before = list(names_translator(names=False).translate(CHAPTER))
    after = list(names_translator().translate(CHAPTER))
    for name in SPELLINGS:
        assert len(spellings(before, name)) > 1 == len(spellings(after, name))
    outcomes = [term for one in after for term in name_outcomes(one.parts)]
    assert len(outcomes) == 3 * len(FRAMES) and {one.outcome for one in outcomes} == {"kept", "changed"}
    assert [one.text for one in before[-2:]] == [one.text for one in after[-2:]]


def test_candidates_are_scored_by_the_model_and_lists_keep_their_length() -> None:
    model = NamesNMT()
    for one in names_translator(model=model).translate(CHAPTER):
        (part,) = one.parts
        assert len(part.hypotheses) <= 2
        for hypothesis in part.hypotheses:
            assert [hypothesis.log_prob] == model.log_probs([one.source], [hypothesis.text])


@pytest.mark.parametrize("search", ["rerank", "lattice", "sentence"])
def test_where_no_name_recurs_nothing_changes(search: str) -> None:
    models = NamesNMT(), NamesNMT()
    found = [
        records(list(names_translator(model=model, search=search, names=names).translate(PLAIN)))
        for model, names in zip(models, (False, True), strict=True)
    ]
    assert found[0] == found[1] and models[0].listed == models[1].listed and not models[1].scored


def test_each_list_is_made_once() -> None:
    model = NamesNMT()
    list(names_translator(model=model).translate(CHAPTER))
    assert sorted(model.listed) == sorted(CHAPTER)


def test_the_users_glossary_wins() -> None:
    translator = names_translator(glossary=({"Aurelia": "Ореля"},))
    found = list(translator.translate(CHAPTER))
    assert spellings(found, "Aurelia") == {"Ореля"} and len(spellings(found, "Hargreave")) == 1
    assert "Aurelia" not in {term.term for one in found for term in name_outcomes(one.parts)}


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, len(CHAPTER) - 1), max_size=4, unique=True).map(sorted))
def test_documents_in_step_are_as_each_alone(cuts: list[int]) -> None:
    documents = [CHAPTER[start:end] for start, end in itertools.pairwise([0, *cuts, len(CHAPTER)])]
    together = list(names_translator().translate_documents(documents))
    for number, document in enumerate(documents):
        alone = list(names_translator().translate(document))
        own = [replace(one, document=0) for one in together if one.document == number]
        assert records(own) == records(alone)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, len(CHAPTER) - 1), max_size=4, unique=True).map(sorted))
def test_a_growing_document_does_not_depend_on_its_pieces(cuts: list[int]) -> None:
    found = []
    for places in ([], cuts):
        translator = names_translator(context=0)
        names = translator.new_names()
        said: list[Translation] = []
        for start, end in itertools.pairwise([0, *places, len(CHAPTER)]):
            said += translator.translate_documents([CHAPTER[start:end]], growing=[names])
        found.append([one.text for one in said])
    assert found[0] == found[1]
    assert len({text for text in found[0] if "Харгр" in text or "Гаргр" in text}) >= 3


def file_of(path: Path, blocks: Sequence[Sequence[str]]) -> Path:
    path.write_text("\n\n".join("\n".join(block) for block in blocks) + "\n", "utf-8")
    return path


BLOCKS = [CHAPTER[:5], CHAPTER[5:6], CHAPTER[6:13], CHAPTER[13:]]  # paragraphs of one file


def test_a_name_is_the_same_through_a_file_with_workers_and_when_resumed(tmp_path: Path) -> None:
    source = file_of(tmp_path / "in.txt", BLOCKS)
    translator = names_translator()
    file = read_text_file(source, language="en", lines=True)
    states: list[State] = []

    def in_step(name: str) -> tuple[FileTranslation, Path]:
        plan = OutputPlan((tmp_path / name,), tmp_path / f"{name}.journal")
        terms = names_output(tmp_path / f"{name}.tsv", ["in.txt"])
        return FileTranslation(translator, [file], plan=plan, side_output=terms), tmp_path / name

    work, whole = in_step("whole.txt")
    work.to_files(json_lines=False, resume=False)
    text = whole.read_text("utf-8")
    for spelt in SPELLINGS.values():
        assert sum(one in text for one in spelt) == 1

    interrupted, resumed = in_step("resumed.txt")

    def stop(translations, total):  # type: ignore[no-untyped-def]
        yield from itertools.islice(translations, 4)
        raise KeyboardInterrupt

    with pytest.raises(BaseException, match="sentences are done"):
        interrupted.to_files(json_lines=False, resume=False, track=stop)
    interrupted.to_files(json_lines=False, resume=True)
    assert resumed.read_bytes() == whole.read_bytes() and not states

    def crew() -> DocumentWorker:
        own = names_translator()
        terms = names_output(tmp_path / "none.tsv", [])
        beside = segment_maker(terms.segment, own, own.judge(), explains=False)
        return DocumentWorker(own, own.judge(), side_output=beside)

    terms: SideOutput = names_output(tmp_path / "bulk.txt.tsv", ["in.txt"])
    bulk = BulkTranslation(
        OutputPlan((tmp_path / "bulk.txt",), tmp_path / "bulk.journal"),
        lambda number: read_text_file(source, language="en", lines=True),
        Task(crew, ()),
        {},
        side_output=terms.write,
        names=lambda documents: NameSample.of_documents(documents, "en"),
    )
    bulk.run(SerialPool(), bulk.survey(), resume=False)
    assert (tmp_path / "bulk.txt").read_bytes() == whole.read_bytes()
    tables = {(tmp_path / f"{name}.txt.tsv").read_text("utf-8") for name in ("whole", "resumed", "bulk")}
    (table,) = tables
    glossary = read_glossary([str(tmp_path / "whole.txt.tsv")], "en")
    assert {entry.source for entry in glossary.entries} == set(SPELLINGS) and "\t5\t0\t" in table
    with_table = names_translator(names=False, glossary=(str(tmp_path / "whole.txt.tsv"),))
    again = list(with_table.translate(CHAPTER))
    assert all(len(spellings(again, name)) == 1 for name in SPELLINGS)


def test_given_lists_are_held_to_their_names() -> None:
    model = NamesNMT()
    models = ModelSet(model, TableLM({}), target_language="ru")
    options = TranslationOptions(search="sentence", beam=6, names=True)
    found = list(choose([model.nbest(CHAPTER, 6)], models, options, language="en"))
    assert all(len(spellings(found, name)) == 1 for name in SPELLINGS) and not model.scored
