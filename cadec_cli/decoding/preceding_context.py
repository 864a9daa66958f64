"""What a user knows of what stands before: sentences in the target language, as context.

Either a seed, which says how people are addressed and stays at the head of every window; or what really comes
before, the end of the last episode or a letter, which makes room like any other context.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from cadec_cli.engines.protocols import Models
from cadec_cli.errors import UsageError
from cadec_cli.method.context import Context, ContextPolicy
from cadec_cli.method.hypotheses import Ids
from cadec_cli.method.options import AUTO, TranslationOptions


def context_policy(models: Models, options: TranslationOptions) -> ContextPolicy:
    """What is read as context: the options' policy, with the seed that their formality asks for."""
    if options.formality == AUTO:
        return options.policy
    return dataclasses.replace(options.policy, seed=_ids(models, models.seed(options.formality)))


def context_of(models: Models, options: TranslationOptions, sentences: Iterable[str]) -> Context:
    """Sentences that come before a document, as far as any sentence of it will read them."""
    check_context(options)
    whole = Context(_ids(models, sentences))
    return options.policy.read(whole, models.reader.positions) if models.reader is not None else whole


def readable(options: TranslationOptions, sentences: Sequence[str], positions: int | None) -> tuple[str, ...]:
    """The last of the sentences before: as many as any sentence could read of, before tokens are counted.

    A D-LM with so many `positions`, if that is known. What has no word may have no tokens, so it is kept and
    not counted.
    """
    policy = options.policy
    enough = max(policy.sentences, 1)
    if policy.rolling:
        if positions is None:
            return tuple(sentences)
        enough = max(enough, positions)  # more than fit, so that it is still too much for a rolling context
    found = 0
    for number in range(len(sentences) - 1, -1, -1):
        found += any(character.isalnum() for character in sentences[number])
        if found == enough:
            return tuple(sentences[number:])
    return tuple(sentences)


def check_context(options: TranslationOptions) -> None:
    """Refuse what comes before, where nothing of it would be read."""
    if not options.reads_context:
        raise UsageError(
            f"what comes before is a matter of context, and {options.without_context} reads none",
            "rerank, lattice and beam with an objective such as c-score do",
        )


def _ids(models: Models, sentences: Iterable[str]) -> tuple[Ids, ...]:
    if models.reader is None:
        return ()
    encoded = (tuple(models.reader.text.encode(sentence)) for sentence in sentences)
    return tuple(filter(None, encoded))
