"""Candidates that respect a glossary, with a model that is a table of words."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from cadec_cli.decoding.glossary.candidates import TermCandidates, respected
from cadec_cli.engines.protocols import Completes
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.text.glossary.entries import Entry, Glossary
from cadec_cli.text.protected.core import Core
from tests.helpers.fakes import WordText

# How likely a word of the made-up language is for a word of the source; any other word costs 9.
WORDS = {
    "the": {"el": -1.0, "la": -1.2},
    "gate": {"puerta": -0.5, "portal": -6.0},
    "and": {"y": -0.1},
    "lamp": {"lampara": -0.5, "farol": -5.0, "faroles": -7.0},
    "see": {"veo": -0.3},
}
AGREE = {("el", "portal"): 0.0, ("el", "puerta"): -4.0, ("la", "puerta"): 0.0, ("la", "portal"): -4.0}


@dataclass
class WordNMT:
    """Translates word by word; a word and the one before it should agree. It can't complete anything."""

    most: int = 12
    scored: list[str] = field(default_factory=list)

    def log_probs(self, sentences: Sequence[str], targets: Sequence[str]) -> list[float]:
        self.scored += targets
        return [self.log_prob(*pair) for pair in zip(sentences, targets, strict=True)]

    def log_prob(self, sentence: str, target: str) -> float:
        source, words = sentence.lower().strip(".").split(), target.lower().strip(".").split()
        total = -9.0 * abs(len(source) - len(words))
        for word, said in zip(source, words, strict=False):
            total += WORDS.get(word, {}).get(said, -9.0)
        return total + sum(AGREE.get(pair, 0.0) for pair in itertools.pairwise(words))

    def token_log_probs(
        self, sentences: Sequence[str], targets: Sequence[str]
    ) -> list[list[tuple[int, float]]]:
        """Words are likely as far as the source has a word that they translate."""
        return [
            [
                (
                    place,
                    max(WORDS.get(one, {}).get(word, -9.0) for one in sentence.lower().strip(".").split()),
                )
                for place, word in enumerate(target.lower().strip(".").split())
            ]
            for sentence, target in zip(sentences, targets, strict=True)
        ]

    def nbest(self, sentences: Sequence[str], count: int) -> list[NBest]:
        raise NotImplementedError

    def fits(self, sentence: str, target: str = "") -> bool:
        return max(len(sentence.split()), len(target.split())) <= self.most

    def split(self, sentence: str) -> list[str]:
        raise NotImplementedError


@dataclass
class CompletingNMT(WordNMT):
    """The same, but it can complete beginnings: with each of the next words, and the likeliest after it."""

    target_text: WordText = field(default_factory=WordText)

    def completions(self, sentence: str, beginnings: Sequence[str], count: int) -> list[list[str]]:
        found = []
        for beginning in beginnings:
            begun = beginning.split()
            rest = [
                sorted(WORDS[word], key=lambda one: -WORDS[word][one]) for word in sentence.lower().split()
            ]
            later = [words[0] for words in rest[len(begun) + 1 :]]
            nexts = rest[len(begun)][:count] if len(begun) < len(rest) else [""]
            found.append([" ".join([*begun, word, *later]).strip() for word in nexts])
        return found


def made(
    model: WordNMT, source: str, *texts: str, must: bool = False, weight: float = 10.0, **entries: str
) -> NBest:
    glossary = Glossary(
        [Entry(term, tuple(targets.split("|")), must) for term, targets in entries.items()], "en"
    )
    core = Core.whole(source).with_mentions(glossary)
    nbest = NBest(source, tuple(Hypothesis(text, model.log_prob(source, text)) for text in texts))
    return TermCandidates(model).complete(core, nbest, weight)


def texts(nbest: NBest) -> list[str]:
    return [one.text for one in nbest.hypotheses]


def test_a_term_takes_the_place_of_what_was_said_instead() -> None:
    found = made(WordNMT(), "see the lamp", "veo la lampara", "veo el lampara", lamp="farol")
    assert texts(found) == ["veo la lampara", "veo el farol"]  # as long as it was, and its first stays


def test_scores_are_those_of_the_model() -> None:
    model = WordNMT()
    found = made(model, "see the lamp", "veo la lampara", "veo el lampara", lamp="farol")
    assert [one.log_prob for one in found.hypotheses] == [
        model.log_prob("see the lamp", text) for text in texts(found)
    ]


def test_the_model_chooses_the_form() -> None:
    found = made(WordNMT(), "see the lamp", "veo la lampara", "veo el lampara", lamp="faroles|farol")
    assert texts(found) == ["veo la lampara", "veo el farol"]


