"""One HTML file that needs nothing else: no network, no fonts, no scripts from elsewhere.

The template, the style and the script are files beside this one, put together on writing. Whatever comes from
texts is JSON in a data block, which no text can end, and is drawn as text. The policy in the page's head has
the checksums of its own style and script: the browser runs nothing else, whatever a subtitle holds.
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

# What could end the data block or be read as a line break, and what is no character.
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
    """A picture, and in words what is to be seen."""

    title: str
    media_type: str
    content: bytes


@dataclass(frozen=True)
class Page:
    """All of a page but its segments, which may be many."""

    title: str
    what: str  # segments are: sentences, failed groups …
    columns: tuple[str, str, str]  # names of the source, of what is compared, of the text
    facts: Mapping[str, str] = field(default_factory=dict)
    languages: tuple[str, str] = ("", "")
    figures: tuple[Figures, ...] = ()
    pictures: tuple[Picture, ...] = ()
    empty: str = "There is nothing to show."
    groups: str = "documents"  # what segments are grouped by
    details: str = "hypotheses"  # what opens with a segment
    changed: str = ""  # what it means that two versions differ, where it means something


def write_page(path: Path, page: Page, segments: Iterable[Mapping[str, Any]]) -> None:
    """Write a page, whole or not at all; segments are those of `reports.segments.plain`."""
    with atomic_file(path) as stream:
        for piece in page_pieces(page, segments):
            stream.write(piece.encode())


def page_pieces(page: Page, segments: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The page as text, piece by piece."""
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
    # Cut first, filled then: a title can hold whatever it likes.
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
    """What a content security policy calls an inline style or script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
