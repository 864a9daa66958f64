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

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.formats.layout import Source, finish, one_line, take
from cadec_cli.text.sentences import visible_span

_HINT = 'a line is an object with "text": a string, or "sentences": a list of strings'
_SURROGATES = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True)
class _Line:
    """One line of the file: its text, and which of its sentences are translated (None: it is no object)."""

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
            yield line.before + _added(line.json, texts if line.is_list else texts[0]) + line.after
        finish(incoming)


def read_jsonl(source: Source) -> tuple[tuple[Document, ...], JsonlLayout]:
    """Read JSON lines into documents and the layout."""
    documents: list[Document] = []
    current: list[Sentence] = []
    current_id: object = None
    lines: list[_Line] = []

    def end_document() -> None:
        if current:
            documents.append(Document(tuple(current)))
            current.clear()

    for number, line in enumerate(re.findall(r"[^\n]*\n|[^\n]+", source.text), 1):
        start, end = visible_span(line, 0, len(line))
        if start >= end:
            end_document()
            lines.append(_Line(before=line, json="", after="", wanted=None, is_list=False))
            continue
        where = f"{source.name}, line {number}"
        found = _parsed(line[start:end], where)
        texts, is_list = _sentences(found, where)
        stripped = [_cleaned(sentence) for sentence in texts]
        document_id = None if is_list else found.get("document")
        if is_list or document_id != current_id:
            end_document()
        current_id = document_id
        current += [Sentence(sentence, f"line {number}") for sentence in stripped if sentence]
        if is_list:
            end_document()
        wanted = tuple(bool(sentence) for sentence in stripped)
        lines.append(_Line(line[:start], line[start:end], line[end:], wanted, is_list))
    end_document()
    return tuple(documents), JsonlLayout(tuple(lines))


def _parsed(line: str, where: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
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


def _cleaned(sentence: str) -> str:
    """Return one line without white space around it; half a surrogate pair is no character."""
    start, end = visible_span(sentence, 0, len(sentence))
    return _SURROGATES.sub("\ufffd", " ".join(sentence[start:end].splitlines()))


def _added(line: str, translation: str | list[str]) -> str:
    """Add the translation to an object as it was written, so that nothing else in it changes."""
    found = json.loads(line)
    if "translation" in found:
        found["translation"] = translation
        written = json.dumps(found, ensure_ascii=False)
        # half a surrogate pair has no bytes in UTF-8; it came as an escape and has to go as one
        return json.dumps(found) if _SURROGATES.search(written) else written
    return f'{line[:-1].rstrip()}, "translation": {json.dumps(translation, ensure_ascii=False)}}}'
