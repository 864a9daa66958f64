"""The benchmark measures what translates: its naive scores are the trie's, its reranking the naive argmax."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from cadec_cli.bundle.build import BundleRequest, build_bundle
from cadec_cli.decoding.translator import choose
from cadec_cli.engines.protocols import ModelSet, trie_for
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.benchmark import (
    CONTEXT,
    LENGTH,
    NBEST,
    FixedLength,
    Networks,
    WordText,
    made_up_list,
    measure,
    naive_scores,
    scoring,
)
from cadec_cli.main import exit_code
from cadec_cli.method.context import Context
from cadec_cli.method.options import ScoringOptions, TranslationOptions
from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.bundle_parts import tiny_lm, tiny_nmt, write_parts

SOURCE, TARGET = 50, 60


@pytest.fixture(scope="module")
def networks() -> Networks:
    return Networks.of(tiny_nmt(SOURCE, TARGET), tiny_lm(TARGET))


def sentence(random: np.random.Generator, length: int) -> tuple[int, ...]:
    return tuple(random.integers(4, TARGET, length).tolist())


@pytest.mark.parametrize("sentences", range(CONTEXT + 1))
def test_naive_scores_are_those_of_the_trie(networks: Networks, sentences: int) -> None:
    random = np.random.default_rng(sentences)
    # As many tokens as the benchmark's own: with the hypotheses they fill the 48 positions to the last.
    context = Context(tuple(sentence(random, LENGTH) for _ in range(sentences)))
    lengths = (0, 1, 4, LENGTH)
    for hypotheses in (made_up_list(random, TARGET), [sentence(random, length) for length in lengths]):
        model = TorchLanguageModel(networks.lm, networks.target)
        (scored,) = model.score([trie_for(model, hypotheses)], [context], ScoringOptions())
        naive = np.array(naive_scores(networks.lm, context, hypotheses))
        np.testing.assert_allclose(scored.totals[0], naive, atol=1e-4)


def test_made_up_lists_share_prefixes_as_those_of_a_beam() -> None:
    model = TorchLanguageModel(tiny_lm(TARGET), WordText(TARGET))
    for seed in range(5):
        hypotheses = made_up_list(np.random.default_rng(seed), TARGET)
        assert [len(ids) for ids in hypotheses] == [LENGTH] * NBEST
        assert len(trie_for(model, hypotheses)) < NBEST * LENGTH / 2


def test_lists_have_the_length_they_should(networks: Networks, tmp_path: Path) -> None:
    engine = FixedLength(networks, tmp_path / "model")
    random = np.random.default_rng(1)
    texts = [networks.source.decode(random.integers(4, SOURCE, LENGTH).tolist()) for _ in range(3)]
    for text, nbest in zip(texts, engine.nbest(texts, 5), strict=True):
        assert (nbest.source, nbest.vocabulary) == (text, networks.target.identity)
        assert len({hypothesis.ids for hypothesis in nbest.hypotheses}) == 5
        for hypothesis in nbest.hypotheses:
            assert len(hypothesis.ids) == LENGTH
            assert networks.target.decode(hypothesis.ids) == hypothesis.text
        scores = [hypothesis.log_prob for hypothesis in nbest.hypotheses]
        assert scores == sorted(scores, reverse=True)


def test_what_is_reranked_is_the_naive_choice(networks: Networks, tmp_path: Path) -> None:
    engine = FixedLength(networks, tmp_path / "model")
    random = np.random.default_rng(2)
    texts = [networks.source.decode(random.integers(4, SOURCE, LENGTH).tolist()) for _ in range(5)]
    lists = engine.nbest(texts, NBEST)
    models = ModelSet(language=TorchLanguageModel(networks.lm, networks.target))
    translations = list(choose([lists], models, TranslationOptions(context=CONTEXT, nbest=NBEST)))
    assert len(translations) == len(lists)
    before = Context()
    chosen = []
    for nbest, translation in zip(lists, translations, strict=True):
        ids = [hypothesis.ids for hypothesis in nbest.hypotheses]
        pmi = np.subtract(
            naive_scores(networks.lm, before.last(CONTEXT), ids), naive_scores(networks.lm, Context(), ids)
        )
        best = int(np.argmax(pmi + [hypothesis.log_prob for hypothesis in nbest.hypotheses]))
        assert translation.text == nbest.hypotheses[best].text
        chosen.append(best)
        before = before.followed_by(ids[best])
    assert any(chosen)  # the context has changed something


def test_all_four_ratios_are_measured(networks: Networks) -> None:
    notes: list[str] = []
    figures = measure(networks, documents=2, sentences=2, note=notes.append)
    assert len(figures) == 4 and notes
    for figure in figures:
        assert 0 < figure.ratio < math.inf
        assert figure.reached is not None and 0 < figure.reached.share < math.inf
    assert [figure.paper is not None for figure in figures] == [False, False, True, True]
    assert [figure.what.split(",")[0] for figure in figures[2:]] == ["rerank", "beam"]


def test_a_small_model_reads_as_much_context_as_fits() -> None:
    config = DocumentLMConfig(TARGET, layers=1, width=8, heads=2, inner=8, positions=LENGTH + 15)
    small = Networks.of(tiny_nmt(SOURCE, TARGET), DocumentLM(config).eval())
    assert all(figure.ratio > 0 for figure in scoring(small, rounds=1))


def test_models_of_two_vocabularies_are_refused() -> None:
    with pytest.raises(CadecError, match="vocabulary of its own"):
        Networks.of(tiny_nmt(SOURCE, TARGET), tiny_lm(TARGET + 1))


def test_the_command_measures_a_bundle(
    english: TextPipeline,
    russian: TextPipeline,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    write_parts(tmp_path, english, russian)
    source, target, nmt, lm = (tmp_path / name for name in ("en", "ru", "nmt", "lm"))
    build_bundle(tmp_path / "both", BundleRequest(source=source, target=target, nmt=nmt, lm=lm))
    build_bundle(tmp_path / "alone", BundleRequest(source=source, target=target, nmt=nmt))
    command = ["bench", "--documents", "1", "--sentences", "2", "--threads", "1", "--bundle"]
    assert exit_code([*command, str(tmp_path / "both"), "--json"]) == 0
    figures = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(figures) == 4
    for figure in figures:
        assert list(figure) == ["what", "speed", "ratio", "wanted", "paper", "limit", "between products"]
        assert figure["ratio"] > 0 and figure["limit"]["wanted"] == 0.9
        limit = figure["limit"]
        assert limit["share"] == pytest.approx((limit["lists"] + limit["products"]) / limit["seconds"])
    assert [figure["limit"]["lists"] > 0 for figure in figures] == [False, False, True, False]
    assert ["share with many rows" in figure["limit"] for figure in figures] == [False, False, False, True]
    assert exit_code([*command, str(tmp_path / "both")]) == 0
    shown = capsys.readouterr().out
    assert all(f" {figure['wanted']:g} " in shown for figure in figures)
    assert shown.count("≥") == 8 and "of limit:" in shown and "rerank, 1 document in step" in shown
    assert exit_code([*command, str(tmp_path / "alone")]) == 1
    assert "has no D-LM" in capsys.readouterr().err
