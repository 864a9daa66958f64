"""The term manner: is a hypothesis said as the user asks for?

The form of address that is asked for, or the gender of the speaker, is nearly certain: ODDS nats against the
other one. As in the term address,

    manner(y) = Σ log 2σ(ODDS) where y is as demanded, log 2σ(−ODDS) where it is not, 0 where it shows neither

over what is demanded of the sentence. Without a demand it is 0. It needs no context and no language model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cadec_cli.engines.address_votes import log_2_sigmoid
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.objectives import MANNER
from cadec_cli.text.manner import Manner, agreements

ODDS = 12.0
_VALUES = {True: log_2_sigmoid(ODDS), False: log_2_sigmoid(-ODDS), None: 0.0}


def manner_values(manner: Manner | None, texts: Sequence[str]) -> list[float]:
    """The term for every translation of a sentence."""
    if manner is None:
        return [0.0] * len(texts)
    of_demands = agreements(manner, texts)
    return [sum(_VALUES[found] for found in of_text) for of_text in zip(*of_demands, strict=True)]


@dataclass(frozen=True)
class MannerTerm:
    """How far each hypothesis is said as its list demands."""

    names: tuple[str, ...] = (MANNER,)

    def terms(self, lists: Sequence[NBest]) -> list[dict[str, Any]]:
        """The term for every hypothesis of every list."""
        return [
            {MANNER: manner_values(nbest.manner, [one.text for one in nbest.hypotheses])} for nbest in lists
        ]
