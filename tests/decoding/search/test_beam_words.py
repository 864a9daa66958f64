"""The beam with a D-LM of another vocabulary: as a naive search, and with the scores of reranking."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.decoding.scorer import Scorer, read_context
from cadec_cli.decoding.search.beam import BeamOptions, BeamSearch
from cadec_cli.engines.protocols import GrowingLanguage, LanguageModel, trie_for
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.engines.torch_nmt import TorchTranslationModel
from cadec_cli.engines.transformers_lm import TransformersLanguageModel
from cadec_cli.engines.word_steps import Words, WordSteps
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context, ContextPolicy, Pair
from cadec_cli.method.hypotheses import Ids
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.method.objectives import BOTH, CONDITIONAL, FREE, NMT, OBJECTIVES, PAIRS, objective
from cadec_cli.method.options import ScoringOptions
from cadec_cli.models.huggingface import Network
from cadec_cli.text.subwords import BOS, EOS, SPECIAL_PIECES
from cadec_cli.text.tokenizers.line_text import LineText
from tests.helpers.beam_pairs import models
from tests.helpers.pretrained_lms import tiny_network, tokenizer_json, tokenizer_size
from tests.helpers.token_texts import NumberText

TOLERANCE = 1e-4
WITH_LM = [name for name in OBJECTIVES if objective(name).uses_lm and objective(name).by_token]
WITH_BOTH = [name for name in WITH_LM if objective(name).uses(NMT)]


@dataclass(frozen=True)
class PieceText:
    """Text in pieces, a ▁ where a word begins; a text is cut into the longest pieces, from the left."""

    pieces: tuple[str, ...]
    name: str = "pieces"

    @property
    def identity(self) -> str:
        return f"{self.name} {self.pieces}"

    @property
    def boundary(self) -> int:
        return EOS

    @cached_property
    def vocabulary(self) -> Sequence[str]:
        return [*SPECIAL_PIECES, *self.pieces]

    def encode(self, text: str) -> list[int]:
        rest = "".join(f"▁{word}" for word in text.split())
        ids = []
        while rest:
            piece = max((piece for piece in self.pieces if rest.startswith(piece)), key=len, default="")
            ids.append(self.vocabulary.index(piece) if piece else 1)
            rest = rest[len(piece) or 1 :]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.vocabulary[index] for index in ids if index > EOS).replace("▁", " ").strip()

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary[index].replace("▁", " ") for index in ids]


WRITTEN = PieceText(("▁a", "▁b", "▁ab", "a", "b", "c", ".", "▁c"))
# Of the words "a" and "b" next to each other it makes one token: what is scored depends on what comes after.
READ = PieceText(("▁", "a", "b", "c", ".", "▁a", "▁a▁b", "bb", "ca"), "other")
PAIR = models(len(WRITTEN.vocabulary), lm_vocabulary=len(READ.vocabulary))
SOURCES = [[5, 6, 7], [8], [9, 10, 11], [5]]
CONTEXTS = [Context(), Context(((4, 5),)), Context(((9,), (10, 11, 12))), Context()]


def translation() -> TorchTranslationModel:
    return TorchTranslationModel(PAIR.nmt, NumberText(len(WRITTEN.vocabulary)), WRITTEN)


def language() -> TorchLanguageModel:
    return TorchLanguageModel(PAIR.lm, READ)


def rescored(
    lm: LanguageModel, text: str, context: Context, scoring_options: ScoringOptions
) -> dict[str, float]:
    """The terms that reranking gives a sentence."""
    trie = trie_for(lm, [tuple(lm.text.encode(text))])
    conditional, free = lm.score([trie, trie], [context, Context()], scoring_options)
    return {
        CONDITIONAL: float(conditional.totals[0, 0]),
        FREE: float(free.totals[0, 0]),
    }


# Equal to the beam that goes token by token


@pytest.mark.parametrize("name", WITH_BOTH)
@pytest.mark.parametrize("reading", [ScoringOptions(), ScoringOptions((2.0,), alpha=0.1)])
def test_where_every_token_is_a_word_it_is_the_beam_token_by_token(
    name: str, reading: ScoringOptions
) -> None:
    pair = models(20)
    options = BeamOptions(4)
    sources = [[5, 6, 7], [8], [9, 10, 11, 12, 13], [14, 5, 9]]
    contexts = [Context(), Context(((4, 5),)), Context(((9,), (10, 11, 12))), Context(((6,),))]
    other = TorchLanguageModel(pair.lm, NumberText(20, "the same words"))
    word_by_word = BeamSearch(pair.translation, other, objective(name), reading, options)
    assert not word_by_word.by_token
    expected = pair.search(objective(name), options, reading).search(sources, contexts)
    found = word_by_word.search(sources, contexts)
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.ids for one in ours] == [one.ids for one in theirs]
        for one, other_one in zip(ours, theirs, strict=True):
            assert one.score == pytest.approx(other_one.score, abs=TOLERANCE)
            assert dict(one.terms) == pytest.approx(dict(other_one.terms), abs=TOLERANCE)


# Equal to a naive search


def naive(
    name: str, source: Sequence[int], context: Context, beam: int, limit: int, scoring_options: ScoringOptions
) -> list[tuple[Ids, float]]:
    """Word-synchronous search with lists: a hypothesis counts the D-LM's log p of its finished words."""
    wanted = objective(name)
    lm = language()

    @torch.inference_mode()
    def lm_terms(ids: Ids, complete: bool, ended: bool) -> dict[str, float]:
        if not complete:  # leave out the last word
            starts = [n for n, index in enumerate(ids) if WRITTEN.vocabulary[index].startswith("▁")]
            ids = ids[: starts[-1]] if starts else ()
        tokens = READ.encode(WRITTEN.decode(ids))
        terms = {}
        for term, before in ((CONDITIONAL, context.tokens(EOS)), (FREE, [EOS])):
            labels = [*tokens, EOS] if ended else tokens
            logits = lm.network(torch.tensor([[*before, *tokens]]))[0, len(before) - 1 :]
            p = (logits / scoring_options.temperatures[0]).softmax(-1)
            p = (p + scoring_options.alpha / p.size(-1)) / (1 + scoring_options.alpha)
            terms[term] = sum(math.log(p[i, w]) for i, w in enumerate(labels))
        return terms

    @torch.inference_mode()
    def nmt_log_probs(ids: Ids) -> list[float]:
        logits = PAIR.nmt(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *ids]]))[0, -1]
        found: list[float] = logits.log_softmax(-1).tolist()
        return found

    live: list[tuple[Ids, float]] = [((), 0.0)]
    finished: list[tuple[Ids, float]] = []
    topped = False
    for length in range(limit + 1):
        candidates = []
        for ids, log_prob in live:
            for token, own in enumerate(nmt_log_probs(ids)):
                if length == limit and token != EOS:
                    continue
                # The words before are complete once this one begins, or all of them at the end.
                terms = lm_terms((*ids, token) if token != EOS else ids, token == EOS, token == EOS)
                score = wanted.score({NMT: log_prob + own, **terms})
                candidates.append((float(score), ids, token, log_prob + own))
        candidates.sort(key=lambda one: -one[0])
        best = candidates[: 2 * beam]
        for rank, (score, ids, token, _) in enumerate(best[:beam]):
            if token == EOS:
                finished.append((ids, score))
                topped |= rank == 0
        if topped and len(finished) >= beam:
            break
        live = [((*ids, token), own) for _, ids, token, own in best if token != EOS][:beam]
    return sorted(finished, key=lambda one: -one[1])[:beam]


