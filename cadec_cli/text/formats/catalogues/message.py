"""A string of a catalogue, taken apart: the sentences that are translated, and the text around them.

Lines and sentences are translated one by one, but lines that a person has wrapped are one, and their
translation is wrapped again. Placeholders that the protection of text doesn't know, and the plurals and
selects of ICU, are replaced by ones that it knows; afterwards they are put back. The texts inside are
messages themselves. The mark before the letter of a shortcut (`_File`, `&File`) is taken out and put into
the translation.

A translation of a sentence that has lost a placeholder, a tag or all words is not used: the sentence stays as
it is.
"""

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from cadec_cli.text.formats.catalogues.icu import find_arguments, without_quoting
from cadec_cli.text.formats.catalogues.placeholders import PLACEHOLDER, TAG, keeps_marks
from cadec_cli.text.formats.layout import one_line, take
from cadec_cli.text.formats.subtitles.cue_tags import tagged_sentence_spans
from cadec_cli.text.markup import text_tags
from cadec_cli.text.protected.spans import find_spans, has_words

_LINE_END = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
# What else ends a sentence: plural forms in one string, of Vue, Laravel and Symfony (“a car | {n} cars”,
# “{1} a car|]1,Inf[ cars”).
_FORMS = re.compile(
    r"[ \t]?\|[ \t]?(?:(?:\{[\d,]{1,20}\}|[\[\]](?:-?\d{1,9}|-?Inf)(?:,(?:\d{1,9}|Inf|\*))?[\[\]])[ \t]?)?"
    r"|\t"
)
_TWO_LETTERS = re.compile(r"[^\W\d_]{2}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MAX_ICU = 10  # nested plurals and selects


@dataclass(frozen=True)
class Syntax:
    """What a format's strings may have besides sentences."""

    icu: bool = False
    shortcuts: str = ""  # the marks before the letter of a shortcut


@dataclass(frozen=True)
class Restored:
    """The translation of a string; not `complete` if sentences of it had to stay as they were."""

    text: str
    complete: bool


@dataclass(frozen=True)
class Message:
    """A string in parts; the gaps are the text before each sentence and after the last one."""

    text: str
    gaps: tuple[str, ...]
    own: tuple[str, ...]  # its own sentences, with stand-ins
    stand_ins: Mapping[str, "str | _Argument"] = field(default_factory=dict)
    wrapped: Mapping[int, "_Wrapped"] = field(default_factory=dict)  # by the numbers of its own sentences
    shortcut: str = ""  # the mark, and the letter after it
    icu: bool = False

    @property
    def sentences(self) -> tuple[str, ...]:
        """All sentences: its own, then those inside its plurals and selects."""
        return (*self.own, *(sentence for inner in self._inner() for sentence in inner.sentences))

    def restore(self, incoming: Iterator[str]) -> Restored:
        """Take the translations of all sentences and return that of the string."""
        given = [take(incoming) for _ in self.own]
        complete = True
        written = self.gaps[0]
        for number, (sentence, translation, gap) in enumerate(
            zip(self.own, given, self.gaps[1:], strict=True)
        ):
            shown = _without_added_stop(sentence, _SURROGATES.sub("\ufffd", one_line(translation)).strip())
            if translation != sentence and not (_has_letters(shown) and keeps_marks(sentence, shown)):
                shown, complete = sentence, False
            if self.icu and shown != sentence:
                shown = without_quoting(shown)
            if number in self.wrapped:
                wrapped = self.wrapped[number]
                shown = wrapped.raw if shown == sentence else wrapped.fill(shown, written)
            written += shown + gap
        shown_for: dict[str, str] = {}
        for stand_in, meant in self.stand_ins.items():
            if isinstance(meant, str):
                shown_for[stand_in] = meant
                continue
            shown_for[stand_in], inside = meant.restore(incoming)
            complete = complete and inside
        if shown_for:
            pattern = re.compile("|".join(map(re.escape, shown_for)))
            written = pattern.sub(lambda match: shown_for[match[0]], written)
        return Restored(self._with_shortcut(written), complete)

    def _inner(self) -> Iterator["Message"]:
        for meant in self.stand_ins.values():
            if isinstance(meant, _Argument):
                yield from meant.messages

    def _with_shortcut(self, translation: str) -> str:
        if not self.shortcut:
            return translation
        mark, letter = self.shortcut[0], self.shortcut[1]
        if self.text.replace(mark, "", 1) == translation:
            return self.text
        bare = PLACEHOLDER.sub(lambda match: "\0" * len(match[0]), translation)
        for pattern in (rf"(?<!\w){re.escape(letter)}", re.escape(letter), r"(?<!\w)[^\W\d_]"):
            if found := re.search(pattern, bare, re.IGNORECASE):
                if not found[0].isascii():  # menus in Chinese or Japanese have “(_F)” after the word
                    return f"{translation}({mark}{letter.upper()})"
                return translation[: found.start()] + mark + translation[found.start() :]
        return translation


@dataclass(frozen=True)
class _Wrapped:
    """A sentence of several lines as it is written, and how wide these are."""

    raw: str
    width: int

    def fill(self, translation: str, before: str) -> str:
        """Wrap a translation after the text before it."""
        column = len(before) - before.rfind("\n") - 1
        lines = textwrap.wrap(
            translation,
            max(self.width, 20),
            initial_indent=" " * column,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return "\n".join(lines)[column:] if lines[0].strip() else "\n".join(lines[1:])


@dataclass(frozen=True)
class _Argument:
    """A plural or select: its syntax, and the messages between the pieces of it."""

    pieces: tuple[str, ...]
    messages: tuple[Message, ...]

    def restore(self, incoming: Iterator[str]) -> tuple[str, bool]:
        written, complete = self.pieces[0], True
        for message, piece in zip(self.messages, self.pieces[1:], strict=True):
            restored = message.restore(incoming)
            written += restored.text + piece
            complete = complete and restored.complete
        return written, complete


_NO_SYNTAX = Syntax()


def read_message(text: str, language: str, syntax: Syntax = _NO_SYNTAX) -> Message:
    """Take a string apart; the language is that of the source."""
    return _read(text, language, syntax, depth=0)


def _read(text: str, language: str, syntax: Syntax, *, depth: int, number: bool = False) -> Message:
    shortcut, plain = _shortcut(text, syntax.shortcuts)
    stand_ins: dict[str, str | _Argument] = {}
    names = _names(plain)
    arguments = find_arguments(plain) if syntax.icu and depth < _MAX_ICU else []
    masked, done = "", 0
    for argument in arguments:
        masked += _mask(plain[done : argument.start], number, names, stand_ins)
        name = next(names)
        messages, pieces, place = [], [], argument.start
        for start, end in argument.texts:
            pieces.append(plain[place:start])
            inside = number or argument.has_number
            messages.append(_read(plain[start:end], language, syntax, depth=depth + 1, number=inside))
            place = end
        stand_ins[name] = _Argument((*pieces, plain[place : argument.end]), tuple(messages))
        masked += name
        done = argument.end
    masked += _mask(plain[done:], number, names, stand_ins)
    gaps, own, wrapped = _sentences(masked, language)
    return Message(text, gaps, own, stand_ins, wrapped, shortcut, icu=bool(arguments) or depth > 0)


def _names(text: str) -> Iterator[str]:
    """Yield stand-ins that a text does not have."""
    number = 0
    while True:
        number += 1
        name = f"{{{number}}}"
        if name not in text:
            yield name


_NUMBER_SIGN = re.compile(r"#")


def _mask(text: str, number: bool, names: Iterator[str], stand_ins: dict[str, str | _Argument]) -> str:
    """Replace the placeholders that the protection of text does not know, and the `#` of a plural."""
    known = {(span.start, span.end) for span in find_spans(text)}
    tags = [match.span() for match in TAG.finditer(text)]
    masked, done = "", 0
    unknown = [match for match in PLACEHOLDER.finditer(text) if match.span() not in known]
    if number:
        unknown += _NUMBER_SIGN.finditer(text)
    for match in sorted(unknown, key=re.Match.start):
        if match.start() < done or any(start < match.start() < end for start, end in tags):
            continue
        name = next(names)
        stand_ins[name] = match[0]
        masked += text[done : match.start()] + name
        done = match.end()
    return masked + text[done:]


def _sentences(text: str, language: str) -> tuple[tuple[str, ...], tuple[str, ...], dict[int, _Wrapped]]:
    """Split a text into the gaps around its sentences, and the sentences; some may run over lines."""
    gaps: list[str] = []
    found: list[str] = []
    done = 0
    wrapped: dict[int, _Wrapped] = {}
    for first, last in _joined(text, list(_lines(text))):
        line = text[first:last].replace("\n", " ")
        width = max(map(len, text[first:last].split("\n"))) if line != text[first:last] else 0
        tags = [tag for tag in text_tags(line) if tag.text.startswith("<")] if "<" in line else []
        for start, end in tagged_sentence_spans(line, tags, language):
            sentence, raw = line[start:end], text[first + start : first + end]
            if is_text(sentence):
                if width:
                    wrapped[len(found)] = _Wrapped(raw, width)
                gaps.append(text[done : first + start])
                found.append(sentence)
                done = first + end
    return (*gaps, text[done:]), tuple(found), wrapped


# An option in the help of a command, and the spaces before what it does.
_OPTION = re.compile(r"^[ ]*-{1,2}[\w?][^\n]{0,60}?([ ]{2,})(?=\S)", re.MULTILINE)


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    ends = [match.span() for pattern in (_LINE_END, _FORMS) for match in pattern.finditer(text)]
    ends += [match.span(1) for match in _OPTION.finditer(text)]
    for end, after in sorted(ends):
        if end >= start:
            yield start, end
            start = after
    yield start, len(text)


# Lines at least so long may have been wrapped by a person, if the next one goes on in lower case.
_FULL = 40
_GOES_ON = re.compile(r"[\"'“‘«(]?[^\W\d_]")


def _joined(text: str, lines: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the lines, and those that go on in the next one together with it."""
    begin = end = 0
    for number, (first, last) in enumerate(lines):
        goes_on = (
            number > 0
            and text[end:first] == "\n"
            and last - first > 1
            and end - lines[number - 1][0] >= _FULL
            and text[end - 1] not in ".!?…:;|"
            and (begun := _GOES_ON.match(text, first, last)) is not None
            and begun[0][-1].islower()
        )
        if not goes_on:
            if number:
                yield begin, end
            begin = first
        end = last
    yield begin, end


def _has_letters(text: str) -> bool:
    return any(map(str.isalpha, PLACEHOLDER.sub("", TAG.sub("", text))))


def is_text(text: str) -> bool:
    """Tell whether there is anything to translate: two letters in a row, outside tags and placeholders."""
    if not _TWO_LETTERS.search(text) or _SURROGATES.search(text):
        return False
    bare = PLACEHOLDER.sub(" ", TAG.sub(" ", text))
    return bool(_TWO_LETTERS.search(bare)) and has_words(bare, find_spans(bare))


# A full stop after a word of several letters: not one of an abbreviation.
_STOP = re.compile(r"(?<=[^\W\d_]{4})\.$|(?<=[})>])\.$|。$")
_ENDS = tuple(".!?…:;。！？：")


def _without_added_stop(source: str, translation: str) -> str:
    """Take the full stop from the end of a translation whose source has none: a title, a label."""
    if source.endswith(_ENDS) or translation == source:
        return translation
    return _STOP.sub("", translation)


_MAX_SHORTCUT = 80  # characters of a text with a shortcut: a menu item or a label


def _shortcut(text: str, marks: str) -> tuple[str, str]:
    """Return the mark of a shortcut with its letter, and the text without the mark; "" if there is none."""
    if not marks or len(text) > _MAX_SHORTCUT:
        return "", text
    for mark in marks:
        if text.count(mark) != 1:
            continue
        place = text.index(mark)
        letter = text[place + 1 : place + 2]
        before = text[place - 1 : place] if place else ""
        word = re.search(r"\w*$", text[:place])
        inside = bool(before) and before.isalnum()
        entity = mark == "&" and re.match(r"&#?\w+;", text[place:])
        if not (letter.isascii() and letter.isalpha()) or entity:
            continue
        # E_xit has a shortcut; file_name, AT&T and R&D have not.
        if inside and not (letter.islower() and word and word[0][:1].isupper()):
            continue
        return mark + letter, text[:place] + text[place + 1 :]
    return "", text
