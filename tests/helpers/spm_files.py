"""What is inside a SentencePiece model, without protobuf."""


def precompiled_charsmap(model: bytes) -> bytes:
    """The normalisation table of a SentencePiece model: field 2 of its field 3, in protobuf's encoding."""
    return _field(_field(model, 3), 2)


def _field(message: bytes, wanted: int) -> bytes:
    position = 0

    def number() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while position < len(message):
        key = number()
        kind = key & 7
        if kind == 0:
            number()
        elif kind == 2:
            length = number()
            if key >> 3 == wanted:
                return message[position : position + length]
            position += length
        else:
            position += 8 if kind == 1 else 4
    raise ValueError(f"no field {wanted}")
