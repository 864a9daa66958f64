"""Catalogues as programs have them, by format: what is read, and how a translation is put into it."""

from pathlib import Path

from cadec_cli.extensions import load
from cadec_cli.text.documents import Document
from cadec_cli.text.formats import FORMATS
from cadec_cli.text.formats.layout import BinaryLayout, Layout, Source, SubtitleStyle

_DATA = Path(__file__).parents[1] / "text/formats/catalogues/files"


def _file(name: str) -> str:
    return (_DATA / name).read_bytes().decode()


PO = _file("gedit.po")
POT = _file("blog.pot")
XLIFF = _file("messages.xlf")
XLIFF_2 = _file("intro.xliff")
ANDROID = _file("strings.xml")
JSON = _file("en.json")
ARB = _file("app_en.arb")
YAML = _file("en.yml")
STRINGS = _file("Localizable.strings")
TTML = _file("film.ttml")
TTML_FRAMES = _file("frames.dfxp")
SBV = _file("film.sbv")
SUB = _file("film.sub")

# KDE's, with the line ends of Windows and without a header
PO_CRLF = '#: main.cpp:1\r\nmsgctxt "@action:button"\r\nmsgid "&Cancel"\r\nmsgstr ""\r\n\r\n'
PO_CRLF += '#: main.cpp:2\r\nmsgid "Tab\\there and \\"quotes\\"."\r\nmsgstr ""\r\n'
# segmented by a translator's tool, with a prefix and the line ends of Windows
XLIFF_SEGMENTED = _file("segmented.xlf").replace("\n", "\r\n")
CSV = 'id,name,description,fr\r\n1,Chair,"A comfortable, ""soft"" chair",\r\n2,Table,"Two\nlines",\r\n'
CSV += ",,,\r\n3,Lamp,It is bright,Elle éclaire\r\n4,Bed,It is soft,\r\n"

_MORE = (
    *(
        ("i18next.json", "json"),
        ("content.json", "json"),
        ("app_plural.arb", "arb"),
        ("app_select.arb", "arb"),
    ),
    *(("symfony.yaml", "yaml"), ("site.yml", "yaml"), ("plurals.xml", "android"), ("markup.xml", "android")),
    *(("InfoPlist.strings", "strings"), ("windows.strings", "strings"), ("youtube.ttml", "ttml")),
    *(("speakers.sbv", "sbv"), ("gaps.sbv", "sbv"), ("film_rate.sub", "sub"), ("windows.sub", "sub")),
)
# (file's name, format, content, columns of tables)
FILES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("gedit.po", "po", PO, ()),
    ("blog.pot", "po", POT, ()),
    ("kde.po", "po", PO_CRLF, ()),
    ("messages.xlf", "xliff", XLIFF, ()),
    ("intro.xliff", "xliff", XLIFF_2, ()),
    ("segmented.xlf", "xliff", XLIFF_SEGMENTED, ()),
    ("strings.xml", "android", ANDROID, ()),
    ("en.json", "json", JSON, ()),
    ("app_en.arb", "arb", ARB, ()),
    ("en.yml", "yaml", YAML, ()),
    ("Localizable.strings", "strings", STRINGS, ()),
    ("products.csv", "csv", CSV, ("name", "description")),
    ("products.tsv", "tsv", CSV.replace(",", "\t").replace("\t ", ", "), ("3",)),
    ("film.ttml", "ttml", TTML, ()),
    ("frames.dfxp", "ttml", TTML_FRAMES, ()),
    ("film.sbv", "sbv", SBV, ()),
    ("film.sub", "sub", SUB, ()),
    *((name, format, _file(name), ()) for name, format in _MORE),
    ("semicolons.csv", "csv", _file("semicolons.csv"), ("source",)),
    ("marked.csv", "csv", _file("marked.csv"), ("text",)),
    ("quotes.tsv", "tsv", _file("quotes.tsv"), ("src",)),
    ("single.tsv", "tsv", _file("single.tsv"), ("1",)),
)
# Formats in which a translation is put beside the source: an identical one fills what was empty.
FILLED = ("po", "xliff")


def read(
    content: str,
    format: str,
    *,
    to: str | None = None,
    columns: tuple[str, ...] = (),
    retranslate: bool = False,
    tags: bool = True,
) -> tuple[tuple[Document, ...], Layout | BinaryLayout]:
    """Read a file in English, to be translated into a language; without one, no language is named anew."""
    source = Source(
        content,
        name=f"a.{format}",
        format=format,
        language="en",
        tags=tags,
        screen=SubtitleStyle(language=to),
        columns=columns,
        retranslate=retranslate,
    )
    return load(FORMATS[format].read)(source)


def sentences(documents: tuple[Document, ...]) -> list[str]:
    """The sentences that are translated, of all documents."""
    return [one.text for document in documents for one in document.sentences if not one.given]


def translate(content: str, format: str, change: str = "{}", **options: object) -> str:
    """Read a file and write it with each sentence put into `change`."""
    documents, layout = read(content, format, **options)  # type: ignore[arg-type]
    found = [one for document in documents for one in document.sentences]
    pieces = layout.restore(one.given or change.replace("{}", one.text) for one in found)
    return "".join(map(str, pieces))
