"""Converts models of other toolkits, and our own networks, into the formats that the engines run.

This is the package's interface: the bundle builder imports from here and from nowhere else in the package.
Torch and CTranslate2 are imported when a function is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cadec_cli.errors import CadecError, option
from converters.hub import HUB as HUB
from converters.request import FIT as FIT
from converters.request import VOCABULARIES as VOCABULARIES
from converters.request import Note as Note
from converters.request import PretrainedRequest as PretrainedRequest

if TYPE_CHECKING:
    from cadec_cli.models.transformer import Transformer
    from cadec_cli.text.token_text import TokenText
    from converters.language.huggingface import LanguageModelImport as LanguageModelImport
    from converters.language.no_context import Texts as Texts
    from converters.translation.base import NetworkImport as NetworkImport
    from converters.translation.base import TranslationImport as TranslationImport
    from converters.verify import Drift as Drift

# Increased when the same weights would be written differently: earlier conversions are then not reused.
CONVERTER_VERSION = 1


def open_translation(given: str, request: PretrainedRequest) -> TranslationImport:
    """Open another toolkit's translation model: a path, or a name on the hub."""
    from converters import detect

    return detect.open_translation(given, request)


def network_to_keep(found: TranslationImport) -> NetworkImport:
    """Return the model if its network can be kept for the C-aware beam; otherwise raise a CadecError."""
    from converters.translation.base import NetworkImport

    if not isinstance(found, NetworkImport):
        raise CadecError(
            f"only a translation model of Hugging Face can be kept for {option('search', 'beam')}",
            f"leave out {option('for-beam')}: rerank and lattice do not need it",
        )
    return found


def open_language(given: str, request: PretrainedRequest, language: str | None) -> LanguageModelImport:
    """Open a pretrained language model: a path, or a name on the hub. `language` is the one it will score."""
    from converters.language import huggingface
    from converters.language.no_context import TEXTS

    texts = huggingface.own_no_context(given) if request.no_context is None else None
    if texts is None:
        texts = no_context_texts(request.no_context or TEXTS, language)
    return huggingface.open_language_model(
        given, no_context=texts, template=request.template, note=request.note
    )


def fit_language_model(directory: Path, text: TokenText, language: str, note: Note) -> None:
    """Fit a D-LM in a bundle to the S-NMT that writes `text`; it predicts fewer tokens, and is faster."""
    from converters.language import fit
    from converters.language.fit import written_pieces

    fit.fit_language_model(directory, written_pieces(text), language, note)


def unfit_language_model(directory: Path) -> None:
    """Let a D-LM in a bundle predict all of its tokens."""
    from converters.language import fit

    fit.unfit_language_model(directory)


def open_tokenizer(given: str) -> tuple[str, str]:
    """Return a language model's tokenizer (the content of tokenizer.json) and its sentence boundary."""
    from converters.language import huggingface

    return huggingface.open_tokenizer(given)


def no_context_texts(choice: str, language: str | None) -> Texts:
    """Return the texts that stand for no context, by language; `choice` is the value of --no-context."""
    from converters.language import no_context

    return no_context.no_context_texts(choice, language)


def convert_network(
    network: Transformer,
    source_pieces: Sequence[str],
    target_pieces: Sequence[str],
    directory: Path,
    compute_type: str,
    probes: Sequence[tuple[Sequence[int], Sequence[int]]],
) -> Drift:
    """Write a translation network of ours for CTranslate2, and return how far the result is from torch."""
    from converters.own_networks import convert_translation_model

    return convert_translation_model(network, source_pieces, target_pieces, directory, compute_type, probes)


def check_network(
    network: Transformer, source_pieces: Sequence[str], target_pieces: Sequence[str], compute_type: str
) -> None:
    """Refuse a translation network of ours that can't be converted."""
    from converters.own_networks import check_conversion

    check_conversion(network, source_pieces, target_pieces, compute_type)
