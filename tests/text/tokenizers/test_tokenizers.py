"""Other toolkits' tokenizers write the ids of the model's vocabulary, and read them back."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.engines.ctranslate2 import read_vocabularies
from cadec_cli.errors import CadecError
from cadec_cli.text.token_text import TokenText
from cadec_cli.text.tokenizers import KINDS, load_text
from cadec_cli.text.tokenizers.moses_bpe import Bpe
from cadec_cli.text.tokenizers.vocabulary import TextSettings, readable_marks
from tests.helpers import pretrained_models

TEXTS = (
    "you see the big red lamp.",
    "The captain doesn't know 1,234.50 words",
    "Моя сестра не знает, где ключи!",
    "我们明天见。",
    "Größe, l'été",
)
SPM = TextSettings(kind="sentencepiece", files=("some.spm",))
JSON = TextSettings(kind="tokenizers", files=("tokenizer.json",))


@pytest.fixture(scope="module")
def nllb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretrained_models.tiny_nllb(tmp_path_factory.mktemp("nllb") / "model")


def shared_vocabulary() -> list[str]:
    """As fairseq has it: other special tokens in front of SentencePiece's pieces, languages after them."""
    pieces = [piece for piece, _ in pretrained_models.scored_pieces(pretrained_models.subwords())[3:]]
    return ["<s>", "<pad>", "</s>", "<unk>", *pieces, "__en__", "__ru__"]


@pytest.fixture
def spm_directory(tmp_path: Path) -> Path:
    (tmp_path / "some.spm").write_bytes(pretrained_models.subwords())
    return tmp_path


def test_pieces_are_looked_up_in_the_models_vocabulary(spm_directory: Path) -> None:
    import sentencepiece

    vocabulary = shared_vocabulary()
    text: TokenText = load_text(spm_directory, SPM, vocabulary, "en")
    own = sentencepiece.SentencePieceProcessor(model_file=str(spm_directory / "some.spm"))
    for sentence in TEXTS:
        pieces = own.encode(sentence, out_type=str)
        assert [vocabulary[index] for index in text.encode(sentence)] == pieces
        assert text.encode(sentence) != own.encode(sentence)  # its own ids are others
        assert text.decode(text.encode(sentence)) == sentence
        assert "".join(text.display_tokens(text.encode(sentence))).strip() == sentence
    assert text.boundary == 2
    assert text.vocabulary is vocabulary


def test_what_the_vocabulary_lacks_is_unknown_and_no_text(spm_directory: Path) -> None:
    vocabulary = [token for token in shared_vocabulary() if token != "▁lamp"]
    text = load_text(spm_directory, SPM, vocabulary, "en")
    ids = text.encode("you see the lamp. 🙂")
    assert ids.count(vocabulary.index("<unk>")) == 2
    assert text.decode(ids) == "you see the."


def test_special_tokens_and_languages_are_no_text(spm_directory: Path) -> None:
    vocabulary = shared_vocabulary()
    options = {"special": "<s> </s> <pad> <unk> __en__ __ru__"}
    text = load_text(spm_directory, dataclasses.replace(SPM, options=options), vocabulary, "en")
    around = [vocabulary.index("__ru__"), *text.encode("you see it."), text.boundary, 1]
    assert text.decode(around) == "you see it."
    assert text.decode([text.boundary]) == text.decode([]) == ""
    assert text.encode("") == text.encode("   ") == []


def test_pieces_of_the_other_side_keep_their_spaces(tmp_path: Path) -> None:
    # Marian's vocabulary is of both sides, and the model may write either's pieces.
    (tmp_path / "some.spm").write_bytes(pretrained_models.subwords(1))
    source = [piece for piece, _ in pretrained_models.scored_pieces(pretrained_models.subwords(0))]
    target = [piece for piece, _ in pretrained_models.scored_pieces(pretrained_models.subwords(1))]
    assert "▁think" in source
    assert "▁think" not in target
    vocabulary = list(dict.fromkeys(["</s>", "<unk>", *source, *target]))
    text = load_text(tmp_path, SPM, vocabulary, "eo")
    ids = [vocabulary.index(piece) for piece in ("▁think", "▁la", "▁think", ".")]
    assert text.decode(ids) == "think la think."


