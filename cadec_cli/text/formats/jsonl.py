"""JSON lines: one object per line, repeated on output with its translation added.

    {"text": "Hello."}                                  → … , "translation": "Привет."}
    {"text": "Hello.", "document": "talk 1"}            → … , "translation": "Привет."}
    {"sentences": ["Hello.", "Bye."]}                   → … , "translation": ["Привет.", "Пока."]}
    {"document": ["Hello.", "Bye."], "source": "x"}     → … , "translation": ["Привет.", "Пока."]}

`text` is one sentence and is not split. Consecutive `text` lines form one document for as long as their
`document` (a string or a number) stays the same; lines without it form one together; a blank line always ends
a document. A list under `sentences` or `document` is a whole document. Other keys are kept as they were
written, down to the spacing; an old `translation` is replaced. A sentence of white space only is not
translated: its translation is the empty string.
"""

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import parse_json
from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.formats.layout import Line, LineCutter, Source, documents_in, finish, one_line, take
from cadec_cli.text.sentences import visible_span

_HINT = 'a line is an object with "text": a string, or "sentences": a list of strings'
_SURROGATES = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True)
class _Line:
    """One line of the file: its text, and which of its sentences are translated; None for a blank line."""

    before: str
    json: str
    after: str
    wanted: tuple[bool, ...] | None
    is_list: bool


@dataclass(frozen=True)
class JsonlLayout:
    """The lines of a file of JSON lines."""

    lines: tuple[_Line, ...]

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the lines with their translations, each as soon as its last translation is there."""
        incoming = iter(translations)
        for line in self.lines:
            if line.wanted is None:
                yield line.before
                continue
            texts = [one_line(take(incoming)) if wanted else "" for wanted in line.wanted]
            yield line.before + _add_translation(line.json, texts if line.is_list else texts[0]) + line.after
        finish(incoming)


class JsonlLines:
    """Reads JSON lines one by one; `name` is what messages call the file."""

    old_ends = False

    def __init__(self, name: str, language: str, whole_lines: bool) -> None:
        self._name = name
        self._number = 0
        self._document: object = None

    def read(self, text: str, end: str) -> Iterator[Line[JsonlLayout]]:
        """Read the next line."""
        self._number += 1
        line = text + end
        first, last = visible_span(line, 0, len(line))
        if first >= last:
            blank = _Line(before=line, json="", after="", wanted=None, is_list=False)
            yield Line((), JsonlLayout((blank,)), ends_before=True)
            return
        where = f"{self._name}, line {self._number}"
        found = _parse_line(line[first:last], where)
        texts, is_list = _sentences(found, where)
        stripped = [_clean(sentence) for sentence in texts]
        before, self._document = self._document, None if is_list else found.get("document")
        wanted = tuple(bool(sentence) for sentence in stripped)
        yield Line(
            tuple(Sentence(sentence, f"line {self._number}") for sentence in stripped if sentence),
            JsonlLayout((_Line(line[:first], line[first:last], line[last:], wanted, is_list),)),
            ends_before=is_list or self._document != before,
            ends_after=is_list,
        )

    def end(self) -> Iterator[Line[JsonlLayout]]:
        """Return nothing: no line is held back."""
        return iter(())


def read_jsonl(source: Source) -> tuple[tuple[Document, ...], JsonlLayout]:
    """Read JSON lines; return their documents and the layout that restores them."""
    cutter, reader = LineCutter(), JsonlLines(source.name, source.language, source.lines)
    cut = itertools.chain(cutter.cut(source.text), cutter.end())
    lines = [line for text, end in cut for line in reader.read(text, end)]
    layout = JsonlLayout(tuple(itertools.chain.from_iterable(line.layout.lines for line in lines)))
    return tuple(documents_in(lines)), layout


def _parse_line(line: str, where: str) -> dict[str, Any]:
    try:
        found = parse_json(line)
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise CadecError(f"{where} is not JSON: {reason}", _HINT) from None
    if not isinstance(found, dict):
        raise CadecError(f"{where} is JSON but not an object", _HINT)
    return found


def _sentences(found: dict[str, Any], where: str) -> tuple[list[str], bool]:
    """Return the sentences of a line, and whether they are a list."""
    if isinstance(found.get("text"), str):
        identity = found.get("document")
        if identity is not None and not isinstance(identity, str | int | float):
            raise CadecError(f'{where}: beside "text", "document" must be a string or a number', _HINT)
        return [found["text"]], False
    for key in ("sentences", "document"):
        value = found.get(key)
        if isinstance(value, list):
            if not all(isinstance(sentence, str) for sentence in value):
                raise CadecError(f'{where}: "{key}" holds something that is not a string', _HINT)
            return value, True
    raise CadecError(f'{where} has neither "text" nor "sentences"', _HINT)


def _clean(sentence: str) -> str:
    """Return a sentence on one line, without white space around it and without lone surrogates."""
    start, end = visible_span(sentence, 0, len(sentence))
    return _SURROGATES.sub("\ufffd", " ".join(sentence[start:end].splitlines()))


def _add_translation(line: str, translation: str | list[str]) -> str:
    """Add the translation to an object as it was written, so that nothing else in it changes."""
    found = json.loads(line)
    if "translation" in found:
        found["translation"] = translation
        written = json.dumps(found, ensure_ascii=False)
        # UTF-8 can't encode half a surrogate pair, which came as an escape.
        return json.dumps(found) if _SURROGATES.search(written) else written
    return f'{line[:-1].rstrip()}, "translation": {json.dumps(translation, ensure_ascii=False)}}}'