def test_the_word_before_a_term_may_be_written_again() -> None:
    without = made(WordNMT(), "see the gate", "veo la puerta", "veo el puerta", gate="portal")
    assert texts(without) == ["veo la puerta", "veo el portal"]  # of the other hypothesis
    alone = made(WordNMT(), "see the gate", "veo la puerta", "veo la puerta y", gate="portal")
    assert texts(alone) == ["veo la puerta", "veo la portal"]
    assert isinstance(CompletingNMT(), Completes) and not isinstance(WordNMT(), Completes)
    completed = made(CompletingNMT(), "see the gate", "veo la puerta", "veo la puerta y", gate="portal")
    assert texts(completed) == ["veo la puerta", "veo el portal"]
    two = made(CompletingNMT(), "see the gate", "veo a la puerta", "veo a el puerta", gate="portal")
    assert texts(two) == ["veo a la puerta", "veo el portal"]


def test_several_terms() -> None:
    found = made(
        WordNMT(),
        "the lamp and the gate",
        *("el lampara y la puerta", "la lampara y la puerta", "el lampara y el puerta", "a", "b", "c"),
        lamp="farol",
        gate="portal",
    )
    assert len(found.hypotheses) == 6
    assert texts(found)[-3:] == ["el farol y la puerta", "el farol y la portal", "la farol y la portal"]


def test_a_list_that_has_the_term_stays_as_it_is() -> None:
    model = WordNMT()
    found = made(model, "see the lamp", "veo la lampara", "veo el farol", lamp="farol")
    assert texts(found) == ["veo la lampara", "veo el farol"]
    assert not model.scored


def test_a_source_without_terms_costs_nothing() -> None:
    model = WordNMT()
    assert texts(made(model, "see the lamp", "veo la lampara", gate="portal")) == ["veo la lampara"]
    assert not model.scored


def test_a_list_of_one() -> None:
    assert texts(made(WordNMT(), "see the lamp", "veo la lampara", lamp="farol")) == ["veo la farol"]
    light = made(WordNMT(), "see the lamp", "veo la lampara", lamp="farol", weight=1.0)
    assert texts(light) == ["veo la lampara"]
    hard = made(WordNMT(), "see the lamp", "veo la lampara", lamp="farol", weight=1.0, must=True)
    assert texts(hard) == ["veo la farol"]


@pytest.mark.parametrize("texts_", [(), ("",), ("...",)])
def test_lists_with_nothing_in_them(texts_: tuple[str, ...]) -> None:
    assert texts(made(WordNMT(), "see the lamp", *texts_, lamp="farol")) == list(texts_)


def test_candidates_that_do_not_fit_are_not_made() -> None:
    found = made(WordNMT(most=3), "see the lamp", "veo la lampara", "veo", lamp="un farol muy viejo")
    assert texts(found) == ["veo la lampara", "veo"]


def test_the_beginning_of_a_sentence_keeps_its_capital() -> None:
    found = made(WordNMT(), "Lamp and gate.", "Lampara y puerta.", "Lampara y.", lamp="farol")
    assert "Farol y puerta." in texts(found)


def test_ids_are_of_the_vocabulary_of_the_list() -> None:
    text = WordText()
    nbest = NBest(
        "see lamp", (Hypothesis("veo lampara", -1.0, tuple(text.encode("veo lampara"))),) * 2, "words"
    )
    core = Core.whole("see lamp").with_mentions(Glossary([Entry("lamp", ("farol",))], "en"))
    found = TermCandidates(WordNMT(), text).complete(core, nbest, 10.0)
    assert [text.decode(one.ids) for one in found.hypotheses] == texts(found) == ["veo lampara", "veo farol"]


def test_what_is_respected() -> None:
    mentions = Glossary([Entry("lamp", ("farol",)), Entry("gate", ("portal",))], "en").mentions("lamp, gate")
    assert [one.text for one in respected(mentions, "el portal")] == ["gate"]


def test_no_candidates_where_no_spaces_separate_words() -> None:
    assert texts(made(WordNMT(), "see the lamp", "看灯", "看", lamp="灯火")) == ["看灯", "看"]


def test_candidates_that_lack_as_much_do_not_crowd_out_hypotheses() -> None:
    found = made(
        WordNMT(most=8),
        *("the lamp and the gate", "el farol y la puerta", "la luz y la puerta"),
        lamp="farol",
        gate="un portal que es muy muy muy muy muy muy muy viejo",
    )
    assert texts(found) == ["el farol y la puerta", "la luz y la puerta"]
