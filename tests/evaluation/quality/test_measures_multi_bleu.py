"""BLEU as multi-bleu.perl has it, on examples small enough to count by hand."""

import math

import numpy as np
import pytest

from cadec_cli.arrays import Floats
from cadec_cli.evaluation.quality.measures import bleu_scores, ngram_statistics, script_line, words_of


def sums(*pairs: tuple[str, str], lowercase: bool = False) -> Floats:
    """The statistics of a corpus of tokenised (hypothesis, reference)."""
    counts = [
        ngram_statistics(words_of(hypothesis, lowercase=lowercase), words_of(reference, lowercase=lowercase))
        for hypothesis, reference in pairs
    ]
    total: Floats = np.array(counts, dtype=np.float64).sum(0)
    return total


def test_one_wrong_word_in_six() -> None:
    # The last of six words is wrong: 5 of 6 words, 4 of 5 pairs, 3 of 4 triples, 2 of 3 quadruples.
    found = sums(("a b c d e x", "a b c d e f"))
    assert found.tolist() == [6, 6, 5, 4, 3, 2, 6, 5, 4, 3]
    # 5/6 · 4/5 · 3/4 · 2/3 = 1/3
    assert bleu_scores(found, smooth=False) == pytest.approx(100 * (1 / 3) ** 0.25)
    assert script_line(found) == (
        "BLEU = 75.98, 83.3/80.0/75.0/66.7 (BP=1.000, ratio=1.000, hyp_len=6, ref_len=6)"
    )


def test_short_hypotheses_are_penalised() -> None:
    # All of it is right, but 4 of 6 words are there: exp(1 − 6/4).
    found = sums(("a b c d", "a b c d e f"))
    assert script_line(found) == (
        f"BLEU = {100 * math.exp(-0.5):.2f}, 100.0/100.0/100.0/100.0 "
        "(BP=0.607, ratio=0.667, hyp_len=4, ref_len=6)"
    )


def test_long_hypotheses_are_not() -> None:
    # 4 of 5 words, 3 of 4, 2 of 3, 1 of 2: the product is 1/5.
    found = sums(("a b c d e", "a b c d"))
    assert script_line(found) == (
        f"BLEU = {100 * 0.2**0.25:.2f}, 80.0/75.0/66.7/50.0 (BP=1.000, ratio=1.250, hyp_len=5, ref_len=4)"
    )


def test_counts_are_clipped_to_the_reference() -> None:
    # "the" is twice in the reference (Papineni et al.'s example): 2 of 7.
    found = sums(("the the the the the the the", "the cat is on the mat"))
    assert found.tolist() == [7, 6, 2, 0, 0, 0, 7, 6, 5, 4]
    assert script_line(found).startswith("BLEU = 0.00, 28.6/0.0/0.0/0.0 ")


def test_it_is_of_the_corpus_not_a_mean_of_sentences() -> None:
    # Lengths add up before the penalty: one sentence too short by 1, one too long by 1 is no penalty.
    found = sums(("a b c d", "a b c d e"), ("k l m n o p", "k l m n o"))
    assert found.tolist() == [10, 10, 9, 7, 5, 3, 10, 8, 6, 4]
    product = 9 / 10 * 7 / 8 * 5 / 6 * 3 / 4
    assert bleu_scores(found, smooth=False) == pytest.approx(100 * product**0.25)


def test_without_a_4_gram_it_is_0_and_smoothed_it_is_not() -> None:
    found = sums(("a b c", "a b c"))
    assert found.tolist() == [3, 3, 3, 2, 1, 0, 3, 2, 1, 0]
    assert bleu_scores(found, smooth=False) == 0
    wrong_twice = sums(("a b x c d", "a b c d e"))  # 4 of 5, 2 of 4, 0 of 3, 0 of 2
    assert bleu_scores(wrong_twice, smooth=False) == 0
    # The first missing order counts as a half of a match, the second as a quarter.
    product = 4 / 5 * 2 / 4 * (1 / 2) / 3 * (1 / 4) / 2
    assert bleu_scores(wrong_twice, smooth=True) == pytest.approx(100 * product**0.25)


def test_nothing_at_all() -> None:
    assert script_line(sums(("", ""))) == "BLEU = 0, 0/0/0/0 (BP=0, ratio=0, hyp_len=0, ref_len=0)"
    assert bleu_scores(sums(("", "a b c d")), smooth=False) == 0
    assert bleu_scores(sums(("", "a b c d")), smooth=True) == 0


def test_words_are_what_the_script_takes_for_words() -> None:
    assert words_of("  a\tb  c\u00a0d \r") == ["a", "b", "c\u00a0d"]
    assert words_of("Hello Привет", lowercase=True) == ["hello", "Привет"]


def test_many_corpora_at_once() -> None:
    several = np.stack([sums(("a b c d e x", "a b c d e f")), sums(("a b c d", "a b c d e f"))])
    for smooth in (False, True):
        single = [float(bleu_scores(one, smooth=smooth)) for one in several]
        np.testing.assert_allclose(bleu_scores(several, smooth=smooth), single)
