"""Small files in the formats of OPUS, for the tests."""

import gzip
from pathlib import Path

HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'


def clock(seconds: float) -> str:
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02},{milliseconds:03}"


def stamp(name: str, seconds: float) -> str:
    return f'<time id="{name}" value="{clock(seconds)}" />'


def sentence(number: int, text: str, start: float, end: float) -> str:
    words = "".join(f'<w id="{number}.{i}">{word}</w>\n' for i, word in enumerate(text.split(), 1))
    return f'<s id="{number}">\n{stamp(f"T{number}S", start)}\n{words}{stamp(f"T{number}E", end)}\n</s>\n'


def film(*sentences: str) -> str:
    return f'{HEAD}<document id="1">\n{"".join(sentences)}<meta><year>2001</year></meta>\n</document>\n'


def put(root: Path, name: str, content: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    return path