@pytest.mark.parametrize("name", ["c-score", "conditional-shallow-fusion"])
def test_it_finds_what_a_naive_search_finds(name: str) -> None:
    reading = ScoringOptions((1.5,), alpha=0.05)
    options = BeamOptions(3, LengthLimits(1.0, 3))
    search = BeamSearch(translation(), language(), objective(name), reading, options)
    sources, contexts = SOURCES[:3], CONTEXTS[:3]
    for source, context, found in zip(sources, contexts, search.search(sources, contexts), strict=True):
        expected = naive(name, source, context, 3, len(source) + 3, reading)
        assert [one.ids for one in found] == [ids for ids, _ in expected]
        assert [one.score for one in found] == pytest.approx([score for _, score in expected], abs=1e-3)


# Equal to what reranking says of the same sentence


@pytest.mark.parametrize("name", WITH_BOTH)
def test_a_finished_sentence_has_the_score_of_reranking(name: str) -> None:
    wanted, reading = objective(name), ScoringOptions((2.0,))
    search = BeamSearch(translation(), language(), wanted, reading, BeamOptions(4))
    for context, found in zip(CONTEXTS, search.search(SOURCES, CONTEXTS), strict=True):
        assert found
        for one in found:
            terms = rescored(language(), WRITTEN.decode(one.ids), context, reading)
            for term in wanted.terms:
                if term != NMT:
                    assert one.terms[term] == pytest.approx(terms[term], abs=TOLERANCE)
            assert one.score == pytest.approx(wanted.score({NMT: one.terms[NMT], **terms}), abs=TOLERANCE)


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma3_text"])
@pytest.mark.parametrize("texts", [(), (("Da.", "Net."), ("Oui.",))])
def test_a_pretrained_language_model_scores_as_in_reranking(
    family: str, texts: tuple[tuple[str, ...], ...]
) -> None:
    lm = pretrained(family, texts)
    written = PieceText(("▁Where", "▁is", "▁the", "▁key", "?", "▁Thank", "▁you", "!", "s", "▁it", "▁on"))
    pair = models(len(written.vocabulary), lm_vocabulary=5)
    nmt = TorchTranslationModel(pair.nmt, NumberText(len(written.vocabulary)), written)
    wanted, reading = objective("c-score"), ScoringOptions((1.5,))
    search = BeamSearch(nmt, lm, wanted, reading, BeamOptions(4))
    contexts = [Context(), Context((tuple(lm.text.encode("Where is it?")),))]
    for context, found in zip(contexts, search.search([[5, 6, 7], [5, 6, 7]], contexts), strict=True):
        assert found
        for one in found:
            terms = rescored(lm, written.decode(one.ids), context, reading)
            assert one.terms[CONDITIONAL] == pytest.approx(terms[CONDITIONAL], abs=1e-3)
            assert one.terms[FREE] == pytest.approx(terms[FREE], abs=1e-3)
            if not context.sentences:
                assert one.terms[CONDITIONAL] == one.terms[FREE]  # PMI is 0 exactly


