"""Writes self-contained HTML pages: they load nothing from anywhere else.

The template, the style and the script are files beside this one. All text is JSON in a data block, escaped
such that no text can end the block, and the script draws it as plain text. The content security policy has
the checksums of the page's own style and script, so that the browser runs nothing else, whatever a subtitle
contains.

The segments of a page are two versions of a sentence, why one was chosen, and the alternatives. Reports make
them, `plain` turns them into JSON, and the page's script draws that. Values that were not computed are
absent. `changed_words` says where two versions differ, for pages and for terminals. Neither models nor files
of translations are known here.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import html
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from cadec_cli.fs.atomic import atomic_file


@dataclass(frozen=True)
class Stretch:
    """A stretch of a sentence; all of its words are in the other version too, or none of them."""

    text: str
    changed: bool


def changed_words(before: str, after: str) -> tuple[list[Stretch], list[Stretch]]:
    """Split both versions into stretches; joined, these are the sentences.

    The space after a stretch belongs to it.
    """
    old, new = before.split(" "), after.split(" ")
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    left = [_stretch(old, first, last, tag != "equal") for tag, first, last, _, _ in codes if last > first]
    right = [_stretch(new, first, last, tag != "equal") for tag, _, _, first, last in codes if last > first]
    return left, right


def _stretch(words: Sequence[str], first: int, last: int, changed: bool) -> Stretch:
    return Stretch(" ".join(words[first:last]) + " " * (last < len(words)), changed)


# Characters that could end the data block or count as line breaks, and surrogates.
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True)
class Figures:
    """A table of figures; the first column names the rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """A picture, and a title that says what it shows."""

    title: str
    media_type: str
    content: bytes


@dataclass(frozen=True)
class Page:
    """A page without its segments, which may be many."""

    title: str
    what: str  # what the segments are: sentences, failed groups …
    columns: tuple[str, str, str]  # headings of the source, of the compared text and of the text
    facts: Mapping[str, str] = field(default_factory=dict)
    languages: tuple[str, str] = ("", "")
    figures: tuple[Figures, ...] = ()
    pictures: tuple[Picture, ...] = ()
    empty: str = "There is nothing to show."
    groups: str = "documents"  # what segments are grouped by
    details: str = "hypotheses"  # what opens with a segment
    changed: str = ""  # what a difference of the two texts means; empty if nothing


def write_page(path: Path, page: Page, segments: Iterable[Mapping[str, Any]]) -> None:
    """Write a page, whole or not at all; `segments` are made by `plain`."""
    with atomic_file(path) as stream:
        for piece in page_pieces(page, segments):
            stream.write(piece.encode())


