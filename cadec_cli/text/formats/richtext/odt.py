"""OpenDocument texts: paragraphs, lists, tables, notes, text boxes, headers and footers are translated.

Styles, fields, comments, deleted text and the document's properties stay as they are; so do images, but their
descriptions are translated. Macros and signatures are left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from cadec_cli.errors import CadecError
from cadec_cli.fs.archives import Archive, open_archive
from cadec_cli.text.documents import Document
from cadec_cli.text.formats.layout import Source, finish
from cadec_cli.text.formats.richtext.elements import Grammar, Place, Role, content_of
from cadec_cli.text.formats.richtext.paragraphs import MarkedText
from cadec_cli.text.formats.richtext.tokens import Token, names
from cadec_cli.text.safe_xml import walk_xml
from cadec_cli.text.sentences import base_language

_MIMETYPE = "application/vnd.oasis.opendocument.text"
_MANIFEST = "META-INF/manifest.xml"
_PARAGRAPHS = names("text:p text:h svg:title svg:desc")
_BLOCKS = names(
    "text:list text:list-item text:list-header text:section text:numbered-paragraph text:index-body"
    " text:index-title text:table-of-content text:illustration-index text:table-index text:object-index"
    " text:user-index text:alphabetical-index text:bibliography text:note-body draw:text-box"
)
_SKIPPED = names(
    "text:tracked-changes office:forms office:scripts office:settings office:font-face-decls office:styles"
    " office:automatic-styles text:table-of-content-source text:illustration-index-source"
    " text:table-index-source text:object-index-source text:user-index-source"
    " text:alphabetical-index-source text:bibliography-source"
    " text:sequence-decls text:variable-decls text:user-field-decls text:dde-connection-decls"
    " text:alphabetical-index-auto-mark-file"
)
_INLINE = names("text:span text:a text:meta")
_MACROS = ("Basic/", "Scripts/")
_SIGNATURES = ("META-INF/documentsignatures.xml", "META-INF/macrosignatures.xml")


def role_of(token: Token) -> Role:
    """Return what an element of OpenDocument is to the text."""
    name = token.name
    for names_of, role in _ROLES:
        if name in names_of:
            return role
    prefix = name.partition(":")[0]
    if prefix in ("office", "table", "style") and name != "office:annotation":
        return Role.BLOCK
    return Role.NEST if prefix == "draw" or name == "text:note" else Role.MARK


_ROLES: tuple[tuple[Collection[str], Role], ...] = (
    (_PARAGRAPHS, Role.PARAGRAPH),
    (_BLOCKS, Role.BLOCK),
    (_SKIPPED, Role.SKIP),
    (_INLINE, Role.INLINE),
    (("text:line-break", "text:tab"), Role.BREAK),
    (("text:s",), Role.SPACE),
    (("text:soft-page-break",), Role.HIDDEN),
    (("office:annotation-end",), Role.MARK),
)
_GRAMMAR = Grammar(role_of, lambda token: (), xml=True, line_break="<text:line-break/>", text_anywhere=False)


@dataclass(frozen=True)
class OdtLayout:
    """A document without its sentences: its archive, and its members that have text."""

    archive: Archive
    parts: tuple[tuple[str, MarkedText], ...]
    left_out: frozenset[str]
    bilingual: str | None

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know about the document."""
        macros = any(member.startswith(_MACROS) for member in self.left_out)
        return ("its macros are left out",) if macros else ()

    def restore(self, translations: Iterable[str]) -> Iterator[bytes]:
        """Yield the document with translations for its sentences."""
        incoming = iter(translations)
        changed = {
            member: "".join(text.restore(incoming, self.bilingual)).encode() for member, text in self.parts
        }
        finish(incoming)
        if self.left_out and _MANIFEST in self.archive:
            changed[_MANIFEST] = _without_entries(self.archive.read(_MANIFEST), self.left_out)
        yield self.archive.with_members(changed, without=self.left_out, first="mimetype")


def read_odt(source: Source) -> tuple[tuple[Document, ...], OdtLayout]:
    """Read a document; return its text, its headers and footers as another document, and its layout."""
    archive = open_archive(source.data, source.name, "an OpenDocument text")
    kind = (
        archive.read("mimetype", most=1000).decode("ascii", "replace").strip()
        if "mimetype" in archive
        else ""
    )
    if "content.xml" not in archive or not kind.startswith(_MIMETYPE):
        raise CadecError(f"{source.name} is not an OpenDocument text: it is {kind or 'another archive'}")
    _check_encryption(archive, source.name)
    parts: list[tuple[str, MarkedText]] = []
    documents: list[Document] = []
    for member in ("content.xml", "styles.xml"):
        if member in archive:
            marked = _marked(archive, member, source)
            parts.append((member, marked))
            sentences = tuple(marked.sentences())
            documents += [Document(sentences)] if sentences else []
    left_out = frozenset(
        member for member in archive.names if member.startswith(_MACROS) or member in _SIGNATURES
    )
    return tuple(documents), OdtLayout(archive, tuple(parts), left_out, source.screen.bilingual)


_PARAGRAPH_START = re.compile(r"<text:[ph][\s>/]")


def _marked(archive: Archive, member: str, source: Source) -> MarkedText:
    data = archive.read(member)
    walk_xml(data, f"{source.name}: {member}")
    text = decode_utf8(data, f"{source.name}: {member}")
    if "<office:document" not in text[:2000]:
        raise CadecError(
            f"{source.name}: {member} is not written as OpenDocument is", "save it with LibreOffice"
        )
    if member == "styles.xml":
        text = _with_language(text, source)
    starts = [match.start() for match in _PARAGRAPH_START.finditer(text)]
    name = "paragraph {}" if member == "content.xml" else "header or footer {}"
    return MarkedText(content_of(text, _GRAMMAR, source, Place(starts, name)))


_LANGUAGE = re.compile(r"\bfo:language=\"([A-Za-z]{2,3})\"(\s+)fo:country=\"[^\"<>]{0,20}\"")


def _with_language(styles: str, source: Source) -> str:
    """Name the language of the translation in styles that name that of the source."""
    target = source.screen.language
    if target is None:
        return styles
    new = f'fo:language="{base_language(target)}"'
    old = base_language(source.language)
    return _LANGUAGE.sub(
        lambda found: f'{new}{found[2]}fo:country="none"' if found[1].lower() == old else found[0], styles
    )


def decode_utf8(data: bytes, name: str) -> str:
    """Return the text of a member, which such documents always have in UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise CadecError(f"{name} is not utf-8, which such files always are") from None


def _check_encryption(archive: Archive, name: str) -> None:
    def start(element: str, attributes: dict[str, str]) -> None:
        if element.rpartition(":")[2] == "encryption-data":
            raise CadecError(f"{name} is encrypted", "save it without a password first")

    if _MANIFEST in archive:
        walk_xml(archive.read(_MANIFEST), f"{name}: {_MANIFEST}", start=start)


_ENTRY = re.compile(r"\s*<manifest:file-entry\b[^<>]*?\bmanifest:full-path=\"([^\"]*)\"[^<>]*/>")


def _without_entries(manifest: bytes, left_out: Collection[str]) -> bytes:
    """Return the manifest without the entries of what is left out."""

    def keep(entry: re.Match[str]) -> str:
        gone = entry[1] in left_out or entry[1].startswith(_MACROS)
        return "" if gone else entry[0]

    return _ENTRY.sub(keep, manifest.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
