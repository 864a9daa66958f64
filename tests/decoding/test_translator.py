"""The whole method on the made-up pair: the sentence level guesses, context knows."""

import itertools
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import load_models
from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import Translator, choose
from cadec_cli.engines.ctranslate2 import CTranslate2Model
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import Ids
from cadec_cli.method.options import TranslationOptions
from tests.helpers import made_up_pair

NEAR = 0.75  # the share of sentences, at least, that the fast beam translates as the exact one does
DOCUMENTS = made_up_pair.documents(40, seed=99)
SOURCES = [[source for source, _ in document] for document in DOCUMENTS]


@pytest.fixture(scope="module")
def bundle(made_up_bundle: Path) -> Bundle:
    return Bundle.open(made_up_bundle)


def translator(bundle: Bundle, **options: Any) -> Translator:
    few = {"nbest": 4, "beam": 4, **options}
    return Translator(load_models(bundle, compute_type="float32"), TranslationOptions(**few))


def translations(bundle: Bundle, documents: list[list[str]], **options: Any) -> list[list[Translation]]:
    made: list[list[Translation]] = [[] for _ in documents]
    for item in translator(bundle, **options).translate_documents(documents):
        assert item.sentence == len(made[item.document])  # in order
        made[item.document].append(item)
    return made


def translated(bundle: Bundle, documents: list[list[str]], **options: Any) -> list[list[str]]:
    return [[item.text for item in document] for document in translations(bundle, documents, **options)]


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
    plain = translated(bundle, SOURCES, search="sentence")
    exact = translations(bundle, SOURCES, search="beam")
    fast = translations(bundle, SOURCES, search="beam", context_from="sentence")
    texts, wanted = ([[item.text for item in document] for document in made] for made in (fast, exact))
    assert accuracy(bundle, texts) > accuracy(bundle, plain)
    assert share_of_equals(texts, wanted) > max(NEAR, share_of_equals(plain, wanted))
    same = 0
    for one, other in zip(itertools.chain(*fast), itertools.chain(*exact), strict=True):
        if context_of(bundle, one) == context_of(bundle, other):  # then they are one search
            assert one.text == other.text
            same += 1
    assert same > len(SOURCES)  # not only at the starts of documents
    for document, alone in zip(fast, plain, strict=True):
        read = [context_of(bundle, item) for item in document]
        assert read == [tuple(alone[max(number - 3, 0) : number]) for number in range(len(alone))]


def share_of_equals(documents: list[list[str]], others: list[list[str]]) -> float:
    pairs = [
        one == other
        for document, same in zip(documents, others, strict=True)
        for one, other in zip(document, same, strict=True)
    ]
    return sum(pairs) / len(pairs)


def context_of(bundle: Bundle, item: Translation) -> tuple[str, ...]:
    """What a sentence of one part says it was chosen after, as text."""
    (part,) = item.parts
    assert part.choice is not None
    return tuple(bundle.lm_text.decode(ids) for ids in part.choice.context)


READINGS: list[tuple[dict[str, Any], int | None]] = [
    ({"search": "rerank"}, 3),
    ({"search": "rerank", "context": 1}, 1),
    ({"search": "rerank", "rolling": True}, None),
    ({"search": "lattice", "paths": 3}, 3),
    ({"search": "lattice", "paths": 3, "rolling": True}, None),
    ({"search": "beam"}, 3),
    ({"search": "beam", "rolling": True, "context": 2}, 2),  # nothing rolls in the beam
    ({"search": "sentence"}, 0),
]


@pytest.mark.parametrize(("options", "most"), READINGS)
def test_a_choice_names_the_context_that_was_read(
    bundle: Bundle, options: dict[str, Any], most: int | None
) -> None:
    """`most` is how many sentences count, none if all of them do; they all fit the D-LM."""
    for document in translations(bundle, SOURCES[:4], **options):
        texts = [item.text for item in document]
        for number, item in enumerate(document):
            first = 0 if most is None else max(number - most, 0)
            assert context_of(bundle, item) == tuple(texts[first:number])


@pytest.mark.parametrize(
    "options",
    [
        *(options for options, most in READINGS if most != 0),
        {"search": "beam", "context_from": "sentence"},
        {"search": "rerank", "temperature": 3.0, "alpha": 0.1},
    ],
)
def test_after_the_named_context_the_scores_are_those_that_were_found(
    bundle: Bundle, options: dict[str, Any]
) -> None:
    """Every list is scored again by itself, after the context that its choice says it was read in."""
    own = translator(bundle, **options)
    naive = TranslationOptions(
        nbest=4, context=100, temperature=own.options.temperature, alpha=own.options.alpha
    )
    compared = 0
    for item in own.translate_documents(SOURCES[:4]):
        for part in item.parts:
            assert part.choice is not None
            before: tuple[Ids, ...] = part.choice.context
            (again,) = choose([[part.nbest]], own.models, naive, contexts=[Context(before)])
            choice = again.parts[0].choice
            assert choice is not None and choice.context == before
            assert choice.scores == pytest.approx(part.choice.scores, abs=2e-3)
            for name, values in part.choice.terms.items():
                assert choice.terms[name] == pytest.approx(values, abs=2e-3)
            compared += bool(before)
    assert compared > 20


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


def engine_of(bundle: Bundle) -> CTranslate2Model:
    return CTranslate2Model(
        bundle.conversion("float32"),
        bundle.source,
        bundle.target,
        positions=128,
        compute_type="float32",
    )


def test_beginnings_are_completed(bundle: Bundle) -> None:
    engine = engine_of(bundle)
    source = "you see the lamp."
    whole = engine.nbest([source], 3)[0].hypotheses[0].text
    first, *_ = whole.split()
    found = engine.completions(source, ["", first, f"{first} {first}"], 3)
    assert [len(texts) for texts in found] == [3, 3, 3]
    assert whole in found[0] and whole in found[1]
    assert all(text.lower().startswith(first.lower()) for text in found[1])
    assert found[1:2] == engine.completions(source, [first], 3)  # whatever else is asked
    assert engine.completions(source, [" ".join([first] * 500)], 3) == [[]]
    assert engine.completions(source, [], 3) == []


def test_scores_of_hypotheses_are_exact(bundle: Bundle) -> None:
    texts = [source for document in SOURCES[:6] for source in document]
    engine = ctranslate2.Translator(str(bundle.conversion("float32")), compute_type="float32")
    pieces = bundle.source.subwords.pieces
    for nbest in engine_of(bundle).nbest(texts, 6):
        source = [*(pieces[i] for i in bundle.source.encode(nbest.source)), "</s>"]
        targets = [[bundle.target.subwords.pieces[i] for i in h.ids] for h in nbest.hypotheses]
        scored = engine.score_batch([source] * len(targets), targets)
        exact = [sum(result.log_probs) for result in scored]
        np.testing.assert_allclose([h.log_prob for h in nbest.hypotheses], exact, atol=2e-3)
        assert exact == sorted(exact, reverse=True)
        assert len({h.text for h in nbest.hypotheses}) == len(nbest.hypotheses)


def test_repeated_and_empty_sentences_keep_their_places(bundle: Bundle) -> None:
    texts = ["you see it.", "", "the lamp is red.", "you see it.", " "]
    lists = engine_of(bundle).nbest(texts, 3)
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
def test_impossible_options_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(CadecError):
        TranslationOptions(**bad)
