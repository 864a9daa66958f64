"""Lists scored before their turn: the same choices with or without, in fewer rounds where that was right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.decoding.search.lattice import LatticeSearch
from cadec_cli.decoding.state import State
from cadec_cli.decoding.translation import TranslatedPart
from cadec_cli.decoding.units import waves
from cadec_cli.method.context import Context, ContextPolicy
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.objectives import objective
from cadec_cli.method.options import ScoringOptions
from cadec_cli.method.trie import ScoredTrie, Trie
from tests.helpers.fakes import TableLM

WORDS = "abcd"
List = Mapping[str, float]  # hypotheses, and their log p(y|x)


@dataclass
class SeveralAtOnce(TableLM):
    """Scores several tries in the time of one, and takes down what it was asked after contexts."""

    batch_size: int = 1
    rounds: list[list[tuple[bytes, Context]]] = field(default_factory=list)

    def score(
        self,
        tries: Sequence[Trie],
        contexts: Sequence[Context],
        scoring_options: ScoringOptions,
        *,
        remember: bool = False,
    ) -> list[ScoredTrie]:
        if any(context.sentences for context in contexts):
            asked = (trie.edge_tokens.tobytes() for trie in tries)
            self.rounds.append(list(zip(asked, contexts, strict=True)))
        return super().score(tries, contexts, scoring_options, remember=remember)


def chosen(
    model: SeveralAtOnce, documents: Sequence[Sequence[List]], policy: ContextPolicy, width: int = 1
) -> list[tuple[int, TranslatedPart]]:
    lists = [
        [NBest(str(found), tuple(Hypothesis(text, score) for text, score in found.items())) for found in one]
        for one in documents
    ]
    search = LatticeSearch(objective("c-score"), model, policy=policy, width=width)
    return list(search.run(waves(lists), State.at_start(len(lists))))


found_lists = st.dictionaries(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(" ".join), st.floats(-3, 0), max_size=3
)
documents = st.lists(st.lists(found_lists, min_size=1, max_size=7), min_size=1, max_size=4)
tables = st.dictionaries(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)), st.floats(-2, 2))
policies = st.builds(ContextPolicy, st.integers(0, 3), st.booleans())


@given(documents, tables, policies, st.integers(2, 6), st.integers(1, 2))
def test_what_is_chosen_and_why_is_the_same_however_many_are_scored_at_once(
    texts: list[list[List]],
    table: dict[tuple[str, str], float],
    policy: ContextPolicy,
    at_once: int,
    width: int,
) -> None:
    one_by_one = chosen(SeveralAtOnce(table), texts, policy, width)
    assert chosen(SeveralAtOnce(table, batch_size=at_once), texts, policy, width) == one_by_one


def rounds(
    documents: Sequence[Sequence[List]], table: dict[tuple[str, str], float], at_once: int
) -> list[list[tuple[bytes, Context]]]:
    model = SeveralAtOnce(table, batch_size=at_once)
    chosen(model, documents, ContextPolicy(3))
    return model.rounds


def test_where_the_first_is_chosen_a_document_takes_a_part_of_the_rounds() -> None:
    document = [{f"a {number}": -1.0, "c": -2.0} for number in range(9)]
    # The first sentence has no context, and needs nothing.
    assert [len(one) for one in rounds([document], {}, 1)] == [1] * 8
    assert [len(one) for one in rounds([document], {}, 2)] == [2] * 4
    assert [len(one) for one in rounds([document], {}, 3)] == [3, 3, 2]


def test_where_guesses_are_wrong_each_sentence_is_asked_for_when_it_is_its_turn() -> None:
    # Whatever stands before calls for the second hypothesis.
    table = {(before, "c"): 2.0 for before in "ac"}
    document = [{f"a {number}": -1.0, f"c {number}": -2.0} for number in range(6)]
    # A question and a guess each time, but at the end.
    assert [len(one) for one in rounds([document], table, 2)] == [2, 2, 2, 2, 1]


def test_where_there_are_documents_enough_nothing_is_guessed() -> None:
    documents = [[{f"{word} {number}": -1.0, "c": -2.0} for number in range(4)] for word in "abd"]
    assert [len(one) for one in rounds(documents, {}, 3)] == [3, 3, 3]
    # Where one core would have less to do than the other, there is one guess; then one question is answered.
    assert [len(one) for one in rounds(documents, {}, 2)] == [4, 2, 3]


def test_no_question_is_asked_twice() -> None:
    documents = [[{f"{word} {number}": -1.0, "c": -2.0} for number in range(12)] for word in "ab"]
    asked = [question for one in rounds(documents, {}, 5) for question in one]
    assert len({(trie, context.sentences) for trie, context in asked}) == len(asked) == 22
