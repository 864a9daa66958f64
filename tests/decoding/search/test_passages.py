"""DocTransformer, 2-to-2 and DocRepair: the same alone, in step and taken up again; scores agree."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import LoadedModels, load_models
from cadec_cli.decoding.search.beam import BeamSearch
from cadec_cli.decoding.search.passages import doc_nmt
from cadec_cli.decoding.state import State
from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.context_free_terms import build_terms
from cadec_cli.engines.document_models import RepairModel, TwoToTwoModel
from cadec_cli.engines.protocols import ModelSet, Passage
from cadec_cli.engines.torch_nmt import TorchDocumentModel, TorchTranslationModel
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.contrastive.scoring import ContrastiveModels, ContrastiveScorer, Wording
from cadec_cli.evaluation.contrastive.sets import ContrastiveSet, Group
from cadec_cli.method.context import Context
from cadec_cli.method.objectives import DOCUMENT_OBJECTIVES, OBJECTIVES, objective
from cadec_cli.method.options import TranslationOptions
from cadec_cli.models.doctransformer import ContextAttention, DocTransformer, DocTransformerConfig
from cadec_cli.session.session import Session
from cadec_cli.text.pipeline import join_passage, split_passage
from tests.helpers import made_up_pair

SEARCHES = tuple(DOCUMENT_OBJECTIVES)
DOCUMENTS = [[source for source, _ in document] for document in made_up_pair.documents(3, seed=11, length=6)]


@pytest.fixture(scope="module")
def models(document_bundle: Path) -> LoadedModels:
    return load_models(Bundle.open(document_bundle), compute_type="float32", threads=1)


def translated(models: LoadedModels, search: str, documents: Sequence[Sequence[str]]) -> list[Translation]:
    return list(Translator(models, TranslationOptions(search=search)).translate_documents(documents))


@pytest.mark.parametrize("search", SEARCHES)
def test_documents_in_step_are_translated_as_if_alone(models: LoadedModels, search: str) -> None:
    together = translated(models, search, DOCUMENTS)
    assert len(together) == sum(map(len, DOCUMENTS))
    for number, document in enumerate(DOCUMENTS):
        own = [one for one in together if one.document == number]
        alone = translated(models, search, [document])
        assert [one.sentence for one in own] == list(range(len(document)))
        assert [one.text for one in own] == [one.text for one in alone]
        for one, other in zip(own, alone, strict=True):
            scores = [h.log_prob for h in one.parts[0].hypotheses]
            assert scores == pytest.approx([h.log_prob for h in other.parts[0].hypotheses], abs=1e-3)


@pytest.mark.parametrize("search", SEARCHES)
def test_a_translation_goes_on_from_any_checkpoint(
    models: LoadedModels, search: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cadec_cli.decoding.translator.WAVE", 6)
    monkeypatch.setattr("cadec_cli.decoding.units.BATCH", 9)
    states: list[tuple[int, object]] = []
    done: list[Translation] = []
    translator = Translator(models, TranslationOptions(search=search))
    for one in translator.translate_documents(
        DOCUMENTS, checkpoint=lambda state: states.append((len(done), state.to_json()))
    ):
        done.append(one)
    assert len(states) > 2
    for before, stored in states:
        rest = list(translator.translate_documents(DOCUMENTS, start=State.from_json(stored)))  # type: ignore[arg-type]
        assert [(one.document, one.sentence, one.text) for one in rest] == [
            (one.document, one.sentence, one.text) for one in done[before:]
        ]


@pytest.mark.parametrize("search", SEARCHES)
def test_a_session_reads_what_was_said_before(models: LoadedModels, search: str) -> None:
    """Sentence by sentence, a model that reads what stands before says what it says of the whole document."""
    session = Session(models, TranslationOptions(search=search))
    entered = [next(iter(session.translate([sentence]))).text for sentence in DOCUMENTS[0]]
    whole = [one.text for one in translated(models, search, DOCUMENTS[:1])]
    if search == "repair":  # which also reads what comes after, in its group
        assert len(entered) == len(whole)
    else:
        assert entered == whole


def test_two_sentences_with_an_empty_first_part_are_what_the_model_says_of_one(models: LoadedModels) -> None:
    model = models.document("2-to-2")
    assert isinstance(model, TwoToTwoModel)
    sentence = DOCUMENTS[0][1]
    alone = model.model.nbest([sentence], 4)[0]
    found = translated(models, "2-to-2", [["", sentence]])[1]
    assert found.text == split_passage(alone.hypotheses[0].text)[-1]
    assert found.parts[0].hypotheses[0].log_prob == pytest.approx(alone.hypotheses[0].log_prob, abs=1e-4)
    assert translated(models, "2-to-2", [[sentence]])[0].text == found.text
    # With a sentence before, that is read too.
    after = model.nbest([model.passage(DOCUMENTS[0], 1)], 4)[0]
    assert after.hypotheses[0].log_prob != pytest.approx(alone.hypotheses[0].log_prob, abs=1e-4)


def test_scoring_a_translation_gives_what_translating_gave_it(models: LoadedModels) -> None:
    document = DOCUMENTS[0]
    transformer = models.document("doc-nmt")
    assert isinstance(transformer, TorchDocumentModel)
    for one in translated(models, "doc-nmt", [document]):
        passage = transformer.passage(document, one.sentence)
        # A text may be cut into other pieces than those it was written in: that is another translation.
        hypotheses = [h for h in one.parts[0].hypotheses if tuple(transformer.text.encode(h.text)) == h.ids]
        assert hypotheses
        scored = transformer.log_probs([passage] * len(hypotheses), [(h.text,) for h in hypotheses])
        assert scored == pytest.approx([h.log_prob for h in hypotheses], abs=1e-3)
    for name in ("2-to-2", "repair"):
        model = models.document(name)
        assert isinstance(model, TwoToTwoModel | RepairModel)
        passage = model.passage(document, 1)
        drafts = passage.sentences
        if isinstance(model, RepairModel):
            drafts = tuple(one.text for one in model.draft(passage.sentences))
        found = model.model.nbest([join_passage(drafts)], 4)[0].hypotheses
        scored = model.model.log_probs([join_passage(drafts)] * len(found), [one.text for one in found])
        assert scored == pytest.approx([one.log_prob for one in found], abs=1e-3)
        whole = [one for one in found if len(split_passage(one.text)) == len(drafts)]
        assert whole or name == "repair"  # which has hardly begun to learn where sentences end
        scored = model.log_probs([passage] * len(whole), [split_passage(one.text) for one in whole])
        assert scored == pytest.approx([one.log_prob for one in whole], abs=1e-3)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_contrastive_test_scores_a_list_as_reranking_did(models: LoadedModels, name: str) -> None:
    options = TranslationOptions(objective=name, nbest=4, temperature=2.0)
    translator = Translator(models, options)
    done = list(translator.translate_documents(DOCUMENTS[:1]))
    groups, scores = [], []
    for one in done:
        part = one.parts[0]
        assert part.choice is not None
        texts = tuple(h.text for h in part.hypotheses)
        if len(set(texts)) < 2:
            continue
        before = tuple(earlier.text for earlier in done[: one.sentence])
        groups.append(Group(one.source, (), before, texts, 0))
        scores.append(part.choice.scores)
    assert groups
    contrastive = ContrastiveModels(
        models.translation,
        models.language,
        options.scoring_options,
        options.policy,
        Wording("en", "eo"),
        build_terms(models, objective(name)),
    )
    found = contrastive.terms(ContrastiveSet(Path("set"), "jsonl", tuple(groups)))
    for terms, wanted in zip(found, scores, strict=True):
        assert ContrastiveScorer(objective(name)).scores(terms).tolist() == pytest.approx(
            list(wanted), abs=2e-3
        )


def test_a_closed_gate_translates_as_the_sentence_model_token_for_token(models: LoadedModels) -> None:
    sentence = models.stepwise_translation
    assert isinstance(sentence, TorchTranslationModel)
    sizes = {name: getattr(sentence.network.config, name) for name in sentence.network.config.__dict__}
    network = DocTransformer(DocTransformerConfig(**sizes))
    network.load_state_dict(sentence.network.state_dict(), strict=False)
    with torch.no_grad():
        for part in network.modules():
            if isinstance(part, ContextAttention):
                part.gate.weight.zero_()
                part.gate.bias.fill_(1e4)
    model = TorchDocumentModel(network.eval(), models.bundle.source, models.bundle.target)
    passages = [model.passage(DOCUMENTS[0], place) for place in range(len(DOCUMENTS[0]))]
    assert any(passage.place for passage in passages)
    search = doc_nmt(ModelSet(documents={"doc-nmt": model}), TranslationOptions(search="doc-nmt"), ())
    found = search.translate(passages)
    plain = BeamSearch(sentence, None, objective("sentence"))
    sources = [sentence.encode(text) for text in DOCUMENTS[0]]
    wanted = plain.search(sources, [Context()] * len(sources))
    assert [[h.ids for h in nbest.hypotheses] for nbest in found] == [[h.ids for h in one] for one in wanted]
    for nbest, one in zip(found, wanted, strict=True):
        assert [h.log_prob for h in nbest.hypotheses] == pytest.approx([h.score for h in one], abs=1e-3)


def test_a_model_that_is_not_there_is_named_with_what_to_do(made_up_bundle: Path) -> None:
    plain = load_models(Bundle.open(made_up_bundle), compute_type="float32", threads=1)
    for search in SEARCHES:
        with pytest.raises(CadecError, match=f"no {search} model") as error:
            Translator(plain, TranslationOptions(search=search))
        assert f"--{search}" in error.value.hint


def test_a_sentence_too_long_for_the_passage_is_read_alone(models: LoadedModels) -> None:
    model = models.document("2-to-2")
    assert isinstance(model, TwoToTwoModel)
    long = " ".join(["you see the lamp"] * 24)
    assert model.model.fits(long)
    assert model.passage([long, long], 1) == Passage((long,), 0)
    assert replace(model.passage(["a", long], 1)).sentences[-1] == long
