"""Files: formats by name, compression, encodings, and the same bytes back."""

import gzip
import io
import lzma
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.errors import CadecError, as_flags
from cadec_cli.fs.read import decode
from cadec_cli.text.documents import Document
from cadec_cli.text.formats import FORMATS, Format, TextFile, encode_piece, format_of, read_text_file
from cadec_cli.text.formats.layout import Layout, Source
from tests.helpers.shown_commands import KNOWN


def sentences(file: TextFile) -> list[str]:
    return [text for document in file.documents for text in document.texts]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.txt", "text"),
        ("a", "text"),
        ("-", "text"),
        ("a.srt", "srt"),
        ("A.SRT", "srt"),
        ("film.en.vtt", "vtt"),
        ("a.ass.gz", "ass"),
        ("a.jsonl.xz", "jsonl"),
        ("a.gz", "text"),
        (".srt", "text"),
    ],
)
def test_format_by_name(name: str, expected: str) -> None:
    assert format_of(Path(name)) == expected


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"", "utf-8"),
        ("Привет. Да.\r\n".encode(), "utf-8"),
        ("\ufeffПривет.\n".encode(), "utf-8"),
        ("\ufeffПривет.\n".encode(), "utf-8-sig"),
        ("Привет.\n".encode("cp1251"), "cp1251"),
        ("Привет.\n".encode("utf-16"), "utf-16"),
        ("\ufeffПривет.\n".encode("utf-16-be"), "utf-16"),
        ("Привет.\n".encode("utf-16-le"), "UTF-16LE"),
        ("Привет.\n".encode("utf-32"), "utf-32"),
    ],
)
def test_the_same_bytes_come_back(data: bytes, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    file = read_text_file(path, language="ru", encoding=encoding)
    assert all(not text.startswith("\ufeff") for text in sentences(file))
    assert b"".join(file.restore(sentences(file))) == data


@given(st.text(), st.booleans(), st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_decode_and_encode_are_inverse(text: str, marked: bool, encoding: str) -> None:
    data = ("\ufeff" * marked + text).encode(encoding)
    decoded, exact = decode(data, encoding, "f")
    assert encode_piece(decoded, exact) == data


@pytest.mark.parametrize(
    ("data", "encoding", "message", "hint"),
    [
        ("Да\nДа".encode("cp1251"), "utf-8", "line 1 is not utf-8 (byte 0xc4)", "--encoding cp1251"),
        ("Hi\nДа".encode("cp1251"), "utf-8", "line 2 is not utf-8", "--encoding"),
        (b"abc", "utf-16", "is not utf-16", "--encoding"),
        (b"abc", "klingon", "unknown encoding: klingon", "--encoding"),
        (b"abc", "base64", "unknown encoding: base64", "--encoding"),
        (b"abc", "a\0b", "unknown encoding", "--encoding"),
    ],
)
def test_wrong_encodings(data: bytes, encoding: str, message: str, hint: str) -> None:
    with pytest.raises(CadecError) as error:
        decode(data, encoding, "f")
    assert message in error.value.message
    assert hint in as_flags(error.value.marked_hint)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("told", [None, "utf-8"])
def test_a_byte_order_mark_tells_the_encoding(encoding: str, told: str | None, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("Да. Нет.\n".encode(encoding))
    file = read_text_file(path, language="ru", encoding=told)
    assert sentences(file) == ["Да.", "Нет."]
    assert b"".join(file.restore(["Да.", "Нет."])) == path.read_bytes()


def test_without_a_choice_of_encodings_none_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    data = "Да".encode("cp1251")
    path.write_bytes(data)
    for read in (lambda: decode(data, None, "f"), lambda: read_text_file(path, language="ru")):
        with pytest.raises(CadecError, match="line 1 is not utf-8") as error:
            read()
        assert error.value.hint == "convert the file to UTF-8 first, e.g. with iconv -f cp1251 -t utf-8"


def test_a_translation_that_the_encoding_cannot_hold() -> None:
    with pytest.raises(CadecError, match="latin-1 has no 'П'"):
        encode_piece("Привет", "latin-1")


def test_compressed(tmp_path: Path) -> None:
    for name, pack in (("a.txt.gz", gzip.compress), ("a.txt.xz", lzma.compress)):
        (tmp_path / name).write_bytes(pack(b"One. Two."))
        assert sentences(read_text_file(tmp_path / name, language="en")) == ["One.", "Two."]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("Да. Нет.\n".encode())))
    file = read_text_file(Path("-"), language="ru")
    assert [document.texts for document in file.documents] == [("Да.", "Нет.")]
    assert not sys.stdin.buffer.closed


def test_the_format_may_be_given(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text('{"text": "Hi. You."}\n')
    assert sentences(read_text_file(path, language="en", format="jsonl")) == ["Hi. You."]
    own = read_text_file(path, language="en", lines=True, format="text")
    assert sentences(own) == ['{"text": "Hi. You."}']
    with pytest.raises(CadecError, match="unknown format: pptx"):
        read_text_file(path, language="en", format="pptx")


def test_missing_files_and_broken_archives(tmp_path: Path) -> None:
    with pytest.raises(CadecError, match="no such file"):
        read_text_file(tmp_path / "none.srt", language="en")
    with pytest.raises(CadecError, match="is a directory"):
        read_text_file(tmp_path, language="en")
    torn = tmp_path / "torn.txt.gz"
    torn.write_bytes(gzip.compress(b"One. Two." * 100)[:20])
    with pytest.raises(CadecError, match="can't read"):
        read_text_file(torn, language="en")


class CapitalLayout:
    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        yield " ".join(translations)


def read_capitals(source: Source) -> tuple[tuple[Document, ...], Layout]:
    return (Document.of(word for word in source.text.split() if word.isupper()),), CapitalLayout()


def test_a_format_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, "caps", Format("caps", "capitals", (".caps", ".big"), read_capitals))
    assert format_of(Path("a.big")) == "caps"
    path = tmp_path / "a.caps.gz"
    path.write_bytes(gzip.compress(b"an OLD story and NEW"))
    assert sentences(read_text_file(path, language="en")) == ["OLD", "NEW"]
    with pytest.raises(CadecError) as error:
        read_text_file(path, language="en", format="pptx")
    assert ", caps" in error.value.hint


@pytest.mark.parametrize("name", [known.name for known in FORMATS.own if known.name != "text"])
def test_every_format_is_found_by_its_extension(name: str) -> None:
    assert format_of(Path(f"a.{name}")) == name


def test_the_help_names_every_format() -> None:
    (option,) = [one for one in KNOWN["translate"].params if "--format" in one.opts]
    assert option.help.endswith(f": {', '.join(FORMATS)}.")


def test_listing_the_formats_imports_no_reader() -> None:
    code = (
        "import sys; from cadec_cli.text.formats import FORMATS; print(*FORMATS)\n"
        "assert not [name for name in sys.modules if name.startswith(('pysubs2', 'sentencex', 'numpy'))\n"
        "            or name.startswith('cadec_cli.text.formats.') and not name.endswith('.layout')]"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stdout.split()) == (0, list(FORMATS)), run.stderr
