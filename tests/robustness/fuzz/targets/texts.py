"""Files of text to be translated, and what is done to them: read, put together again, converted."""

import contextlib
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.helpers import catalogue_files
from tests.helpers.catalogue_files import FILLED
from tests.helpers.document_files import document
from tests.robustness.fuzz.packing import GZIP, XZ, member
from tests.robustness.fuzz.target import Target
from tests.robustness.fuzz.targets.parts import text

if TYPE_CHECKING:
    from cadec_cli.text.formats import TextFile

PLAIN = """---
title: A page
---
# Heading

The first line. It has two sentences.
- an item with `code`, https://example.org and <b>bold</b>
\t1. Mr. Smith paid $5.50… "Really?" he said.

```
code is left alone
```
Привет! Как дела?\r

> The next morning, when he came down to
> breakfast, he found that his wife had
> left him a letter, in which she told
> him that she would never, in this well-
> known house, be seen by him again.
"""

SRT = """1
00:00:01,000 --> 00:00:02,500 X1:10 Y1:20
<i>Good evening, everybody,
and welcome.</i>

2
00:00:02,600 --> 00:00:05,000
- Is this seat free?
- Yes. [laughs]

3
00:01:05,100 --> 00:01:07,000
{\\an8}MAN: ♪ La la ♪ &amp; so on...
"""

VTT = """WEBVTT - a film
Kind: captions
Language: en

STYLE
::cue { color: red }

NOTE a note

one
00:01.000 --> 00:02.500 align:start position:10%
<v Tom>Good <00:01.500><c.red>evening</c>, everybody,
and welcome.

00:00:02.600 --> 00:00:05.000
&lt;Is&gt; this seat free?
"""

ASS = """[Script Info]
Title: A film
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize
Style: Default,Arial,20

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:01.00,0:00:02.50,Default,Tom,0,0,0,,{\\i1}Good evening,\\Neverybody{\\i0}.
Comment: 0,0:00:02.00,0:00:02.50,Default,,0,0,0,,a comment
Dialogue: 0,0:00:02.60,0:00:05.00,Default,,0,0,0,,Is this seat free?
"""

JSONL = """{"text": "Good evening.", "document": "a", "n": 1.50}
{"document": "a", "text": " It is late. "}

{"sentences": ["One.", "", "Two."], "translation": null}
{"document": ["Three.", "Four."]}
"""

LETTERS = st.sampled_from(
    ["a", "A", ".", "!", " ", "\n", "я", "-", "♪", "<i>", "</i>", "[", "]", ":", "\u200b"]
)
WORDS = st.lists(LETTERS, max_size=12).map("".join)
TIMES = st.sampled_from(
    [
        "00:00:01,000",
        "0:00:02.50",
        "00:01.000",
        "99:59:59,999",
        "100:00:00.000",
        "00:00:01",
        "1",
        "-1:00:00,0",
    ]
)


def cue(arrow: str = " --> ") -> st.SearchStrategy[str]:
    return st.tuples(TIMES, TIMES, WORDS).map(lambda drawn: f"{drawn[0]}{arrow}{drawn[1]}\n{drawn[2]}\n\n")


