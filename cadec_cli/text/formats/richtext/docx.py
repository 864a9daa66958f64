"""Word documents (.docx): paragraphs, tables, notes, text boxes, headers and footers are translated.

The runs of a paragraph that look alike are one text; those that look different from most of it are shown as
tags, like links, fields and tracked insertions. A paragraph that changes gets new runs with the properties of
the old ones, but without marks of spelling. Comments, deleted text, fields, styles and the document's
properties stay as they are. Macros and signatures are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import dirname, join, normpath

from cadec_cli.errors import CadecError
from cadec_cli.fs.archives import Archive, open_archive
from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.formats.layout import Source, finish
from cadec_cli.text.formats.richtext.elements import Place, escape_text, pieces_of
from cadec_cli.text.formats.richtext.odt import decode_utf8
from cadec_cli.text.formats.richtext.paragraphs import MarkedText, ParagraphBuilder
from cadec_cli.text.formats.richtext.pieces import Content, Translatable, Wrap
from cadec_cli.text.formats.richtext.tokens import Kind, Token, names, partners, root_of, tokens
from cadec_cli.text.safe_xml import walk_xml
from cadec_cli.text.sentences import base_language

_TYPES = "[Content_Types].xml"
_RELATIONS = "_rels/.rels"
_OLD_FORMAT = b"\xd0\xcf\x11\xe0"
_NOTES = ("footnotes", "endnotes")
_MARGINS = ("header", "footer")
_SIGNATURES = "_xmlsignatures/"
_MACROS = ("vbaProject.bin", "vbaData.xml", "vbaProjectSignature.bin")
_MACRO_TYPE = "application/vnd.ms-word.document.macroEnabled.main+xml"
_PLAIN_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"

# Elements around runs.
_AROUND_RUNS = names("w:hyperlink w:smartTag w:ins w:moveTo w:customXml w:bdo w:dir")
# What says nothing about the text, and has no place in a new one.
_DROPPED = names("w:proofErr w:lastRenderedPageBreak w:softHyphen w:noBreakHyphen")
_UNSEEN = re.compile(r"<w:(?:lang|noProof|proofErr|webHidden)\b[^<>]*?(?:/>|></w:\w+>)")
_FIELD = re.compile(r"<w:fldChar\b[^<>]*\bw:fldCharType=\"(\w+)\"")
_INSTRUCTION = re.compile(r"<w:instrText\b[^<>]*>([^<]*)")


@dataclass(frozen=True)
class DocxLayout:
    """A document without its sentences: its archive, and its members that have text."""

    archive: Archive
    parts: tuple[tuple[str, MarkedText], ...]
    left_out: frozenset[str]
    bilingual: str | None
    styles: Mapping[str, bytes]  # that name the language of the translation

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know about the document."""
        macros = any(member.endswith(_MACROS) for member in self.left_out)
        return ("its macros are left out",) if macros else ()

    def restore(self, translations: Iterable[str]) -> Iterator[bytes]:
        """Yield the document with translations for its sentences."""
        incoming = iter(translations)
        changed = dict(self.styles)
        for member, text in self.parts:
            changed[member] = "".join(text.restore(incoming, self.bilingual)).encode()
        finish(incoming)
        if self.left_out:
            changed |= _without_mentions(self.archive, self.left_out)
        yield self.archive.with_members(changed, without=self.left_out)


def read_docx(source: Source) -> tuple[tuple[Document, ...], DocxLayout]:
    """Read a document; return its text, its notes, and its margins as documents, and its layout."""
    if source.data.startswith(_OLD_FORMAT):
        raise CadecError(
            f"{source.name} has a password, or is of an old format of Word",
            "save it as .docx without a password",
        )
    archive = open_archive(source.data, source.name, "a .docx document")
    main = _main_part(archive, source.name)
    groups: dict[tuple[str, ...], list[str]] = {("body",): [main], _NOTES: [], _MARGINS: []}
    for kind, target in _relations(archive, main, source.name):
        for kinds, members in groups.items():
            if kind in kinds and target in archive and target not in members:
                members.append(target)
    parts: list[tuple[str, MarkedText]] = []
    documents: list[Document] = []
    for members in groups.values():
        sentences: list[Sentence] = []
        for member in members:
            marked = _marked(archive, member, source, whole=member == main)
            parts.append((member, marked))
            sentences += marked.sentences()
        documents += [Document(tuple(sentences))] if sentences else []
    left_out = frozenset(
        member for member in archive.names if member.startswith(_SIGNATURES) or member.endswith(_MACROS)
    )
    styles = _styles(archive, source)
    return tuple(documents), DocxLayout(archive, tuple(parts), left_out, source.screen.bilingual, styles)


