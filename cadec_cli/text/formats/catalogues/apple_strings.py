"""String tables of Apple's systems: `Localizable.strings`.

Values are translated. Keys, comments and spacing stay. A file is one document.
"""

import re
from collections.abc import Callable, Iterator

from cadec_cli.errors import CadecError
from cadec_cli.text.documents import Document
from cadec_cli.text.formats.catalogues.catalogue import CatalogueLayout, Entry, Item, Outcome, catalogue
from cadec_cli.text.formats.catalogues.message import read_message
from cadec_cli.text.formats.layout import Source

_SKIPPED = re.compile(r"(?:[\s\ufeff]+|/\*(?:[^*]|\*(?!/))*\*/|//[^\r\n]*)+")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"|([\w.$/:-]+)', re.DOTALL)
_ESCAPE = re.compile(r"\\(U[0-9a-fA-F]{4}|u[0-9a-fA-F]{4}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_MUST_ESCAPE = re.compile(r'[\\"\n\t\r]')
_WRITTEN = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def read_strings(source: Source) -> tuple[tuple[Document, ...], CatalogueLayout]:
    """Read a table of strings; return its document and the layout that takes its translation."""
    return catalogue(source, _items(source))


def _items(source: Source) -> Iterator[Item]:
    text = source.text
    place = _skip(text, 0)
    while place < len(text):
        key = _STRING.match(text, place)
        place = _skip(text, key.end()) if key else place
        if key is None:
            raise _broken(source, place)
        value: re.Match[str] | None = None
        if text.startswith("=", place):
            place = _skip(text, place + 1)
            value = _STRING.match(text, place)
            if value is None:
                raise _broken(source, place)
            place = _skip(text, value.end())
        if not text.startswith(";", place):
            raise _broken(source, place)
        place = _skip(text, place + 1)
        if value is not None and value[1] is not None:
            message = read_message(_unescape(value[1]), source.language)
            if message.sentences:
                name = _unescape(key[1]) if key[1] is not None else key[2]
                write = _writer(value[1])
                yield Entry(value.start(1), value.end(1), (message,), write, name)


def _skip(text: str, place: int) -> int:
    """Return where the next thing begins after white space and comments."""
    found = _SKIPPED.match(text, place)
    return found.end() if found else place


def _broken(source: Source, place: int) -> CadecError:
    line = source.text.count("\n", 0, place) + 1
    return CadecError(
        f'{source.name}, line {line} is not as .strings files are: "key" = "value";',
        "`plutil -lint` finds the error; a property list in XML or binary is not read",
    )


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "Uu" and len(code) == 5:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _ESCAPES.get(code, code)


def _writer(original: str) -> Callable[[Outcome], str]:
    """Return what writes a translation; line breaks are escaped as they are in the original."""
    breaks = "\n" in original

    def write(outcome: Outcome) -> str:
        return _MUST_ESCAPE.sub(
            lambda match: (
                match[0] if breaks and match[0] == "\n" else _WRITTEN.get(match[0], "\\" + match[0])
            ),
            outcome.texts[0],
        )

    return write
