import gzip
import itertools
import lzma
import tracemalloc
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from cadec_cli.commands import prepare
from cadec_cli.data.opensubtitles import (
    MovieFilter,
    monolingual_documents,
    parallel_documents,
    split_by_time,
    time_overlap,
    timed_documents,
)
from cadec_cli.data.opus_xml import Report, TimedSentence
from cadec_cli.errors import CadecError
from tests.helpers.opus_samples import HEAD, film, put, sentence


def links(*rows: str, source: str = "en/2001/7/1.xml.gz", target: str = "ru/2001/7/2.xml.gz") -> str:
    return f'<linkGrp targType="s" fromDoc="{source}" toDoc="{target}" >\n{"".join(rows)}</linkGrp>\n'


def link(targets: str, overlap: str = "") -> str:
    return f'<link id="SL" xtargets="{targets}"' + (f' overlap="{overlap}"' if overlap else "") + " />\n"


def cesalign(*groups: str) -> str:
    doctype = '<!DOCTYPE cesAlign PUBLIC "-//CES//DTD XML cesAlign//EN" "">\n'
    return f'{HEAD}{doctype}<cesAlign version="1.0">\n{"".join(groups)}</cesAlign>\n'


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Five pairs: 1 and 2 close, a pause of ten seconds, then 3, 4 and 5."""
    times = [(0, 2), (3, 5), (15, 17), (18, 20), (21, 23)]
    english = [sentence(i, f"One {i} .", start, end) for i, (start, end) in enumerate(times, 1)]
    russian = [
        sentence(i, f"Раз {i} .", start + 0.1 * i, end + 0.1 * i) for i, (start, end) in enumerate(times, 1)
    ]
    put(tmp_path, "en/2001/7/1.xml.gz", film(*english))
    put(tmp_path, "ru/2001/7/2.xml.gz", film(*russian))
    return tmp_path


def aligned(corpus: Path, content: str, **options: float) -> tuple[list[list[tuple[str, str]]], Report]:
    report = Report()
    path = put(corpus, "align.xml", content)
    documents = parallel_documents(
        path,
        corpus,
        report=report,
        min_overlap=options.get("min_overlap", 0),
        max_gap=options.get("max_gap", 7),
    )
    return [[(pair.source, pair.target) for pair in document.pairs] for document in documents], report


def test_monolingual_documents_split_at_gaps(corpus: Path) -> None:
    report = Report()
    documents = list(monolingual_documents(corpus, "en", report=report))
    assert [document.texts for document in documents] == [
        ("One 1.", "One 2."),
        ("One 3.", "One 4.", "One 5."),
    ]
    assert (report.read["films"], report.kept["sentences"]) == (1, 5)
    assert len(list(monolingual_documents(corpus, "en", max_gap=10, report=Report()))) == 1


def test_largest_version_of_a_film_unless_all_are_wanted(corpus: Path) -> None:
    put(corpus, "en/2001/7/0.xml", film(sentence(1, "Short", 1, 2)) + " " * 5000)
    put(corpus, "en/2001/7/3.xml", "<document>" + " " * 9000)  # largest, and nothing in it
    (only,) = monolingual_documents(corpus, "en", report=Report())
    assert only.texts == ("Short",)
    assert len(list(monolingual_documents(corpus, "en", report=Report(), all_versions=True))) == 3


def test_unknown_language_is_an_error(corpus: Path) -> None:
    with pytest.raises(CadecError, match="no films of 'xx'"):
        list(monolingual_documents(corpus, "xx", report=Report()))


def test_parallel_documents(corpus: Path) -> None:
    rows = [link(f"{i};{i}") for i in range(1, 6)]
    documents, report = aligned(corpus, cesalign(links(*rows)))
    assert documents == [[(f"One {i}.", f"Раз {i}.") for i in part] for part in ((1, 2), (3, 4, 5))]
    assert (report.kept["pairs"], report.read["links"]) == (5, 5)


def test_raising_min_overlap_only_removes_pairs(corpus: Path) -> None:
    content = cesalign(links(*(link(f"{i};{i}") for i in range(1, 6))))
    kept = {pair for document in aligned(corpus, content)[0] for pair in document}
    for percent in range(5, 101, 5):
        fewer = {pair for d in aligned(corpus, content, min_overlap=percent / 100)[0] for pair in d}
        assert fewer <= kept
        kept = fewer
    assert not kept


def test_overlap_attribute_comes_before_the_times(corpus: Path) -> None:
    content = cesalign(links(link("1;1", "0.2"), link("2;2", "0.95"), link("3;3", "nan"), link("4;4", "?")))
    documents, report = aligned(corpus, content, min_overlap=0.9)
    assert documents == [[("One 2.", "Раз 2.")]]
    assert report.skipped["links with little time overlap"] == 3


def test_dropped_pairs_widen_the_gap(corpus: Path) -> None:
    content = cesalign(links(link("3;3", "1"), link("4;4", "0"), link("5;5", "1")))
    assert [len(document) for document in aligned(corpus, content, min_overlap=0.5, max_gap=4)[0]] == [2]
    assert [len(document) for document in aligned(corpus, content, min_overlap=0.5, max_gap=3)[0]] == [1, 1]


def test_many_to_many_empty_and_dangling_links(corpus: Path) -> None:
    content = cesalign(
        links(link("1 2;1"), link(";2"), link("3;"), link("4;99"), link("none"), link("5;4 5"))
    )
    documents, report = aligned(corpus, content)
    assert documents == [[("One 1. One 2.", "Раз 1.")], [("One 5.", "Раз 4. Раз 5.")]]
    assert report.skipped == {
        "links with an empty side": 2,
        "links to missing sentences": 1,
        "links without xtargets": 1,
    }


def test_doubled_quote_in_a_link_group(corpus: Path) -> None:
    at_the_end = links(link("1;1")).replace(" >", ' score="0.9"">', 1)
    documents, report = aligned(corpus, cesalign(at_the_end, links(link("2;2"))))
    assert documents == [[("One 1.", "Раз 1.")], [("One 2.", "Раз 2.")]]
    assert report.recovered == {"malformed tags": 1}
    at_the_start = links(link("1;1")).replace('fromDoc="', 'fromDoc=""')
    assert aligned(corpus, cesalign(at_the_start))[0] == [[("One 1.", "Раз 1.")]]


def test_links_after_an_unreadable_group_are_not_given_to_the_films_before(corpus: Path) -> None:
    first = links(link("1;1")).replace("</linkGrp>\n", "")
    documents, report = aligned(
        corpus, cesalign(first, links(link("2;2")).replace(" >", "", 1), links(link("3;3")))
    )
    assert documents == [[("One 1.", "Раз 1.")], [("One 3.", "Раз 3.")]]
    assert report.skipped == {"unreadable link groups": 1, "links of films left out": 1}


def test_truncated_alignment(corpus: Path) -> None:
    content = cesalign(links(link("1;1"), link("2;2")))
    documents, report = aligned(corpus, content[: content.index("2;2")])
    assert documents == [[("One 1.", "Раз 1.")]]
    assert report.recovered["truncated files"] == 1


def test_missing_films_and_paths_that_lead_out_are_counted(corpus: Path) -> None:
    outside = put(corpus.parent, "outside/2001/7/1.xml", film(sentence(1, "Secret", 1, 2)))
    long = f"en/2001/{'7' * 5000}/1.xml.gz"  # which no file can be called
    names = ["en/2001/8/1.xml.gz", "../outside/2001/7/1.xml", str(outside), "", long]
    groups = [links(link("1;1"), source=name) for name in names]
    documents, report = aligned(corpus, cesalign(*groups, links(link("1;1"))))
    assert documents == [[("One 1.", "Раз 1.")]]
    assert report.skipped == {"films missing": 5, "links of films left out": 5}


def test_uncompressed_film_stands_in_for_the_compressed_name(corpus: Path) -> None:
    path = corpus / "en/2001/7/1.xml.gz"
    put(corpus, "en/2001/7/1.xml", gzip.decompress(path.read_bytes()).decode())
    path.unlink()
    assert aligned(corpus, cesalign(links(link("1;1"))))[0] == [[("One 1.", "Раз 1.")]]


@pytest.mark.parametrize(
    "line", ["2001/7", "7", "tt0000007", "en/2001/7/1.xml.gz", "ru/2001/7/999.xml", " 7  # film"]
)
def test_excluded_films_never_appear(corpus: Path, line: str) -> None:
    put(corpus, "en/2002/77/1.xml", film(sentence(1, "Other", 1, 2)))
    exclude = MovieFilter(["# films", "", line])
    report = Report()
    documents = list(monolingual_documents(corpus, "en", exclude=exclude, report=report))
    assert [document.texts for document in documents] == [("Other",)]
    assert report.skipped["films excluded"] == 1
    path = put(corpus, "align.xml", cesalign(links(link("1;1"))))
    assert not list(parallel_documents(path, corpus, exclude=exclude, report=report))


def test_exclusion_looks_at_both_sides_and_at_the_year(corpus: Path) -> None:
    put(corpus, "ru/1999/5/2.xml.gz", film(sentence(1, "Раз", 0, 2)))
    path = put(corpus, "align.xml", cesalign(links(link("1;1"), target="ru/1999/5/2.xml.gz")))
    for line, count in (("1999/5", 0), ("2001/7", 0), ("1998/5", 1), ("2001/5", 1)):
        documents = list(
            parallel_documents(path, corpus, exclude=MovieFilter([line]), min_overlap=0, report=Report())
        )
        assert len(documents) == count


def test_exclusion_file_with_nonsense_is_an_error() -> None:
    with pytest.raises(CadecError, match="line 2"):
        MovieFilter(["2001/7", "The Wedding Planner"])


@given(
    st.lists(st.tuples(st.floats(0, 30), st.floats(0, 5)), max_size=30),
    st.floats(0, 10),
)
def test_split_by_time_is_a_partition_without_gaps(steps: list[tuple[float, float]], max_gap: float) -> None:
    sentences, now = [], 0.0
    for number, (pause, length) in enumerate(steps):
        sentences.append(TimedSentence(str(number), "x", now + pause, now + pause + length))
        now += pause + length
    runs = list(split_by_time(sentences, max_gap))
    assert [s for run in runs for s in run] == sentences
    for run in runs:
        assert all(after.start - before.end <= max_gap for before, after in itertools.pairwise(run))
    for before, after in itertools.pairwise(runs):
        assert after[0].start - before[-1].end > max_gap


def test_a_clock_that_starts_again_begins_a_document() -> None:
    discs = [TimedSentence("1", "end of disc one", 3000, 3002), TimedSentence("2", "disc two", 1, 2)]
    assert len(list(split_by_time(discs, 7))) == 2


def test_time_overlap() -> None:
    def span(start: float, end: float) -> TimedSentence:
        return TimedSentence("", "", start, end)

    assert time_overlap(span(87.72, 92.24), span(87.44, 91.96)) == pytest.approx(0.883, abs=5e-4)
    assert time_overlap(span(0, 1), span(0, 1)) == 1
    assert time_overlap(span(0, 1), span(2, 3)) == time_overlap(span(1, 1), span(1, 1)) == 0


def test_memory_does_not_grow_with_the_number_of_films(corpus: Path) -> None:
    def peak(groups: int) -> int:
        group = links(*(link(f"{i};{i}") for i in range(1, 6)), *(link("1;") for _ in range(200)))
        path = put(corpus, "align.xml", cesalign(*([group] * groups)))
        tracemalloc.start()
        try:
            assert (
                sum(1 for _ in parallel_documents(path, corpus, min_overlap=0, report=Report())) == 2 * groups
            )
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)
    # twice, for what tests before left behind may be tidied up in between
    assert min(peak(120), peak(120)) < 2 * peak(20)


def test_timed_documents_hold_no_gap(corpus: Path) -> None:
    for max_gap in (0.5, 1, 7, 10):
        for run in timed_documents(corpus, "en", max_gap=max_gap, report=Report()):
            assert all(b.start - a.end <= max_gap for a, b in itertools.pairwise(run))


def run(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(prepare.opensubtitles)
    return CliRunner().invoke(app, arguments)


def test_command_writes_documents_and_compresses_by_name(corpus: Path) -> None:
    expected = "One 1.\nOne 2.\n\nOne 3.\nOne 4.\nOne 5.\n"
    for name, unpack in (("a.txt", bytes), ("a.txt.gz", gzip.decompress), ("a.txt.xz", lzma.decompress)):
        result = run(str(corpus), "--language", "en", "-o", str(corpus / name))
        assert result.exit_code == 0, result.output
        assert unpack((corpus / name).read_bytes()).decode() == expected
    assert run(str(corpus), "--language", "en", "-o", "-").stdout == expected
    assert run(str(corpus), "--language", "en", "-o", "-", "--min-sentences", "3").stdout == expected[15:]


def test_command_writes_pairs_and_cleans_them(corpus: Path) -> None:
    path = put(corpus, "align.xml", cesalign(links(link("1;1"), link("2;2 3"), link("3;4"), link("4;5"))))
    arguments = [str(corpus), "--alignment", str(path), "--min-overlap", "0", "-o", "-"]
    assert (
        run(*arguments).stdout == "One 1.\tРаз 1.\nOne 2.\tРаз 2. Раз 3.\n\nOne 3.\tРаз 4.\nOne 4.\tРаз 5.\n"
    )
    assert (
        run(*arguments, "--max-ratio", "1.5").stdout == "One 1.\tРаз 1.\n\nOne 3.\tРаз 4.\nOne 4.\tРаз 5.\n"
    )
    assert "Раз" not in run(*arguments, "--max-characters", "1").stdout


def test_command_leaves_no_file_when_nothing_is_kept(corpus: Path) -> None:
    films = corpus / "films.txt"
    films.write_text("7\n")
    result = run(
        str(corpus), "--language", "en", "-o", str(corpus / "out.txt"), "--exclude-movies", str(films)
    )
    assert isinstance(result.exception, CadecError)
    assert not list(corpus.glob("*out*"))


def test_command_wants_one_of_language_and_alignment(corpus: Path) -> None:
    assert run(str(corpus), "-o", "-").exit_code == 2
