"""Earlier sentences are found by rare words: as a plain search finds them, in an index that stays small."""

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.method.context import Context, ContextPolicy, Pair
from cadec_cli.method.hypotheses import Ids
from cadec_cli.method.retrieval import (
    NOTHING,
    OCCURRENCES,
    EarlierSentence,
    EarlierSentences,
    TranslationMemory,
    keywords,
    related,
)

# At the beginning of a sentence every word has a capital; inside only names have one.
WORDS = ("Aurelia", "Okonkwo", "Rose", "rose", "lantern", "harbour", "see", "Он", "Марию", "東京都")
sources = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(
    lambda words: " ".join([words[0][:1].upper() + words[0][1:], *words[1:]])
)
texts = st.lists(sources, max_size=14)


def index_of(given_texts: Sequence[str]) -> EarlierSentences:
    return NOTHING.add((text, (number,), "") for number, text in enumerate(given_texts))


def found(source: str, count: int, given_texts: Sequence[str], read: Sequence[str] = ()) -> list[str]:
    return [one.source for _, one in related(source, count, [index_of(given_texts)], read)]


def naive(source: str, count: int, given_texts: Sequence[str], read: Sequence[str]) -> list[int]:
    """The numbers of the sentences that should be found, looked for in all of them."""
    words = [{word.key: word for word in keywords(text)} for text in given_texts]
    wanted: dict[str, tuple[bool, float]] = {}
    for key, word in {word.key: word for word in keywords(source)}.items():
        seen = [number for number, of_text in enumerate(words) if key in of_text]
        if not seen or any(key == other.key for text in read for other in keywords(text)):
            continue
        spellings = [word.capital, *(words[number][key].capital for number in seen)]
        is_name = True in spellings and False not in spellings
        if is_name or (word.long and len(seen) <= 2 + int(len(words) ** 0.5) // 4):
            wanted[key] = is_name, 1 / len(seen)
    chosen: list[int] = []
    while len(chosen) < count:
        scored = []
        for number, of_text in enumerate(words):
            having = [wanted[key] for key in of_text if key in wanted]
            # only the last sentences of a word are kept
            reached = any(
                key in wanted and sum(key in later for later in words[number + 1 :]) < OCCURRENCES
                for key in of_text
            )
            if having and reached:
                scored.append((sum(name for name, _ in having), sum(rare for _, rare in having), number))
        if not scored:
            break
        best = max(scored, key=lambda one: (one[0], round(one[1], 9), one[2]))[2]
        chosen.append(best)
        for key in words[best]:
            wanted.pop(key, None)
    return sorted(chosen)


few = st.lists(sources, max_size=OCCURRENCES)  # so that every word keeps all its sentences


@given(few, sources, st.integers(0, 4), st.lists(sources, max_size=2))
def test_it_finds_what_a_plain_search_finds(
    given_texts: list[str], source: str, count: int, read: list[str]
) -> None:
    numbers = [one.number for _, one in related(source, count, [index_of(given_texts)], read)]
    assert numbers == naive(source, count, given_texts, read)


def test_names_come_first_then_rare_words_then_what_is_new() -> None:
    document = [
        "Then Aurelia laughed.",
        "He lit the lantern.",
        "She saw Aurelia again.",
        "It was raining.",
        "The harbour was empty.",
    ]
    assert found("Aurelia took the lantern.", 1, document) == ["She saw Aurelia again."]
    assert found("Aurelia took the lantern.", 2, document) == [
        "He lit the lantern.",
        "She saw Aurelia again.",
    ]
    assert found("The lantern went out.", 3, document) == ["He lit the lantern."]
    assert found("Nothing of the kind.", 3, document) == []
    assert found("Aurelia took the lantern.", 2, document, ["Now Aurelia came."]) == ["He lit the lantern."]
    both = [*document, "Give Aurelia the lantern!", "Where is Aurelia?"]
    assert found("Aurelia has a lantern.", 2, both) == ["Give Aurelia the lantern!"]


def test_what_is_a_name() -> None:
    assert found("We met Mr Kim.", 2, ["Is Kim here?", "I have kin."]) == ["Is Kim here?"]
    # A word that also has no capital is no name, and too short to be looked for otherwise.
    assert found("A rose is a rose.", 2, ["I saw Rose.", "The rose is red."]) == []
    # Forms of a name are the same word; possessives are two words.
    assert found("Марии здесь нет.", 1, ["Он видел Марию."]) == ["Он видел Марию."]
    assert found("It is Aurelia's.", 1, ["I saw Aurelia."]) == ["I saw Aurelia."]
    # What is in capitals says nothing of names.
    assert found("THE BIG OLD TREE IS RED.", 2, ["YOU SEE THE BIG OLD TREE.", "It is red."]) == []
    assert found("東京都です", 1, ["彼は東京都へ行った", "はい"]) == ["彼は東京都へ行った"]


@given(texts, texts)
def test_adding_one_by_one_or_at_once_is_the_same(first: list[str], second: list[str]) -> None:
    at_once = index_of([*first, *second])
    one_by_one = index_of(first)
    for number, text in enumerate(second, len(first)):
        one_by_one = one_by_one.add([(text, (number,), "")])
    assert as_data(at_once) == as_data(one_by_one)
    assert as_data(index_of(first).add([])) == as_data(index_of(first))


@given(texts)
def test_an_index_survives_json(given_texts: list[str]) -> None:
    made = index_of(given_texts)
    numbers: dict[EarlierSentence, int] = {}
    data = json.loads(json.dumps(made.to_json(numbers)))
    again = EarlierSentences.from_json(data, {number: one for one, number in numbers.items()})
    assert as_data(again) == as_data(made)
    assert again.add([("See Rose", (1,), "")]).count == made.count + 1


def as_data(index: EarlierSentences) -> str:
    numbers: dict[EarlierSentence, int] = {}
    data = index.to_json(numbers)
    return json.dumps([data, [(one.number, one.source, one.ids) for one in numbers]])


def test_an_index_stays_small() -> None:
    """Whatever is in a document: words that never recur, and one word in every sentence."""
    index = NOTHING
    for start in range(0, 3000, 300):
        letters = [
            "".join(chr(97 + n // 26**place % 26) for place in range(3)) for n in range(start, start + 300)
        ]
        index = index.add((f"He saw X{own} and the lantern, {own}", (), "") for own in letters)
        assert max(len(index.names), len(index.words)) <= index.most * 9 // 8
    assert len(index.names) >= index.most
    assert len(index.sentences) <= 2 * OCCURRENCES * index.most * 9 // 8
    seen = index.find("lante")
    assert seen is not None and seen.count == 3000 and len(seen.last) == OCCURRENCES
    # It is not rare, so it is not looked for; the newest names are, the oldest are forgotten.
    assert related("A lantern", 4, [index]) == []
    assert [one.number for _, one in related("Is Xaaa here?", 4, [index.add([("I met Xaaa.", (), "")])])] == [
        3000
    ]
    assert related("Is Xaaa here?", 4, [index]) == []
    assert not NOTHING.add([("word " * 200, (1,), ""), ("", (2,), "")])


ids = st.lists(st.integers(4, 9), min_size=1, max_size=5).map(tuple)
seeds = st.lists(ids, max_size=2).map(tuple)
documents = st.lists(st.tuples(sources, ids), max_size=12)


def context_of(document: Sequence[tuple[str, Ids]]) -> Context:
    return Context(tuple(one for _, one in document), pairs=tuple(Pair(text, "") for text, _ in document))


@given(documents, seeds, sources, st.integers(0, 3), st.integers(0, 3), st.integers(1, 60))
def test_what_is_read_is_in_order_and_fits(
    document: list[tuple[str, Ids]], seed: tuple[Ids, ...], source: str, last: int, count: int, room: int
) -> None:
    policy = ContextPolicy(last, seed=seed, retrieve=count)
    plain = ContextPolicy(last, seed=seed)
    before = context_of(document)
    whole = policy.read(before, 1000, source)
    shown = document[max(0, len(document) - last) :] if last else []
    older = document[: len(document) - max(last, 1)] if len(document) > max(last, 1) else []
    index = NOTHING.add((text, one, "") for text, one in older)
    expected = [one.ids for _, one in related(source, count, [index], [text for text, _ in shown])]
    expected = [one for one in expected if one not in [read for _, read in shown]]
    assert whole.sentences == (*seed, *expected, *(one for _, one in shown))
    assert whole.pinned == len(seed) and len(whole.sentences) <= len(seed) + count + last
    if not expected:
        assert whole.sentences == plain.read(before, 1000).sentences
    # Sentence by sentence it is the same, and what does not fit is dropped: the retrieved ones first.
    grown = Context()
    for text, one in document:
        grown = policy.trim(grown.followed_by(one, pair=Pair(text, "")))
    assert len(grown.own) <= max(last, 1)
    read = policy.read(grown, room, source)
    assert read.sentences == whole.truncate(room).sentences and read.length <= room
    assert read.own == whole.own[len(whole.own) - len(read.own) :]
    known = dict(zip(whole.own, policy.sources(whole)[whole.pinned :], strict=True))
    assert all((text, one) in document for one, text in known.items() if document.count((text, one)) == 1)


@given(documents, sources, st.integers(0, 3), st.integers(0, 3), st.integers(10, 60))
def test_pairs_are_read_like_the_target(
    document: list[tuple[str, Ids]], source: str, last: int, count: int, room: int
) -> None:
    """A pair is one sentence: what is read has the same translations, each after its source."""
    policy = ContextPolicy(last, retrieve=count)
    before = context_of(document)

    def before_target(text: str) -> Ids:
        return (20, len(text) + 30, 21)

    in_pairs = policy.read_pairs(before, room, before_target, source)
    alone = policy.translations(before, in_pairs, source)
    whole = policy.read(before, 1000, source)
    assert alone.sentences == whole.sentences[len(whole.sentences) - len(alone.sentences) :]
    read = zip(policy.sources(alone), alone.sentences, strict=True)
    assert in_pairs.sentences == tuple((*before_target(text), *one) for text, one in read)
    assert in_pairs.length <= room


def test_a_memory_comes_before_the_document() -> None:
    index = NOTHING.add([("I know Aurelia.", (), "a a"), ("The lantern is here.", (), "b")])
    memory = TranslationMemory(index, lambda text: tuple(map(ord, text)))
    policy = ContextPolicy(1, retrieve=2, translation_memory=memory)
    source = "Aurelia has the lantern."
    assert policy.read(Context(), 99, source).sentences == ((97, 32, 97), (98,))
    before = context_of([("Is Aurelia in?", (5,)), ("No.", (6,))])
    # The document's own sentences are newer, so they win where both have a word.
    assert policy.read(before, 99, source).sentences == ((98,), (5,), (6,))
    assert policy.read(before, 99, "No.").sentences == ((6,),)
    # What the last sentences say is not said twice.
    assert policy.read(context_of([("x", (98,))]), 99, "A lantern").sentences == ((98,),)


def test_a_rolling_window_retrieves_nothing() -> None:
    policy = ContextPolicy(1, rolling=True, retrieve=2)
    before = context_of([("Is Aurelia in?", (5,)), ("No.", (6,)), ("Yes.", (7,))])
    assert policy.read(before, 99, "Aurelia!").sentences == ((5,), (6,), (7,))
    assert not policy.trim(before).earlier
