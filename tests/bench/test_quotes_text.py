"""The text that quoted clauses are counted in: curly quotes throughout, and what counts is counted."""

from bench.quotes import TEXT, Fate, Quoting, fate, read_annotation
from cadec_cli.text.punctuation import quotations


def test_every_sentence_is_annotated_and_quotes_something() -> None:
    annotation = read_annotation()
    assert [row.sentence for row in annotation] == TEXT.read_text("utf-8").splitlines()
    assert len(annotation) == 100
    for row in annotation:
        assert quotations(row.sentence) and not {'"', "'"} & set(row.sentence)
        assert not fate(row, "").quoted and not fate(row, "").told


def test_what_is_counted() -> None:
    row = Quoting("“The soup is cold,” Henri complained.", "soupe", "Henri")
    assert fate(row, "« La soupe est froide », se plaignit Henri.") == Fate(True, True, True)
    assert fate(row, "La Soupe est froide.") == Fate(True, False, False)
