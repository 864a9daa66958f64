"""What can happen to a file of lines, after which it is no longer what was written."""

import random
from collections.abc import Callable

Damage = Callable[[random.Random, bytes], bytes]


def bit_flip(rng: random.Random, data: bytes) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]


def bit_flips(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.randint(2, 12)):
        data = bit_flip(rng, data)
    return data


def lines_deleted(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    first = rng.randrange(1, len(lines))
    del lines[first : first + rng.randint(1, 5)]
    return b"".join(lines)


def line_doubled(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    lines.insert(rng.randrange(1, len(lines) + 1), rng.choice(lines))
    return b"".join(lines)


def lines_swapped(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    one, other = rng.randrange(1, len(lines)), rng.randrange(1, len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def lines_shuffled(rng: random.Random, data: bytes) -> bytes:
    header, *lines = data.splitlines(keepends=True)
    rng.shuffle(lines)
    return header + b"".join(lines)


def cut_out(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randint(1, 3000) :]


def cut_off(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def zeros(rng: random.Random, data: bytes) -> bytes:
    start, length = rng.randrange(len(data)), rng.randint(1, 600)
    return data[:start] + bytes(min(length, len(data) - start)) + data[start + length :]


def garbage_after(rng: random.Random, data: bytes) -> bytes:
    return data + rng.randbytes(rng.randint(1, 500)) + rng.choice([b"", b"\n", b"[" * 99999 + b"\n"])


def carriage_returns(rng: random.Random, data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


DAMAGES: list[Damage] = [
    *(bit_flip, bit_flip, bit_flips, lines_deleted, line_doubled, lines_swapped, lines_shuffled),
    *(cut_out, cut_off, zeros, garbage_after, carriage_returns),
]
