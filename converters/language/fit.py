"""Fits a pretrained D-LM to the S-NMT of its bundle: fewer tokens to predict, and int8 weights on disk.

A pretrained language model of many languages has a token for every script and every programming language. As
a D-LM it scores one S-NMT's translations. Its softmax over the tokens that such translations are made of is a
language model in its own right, and far smaller.

The int8 weights are loaded again and compared with the float network on the same tokens. Where they change
too much, or the architecture can't use them, the file has the tokens only, and weights are rounded at
loading.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from cadec_cli.arrays import Floats
from cadec_cli.engines.transformers_lm import (
    MAX_LOST,
    TOLERANCE,
    Probes,
    TransformersLanguageModel,
    check_vocabulary,
    choose_scoring,
)
from cadec_cli.errors import CadecError
from cadec_cli.models.fitted_lm import load_int8, write_int8, write_tokens
from cadec_cli.models.gated_decoder import DecoderShape
from cadec_cli.models.huggingface import Network, load_network
from cadec_cli.models.pretrained_settings import (
    FITTED,
    LANGUAGE_SETTINGS,
    LanguageSettings,
    read_language_settings,
    write_settings,
)
from cadec_cli.text.token_text import TokenText
from cadec_cli.text.tokenizers.line_text import PROBES, LineText
from converters.request import Note

# A byte, or a part of a character that is not complete, as `display_tokens` shows it.
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
_SPACE = "\u2581"


def written_pieces(text: TokenText) -> list[str]:
    """The pieces that a translation model's target side is written with, a space where a word begins."""
    pieces: Sequence[str] | None = getattr(text, "pieces", None)  # without those of the other side
    if pieces is not None:
        return [piece.replace(_SPACE, " ") for piece in pieces]
    return text.display_tokens(range(len(text.vocabulary)))


def fitted_vocabulary(text: LineText, pieces: Iterable[str]) -> list[int]:
    """The tokens of `text` that texts made of these pieces need, in rising order.

    These are the boundary, all tokens without letters, and those that write a piece: as it is, within a line,
    at the beginning of one, with a capital and without.
    """
    shown = text.display_tokens(range(len(text)))
    special = text.special_tokens
    tokens = {index for index, token in enumerate(shown) if not _has_letters(token)} - special
    forms = {form for piece in pieces for form in _forms(piece)}
    tokens.update(text.tokens_of_pieces(sorted(forms)) - special)
    tokens.add(text.boundary)
    return sorted(tokens)


def _has_letters(token: str) -> bool:
    """Tell whether a token has letters, or is a part of a character between other ones."""
    if _BYTE.fullmatch(token):
        return False
    return any(unicodedata.category(char)[0] == "L" for char in _BYTE.sub("x", token))


def _forms(piece: str) -> set[str]:
    word = piece.strip()
    if not word:
        return set()
    capital = word[:1].upper() + word[1:]
    return {piece, word, f" {word}", capital, f" {capital}"}


# More than this share of all tokens is no gain.
_MOST = 0.7


def fit_language_model(directory: Path, pieces: Sequence[str], language: str, note: Note) -> None:
    """Write the fitted file of a D-LM, and its settings anew.

    `pieces` are those that the S-NMT writes, a space where a word begins. A model that would need most of its
    tokens anyway stays as it is.
    """
    unfit_language_model(directory)
    settings = read_language_settings(directory)
    text = LineText.load(directory / "tokenizer.json", boundary=settings.boundary, start=settings.start)
    network = load_network(directory)
    tokens = fitted_vocabulary(text, pieces)
    if len(tokens) > _MOST * network.vocabulary:
        return
    network.fit(torch.tensor(tokens))
    model = TransformersLanguageModel(network, text, positions=settings.positions)
    check_vocabulary(model, settings.origin)
    probes = Probes.of(model)
    choose_scoring(model, probes, note, in_parts=True)
    path = directory / FITTED
    lost = None
    if network.attends_in_parts:
        expected = probes.scores(model)
        rows = _texts(text, settings, language)
        write_int8(path, network, rows)
        lost = _lost(directory, model, probes, expected)
        if lost is not None:
            _run_as_ours(directory, model, probes, network, rows)
    if lost is None:
        write_tokens(path, tokens)
    write_settings(directory / LANGUAGE_SETTINGS, replace(settings, vocabulary=len(tokens)))


def unfit_language_model(directory: Path) -> None:
    """Remove the fitted file of a D-LM, so that it predicts all tokens."""
    settings = read_language_settings(directory)
    (directory / FITTED).unlink(missing_ok=True)
    if settings.vocabulary is not None:
        write_settings(directory / LANGUAGE_SETTINGS, replace(settings, vocabulary=None))


def _lost(
    directory: Path, model: TransformersLanguageModel, probes: Probes, expected: Floats
) -> float | None:
    """How much the int8 weights change log p per token, on average; None if that is too much."""
    try:
        network = load_int8(directory)
        if network is None:  # this CPU computes other sums
            return None
        model.network = network
        lost = float(np.abs(probes.scores(model) - expected).mean())
    except Exception:  # an architecture that does more with its linears than call them can fail in any way
        return None
    return lost if lost <= MAX_LOST else None


def _run_as_ours(
    directory: Path,
    model: TransformersLanguageModel,
    probes: Probes,
    network: Network,
    rows: Sequence[Sequence[int]],
) -> None:
    """Write the int8 weights for a network of ours, which starts sooner, if it gives the same scores.

    `model` has the int8 network of transformers, `network` is the float one.
    """
    shape = DecoderShape.of(network.model)
    if shape is None:
        return
    expected = probes.scores(model)
    write_int8(directory / FITTED, network, rows, shape)
    try:
        own = load_int8(directory)
        assert own is not None, "int8 weights were loaded just before"
        model.network = own
        if float(np.abs(probes.scores(model) - expected).max()) <= TOLERANCE:
            return
    except CadecError:
        pass  # it has other parts
    write_int8(directory / FITTED, network, rows)


def _texts(text: LineText, settings: LanguageSettings, language: str) -> list[list[int]]:
    """Texts to learn from how large the inputs of linears become."""
    lines = [*settings.no_context.get(language, ()), PROBES[: len(PROBES) // 2], PROBES[len(PROBES) // 2 :]]
    return [[text.start, *text.encode_lines(some), text.boundary][: settings.positions] for some in lines]
