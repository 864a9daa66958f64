"""Writes self-contained HTML pages: they load nothing from anywhere else.

The template, the style and the script are files beside this one. All text is JSON in a data block, escaped
such that no text can end the block, and the script draws it as plain text. The content security policy has
the checksums of the page's own style and script, so that the browser runs nothing else, whatever a subtitle
contains.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from cadec_cli.fs.atomic import atomic_file

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
    """Write a page, whole or not at all; `segments` are made by `reports.segments.plain`."""
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
