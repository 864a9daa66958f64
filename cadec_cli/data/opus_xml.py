"""The XML of OPUS, read as it comes: films with time stamps, and the tags of XCES alignments.

The formats are very regular and, in real releases, not always well-formed. So this reads tags with one
regular expression instead of an XML parser: a doubled quote, a bare ampersand or a truncated file loses only
the damaged part. It knows the five predefined entities and character references; a DTD is skipped and
nothing it declares is ever expanded or fetched. One film is in memory at a time.

It knows nothing of documents or pairs: see `opensubtitles`.
"""

import codecs
import functools
import gzip
import io
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple, cast

from cadec_cli.fs.read import open_binary, read_errors

_CHUNK = 1 << 16
_MAX_TEXT_LENGTH = 1 << 20  # characters without a tag that are kept before they are dropped
_MAX_FILM_LENGTH = 1 << 25  # characters; real films have a million at most, so this is a decompression bomb
_MAX_COMMENT_LENGTH = 2000
_MAX_TAG_LENGTH = 10_000

SUFFIXES = (".xml", ".xml.gz")


@dataclass(frozen=True)
class TimedSentence:
    """A sentence of a film and when it is on screen, in seconds."""

    id: str
    text: str
    start: float
    end: float


@dataclass(frozen=True)
class Film:
    """One subtitle file: the language, the film as `year/imdb-id`, and the sentences in order."""

    language: str
    name: str
    sentences: tuple[TimedSentence, ...]


@dataclass
class Report:
    """Counts of items read, kept, damaged but still used, and left out, by kind or reason."""

    read: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    recovered: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)


def film_name(path: str) -> str:
    """Return `2001/209475` for `en/2001/209475/54828.xml.gz`."""
    return "/".join(PurePosixPath(path).parts[-3:-1])


def read_film(path: Path, language: str, report: Report) -> Film | None:
    """Read one subtitle file; return None, and count the reason, if nothing in it can be used."""
    report.read["films"] += 1
    builder = _FilmBuilder(language, report)
    size, closed = 0, True
    for tag in read_tags(path, report):
        size += len(tag.text) + len(tag.name) + len(tag.attributes)
        if size > _MAX_FILM_LENGTH:
            report.skipped["films too large"] += 1
            return None
        builder.take(tag)
        if tag.name == "document":
            closed = tag.closing
    if not closed:
        report.recovered["truncated files"] += 1
    sentences = builder.finish()
    report.read["sentences"] += len(sentences)
    if not sentences:
        report.skipped["films without timed sentences"] += 1
        return None
    return Film(language, film_name(path.as_posix()), sentences)


class _Stamp(NamedTuple):
    is_start: bool
    seconds: float
    position: int  # characters of the film before it


@dataclass
class _Draft:
    id: str
    begin: int
    first_stamp: int
    raw: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    text: str = ""
    end: int = 0
    last_stamp: int = 0


