"""Real files: pages and documents of installed packages, of this repository, and of LibreOffice."""

from importlib.resources import files as package_files
from pathlib import Path

import pytest

from tests.helpers.document_files import members
from tests.helpers.marked_texts import elements, page_shape, translated, unchanged, upper

HERE = Path(__file__).parent / "files"
ROOT = Path(__file__).parents[4]
WEB = Path(str(package_files("matplotlib"))) / "backends" / "web_backend"
PAGES = [ROOT / "tests" / "tour" / "files" / "page.html", *sorted(WEB.glob("*.html"))]
MARKDOWN = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
# What the runs of Word have, which are made anew.
OF_RUNS = ("r", "rPr", "t", "lang", "b", "bCs", "i", "iCs", "u", "color", "sz", "szCs", "rFonts", "rStyle")
DOCUMENTS = sorted(HERE.iterdir())


def test_there_are_three_of_each() -> None:
    for kind in ("docx", "odt", "epub"):
        assert len([path for path in DOCUMENTS if path.suffix == f".{kind}"]) >= 3
    assert len(PAGES) >= 3


@pytest.mark.parametrize("path", [*PAGES, *MARKDOWN], ids=lambda path: path.name)
def test_pages(path: Path) -> None:
    page = path.read_bytes()
    kind = "html" if path.suffix == ".html" else "markdown"
    given: bytes | str = page if kind == "html" else page.decode()
    assert translated(given, kind, unchanged) == page
    assert page_shape(translated(given, kind, upper).decode(), kind) == page_shape(page.decode(), kind)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents(path: Path) -> None:
    data, kind = path.read_bytes(), path.suffix[1:]
    assert list(members(translated(data, kind, unchanged)).items()) == list(members(data).items())
    found = members(translated(data, kind, upper))
    changed = 0
    for name, content in members(data).items():
        if found[name] == content:
            continue
        changed += 1
        of_runs = (
            "r",
            "rPr",
            "t",
            "lang",
            "b",
            "bCs",
            "i",
            "iCs",
            "u",
            "color",
            "sz",
            "szCs",
            "rFonts",
            "rStyle",
            "s",
        )
        assert elements(found[name], *of_runs) == elements(content, *of_runs), name
    assert changed >= 1


def test_styles_name_the_language() -> None:
    for kind, member, wanted in (
        ("docx", "word/styles.xml", b'<w:lang w:val="ru"'),
        ("odt", "styles.xml", b'fo:language="ru" fo:country="none"'),
    ):
        data = (HERE / f"letter.{kind}").read_bytes()
        assert wanted in members(translated(data, kind, upper, language="ru"))[member]
        assert translated(data, kind, upper, language="en") != translated(data, kind, upper, language="ru")
