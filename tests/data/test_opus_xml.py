import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.data import opus_xml
from cadec_cli.data.opensubtitles import monolingual_documents
from cadec_cli.data.opus_xml import Report, detokenise, read_film
from tests.helpers.opus_samples import film, put, sentence, stamp


def texts_of(tmp_path: Path, content: str, language: str = "en") -> tuple[list[str], Report]:
    report = Report()
    result = read_film(put(tmp_path, f"{language}/2001/7/1.xml", content), language, report)
    return [sentence.text for sentence in result.sentences] if result else [], report


@pytest.mark.parametrize(
    ("words", "language", "expected"),
    [
        ("From now on , he 'll take care of you ...", "en", "From now on, he'll take care of you..."),
        ("I don 't !", "en", "I don't!"),
        ("did n't", "en", "didn't"),
        ("knock ' em dead", "en", "knock 'em dead"),
        ('" Look , " he said .', "en", '"Look," he said.'),
        ("- Listen , and- -", "en", "- Listen, and--"),
        ("Tom ' i auto", "et", "Tom'i auto"),
        ("Да , конечно !", "ru", "Да, конечно!"),
        ("in 't huis", "nl", "in 't huis"),
    ],
)
def test_detokenise(words: str, language: str, expected: str) -> None:
    assert detokenise(words.split(), language) == expected


def test_tokenised_and_raw_flavours_agree(tmp_path: Path) -> None:
    tokenised = film(sentence(1, "Tom &amp; I don &apos;t &#60;know&#x3e; &quot;it&quot; .", 1, 2))
    raw = film(
        f'<s id="1">\n{stamp("T1S", 1)}\nTom &amp; I don&#39;t\n{stamp("T1E", 2)} &lt;know> "it".\n</s>\n'
    )
    assert texts_of(tmp_path, tokenised)[0] == texts_of(tmp_path, raw)[0] == ['Tom & I don\'t <know> "it".']


def test_cdata_comments_and_markup_in_raw_text(tmp_path: Path) -> None:
    text = 'a <i>b</i><!-- <s id="9">no</s> --> <![CDATA[<&c]]> &lt;3 <3 d'
    body = f'<s id="1">{stamp("T1S", 1)}{text}{stamp("T1E", 2)}</s>'
    assert texts_of(tmp_path, film(body))[0] == ["a b <&c <3 <3 d"]


def test_every_way_of_cutting_the_stream_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = film(
        sentence(1, "Ж &amp; é", 1, 2),
        f'<!-- a <s> in a comment --><s id="2">{stamp("T2S", 3)}x<![CDATA[ y<s> ]]>z{stamp("T2E", 4)}</s>',
        f'<s id="3"><w id="3.1" alternative="a>b">q</w>{stamp("T3S", 5)}{stamp("T3E", 6)}</s>',
    )
    whole = texts_of(tmp_path, content)[0]
    assert whole == ["Ж & é", "x y<s> z", "q"]
    for size in (1, 2, 3, 7, 50):
        monkeypatch.setattr(opus_xml, "_CHUNK", size)
        assert texts_of(tmp_path, content)[0] == whole


def test_bare_ampersand_is_kept_and_counted(tmp_path: Path) -> None:
    texts, report = texts_of(tmp_path, film(sentence(1, "R&B &nbsp; now", 1, 2)))
    assert texts == ["R&B &nbsp; now"]
    assert report.recovered["bare ampersands and unknown entities"] == 2


