"""Models of joined sentences: a sentence in is a sentence out, whatever the model makes of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.engines.document_models import Drafts, RepairModel, TwoToTwoModel, draft_model
from cadec_cli.engines.protocols import Passage
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.text.pipeline import join_passage, split_passage


@dataclass
class Shouting:
    """Writes in capitals; what is in `lost` it drops, with the boundary before it."""

    lost: frozenset[str] = frozenset()
    longest: int = 1000
    asked: list[str] = field(default_factory=list)

    def nbest(self, sentences: Sequence[str], count: int) -> list[NBest]:
        self.asked += sentences
        return [self._list(text, self._written(text)) for text in sentences]

    def log_probs(self, sentences: Sequence[str], targets: Sequence[str]) -> list[float]:
        return [-float(len(target)) for target in targets]

    def fits(self, sentence: str, target: str = "") -> bool:
        return max(len(sentence), len(target)) <= self.longest

    def split(self, sentence: str) -> list[str]:
        return [sentence]

    def _list(self, text: str, written: str) -> NBest:
        louder = f"{written}!" if written else ""
        return NBest(text, (Hypothesis(written, -1.0), Hypothesis(louder, -2.0)))

    def _written(self, text: str) -> str:
        return join_passage(part.upper() for part in split_passage(text) if part not in self.lost)


class Inventing(Shouting):
    """Finds something to say of nothing."""

    def _written(self, text: str) -> str:
        return join_passage(part.upper() or "WHAT?" for part in split_passage(text))


WORDS = st.lists(st.sampled_from(["a", "b", "c d", "e"]), min_size=1, max_size=11)


@given(WORDS)
def test_of_two_sentences_the_last_part_is_taken(document: list[str]) -> None:
    model = TwoToTwoModel(Shouting())
    passages = [model.passage(document, place) for place in range(len(document))]
    assert passages[0] == Passage((document[0],), 0)
    assert [passage.sentence for passage in passages] == document
    lists = model.nbest(passages, 2)
    assert [[one.text for one in nbest.hypotheses] for nbest in lists] == [
        [text.upper(), text.upper() + "!"] for text in document
    ]
    assert [nbest.source for nbest in lists] == document


def test_an_empty_first_part_is_the_sentence_alone() -> None:
    inner = Shouting()
    model = TwoToTwoModel(inner)
    assert model.passage(["", "a"], 1) == model.passage(["a"], 0)
    assert model.nbest([model.passage(["  ", "a"], 1)], 2) == inner.nbest(["a"], 2)
    assert TwoToTwoModel(Shouting(longest=3)).passage(["aaa", "b"], 1) == Passage(("b",), 0)


@given(WORDS, st.frozensets(st.sampled_from(["a", "b", "c d", "e"]), max_size=3))
def test_a_repaired_document_keeps_its_number_of_sentences(document: list[str], lost: frozenset[str]) -> None:
    model = RepairModel(Shouting(lost), Drafts(Shouting()).as_they_are)
    lists = model.nbest([model.passage(document, place) for place in range(len(document))], 2)
    assert len(lists) == len(document)
    for place, nbest in enumerate(lists):
        group = document[place - place % 4 : place - place % 4 + 4]
        whole = not lost.intersection(group)
        # A group that comes out with fewer sentences is not believed: nothing of it changes.
        assert nbest.hypotheses[0].text == (document[place].upper() if whole else document[place])


def test_groups_are_counted_from_the_beginning_and_blank_sentences_pass_through() -> None:
    document = ["a", "b", "", "d", "e", "f"]
    model = RepairModel(Shouting(), draft_model(Shouting()))
    assert [model.passage(document, place) for place in range(6)] == [
        Passage(("a", "b", "d"), 0),
        Passage(("a", "b", "d"), 1),
        Passage(("a", "b", "", "d"), 2),
        Passage(("a", "b", "d"), 2),
        Passage(("e", "f"), 0),
        Passage(("e", "f"), 1),
    ]


def test_two_sentences_that_come_out_as_one_are_not_parted() -> None:
    inner = Shouting(lost=frozenset({"a"}))
    model = TwoToTwoModel(inner)
    found = model.nbest([model.passage(["a", "b"], 1), model.passage(["c d", "e"], 1)], 2)
    assert [nbest.hypotheses[0].text for nbest in found] == ["B", "E"]
    assert inner.asked == ["a\nb", "c d\ne", "b"]  # the first is asked again, alone


def test_nothing_is_made_of_a_blank_sentence() -> None:
    for model in (TwoToTwoModel(Inventing()), RepairModel(Inventing(), draft_model(Inventing()))):
        lists = model.nbest([model.passage(["a", " ", "b"], place) for place in range(3)], 2)
        assert [bool(nbest.hypotheses) for nbest in lists] == [True, False, True]


def test_what_can_not_be_read_stays_as_it_was_drafted() -> None:
    inner = Shouting(longest=2)
    model = RepairModel(inner, Drafts(Shouting()).as_they_are)
    lists = model.nbest([model.passage(["abc", "d"], place) for place in range(2)], 2)
    assert [nbest.hypotheses[0].text for nbest in lists] == ["abc", "D"]


def test_a_group_to_be_scored_ends_with_the_sentence_in_question() -> None:
    model = RepairModel(Shouting(), draft_model(Shouting()))
    document = ["a", "b", "c", "d", "e"]
    assert model.passage(document, 4) == Passage(("e",), 0)  # in a document, a group of its own
    assert model.last_passage(document) == Passage(("b", "c", "d", "e"), 3)
    assert TwoToTwoModel(Shouting()).last_passage(document) == Passage(("d", "e"), 1)


def test_a_group_is_asked_once_and_drafts_are_what_is_repaired() -> None:
    inner, sentence_level = Shouting(), Shouting()
    model = RepairModel(inner, draft_model(sentence_level))
    document = ["a", "b", "c", "d", "e"]
    model.nbest([model.passage(document, place) for place in range(5)], 2)
    assert inner.asked == ["A\nB\nC\nD", "E"]
    assert sentence_level.asked == document


def test_a_group_that_is_too_long_is_repaired_sentence_by_sentence() -> None:
    inner = Shouting(longest=4)
    model = RepairModel(inner, Drafts(inner).as_they_are)
    lists = model.nbest([model.passage(["abc", "def"], place) for place in range(2)], 2)
    assert inner.asked == ["abc", "def"]
    assert [nbest.hypotheses[0].text for nbest in lists] == ["ABC", "DEF"]


def test_scores_are_of_whole_passages() -> None:
    inner = Shouting()
    passages = [Passage(("a", "b"), 1)]
    assert TwoToTwoModel(inner).log_probs(passages, [("X", "YY")]) == [-4.0]
    assert RepairModel(inner, draft_model(inner)).log_probs(passages, [("X", "YY")]) == [-4.0]
