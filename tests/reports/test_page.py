"""The page in a real browser: hostile text stays text, filters filter, and thousands of rows stay quick."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.reports.page import (
    Figures,
    Page,
    Picture,
    ReportHypothesis,
    ReportPart,
    ReportSegment,
    ReportToken,
    plain,
    write_page,
)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed to look at the page with")

RUN = "document.documentElement.setAttribute('owned', 1)"
HOSTILE = (
    f"</script><script>{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f'"><svg onload="{RUN}">',
    f"<!--<script>{RUN}//",
    f"javascript:{RUN}",
    "{{script}} ${1} &lt;b&gt; &amp;",
    "שלום עולם، مرحبا",
    "👩‍👩‍👧 family 🏳️‍🌈",
    "line\u2028and paragraph\u2029separators",
    "\x00\x1b[31m\x07 and \u202edetrevni",
)


def looked_at(path: Path, state: str, *, size: str = "1200,900") -> str:
    """The page's document after its script has run, with the state in its address."""
    assert CHROMIUM is not None
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={path.parent / 'profile'}"]
    command = [CHROMIUM, *flags, f"--window-size={size}", "--dump-dom", f"{path.as_uri()}#{state}"]
    environment = {**os.environ, "HOME": str(path.parent)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Drawn(HTMLParser):
    """What a document holds: its elements with their attributes, its text, and the texts of its cells."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.cells: dict[str, list[str]] = {"source": [], "compared": [], "text": []}
        self.words = ""
        self._cell = self._tag = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        kind = dict(attrs).get("class")
        if tag == "p":
            self._cell = kind if kind in self.cells else ""
            if self._cell:
                self.cells[self._cell].append("")
        self._tag = tag

    def handle_endtag(self, tag: str) -> None:
        self._tag = ""
        if tag == "p":
            self._cell = ""

    def handle_data(self, data: str) -> None:
        if self._tag in ("script", "style"):
            return
        self.words += data
        if self._cell:
            self.cells[self._cell][-1] += data

    def classes(self, name: str) -> list[str]:
        """The elements with a class, by their tags."""
        return [tag for tag, attributes in self.elements if name in (attributes.get("class") or "").split()]


def segment(number: int, source: str, text: str, compared: str | None = None, **more: Any) -> dict[str, Any]:
    tokens = (*(ReportToken(f" {word}", 0.5) for word in text.split()), ReportToken("</s>", -1.0))
    hypotheses = (
        ReportHypothesis(text, -1.0, -2.0, 1.0, chosen=True),
        ReportHypothesis(source, -3.0, -2.5, -0.5, note=source),
    )
    part = ReportPart(hypotheses, (source, text), tokens)
    return plain(
        ReportSegment(
            f"document {number // 8 + 1}", f"{number}", source, text, compared, parts=(part,), **more
        )
    )


def written(path: Path, segments: Sequence[dict[str, Any]], title: str = "a page") -> Path:
    figures = Figures(title, ("scorer", title), ((title, "50.0"),), title)
    picture = Picture(title, "image/svg+xml", b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    page = Page(title, "sentences", ("source", "before", "after"), {title: title}, ("en", "ru"))
    write_page(path, Page(**{**vars(page), "figures": (figures,), "pictures": (picture,)}), segments)
    return path


def test_hostile_texts_are_text_and_run_nothing(tmp_path: Path) -> None:
    segments = [
        segment(number, text, text, text[::-1], flags=(text,), confidence=0.5)
        for number, text in enumerate(HOSTILE)
    ]
    path = written(tmp_path / "hostile.html", [*segments, segment(0, "same", "same", "same")], HOSTILE[0])
    drawn = Drawn(looked_at(path, "open=1&show=changed"))
    tags = {tag for tag, _ in drawn.elements}
    (root, *_) = (attributes for tag, attributes in drawn.elements if tag == "html")
    assert root["data-ready"]  # the page's own script ran to its end, and nobody else's ran
    assert "owned" not in root and drawn.words.strip().startswith(HOSTILE[0])
    assert not tags & {"svg", "iframe", "object"} and [tag for tag, _ in drawn.elements].count("script") == 2
    assert [attributes["alt"] for tag, attributes in drawn.elements if tag == "img"] == [HOSTILE[0]]
    assert not [name for _, attributes in drawn.elements for name in attributes if name.startswith("on")]
    expected = [text.translate({0: "␀", 7: "␇", 27: "␛"}) for text in HOSTILE]
    assert drawn.cells["source"] == drawn.cells["text"] == expected  # and not what did not change
    # An open segment has its context, its tokens with their PMI and both hypotheses.
    assert len(drawn.classes("details")) == len(drawn.classes("chosen")) == len(drawn.classes("context")) == 1
    assert all(figure in drawn.words for figure in ("−1.00", "+0.50", "−2.50"))
    # Nothing is asked of anyone else.
    content = path.read_text("utf-8")
    without_data = re.sub(r'<script type="application/json".*?</script>', "", content, flags=re.S)
    assert not re.search(r"(src|href)=(?!\"data:,\")|url\(|@import|https?:", without_data)
    assert "default-src 'none'" in content and "unsafe-inline" not in content


def test_search_filter_and_order_stand_in_the_address(tmp_path: Path) -> None:
    doubts = {3: 0.4, 5: 0.1, 8: 0.9}
    segments = [
        segment(
            number,
            f"Sentence {number} of Ёлка" if number % 2 else f"sentence {number}",
            f"text {number}",
            f"text {number}" if number < 6 else f"texts {number}",
            confidence=doubts.get(number, 0.99),
            flags=("doubtful",) if number in doubts and number != 8 else (),
        )
        for number in range(10)
    ]
    path = written(tmp_path / "page.html", segments)
    drawn = Drawn(looked_at(path, "q=%D1%91%D0%BB%D0%BA%D0%B0&first=1&group=document%201&theme=dark"))
    # Those to check first, the most doubtful of them at the top; the others as they stand in the file.
    assert drawn.cells["text"] == ["text 5", "text 3", "text 1", "text 7"]
    assert drawn.cells["compared"] == ["text 5", "text 3", "text 1", "texts 7"]
    assert "4 of 10 sentences" in drawn.words and [tag for tag, _ in drawn.elements].count("mark") == 2
    assert dict(drawn.elements)["html"]["data-theme"] == "dark"


def test_of_thousands_of_segments_those_in_view_are_drawn_first(tmp_path: Path) -> None:
    words = "слово " * 8
    segments = [segment(number, f"Word {number}", f"{words}{number}", words) for number in range(5000)]
    path = written(tmp_path / "long.html", segments)
    document = looked_at(path, "")
    assert "5,000 of 5,000 sentences" in document
    # The rest has its place, and comes when there is time.
    assert document.count('class="chunk"') == 125 and document.count('<article class="row') >= 40