_STYLES = "word/styles.xml"
_LANGUAGE = re.compile(r"(<w:lang\b[^<>]*\bw:val=\")([A-Za-z]{2,3}(?:-[\w-]{1,20})?)(?=\")")


def _styles(archive: Archive, source: Source) -> dict[str, bytes]:
    """Return the styles with the language of the translation in place of that of the source."""
    target = source.screen.language
    if target is None or _STYLES not in archive:
        return {}
    old = base_language(source.language)

    def change(found: re.Match[str]) -> str:
        return found[1] + (target if base_language(found[2]) == old else found[2])

    return {_STYLES: _LANGUAGE.sub(change, decode_utf8(archive.read(_STYLES), _STYLES)).encode()}


def _relations(archive: Archive, member: str, name: str) -> list[tuple[str, str]]:
    """Return what a member refers to in the archive, as kinds and members."""
    place = dirname(member)
    table = join(place, "_rels", f"{member.rpartition('/')[2]}.rels")
    found: list[tuple[str, str]] = []

    def start(element: str, attributes: dict[str, str]) -> None:
        if attributes.get("TargetMode") != "External":
            target = normpath(join("/", place, attributes.get("Target", ""))).lstrip("/")
            found.append((attributes.get("Type", "").rpartition("/")[2], target))

    if table in archive:
        walk_xml(archive.read(table), f"{name}: {table}", start=start)
    return found


def _main_part(archive: Archive, name: str) -> str:
    found = [target for kind, target in _relations(archive, "", name) if kind == "officeDocument"]
    main = found[0] if found else "word/document.xml"
    if main not in archive or not main.startswith("word/"):
        raise CadecError(f"{name} is not a .docx document: it has no text of Word")
    return main


_PARAGRAPH_START = re.compile(r"<w:p[\s>]")


def _marked(archive: Archive, member: str, source: Source, *, whole: bool) -> MarkedText:
    data = archive.read(member)
    walk_xml(data, f"{source.name}: {member}")
    text = decode_utf8(data, f"{source.name}: {member}")
    starts = [match.start() for match in _PARAGRAPH_START.finditer(text)]
    where = "" if whole else f"{member.rpartition('/')[2].partition('.')[0]}, "
    found = list(tokens(text, xml=True))
    if not root_of(found).startswith("w:"):
        raise CadecError(f"{source.name}: {member} is not written as Word writes it", "save it with Word")
    part = _Part(found, partners(found), source, Place(starts, where.replace("{", "(") + "paragraph {}"))
    return MarkedText(tuple(part.content(0, len(found))))


@dataclass(frozen=True)
class _Run:
    """A run, or something else in a paragraph that is not around runs, by its tokens."""

    first: int
    stop: int
    properties: str = ""

    @property
    def look(self) -> str:
        """What makes its text look different from others."""
        return _UNSEEN.sub("", self.properties).replace("<w:rPr></w:rPr>", "")


