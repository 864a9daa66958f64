"""How people address each other, as sentences: a few per language and register that say little else.

Read before a document they make a language model expect the same address in it. A table for the languages
that we know; whoever has models of another can bring a file of the same form.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.fs.read import read_json

REGISTERS = ("formal", "informal")

# language → register → sentences
Seeds = Mapping[str, Mapping[str, tuple[str, ...]]]

# All of them are read before every document, so there can't be many.
_MOST, _LONGEST = 100, 1000

_OURS = Path(__file__).with_name("formality.json")


def seed_sentences(register: str, language: str, more: Path | None = None) -> tuple[str, ...]:
    """Sentences of a register in a language (its shortest code); those of the file `more` go before ours."""
    known = {**_ours(), **(read_seeds(more) if more is not None else {})}
    if language not in known:
        raise UsageError(
            f"there are no sentences that tell what is {register} in {language!r}",
            f"there are some for {', '.join(sorted(known))}; "
            f"{option('after')} FILE takes sentences of your own as context",
        )
    return known[language][register]


def read_seeds(path: Path) -> Seeds:
    """A table from a file; one of another form is a CadecError."""
    data = read_json(path)
    if not (isinstance(data, dict) and all(map(_fits, data.values()))):
        raise CadecError(
            f"{path} is no table of formality",
            f'{{"ru": {{"formal": ["…"], "informal": ["…"]}}}} is one; up to {_MOST} sentences each',
        )
    return {
        language: {register: tuple(sentences[register]) for register in REGISTERS}
        for language, sentences in data.items()
    }


@cache
def _ours() -> Seeds:
    return read_seeds(_OURS)


def _fits(sentences: Any) -> bool:
    """Tell whether there is text for every register."""
    return isinstance(sentences, dict) and all(
        isinstance(sentences.get(register), list)
        and 0 < len(sentences[register]) <= _MOST
        and all(
            isinstance(text, str) and text.strip() and len(text) <= _LONGEST for text in sentences[register]
        )
        for register in REGISTERS
    )
