"""Shards of jobs that know nothing of each other: together they are all of it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.errors import UsageError
from cadec_cli.parallel import JobShard


@pytest.mark.parametrize(
    "text", ["0/4", "5/4", "a/b", "1", "1/", "/4", "1/2/3", "-1/4", "1/0", "¹/²", "1/1000000"]
)
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="invalid shard"):
        JobShard.parse(text)


@given(st.lists(st.integers(0, 1000), max_size=40), st.integers(1, 12))
@settings(max_examples=60)
def test_shards_are_all_of_it_once_and_about_equal(sizes: list[int], count: int) -> None:
    shards = [JobShard.parse(f"{number}/{count}").of_sizes(sizes) for number in range(1, count + 1)]
    assert sorted(item for shard in shards for item in shard) == list(range(len(sizes)))
    assert all(shard == sorted(shard) for shard in shards)
    filled = [sum(sizes[item] for item in shard) for shard in shards]
    assert max(filled) - min(filled) <= max(sizes, default=0)