def test_words_of_control_in_a_text_are_text(spm_directory: Path, nllb: Path) -> None:
    vocabulary = shared_vocabulary()
    for text in (load_text(spm_directory, SPM, vocabulary, "en"), nllb_text(nllb)):
        for odd in ("a </s> b", "<pad>", "eng_Latn you"):
            ids = text.encode(odd)
            assert text.boundary not in ids
            assert text.vocabulary.index("<pad>") not in ids
            assert "eng_Latn" not in [text.vocabulary[index] for index in ids]


def test_half_a_character_is_no_reason_to_fail(spm_directory: Path, nllb: Path) -> None:
    for text in (load_text(spm_directory, SPM, shared_vocabulary(), "en"), nllb_text(nllb)):
        assert text.decode(text.encode("you \ud83d see")).split()[0] == "you"


def nllb_text(directory: Path) -> Any:
    from transformers import AutoTokenizer

    vocabulary = AutoTokenizer.from_pretrained(directory).get_vocab()
    options = {"special": "<s> <pad> </s> <unk> <mask> eng_Latn rus_Cyrl"}
    return load_text(
        directory,
        dataclasses.replace(JSON, options=options),
        sorted(vocabulary, key=lambda token: vocabulary[token]),
        "en",
    )


def test_tokenizer_json_is_as_transformers_reads_it(nllb: Path) -> None:
    from transformers import AutoTokenizer

    original = AutoTokenizer.from_pretrained(nllb)
    text: TokenText = nllb_text(nllb)
    for sentence in (*TEXTS, "日本 🙂 unknown"):
        ids = original(sentence, add_special_tokens=False).input_ids
        assert text.encode(sentence) == ids
        decoded = original.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert text.decode(ids) == decoded.strip()
    assert text.decode(text.encode(TEXTS[0])) == TEXTS[0]
    assert "".join(text.display_tokens(text.encode(TEXTS[0]))).strip() == TEXTS[0]
    framed = original(TEXTS[0]).input_ids
    assert text.decode(framed) == TEXTS[0]


def test_sides_of_a_batch_are_not_the_tokenizers_business(nllb: Path, tmp_path: Path) -> None:
    value = json.loads((nllb / "tokenizer.json").read_text("utf-8"))
    value["truncation"] = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    value["padding"] = {
        "strategy": {"Fixed": 50},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 1,
        "pad_type_id": 0,
        "pad_token": "<pad>",
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(value), "utf-8")
    plain = nllb_text(nllb)
    cutting = load_text(tmp_path, JSON, plain.vocabulary, "en")
    assert cutting.encode(TEXTS[1]) == plain.encode(TEXTS[1])


def test_identity_tells_files_and_vocabularies_apart(spm_directory: Path, nllb: Path) -> None:
    vocabulary = shared_vocabulary()
    one = load_text(spm_directory, SPM, vocabulary, "en")
    again = load_text(spm_directory, SPM, list(vocabulary), "ru")
    assert one.identity == again.identity
    other_words = load_text(spm_directory, SPM, [*vocabulary[:4], *reversed(vocabulary[4:])], "en")
    (spm_directory / "some.spm").write_bytes(pretrained_models.subwords(0))
    other_file = load_text(spm_directory, SPM, vocabulary, "en")
    assert len({one.identity, other_words.identity, other_file.identity, nllb_text(nllb).identity}) == 4


@pytest.mark.parametrize("content", [b"", b"no model", pretrained_models.subwords()[:3000]])
def test_a_damaged_sentencepiece_model_is_one_clear_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "some.spm").write_bytes(content)
    with pytest.raises(CadecError, match=r"some\.spm is not a SentencePiece model"):
        load_text(tmp_path, SPM, shared_vocabulary(), "en")


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"\xff\xfe", b'{"model": 3}'])
def test_a_damaged_tokenizer_json_is_one_clear_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(CadecError, match=r"tokenizer\.json is (not a tokenizer|damaged)"):
        load_text(tmp_path, JSON, shared_vocabulary(), "en")


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_missing_file_is_one_clear_error(kind: str, tmp_path: Path) -> None:
    with pytest.raises(CadecError, match="gone is missing"):
        load_text(tmp_path, TextSettings(kind=kind, files=("gone",)), shared_vocabulary(), "en")


