"""Seed sentences per language and register: they show how people address each other, and little else.

A language model that reads them before a document expects the same form of address in it. There is a table
for the languages that we know; for models of other languages, users can provide a file of the same form.
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

# What our seed sentences say. English has one form of address, and so no seeds of its own.
_ENGLISH = {
    "formal": ("Excuse me, may I help you?", "Thank you.", "Please sit down."),
    "informal": ("Where are you?", "I'm waiting for you.", "You know that I like you."),
}

# All seed sentences are read before every document, so there can't be many.
_MOST, _LONGEST = 100, 1000

_OURS = Path(__file__).with_name("formality.json")


def seed_sentences(register: str, language: str, more: Path | None = None) -> tuple[str, ...]:
    """The seed sentences of a register in a language (its shortest code); a file `more` overrides ours."""
    known = {**_ours(), **(read_seeds(more) if more is not None else {})}
    if language not in known:
        raise UsageError(
            f"no seed sentences for the register {register} in {language!r}",
            f"there are seed sentences for {', '.join(sorted(known))}; "
            f"{option('after')} FILE reads your own sentences as context",
        )
    return known[language][register]


def seed_sources(register: str, language: str) -> tuple[str, ...]:
    """Our seed sentences of a register in another language, of which they are translations, or nearly so.

    There are none in a language that we have no seeds for, except English.
    """
    return _ENGLISH[register] if language == "en" else _ours().get(language, {}).get(register, ())


def read_seeds(path: Path) -> Seeds:
    """Read a table of seed sentences from a file; a CadecError if the file has another form."""
    data = read_json(path)
    if not (isinstance(data, dict) and all(map(_fits, data.values()))):
        raise CadecError(
            f"{path} is not a table of seed sentences",
            f'expected {{"ru": {{"formal": ["…"], "informal": ["…"]}}}}, up to {_MOST} sentences each',
        )
    return {
        language: {register: tuple(sentences[register]) for register in REGISTERS}
        for language, sentences in data.items()
    }


@cache
def _ours() -> Seeds:
    return read_seeds(_OURS)


def _fits(sentences: Any) -> bool:
    """Tell whether every register has valid sentences."""
    return isinstance(sentences, dict) and all(
        isinstance(sentences.get(register), list)
        and 0 < len(sentences[register]) <= _MOST
        and all(
            isinstance(text, str) and text.strip() and len(text) <= _LONGEST for text in sentences[register]
        )
        for register in REGISTERS
    )
