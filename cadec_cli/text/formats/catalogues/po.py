"""Catalogues of gettext: `.po` and `.pot`.

An entry without a translation gets one and the mark `fuzzy`, which tells gettext not to use it before a
person has looked at it. Fuzzy entries are translated anew, as their translation is a guess for another
text. All others stay as they are, and are context for what follows. Entries from the same source file, in a
row, are one document. Comments, contexts, references and obsolete entries are never changed.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from cadec_cli.errors import CadecError
from cadec_cli.text.documents import Document
from cadec_cli.text.formats.catalogues.catalogue import (
    CatalogueLayout,
    Entry,
    Item,
    Outcome,
    Translated,
    catalogue,
    fixed,
)
from cadec_cli.text.formats.catalogues.message import Syntax, read_message
from cadec_cli.text.formats.catalogues.plurals import plural_forms, singular_form
from cadec_cli.text.formats.layout import Source
from cadec_cli.text.sentences import base_language

_SYNTAX = Syntax(shortcuts="_&")
_LINE = re.compile(r"([^\r\n]*)(\r\n|\n|\r|$)")
_KEYWORD = re.compile(r"\s*(msgctxt|msgid_plural|msgid|msgstr)(\[\s*(\d{1,2})\s*\])?\s*(?=\")")
_STRING = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*$')
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,4}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPED = {"\\": "\\\\", '"': '\\"', **{char: f"\\{letter}" for letter, char in _ESCAPES.items()}}
_MUST_ESCAPE = re.compile(r'[\\"\x00-\x1f\x7f\x85\u2028\u2029]')
_FLAGS = re.compile(r"#,(.*)")
_REFERENCE = re.compile(r"#:\s*(?:\u2068([^\u2069]+)\u2069|(\S+?))(?::\d+)?(?=\s|$)")
# Texts that stand for the names of the translators.
_CREDITS = frozenset({"translator-credits", "translator_credits", "Your names", "Your emails"})
# The beginning of a comment on a doubtful translation.
_DOUBT = "# cadec: confidence"
_WIDTH = 78
_MAX_FORMS = 6
_HINT = "`msgfmt --check` lists all errors"


@dataclass
class _Field:
    """A keyword with its strings: where they are, line ends included, and what they say."""

    start: int
    end: int
    strings: list[str] = field(default_factory=list)  # of each line

    @cached_property
    def text(self) -> str:
        """The strings as one."""
        return "".join(self.strings)


@dataclass
class _Block:
    """An entry as it is read: its comments, and its fields by keyword."""

    line: int
    start: int
    comments: list[tuple[int, int, str]] = field(default_factory=list)
    fields: dict[str, _Field] = field(default_factory=dict)

    @property
    def is_fuzzy(self) -> bool:
        return any("fuzzy" in _flags(comment) for _, _, comment in self.comments)

    @property
    def section(self) -> str:
        for _, _, comment in self.comments:
            if found := _REFERENCE.match(comment):
                return found[1] or found[2]
        return ""

    @property
    def strings(self) -> list[_Field]:
        """The translations, in the order of their forms."""
        return [one for name, one in self.fields.items() if name.startswith("msgstr")]


def _flags(comment: str) -> list[str]:
    found = _FLAGS.match(comment)
    return [flag.strip() for flag in found[1].split(",")] if found else []


def read_po(source: Source) -> tuple[tuple[Document, ...], CatalogueLayout]:
    """Read a catalogue of gettext; return its documents and the layout that takes their translations."""
    blocks = list(_blocks(source.text, source.name))
    header = next((block for block in blocks if _is_header(block)), None)
    language = source.screen.language
    forms = _header_forms(header, language)
    return catalogue(
        source,
        (
            item
            for block in blocks
            for item in (
                _header(block, language, source.text) if block is header else _entry(block, source, forms)
            )
        ),
    )


def _is_header(block: _Block) -> bool:
    return not block.fields["msgid"].text and "msgctxt" not in block.fields


def _text(block: _Block, name: str) -> str | None:
    return block.fields[name].text if name in block.fields else None


def _entry(block: _Block, source: Source, forms: int | None) -> Iterator[Item]:
    strings = block.strings
    texts = [block.fields[name].text for name in ("msgid", "msgid_plural") if name in block.fields]
    context = _text(block, "msgctxt")
    place = f"line {block.line}" + (f", {context}" if context else "")
    anew = block.is_fuzzy or source.retranslate
    if not anew and all(one.text for one in strings):
        yield Translated(texts[0], strings[0].text, place, block.section)
        return
    messages = tuple(read_message(text, source.language, _SYNTAX) for text in texts)
    if texts[0] in _CREDITS or not all(message.sentences for message in messages):
        return
    kept = {} if anew else {number: one.text for number, one in enumerate(strings) if one.text}
    one = singular_form(source.screen.language or "")
    writer = _Writer(source.text, block, forms or len(strings), one, kept)
    yield Entry(block.start, strings[-1].end, messages, writer.write, place, block.section, fills=True)


@dataclass(frozen=True)
class _Writer:
    """Writes an entry with its translation.

    `forms` is how many plural forms the language has, `one` the number of the form for one thing; the forms
    in `kept` have a translation already.
    """

    text: str
    block: _Block
    forms: int
    one: int
    kept: Mapping[int, str]

    def write(self, outcome: Outcome) -> str:
        """Return the entry with its translation, or as it was if that is not complete."""
        fields, strings = self.block.fields, self.block.strings
        if not outcome.complete:
            return self.text[self.block.start : strings[-1].end]
        end = _line_end(self.text, self.block.start)
        head = self._doubt(outcome, end) + "".join(self._comments(end))
        head += self.text[next(iter(fields.values())).start : strings[0].start]
        if "msgid_plural" not in fields:
            return head + _written("msgstr", outcome.texts[0], end)
        count = max(1, min(self.forms, _MAX_FORMS))
        shown = {
            number: outcome.texts[0 if number == self.one and count > 1 else 1] for number in range(count)
        }
        shown |= {number: text for number, text in self.kept.items() if number < count}
        return head + "".join(_written(f"msgstr[{number}]", text, end) for number, text in shown.items())

    def _doubt(self, outcome: Outcome, end: str) -> str:
        if outcome.confidence is None:
            return ""
        reasons = " ".join("; ".join(outcome.flags).split())
        return f"{_DOUBT} {outcome.confidence:.2f} ({reasons}){end}"

    def _comments(self, end: str) -> Iterator[str]:
        """Yield the comments, marked as fuzzy and without those on an earlier translation."""
        marked = self.block.is_fuzzy
        for start, stop, comment in self.block.comments:
            if comment.startswith(("#|", _DOUBT)):
                continue
            if not marked and _FLAGS.match(comment):
                yield f"#, fuzzy,{comment[2:]}{end}"
                marked = True
            else:
                yield self.text[start:stop]
        if not marked:
            yield f"#, fuzzy{end}"


def _line_end(text: str, start: int) -> str:
    found = re.compile(r"\r\n|\n|\r").search(text, start)
    return found[0] if found else "\n"


def _written(keyword: str, text: str, end: str) -> str:
    """Write a string as gettext does: in one line, or after an empty one if it is long or has several."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text) or [""]
    if len(lines) == 1 and len(keyword) + len(text) + 3 <= _WIDTH:
        return f'{keyword} "{escape(text)}"{end}'
    parts = [part for line in lines for part in _wrapped(line)]
    return f'{keyword} ""{end}' + "".join(f'"{part}"{end}' for part in parts)