@pytest.mark.parametrize("reads", [PAIRS, BOTH])
@pytest.mark.parametrize("texts", [(), (("Da.", "Net."), ("Oui.",))])
def test_pairs_are_scored_as_in_reranking(reads: str, texts: tuple[tuple[str, ...], ...]) -> None:
    lm = pretrained("llama", texts, tuple(tuple(map(str.upper, text)) for text in texts), 128)
    written = PieceText(("▁Where", "▁is", "▁the", "▁key", "?", "▁Thank", "▁you", "!", "s", "▁it", "▁on"))
    pair = models(len(written.vocabulary), lm_vocabulary=5)
    nmt = TorchTranslationModel(pair.nmt, NumberText(len(written.vocabulary)), written)
    wanted, reading = (
        objective("c-score", {"pairs": 0.5} if reads == BOTH else {}, reads),
        ScoringOptions((1.5,)),
    )
    search = BeamSearch(nmt, lm, wanted, reading, BeamOptions(4))
    before = Context((tuple(lm.text.encode("Where is it?")),), pairs=(Pair("Gde eto?", "Where is it?"),))
    for context in (Context(), before):
        read = {
            name: read_context(lm, name, ContextPolicy(), context, 40, "Eto kljutsch.")
            for name in wanted.readings
        }
        (found,) = search.search([[5, 6, 7]], [read])
        assert found
        for one in found:
            ids = tuple(lm.text.encode(written.decode(one.ids)))
            terms = {NMT: one.terms[NMT]}
            for name in wanted.readings:
                scorer = Scorer(lm, reading, reads=name)
                trie = scorer.trie([ids])
                free = scorer.free([trie], ["Eto kljutsch."])
                (after,) = scorer.after([trie], [read[name]], free)
                terms[scorer.free_term] = free[0][0, 0]
                terms[scorer.conditional_term] = after.totals[0, 0]
            assert one.terms == pytest.approx(terms, abs=1e-3)
            assert one.score == pytest.approx(wanted.score(terms), abs=2e-3)
            if not context.sentences:
                assert one.score == one.terms[NMT]  # PMI is 0 exactly


