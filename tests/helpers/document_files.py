"""Small documents with everything that matters in them: .docx, .odt and .epub, made of their members."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

PARTS = Path(__file__).parent / "documents"


def archive(members: Mapping[str, str | bytes], stored: str = "mimetype") -> bytes:
    """Return a zip archive of members; that called `stored` comes first and is not compressed."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in sorted(members.items(), key=lambda one: (one[0] != stored, one[0])):
            info = zipfile.ZipInfo(name, (2026, 1, 2, 3, 4, 6))
            info.compress_type = zipfile.ZIP_STORED if name == stored else zipfile.ZIP_DEFLATED
            file.writestr(info, content)
    return made.getvalue()


def members(data: bytes) -> dict[str, bytes]:
    """Return the members of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def parts_of(kind: str) -> dict[str, bytes]:
    """Return the members of a document of a kind: docx, odt or epub."""
    files = sorted(path for path in (PARTS / kind).rglob("*") if path.is_file())
    return {path.relative_to(PARTS / kind).as_posix(): path.read_bytes() for path in files}


def document(kind: str, **changed: str | bytes | None) -> bytes:
    """Return a document of a kind, with members of these names changed or, if None, left out."""
    parts: dict[str, str | bytes | None] = {**parts_of(kind), **changed}
    return archive({name: content for name, content in parts.items() if content is not None})


def docx_with(body: str) -> bytes:
    """Return a Word document with another body."""
    whole = parts_of("docx")["word/document.xml"].decode()
    head = whole.partition("<w:body>")[0]
    return document("docx", **{"word/document.xml": f"{head}<w:body>{body}</w:body></w:document>"})


def odt_with(body: str) -> bytes:
    """Return an OpenDocument text with another body."""
    whole = parts_of("odt")["content.xml"].decode()
    head = whole.partition("<text:h ")[0]
    return document(
        "odt",
        **{"content.xml": f"{head}{body}</office:text></office:body></office:document-content>"},
    )


def epub_with(body: str) -> bytes:
    """Return a book whose second chapter has another body."""
    whole = parts_of("epub")["OEBPS/text/c2.xhtml"].decode()
    head = whole.partition("<body>")[0]
    return document("epub", **{"OEBPS/text/c2.xhtml": f"{head}<body>{body}</body></html>"})
