"""Corpora as they are found: OPUS's XML, tab-separated text, lists of films."""

from pathlib import Path

from tests.robustness.fuzz.packing import GZIP
from tests.robustness.fuzz.target import Target
from tests.robustness.fuzz.targets.parts import text

LINKS = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE cesAlign PUBLIC "-//CES//DTD XML cesAlign//EN" "">
<cesAlign version="1.0">
<linkGrp targType="s" fromDoc="en/2001/209475/1.xml.gz" toDoc="ru/2001/209475/2.xml.gz">
<link id="SL1" xtargets="1;1" overlap="0.95" />
<link id="SL2" xtargets="2;2 3" />
</linkGrp>
</cesAlign>
"""


def opus_seed(directory: Path) -> None:
    from tests.helpers.opus_samples import film, put, sentence

    for name, texts in (
        ("en/2001/209475/1", ("Hello &amp; hi.", "Well, yes.")),
        ("ru/2001/209475/2", ("Да.", "Ну.")),
    ):
        stamped = [sentence(n, one, n * 2.0, n * 2.0 + 1.5) for n, one in enumerate(texts, 1)]
        extra = [sentence(3, "Вот.", 5.6, 7.0)] if name.startswith("ru") else []
        put(directory, f"{name}.xml.gz", film(*stamped, *extra))
    (directory / "links.xml").write_text(LINKS, "utf-8")


def opus(directory: Path) -> None:
    from cadec_cli.data.opensubtitles import aligned_films, monolingual_documents, parallel_documents
    from cadec_cli.data.opus_xml import Report

    report = Report()
    for pairs in parallel_documents(directory / "links.xml", directory, report=report):
        assert pairs.pairs and all(pair.source.strip() and pair.target.strip() for pair in pairs.pairs)
    for document in monolingual_documents(directory, "en", report=report):
        assert all(sentence.strip() and "\n" not in sentence for sentence in document.texts)
        "".join(document.texts).encode()
    aligned_films(directory / "links.xml", report)
    assert all(count >= 0 for counts in vars(report).values() for count in counts.values())


def films(directory: Path) -> None:
    from cadec_cli.data.opensubtitles import MovieFilter

    assert isinstance("2001/209475" in MovieFilter.from_file(directory / "films.txt"), bool)


def pairs(directory: Path) -> None:
    from cadec_cli.data.preparation import rows

    for row in rows([directory / "pairs.tsv"], languages=2, columns=(1, 2)):
        assert row is None or len(row) == 2
    for row in rows([directory / "pairs.tsv", directory / "pairs.tsv"], languages=2):
        assert row is None or row[0] == row[1]


FILMS = ("en/2001/209475/1.xml.gz", "ru/2001/209475/2.xml.gz")

TARGETS = {
    "OPUS films": Target(
        ("cadec_cli/data/opus_xml.py",), opus_seed, opus, FILMS, packed=dict.fromkeys(FILMS, GZIP)
    ),
    "OPUS alignments": Target(("cadec_cli/data/opus_xml.py",), opus_seed, opus, ("links.xml",)),
    "films to leave out": Target(
        ("cadec_cli/data/opensubtitles.py",),
        text("films.txt", "2001/209475 # a film\ntt0209475\nen/2001/209475/54828.xml.gz\n"),
        films,
    ),
    "tab-separated pairs": Target(
        ("cadec_cli/data/preparation.py",), text("pairs.tsv", "a\tб\nc\tд\n\ne f\tж з\n"), pairs
    ),
}