def page_pieces(page: Page, segments: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the page as text, piece by piece."""
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{_checksum(style)}'; script-src '{_checksum(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    values = {
        "title": html.escape(page.title.encode("utf-8", "replace").decode()),
        "policy": policy,
        "style": style,
        "script": script,
    }
    # The template is cut before it is filled, so that a title can contain anything.
    head, tail = _asset("page.html").split("{{data}}")
    yield _fill_template(head, values)
    yield _json(_frame(page)).removesuffix("}") + ',"segments":['
    for number, segment in enumerate(segments):
        yield (",\n" if number else "\n") + _json(segment)
    yield "]}"
    yield _fill_template(tail, values)


def _frame(page: Page) -> dict[str, Any]:
    return {
        "title": page.title,
        "what": page.what,
        "columns": page.columns,
        "facts": list(page.facts.items()),
        "languages": page.languages,
        "figures": [vars(figures) for figures in page.figures],
        "pictures": [
            {
                "title": picture.title,
                "uri": f"data:{picture.media_type};base64,{base64.b64encode(picture.content).decode()}",
            }
            for picture in page.pictures
        ],
        "empty": page.empty,
        "groups": page.groups,
        "details": page.details,
        "changed": page.changed,
    }


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _fill_template(template: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], template)


@cache
def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _checksum(text: str) -> str:
    """The name of an inline style or script in a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# Decimals of a score: nobody reads exact figures from a page.
_DIGITS = 3
# Control characters are shown as symbols (␛ for ESC); line breaks and tabs are left to the browser.
_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"}
_PICTURES |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


@dataclass(frozen=True)
class ReportToken:
    """A token as people read it, and its PMI with the context."""

    text: str
    pmi: float


@dataclass(frozen=True)
class ReportHypothesis:
    """A candidate with its known scores; `note` is shown beside it."""

    text: str
    score: float | None = None
    log_prob: float | None = None
    pmi: float | None = None
    chosen: bool = False
    note: str = ""


@dataclass(frozen=True)
class ReportPart:
    """The hypotheses of a part and the context. An overlong sentence has several parts, any other has one.

    The tokens of both versions end with the boundary. Without a D-LM there are no tokens and no context.
    """

    hypotheses: tuple[ReportHypothesis, ...] = ()  # the best first
    context: tuple[str, ...] | None = None
    tokens: tuple[ReportToken, ...] = ()
    compared_tokens: tuple[ReportToken, ...] = ()


@dataclass(frozen=True)
class ReportSegment:
    """A sentence: its place, its source, its text and a version to compare it with."""

    group: str  # its document, or its contrastive set
    label: str  # its number in the group
    source: str
    text: str
    compared: str | None = None
    confidence: float | None = None
    flags: tuple[str, ...] = ()  # why it should be checked
    notes: tuple[str, ...] = ()  # other remarks
    parts: tuple[ReportPart, ...] = ()


def plain(segment: ReportSegment) -> dict[str, Any]:
    """Turn a segment into the plain data that the page's script reads; it survives JSON unchanged.

    A text is a list of runs: a string, or [string, 1 if its words differ, its PMI if it has one].
    """
    compared = segment.compared
    whole = [Stretch(segment.text, False)] if segment.text else []
    before, after = changed_words(compared, segment.text) if compared is not None else ([], whole)
    record: dict[str, Any] = {
        "group": _strip_invisible(segment.group),
        "label": _strip_invisible(segment.label),
        "source": _strip_invisible(segment.source),
        "text": _runs(after, [part.tokens for part in segment.parts]),
    }
    if compared is not None:
        record["compared"] = _runs(before, [part.compared_tokens or part.tokens for part in segment.parts])
        record["changed"] = compared != segment.text
    if segment.confidence is not None:
        record["confidence"] = _round_figure(segment.confidence)
    for name, remarks in (("flags", segment.flags), ("notes", segment.notes)):
        if remarks:
            record[name] = [_strip_invisible(remark) for remark in remarks]
    parts = [_part(part) for part in segment.parts]
    return record | ({"parts": parts} if any(parts) else {})


def put(record: dict[str, Any], group: str, label: str) -> dict[str, Any]:
    """Give a plain segment its group and label, which were not known when it was made."""
    return {**record, "group": _strip_invisible(group), "label": _strip_invisible(label)}


def with_notes(record: dict[str, Any], notes: Sequence[str]) -> dict[str, Any]:
    """Add notes to a plain segment, which were not known when it was made."""
    if not notes:
        return record
    return {**record, "notes": [*record.get("notes", ()), *map(_strip_invisible, notes)]}


def _part(part: ReportPart) -> dict[str, Any]:
    record: dict[str, Any] = {}
    if part.context is not None:
        record["context"] = [_strip_invisible(sentence) for sentence in part.context]
    for name, tokens in (("tokens", part.tokens), ("compared", part.compared_tokens)):
        if tokens:
            record[name] = [[_strip_invisible(token.text), _round_figure(token.pmi)] for token in tokens]
    if part.hypotheses:
        record["hypotheses"] = [_hypothesis(hypothesis) for hypothesis in part.hypotheses]
    return record


def _hypothesis(hypothesis: ReportHypothesis) -> list[Any]:
    scores = (hypothesis.score, hypothesis.log_prob, hypothesis.pmi)
    numbers = [None if score is None else _round_figure(score) for score in scores]
    return [
        _strip_invisible(hypothesis.text),
        *numbers,
        int(hypothesis.chosen),
        _strip_invisible(hypothesis.note),
    ]


def _runs(stretches: Sequence[Stretch], tokens: Sequence[Sequence[ReportToken]]) -> list[Any]:
    """Cut a text wherever a difference or a token begins or ends."""
    text = "".join(stretch.text for stretch in stretches)
    changed = [
        stretch.changed and place < len(stretch.text.rstrip())
        for stretch in stretches
        for place in range(len(stretch.text))
    ]
    # The boundary at the end of each part has no text.
    owners = _owners(text, [token for of_part in tokens for token in of_part[:-1]])
    runs: list[Any] = []
    kinds = zip(text, changed, owners, strict=True)
    for (differs, owner), run in itertools.groupby(kinds, key=lambda kind: (kind[1], kind[2])):
        words = _strip_invisible("".join(character for character, _, _ in run))
        if owner is not None:
            runs.append([words, int(differs), _round_figure(owner[1])])
        else:
            runs.append([words, 1] if differs else words)
    return runs


_AROUND = 80  # characters that may precede the translated words


def _owners(text: str, tokens: Sequence[ReportToken]) -> list[tuple[int, float] | None]:
    """For each character, the number and the PMI of the token that wrote it; None if no token matches it.

    Tokens may differ from the final text in case, spaces and sometimes quotation marks, and the text around
    the words, such as a dash before speech, may come from no model at all.
    """
    owners: list[tuple[int, float] | None] = [None] * len(text)
    places = [place for place, character in enumerate(text) if not character.isspace()]
    written = [
        (character, (number, token.pmi))
        for number, token in enumerate(tokens)
        for character in token.text
        if not character.isspace()
    ]
    for first in range(min(len(places) - len(written) + 1, _AROUND)):
        covered = places[first : first + len(written)]
        if all(_alike(text[place], one) for place, (one, _) in zip(covered, written, strict=True)):
            for place, (_, owner) in zip(covered, written, strict=True):
                owners[place] = owner
            break
    return owners


def _alike(one: str, other: str) -> bool:
    return one.casefold() == other.casefold() or not (one.isalnum() or other.isalnum())


def _strip_invisible(text: str) -> str:
    """Replace control characters by visible symbols."""
    return text.translate(_PICTURES)


def _round_figure(value: float) -> float | None:
    """Round a figure for the page; None if it is not finite, which JSON can't express."""
    return round(value, _DIGITS) if math.isfinite(value) else None
