"""SentencePiece models that are damaged: refused when they are opened, or good for every text."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.subwords import Subwords
from cadec_cli.text.tokenizers.line_text import read_tokenizer
from cadec_cli.text.tokenizers.vocabulary import SentencePieceText, Vocabulary
from converters.translation.tokenizer_files import sentencepiece_pieces

MODEL = (Path(__file__).parents[2] / "cadec_cli" / "embedded" / "target" / "subwords.model").read_bytes()


def broken_piece() -> bytes:
    """The model with a piece that is not UTF-8."""
    at = MODEL.index("\u2581не".encode())
    return MODEL[: at + 4] + b"\xff" + MODEL[at + 5 :]


DAMAGED = [b"", b"\0" * 64, b"no model", MODEL[: len(MODEL) // 2], MODEL[100:], broken_piece()]


@pytest.mark.parametrize("content", DAMAGED)
def test_every_reader_refuses_them(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.model"
    path.write_bytes(content)
    vocabulary = Vocabulary.of(["</s>", "<unk>"], {})
    for read in (
        Subwords.load,
        lambda p: SentencePieceText(p, vocabulary),
        lambda p: [*sentencepiece_pieces(p)],
    ):
        with pytest.raises(CadecError, match=r"a\.model is not a SentencePiece model, or is damaged"):
            read(path)


@given(st.lists(st.tuples(st.integers(0, len(MODEL) - 1), st.integers(0, 7)), min_size=1, max_size=4))
def test_what_is_opened_reads_every_text(flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(MODEL)
    for place, bit in flips:
        damaged[place] ^= 1 << bit
    try:
        subwords = Subwords(bytes(damaged))
    except CadecError:
        return
    ids = subwords.encode("привет , как дела ? \u2581 \x00 😀")
    assert all(0 <= index < len(subwords) for index in ids)
    subwords.decode(range(len(subwords)))
    assert len(subwords.pieces) == len(subwords)


@pytest.mark.parametrize("name", ["subwords.model", "truecaser.json", "pipeline.json"])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"[" * 100_000, b'{"lowered": 1}', None])
def test_a_pipeline_with_a_damaged_file_is_an_error(
    name: str, content: bytes | None, english: TextPipeline, tmp_path: Path
) -> None:
    english.save(tmp_path / "en")
    path = tmp_path / "en" / name
    path.unlink()
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(CadecError, match=r"en"):
        TextPipeline.load(tmp_path / "en")


def test_a_tokenizer_that_lacks_its_unknown_token_is_refused() -> None:
    whole = (
        '{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, '
        '"pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null, '
        '"model": {"type": "WordLevel", "vocab": {"<unk>": 0, "a": 1}, "unk_token": "<unk>"}}'
    )
    pytest.importorskip("tokenizers")
    assert read_tokenizer(whole, "whole").encode("a b").ids == [1, 0]
    with pytest.raises(CadecError, match=r"t.json is not a tokenizer of the tokenizers library"):
        read_tokenizer(whole.replace('"unk_token": "<unk>"', '"unk_token": "<unq>"'), "t.json")