@dataclass(frozen=True)
class _Part:
    """The tokens of a member of the archive."""

    tokens: Sequence[Token]
    ends: dict[int, int]
    source: Source
    place: Place

    def content(self, first: int, stop: int) -> Iterator[str | Translatable]:
        """Yield what is kept and paragraphs, of the tokens from `first` on."""
        number = kept = first
        while number < stop:
            token = self.tokens[number]
            if token.kind is Kind.START and token.name == "w:p" and number in self.ends:
                yield self.raw(kept, number + 1)
                yield from self.paragraph(number + 1, self.ends[number], token)
                number = kept = self.ends[number]
            number += 1
        yield self.raw(kept, stop)

    def raw(self, first: int, stop: int) -> str:
        """Return tokens as they are written."""
        return "".join(token.raw for token in self.tokens[first:stop])

    def end_of(self, number: int) -> int:
        """Return the token after an element or another token."""
        return self.ends.get(number, number) + 1

    def children(self, first: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the first tokens of elements, and the tokens after them."""
        while first < stop:
            end = min(stop, self.end_of(first))
            yield first, end
            first = end

    def paragraph(self, first: int, stop: int, token: Token) -> Content:
        """Return the content of a paragraph, whose tokens these are."""
        draft = _Draft(self, _base_look(self, first, stop))
        if first < stop and self.tokens[first].name == "w:pPr":
            end = self.end_of(first)
            return (self.raw(first, end), *self.paragraph(end, stop, token))
        draft.add(first, stop)
        return draft.builder.build(
            self.source,
            self.place.at(token.start),
            escape_text,
            original=tuple(draft.original),
            wrap=_wrap(draft.base),
            line_break="<w:r><w:br/></w:r>",
        )

    def run(self, first: int, stop: int) -> _Run:
        """Return the run of these tokens."""
        properties = ""
        if first + 1 < stop and self.tokens[first + 1].name == "w:rPr":
            properties = self.raw(first + 1, self.end_of(first + 1))
        return _Run(first, stop, properties)


def _wrap(look: str) -> Wrap:
    return f'<w:r>{look}<w:t xml:space="preserve">', "</w:t></w:r>"


def _base_look(part: _Part, first: int, stop: int) -> str:
    """Return how most of a paragraph's text looks."""
    looks: Counter[str] = Counter()
    look = ""
    depth = 0  # inside boxes with paragraphs of their own
    for number in range(first, stop):
        token = part.tokens[number]
        if token.name == "w:txbxContent":
            depth += 1 if token.kind is Kind.START else -1
        elif token.kind is Kind.START and token.name == "w:r" and not depth:
            look = part.run(number, part.end_of(number)).look
        elif token.kind is Kind.TEXT and not depth and number and part.tokens[number - 1].name == "w:t":
            looks[look] += len(token.raw)
    return max(looks, key=lambda one: looks[one], default="")


@dataclass
class _Draft:
    """A paragraph that is being read."""

    part: _Part
    base: str
    builder: ParagraphBuilder = field(default_factory=ParagraphBuilder)
    original: list[str | Translatable] = field(default_factory=list)

    def add(self, first: int, stop: int) -> None:
        """Add what a paragraph, or an element around runs, has in it."""
        part = self.part
        children = list(part.children(first, stop))
        fields = _fields(part, children)
        links: set[int] = set()  # children at which a link ends
        skipped = -1
        for number, (start, end) in enumerate(children):
            token = part.tokens[start]
            if number <= skipped:
                continue
            if number in links:
                self._tag("close", "a", part.raw(start, end))
            elif number in fields:
                middle, last, instruction = fields[number]
                skipped = middle if instruction.strip().upper().startswith("HYPERLINK") else last
                if skipped == middle:
                    links.add(last)
                    self._tag("open", "a", part.raw(start, children[middle][1]))
                else:
                    self._mark("x", (part.raw(start, children[last][1]),))
            elif token.kind is Kind.START and token.name == "w:r" and not token.empty:
                self._run(part.run(start, end))
            elif token.kind is Kind.START and token.name in _AROUND_RUNS and end > start + 2:
                self._around(token.name[2:], start, start + 1, end - 1, end)
            elif token.name == "w:sdt" and (inner := self._inner(start, end)):
                self._around("sdt", start, inner + 1, part.ends[inner], end)
            elif token.name in _DROPPED:
                self.original.append(part.raw(start, end))
            else:
                self._mark("x", tuple(part.content(start, end)))

    def _inner(self, start: int, end: int) -> int:
        """Return the token that begins the content of a control; 0 if it has none."""
        for first, _ in self.part.children(start + 1, end - 1):
            if self.part.tokens[first].name == "w:sdtContent" and first in self.part.ends:
                return first
        return 0

    def _around(self, name: str, start: int, first: int, last: int, end: int) -> None:
        short = {"hyperlink": "a", "smartTag": "x", "customXml": "x"}.get(name, name.lower())
        self._tag("open", short, self.part.raw(start, first))
        self.add(first, last)
        self._tag("close", short, self.part.raw(last, end))

    def _tag(self, kind: str, name: str, raw: str) -> None:
        self.original.append(raw)
        if kind == "open":
            self.builder.open(name, (raw,))
        else:
            self.builder.close(name, raw)

    def _mark(
        self, name: str, content: Content, *, breaks: bool = False, original: Content | None = None
    ) -> None:
        self.original += content if original is None else original
        self.builder.mark(name, content, breaks=breaks)

    def _run(self, run: _Run) -> None:
        part = self.part
        look = run.look
        first = run.first + 1
        if run.properties:
            first = part.end_of(first)
        self.original.append(part.raw(run.first, first))
        for start, end in part.children(first, run.stop - 1):
            token = part.tokens[start]
            raw = part.raw(start, end)
            if token.name == "w:t":
                self.original.append(raw)
                self._text(part.raw(start + 1, end - 1), look)
            elif token.name == "w:noBreakHyphen":
                self.original.append(raw)
                self._text("\u2011", look)
            elif token.name in _DROPPED or token.kind is not Kind.START:
                self.original.append(raw)
            else:
                inner = tuple(part.content(start, end))
                name = _MARKS.get(token.name, "x")
                content = (f"<w:r>{look}", *inner, "</w:r>")
                self._mark(name, content, breaks=name in ("br", "tab"), original=inner)
        self.original.append(part.raw(run.stop - 1, run.stop))

    def _text(self, raw: str, look: str) -> None:
        raised = "w:vertAlign" in look and not any(map(str.isalpha, raw)) and len(raw) < 8
        if raised and look != self.base:
            wrap = _wrap(look)
            self.builder.mark("x", (wrap[0] + raw + wrap[1],))
            return
        for piece, shown in pieces_of(raw):
            if look == self.base:
                self.builder.text(piece, shown)
            else:
                self.builder.style(_style_name(look), _wrap(look), piece, shown)


_MARKS = {"w:br": "br", "w:cr": "br", "w:tab": "tab", "w:drawing": "img", "w:pict": "img"}


def _style_name(look: str) -> str:
    """Return what the tags of a look are called in sentences."""
    for element in ("b", "i", "u"):
        if re.search(rf"<w:{element}(?:/>| w:val=\"(?!0|false|none))", look):
            return element
    return "s"


def _fields(part: _Part, children: Sequence[tuple[int, int]]) -> dict[int, tuple[int, int, str]]:
    """Return the fields among the children of a paragraph: first, middle and last child, and instruction."""
    waiting: list[tuple[int, int, str]] = []
    found: dict[int, tuple[int, int, str]] = {}
    for number, (start, end) in enumerate(children):
        if part.tokens[start].name != "w:r":
            continue
        raw = part.raw(start, end)
        kinds = _FIELD.findall(raw)
        if "begin" in kinds:
            waiting.append((number, -1, ""))
        if waiting:
            first, middle, instruction = waiting.pop()
            instruction += "".join(_INSTRUCTION.findall(raw)) if middle < 0 else ""
            middle = number if "separate" in kinds else middle
            if "end" in kinds:
                found[first] = (middle if middle >= 0 else number, number, instruction)
            else:
                waiting.append((first, middle, instruction))
    return found


_RELATION = re.compile(r"<Relationship\b[^<>]*?\bTarget=\"([^\"]*)\"[^<>]*/>")
_OVERRIDE = re.compile(r"<Override\b[^<>]*?\bPartName=\"([^\"]*)\"[^<>]*/>")


def _without_mentions(archive: Archive, left_out: Iterable[str]) -> dict[str, bytes]:
    """Return the tables of the archive without what is left out."""
    gone = tuple(left_out)
    last = {member.rpartition("/")[2] for member in gone}
    changed: dict[str, bytes] = {}

    def keep(mention: re.Match[str]) -> str:
        return "" if mention[1].rpartition("/")[2] in last else mention[0]

    for member in archive.names:
        if member == _TYPES or (member.endswith(".rels") and member not in gone):
            table = decode_utf8(archive.read(member), member)
            shorter = _OVERRIDE.sub(keep, _RELATION.sub(keep, table)).replace(_MACRO_TYPE, _PLAIN_TYPE)
            if shorter != table:
                changed[member] = shorter.encode()
    return changed
