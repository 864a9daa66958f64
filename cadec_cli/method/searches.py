"""The table of searches: the name of each, and what it needs. They are implemented in decoding/search/.

Bundles, help texts and code all read this table. `builder` names a function as entry points do, so that
nothing heavy is imported to list the searches; it may also be the function itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cadec_cli.errors import CadecError

LISTS = "lists"  # n-best lists, from a translation model or from a file
STEPS = "steps"  # a translation model that can be stepped, and the D-LM if there is one
PASSAGES = "passages"  # a translation model that reads several sentences


@dataclass(frozen=True)
class SearchKind:
    """A row of the table of searches."""

    help: str
    needs: str
    builder: str | Callable[..., Any]
    size: str = "nbest"  # the option that sets the number of hypotheses per list
    reads_context: bool = True  # on the target side, with the D-LM
    is_greedy: bool = False  # a choice never depends on later sentences


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
        "a DocTransformer, which reads preceding source sentences",
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
    """Look up a search by name."""
    if name not in SEARCHES:
        raise CadecError(f"no search {name!r}", f"there are {', '.join(SEARCHES)}")
    return SEARCHES[name]
