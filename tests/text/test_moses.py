import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.text.moses import JOIN, MARKS, SPACE, MosesText, Truecaser, recase

ENGLISH = MosesText("en")
RUSSIAN = MosesText("ru")
FRENCH = MosesText("fr")
UNKNOWN = MosesText("xx")
LANGUAGES = [ENGLISH, RUSSIAN, FRENCH, UNKNOWN]

# What Moses' rules are about, our reserved characters, and characters whose case or width is irregular.
TRICKY = st.text(
    st.sampled_from(
        "aA'bЯя .,-\"<>/&;:!?()[]|«»“”’„…019%$#@*_\u2581\uffed\u2423\u00a0\u200b\u0301ßİıŉﬁ½ǅ\u3000日"
    ),
    max_size=25,
)
TEXTS = st.one_of(st.text(max_size=40), TRICKY)
TOKENS = st.lists(st.one_of(st.sampled_from([*MARKS, "", "'", "s", "«", ".", "Он"]), st.text(max_size=4)))

TYPICAL = [
    ("en", "I don't know, said Mr. Gray."),
    ("en", '"Look," he said - "it\'s 5.30 p.m."'),
    ("en", "<i>so</i> what? ... and/or 50% of $1,000.00"),
    ("en", "knock 'em dead, rock'n'roll, the boys' room"),
    ("en", "http://example.org/a_b?c=d&e=f #tag @name"),
    ("en", "a well-known ex-wife -- and- -"),
    ("ru", "- Да, конечно! - сказал он."),
    ("ru", "«Кто там?» - спросила она... Никто не ответил."),
    ("ru", "Капу 'е, О'Нил, т. е. 43-й кв-л"),
    ("ru", "Что?! Как это - «не знаю»?"),
    ("et", "Tom'i auto, 5. mai"),
]


@pytest.mark.parametrize(("language", "text"), TYPICAL)
def test_a_typical_sentence_comes_back_as_it_was(language: str, text: str) -> None:
    moses = MosesText(language)
    normal = moses.normalise(text)
    assert normal == text.replace("«", '"').replace("»", '"')
    assert moses.detokenise(moses.tokenise(normal)) == normal


@pytest.mark.parametrize("moses", LANGUAGES, ids=lambda moses: moses.language)
@given(text=TEXTS)
@settings(max_examples=200, deadline=None)
def test_every_normalised_text_comes_back(moses: MosesText, text: str) -> None:
    normal = moses.normalise(text)
    tokens = moses.tokenise(normal)
    assert moses.detokenise(tokens) == normal
    assert all(token and not any(character.isspace() for character in token) for token in tokens)


@given(text=TEXTS)
@settings(max_examples=200, deadline=None)
def test_normalised_text_has_single_spaces_and_nothing_reserved(text: str) -> None:
    normal = ENGLISH.normalise(text)
    assert normal == " ".join(normal.split())
    assert normal.isprintable() or not any(ord(character) < 32 for character in normal)
    assert not set(normal) & {*MARKS, "\u2581"}


@given(tokens=TOKENS)
@settings(max_examples=200, deadline=None)
def test_any_tokens_can_be_joined(tokens: list[str]) -> None:
    joined = RUSSIAN.detokenise(tokens)
    words = [token for token in tokens if token not in MARKS]
    assert joined.replace(" ", "") == "".join(words).replace(" ", "")


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([], ""),
        ([JOIN], ""),
        ([SPACE, JOIN, SPACE], ""),
        ([JOIN, "a", SPACE], "a"),
        (["a", JOIN, "b"], "ab"),
        (["a", JOIN, SPACE, "."], "a ."),
        (["a", "", "b"], "a b"),
    ],
)
def test_misplaced_marks_are_harmless(tokens: list[str], expected: str) -> None:
    assert ENGLISH.detokenise(tokens) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \t\r\n ", ""),
        ("a\u00a0b\tc\u3000d", "a b c d"),
        ("a\x00b\u200bc\ufeffd", "abcd"),
        ("e\u0301", "é"),
        ("“so”", '"so"'),
        ("lone \ud800 surrogate", "lone surrogate"),
        (f"a{JOIN}b{SPACE}c\u2581d", "a\u25aab_c_d"),
    ],
)
def test_normalise(text: str, expected: str) -> None:
    assert ENGLISH.normalise(text) == expected


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("I don't know.", ["I", "don", "'t", "know", "."]),
        ("So what?", ["So", "what", "?"]),
        ("", []),
    ],
)
def test_plain_sentences_need_no_marks(text: str, tokens: list[str]) -> None:
    assert ENGLISH.tokenise(text) == tokens


@pytest.mark.parametrize("language", ["xx", "et", "zz-ZZ", ""])
def test_a_language_without_rules_of_its_own_works(language: str) -> None:
    moses = MosesText(language)
    text = "See on hea, härra Tamm! (Tõesti?)"
    assert moses.detokenise(moses.tokenise(moses.normalise(text))) == text


def test_a_very_long_sentence_comes_back() -> None:
    text = " ".join(f"it's {number}, isn't it?" for number in range(2500))
    assert len(text.split()) == 10_000
    assert ENGLISH.detokenise(ENGLISH.tokenise(ENGLISH.normalise(text))) == text


CASER = Truecaser(frozenset({"the", "dog", "кто", "straße", "ßo"}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The dog", "the dog"),
        ("Tom and The dog", "Tom and The dog"),  # only the first word
        ("THE dog", "THE dog"),  # shouting stays
        ("- The dog", "- the dog"),
        ("« Кто там", "« кто там"),
        ("< i > The dog < / i >", "< i > the dog < / i >"),
        ("... The dog", "... The dog"),  # a small letter would be as good: nothing to undo
        ("43 The dog", "43 The dog"),
        ("dog", "dog"),
        ("", ""),
    ],
)
def test_truecase(text: str, expected: str) -> None:
    assert " ".join(CASER.truecase(text.split())) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the dog", "The dog"),
        ("- the dog", "- The dog"),
        ("\" ' кто там", "\" ' Кто там"),
        ("< i > the dog", "< i > The dog"),
        (f"{JOIN} the dog", f"{JOIN} The dog"),
        ("... the dog", "... the dog"),
        ("ßo", "ßo"),  # no capital of one letter
        ("日本", "日本"),
        ("- « ", "- «"),
        ("", ""),
    ],
)
def test_recase(text: str, expected: str) -> None:
    assert " ".join(recase(text.split())) == expected


@given(text=TEXTS)
@settings(max_examples=300, deadline=None)
def test_recasing_undoes_truecasing(text: str) -> None:
    tokens = ENGLISH.tokenise(ENGLISH.normalise(text))
    everything = Truecaser(frozenset(token.lower() for token in tokens))
    assert recase(everything.truecase(tokens)) == recase(tokens)
    assert recase(recase(tokens)) == recase(tokens)


def test_a_truecaser_learns_what_is_usually_written_small() -> None:
    corpus = ["I saw the dog .", "The dog saw Tom .", "Tom saw the dog .", "So Tom left ."]
    trained = Truecaser.train([line.split() for line in corpus])
    assert {"the", "dog", "saw"} <= trained.lowered
    assert not {"tom", "Tom", "."} & trained.lowered
