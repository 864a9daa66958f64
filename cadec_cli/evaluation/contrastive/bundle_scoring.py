"""Contrastive sets scored with a bundle's models, by this process or by a pool of workers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cadec_cli.bundle.load import LoadedModels
from cadec_cli.engines.context_free_terms import build_terms
from cadec_cli.engines.protocols import ContextTerm
from cadec_cli.errors import as_usage_error
from cadec_cli.evaluation.contrastive.groups import ContrastiveSet
from cadec_cli.evaluation.contrastive.scoring import ContrastiveModels, Wording, parts, usable_objectives
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.method.context import ContextPolicy
from cadec_cli.method.objectives import NMT, Objective, objective
from cadec_cli.method.options import ScoringOptions, named_weights
from cadec_cli.method.terms import Terms, parse_term_options
from cadec_cli.parallel import Task, WorkerPool, in_order


def contrastive_models(
    opened: LoadedModels,
    names: Sequence[str],
    weight: str | None,
    scoring_options: ScoringOptions,
    context: int | None,
    term: Sequence[str] = (),
) -> tuple[list[Objective], ContrastiveModels]:
    """The objectives that were named, and a bundle's models as far as those need them.

    The bundle's own objective has the bundle's weights, as in translating; weights that are given override
    them. `term` has the options of terms, such as `["glossary.file=words.tsv"]`.
    """
    bundle = opened.bundle
    with as_usage_error():
        weights = named_weights(weight)
        term_options = parse_term_options(term)
    objectives = usable_objectives(
        names,
        weights,
        has_translation=bundle.has_translation,
        has_lm=bundle.has_lm,
        has_backward=bundle.has_backward,
        documents=bundle.document_kinds,
        own=objective(bundle.defaults.objective, bundle.defaults.weight),
        term_options=term_options,
        where=f"the bundle {bundle.directory}",
    )
    extra_terms = {
        one.names: one for chosen in objectives for one in build_terms(opened, chosen, (), term_options)
    }
    reads_context = any(isinstance(one, ContextTerm) for one in extra_terms.values())
    models = ContrastiveModels(
        opened.translation if any(chosen.uses(NMT) for chosen in objectives) else None,
        opened.language if reads_context or any(chosen.uses_lm for chosen in objectives) else None,
        scoring_options,
        ContextPolicy(bundle.defaults.context if context is None else context),
        Wording(opened.languages.source_code, opened.languages.target_code),
        tuple(extra_terms.values()),
        {chosen.name: model for chosen in objectives if (model := opened.document(chosen.name)) is not None},
    )
    return objectives, models


@dataclass(frozen=True)
class ContrastiveOptions:
    """How contrastive sets are scored; plain data, since workers are sent it."""

    objectives: tuple[str, ...]
    weight: str | None
    scoring_options: ScoringOptions
    context: int | None
    term: tuple[str, ...] = ()

    def models(self, opened: LoadedModels) -> tuple[list[Objective], ContrastiveModels]:
        """The objectives, and what a bundle's models make of sets with them."""
        return contrastive_models(
            opened, self.objectives, self.weight, self.scoring_options, self.context, self.term
        )


def start_scoring_worker(
    request: ModelRequest, options: ContrastiveOptions
) -> Callable[[ContrastiveSet], list[Terms]]:
    """Load the models in a worker process; what comes back scores part after part of contrastive sets."""
    _, models = options.models(request.open())
    return lambda part: list(models.terms(part))


def score_sets(
    sets: Sequence[ContrastiveSet],
    models: ContrastiveModels,
    pool: WorkerPool | None,
    request: ModelRequest,
    options: ContrastiveOptions,
) -> Iterator[tuple[ContrastiveSet, Iterator[Terms]]]:
    """Score sets with a pool, or in this process with `models`: each set with the terms of its groups.

    Take all terms of a set before the next set: a pool may have begun with that already.
    """
    if pool is None:
        for one in sets:
            yield one, models.terms(one)
        return
    results = pool.run(
        Task(start_scoring_worker, (request, options)), (part for one in sets for part in parts(one))
    )
    terms = itertools.chain.from_iterable(in_order(results))
    for one in sets:
        yield one, itertools.islice(terms, len(one.groups))