class _FilmBuilder:
    """Collects sentences and time stamps; times are settled at the end, when the neighbours are known."""

    def __init__(self, language: str, report: Report) -> None:
        self.language, self.report = language, report
        self.drafts: list[_Draft] = []
        self.ids: set[str] = set()
        self.stamps: list[_Stamp] = []
        self.draft: _Draft | None = None
        self.in_word = False
        self.position = 0

    def take(self, tag: "Tag") -> None:
        if self.draft and tag.text:
            self.position += len(tag.text.strip())
            if self.in_word:
                self.draft.words[-1] += tag.text
            else:
                self.draft.raw.append(tag.text)
        opening = not tag.closing and not tag.attributes.endswith("/")
        if tag.name == "w" and self.draft:
            self.in_word = opening
            if self.in_word:
                self.draft.words.append("")
        elif tag.name == "time" and not tag.closing:
            self._stamp(attributes_of(tag, self.report))
        elif tag.name in ("s", "meta", "document"):
            if self.draft:
                self._close(self.draft, proper=tag.name == "s" and tag.closing)
            if tag.name == "s" and opening:
                identifier = attributes_of(tag, self.report).get("id") or f"#{len(self.drafts)}"
                self.draft = _Draft(identifier, self.position, len(self.stamps))

    def _stamp(self, attributes: dict[str, str]) -> None:
        match = re.search(r"(\d{1,3}):(\d{1,2}):(\d{1,2})(?:[,.:](\d{1,3}))?", attributes.get("value", ""))
        if not match:
            self.report.skipped["unreadable time stamps"] += 1
            return
        hours, minutes, seconds, fraction = match.groups(default="0")
        time = int(hours) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction}")
        kind = attributes.get("id", "")[-1:].upper()
        is_start = kind == "S" if kind in ("S", "E") else not (self.stamps and self.stamps[-1].is_start)
        self.stamps.append(_Stamp(is_start, time, self.position))
        if self.draft:
            self.draft.raw.append(" ")

    def _close(self, draft: _Draft, *, proper: bool) -> None:
        self.draft, self.in_word = None, False
        if not proper:
            self.report.recovered["sentences not closed"] += 1
        words = [word for word in (_squeeze_spaces(word) for word in draft.words) if word]
        draft.text = detokenise(words, self.language) if words else _squeeze_spaces("".join(draft.raw))
        if "\ufffd" in draft.text:
            self.report.skipped["sentences with undecodable bytes"] += 1
            draft.text = ""
        draft.end, draft.last_stamp = self.position, len(self.stamps)
        if draft.id in self.ids:
            self.report.recovered["sentences with the id of another"] += 1
        self.ids.add(draft.id)
        self.drafts.append(draft)

    def finish(self) -> tuple[TimedSentence, ...]:
        if self.draft:  # the file ends inside it, perhaps inside a word
            self.report.skipped["sentences cut off"] += 1
        return tuple(self._set_times(draft) for draft in self.drafts) if self.stamps else ()

    def _set_times(self, draft: _Draft) -> TimedSentence:
        own = self.stamps[draft.first_stamp : draft.last_stamp]
        if not own:
            self.report.recovered["times taken from neighbours"] += 1
        starts_here = own and own[0].is_start
        ends_here = own and not own[-1].is_start
        start = own[0].seconds if starts_here else self._time_at(draft.first_stamp, draft.begin)
        end = own[-1].seconds if ends_here else self._time_at(draft.last_stamp, draft.end)
        return TimedSentence(draft.id, draft.text, start, max(start, end))

    def _time_at(self, index: int, position: int) -> float:
        """Return the time at a place in the text, given that stamp `index` is the first after it.

        A block of several sentences has one start and one end: its time is shared out by characters. Outside
        a block the nearest stamp before it counts, never a middle: that would hide a gap.
        """
        before = self.stamps[index - 1] if index else None
        after = self.stamps[index] if index < len(self.stamps) else None
        if before and after and before.is_start and not after.is_start:
            share = (position - before.position) / max(1, after.position - before.position)
            return before.seconds + share * (after.seconds - before.seconds)
        nearest = before or after
        assert nearest, "a film without stamps has no times to ask for"
        return nearest.seconds


def detokenise(words: list[str], language: str) -> str:
    """Join the tokens of OPUS as people write them: `he 'll` is he'll, `Tom ' i` is Tom'i."""
    language = re.split("[_-]", language)[0]
    joined: list[str] = []
    for index, word in enumerate(words):
        if (
            language not in _FREE_APOSTROPHES
            and _is_ending(joined, word)
            and words[index + 1 : index + 2] != ["'"]
        ):
            joined[-2:] = ["".join((*joined[-2:], word))]
        elif joined and _belongs_to(joined[-1], word):
            joined[-1] += word
        else:
            joined.append(word)
    return _squeeze_spaces(_detokeniser(language)(joined, unescape=False))


def _belongs_to(before: str, word: str) -> bool:
    if word == "-":
        return before.endswith("-") and len(before) > 1
    return word.lower() in _CLITICS and before[-1].isalpha()


def _is_ending(joined: list[str], word: str) -> bool:
    # A case ending after a foreign name; the capital tells it from a quotation.
    apostrophe = (
        len(joined) > 1 and joined[-1] == "'" and joined[-2][-1].isalpha() and joined[-2][0].isupper()
    )
    return apostrophe and word.islower() and word.isalpha() and len(word) <= 4


_CLITICS = {"n't", *(quote + end for quote in "'’" for end in ("ll", "re", "ve"))}
# Languages with short words that begin with an apostrophe: in 't huis, knock 'em dead.
_FREE_APOSTROPHES = ("en", "nl", "af")


