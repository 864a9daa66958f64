"""Placeholders: private-use characters that our models learn to copy, whatever they stand for.

No text has them, and Moses tokenises them as words. In training data they replace spans that both sides of a
pair have: a number, an address, a word in another script.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping

from cadec_cli.text.protected.spans import find_spans

PLACEHOLDERS = tuple(map(chr, range(0xE010, 0xE018)))


def with_placeholders(source: str, target: str, languages: tuple[str, str]) -> tuple[str, str] | None:
    """Replace the spans that both sides of a pair have exactly once; None if there are none.

    Which placeholders are used depends on a checksum of the pair, so a model can't predict them.
    """
    sides = (source, target)
    found = [
        Counter(span.text for span in find_spans(text, language))
        for text, language in zip(sides, languages, strict=True)
    ]
    shared = [text for text, count in found[0].items() if count == 1 and found[1][text] == 1]
    if not shared:
        return None
    first = zlib.crc32("\t".join(sides).encode("utf-8", "replace"))
    chosen = {
        text: PLACEHOLDERS[(first + number) % len(PLACEHOLDERS)]
        for number, text in enumerate(shared[: len(PLACEHOLDERS)])
    }
    masked = [_replace_spans(text, language, chosen) for text, language in zip(sides, languages, strict=True)]
    return masked[0], masked[1]


def _replace_spans(text: str, language: str, chosen: Mapping[str, str]) -> str:
    written = ""
    done = 0
    for span in find_spans(text, language):
        written += text[done : span.start] + chosen.get(span.text, span.text)
        done = span.end
    return written + text[done:]
