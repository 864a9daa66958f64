"""Statistics that add up give sacreBLEU's own figures; texts that do not belong together are told apart."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from cadec_cli.errors import CadecError
from cadec_cli.evaluation.aligned import read_aligned
from cadec_cli.evaluation.quality.measures import (
    Measure,
    bleu_measure,
    chrf_measure,
    moses_words,
    multi_bleu_measure,
)
from cadec_cli.text.moses import MARKS, MosesText

lines = st.text(st.sampled_from("ab cd, Кт."), max_size=25)
corpora = st.lists(st.tuples(lines, lines), min_size=1, max_size=6)


def score(measure: Measure, pairs: list[tuple[str, str]]) -> float:
    assert measure.count is not None
    counts = [measure.count(hypothesis, reference) for hypothesis, reference in pairs]
    return float(measure.scores(np.array(counts, dtype=np.float64).sum(0)))


@settings(max_examples=80, deadline=None)
@given(corpora, st.booleans())
def test_bleu_and_chrf_are_those_of_sacrebleu(pairs: list[tuple[str, str]], lowercase: bool) -> None:
    hypotheses, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    expected = BLEU(force=True, lowercase=lowercase).corpus_score(hypotheses, [references]).score
    assert score(bleu_measure(lowercase=lowercase), pairs) == pytest.approx(expected, abs=1e-9)
    expected = CHRF(lowercase=lowercase).corpus_score(hypotheses, [references]).score
    assert score(chrf_measure(lowercase=lowercase), pairs) == pytest.approx(expected, abs=1e-9)


def test_signatures_say_how() -> None:
    assert (
        "nrefs:1|case:lc|eff:no|tok:char|smooth:exp"
        in bleu_measure(tokenize="char", lowercase=True).signature
    )
    assert "nrefs:1|case:mixed|eff:yes|nc:6|nw:0" in chrf_measure().signature
    assert "tok:moses[ru]" in multi_bleu_measure(language="ru").signature
    assert "tok:none" in multi_bleu_measure(language=None).signature


def test_an_unknown_tokeniser_is_an_error() -> None:
    with pytest.raises(CadecError, match="nonsense"):
        bleu_measure(tokenize="nonsense")


def test_multi_bleu_tokenises_as_moses_without_our_marks() -> None:
    # A space where Moses' detokeniser puts none makes our pipelines add a mark.
    odd = "He said : yes, didn't he ?"
    assert set(MARKS) & set(MosesText("en").tokenise(odd))
    assert moses_words("en")(odd) == "He said : yes , didn 't he ?"
    # Tokenised, the two differ in the last of five tokens: 4/5 · 3/4 · 2/3 · 1/2 = 1/5.
    pairs = [("so it is, yes", "so it is, no")]
    assert score(multi_bleu_measure(language="en"), pairs) == pytest.approx(100 * 0.2**0.25)
    assert score(multi_bleu_measure(language=None), [("a b c d .", "a b c d !")]) == pytest.approx(
        100 * 0.2**0.25
    )


def write(directory: Path, **texts: str) -> list[Path]:
    paths = []
    for name, text in texts.items():
        paths.append(directory / f"{name}.txt")
        paths[-1].write_text(text, "utf-8")
    return paths


def test_documents_are_read(tmp_path: Path) -> None:
    reference, hypothesis = read_aligned(
        write(tmp_path, ref="\ufeffa\nb\n\nc\n", hyp="\r\n x \r\ny\r\n\r\n\r\nz\r\n\r\n")
    )
    assert reference.documents == (("a", "b"), ("c",))
    assert hypothesis.documents == (("x", "y"), ("z",))
    assert reference.document_numbers.tolist() == [0, 0, 1]
    assert reference.sentence_numbers.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("hypothesis", "told"),
    [
        ("x\ny\nz\n\nv\nw\n", "document 1 has 3 sentences in HYP ('x' …), 2 sentences in REF ('a' …)"),
        ("x\ny\n\nz\n\nv\nw\n", "document 2 has 1 sentence in HYP ('z' …), 3 sentences in REF ('c' …)"),
        ("x\ny\n", "document 2 has none in HYP, which has 1 documents, 3 sentences in REF ('c' …)"),
        (
            "x\ny\n\nz\nu\nv\n\nw\n",
            "document 3 has 1 sentence in HYP ('w' …), none in REF, which has 2 documents",
        ),
        ("x\ny\nz\nu\nv\nw\n", "document 1 has 6 sentences"),
    ],
)
def test_the_first_document_that_differs_is_named(hypothesis: str, told: str, tmp_path: Path) -> None:
    paths = write(tmp_path, ref="a\nb\n\nc\nd\ne\n", hyp=hypothesis)
    with pytest.raises(CadecError) as caught:
        read_aligned(paths)
    message = caught.value.message.replace(str(paths[0]), "REF").replace(str(paths[1]), "HYP")
    assert told in message
    assert caught.value.hint


def test_an_empty_translation_is_one_where_the_lines_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warnings: list[str] = []
    paths = write(tmp_path, ref="a\nb\n\nc\nd\n", hyp="x\n\n\ny\n\n")
    _, hypothesis = read_aligned(paths, warn=warnings.append)
    assert hypothesis.documents == (("x", ""), ("y", ""))
    (warning,) = warnings
    assert "2 empty lines" in warning
    assert read_aligned(paths)[1] == hypothesis
    assert capsys.readouterr().err == ""  # what is said goes where the caller wants it


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"", "no sentences"), (b"\n \n\t\n", "no sentences"), ("да\n".encode("cp1251"), "line 1 is not utf-8")],
)
def test_what_can_not_be_read_is_one_error(content: bytes, told: str, tmp_path: Path) -> None:
    paths = write(tmp_path, ref="a\n", hyp="")
    paths[1].write_bytes(content)
    with pytest.raises(CadecError, match=told):
        read_aligned(paths)
    with pytest.raises(CadecError, match="only once"):
        read_aligned([Path("-"), Path("-")])
