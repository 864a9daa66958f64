"""What is not plain text is refused as such, by its name and by its content, and text never is."""

import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import TextStream
from cadec_cli.text.formats import FORMATS, format_with_ending, read_text_file, stream_lines
from cadec_cli.text.formats.foreign import FOREIGN_ENDINGS, binary_kind, text_kind, wide_encoding
from cadec_cli.text.languages import is_language


def archive(*names: str, mimetype: str | None = None) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        if mimetype is not None:
            made.writestr("mimetype", mimetype)
        for name in names:
            made.writestr(name, "<x/>")
    return packed.getvalue()


BINARY = {
    ".docx": archive("[Content_Types].xml", "word/document.xml"),
    ".epub": archive("META-INF/container.xml", mimetype="application/epub+zip"),
    ".odt": archive("content.xml", mimetype="application/vnd.oasis.opendocument.text"),
    ".zip": archive("a.txt"),
    ".pdf": b"%PDF-1.7\n1 0 obj\n",
    ".rtf": rb"{\rtf1\ansi Hello.}",
    ".png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    ".gz": b"\x1f\x8b\x08\0\0\0",
    ".doc": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0",
}
TEXTS = {
    ".po": '# German.\n#, fuzzy\nmsgid ""\nmsgstr "Language: de\\n"\n',
    ".json": '{\n  "title": "Hello"\n}\n',
    ".html": "<!-- a page -->\n<!DOCTYPE html>\n<html><p>Hello</p></html>",
    ".xml": '<?xml version="1.0"?>\n<resources><string name="a">Hello</string></resources>',
    ".srt": "1\r\n00:00:01,000 --> 00:00:02,000\r\nHello.\r\n",
    ".vtt": "\ufeffWEBVTT\n\n00:01.000 --> 00:02.000\nHello.\n",
    ".ass": "[Script Info]\nScriptType: v4.00+\n",
    ".jsonl": '{"text": "Hello."}\n',
}
PLAIN = (
    "Hello.",
    "",
    "RIFF is a word, and so are OggS, ID3 and BZh.",
    "<b>Hello</b> and <i>bye</i>.",
    "<3 you",
    "{name}, you have {0}{1} messages",
    "[1] a note\n[2] another",
    '["quoted" text]',
    "msgid is a word of gettext.",
    "WEBVTTs are files.",
    "12\n13\n",
    "PK is a name.",
    "# A heading\n\nText.",
    "---\ntitle: Hello\n---\nText.\n",
    '{"',
)


def read(path: Path, **how: str) -> list[str]:
    file = read_text_file(path, language="en", **how)  # type: ignore[arg-type]
    return [text for document in file.documents for text in document.texts]


@pytest.mark.parametrize("ending", BINARY)
@pytest.mark.parametrize("name", ["a.txt", "a", "a.srt", "a.jsonl"])
def test_binary_content_is_refused(ending: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(BINARY[ending])
    for how in ({}, {"encoding": "latin-1"}, {"format": "text"}):
        with pytest.raises(CadecError, match=r"binary file|compressed") as caught:
            read(path, **how)
        assert caught.value.hint
        assert ending in str(caught.value) + caught.value.hint


@pytest.mark.parametrize("ending", TEXTS)
def test_text_of_another_format_is_refused_as_plain_text(ending: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(TEXTS[ending], "utf-8")
    with pytest.raises(CadecError, match=f"not plain text: it begins as {ending} files do") as caught:
        read(path)
    known = format_with_ending(ending)
    assert (known.name if known else "plain text") in caught.value.hint
    assert read(path, format="text")
    with pytest.raises(CadecError, match="not plain text"):
        list(stream(TEXTS[ending].encode(), any_text=False))


def stream(data: bytes, *, any_text: bool) -> list[str]:
    pieces = stream_lines(TextStream(io.BytesIO(data), "f"), "text", language="en", any_text=any_text)
    return [one.text for lines in pieces for line in lines for one in line.sentences]


@pytest.mark.parametrize("text", PLAIN)
def test_text_is_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(text, "utf-8")
    read(path)
    stream(text.encode(), any_text=False)


@pytest.mark.parametrize("ending", sorted(FOREIGN_ENDINGS))
def test_files_of_other_formats_are_refused_by_name(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{ending}"
    path.write_text("Hello.\n")
    if format_with_ending(ending) is None:
        with pytest.raises(CadecError, match=f"{ending} files can't be read"):
            read(path)
    assert read(path, format="text") == ["Hello."]


def test_no_ending_is_a_language_or_is_text() -> None:
    assert not [ending for ending in FOREIGN_ENDINGS if is_language(ending[1:]) and ending != ".arb"]
    assert not {".txt", ".md", ".en", ".so", ".srt", *FORMATS["text"].endings} & FOREIGN_ENDINGS


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text", ["Hello, how are you?\n", "Привет, как дела?\nХорошо.\n", "Grüße an alle!\n"]
)
def test_utf_16_without_a_mark_is_named(encoding: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(CadecError, match=f"seems to be {encoding}"):
        read(path, encoding="utf-8")
    assert read(path, encoding=encoding)[0] in text


def test_damage_is_not_a_format() -> None:
    assert wide_encoding(b"Hello\0, how are you?") is None
    assert binary_kind(b"Hello\0, how are you?") is None


@given(st.binary(max_size=200) | st.sampled_from([*BINARY.values()]))
def test_any_bytes(data: bytes) -> None:
    assert binary_kind(data) in (None, *FOREIGN_ENDINGS, ".gz", ".xz", ".zst", ".so", ".mo")
    assert wide_encoding(data) in (None, "utf-16-le", "utf-16-be")


@given(st.text('<>?!-{}[]":\n #1amsgidxl', max_size=80))
def test_any_text(text: str) -> None:
    assert text_kind(text) in (
        None,
        ".ts",
        ".tmx",
        *FOREIGN_ENDINGS,
        *FORMATS["jsonl"].endings,
        ".srt",
        ".sub",
    )