def joined(head: str, items: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    return st.lists(items, max_size=6).map(lambda drawn: (head + "".join(drawn)).encode())


def dialogue() -> st.SearchStrategy[str]:
    return st.tuples(st.integers(-1, 12), TIMES, TIMES, WORDS).map(
        lambda drawn: f"Dialogue: {','.join([*'0' * max(0, drawn[0] - 2), *drawn[1:]])}\n"
    )


def read(
    name: str, *, lines: bool = False, encoding: str | None = None, columns: tuple[str, ...] = ()
) -> Callable[[Path], None]:
    """A file is read in every way there is; with unchanged sentences its own bytes come back.

    In a catalogue, they fill what was empty: then what comes back is read as the same sentences.
    """

    def load(directory: Path) -> None:
        from cadec_cli.errors import CadecError
        from cadec_cli.fs.read import open_binary
        from cadec_cli.text.formats import FORMATS, read_text_file
        from cadec_cli.text.formats.conversion import as_format, in_encoding

        path = directory / name
        file = read_text_file(path, language="en", lines=lines, encoding=encoding, columns=columns)
        texts = [sentence for document in file.documents for sentence in document.texts]
        assert all(sentence.strip() for sentence in texts), "an empty sentence"
        assert all(len(document) for document in file.documents), "an empty document"
        assert not any("\n" in sentence for sentence in texts), "a sentence of several lines"
        written = b"".join(file.restore(texts))
        with open_binary(path) as stream:
            content = stream.read()
        if file.format == "jsonl":
            ends = b"\n" if b"\n" in content else b"\r"
            assert written.count(ends) == content.count(ends), "another number of lines"
        elif file.format not in FILLED:
            assert written == content, "unchanged sentences did not give back the file's bytes"
        others = b"".join(file.restore("One\r\nand another." for _ in texts))
        if file.format == "text":
            lines_in_out = [raw.decode(file.encoding or "").count("\n") for raw in (content, others)]
            # Paragraphs that were wrapped by hand are wrapped again.
            assert file.notes or lines_in_out[0] == lines_in_out[1], "another number of lines"
        tagged = read_text_file(
            path, language="en", lines=lines, encoding=encoding, columns=columns, tags=True
        )
        again = b"".join(tagged.restore(text for document in tagged.documents for text in document.texts))
        if file.cues is not None:
            with contextlib.suppress(CadecError):  # nothing may be left but what is around the subtitles
                _styled(path, file, encoding)
        if file.format in FILLED:
            filled = directory / f"filled{path.suffix}"
            filled.write_bytes(again)
            sides = [
                read_text_file(side, language="en", encoding=encoding, tags=True, retranslate=True).documents
                for side in (path, filled)
            ]
            assert [one.texts for one in sides[0]] == [one.texts for one in sides[1]], "other sentences"
            filled.unlink()
        assert file.format in ("jsonl", *FILLED) or again == content, (
            "tagged sentences did not give back the file"
        )
        for wanted in FORMATS:
            try:
                converted = as_format(file, wanted, name)
            except CadecError:
                continue
            b"".join(converted.restore(texts))
        b"".join(in_encoding(file, "utf-16").restore(texts))

    return load


def read_archive(name: str) -> Callable[[Path], None]:
    """A document is read; with unchanged sentences all its members come back, and others make no damage."""

    def load(directory: Path) -> None:
        from cadec_cli.errors import CadecError
        from cadec_cli.fs.archives import open_archive
        from cadec_cli.text.formats import read_text_file

        file = read_text_file(directory / name, language="en", tags=True)
        texts = [sentence for document in file.documents for sentence in document.texts]
        before = open_archive((directory / name).read_bytes(), name, "an archive")
        after = open_archive(b"".join(file.restore(texts)), name, "an archive")
        for one in after.names:
            try:
                content = before.read(one)
            except CadecError:
                continue  # too large to be read whole
            assert after.read(one) == content, f"{one} did not come back"
        open_archive(b"".join(file.restore("One\r\nand <b>another." for _ in texts)), name, "an archive")

    return load


PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Cats &amp; dogs</title><style>p > a {}</style></head>
<body><p>It was <b>late. She</b> left <a href='x' title="A &quot;b&quot;">home</a><br>at <code>5</code>.</p>
<img alt="A cat" src=a><pre>kept</pre><!-- kept --><script>if (a<b) "</p>"</script></body></html>
"""
MARKDOWN = """---
title: A page
---
# The *old* house

She came **late. He** had [a letter](b "c") and `code`,
<kbd>A</kbd> ![A cat](d) [e] <https://f>.

| a | b |
|---|---|
| *c* | d\\|e |

> - item\x20\x20
>   more &amp; ~~less~~

```
code
```
<div><p>Text</p></div>

[e]: http://g
"""
MARKS = st.sampled_from(
    [
        "a ",
        "B. ",
        "<p>",
        "</p>",
        "<b>",
        "</b>",
        "<br>",
        "<img alt='a b'>",
        "<code>",
        "</code>",
        "<!--",
        "-->",
        "&amp;",
        "*",
        "**",
        "_",
        "`",
        "[",
        "](a)",
        "]",
        "\n",
        "> ",
        "- ",
        "\n\n",
        "# ",
        "<script>",
        "<pre>",
        "\\",
    ]
)
PAGES = st.lists(MARKS, max_size=20).map("".join).map(str.encode)


def _styled(path: Path, plain: "TextFile", encoding: str | None) -> None:
    """Subtitles are read and written as professionals want them."""
    from cadec_cli.jobs.cue_checks import CueChecks
    from cadec_cli.text.formats import read_text_file
    from cadec_cli.text.formats.layout import SubtitleStyle

    style = SubtitleStyle(max_chars=20, max_lines=2, sdh="drop", dash="auto", fit=True, language="ru")
    file = read_text_file(path, language="en", encoding=encoding, tags=True, screen=style)
    assert sum(map(len, file.documents)) <= sum(len(one.text) for d in plain.documents for one in d.sentences)
    sentences = [one for document in file.documents for one in document.sentences]
    assert all(one.room is not None and one.room >= 0 for one in sentences), "an unknown room"
    texts = ["Одно слово, и ещё одно. " * 3 for _ in sentences]
    b"".join(file.restore(texts))
    checks = CueChecks()
    checks.look(0, file, texts)
    assert all(problem.reasons for _, problem in checks.in_order)


PAIRS = "Good evening, {name}.\tДобрый вечер, {name}.\n\nIt is 10:45.\tСейчас 10:45.\n"
TRANSLATED = """{"text": "Good evening.", "document": "a", "translation": "Добрый вечер."}
{"sentences": ["One.", "Two."], "translation": ["Один.", "Два."]}
{"source": "It is late.", "translation": "Уже поздно."}
"""


def checked(*names: str) -> Callable[[Path], None]:
    """A translation is read as pairs, and every check is made."""

    def load(directory: Path) -> None:
        from cadec_cli.evaluation.checks.pairs import read_pairs
        from cadec_cli.evaluation.checks.table import CHECKS, run_checks

        text = read_pairs(*(directory / name for name in names))
        for finding in run_checks(text, tuple(CHECKS)).findings:
            assert finding.message and finding.check in CHECKS

    return load


CHECKED = ("cadec_cli/evaluation/checks/pairs.py", "cadec_cli/evaluation/checks/cue_pairs.py")
CATALOGUES = (
    "cadec_cli/text/formats/catalogues/catalogue.py",
    "cadec_cli/text/formats/catalogues/message.py",
    "cadec_cli/text/formats/xml_text.py",
)
MODULES = ("cadec_cli/fs/read.py", "cadec_cli/text/formats/__init__.py")


def plain(name: str, content: str | bytes, load: Callable[[Path], None], grammar: bool = False) -> Target:
    return Target(MODULES, text(name, content), load, written=joined("", WORDS) if grammar else None)


RICHTEXT = ("cadec_cli/text/formats/__init__.py", "cadec_cli/fs/archives.py")


def archived(kind: str, inside: str) -> Target:
    """Documents that are archives: damaged as a whole, or a member of them while the archive stays whole."""
    name = f"a.{kind}"
    return Target(
        RICHTEXT,
        text(name, document(kind)),
        read_archive(name),
        packed={name: member(inside)},
        share=0.5,
    )


def catalogue(name: str, content: str, module: str, *columns: str) -> Target:
    modules = (f"cadec_cli/text/formats/{module}.py", *CATALOGUES)
    return Target(modules, text(name, content), read(name, columns=columns), share=0.5)


TARGETS = {
    "po": catalogue("a.po", catalogue_files.PO, "catalogues/po"),
    "pot": catalogue("a.pot", catalogue_files.POT, "catalogues/po"),
    "xliff": catalogue("a.xlf", catalogue_files.XLIFF, "catalogues/xliff"),
    "xliff 2": catalogue("a.xliff", catalogue_files.XLIFF_2, "catalogues/xliff"),
    "xliff, segmented": catalogue("a.xlf", catalogue_files.XLIFF_SEGMENTED, "catalogues/xliff"),
    "android": catalogue("strings.xml", catalogue_files.ANDROID, "catalogues/android"),
    "json": catalogue("en.json", catalogue_files.JSON, "catalogues/json_strings"),
    "arb": catalogue("a.arb", catalogue_files.ARB, "catalogues/json_strings"),
    "yaml": catalogue("en.yml", catalogue_files.YAML, "catalogues/yaml_strings"),
    "strings": catalogue("a.strings", catalogue_files.STRINGS, "catalogues/apple_strings"),
    "csv": catalogue("a.csv", catalogue_files.CSV, "tables", "2", "3"),
    "tsv": catalogue("a.tsv", catalogue_files.CSV.replace(",", "\t"), "tables", "3"),
    "ttml": catalogue("a.ttml", catalogue_files.TTML, "subtitles/ttml"),
    "ttml with frames": catalogue("a.dfxp", catalogue_files.TTML_FRAMES, "subtitles/ttml"),
    "sbv": catalogue("a.sbv", catalogue_files.SBV, "subtitles/sbv"),
    "sub": catalogue("a.sub", catalogue_files.SUB, "subtitles/microdvd"),
    "text": plain("a.txt", PLAIN, read("a.txt"), grammar=True),
    "text, lines": plain("a.md", PLAIN, read("a.md", lines=True), grammar=True),
    "text in UTF-16": plain("a.txt", PLAIN.encode("utf-16"), read("a.txt", encoding="utf-16")),
    "text in cp1251": plain("a.txt", PLAIN.encode("cp1251", "replace"), read("a.txt", encoding="cp1251")),
    "srt": Target(MODULES, text("a.srt", SRT), read("a.srt"), written=joined("", cue())),
    "vtt": Target(MODULES, text("a.vtt", VTT), read("a.vtt"), written=joined("WEBVTT\n\n", cue())),
    "ass": Target(
        MODULES,
        text("a.ass", ASS),
        read("a.ass"),
        written=joined("[Events]\nFormat: Layer, Start, End, Style, Text\n", dialogue()),
    ),
    "ssa": Target(MODULES, text("a.ssa", ASS.replace("V4+", "V4")), read("a.ssa"), share=0.5),
    "html": Target(RICHTEXT, text("a.html", PAGE), read("a.html"), written=PAGES),
    "markdown": Target(RICHTEXT, text("a.md", MARKDOWN), read("a.md"), written=PAGES),
    "docx": archived("docx", "document.xml"),
    "odt": archived("odt", "content.xml"),
    "epub": archived("epub", "c1.xhtml"),
    "package of an epub": archived("epub", "book.opf"),
    "jsonl": Target(("cadec_cli/text/formats/jsonl.py", *MODULES), text("a.jsonl", JSONL), read("a.jsonl")),
    "pairs in a table": Target(CHECKED, text("a.tsv", PAIRS), checked("a.tsv"), share=0.5),
    "pairs in jsonl": Target(CHECKED, text("a.jsonl", TRANSLATED), checked("a.jsonl"), share=0.5),
    "pairs of cues": Target(
        CHECKED, lambda directory: _cues(directory), checked("a.srt", "b.srt"), share=0.5
    ),
    "gzip": Target(
        MODULES, text("a.srt.gz", gzip.compress(SRT.encode())), read("a.srt.gz"), packed={"a.srt.gz": GZIP}
    ),
    "xz": Target(
        MODULES, text("a.txt.xz", lzma.compress(PLAIN.encode())), read("a.txt.xz"), packed={"a.txt.xz": XZ}
    ),
    "zstd": Target(
        MODULES,
        lambda directory: _zstd(directory / "a.txt.zst"),
        read("a.txt.zst"),
    ),
}


def _cues(directory: Path) -> None:
    for name in ("a.srt", "b.srt"):
        (directory / name).write_text(SRT, "utf-8")


def _zstd(path: Path) -> None:
    import zstandard

    path.write_bytes(zstandard.ZstdCompressor().compress(PLAIN.encode()))
