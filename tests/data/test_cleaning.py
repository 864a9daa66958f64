import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.data.cleaning import Cleaner, CleaningOptions, contiguous_runs
from cadec_cli.errors import CadecError
from cadec_cli.text.protected.spans import scripts_of


@pytest.mark.parametrize(
    ("options", "source", "target", "reason"),
    [
        (CleaningOptions(), "Hello.", "Привет.", "kept"),
        (CleaningOptions(), " ", "Привет.", "empty"),
        (CleaningOptions(), "Hello.", "", "empty"),
        (CleaningOptions(), "", None, "empty"),
        (CleaningOptions(max_words=2), "a b", "c d", "kept"),
        (CleaningOptions(max_words=2), "a b", "c d e", "too long"),
        (CleaningOptions(max_characters=3), "abcd", None, "too long"),
        (CleaningOptions(max_ratio=2), "ab", "abcd", "kept"),
        (CleaningOptions(max_ratio=2), "ab", "abcde", "length ratio"),
        (CleaningOptions(max_ratio=2), "a single text has no ratio", None, "kept"),
        (CleaningOptions(check_script=True), "Hello.", "Привет.", "kept"),
        (CleaningOptions(check_script=True), "Привет.", "Привет.", "wrong script"),
        (CleaningOptions(check_script=True), "Hello.", "Hello.", "wrong script"),
        (CleaningOptions(check_script=True), "Hello.", "IBM это так", "kept"),
        (CleaningOptions(check_script=True), "1, 2, 3!", "♪ ♪", "kept"),
    ],
)
def test_reasons(options: CleaningOptions, source: str, target: str | None, reason: str) -> None:
    cleaner = Cleaner(options, "en", "ru", slots=16)
    assert cleaner.accepts(source, target) == (reason == "kept")
    assert cleaner.counts == {reason: 1}


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("el", "Καλημέρα"),
        ("ar", "صباح الخير"),
        ("he", "בוקר טוב"),
        ("zh_cn", "早上好"),
        ("ja", "おはようございます、先生"),
        ("ko", "안녕하세요"),
        ("hi", "सुप्रभात"),
        ("th", "สวัสดี"),
        ("ka", "დილა მშვიდობისა"),
        ("sr", "dobro jutro"),
        ("sr", "добро јутро"),
        ("vi", "Chào buổi sáng"),
        ("pt-BR", "não é"),
    ],
)
def test_each_language_is_written_in_its_own_script(language: str, text: str) -> None:
    options = CleaningOptions(check_script=True)
    assert Cleaner(options, language).accepts(text)
    other = "ru" if "Latin" in scripts_of(language) and "Cyrillic" not in scripts_of(language) else "hy"
    assert not Cleaner(options, other).accepts(text)
    assert Cleaner(options, "tlh").accepts(text)


def test_duplicates_are_of_the_whole_pair() -> None:
    cleaner = Cleaner(CleaningOptions(drop_duplicates=True))
    assert [
        cleaner.accepts(*pair) for pair in (("a", "b"), ("a", "c"), ("ab", ""), ("a", "b"), ("b", "a"))
    ] == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert cleaner.counts == {"kept": 3, "empty": 1, "duplicate": 1}


def test_what_was_dropped_for_another_reason_makes_no_duplicate() -> None:
    cleaner = Cleaner(CleaningOptions(drop_duplicates=True, max_characters=3))
    assert not cleaner.accepts("long text")
    assert not cleaner.accepts("long text")
    assert cleaner.counts == {"too long": 2}


@given(st.lists(st.text("abc", min_size=1, max_size=3)), st.sampled_from([1, 2, 16, 1024]))
def test_first_occurrences_are_always_kept(texts: list[str], slots: int) -> None:
    cleaner = Cleaner(CleaningOptions(drop_duplicates=True), slots=slots)
    kept = [text for text in texts if cleaner.accepts(text)]
    assert set(kept) == set(texts)


@given(st.lists(st.integers(0, 9)))
def test_kept_runs_are_neighbours(items: list[int]) -> None:
    runs = list(contiguous_runs(items, lambda item: item > 3))
    assert [item for run in runs for item in run] == [item for item in items if item > 3]
    assert all(runs)
    marked = "".join("x" if item > 3 else " " for item in items)
    assert [len(run) for run in runs] == [len(part) for part in marked.split()]


def test_options_are_checked() -> None:
    with pytest.raises(CadecError):
        CleaningOptions(max_words=-1)
    with pytest.raises(CadecError):
        CleaningOptions(max_ratio=0.5)
