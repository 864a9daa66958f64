"""How long a bundle's translations may become, learnt from a text and its translation."""

from __future__ import annotations

from collections.abc import Sequence

from cadec_cli.bundle.opening import Bundle
from cadec_cli.method.lengths import LengthLimits, learnt_limits

# Pairs of a text that are looked at, from all over it: more would not tell more.
_LOOKED_AT = 20_000


def lengths_of_pairs(bundle: Bundle, pairs: Sequence[tuple[str, str]]) -> LengthLimits:
    """What sentence pairs tell, in the tokens of the bundle's S-NMT."""
    source, target = bundle.source_text, bundle.target_text
    some = pairs[:: -(-len(pairs) // _LOOKED_AT) or 1]
    return learnt_limits((len(source.encode(one)), len(target.encode(other))) for one, other in some)
