"""Lines of sentences have the ids of their sentences, with every usual kind of tokenizer."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from cadec_cli.errors import CadecError
from cadec_cli.text.tokenizers.line_text import PROBES, LineText, as_line, find_boundary
from tests.helpers.pretrained_lms import SENTENCES, STARTS, TOKENIZERS, tokenizer_json


def line_text(kind: str) -> LineText:
    serialised = tokenizer_json(kind)
    boundary, apart = find_boundary(serialised, kind)
    assert apart
    return LineText(serialised, boundary=boundary, start=STARTS[kind])


TEXTS = {kind: line_text(kind) for kind in TOKENIZERS}
kinds = st.sampled_from(TOKENIZERS)
# Of characters that the tokenizers have pieces or bytes for; unigram knows no others.
sentences = st.one_of(
    st.sampled_from([*SENTENCES, *PROBES]),
    st.text(st.sampled_from(sorted(set("".join(SENTENCES)))), min_size=1).filter(lambda text: as_line(text)),
)


@settings(max_examples=300, deadline=None)
@given(kinds, st.lists(sentences, min_size=1, max_size=4))
def test_lines_are_their_sentences_parted_by_the_boundary(kind: str, lines: list[str]) -> None:
    text = TEXTS[kind]
    expected: list[int] = []
    for line in lines:
        expected += [*text.encode(line), text.boundary]
    assert [*text.encode_lines(lines), text.boundary] == expected
    assert text.boundary not in text.encode(lines[0])


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_the_tokenizer_itself_reads_a_document_so(kind: str) -> None:
    text = TEXTS[kind]
    own = Tokenizer.from_str(tokenizer_json(kind))
    ids = own.encode("a\n".replace("\n", _boundary(kind)) + "Thank you!", add_special_tokens=False).ids
    assert ids[-len(text.encode("Thank you!")) :] == text.encode("Thank you!")
    assert ids[-len(text.encode("Thank you!")) - 1] == text.boundary


def _boundary(kind: str) -> str:
    return find_boundary(tokenizer_json(kind), kind)[0]


def test_a_boundary_that_would_be_glued_to_a_full_stop_is_not_taken() -> None:
    assert [_boundary(kind) for kind in TOKENIZERS] == ["\n", " \n", "\n", "\n", "\n"]
    glued = Tokenizer.from_str(tokenizer_json("glued"))
    assert glued.token_to_id(".Ċ") in glued.encode("Yes.\nNo.").ids  # what the care is for
    assert not _keeps(LineText(tokenizer_json("glued"), boundary="\n", start=None))


def _keeps(text: LineText) -> bool:
    return text.encode_lines(["Yes.", "No."]) == [*text.encode("Yes."), text.boundary, *text.encode("No.")]


def test_a_dummy_blank_belongs_to_the_beginning_of_a_text_only() -> None:
    own = Tokenizer.from_str(tokenizer_json("spm-bpe"))
    alone = own.encode("Thank you!", add_special_tokens=False).ids
    assert own.decode(alone) == "Thank you!"
    assert TEXTS["spm-bpe"].encode("Thank you!") != alone


def test_where_every_line_break_is_glued_the_first_is_taken_and_it_is_told() -> None:
    state = json.loads(tokenizer_json("glued"))
    state["model"]["vocab"] = {
        token: index for token, index in state["model"]["vocab"].items() if token not in ("ĠĊ", "ĊĊ", "ĠĊĊ")
    }
    state["model"]["merges"] = [
        merge
        for merge in state["model"]["merges"]
        if {"".join(merge), *merge} <= state["model"]["vocab"].keys()
    ]
    assert find_boundary(json.dumps(state), "it") == ("\n", False)


def test_a_tokenizer_without_line_breaks_is_refused() -> None:
    with pytest.raises(CadecError, match="no token for a line break"):
        find_boundary(tokenizer_json("no-lines"), "it")


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("sentence", ["Il est rouge.", "« Non », dit-il.", "Что ты делаешь?"])
def test_what_is_encoded_can_be_read_again(kind: str, sentence: str) -> None:
    text = TEXTS[kind]
    assert text.decode(text.encode(sentence)) == sentence
    shown = "".join(text.display_tokens(text.encode(sentence))).strip()
    assert shown == sentence or "<0xD0>" in shown  # of so few pieces some are halves of letters


@given(kinds, st.text())
@settings(max_examples=200, deadline=None)
def test_anything_can_be_shown(kind: str, sentence: str) -> None:
    text = TEXTS[kind]
    ids = text.encode(sentence)
    assert len(text.display_tokens(ids)) == len(ids)
    assert not any(char in piece for piece in text.display_tokens(ids) for char in "\n\r\0")


@pytest.mark.parametrize("kind", ["byte-level", "glued", "spm-bpe", "gemma"])
def test_bytes_of_a_split_character_are_shown_as_bytes(kind: str) -> None:
    shown = TEXTS[kind].display_tokens(TEXTS[kind].encode("🦜"))
    assert "".join(shown).endswith("<0x9F><0xA6><0x9C>")
    assert TEXTS[kind].decode(TEXTS[kind].encode("🦜")) == "🦜"


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_the_boundary_is_shown_as_one_reads_it(kind: str) -> None:
    text = TEXTS[kind]
    assert text.display_tokens([text.boundary]) == ["⏎"]
    assert text.display_tokens([10**7]) == ["<10000000>"]
    assert len(text.vocabulary) == len(text) and text.vocabulary[text.start] == STARTS[kind]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_sentence_is_one_line_whatever_is_in_it(kind: str) -> None:
    text = TEXTS[kind]
    assert text.encode(" Thank\nyou!\r\n") == text.encode("Thank you!")
    assert text.encode("Thank\u2028you!\x85") == text.encode("Thank you!")
    assert text.encode(" \n\t") == text.encode("") == []


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_special_tokens_in_a_subtitle_are_text(kind: str) -> None:
    text = TEXTS[kind]
    assert text.start not in text.encode(f"say {STARTS[kind]} now")


def test_what_a_file_remembers_of_its_training_is_not_done() -> None:
    own = Tokenizer.from_str(tokenizer_json("byte-level"))
    own.enable_truncation(4)
    own.enable_padding(length=12)
    text = LineText(own.to_str(), boundary="\n", start=None)
    assert text.encode("Elle était très vieille.") == TEXTS["byte-level"].encode("Elle était très vieille.")
    assert text.start == text.boundary  # where nothing else begins a text


def test_identities_tell_tokenizers_and_boundaries_apart() -> None:
    assert len({text.identity for text in TEXTS.values()}) == len(TOKENIZERS)
    other = LineText(tokenizer_json("gemma"), boundary="\n\n", start="<s>")
    assert other.identity != TEXTS["gemma"].identity and other.boundary != TEXTS["gemma"].boundary


def test_what_is_no_tokenizer_or_lacks_a_token_is_an_error() -> None:
    with pytest.raises(CadecError, match="not a tokenizer of the tokenizers library, or is damaged"):
        LineText("{}", boundary="\n", start=None)
    with pytest.raises(CadecError, match="to begin with"):
        LineText(tokenizer_json("gemma"), boundary="\n", start="<bos>")
    with pytest.raises(CadecError, match="no token for the boundary"):
        LineText(tokenizer_json("spm-bpe"), boundary=" \n", start=None)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_half_a_character_is_no_reason_to_stop(kind: str) -> None:
    assert TEXTS[kind].encode("a\ud800b") == TEXTS[kind].encode("a?b")


def test_a_tokenizer_that_panics_is_one_clear_error() -> None:
    state = json.loads(tokenizer_json("spm-bpe"))
    state["truncation"] = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 5}
    with pytest.raises(CadecError, match="or is damaged"):
        LineText(json.dumps(state), boundary="\n", start=None)
