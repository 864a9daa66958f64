"""One file per search; the table of searches is method.searches.SEARCHES.

A search has a method `run(waves, state)`. A wave holds the next few n-best lists, sentences or passages of
every document. Choices are yielded as soon as they are made, with the number of their document, and in the
order of that document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from cadec_cli.decoding.state import State
from cadec_cli.decoding.translation import TranslatedPart
from cadec_cli.decoding.units import Wave
from cadec_cli.engines.context_free_terms import build_terms
from cadec_cli.engines.protocols import AnyTerm, Models, check_temperatures
from cadec_cli.errors import CadecError, option
from cadec_cli.extensions import load
from cadec_cli.method.options import TranslationOptions
from cadec_cli.method.searches import search_kind


class Search(Protocol):
    """Chooses translations, sentence i of every document at once."""

    def run(self, waves: Iterable[Wave[Any]], state: State) -> Iterator[tuple[int, TranslatedPart]]:
        """Choose for every piece of every wave; `state`, from which it starts, is kept up to date."""
        ...


def build(models: Models, options: TranslationOptions, extra_terms: tuple[AnyTerm, ...] = ()) -> Search:
    """Build the search that the options name. Only the models that it needs are loaded."""
    if options.weighted_objective.uses_lm and models.language is None:
        raise CadecError(
            "this bundle has no document language model",
            f"use {option('search', 'sentence')} or {option('objective', 'sentence')}",
        )
    if options.weighted_objective.uses_lm:
        check_temperatures(models.language, options.scoring_options.temperatures)
    terms = build_terms(models, options.weighted_objective, extra_terms, options.term)
    search: Search = load(search_kind(options.search).builder)(models, options, terms)
    return search
