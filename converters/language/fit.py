"""Fits a pretrained D-LM to the S-NMT of its bundle: fewer tokens to predict, and int8 weights on disk.

The int8 weights are loaded again and compared with the float network on the same tokens. Where they change
too much, or the architecture can't use them, the file has the tokens only, and weights are rounded at
loading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from cadec_cli.arrays import Floats
from cadec_cli.engines.transformers_lm import (
    MAX_LOST,
    Probes,
    TransformersLanguageModel,
    check_vocabulary,
    choose_scoring,
)
from cadec_cli.models.fitted_lm import load_int8, write_int8, write_tokens
from cadec_cli.models.huggingface import load_network
from cadec_cli.models.pretrained_settings import (
    FITTED,
    LANGUAGE_SETTINGS,
    LanguageSettings,
    read_language_settings,
    write_settings,
)
from cadec_cli.text.tokenizers.fitted_vocabulary import fitted_vocabulary
from cadec_cli.text.tokenizers.lines import PROBES, LineText
from converters.request import Note

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
        write_int8(path, network, _texts(text, settings, language))
        lost = _lost(directory, model, probes, expected)
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


def _texts(text: LineText, settings: LanguageSettings, language: str) -> list[list[int]]:
    """Texts to learn from how large the inputs of linears become."""
    lines = [*settings.no_context.get(language, ()), PROBES[: len(PROBES) // 2], PROBES[len(PROBES) // 2 :]]
    return [[text.start, *text.encode_lines(some), text.boundary][: settings.positions] for some in lines]