def test_an_unknown_kind_and_an_endless_vocabulary_are_errors(spm_directory: Path) -> None:
    with pytest.raises(CadecError, match="unknown kind of tokenizer: 'clay'"):
        load_text(spm_directory, TextSettings(kind="clay", files=()), shared_vocabulary(), "en")
    with pytest.raises(CadecError, match="has no end of a sentence"):
        load_text(spm_directory, SPM, ["a", "<unk>"], "en")
    with pytest.raises(CadecError, match="a tokenizer has one file"):
        load_text(spm_directory, dataclasses.replace(SPM, files=("some.spm",) * 2), shared_vocabulary(), "en")


def test_without_the_tokenizers_package_the_error_says_what_to_install(
    nllb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(CadecError) as caught:
        load_text(nllb, JSON, shared_vocabulary(), "en")
    assert "pip install 'cadec[huggingface]'" in caught.value.hint


# Moses and BPE

CODES = "#version: 0.2\nl o\nlo w</w>\ne r</w>\nn e\n"


@pytest.mark.parametrize(
    ("codes", "word", "pieces"),
    [
        (CODES, "low", ["low"]),
        (CODES, "lower", ["lo", "w", "er"]),  # lo w</w> needs the end of the word
        (CODES, "lolo", ["lo", "l", "o"]),  # the last o is o</w>
        (CODES, "newer", ["ne", "w", "er"]),
        (CODES, "x", ["x"]),
        # Before 0.2, the end was a piece of its own, to be merged like any other.
        ("#version: 0.1\nl o\nlo w\nlow </w>\n", "low", ["low"]),
        ("l o\nw </w>\n", "low", ["lo", "w"]),
        ("l o\nlo w</w>\n", "low", ["lo", "w"]),
        # fastBPE writes counts, no version, and means 0.2.
        ("l o 120\nlo w</w> 90\n", "low", ["low"]),
        # From the left where pairs overlap.
        ("#version: 0.2\na a\n", "aaaab", ["aa", "aa", "b"]),
        ("#version: 0.2\na a\n", "aaab", ["aa", "a", "b"]),
    ],
)
def test_bpe_merges_as_it_was_learnt(codes: str, word: str, pieces: list[str]) -> None:
    assert Bpe(codes).pieces(word) == pieces


@given(st.text(st.sampled_from("lower news"), min_size=1).map(lambda text: text.replace(" ", "x")))
def test_pieces_joined_are_the_word(word: str) -> None:
    assert "".join(Bpe(CODES).pieces(word)) == word


def test_bpe_is_what_another_implementation_does() -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    lines = [text for pair in pretrained_models.pairs() for text in pair]
    trainer = trainers.BpeTrainer(vocab_size=150, end_of_word_suffix="</w>", show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    bpe = Bpe("#version: 0.2\n" + "".join(f"{one} {other}\n" for one, other in merges))
    for word in {word for line in lines for word in line.split()} | {"lampolampo", "friendly", "estas"}:
        expected = [piece.removesuffix("</w>") for piece in tokenizer.encode(word).tokens]
        assert bpe.pieces(word) == expected


@pytest.mark.parametrize(
    "codes", ["", f"#version: 0.{'2' * 5000}\na b\n", "#version: 0.2\n", "a b c\nd e\n", "one\n", '{"a":1}']
)
def test_what_is_no_file_of_codes_is_one_clear_error(codes: str, tmp_path: Path) -> None:
    (tmp_path / "codes").write_text(codes, "utf-8")
    with pytest.raises(CadecError, match="is not a file of BPE codes"):
        load_text(tmp_path, TextSettings(kind="moses-bpe", files=("codes",)), shared_vocabulary(), "en")


def moses_text(directory: Path, sentences: list[str], options: dict[str, str], language: str = "en") -> Any:
    """A text whose vocabulary has every piece of some sentences."""
    (directory / "codes").write_text(CODES, "utf-8")
    settings = TextSettings(kind="moses-bpe", files=("codes",), options=options)
    empty: Any = load_text(directory, settings, ["</s>", "<unk>"], language)
    pieces = [piece for text in sentences for word in empty.words(text) for piece in empty._cut(word)]
    return load_text(directory, settings, ["</s>", "<unk>", *dict.fromkeys(pieces)], language)


@pytest.mark.parametrize(
    ("options", "sentence", "words", "back"),
    [
        ({}, "He's lower, isn't he?", "He 's lower , isn 't he ?", "He's lower, isn't he?"),
        ({}, "a & b < c", "a & b < c", "a & b < c"),
        ({"escape": "yes"}, "a & b", "a &amp; b", "a & b"),
        ({"split_dashes": "yes"}, "a well-known low", "a well @-@ known low", "a well-known low"),
        ({"lowercase": "yes"}, "The LOW one.", "the low one .", "the low one."),
        ({"normalise": "yes"}, "“low” – so", '" low " - so', '"low" - so'),
        ({"tokenise": "no"}, "low , new .", "low , new .", "low , new ."),
    ],
)
def test_moses_words_and_back(
    options: dict[str, str], sentence: str, words: str, back: str, tmp_path: Path
) -> None:
    text = moses_text(tmp_path, [sentence], options)
    assert text.words(sentence) == words.split()
    ids = text.encode(sentence)
    assert 1 not in ids
    assert text.decode([*ids, text.boundary, 1]) == back
    joined = " ".join(text.vocabulary[index] for index in ids)
    assert joined.replace("@@ ", "") == words


def test_moses_pieces_are_marked_and_shown(tmp_path: Path) -> None:
    text = moses_text(tmp_path, ["newer low"], {})
    ids = text.encode("newer low")
    assert [text.vocabulary[index] for index in ids] == ["ne@@", "w@@", "er", "low"]
    assert text.display_tokens(ids) == [" ne", "w", "er", " low"]
    assert text.decode(ids[:1]) == "ne"  # a word that was cut
    assert text.decode([]) == ""
    assert text.identity != moses_text(tmp_path, ["newer low"], {"lowercase": "yes"}).identity
    with pytest.raises(CadecError, match="must be yes or no"):
        moses_text(tmp_path, ["low"], {"escape": "perhaps"})


# Vocabularies of CTranslate2 directories


def test_vocabularies_are_read_as_ctranslate2_writes_and_wrote_them(tmp_path: Path) -> None:
    source, target = ["</s>", "<unk>", "a\u2028b", "▁c"], ["</s>", "<unk>", "д"]
    (tmp_path / "source_vocabulary.json").write_text(json.dumps(source), "utf-8")
    (tmp_path / "target_vocabulary.txt").write_text("\n".join(target) + "\n", "utf-8")
    assert read_vocabularies(tmp_path) == (source, target)
    (tmp_path / "source_vocabulary.json").unlink()
    (tmp_path / "source_vocabulary.txt").write_text("\n".join(source) + "\n", "utf-8")
    assert read_vocabularies(tmp_path) == (source, target)
    (tmp_path / "shared_vocabulary.json").write_text(json.dumps(target), "utf-8")
    assert read_vocabularies(tmp_path) == (target, target)


@pytest.mark.parametrize("content", [b"{}", b"[]", b"[1, 2]", b"["])
def test_a_damaged_or_missing_vocabulary_is_one_clear_error(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(CadecError, match="has no vocabulary"):
        read_vocabularies(tmp_path)
    (tmp_path / "shared_vocabulary.json").write_bytes(content)
    with pytest.raises(CadecError, match=r"shared_vocabulary\.json is not"):
        read_vocabularies(tmp_path)
    (tmp_path / "shared_vocabulary.json").unlink()
    (tmp_path / "shared_vocabulary.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(CadecError, match="not UTF-8"):
        read_vocabularies(tmp_path)


def test_marks_that_a_vocabulary_lacks_are_read_as_plain_ones() -> None:
    def encode(text: str) -> list[int]:
        return [0 if one in "“”’…—" else 1 for one in text]

    read = readable_marks(encode, 0)
    assert "“Wait…” he’d say—‘no’".translate(read) == "\"Wait...\" he'd say – ‘no'"
    assert not readable_marks(lambda text: [1], 0)
    assert not readable_marks(lambda text: [0], 0)


def test_a_sentence_with_marks_has_no_unknown_token(spm_directory: Path) -> None:
    text: TokenText = load_text(spm_directory, SPM, shared_vocabulary(), "en")
    unknown = shared_vocabulary().index("<unk>")
    assert unknown in text.encode("☃")
    assert text.encode("the captain doesn’t") == text.encode("the captain doesn't")
    assert unknown not in text.encode("the captain doesn’t")