def _wrapped(line: str) -> list[str]:
    """Cut a line between words, so that its escaped parts fit into the usual width."""
    parts, current = [], ""
    for word in re.findall(r"\S*\s*", line):
        shown = escape(word)
        if current and len(current) + len(shown) > _WIDTH - 2:
            parts.append(current)
            current = ""
        current += shown
    return [*parts, current] if current else parts


def escape(text: str) -> str:
    """Write a text as it is between quotes."""
    return _MUST_ESCAPE.sub(lambda match: _ESCAPED.get(match[0]) or _as_octal(match[0]), text)


def _as_octal(letter: str) -> str:
    return letter if ord(letter) > 0x7F else f"\\{ord(letter):03o}"


def unescape(text: str) -> str:
    """Read a text between quotes."""
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _ESCAPES.get(code, code)


def _blocks(text: str, name: str) -> Iterator[_Block]:
    """Yield the entries of a file, in order; obsolete ones (`#~`) are comments."""
    block: _Block | None = None
    current: _Field | None = None
    for number, match in enumerate(_LINE.finditer(text), 1):
        line = match[1].removeprefix("\ufeff") if number == 1 else match[1]
        start, end = match.end() - len(match[2]) - len(line), match.end()
        if not match[0]:
            break
        stripped = line.strip()
        if not stripped:
            current = None
            if block is not None and not block.fields:
                block = None  # comments of their own
            continue
        if stripped.startswith("#"):
            if block is None or block.fields:
                if block is not None:
                    yield _checked(block, name)
                block = _Block(number, start)
            block.comments.append((start, end, stripped))
            current = None
            continue
        keyword = _KEYWORD.match(line)
        quoted = _STRING.match(line, keyword.end() if keyword else 0)
        if quoted is None or (keyword is None and current is None):
            raise _broken(name, number, stripped)
        if keyword is not None:
            field_name = keyword[1] + (f"[{int(keyword[3])}]" if keyword[3] else "")
            begins = keyword[1] == "msgctxt" or (
                keyword[1] == "msgid" and block is not None and "msgid" in block.fields
            )
            if block is None or (begins and block.fields):
                if block is not None:
                    yield _checked(block, name)
                block = _Block(number, start)
            if field_name in block.fields:
                raise _broken(name, number, stripped)
            current = block.fields[field_name] = _Field(start, end)
        assert current is not None
        current.strings.append(unescape(quoted[1]))
        current.end = end
    if block is not None and block.fields:
        yield _checked(block, name)


