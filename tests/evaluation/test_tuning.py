"""All settings at once choose what each chooses alone; the protocols choose as the paper says."""

import numpy as np
import pytest
from bundle_parts import tiny_lm

from cadec_cli.decoding.search.lattice import LatticeSearch, settled
from cadec_cli.decoding.state import Partial
from cadec_cli.engines.given import GivenModels
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.benchmark import WordText
from cadec_cli.evaluation.tuning.grid import (
    Point,
    Setting,
    choose,
    grid_search,
    measured,
    rerank_with_all,
)
from cadec_cli.method.context import ContextPolicy
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.objectives import objective
from cadec_cli.method.options import Reading

LM = TorchLanguageModel(tiny_lm(30), WordText(30))
SETTINGS = [Setting(1.0, 1.0), Setting(3.0, 1.0), Setting(1.0, 0.4), Setting(8.0, 2.0)]


def lists(seed: int, sentences: int) -> list[NBest]:
    """A document of made-up n-best lists; every fourth sentence has none."""
    random = np.random.default_rng(seed)

    def hypothesis() -> Hypothesis:
        ids = tuple(random.integers(4, 30, random.integers(1, 6)).tolist())
        return Hypothesis(LM.text.decode(ids), float(random.normal(-3, 1)), ids)

    return [
        NBest(
            f"sentence {number}",
            tuple(hypothesis() for _ in range(random.integers(1, 7))) if number % 4 != 3 else (),
            LM.text.identity,
        )
        for number in range(sentences)
    ]


@pytest.mark.parametrize("name", ["c-score", "shallow-fusion", "conditional-shallow-fusion"])
@pytest.mark.parametrize("context", [0, 2])
def test_all_at_once_is_each_alone(name: str, context: int) -> None:
    documents = [lists(seed, length) for seed, length in ((1, 9), (2, 4), (3, 7), (4, 0))]
    together = grid_search(GivenModels(language=LM), name, SETTINGS, context)
    assert together.reading.temperatures == (1.0, 3.0, 8.0)
    columns = [together.columns(document) for document in documents]
    found = rerank_with_all(together, columns, SETTINGS)
    for setting, chosen in zip(SETTINGS, found, strict=True):
        alone = LatticeSearch(
            objective(name, {"lm": setting.weight}),
            LM,
            reading=Reading((setting.temperature,)),
            policy=ContextPolicy(context),
        )
        for document, indices in zip(documents, chosen, strict=True):
            beam = [Partial()]
            for nbest in document:
                (column,) = alone.columns([nbest])
                if column is not None:
                    (beam,) = alone.advance([beam], [column])
            expected = [choice.index for choice in settled(beam, True)]
            filled = [index for index, nbest in zip(indices, document, strict=True) if nbest.hypotheses]
            assert filled == expected
            assert len(indices) == len(document)
    if name == "c-score":  # without context, it has nothing to say
        assert (found[0] != found[3]) == bool(context)


def point(temperature: float, weight: float, bleu: float, chrf: float = 0.0) -> Point:
    return Point(Setting(temperature, weight), bleu, chrf, 0.0)


def test_the_two_protocols() -> None:
    level = point(1, 0, 20.0)
    points = [point(1, 1, 19.0), point(2, 1, 20.0), point(4, 1, 21.0), point(8, 1, 20.5)]
    assert choose("best", level, points).setting.temperature == 4
    assert choose("strongest", level, points).setting.temperature == 2
    weights = [point(1, 0.1, 20.3), point(1, 0.2, 20.1), point(1, 0.4, 19.9)]
    assert choose("best", level, weights).setting.weight == 0.1
    assert choose("strongest", level, weights).setting.weight == 0.2
    assert choose("best", level, [point(1, 1, 20.0, 40), point(2, 1, 20.0, 41)]).setting.temperature == 2
    with pytest.raises(CadecError, match="lower BLEU"):
        choose("strongest", level, [point(1, 1, 19.99)])


def test_figures_of_choices() -> None:
    texts: list[list[list[str]]] = [
        [["a cat sat on a mat", "the cat sat on the mat"], ["yes , it did", "no"]],
        [[]],
    ]
    references = [["the cat sat on the mat", "yes , it did"], [""]]
    settings = [Setting(1.0, 1.0), Setting(2.0, 1.0)]
    level, (right, wrong) = measured(settings, [[[1, 0], [0]], [[1, 1], [0]]], texts, references)
    assert right.bleu == pytest.approx(100) and right.changed == pytest.approx(1 / 3)
    assert level.bleu < right.bleu and wrong.bleu < right.bleu
    assert level.changed == 0 and wrong.changed == pytest.approx(2 / 3)


def test_sentences_of_a_line_are_measured_as_one() -> None:
    texts = [[["a cat sat", "the cat sat"], ["on a mat", "on the mat"], ["yes , it did", "no"]]]
    references = [["the cat sat on the mat", "yes , it did"]]
    _, (right,) = measured([Setting(1.0, 1.0)], [[[1, 1, 0]]], texts, references, [2, 1])
    assert right.bleu == pytest.approx(100) and right.changed == pytest.approx(2 / 3)
