"""A document's translation and all its figures are the same bytes, whatever is translated beside it.

With the embedded bundle in int8, as it is used: weights that were trained, sentences of several lengths.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
import torch

from cadec_cli.decoding.translator import Translator
from cadec_cli.jobs.job import TranslationJob
from cadec_cli.jobs.json_lines import json_line, json_records
from cadec_cli.jobs.model_request import ModelRequest

# The scores of every other sentence differ where it is padded to the length of the longest.
DOCUMENTS = [
    ["Go swiftly and silently.", "This fruit is very sour.", "Oh, hello! You’re a handsome one."],
    ["You will not live to enjoy it!", "", "You work with <i>Koessler</i>?", "It's a spring day..."],
    [
        "It's a spring day...",
        "If you want to know where he went, and why he took the horse with him, ask the old man who lives by "
        "the river.",
    ],
]
OPTIONS = {"nbest": 3, "paths": 2}


@pytest.fixture(scope="module")
def loaded() -> Iterator[Translator]:
    threads = torch.get_num_threads()
    yield TranslationJob.open(ModelRequest(threads=1), OPTIONS).translator
    torch.set_num_threads(threads)


def found(translator: Translator, documents: Sequence[Sequence[str]]) -> list[bytes]:
    """What --json says of each document, as if it were the only one."""
    made = [b""] * len(documents)
    for translation in translator.translate_documents(documents):
        for record in json_records(replace(translation, document=0)):
            made[translation.document] += json_line(record)
    return made


def each_alone(translator: Translator) -> list[bytes]:
    return [found(translator, [document])[0] for document in DOCUMENTS]


@pytest.mark.parametrize(
    ("search", "rolling"), [("sentence", False), ("rerank", False), ("rerank", True), ("lattice", False)]
)
def test_in_step_with_others_is_as_alone(loaded: Translator, search: str, rolling: bool) -> None:
    options = replace(loaded.options, search=search, rolling=rolling)
    translator = Translator(loaded.models, options, language=loaded.language)
    alone = each_alone(translator)
    assert found(translator, DOCUMENTS) == alone
    assert found(translator, DOCUMENTS[:0:-1]) == alone[:0:-1]  # others, and in another order


def test_nothing_depends_on_the_number_of_threads(loaded: Translator) -> None:
    one = found(loaded, DOCUMENTS)
    torch.set_num_threads(3)  # more than there are cores, perhaps
    assert found(loaded, DOCUMENTS) == one


def test_another_process_with_all_cores_says_the_same(loaded: Translator) -> None:
    program = (
        "import sys; from cadec_cli.jobs.job import ModelRequest, TranslationJob\n"
        "from cadec_cli.jobs.json_lines import json_bytes\n"
        f"translator = TranslationJob.open(ModelRequest(), {OPTIONS}).translator\n"
        "sys.stdout.buffer.writelines(json_bytes(translator.translate(sys.argv[1:]), translator.judge()))"
    )
    ran = subprocess.run([sys.executable, "-c", program, *DOCUMENTS[0]], stdout=subprocess.PIPE, check=True)
    assert ran.stdout == found(loaded, DOCUMENTS)[0]


def test_given_translations_have_one_score_in_any_company(loaded: Translator) -> None:
    model = loaded.models.translation
    sources = [text for document in DOCUMENTS for text in document if text]
    targets = [nbest.hypotheses[0].text for nbest in model.nbest(sources, 1)]
    alone = [model.log_probs([one], [other])[0] for one, other in zip(sources, targets, strict=True)]
    assert model.log_probs(sources, targets) == alone