def test_entities_of_a_doctype_are_never_expanded(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    bomb = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    doctype = f'<!DOCTYPE document [<!ENTITY l0 "lol"><!ENTITY x SYSTEM "file://{secret}">{bomb}]>'
    content = film(sentence(1, "say &l9; &x; .", 1, 2)).replace("<document", f"{doctype}<document", 1)
    texts, _ = texts_of(tmp_path, content)
    assert texts == ["say &l9; &x;."]


def test_truncated_film_keeps_what_is_whole(tmp_path: Path) -> None:
    content = film(sentence(1, "One .", 1, 2), sentence(2, "Two .", 3, 4))
    texts, report = texts_of(tmp_path, content[: content.index("Two") + 2])
    assert texts == ["One."]
    assert report.skipped["sentences cut off"] == 1
    assert report.recovered["truncated files"] == 1


def test_truncated_and_damaged_archives(tmp_path: Path) -> None:
    content = film(*(sentence(i, f"Word{i * 7919} .", 2 * i, 2 * i + 1) for i in range(2000)))
    path = put(tmp_path, "en/2001/7/1.xml.gz", content)
    packed = path.read_bytes()
    middle = len(packed) // 2
    for damaged in (packed[:middle], packed[:middle] + b"\xff" * 64 + packed[middle + 64 :]):
        path.write_bytes(damaged)
        report = Report()
        result = read_film(path, "en", report)
        assert result is not None
        assert 100 < len(result.sentences) < 2000
        assert [s.text for s in result.sentences[:99]] == [f"Word{i * 7919}." for i in range(99)]
        assert report.recovered["damaged archives"] == 1


def test_undecodable_bytes_cost_their_sentence_only(tmp_path: Path) -> None:
    path = put(tmp_path, "en/2001/7/1.xml", film(*(sentence(i, f"N{i}", i, i + 1) for i in (1, 2, 3))))
    path.write_bytes(path.read_bytes().replace(b"N2", b"N\xff"))
    report = Report()
    documents = list(monolingual_documents(tmp_path, "en", report=report))
    assert [document.texts for document in documents] == [("N1",), ("N3",)]
    assert report.skipped["sentences with undecodable bytes"] == 1


def test_sentence_not_closed(tmp_path: Path) -> None:
    texts, report = texts_of(
        tmp_path, film(sentence(1, "One", 1, 2).replace("</s>", ""), sentence(2, "Two", 3, 4))
    )
    assert texts == ["One", "Two"]
    assert report.recovered["sentences not closed"] == 1


def test_times_of_a_shared_block_are_interpolated(tmp_path: Path) -> None:
    content = film(
        f'<s id="1">{stamp("T1S", 10)}<w>abcd</w></s>',
        f'<s id="2"><w>ab</w></s><s id="3"><w>ab</w>{stamp("T1E", 18)}</s>',
        '<s id="4"><w>after</w></s>',
        sentence(5, "far", 100, 101),
    )
    report = Report()
    result = read_film(put(tmp_path, "en/2001/7/1.xml", content), "en", report)
    assert result is not None
    times = [(s.start, s.end) for s in result.sentences]
    # The fourth has no block of its own: it stays at the end of the third and does not bridge the pause.
    assert times == [(10, 14), (14, 16), (16, 18), (18, 18), (100, 101)]
    assert report.recovered["times taken from neighbours"] == 2
    assert [len(document) for document in monolingual_documents(tmp_path, "en", report=Report())] == [4, 1]


def test_film_without_times_is_skipped(tmp_path: Path) -> None:
    texts, report = texts_of(tmp_path, film('<s id="1"><w>One</w></s>'))
    assert not texts
    assert report.skipped["films without timed sentences"] == 1


def test_a_film_that_unpacks_to_far_too_much_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opus_xml, "_MAX_FILM_LENGTH", 10_000)
    texts, report = texts_of(tmp_path, film(*(sentence(i, "word " * 10, i, i + 1) for i in range(200))))
    assert not texts
    assert report.skipped["films too large"] == 1


@given(st.data())
def test_damage_is_never_fatal_and_stays_local(data: st.DataObject) -> None:
    content = film(*(sentence(i, f"w{i} &amp; x{i}", 2 * i, 2 * i + 1) for i in range(8)))
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 60)))
    middle = data.draw(st.text("<>&;\"'/!-[]sw= \x00\ud7ff", max_size=8))
    with tempfile.TemporaryDirectory() as folder:
        texts, _ = texts_of(Path(folder), content[:start] + middle + content[end:])
    assert len(texts) <= 10
    # What is damaged is lost with its neighbour at most.
    assert len({f"w{i} & x{i}" for i in range(8)} & set(texts)) >= 5
