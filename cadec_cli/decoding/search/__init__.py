"""One file per search; the table of them is method.searches.SEARCHES.

A search is something with `run(waves, state)`. Waves are the next few n-best lists, or sentences, of every
document; what is chosen is yielded at once, with the number of its document, in the order of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from cadec_cli.decoding.state import State
from cadec_cli.decoding.translation import TranslatedPart
from cadec_cli.decoding.waves import Wave
from cadec_cli.engines.context_free_terms import build_terms
from cadec_cli.engines.protocols import AnyTerm, Models
from cadec_cli.errors import CadecError, option
from cadec_cli.extensions import load
from cadec_cli.method.options import TranslationOptions
from cadec_cli.method.searches import search_kind


class Search(Protocol):
    """Goes through documents in step and chooses."""

    def run(self, waves: Iterable[Wave[Any]], state: State) -> Iterator[tuple[int, TranslatedPart]]:
        """Choose for every piece of every wave; `state` is where it stands, and is kept up to date."""
        ...


def build(models: Models, options: TranslationOptions, extra_terms: tuple[AnyTerm, ...] = ()) -> Search:
    """The search that the options name, with the models that it needs; no others are loaded."""
    if options.weighted_objective.uses_lm and models.language is None:
        raise CadecError(
            "this bundle has no document language model",
            f"use {option('search', 'sentence')} or {option('objective', 'sentence')}",
        )
    terms = build_terms(models, options.weighted_objective, extra_terms, options.term)
    search: Search = load(search_kind(options.search).builder)(models, options, terms)
    return search
