"""Several weights found together: never worse than the start, and every try is measured once."""

from collections import Counter
from pathlib import Path

import pytest

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import LoadedModels, load_models
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.tuning.search import (
    PreparedLists,
    Setting,
    choose,
    coordinate_search,
    prepare_lists,
    reranking_translator,
)
from cadec_cli.method.objectives import objective
from cadec_cli.method.options import TranslationOptions
from tests.helpers import made_up_pair

BAYES = dict(objective("bayes").weights)
OPTIONS = TranslationOptions(nbest=4)
DOCUMENTS = made_up_pair.documents(6, seed=21, length=5)


@pytest.fixture(scope="module")
def models(document_bundle: Path) -> LoadedModels:
    return load_models(Bundle.open(document_bundle), compute_type="float32", threads=1)


@pytest.fixture(scope="module")
def development(models: LoadedModels) -> PreparedLists:
    sources, references = ([[pair[side] for pair in document] for document in DOCUMENTS] for side in (0, 1))
    start = [Setting(1.0, named=tuple(BAYES.items()))]
    return prepare_lists(reranking_translator(models, OPTIONS, "bayes"), sources, references, start)


def test_bleu_never_falls_and_nothing_is_tried_twice(development: PreparedLists) -> None:
    level, tried = coordinate_search(development, BAYES)
    assert tried[0].setting.weights == BAYES
    best = choose("best", level, tried)
    assert best.bleu >= tried[0].bleu
    counts = Counter(point.setting for point in tried)
    assert set(counts.values()) == {1}
    assert len(tried) > 3 * 5
    for name in BAYES:
        assert len({point.setting.weights[name] for point in tried}) > 3
    # What was found alone is what it is among others.
    again = development.points([best.setting])[1][0]
    assert (again.bleu, again.changed) == (best.bleu, best.changed)


def test_one_round_changes_one_weight_at_a_time(development: PreparedLists) -> None:
    _, tried = coordinate_search(development, BAYES, rounds=1)
    for point in tried[1:8]:
        changed = [name for name in BAYES if point.setting.weights[name] != BAYES[name]]
        assert changed == ["nmt"]


def test_a_backward_model_is_needed(made_up_bundle: Path) -> None:
    plain = load_models(Bundle.open(made_up_bundle), compute_type="float32", threads=1)
    with pytest.raises(CadecError, match="needs a backward model"):
        reranking_translator(plain, OPTIONS, "bayes")