@functools.cache
def _detokeniser(language: str) -> Callable[..., str]:
    from sacremoses import MosesDetokenizer

    return cast(Callable[..., str], MosesDetokenizer(lang=language).detokenize)


class Tag(NamedTuple):
    """A tag and the text before it."""

    text: str  # the decoded text between the tag before and this one
    closing: bool
    name: str
    attributes: str


# An attribute may hold ">"; where quotes do not pair up, the tag ends at the first one.
_MARKUP = re.compile(
    rf"""<!--.{{0,{_MAX_COMMENT_LENGTH}}}?-->
    | <!\[CDATA\[(?P<cdata>.{{0,{_MAX_COMMENT_LENGTH}}}?)\]\]>
    | <!DOCTYPE[^\[<>]*(?:\[.{{0,{_MAX_COMMENT_LENGTH}}}?\]\s*)?>
    | (?P<unfinished><!--|<!\[CDATA\[|<!DOCTYPE)
    | <(?P<closing>/?)(?P<name>[A-Za-z][\w.:-]*+)
      (?:(?P<attributes>(?:[^<>"']++|"[^"<\n]*+"|'[^'<\n]*+')*+)|(?P<malformed>[^<>]*+))>""",
    re.DOTALL | re.VERBOSE,
)
_ATTRIBUTE = re.compile(r"""([\w:.-]+)\s*=\s*(["'])(?:\2(?=[^\s/>"']))?(.*?)\2""", re.DOTALL)
_REFERENCE = re.compile(r"&(?:(amp|lt|gt|quot|apos);|#(\d{1,7});|#[xX]([0-9a-fA-F]{1,6});)?")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u200b\u2060\ufeff]")


def read_tags(path: Path, report: Report) -> Iterator[Tag]:
    """Yield the tags of a file, each with the text before it; damaged parts are counted and skipped."""
    return _tags(_chunks(path, report), report)


def _tags(chunks: Iterator[str], report: Report) -> Iterator[Tag]:
    rest, text, ended = "", "", False
    while not ended:
        chunk = next(chunks, None)
        ended = chunk is None
        rest += chunk or ""
        # No tag holds "<", so all before the last one is complete; comments are held back below.
        complete = len(rest) if ended else max(0, rest.rfind("<"))
        position = 0
        for match in _MARKUP.finditer(rest, 0, complete):
            if match["unfinished"] and not ended and complete - match.start() < 2 * _MAX_COMMENT_LENGTH:
                break
            text += _decode_references(rest[position : match.start()], report) + (match["cdata"] or "")
            if match["name"]:
                if match["malformed"] is not None:
                    report.recovered["malformed tags"] += 1
                attributes = match["malformed"] if match["attributes"] is None else match["attributes"]
                yield Tag(text, bool(match["closing"]), match["name"], attributes)
                text = ""
            position = match.end()
        rest = rest[position:]
        if len(rest) + len(text) > _MAX_TEXT_LENGTH:
            report.skipped["long stretches without a tag"] += 1
            rest = text = ""


def attributes_of(tag: Tag, report: Report) -> dict[str, str]:
    """Return the attributes of a tag, decoded."""
    return {
        match[1]: _decode_references(match[3], report)
        for match in _ATTRIBUTE.finditer(tag.attributes, 0, _MAX_TAG_LENGTH)
    }


def _decode_references(text: str, report: Report) -> str:
    if "&" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        name, decimal, hexadecimal = match.groups()
        if name:
            return _ENTITIES[name]
        if decimal or hexadecimal:
            code = int(decimal) if decimal else int(hexadecimal, 16)
            return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
        report.recovered["bare ampersands and unknown entities"] += 1
        return "&"

    return _REFERENCE.sub(character, text)


def _squeeze_spaces(text: str) -> str:
    return " ".join(_CONTROLS.sub("", text).split())


def _chunks(path: Path, report: Report) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    with read_errors(path), open_binary(path) as stream:
        while True:
            try:
                # read1, so that data unpacked before the damage is not lost
                data = cast(io.BufferedIOBase, stream).read1(_CHUNK)
            except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError):
                report.recovered["damaged archives"] += 1
                return
            if not data:
                return
            yield decoder.decode(data)
