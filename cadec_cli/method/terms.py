"""Terms: the named quantities of a hypothesis that objectives add up, and the table of what computes them.

Every search computes nmt and the D-LM's terms itself. All other terms are rows of TERMS, ours or those of
installed packages, or objects that the caller passes. A term that was not computed is absent, never 0.

To add a term, write something with `names` and either `terms(lists)`, if it needs no context, or
`terms_after(lists, contexts)`; enter a row here, or in another package under the entry-point group
"cadec.terms"; and write an objective that uses it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.extensions import Registry
from cadec_cli.fs.read import read_data
from cadec_cli.method.objectives import (
    ADDRESS,
    BACK,
    DEFECTS,
    FIT,
    GLOSSARY,
    LENGTH,
    LM_TERMS,
    MANNER,
    NAMES,
    NMT,
    Objective,
)

if TYPE_CHECKING:
    from cadec_cli.arrays import Floats

# name → (hypotheses,), or (temperatures, hypotheses) if the term is a D-LM's
Terms = Mapping[str, "Floats"]


@dataclass(frozen=True)
class Scoring:
    """An objective at one of the D-LM's temperatures."""

    objective: Objective
    index: int = 0  # of the temperature

    def at(self, terms: Terms) -> dict[str, Floats]:
        """The terms at this temperature."""
        return {name: values if values.ndim == 1 else values[self.index] for name, values in terms.items()}

    def scores(self, terms: Terms) -> Floats:
        """The score of every hypothesis."""
        scores: Floats = self.objective.score(self.at(terms))
        return scores


# Models that a term may need, by their name in `engines.protocols.Models`, and what messages call them.
NEEDS = {"language": "a D-LM", "backward": "a backward model"}


@dataclass(frozen=True)
class TermOption:
    """An option of a term. It is given as text by its full name, such as glossary.file.

    `parse` turns the text into the value and raises a ValueError if it can't. The content of a file (`Path`)
    is part of what a result depends on. An option without a default has to be given.
    """

    name: str
    help: str
    parse: Callable[[str], Any] = str
    default: Any = None


@dataclass(frozen=True)
class Term:
    """A row of the table of terms.

    `build(models, options)` returns what computes it (a `ContextFreeTerm` or a `ContextTerm` of
    `engines.protocols`), given the values of all its options by name. It may be named by a string such as
    "package.module:function". `needs` are the models that must be there, names from NEEDS.
    """

    name: str
    help: str
    build: str | Callable[[Any, Mapping[str, Any]], Any]
    options: tuple[TermOption, ...] = ()
    needs: tuple[str, ...] = ()
    reads_context: bool = False  # `build` returns a `ContextTerm`


_OWN = (
    Term(
        BACK,
        "log p(x | y) of the source, by the backward model",
        "cadec_cli.engines.context_free_terms:backward_scores",
        needs=("backward",),
    ),
    Term(
        LENGTH,
        "number of tokens of the D-LM",
        "cadec_cli.engines.context_free_terms:lengths",
        needs=("language",),
    ),
    Term(
        ADDRESS,
        "whether it addresses people as the sentences before do",
        "cadec_cli.engines.address_votes:address_votes",
        reads_context=True,
    ),
    Term(
        FIT,
        "minus the characters for which its subtitles have no room",
        "cadec_cli.engines.context_free_terms:overflow",
    ),
)
# Terms that every search computes itself, or that protection, a glossary, names and a manner add.
_COMPUTED_ELSEWHERE = (NMT, *LM_TERMS, DEFECTS, GLOSSARY, NAMES, MANNER)

TERMS: Registry[Term] = Registry("cadec.terms", Term, {one.name: one for one in _OWN})


def rows_of(objective: Objective) -> list[Term]:
    """The rows of the table for the terms of an objective; terms that have none are left out."""
    return [TERMS[name] for name in objective.terms if name not in _COMPUTED_ELSEWHERE and name in TERMS]


def parse_term_options(given: Mapping[str, str] | Iterable[str] | None) -> dict[str, str]:
    """Options of terms by name, as text, from `["glossary.file=words.tsv"]`, a mapping, or None.

    An unknown name or an invalid value is a CadecError.
    """
    if given is None:
        return {}
    options = dict(given) if isinstance(given, Mapping) else dict(map(_split_assignment, given))
    for name, text in options.items():
        _parse(_option_named(name), name, text)
    return options


def term_values(term: Term, given: Mapping[str, str]) -> dict[str, Any]:
    """The values of all options of a term; a missing required option is a CadecError."""
    if missing := missing_options(term, given):
        raise UsageError(
            f"the term {term.name} needs {missing[0]}", f"give it with {option('term', f'{missing[0]}=…')}"
        )
    return {
        one.name: _parse(one, name, given[name])
        if (name := f"{term.name}.{one.name}") in given
        else one.default
        for one in term.options
    }


def missing_options(term: Term, given: Mapping[str, str]) -> list[str]:
    """The required options of a term that are not given."""
    names = [f"{term.name}.{one.name}" for one in term.options if one.default is None]
    return [name for name in names if name not in given]


def term_origin(given: Mapping[str, str]) -> list[tuple[str, str]]:
    """Checksums of the files that options name: results depend on their content too."""
    return [
        (f"term {name}", hashlib.sha256(read_data(Path(text))).hexdigest())
        for name, text in given.items()
        if _option_named(name).parse is Path
    ]


def describe_term_options() -> Iterator[str]:
    """The options of all terms with their help, for help texts."""
    for term in TERMS.usable():
        for one in term.options:
            default = "" if one.default is None else f"; {one.default} if omitted"
            yield f"{term.name}.{one.name} ({one.help}{default})"


def _split_assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise CadecError(f"{text!r} is not an option of a term", "give it as TERM.OPTION=VALUE")
    return name.strip(), value


def _option_named(name: str) -> TermOption:
    term, _, own = name.partition(".")
    if term in TERMS:
        for one in TERMS[term].options:
            if one.name == own:
                return one
    known = [f"{known.name}.{one.name}" for known in TERMS.usable() for one in known.options]
    raise CadecError(
        f"no term has the option {name!r}",
        f"there are {', '.join(known)}" if known else "no installed term has options",
    )


def _parse(one: TermOption, name: str, text: str) -> Any:
    try:
        return one.parse(text)
    except ValueError as error:
        raise CadecError(f"{name} can't be {text!r}: {error}") from None
