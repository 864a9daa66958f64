"""The whole method on the made-up pair: the sentence level guesses, context knows."""

from pathlib import Path

import ctranslate2
import made_up
import numpy as np
import pytest

from cadec_cli.bundle.loading import Models
from cadec_cli.bundle.opening import Bundle
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.ctranslate2_nmt import NBestGenerator
from cadec_cli.errors import CadecError
from cadec_cli.method.options import TranslationOptions

DOCUMENTS = made_up.documents(40, seed=99)
SOURCES = [[source for source, _ in document] for document in DOCUMENTS]


@pytest.fixture(scope="module")
def bundle(made_up_bundle: Path) -> Bundle:
    return Bundle.open(made_up_bundle)


def translator(bundle: Bundle, **options: object) -> Translator:
    few = {"nbest": 4, "beam": 4, **options}
    return Translator.load(Models(bundle, compute_type="float32"), TranslationOptions(**few))


def translated(bundle: Bundle, documents: list[list[str]], **options: object) -> list[list[str]]:
    texts: list[list[str]] = [[] for _ in documents]
    for item in translator(bundle, **options).translate_documents(documents):
        assert item.sentence == len(texts[item.document])  # in order
        texts[item.document].append(item.text)
    return texts


def accuracy(bundle: Bundle, texts: list[list[str]]) -> float:
    """The share of sentences with `you` that have the form of their document."""
    right = total = 0
    for document, found in zip(DOCUMENTS, texts, strict=True):
        for (source, target), text in zip(document, found, strict=True):
            if "you" in source:
                total += 1
                right += text == bundle.target.canonical(target)
    return right / total


@pytest.mark.slow
@pytest.mark.parametrize("search", ["rerank", "lattice", "beam"])
def test_context_gets_right_what_the_sentence_level_guesses(bundle: Bundle, search: str) -> None:
    assert accuracy(bundle, translated(bundle, SOURCES, search=search)) > 0.95


def test_the_sentence_level_is_at_chance(bundle: Bundle) -> None:
    assert 0.25 < accuracy(bundle, translated(bundle, SOURCES, search="sentence")) < 0.75


def test_documents_together_are_translated_as_alone(bundle: Bundle) -> None:
    some = [*SOURCES[:5], SOURCES[5][:2], []]
    together = translated(bundle, some)
    assert together == [translated(bundle, [document])[0] for document in some]


@pytest.mark.parametrize("search", ["rerank", "lattice", "beam"])
def test_weight_zero_is_the_sentence_level(bundle: Bundle, search: str) -> None:
    # The sentence level of the same width: other beams may find other translations.
    plain = translated(bundle, SOURCES[:8], search="sentence")
    assert translated(bundle, SOURCES[:8], search=search, weight=0.0) == plain


def test_one_path_is_rerank_and_rolling_agrees_on_short_documents(bundle: Bundle) -> None:
    reranked = translated(bundle, SOURCES[:8], context=10)
    assert translated(bundle, SOURCES[:8], search="lattice", paths=1, context=10) == reranked
    assert translated(bundle, SOURCES[:8], rolling=True) == reranked


def test_the_fast_beam_is_near_the_exact_one(bundle: Bundle) -> None:
    texts = translated(bundle, SOURCES, search="beam", context_from="sentence")
    assert accuracy(bundle, texts) > accuracy(bundle, translated(bundle, SOURCES, search="sentence"))


def test_without_context_every_search_is_the_sentence_level(bundle: Bundle) -> None:
    plain = translated(bundle, SOURCES[:6], search="sentence")
    for search in ("rerank", "lattice", "beam"):
        assert translated(bundle, SOURCES[:6], search=search, context=0) == plain


@pytest.mark.parametrize("search", ["rerank", "beam", "sentence"])
def test_what_can_not_be_translated_passes_through(bundle: Bundle, search: str) -> None:
    odd = ["\u200b", "you see the lamp.", "\x07", "do you want the boat?"]
    texts = translated(bundle, [odd], search=search)[0]
    assert texts[0] == "\u200b" and texts[2] == "\x07"
    assert "lampo" in texts[1] and "shipo" in texts[3]


def test_a_sentence_longer_than_the_model_is_split_or_refused(bundle: Bundle) -> None:
    long = " ".join(["you see the old lamp, the lamp is red,"] * 60)
    item = next(iter(translator(bundle).translate([long])))
    assert len(item.parts) > 1 and all(part.hypotheses for part in item.parts)
    assert " ".join(part.source for part in item.parts) == long
    with pytest.raises(CadecError, match="longer than the model"):
        list(translator(bundle, long="refuse").translate([long]))


def generator(bundle: Bundle) -> NBestGenerator:
    return NBestGenerator(
        bundle.ctranslate2_model("float32"),
        bundle.source,
        bundle.target,
        positions=128,
        compute_type="float32",
    )


def test_scores_of_hypotheses_are_exact(bundle: Bundle) -> None:
    texts = [source for document in SOURCES[:6] for source in document]
    engine = ctranslate2.Translator(str(bundle.ctranslate2_model("float32")), compute_type="float32")
    pieces = bundle.source.subwords.pieces
    for nbest in generator(bundle).generate(texts, 6):
        source = [*(pieces[i] for i in bundle.source.encode(nbest.source)), "</s>"]
        targets = [[bundle.target.subwords.pieces[i] for i in h.ids] for h in nbest.hypotheses]
        scored = engine.score_batch([source] * len(targets), targets)
        exact = [sum(result.log_probs) for result in scored]
        np.testing.assert_allclose([h.log_prob for h in nbest.hypotheses], exact, atol=2e-3)
        assert exact == sorted(exact, reverse=True)
        assert len({h.text for h in nbest.hypotheses}) == len(nbest.hypotheses)


def test_repeated_and_empty_sentences_keep_their_places(bundle: Bundle) -> None:
    texts = ["you see it.", "", "the lamp is red.", "you see it.", " "]
    lists = generator(bundle).generate(texts, 3)
    assert [nbest.source for nbest in lists] == texts
    assert lists[0] == lists[3] and lists[1].hypotheses == () and lists[4].hypotheses == ()


@pytest.mark.parametrize(
    "bad",
    [
        {"search": "guess"},
        {"objective": "luck"},
        {"nbest": 0},
        {"context": -1},
        {"temperature": 0.0},
        {"context_from": "stars"},
        {"search": "beam", "objective": "pmi"},
    ],
)
def test_impossible_options_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(CadecError):
        TranslationOptions(**bad)
