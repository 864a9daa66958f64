"""SentencePiece models as files have them, of whatever toolkit: opened, or refused.

The library believes what it is given. A flipped bit can leave a model that loads, and fails, in the middle of
a translation, at the first sentence that has a certain piece: so all pieces are looked at here.
"""

import sentencepiece

from cadec_cli.errors import CadecError


def open_sentencepiece(serialised: bytes, origin: str) -> sentencepiece.SentencePieceProcessor:
    """A model; one that is empty, damaged or something else is a CadecError that names its origin."""
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
