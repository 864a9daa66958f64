"""EPUB: a book's chapters are one document, in the order in which they are read.

Chapters, the title, the table of contents and the names of its entries are translated, and the language of
the book is named anew. Everything else in the archive stays byte for byte: images, styles, fonts, and of each
chapter everything but its sentences. A book whose chapters are encrypted is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from posixpath import dirname, join, normpath
from urllib.parse import unquote

from cadec_cli.errors import CadecError
from cadec_cli.fs.archives import Archive, open_archive
from cadec_cli.text.documents import Document
from cadec_cli.text.formats.layout import Source, finish
from cadec_cli.text.formats.richtext.elements import Grammar, Place, Role, content_of
from cadec_cli.text.formats.richtext.html import GRAMMAR, XHTML, decode_page, with_page_language
from cadec_cli.text.formats.richtext.paragraphs import MarkedText
from cadec_cli.text.formats.richtext.tokens import Token
from cadec_cli.text.safe_xml import walk_xml
from cadec_cli.text.sentences import base_language

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_SIGNATURES = "META-INF/signatures.xml"
_PACKAGE_TYPE = "application/oebps-package+xml"
_XHTML_TYPE, _NCX_TYPE = "application/xhtml+xml", "application/x-dtbncx+xml"
_CHAPTER_TYPES = frozenset([_XHTML_TYPE, "text/html", "application/xml", "text/x-oeb1-document"])


@dataclass(frozen=True)
class _Part:
    """A member of the archive that has text."""

    member: str
    text: MarkedText
    encoding: str


@dataclass(frozen=True)
class EpubLayout:
    """A book without its sentences: its archive, and the parts that have text, in their order."""

    archive: Archive
    parts: tuple[_Part, ...]
    bilingual: str | None

    def restore(self, translations: Iterable[str]) -> Iterator[bytes]:
        """Yield the book with translations for its sentences."""
        incoming = iter(translations)
        changed = {
            part.member: "".join(part.text.restore(incoming, self.bilingual)).encode(
                part.encoding, "xmlcharrefreplace"
            )
            for part in self.parts
        }
        finish(incoming)
        yield self.archive.with_members(changed, without={_SIGNATURES}, first="mimetype")


def read_epub(source: Source) -> tuple[tuple[Document, ...], EpubLayout]:
    """Read a book; return its chapters as a document, its titles as another, and its layout."""
    archive = open_archive(source.data, source.name, "a book in EPUB")
    package = _package(archive, source.name)
    contents = dict(package.contents())
    chapters = [
        _part(archive, member, _CONTENTS if member in contents else _grammar(kind), source)
        for member, kind in package.chapters()
    ]
    if not chapters:
        raise CadecError(f"{source.name} has no chapters")
    read = {part.member for part in chapters}
    titles = [_part(archive, package.member, _PACKAGE, source)]
    for member, kind in contents.items():
        if member not in read:
            titles.append(_part(archive, member, _NCX if kind == _NCX_TYPE else _CONTENTS, source))
    _check_encryption(archive, source.name, {part.member for part in (*chapters, *titles)})
    documents = []
    for parts in (chapters, titles):
        sentences = tuple(sentence for part in parts for sentence in part.text.sentences())
        if sentences:
            documents.append(Document(sentences))
    return tuple(documents), EpubLayout(archive, (*chapters, *titles), source.screen.bilingual)


@dataclass
class _Package:
    """The table of a book's files, and the order in which they are read."""

    member: str
    archive: Archive
    # identity → member, type, properties
    files: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    spine: list[str] = field(default_factory=list)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Read an element of the package."""
        local = name.rpartition(":")[2]
        if local == "item":
            path = unquote(attributes.get("href", "").partition("#")[0])
            member = normpath(join(dirname(self.member), path))
            kind = attributes.get("media-type", "")
            self.files[attributes.get("id", "")] = member, kind, attributes.get("properties", "")
        elif local == "itemref":
            self.spine.append(attributes.get("idref", ""))

    def chapters(self) -> Iterator[tuple[str, str]]:
        """Yield the members with the text of the book and their types, in reading order, each once."""
        seen = set()
        for identity in self.spine:
            member, kind, _ = self.files.get(identity, ("", "", ""))
            if kind in _CHAPTER_TYPES and member in self.archive and member not in seen:
                seen.add(member)
                yield member, kind

    def contents(self) -> Iterator[tuple[str, str]]:
        """Yield the members that are tables of contents, and their types."""
        for member, kind, properties in self.files.values():
            navigates = kind == _XHTML_TYPE and "nav" in properties.split()
            if (navigates or kind == _NCX_TYPE) and member in self.archive:
                yield member, kind


def _package(archive: Archive, name: str) -> _Package:
    found: list[str] = []

    def start(element: str, attributes: dict[str, str]) -> None:
        kind = attributes.get("media-type", _PACKAGE_TYPE)
        if element.rpartition(":")[2] == "rootfile" and kind == _PACKAGE_TYPE:
            found.append(unquote(attributes.get("full-path", "")))

    if _CONTAINER not in archive:
        raise CadecError(f"{name} is not a book in EPUB: it has no {_CONTAINER}")
    walk_xml(archive.read(_CONTAINER), f"{name}: {_CONTAINER}", start=start)
    if not found or found[0] not in archive:
        raise CadecError(f"{name} is not a book in EPUB: it has no table of its files")
    package = _Package(found[0], archive)
    walk_xml(archive.read(found[0]), f"{name}: {found[0]}", start=package.start)
    return package


def _check_encryption(archive: Archive, name: str, members: set[str]) -> None:
    """Refuse a book with chapters that only its shop's software can read; fonts may be obfuscated."""
    if _ENCRYPTION not in archive:
        return
    encrypted: set[str] = set()

    def start(element: str, attributes: dict[str, str]) -> None:
        if element.rpartition(":")[2] == "CipherReference":
            encrypted.add(unquote(attributes.get("URI", "")))

    walk_xml(archive.read(_ENCRYPTION), f"{name}: {_ENCRYPTION}", start=start)
    if encrypted & members:
        raise CadecError(f"{name} is encrypted: its chapters can't be read", "it may have copy protection")


def _texts_in(*elements: str) -> Grammar:
    """Return the grammar of a file whose text is in elements of these names alone."""

    def role(token: Token) -> Role:
        return Role.PARAGRAPH if token.name in elements else Role.BLOCK

    return Grammar(role, lambda token: (), xml=True, line_break=None, text_anywhere=False)


_PACKAGE = _texts_in("dc:title")
_NCX = _texts_in("text", "ncx:text")
_CONTENTS = replace(XHTML, line_break=None)  # whose entries are one line each


def _grammar(kind: str) -> Grammar:
    return GRAMMAR if kind == "text/html" else XHTML


_LANGUAGE = re.compile(
    r"(<dc:language\b[^<>]{0,200}>\s*)([A-Za-z]{2,3}(?:-[\w-]{1,20})?)(?=\s*</dc:language)"
)


def _part(archive: Archive, member: str, grammar: Grammar, source: Source) -> _Part:
    text, encoding = decode_page(archive.read(member), f"{source.name}: {member}")
    target = source.screen.language
    if grammar is not _PACKAGE:
        text = with_page_language(text, source.language, target)
    elif target:
        text = _LANGUAGE.sub(
            lambda found: (
                found[1] + (target if base_language(found[2]) == base_language(source.language) else found[2])
            ),
            text,
        )
    place = Place.of_lines(text, f"{member.replace('{', '(').replace('}', ')')}, line {{}}")
    return _Part(member, MarkedText(content_of(text, grammar, source, place)), encoding)
