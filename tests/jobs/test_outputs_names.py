"""Names of outputs: templates, directories, languages and endings."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.jobs.outputs import Languages, TemplateError, is_template, plan_outputs, stem_and_ending

EN_RU = Languages("en", "ru")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("film.srt", ("film", ".srt")),
        ("film.en.srt", ("film", ".srt")),
        ("film.eng.srt", ("film", ".srt")),
        ("film.EN.srt", ("film", ".srt")),
        ("film.de.srt", ("film.de", ".srt")),
        ("film.en.srt.gz", ("film", ".srt")),
        ("film.2001.srt.xz", ("film.2001", ".srt")),
        ("dev.en", ("dev", "")),
        ("dev.en.zst", ("dev", "")),
        ("README", ("README", "")),
        ("en.srt", ("en", ".srt")),
        (".en", (".en", "")),
    ],
)
def test_stem_and_ending_of_a_name(name: str, expected: tuple[str, str]) -> None:
    assert stem_and_ending(name, "en") == expected


@pytest.mark.parametrize(
    ("output", "inputs", "expected"),
    [
        ("out.srt", ["film.en.srt"], ["out.srt"]),
        ("out/", ["film.en.srt"], ["out/film.ru.srt"]),
        ("out", ["a.srt", "sub/b.en.txt"], ["out/a.ru.srt", "out/b.ru.txt"]),
        ("out/", ["film.srt.gz"], ["out/film.ru.srt"]),
        ("{stem}.{to}.srt", ["film.en.srt"], ["film.ru.srt"]),
        ("x/{stem}.{from}-{to}{ext}", ["a.vtt", "b.en"], ["x/a.en-ru.vtt", "x/b.en-ru"]),
        ("{name}.{to}", ["a.en.srt"], ["a.en.srt.ru"]),
        ("a{{b}}.srt", ["a.srt"], ["a{b}.srt"]),
        ("talk.{to}.txt", ["-"], ["talk.ru.txt"]),
    ],
)
def test_where_outputs_go(
    output: str, inputs: list[str], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = plan_outputs(output, [Path(name) for name in inputs], EN_RU)
    assert [str(path) for path in plan.paths] == expected


def test_a_directory_that_is_there_is_one_without_a_slash(tmp_path: Path) -> None:
    plan = plan_outputs(str(tmp_path), [Path("a.srt")], EN_RU)
    assert plan.paths == (tmp_path / "a.ru.srt",)
    assert plan.journal == tmp_path / "a.ru.srt.cadec-journal"
    plan = plan_outputs(str(tmp_path), [Path("a.srt"), Path("b.srt")], EN_RU, ext=".jsonl")
    assert plan.paths == (tmp_path / "a.ru.jsonl", tmp_path / "b.ru.jsonl")
    assert plan.journal == tmp_path / ".cadec-journal"


@pytest.mark.parametrize(
    ("output", "inputs", "message"),
    [
        ("out/", ["a.srt", "b/a.srt"], r"a\.srt and b/a\.srt would both become out/a\.ru\.srt"),
        ("out/", ["a.en.srt", "a.srt"], "would both become"),
        ("{to}.srt", ["a.srt", "b.srt"], r"would both become ru\.srt"),
        ("out.srt.gz", ["a.srt"], "not compressed"),
        ("out/", ["-"], "standard input has no name"),
        ("{stem}.txt", ["-"], "standard input has no name"),
        ("{ext}", ["letter"], "leaves a file without a name"),
    ],
)
def test_names_that_can_not_be_made_are_refused(output: str, inputs: list[str], message: str) -> None:
    with pytest.raises(CadecError, match=message):
        plan_outputs(output, [Path(name) for name in inputs], EN_RU)


@pytest.mark.parametrize("output", ["{steam}.srt", "{}", "{0}", "{stem!r}", "{stem:>9}", "a{", "a}", "{stem"])
def test_unknown_placeholders_are_refused(output: str) -> None:
    with pytest.raises(TemplateError):
        is_template(output)


words = st.text(st.sampled_from("ab.{}é "), min_size=1, max_size=8).filter(lambda name: name.strip("."))


@given(st.lists(words, min_size=1, max_size=4, unique=True))
def test_names_that_differ_stay_apart_or_are_refused(names: list[str]) -> None:
    """With {name} in it, no two inputs of a directory meet; whatever their names hold is no placeholder."""
    plan = plan_outputs("{name}.{to}", [Path(name) for name in names], EN_RU)
    assert [str(path) for path in plan.paths] == [f"{name}.ru" for name in names]


odd = st.text(st.sampled_from("ru./\\\0-"), min_size=1, max_size=6)


@given(odd, st.sampled_from(["out/", "out/{stem}.{to}", "out/{to}"]))
def test_no_language_leads_out_of_a_directory(target: str, output: str) -> None:
    try:
        plan = plan_outputs(output, [Path("in/README")], Languages("en", target))
    except CadecError:
        return
    assert plan.paths[0].parent == Path("out") and ".." not in plan.paths[0].parts


@pytest.mark.parametrize("language", ["/../../pwned", "..", ".", "a/b", "a\\b", "a\0b"])
def test_a_language_that_is_a_path_is_refused(language: str) -> None:
    for languages, output in (
        (Languages("en", language), "out/"),
        (Languages("en", language), "{stem}{to}"),
        (Languages(language, "ru"), "{from}/{stem}"),
    ):
        with pytest.raises(CadecError, match="can't be used for"):
            plan_outputs(output, [Path("README")], languages)


@pytest.mark.parametrize("ending", [".pdf", ".idx", ".sup", ".docm", ".mp4"])
def test_other_formats_are_not_written_under_their_names(ending: str) -> None:
    """No format in the table has these endings, and text under such a name would be taken for it."""
    with pytest.raises(CadecError, match=rf"x\{ending}: \{ending} can't be written"):
        plan_outputs(f"x{ending}", [Path("film.srt")], EN_RU)
    same = plan_outputs(f"x{ending}", [Path(f"film{ending}")], EN_RU)  # it was read as text, as the user said
    assert same.paths == (Path(f"x{ending}"),)
