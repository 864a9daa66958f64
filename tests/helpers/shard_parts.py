"""What tests look up in a prepared corpus."""

from itertools import pairwise

from cadec_cli.data.shards import Shard


def document_bounds(shard: Shard) -> list[tuple[int, int]]:
    """The first sentence of every document, and the first one after it."""
    return list(pairwise([0, *shard.document_ends.tolist()]))
