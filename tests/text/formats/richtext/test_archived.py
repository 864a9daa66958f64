"""Word documents, OpenDocument texts and books: sentences, what is kept, and what is refused."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from cadec_cli.errors import CadecError
from tests.helpers.document_files import archive, document, docx_with, epub_with, members, odt_with, parts_of
from tests.helpers.marked_texts import (
    elements,
    html_text,
    read,
    scrambled,
    sentences,
    translated,
    unchanged,
    upper,
    without_tags,
)

KINDS = ("docx", "odt", "epub")
OF_RUNS = ("r", "rPr", "t", "lang", "lastRenderedPageBreak", "proofErr", "b", "i", "vertAlign", "s")
MAIN = {"docx": "word/document.xml", "odt": "content.xml", "epub": "OEBPS/text/c2.xhtml"}
SENTENCES = {
    "docx": [
        [
            "The <b>old</b> lighthouse",
            "She came <i>late.</i>",
            "<i>He</i> had <a>a letter</a> & nothing else<x/>.",
            "The end.",
            "Page <x/> of the book and <a>our page</a><x2/> too<x3/><x4/>.",
            "First cell",
            "Second<tab/> cell<br/> here",
            "Inside a box.",
            "Beside the box.",
        ],
        ["A note."],
        ["The header"],
    ],
    "odt": [
        [
            "The <span>old</span> lighthouse",
            "A note.",
            "She came <span>late.</span>",
            "<span>He</span> had <a>a letter</a> & nothing else<note/>.",
            "The end.",
            "One<tab/> thing",
            "A cell<linebreak/> of two lines",
            "A picture",
            "On page <pagenumber/> of it<annotation/><bookmark/>, see <frame/>.",
        ],
        ["The header"],
    ],
    "epub": [
        [
            "A chapter",
            "The Lighthouse",
            "It was <em>late</em>.",
            "Anna was tired<a/>.",
            "She said\xa0nothing.",
            "A note.",
            "A lighthouse",
            "A chapter",
            "The Letter",
            "<span>She</span> wrote a <b>very <i>long</i> letter</b> at night.",
        ],
        ["The Old Lighthouse", "Contents", "Chapter 1", "Chapter 2"],
    ],
}


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_in_reading_order(kind: str) -> None:
    documents, _ = read(document(kind), kind)
    assert [list(one.texts) for one in documents] == SENTENCES[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_all_but_words_stays(kind: str) -> None:
    data = document(kind)
    assert members(translated(data, kind, unchanged)) == members(data)
    found = members(translated(data, kind, upper))
    assert list(found) == list(members(data))
    for name, content in members(data).items():
        if not name.endswith((".xml", ".xhtml", ".opf")):
            assert found[name] == content, name
            continue
        # The words are in capitals; elements and attributes are as they were.
        before, after = etree.fromstring(content), etree.fromstring(found[name])
        words = ["".join("".join(one.itertext()).upper().split()) for one in (before, after)]
        assert words[0] == words[1], name
        assert elements(found[name], *OF_RUNS) == elements(content, *OF_RUNS), name
    assert data == document(kind) and translated(data, kind, upper) == translated(data, kind, upper)


def test_runs_keep_their_look() -> None:
    body = members(translated(document("docx"), "docx", upper))[MAIN["docx"]].decode()
    assert (
        '<w:r><w:rPr><w:i/></w:rPr><w:t xml:space="preserve">LATE. HE</w:t></w:r>'
        '<w:r><w:t xml:space="preserve"> HAD </w:t></w:r><w:hyperlink r:id="rId9">' in body
    )
    assert "<w:delText>gone</w:delText>" in body and " PAGE </w:instrText>" in body
    assert b"A remark." in members(translated(document("docx"), "docx", upper))["word/comments.xml"]


def test_a_book_says_its_language() -> None:
    found = members(translated(document("epub"), "epub", upper, language="ru"))
    assert b"<dc:language>ru</dc:language>" in found["OEBPS/book.opf"]
    assert b' lang="ru" xml:lang="ru"' in found["OEBPS/text/c1.xhtml"]
    assert next(iter(found)) == "mimetype"


@pytest.mark.parametrize("kind", KINDS)
def test_both_languages(kind: str) -> None:
    found = members(translated(document(kind), kind, upper, bilingual="below"))[MAIN[kind]].decode()
    words = " ".join(re.sub("<[^<>]*>", " ", found).split())
    title = {
        "docx": "THE OLD LIGHTHOUSE The old",
        "odt": "THE OLD LIGHTHOUSE The old",
        "epub": "THE LETTER The Letter",
    }
    assert title[kind] in words
    if kind == "epub":  # the contents, which epubcheck wants as they are
        data = document(kind)
        whole, both = translated(data, kind, upper), translated(data, kind, upper, bilingual="below")
        assert members(both)["OEBPS/nav.xhtml"] == members(whole)["OEBPS/nav.xhtml"]
    etree.fromstring(found.encode())


def docx_text(pieces: list[tuple[str, str]]) -> str:
    return "".join(f"<w:r>{f'<w:rPr>{look}</w:rPr>' if look else ''}{text}</w:r>" for text, look in pieces)


RUN_TEXTS = st.sampled_from(
    [
        "<w:t>It was </w:t>",
        "<w:t>late. She</w:t>",
        '<w:t xml:space="preserve"> came </w:t><w:tab/><w:t>home!</w:t>',
        "<w:br/>",
        '<w:footnoteReference w:id="2"/>',
        "<w:t>&amp; 5</w:t><w:lastRenderedPageBreak/>",
        "<w:drawing/>",
        '<w:fldChar w:fldCharType="begin"/>',
        '<w:fldChar w:fldCharType="end"/>',
        "<w:pict><w:txbxContent><w:p><w:r><w:t>Inside it.</w:t></w:r></w:p></w:txbxContent></w:pict>",
    ]
)
LOOKS = st.sampled_from(
    ["", "", "<w:b/>", "<w:i/>", '<w:lang w:val="en"/>', '<w:vertAlign w:val="superscript"/>']
)
RUNS = st.lists(st.tuples(RUN_TEXTS, LOOKS), max_size=6).map(docx_text)
AROUND = st.sampled_from(
    [
        ("", ""),
        ('<w:hyperlink r:id="rId9">', "</w:hyperlink>"),
        ('<w:ins w:id="7">', "</w:ins>"),
        ("<w:sdt><w:sdtPr/><w:sdtContent>", "</w:sdtContent></w:sdt>"),
        ('<w:del w:id="8">', "</w:del>"),
        ('<w:bookmarkStart w:id="1"/>', '<w:bookmarkEnd w:id="1"/>'),
    ]
)
DOCX_BODIES = st.lists(st.tuples(AROUND, RUNS), max_size=4).map(
    lambda drawn: f"<w:p><w:pPr/>{''.join(around[0] + runs + around[1] for around, runs in drawn)}</w:p>"
)
ODT_NAMES = {"b": "text:span", "em": "text:a", "span": "text:span"}


def as_odt(text: str) -> str:
    """Return inline XHTML with the elements of OpenDocument."""
    text = re.sub(r"<br/>", "<text:line-break/>", re.sub(r"<!--.*?-->|<sup>1</sup>", "<text:s/>", text))
    text = re.sub(
        r'<img[^>]*>|<a id="p1"></a>', "<draw:frame><svg:title>A cat</svg:title></draw:frame>", text
    )
    text = re.sub(r"<(code|kbd)>(.*?)</\1>", r"<text:date>\2</text:date>", text)
    text = re.sub(r'<b translate="no">', "<b>", text)
    text = re.sub(r"<(/?)(b|em|span)>", lambda found: f"<{found[1]}{ODT_NAMES[found[2]]}>", text)
    return f"<text:p>{text}</text:p>"


BODIES = {
    "docx": DOCX_BODIES.map(docx_with),
    "odt": html_text(void="/").map(as_odt).map(odt_with),
    "epub": html_text(void="/").map(lambda text: f"<p>{text}</p>").map(epub_with),
}


@pytest.mark.parametrize("kind", KINDS)
@given(st.data(), st.integers())
@settings(max_examples=40)
def test_any_translation_gives_the_same_elements(kind: str, data: st.DataObject, seed: int) -> None:
    file = data.draw(BODIES[kind])
    whole = members(file)
    assert members(translated(file, kind, unchanged)) == whole
    assert members(translated(file, kind, unchanged, tags=False)) == whole
    for translate in (upper, without_tags, scrambled(seed)):
        found = members(translated(file, kind, translate))
        before, after = (elements(one[MAIN[kind]], *OF_RUNS) for one in (whole, found))
        # A link around words of two sentences can become two links.
        assert (after if translate is upper else set(after)) == (
            before if translate is upper else set(before)
        )


BOMB = archive({**parts_of("odt"), "bomb": b"0" * 520_000_000})
DECLARED = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        *((kind, b"text", "it is not a zip archive") for kind in KINDS),
        *((kind, document(kind)[:700], "damaged archive") for kind in KINDS),
        *((kind, BOMB, "unpacks to more than 512MB") for kind in KINDS),
        *((kind, document(kind, **{"../a": b""}), "leaves the archive") for kind in KINDS),
        *(
            (kind, document(kind, **{MAIN[kind]: DECLARED}), "declares XML entities")
            for kind in ("docx", "odt")
        ),
        *((kind, document(kind, **{MAIN[kind]: "<a>"}), "is not XML") for kind in ("docx", "odt")),
        ("epub", document("epub", **{"OEBPS/book.opf": DECLARED}), "declares XML entities"),
        ("epub", document("epub", **{"META-INF/container.xml": DECLARED}), "declares XML entities"),
        ("epub", document("epub", **{"META-INF/container.xml": None}), "is not a book in EPUB"),
        ("epub", document("epub", **{"OEBPS/book.opf": None}), "no table of its files"),
        (
            "epub",
            document("epub", **{"OEBPS/text/c1.xhtml": None, "OEBPS/text/c2.xhtml": None}),
            "no chapters",
        ),
        (
            "epub",
            document(
                "epub",
                **{"META-INF/encryption.xml": '<e><CipherReference URI="OEBPS/text/c1.xhtml"/></e>'},
            ),
            "is encrypted",
        ),
        ("docx", b"\xd0\xcf\x11\xe0 old", "has a password, or is of an old format"),
        ("docx", document("odt"), "has no text of Word"),
        ("odt", document("docx"), "is not an OpenDocument text"),
        (
            "odt",
            document("odt", **{"META-INF/manifest.xml": '<m xmlns:a="b"><a:encryption-data/></m>'}),
            "is encrypted",
        ),
        ("odt", document("odt", **{"content.xml": "<a>" * 200 + "</a>" * 200}), "nested more than"),
    ],
)
def test_what_is_hostile_or_something_else_is_refused(kind: str, data: bytes, said: str) -> None:
    with pytest.raises(CadecError, match=said):
        read(data, kind)


def test_macros_and_signatures_are_left_out() -> None:
    types = parts_of("docx")["[Content_Types].xml"].decode()
    types = types.replace("</Types>", '<Override PartName="/word/vbaProject.bin" ContentType="a"/></Types>')
    extra: dict[str, str | bytes] = {
        "word/vbaProject.bin": b"x",
        "_xmlsignatures/sig1.xml": b"x",
        "[Content_Types].xml": types,
    }
    documents, layout = read(document("docx", **extra), "docx")
    assert getattr(layout, "notes", ()) == ("its macros are left out",)
    found = members(b"".join(layout.restore(sentences(documents))))  # type: ignore[arg-type]
    assert not any("vba" in name or "signatures" in name for name in found)
    assert found["[Content_Types].xml"] == parts_of("docx")["[Content_Types].xml"]
    found = members(translated(document("odt", **{"Basic/Standard/Module1.xml": b"x"}), "odt", unchanged))
    assert "Basic/Standard/Module1.xml" not in found
    assert b"Basic" not in found["META-INF/manifest.xml"]


def test_chapters_are_one_document_in_the_order_of_the_spine() -> None:
    whole = parts_of("epub")["OEBPS/book.opf"].decode()
    first, second = re.findall("<itemref[^>]*>", whole)
    turned = whole.replace(first + second, second + first)
    documents, _ = read(document("epub", **{"OEBPS/book.opf": turned}), "epub")
    assert [sentence.place.partition(",")[0][-8:] for sentence in documents[0].sentences][::8] == [
        "c2.xhtml",
        "c1.xhtml",
    ]


NCX = """<?xml version="1.0"?>
<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://localhost/ncx.dtd">
<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><head><meta name="dtb:uid" content="a"/></head>
<docTitle><text>The Old Lighthouse</text></docTitle><navMap><navPoint id="n1" playOrder="1">
<navLabel><text>The first chapter</text></navLabel><content src="text/c1.xhtml"/></navPoint></navMap></ncx>
"""


def test_an_older_book_with_another_table_of_contents() -> None:
    package = parts_of("epub")["OEBPS/book.opf"].decode()
    package = re.sub(
        '<item id="nav"[^>]*>',
        '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>',
        package,
    )
    data = document("epub", **{"OEBPS/nav.xhtml": None, "OEBPS/toc.ncx": NCX, "OEBPS/book.opf": package})
    assert members(translated(data, "epub", unchanged)) == members(data)
    assert read(data, "epub")[0][1].texts == ("The Old Lighthouse", "The Old Lighthouse", "The first chapter")
    found = members(translated(data, "epub", upper))["OEBPS/toc.ncx"].decode()
    assert found == NCX.replace("The Old Lighthouse", "THE OLD LIGHTHOUSE").replace(
        "The first chapter", "THE FIRST CHAPTER"
    )


def test_a_chapter_that_is_no_xml_is_read_nevertheless() -> None:
    data = epub_with("<p>It is & was <b>late.<br>She</p>")
    assert members(translated(data, "epub", unchanged)) == members(data)
    assert b"IT IS &amp; WAS" in members(translated(data, "epub", upper))[MAIN["epub"]]


def test_random_damage_is_an_error_or_a_document() -> None:
    chance = random.Random(1)
    for kind in KINDS:
        for _ in range(30):
            data = bytearray(document(kind))
            for _ in range(chance.randint(1, 4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            try:
                translated(bytes(data), kind, upper)
            except CadecError as error:
                assert error.message
