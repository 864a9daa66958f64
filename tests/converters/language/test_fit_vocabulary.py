"""The tokens that a language model needs for what one translation model writes."""

import pytest

from cadec_cli.text.tokenizers.line_text import LineText, find_boundary
from converters.language.fit import fitted_vocabulary, written_pieces
from tests.helpers.pretrained_lms import SENTENCES, STARTS, TOKENIZERS, tokenizer_json
from tests.helpers.token_texts import NumberText

PIECES = [" Where", " is", " the", "ball", "s", "", " "]


def line_text(kind: str) -> LineText:
    serialised = tokenizer_json(kind)
    return LineText(serialised, boundary=find_boundary(serialised, kind)[0], start=STARTS[kind])


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_words_made_of_the_pieces_need_no_other_token(kind: str) -> None:
    text = line_text(kind)
    tokens = fitted_vocabulary(text, [f" {word}" for sentence in SENTENCES for word in sentence.split()])
    assert tokens == sorted(set(tokens)) and text.boundary in tokens
    for word in {word for sentence in SENTENCES for word in sentence.split()}:
        assert set(text.encode(word)) <= set(tokens)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_tokens_without_letters_are_there_and_special_ones_are_not(kind: str) -> None:
    text = line_text(kind)
    tokens = set(fitted_vocabulary(text, PIECES))
    for index, shown in enumerate(text.display_tokens(range(len(text)))):
        if index in text.special_tokens:
            assert index not in tokens
        elif shown.strip() and all(char in "0123456789.,;:!?-–«»\"'()" for char in shown.strip()):
            assert index in tokens, shown
    assert len(tokens) < len(text)


def test_pieces_are_those_of_the_target_side() -> None:
    class OfTwoSides(NumberText):
        pieces = ("\u2581Nun", "de")

    assert written_pieces(OfTwoSides(6)) == [" Nun", "de"]
    plain = NumberText(6)
    assert written_pieces(plain) == plain.display_tokens(range(6))