def pretrained(
    family: str,
    texts: tuple[tuple[str, ...], ...] = (),
    source_texts: tuple[tuple[str, ...], ...] = (),
    positions: int = 64,
) -> TransformersLanguageModel:
    network = Network(tiny_network(family, tokenizer_size("byte-level")).float().eval())
    text = LineText(tokenizer_json("byte-level"), boundary="\n", start="<|endoftext|>")
    return TransformersLanguageModel(
        network, text, positions=positions, no_context=texts, source_texts=source_texts
    )


# An unfinished word is never scored


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(4, len(WRITTEN.vocabulary) - 1), max_size=7))
def test_what_goes_on_with_a_word_adds_nothing_and_sums_are_of_finished_words(tokens: list[int]) -> None:
    words, lm = Words(WRITTEN, READ), language()
    context, terms = CONTEXTS[2], (CONDITIONAL, FREE)
    steps = WordSteps(words, lm.trees([context], terms, ScoringOptions()), terms, 1, torch.device("cpu"))
    total = dict.fromkeys(terms, 0.0)
    for token in tokens:
        added = {term: float(found[0, token]) for term, found in steps.log_probs().items()}
        if not WRITTEN.vocabulary[token].startswith("▁"):
            assert set(added.values()) == {0.0}
        total = {term: total[term] + added[term] for term in terms}
        steps.step(torch.tensor([[token]]), torch.tensor([[0]]))
    at_end = {term: total[term] + float(found[0, EOS]) for term, found in steps.log_probs().items()}
    expected = rescored(lm, WRITTEN.decode(tokens), context, ScoringOptions())
    assert at_end == pytest.approx(expected, abs=TOLERANCE)


def test_where_words_begin() -> None:
    words = Words(WRITTEN, READ)
    begin = [WRITTEN.vocabulary[index] for index in words.begins.nonzero()[:, 0].tolist()]
    assert begin == ["▁a", "▁b", "▁ab", "▁c"] and not words.whole
    numbers = Words(NumberText(9), NumberText(9, "other"))
    assert numbers.whole and numbers.single[1].tolist()[4:] == [4, 5, 6, 7, 8]


def test_what_goes_on_may_be_marked_before(tmp_path: Path) -> None:
    class Marked(PieceText):
        def display_tokens(self, ids: Sequence[int]) -> list[str]:
            tokens = [self.vocabulary[index] for index in ids]
            begins = [True, *(not token.endswith("@@") for token in tokens[:-1])]
            return [(" " if begin else "") + token for begin, token in zip(begins, tokens, strict=True)]

    marked = Marked(("lam@@", "po", "do"))
    words = Words(marked, READ)
    assert words.begins.all() and not words.whole
    assert not words.closes(4) and words.closes(5) and words.closes(6)


# What can't be done


def test_a_language_model_that_nobody_can_step_is_refused() -> None:
    slow = pretrained("gpt2")
    slow.fast = False
    search = BeamSearch(translation(), slow, objective("c-score"))
    with pytest.raises(CadecError, match="several hypotheses in one pass"):
        search.search([[5]], [Context()])
    assert isinstance(slow, GrowingLanguage)


def test_probabilities_that_are_no_numbers_are_an_error() -> None:
    pair = models(len(WRITTEN.vocabulary), lm_vocabulary=len(READ.vocabulary))
    with torch.no_grad():
        pair.lm.embedding.weight[EOS] = torch.nan
    search = BeamSearch(translation(), TorchLanguageModel(pair.lm, READ), objective("c-score"))
    with pytest.raises(CadecError, match="not numbers"):
        search.search([[5]], [Context()])


def test_what_does_not_fit_the_language_model_is_not_scored() -> None:
    pair = models(len(WRITTEN.vocabulary), positions=64, lm_vocabulary=len(READ.vocabulary))
    lm = TorchLanguageModel(pair.lm, READ)
    lm.positions = 8
    search = BeamSearch(translation(), lm, objective("c-score"), None, BeamOptions(2, LengthLimits(1.0, 20)))
    (found,) = search.search([[5, 6, 7, 8, 9, 10]], [Context(((4, 5, 6),))])
    assert found and all(math.isfinite(one.score) for one in found)