_ORDER = ("msgctxt", "msgid", "msgid_plural", "msgstr")


def _checked(block: _Block, name: str) -> _Block:
    """Return an entry that has all of its parts in their order; any other is a CadecError."""
    ranks = [_ORDER.index(keyword.partition("[")[0]) for keyword in block.fields]
    if "msgid" not in block.fields or not block.strings or ranks != sorted(ranks):
        raise CadecError(f"{name}, line {block.line}: the entry has no msgid or no msgstr", _HINT)
    return block


def _broken(name: str, line: int, shown: str) -> CadecError:
    return CadecError(f"{name}, line {line} is not as gettext writes it: {shown[:60]}", _HINT)


_CHARSET = re.compile(r"charset=(?!utf-?8\b)[\w.:-]+", re.IGNORECASE)
_NPLURALS = re.compile(r"nplurals\s*=\s*(\d{1,2})")


def _header_lines(header: _Block) -> tuple[list[str], dict[str, int]]:
    """Return the lines of the header, and the number of each by what it names."""
    lines = header.strings[0].text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines, {line.partition(":")[0].strip().lower(): number for number, line in enumerate(lines)}


def _header_forms(header: _Block | None, language: str | None) -> int | None:
    """Return the number of plural forms: the header's, unless it is that of another language's file."""
    found = None
    if header is not None:
        lines, named = _header_lines(header)
        stated = lines[named["language"]].partition(":")[2].strip() if "language" in named else ""
        if not stated or not language or base_language(stated) == base_language(language):
            found = _NPLURALS.search(header.strings[0].text)
    if found:
        return int(found[1])
    return plural_forms(language)[0] if language else None


def _header(block: _Block, language: str | None, text: str) -> Iterator[Item]:
    """Name the language in the header, and its plural forms unless the header has them."""
    if language is None:
        return
    lines, named = _header_lines(block)
    count, rule = plural_forms(language)
    wanted = {"language": f"Language: {language.replace('-', '_')}"}
    if "content-type" in named:
        stated = lines[named["content-type"]]
        wanted["content-type"] = _CHARSET.sub("charset=UTF-8", stated)
    if _header_forms(block, language) != _header_forms(block, None) or not _NPLURALS.search("".join(lines)):
        wanted["plural-forms"] = f"Plural-Forms: nplurals={count}; plural={rule};"
    changed = list(lines)
    for key, line in wanted.items():
        if key not in named:
            changed.append(line)
        elif key != "language" or not _is_language(lines[named[key]], language):
            changed[named[key]] = line
    if changed == lines:
        return
    string, end = block.strings[0], _line_end(text, block.start)
    written = "".join(f'"{escape(line)}\\n"{end}' for line in changed)
    yield fixed(string.start, string.end, f'msgstr ""{end}{written}')


def _is_language(line: str, language: str) -> bool:
    """Tell whether a line of the header names a language, perhaps with a country: `fr_CA` is fr."""
    return base_language(line.partition(":")[2]) == base_language(language)
