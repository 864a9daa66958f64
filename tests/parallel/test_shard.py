"""Shares of jobs that know nothing of each other: together they are all of it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.errors import UsageError
from cadec_cli.parallel.shard import Shard


@pytest.mark.parametrize(
    "text", ["0/4", "5/4", "a/b", "1", "1/", "/4", "1/2/3", "-1/4", "1/0", "¹/²", "1/1000000"]
)
def test_no_share(text: str) -> None:
    with pytest.raises(UsageError, match="no share"):
        Shard.parse(text)


@given(st.lists(st.integers(0, 1000), max_size=40), st.integers(1, 12))
@settings(max_examples=60)
def test_shares_are_all_of_it_once_and_about_equal(sizes: list[int], count: int) -> None:
    shares = [Shard.parse(f"{number}/{count}").of_sizes(sizes) for number in range(1, count + 1)]
    assert sorted(item for share in shares for item in share) == list(range(len(sizes)))
    assert all(share == sorted(share) for share in shares)
    filled = [sum(sizes[item] for item in share) for share in shares]
    assert max(filled) - min(filled) <= max(sizes, default=0)
