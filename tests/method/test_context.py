"""Contexts: they never exceed their room, and the newest sentences stay."""

from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.method.context import Context, ContextPolicy, Pair, room
from cadec_cli.method.hypotheses import Ids

BOUNDARY = 3
sentences = st.lists(st.integers(4, 9), min_size=1, max_size=5).map(tuple)
documents = st.lists(sentences, max_size=8).map(tuple)
seeds = st.lists(sentences, max_size=2).map(tuple)
policies = st.builds(ContextPolicy, st.integers(0, 5), st.booleans(), seeds)
rooms = st.integers(1, 60)


@given(documents)
def test_a_context_begins_and_ends_with_the_boundary(own: tuple[Ids, ...]) -> None:
    tokens = Context(own).tokens(BOUNDARY)
    assert len(tokens) == Context(own).length
    assert tokens[0] == tokens[-1] == BOUNDARY
    assert tokens.count(BOUNDARY) == len(own) + 1
    assert [token for token in tokens if token != BOUNDARY] == [token for ids in own for token in ids]


@given(documents, policies, rooms)
def test_what_is_read_fits_and_is_the_newest(
    own: tuple[Ids, ...], policy: ContextPolicy, tokens: int
) -> None:
    read = policy.read(Context(own), tokens)
    assert read.length <= tokens
    assert read.own == own[len(own) - len(read.own) :]
    assert read.sentences[: read.pinned] == policy.seed[len(policy.seed) - read.pinned :]
    whole = Context((*policy.seed, *own), pinned=len(policy.seed))
    if policy.rolling and whole.length <= tokens:
        assert read.sentences == whole.sentences
    else:
        assert len(read.own) <= policy.sentences
        # No sentence is dropped that would have fitted.
        counted = own[-policy.sentences :] if policy.sentences else ()
        if len(read.own) < len(counted):
            older = counted[len(counted) - len(read.own) - 1]
            assert read.length + len(older) + 1 > tokens
        if read.pinned < len(policy.seed):
            assert not read.own  # the seed is the last to go


@given(documents, policies, rooms)
def test_what_is_trimmed_would_never_be_read(
    own: tuple[Ids, ...], policy: ContextPolicy, tokens: int
) -> None:
    before = Context(own)
    trimmed = policy.trim(before)
    assert policy.read(trimmed, tokens).sentences == policy.read(before, tokens).sentences
    assert policy.future(trimmed) == policy.future(before)
    following = [policy.trim(each.followed_by((5, 6))) for each in (trimmed, before)]
    first, second = (policy.read(each, tokens).sentences for each in following)
    assert first == second


@given(documents, documents, st.integers(0, 5), rooms)
def test_equal_futures_read_the_same(
    one: tuple[Ids, ...], other: tuple[Ids, ...], count: int, tokens: int
) -> None:
    policy = ContextPolicy(count)
    last = (*other, *one[-count:]) if count else other
    assert policy.future(Context(one)) == one[-count:] * bool(count)
    if len(one) >= count:
        assert policy.future(Context(last)) == policy.future(Context(one))
        assert policy.read(Context(last), tokens).sentences == policy.read(Context(one), tokens).sentences


@given(documents, seeds)
def test_a_seed_is_put_before_once(own: tuple[Ids, ...], seed: tuple[Ids, ...]) -> None:
    seeded = Context(own).with_seed(seed)
    assert (seeded.own, seeded.sentences) == (own, (*seed, *own))
    assert seeded.with_seed(seed) is seeded  # so that what is remembered of it stays
    assert seeded.with_seed(((9,),)).sentences == ((9,), *own)


def test_memory_is_of_the_sentences_that_it_was_made_from() -> None:
    memory = object()
    context = Context(((4, 5),)).followed_by((6,), memory)
    # </s> 4 5 </s> 6: the boundary after it is the root of the next trie.
    assert (context.memory, context.remembered, context.length) == (memory, 5, 6)
    assert context.followed_by((7,)).remembered == 0
    assert context.without_memory().memory is None
    assert context.without_memory().sentences == context.sentences
    assert context.truncate(100) is context
    assert context.truncate(3).memory is None  # what is gone was part of it


@given(st.integers(1, 100), st.integers(0, 200))
def test_there_is_always_room_for_the_boundary(positions: int, longest: int) -> None:
    assert room(positions, longest) >= 1
    if longest < positions:
        assert room(positions, longest) + longest == positions


def before_target(source: str) -> Ids:
    """Letters are tokens, and a boundary ends them."""
    return (*(ord(letter) for letter in source), BOUNDARY) if source else ()


@given(st.lists(st.tuples(st.sampled_from(["", "a", "bcd"]), sentences), max_size=6), policies, rooms)
def test_pairs_are_read_whole(pairs: list[tuple[str, Ids]], policy: ContextPolicy, tokens: int) -> None:
    before = Context()
    for source, ids in pairs:
        before = before.followed_by(ids, pair=Pair(source, "y"))
    read = policy.read_pairs(before, tokens, before_target, "xyz")
    assert read.source == (before_target("xyz") if read.length > 1 else ())
    assert read.length <= max(tokens, 1) and len(read.tokens(BOUNDARY)) == read.length
    own = [(*before_target(source), *ids) for source, ids in pairs]
    assert list(read.own) == own[len(own) - len(read.own) :]
    assert read.sentences[: read.pinned] == policy.seed[len(policy.seed) - read.pinned :]
    part = policy.translations(before, read)
    assert part.pinned == read.pinned and len(part.own) == len(read.own)
    assert list(part.own) == [ids for _, ids in pairs][len(own) - len(read.own) :]
    assert [pair.source for pair in part.pairs] == [source for source, _ in pairs][len(own) - len(read.own) :]
    if tokens > 200 and not policy.rolling:
        assert len(read.own) == min(policy.sentences, len(pairs))


def test_sources_that_are_not_known_are_those_of_the_oldest_sentences() -> None:
    before = Context(((4,), (5,)), pairs=(Pair("a", "y"),))
    read = ContextPolicy(2).read_pairs(before, 60, before_target, "b")
    assert read.sentences == ((4,), (ord("a"), BOUNDARY, 5))
    assert read.tokens(BOUNDARY) == [3, 4, 3, ord("a"), 3, 5, 3, ord("b"), 3]
    assert ContextPolicy(2).read_pairs(Context(((4,),)), 60, before_target, "").source == ()
    seeded = ContextPolicy(1, seed=((6,), (7,)), seed_sources=("c", "d"))
    read = seeded.read_pairs(before, 60, before_target, "")
    assert read.sentences == ((99, 3, 6), (100, 3, 7), (97, 3, 5)) and read.pinned == 2
    part = seeded.translations(before, read)
    assert (part.sentences, part.pinned, seeded.sources(part)) == (((6,), (7,), (5,)), 2, ("c", "d", "a"))
    read = seeded.read_pairs(before, 7, before_target, "e")
    assert seeded.sources(seeded.translations(before, read)) == ("d",)
