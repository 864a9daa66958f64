"""Groups scored together, as tries, equal their candidates scored alone; the terms make the scores."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import load_models
from cadec_cli.decoding import scorer as scorer_module
from cadec_cli.engines.protocols import LanguageModel
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.contrastive import scoring as contrastive_scoring
from cadec_cli.evaluation.contrastive.scoring import (
    ContrastiveModels,
    contrastive_models,
    evaluate,
    scorers,
    usable_objectives,
)
from cadec_cli.evaluation.contrastive.sets import ContrastiveSet, Group
from cadec_cli.method.context import Context
from cadec_cli.method.objectives import BACK, CONDITIONAL, FREE, NMT, OBJECTIVES, Objective, objective
from cadec_cli.method.options import ScoringOptions
from cadec_cli.method.trie import ScoredTrie, Trie
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.token_text import TokenText
from tests.conftest import RUSSIAN, sentences, trained_pipeline
from tests.helpers.bundle_parts import tiny_lm
from tests.helpers.contrastive_parts import write_bundles

TEMPERATURES = (1.0, 2.5)
# But those that need a backward model, which these bundles have not.
NAMES = tuple(name for name in OBJECTIVES if not objective(name).uses(BACK))
EVERY = [objective(name) for name in NAMES]
GROUPS = (
    Group("Tom took it.", (), ("Том взял его.",), ("Том видит его.", "Том видит хлеб."), 0, 1, "1"),
    # the same candidates once more, in another order and after another context
    Group("Tom took it.", (), ("Никто не знает.",), ("Том видит хлеб.", "Том видит его."), 0, 2, "2"),
    Group("The boy took it.", (), (), ("Мальчик взял его!", "Мальчик взял письмо!", "Доктор!"), 2, 1, "3"),
    Group("No?", (), ("Хлеб?", "Том?", "Капитан?"), ("Дверь?", "Ключи?", "Дверь?", "Деньги?"), 2, 3, "4"),
)


def of(*groups: Group, tokenised: bool = False) -> ContrastiveSet:
    return ContrastiveSet(Path("some.json"), "jsonl", groups, tokenised)


@pytest.fixture(scope="module")
def bundles(english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("contrastive")
    write_bundles(root, english, russian)
    return root


@pytest.fixture(scope="module")
def bundle(bundles: Path) -> Bundle:
    return Bundle.open(bundles / "whole")


def models(bundle: Bundle, context: int = 3, names: tuple[str, ...] = NAMES) -> ContrastiveModels:
    loaded = load_models(bundle, compute_type="float32", threads=1)
    return contrastive_models(loaded, names, None, ScoringOptions(TEMPERATURES), context)[1]


@torch.inference_mode()
def alone(lm: DocumentLM, text: TextPipeline, context: tuple[str, ...], candidate: str, t: float) -> float:
    """log p(ỹ|c̃) by a pass over the whole sequence."""
    ids = [*text.encode(candidate), 3]
    before = [3]
    for sentence in context:
        before += [*text.encode(sentence), 3]
    tokens = torch.tensor([before + ids])
    log_probs = (lm(tokens[:, :-1])[0].double() / t).log_softmax(-1)[-len(ids) :]
    return float(log_probs[torch.arange(len(ids)), torch.tensor(ids)].sum())


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_groups_together_are_scored_as_candidates_alone(
    bundle: Bundle, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contrastive_scoring, "CHUNK", chunk)
    monkeypatch.setattr(scorer_module, "MERGED_NODES", 16)  # several pools of context-free candidates
    lm, text = bundle.lm_network(), bundle.target
    translation = models(bundle).translation
    assert translation is not None
    for group, terms in zip(GROUPS, models(bundle).terms(of(*GROUPS)), strict=True):
        assert {values.shape[-1] for values in terms.values()} == {len(group.candidates)}
        for context, found in ((group.context, terms[CONDITIONAL]), ((), terms[FREE])):
            expected = [[alone(lm, text, context, one, t) for one in group.candidates] for t in TEMPERATURES]
            np.testing.assert_allclose(found, np.array(expected), atol=1e-4)
        for candidate, log_prob in zip(group.candidates, terms[NMT], strict=True):
            (exact,) = translation.log_probs([group.source], [candidate])
            assert log_prob == pytest.approx(exact, abs=1e-4)


@dataclasses.dataclass(frozen=True)
class Watched:
    """A language model, and the tries that it was asked to score without context."""

    model: LanguageModel
    alone: list[Trie] = dataclasses.field(default_factory=list)

    @property
    def text(self) -> TokenText:
        return self.model.text

    @property
    def positions(self) -> int:
        return self.model.positions

    def score(
        self,
        tries: Sequence[Trie],
        contexts: Sequence[Context],
        scoring_options: ScoringOptions,
        *,
        remember: bool = False,
    ) -> list[ScoredTrie]:
        pairs = zip(tries, contexts, strict=True)
        self.alone.extend(trie for trie, context in pairs if not context.sentences)
        return self.model.score(tries, contexts, scoring_options, remember=remember)


def test_sentences_without_context_are_scored_once_and_in_rows(bundle: Bundle) -> None:
    ready = models(bundle)
    assert ready.language is not None
    watched = Watched(ready.language)
    list(dataclasses.replace(ready, language=watched).terms(of(*GROUPS)))
    (trie,) = watched.alone  # all groups are one
    assert len(trie.paths) == len({text for group in GROUPS for text in group.candidates})


def test_tokens_of_published_sets_are_joined_first(bundle: Bundle) -> None:
    plain = Group("I can't.", (), ("Кто, Том?",), ("Том - (доктор).", "Том, доктор!"), 0, None, "1")
    tokens = Group("I can 't .", (), ("Кто , Том ?",), ("Том - ( доктор ) .", "Том , доктор !"), 0, None, "1")
    (expected,) = models(bundle).terms(of(plain))
    (found,) = models(bundle).terms(of(tokens, tokenised=True))
    (taken_literally,) = models(bundle).terms(of(tokens))
    np.testing.assert_array_equal(found[CONDITIONAL], expected[CONDITIONAL])
    np.testing.assert_array_equal(found[NMT], expected[NMT])
    assert not np.allclose(taken_literally[FREE], expected[FREE], atol=0.1)


@pytest.mark.parametrize(("context", "groups"), [(0, GROUPS), (3, GROUPS[2:3])])
def test_an_empty_context_makes_pmi_zero_and_everything_a_tie(
    bundle: Bundle, context: int, groups: tuple[Group, ...]
) -> None:
    asked = scorers([objective(name) for name in ("pmi", "c-score", "sentence")], [1.0, 2.5])
    terms = list(models(bundle, context).terms(of(*groups)))
    for of_group in terms:
        assert np.array_equal(of_group[CONDITIONAL], of_group[FREE])
        assert not asked[0].scores(of_group).any()
    results = evaluate(of(*groups), terms, asked).scorers
    assert [(r.accuracy.right, r.accuracy.ties) for r in results[:2]] == [(0, len(groups))] * 2
    # c-score falls back to the sentence level, at every temperature
    assert all(result.accuracy == results[-1].accuracy for result in results[2:])


def test_only_the_last_sentences_count(bundle: Bundle) -> None:
    long = GROUPS[3]
    other = dataclasses.replace(long, context=("Дверь!", "Том?", "Капитан?"))
    for count, same in ((2, True), (3, False)):
        first, second = (next(models(bundle, count).terms(of(one))) for one in (long, other))
        assert np.allclose(first[CONDITIONAL], second[CONDITIONAL], atol=1e-5) == same
    with pytest.raises(CadecError, match="negative"):
        models(bundle, -1)


def test_contexts_that_do_not_fit_lose_their_oldest_sentences(bundle: Bundle) -> None:
    sentence = "Капитан не знает письмо."
    long = dataclasses.replace(GROUPS[0], context=(sentence,) * 9)
    length = len(bundle.target.encode(sentence)) + 1
    room = bundle.lm_positions - 1 - max(len(bundle.target.encode(text)) for text in long.candidates)
    fitting = dataclasses.replace(long, context=(sentence,) * (room // length))
    assert 0 < len(fitting.context) < 9
    first, second = (next(models(bundle, 9).terms(of(one))) for one in (long, fitting))
    np.testing.assert_allclose(first[CONDITIONAL], second[CONDITIONAL], atol=1e-5)


def test_different_strings_of_the_same_ids_tie_exactly(bundle: Bundle) -> None:
    group = Group("Tom took it.", (), ("Том взял его.",), ("Том  видит его.", "Том видит его."), 0, None, "1")
    company = [GROUPS[0], group, GROUPS[3]]
    found = list(models(bundle).terms(of(*company)))[1:2]
    for result in evaluate(of(group), found, scorers(EVERY, TEMPERATURES)).scorers:
        assert (result.accuracy.right, result.accuracy.ties) == (0, 1), result.scorer


@pytest.mark.parametrize(
    ("what", "names", "change"),
    [
        ("a candidate", ("pmi",), {"candidates": ("Том.", "хлеб " * 60)}),
        ("a candidate", ("sentence",), {"candidates": ("Том.", "хлеб " * 60)}),
        ("the source", ("sentence",), {"source": "bread " * 60}),
    ],
)
def test_what_is_too_long_is_named(
    bundle: Bundle, what: str, names: tuple[str, ...], change: dict[str, Any]
) -> None:
    groups = (GROUPS[0], dataclasses.replace(GROUPS[1], **change))
    with pytest.raises(CadecError, match=f"some.json: group 2: {what} is longer"):
        list(models(bundle, names=names).terms(of(*groups)))


def test_the_tokens_of_a_candidate_make_up_its_score(bundle: Bundle) -> None:
    ready = models(bundle)
    terms = list(ready.terms(of(*GROUPS)))
    for group, own in zip(GROUPS, terms, strict=True):
        for temperature in (0, 1):
            names = {f"candidate {index}": index for index in range(len(group.candidates))}
            explained = ready.explain(of(*GROUPS), group, names, temperature)
            assert explained is not None
            assert [row.name for row in explained.rows] == list(names)
            for index, row in enumerate(explained.rows):
                ids = bundle.target.encode(group.candidates[index])
                *pieces, boundary = (token.text for token in row.tokens)
                assert bundle.target.subwords.decode(ids) == "".join(pieces).strip()
                assert (len(row.tokens), boundary) == (len(ids) + 1, "</s>")
                after = sum(token.conditional for token in row.tokens)
                without = sum(token.free for token in row.tokens)
                assert after == pytest.approx(own[CONDITIONAL][temperature, index], abs=1e-4)
                assert without == pytest.approx(own[FREE][temperature, index], abs=1e-4)
                assert row.pmi == pytest.approx(after - without)
                assert row.log_prob is None


def test_a_language_model_of_another_vocabulary_reads_its_own_ids() -> None:
    other = trained_pipeline("ru", sentences(RUSSIAN, 200), vocabulary_size=340)
    lm = tiny_lm(len(other))
    (terms,) = ContrastiveModels(None, TorchLanguageModel(lm, other)).terms(of(GROUPS[0]))
    expected = [alone(lm, other, GROUPS[0].context, one, 1.0) for one in GROUPS[0].candidates]
    np.testing.assert_allclose(terms[CONDITIONAL][0], np.array(expected), atol=1e-4)
    assert NMT not in terms


def test_scorers_are_objectives_at_temperatures() -> None:
    chosen = [objective("sentence"), objective("c-score", {"lm": 2.0}), objective("shallow-fusion")]
    asked = scorers(chosen, [1, 4])
    named = [(scorer.objective.name, scorer.temperature) for scorer in asked]
    assert named == [
        ("sentence", None),
        ("c-score", 1),
        ("c-score", 4),
        ("shallow-fusion", 1),
        ("shallow-fusion", 4),
    ]
    terms = {
        NMT: np.array([-3.0, -2.0]),
        CONDITIONAL: np.array([[-1.0, -4.0], [-1.5, -2.0]]),
        FREE: np.array([[-2.0, -2.0], [-2.0, -2.5]]),
    }
    expected = [[-3, -2], [-3 + 2 * 1, -2 - 2 * 2], [-3 + 2 * 0.5, -2 + 2 * 0.5], [-3.2, -2.2], [-3.2, -2.25]]
    np.testing.assert_allclose(np.array([scorer.scores(terms) for scorer in asked]), np.array(expected))


@pytest.mark.parametrize(
    ("name", "able", "unable"),
    [
        ("whole", list(NAMES), ["bayes"]),
        ("lm", ["pmi", "conditional"], ["sentence", "c-score", "shallow-fusion"]),
        ("nmt", ["sentence"], ["pmi", "conditional", "c-score", "shallow-fusion"]),
    ],
)
def test_a_bundle_does_what_its_models_can(
    bundles: Path, name: str, able: list[str], unable: list[str]
) -> None:
    opened = Bundle.open(bundles / name)

    def usable(asked: Sequence[str]) -> list[Objective]:
        return usable_objectives(asked, has_translation=opened.has_translation, has_lm=opened.has_lm)

    for asked in ([], ["all"], [able[0], "all"]):
        assert [chosen.name for chosen in usable(asked)] == able
    assert [chosen.name for chosen in usable([able[-1], able[-1]])] == able[-1:]
    for beyond in unable:
        with pytest.raises(CadecError, match=f"{beyond} needs"):
            usable([beyond])
    with pytest.raises(CadecError, match="no objective"):
        usable(["luck"])
    loaded = load_models(opened, compute_type="float32", threads=1)
    objectives, ready = contrastive_models(loaded, [], None, ScoringOptions(), None)
    assert [chosen.name for chosen in objectives] == able
    terms = next(ready.terms(of(*GROUPS)))
    assert (NMT in terms, FREE in terms) == (name != "lm", name != "nmt")


def test_weights_and_names_are_checked_whatever_stands_beside_them() -> None:
    every = usable_objectives(["all"], {"lm": 2.0}, has_translation=True, has_lm=True)
    weighted = {chosen.name: dict(chosen.weights) for chosen in every}
    assert weighted == {
        name: {"lm": 2.0} if known.weights else {} for name, known in OBJECTIVES.items() if name in NAMES
    }
    for names, weights, message in (
        (["all", "typo"], None, "no objective 'typo'"),
        (["pmi"], {"lm": 2.0}, "pmi has no weight lm"),
        (["all"], {"foo": 1.0}, "no objective has a weight foo"),
        (["c-score"], {"lm": float("nan")}, "weight must be from 0 to 1000"),
        (["c-score"], {"lm": -5.0}, "weight must be from 0 to 1000"),
    ):
        with pytest.raises(CadecError, match=message):
            usable_objectives(names, weights, has_translation=True, has_lm=True)
