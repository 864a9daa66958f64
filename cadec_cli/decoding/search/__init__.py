"""One file per search; the table of them is method.searches.SEARCHES.

A search is something with `run(waves, state)`. Waves are the next few n-best lists, or sentences, of every
document; what is chosen is yielded at once, with the number of its document, in the order of each.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from cadec_cli.decoding.state import State
from cadec_cli.decoding.translation import TranslatedPart
from cadec_cli.decoding.waves import Wave
from cadec_cli.engines.context_free_terms import context_free_terms
from cadec_cli.engines.protocols import ContextFreeTerm, Models
from cadec_cli.errors import CadecError, option
from cadec_cli.method.options import TranslationOptions
from cadec_cli.method.searches import search_kind


class Search(Protocol):
    """Goes through documents in step and chooses."""

    def run(self, waves: Iterable[Wave[Any]], state: State) -> Iterator[tuple[int, TranslatedPart]]:
        """Choose for every piece of every wave; `state` is where it stands, and is kept up to date."""
        ...


def build(
    models: Models, options: TranslationOptions, extra_terms: tuple[ContextFreeTerm, ...] = ()
) -> Search:
    """The search that the options name, with the models that it needs; no others are loaded."""
    if options.weighted_objective.uses_lm and models.language is None:
        raise CadecError(
            "this bundle has no document language model",
            f"use {option('search', 'sentence')} or {option('objective', 'sentence')}",
        )
    builder = search_kind(options.search).builder
    if isinstance(builder, str):
        module, _, name = builder.partition(":")
        builder = getattr(importlib.import_module(module), name)
    search: Search = builder(
        models, options, context_free_terms(models, options.weighted_objective, extra_terms)
    )
    return search
