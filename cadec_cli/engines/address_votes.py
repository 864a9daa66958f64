"""The term address: does a hypothesis address people as the conversation does?

Whether two people say *tu* or *vous* to each other seldom changes within a conversation, but a sentence alone
seldom tells which. So the sentences before vote: with all hypotheses of their lists, each with its
probability, rather than with the one that was chosen, so that one wrong choice does not decide the next ones.
With T and V the probabilities of familiar and polite hypotheses in a list,

    odds       = Σ log (T + s) / (V + s)      over the sentences before
    address(y) = log 2σ(odds) if y is familiar, log 2σ(−odds) if it is polite, 0 if it is neither or both

that is log p(address of y | sentences before) − log p(address of y), with both forms equally likely before
anything is read. Without context, or in a language without known forms, it is 0. A sentence without a list,
such as a person's correction, votes with its translation. Where a form of address is asked for, the term
manner says more, and nobody votes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from cadec_cli.engines.protocols import Models
from cadec_cli.method.context import Pair
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.objectives import ADDRESS
from cadec_cli.text.address import address

FAMILIAR, POLITE = "T", "V"
# s of the formula: a sentence in which all hypotheses agree counts e^1.8 : 1.
SMOOTHING = 0.2


@dataclass(frozen=True)
class AddressVotes:
    """The votes of the sentences before on the form of address, in the target language."""

    language: str
    names: tuple[str, ...] = (ADDRESS,)
    reads_lists: bool = True

    def terms_after(self, lists: Sequence[NBest], contexts: Sequence[Sequence[Pair]]) -> list[dict[str, Any]]:
        """The term for every hypothesis; a sentence whose list is not known votes with its translation."""
        return [
            {ADDRESS: self._agreement(nbest, sum(map(self._vote, pairs)))}
            for nbest, pairs in zip(lists, contexts, strict=True)
        ]

    def _agreement(self, nbest: NBest, odds: float) -> list[float]:
        if nbest.manner is not None and nbest.manner.address:
            return [0.0] * len(nbest.hypotheses)  # what is asked for counts, not who voted
        values = {FAMILIAR: log_2_sigmoid(odds), POLITE: log_2_sigmoid(-odds)}
        return [values.get(form or "", 0.0) for form in forms_of(nbest, self.language)]

    def _vote(self, pair: Pair) -> float:
        if pair.nbest is None or not pair.nbest.hypotheses:
            return _log_odds({address(pair.target, self.language): 1.0})
        return _list_log_odds(pair.nbest, self.language)


@lru_cache(4096)  # several paths meet a list, and it votes on several sentences after it
def forms_of(nbest: NBest, language: str) -> tuple[str | None, ...]:
    """How each hypothesis addresses people: familiar, polite, or None if neither or both."""
    return tuple(address(one.text, language) for one in nbest.hypotheses)


def _list_log_odds(nbest: NBest, language: str) -> float:
    log_probs = np.array([one.log_prob for one in nbest.hypotheses])
    weights = np.exp(log_probs - log_probs.max())
    share: dict[str | None, float] = {}
    for form, weight in zip(forms_of(nbest, language), weights / weights.sum(), strict=True):
        share[form] = share.get(form, 0.0) + float(weight)
    return _log_odds(share)


def _log_odds(share: Mapping[str | None, float]) -> float:
    familiar, polite = share.get(FAMILIAR, 0.0), share.get(POLITE, 0.0)
    return math.log((familiar + SMOOTHING) / (polite + SMOOTHING))


def log_2_sigmoid(odds: float) -> float:
    """log 2σ(odds): what a form gains that has these odds, compared with even ones."""
    return math.log(2) - float(np.logaddexp(0, -odds))


def address_votes(models: Models, options: Mapping[str, Any]) -> AddressVotes:
    """Build the term address."""
    return AddressVotes(models.target_language)
