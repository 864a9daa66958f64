"""The searches there are: what each is called, and what it needs. They are written in decoding/search/.

A plain table: bundles, help texts and code all read it. `builder` names a function there, as entry points do:
nothing heavy is imported to tell what there is. A function itself will do as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cadec_cli.errors import CadecError

LISTS = "lists"  # n-best lists, from a translation model or from anywhere
STEPS = "steps"  # a translation model and, if there is a D-LM, that too, step by step
PASSAGES = "passages"  # a translation model that reads several sentences


@dataclass(frozen=True)
class SearchKind:
    """A search as the table has it."""

    help: str
    needs: str
    builder: str | Callable[..., Any]
    size: str = "nbest"  # the option that says how many hypotheses a list has
    reads_context: bool = True  # of the target side, with the D-LM
    is_greedy: bool = False  # each sentence by itself: none waits for what comes after it


SEARCHES: dict[str, SearchKind] = {
    "rerank": SearchKind(
        "the best of each n-best list", LISTS, "cadec_cli.decoding.search.lattice:reranking", is_greedy=True
    ),
    "lattice": SearchKind(
        "the best path through the lists", LISTS, "cadec_cli.decoding.search.lattice:lattice"
    ),
    "beam": SearchKind(
        "S-NMT and D-LM step by step", STEPS, "cadec_cli.decoding.search.beam:beam", "beam", is_greedy=True
    ),
    "sentence": SearchKind(
        "the S-NMT alone, no context",
        LISTS,
        "cadec_cli.decoding.search.lattice:sentence_level",
        "beam",
        reads_context=False,
        is_greedy=True,
    ),
    "doc-nmt": SearchKind(
        "a DocTransformer, which reads the source sentences before",
        PASSAGES,
        "cadec_cli.decoding.search.passages:doc_nmt",
        "beam",
        reads_context=False,
    ),
    "2-to-2": SearchKind(
        "two sentences translated as one",
        PASSAGES,
        "cadec_cli.decoding.search.passages:two_to_two",
        "beam",
        reads_context=False,
    ),
    "repair": SearchKind(
        "DocRepair after the S-NMT",
        PASSAGES,
        "cadec_cli.decoding.search.passages:repair",
        "beam",
        reads_context=False,
    ),
}


def search_kind(name: str) -> SearchKind:
    """Look a search up by its name."""
    if name not in SEARCHES:
        raise CadecError(f"no search {name!r}", f"there are {', '.join(SEARCHES)}")
    return SEARCHES[name]
