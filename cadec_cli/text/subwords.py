"""SentencePiece unigram models: tokenised text to ids and back, with the project's fixed special ids."""

import io
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import sentencepiece

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.read import read_errors
from cadec_cli.text.moses import MARKS
from cadec_cli.text.protected.spans import PLACEHOLDERS

# The ids that have the same meaning in every vocabulary of the project.


# EOS ends a sentence and is the D-LM's sentence boundary.
PAD, UNK, BOS, EOS = range(4)
SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")


# SentencePiece models in files of any toolkit.


def open_sentencepiece(serialised: bytes, origin: str) -> sentencepiece.SentencePieceProcessor:
    """Open a model; if it is empty, damaged or of another format, a CadecError names its origin."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        if not serialised:
            raise RuntimeError("it is empty")
        processor.LoadFromSerializedProto(serialised)
        for index in range(processor.GetPieceSize()):
            processor.IdToPiece(index)
    except (RuntimeError, OSError, UnicodeDecodeError):
        raise CadecError(
            f"{origin} is not a SentencePiece model, or is damaged",
            "the file may be truncated or of another format",
        ) from None
    return processor


DEFAULT_VOCABULARY_SIZE = 16_000


class Subwords:
    """A trained SentencePiece model."""

    def __init__(self, serialised: bytes, origin: str = "the subword model") -> None:
        self.serialised = serialised
        self._processor = pieces = open_sentencepiece(serialised, origin)
        if pieces.GetPieceSize() < 4 or [pieces.IdToPiece(i) for i in range(4)] != list(SPECIAL_PIECES):
            raise CadecError(
                f"{origin} has other special pieces than {' '.join(SPECIAL_PIECES)} = 0 1 2 3",
                "train it with `cadec train tokenizer`",
            )

    @classmethod
    def load(cls, path: Path) -> "Subwords":
        """Load a model file."""
        with read_errors(path):
            serialised = path.read_bytes()
        return cls(serialised, str(path))

    def __len__(self) -> int:
        return int(self._processor.GetPieceSize())

    @cached_property
    def pieces(self) -> list[str]:
        """The vocabulary, in the order of the ids."""
        return [self._processor.IdToPiece(index) for index in range(len(self))]

    def encode(self, text: str) -> list[int]:
        """Turn a tokenised sentence into ids, without EOS."""
        return list(self._processor.EncodeAsIds(text))

    def decode(self, ids: Sequence[int]) -> str:
        """Turn ids back into a tokenised sentence; special ids are passed over."""
        return str(
            self._processor.DecodeIds([index for index in map(int, ids) if index >= len(SPECIAL_PIECES)])
        )


def train_subwords(
    sentences: Iterable[str],
    *,
    vocabulary_size: int = DEFAULT_VOCABULARY_SIZE,
    byte_fallback: bool = True,
    placeholders: bool = False,
    max_sentences: int = 2_000_000,
    seed: int = 1,
) -> Subwords:
    """Train a unigram model on tokenised sentences.

    With byte_fallback, 256 pieces stand for bytes, so that any character survives the round trip. With
    placeholders, some pieces stand for text that a translation model copies.
    A corpus with too few pieces for `vocabulary_size` gives a smaller vocabulary.
    """
    sentencepiece.set_random_generator_seed(seed)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="unigram",
            vocab_size=vocabulary_size,
            hard_vocab_limit=False,
            character_coverage=0.9998,
            byte_fallback=byte_fallback,
            normalization_rule_name="identity",
            input_sentence_size=max_sentences,
            shuffle_input_sentence=True,
            max_sentence_length=16_384,
            user_defined_symbols=[*MARKS, *(PLACEHOLDERS if placeholders else ())],
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            num_threads=2,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise CadecError(
            f"SentencePiece can't train {vocabulary_size:,} pieces on this text: {error}",
            f"give it more text, or a smaller {option('vocab-size')}",
        ) from None
    return Subwords(model.getvalue())
