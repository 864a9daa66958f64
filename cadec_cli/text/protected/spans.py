"""Spans: text that no translation may change, such as URLs, numbers with units, code and other scripts.

Finds the spans of a sentence, and which of them a translation has lost. Affixes around a sentence and tags
inside it are found elsewhere (`core`, `markup`).

Placeholders are private-use characters that our models learn to copy, whatever they stand for. No text has
them, and Moses tokenises them as words. In training data they replace spans that both sides of a pair have.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from cadec_cli.text.markup import KEYS
from cadec_cli.text.sentences import base_language


@dataclass(frozen=True)
class Span:
    """A part of a sentence that is copied, not translated."""

    start: int
    end: int
    text: str
    kind: str

    @property
    def required_text(self) -> str:
        """The part that a translation must have: of “21st” the number, because its ending is translated."""
        return self.text.rstrip("stndrh") if self.kind == "ordinal" else self.text


_UNITS = (
    r"°\s?[CFK]?|%|‰|[kMGT]i?B(?:it)?(?:/s|ps)?|[kMGT]?bit(?:/s)?|[kMGT]?Hz|[kMG]?W(?:h)?|[kMm]?V|m?Ah?|"
    r"km/h|mph|km²|m²|m³|km|cm|mm|µm|nm|kg|mg|µg|ml|cl|dl|kPa|hPa|Pa|kJ|kcal|dpi|px|pt|ms|ns|fps|dB|lbs?|oz|ft|"
    r"[mgLlshK]"
)
_ENDINGS = (
    "txt|md|rst|pdf|docx?|xlsx?|pptx?|odt|csv|tsv|jsonl?|ya?ml|toml|ini|cfg|conf|log|xml|html?|css|js|ts|py|sh|c|h|"
    "cpp|hpp|rs|java|rb|php|sql|srt|vtt|ass|ssa|zip|gz|xz|tar|7z|rar|exe|dll|deb|rpm|apk|dmg|iso|png|jpe?g|gif|svg|"
    "webp|mp[34]|mkv|avi|mov|wav|flac|ogg|bak|tmp|pem|db"
)
# All in lower or all in upper case: “end.Py” is a full stop with a missing space.
_EXTENSIONS = f"(?:{_ENDINGS}|{_ENDINGS.upper()})"
_MONEY = "[$€£¥₽₴₹¢]"
_NUMBER = r"\d+(?:[.,:/’'\u00a0\u202f]\d+)*"
_NOT_LAST = r"[^\s<>\"«»().,;:!?\]}'’”]"  # a URL does not end in punctuation
_STAGE = r"[-+.]?(?:alpha|beta|rc|dev|post|a|b)\.?\d*"  # of a version
_KEYS = "Ctrl|Control|Alt|Shift|Cmd|Command|Option|Win|Super|Meta|Fn"
# The order matters: of two kinds that begin at the same position, the first wins.
_PATTERNS: dict[str, str] = {
    "code": rf"```[^`]+```|``[^`]+``|`[^`\n]+`|{KEYS}",
    "url": r"<(?:https?|mailto|ftp):[^<>\s]+>|(?:[a-zA-Z][a-zA-Z0-9+.-]*://|mailto:|www\.)"
    rf"(?:[^\s<>\"«»()]|\([^\s<>()]*\))*(?:{_NOT_LAST}|\([^\s<>()]*\))"
    r"|(?<![\w.-])(?:[a-z0-9-]{1,63}\.){1,6}(?:com|org|net|io|dev|edu|gov|ru|de|fr|uk|info|example)\b"
    rf"(?:/(?:[^\s<>\"()]*{_NOT_LAST})?)?(?!@|-\d)|\b(?:doi|urn|arXiv|isbn):[^\s<>]*{_NOT_LAST}",
    "e-mail": r"<[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+>|(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+",
    "token": r"(?<![\w.+/=-])(?=[A-Za-z0-9_+/=.-]{40})(?=[A-Za-z_+/=.-]*\d)"
    r"[A-Za-z0-9_]+(?:[.+/=-]{1,2}[A-Za-z0-9_]+)*[+/=]{0,3}(?![\w+/=-]|\.\.)",
    "placeholder": r"\$?\{\{[^{}\n]*\}\}|\$?\{[^{}\s]*\}|%\(\w+\)[-+#0 ]*\d*(?:\.\d+)?[sdifgxXr]"
    r"|%(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:l{0,2}[dufxXo]|[sceg@])(?![\w])|%%|%[A-Z_]\w*%|\$[A-Za-z_]\w*"
    r"|\[\[[^\[\]\n]+\]\]|\[\^\w+\]|(?<![^\s\"'(]):[a-z_]\w{2,}\b",
    "entity": r"&(?:[a-zA-Z]{2,10}|#\d{1,6}|#x[0-9a-fA-F]{1,5});",
    "path": r"(?<![\w/.])(?:~|\.{1,2})?/[\w.@+-]+(?:/[\w.@+*-]*)*(?<![.,])"
    r"|\b[A-Za-z]:\\(?:[\w.-]{1,60}(?: [\w.-]{1,60}){0,3}\\){0,12}[\w.-]*[\w\\]"
    rf"|(?<![\w./-])(?:[\w.-]{{1,80}}/){{1,12}}[\w.-]{{1,80}}\.{_EXTENSIONS}\b(?!-\d)",
    "file": rf"(?<![\w.@/-])[\w.-]{{1,80}}\.{_EXTENSIONS}\b(?!\.\w|-\d)(?!\()|(?<![\w.])\.env\b",
    "tag word": r"(?<![\w&])[#@][^\W\d_][\w-]*(?:\.[\w-]+)*|(?<![\w&])#\d+\b",
    "flag": r"(?<![\w-])--?[A-Za-z][\w-]*(?:=[\w./-]+)?(?=[\s,.;:!?)\]]|$)",
    "key": rf"\b(?:{_KEYS})(?:[+-](?:{_KEYS}|\w+))+"
    r"|(?<=\w\s)(?:Enter|Tab|Esc|Shift|Ctrl|Alt|Backspace|Caps Lock|Page Up|Page Down)\b",
    "date": r"(?<!\d)(?:\d{4}-\d\d?-\d\d?(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\d\d?[./]\d\d?[./]\d{2,4})(?!\d)",
    "phone": r"(?<![\w.])\+?\(?\d{1,4}\)?(?:[\s.-]?\(\d{1,5}\))?"
    r"(?:[-\u2010-\u2013.\u00a0 ]\d{2,5}){2,5}(?![\w-])|(?<![\w.])\+\d{1,3}(?: \d{2,}){1,4}(?![\w-])"
    r"|(?<![\w.-])\d{3,4}[-\u2010-\u2013]\d{3,5}(?![\w-])",
    "time": r"(?<![\d:])(?![0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}\b)\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?(?![\d:])",
    "ordinal": r"(?<![\w.])\d+(?:st|nd|rd|th|s)\b",
    "version": rf"(?<![\w.])v\d+(?:\.\d+)*(?:{_STAGE})?(?:\.{{2,3}}v\d+(?:\.\d+)*)?(?!\w)"
    rf"|(?<![\w.])\d+(?:\.\d+)*\.x\b|(?<![\w.])\d+(?:\.\d+)+(?:{_STAGE})(?!\w)",
    "arrow": r"(?<!\S)(?:<?[-=]{1,2}>|<[-=]{1,2})(?!\S)",
    "symbol": r"[\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u25ff]+",
    "identifier": r"(?<![\w.-])(?:[A-Z][A-Z0-9_]+=[^\s,;]*[^\s,;.]|[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}"
    r"|[A-Za-z_]\w*(?:\.\w+)+\([^()\s]*\)|[A-Za-z_][\w.]*\(\)|\w*[a-z0-9]_\w+|_\w+|[A-Z0-9]+_[A-Z0-9_]+|"
    r"(?!\d+(?:-[a-z]+)+\b)(?=[\w-]{0,60}\d)(?=[\w-]{0,60}[A-Za-z])[A-Za-z0-9][A-Za-z0-9-]{0,80}[A-Za-z0-9]|[a-z]+[A-Z]\w*)(?![\w])",
    "number": rf"(?<![\w.])(?<!\d,)[-+−±~]?(?:{_MONEY}\s?)?{_NUMBER}(?:[eE][-+]?\d+)?(?:[-–—]{_NUMBER})*"
    rf"(?:\s?(?:{_MONEY}(?!\w)|(?:{_UNITS})(?![\w°])))?",
}
_ALL = re.compile("|".join(f"(?P<k{number}>{pattern})" for number, pattern in enumerate(_PATTERNS.values())))
_KINDS = tuple(_PATTERNS)

# Marks that belong to the letter before them; Python does not count them as letters.
LETTER_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0dff\u0e31-\u0e4e\u0f00-\u109f"
_WORD = re.compile(rf"[^\W\d_](?:[\w{LETTER_MARKS}’'-]*[\w{LETTER_MARKS}])?")
_LATIN = re.compile(r"[A-Za-zÀ-ɏ]")
# Characters between two words of a quotation in another script.
_BETWEEN = " ,«»“”\"'()-–—.!?…:;"


def find_spans(text: str, language: str = "") -> list[Span]:
    """Return the spans of a sentence in order; they do not overlap.

    With a language, words in another script than the language's are spans too.
    """
    found = [
        Span(match.start(), match.end(), match[0], _KINDS[int((match.lastgroup or "k0")[1:])])
        for match in _ALL.finditer(text)
        if match[0].strip()
    ]
    if language:
        found += _foreign(text, language, found)
    return sorted(found, key=lambda span: span.start)


def has_words(text: str, spans: list[Span]) -> bool:
    """Tell whether a text has anything to translate: a letter outside its spans."""
    done = 0
    for span in spans:
        if any(map(str.isalpha, text[done : span.start])):
            return True
        done = span.end
    return any(map(str.isalpha, text[done:]))


def lost_spans(spans: list[Span], translation: str) -> list[str]:
    """Return the spans that a translation lacks, or has less often than the source.

    Long spans are looked for first, and no part of the translation counts for two spans.
    """
    missing = []
    for text, count in sorted(
        Counter(span.required_text for span in spans).items(), key=lambda item: -len(item[0])
    ):
        translation, found = _whole(text).subn("\0", translation, count=count)
        if found < count:
            missing.append(text)
    return missing


_ADDRESS = re.compile(r"\w[./@]\w")


@lru_cache(maxsize=4096)
def _whole(text: str) -> re.Pattern[str]:
    """Return a pattern for a span that is not part of a longer number or word."""
    before = after = ""
    if text[0].isdigit():
        before = r"(?<!\d)(?<!\d[.,:])"
    elif text[0].isascii() and (text[0].isalpha() or text[0] == "_"):
        before = r"(?<![A-Za-z0-9_])"
    if text[-1].isdigit():
        after = r"(?!\d)(?![.,:]\d)"
    elif text[-1].isascii() and (text[-1].isalpha() or text[-1] == "_"):
        after = r"(?![A-Za-z0-9_])"
        if _ADDRESS.search(text):  # models like to continue addresses
            after += r"(?!-\d)"
    return re.compile(before + re.escape(text) + after)


def _foreign(text: str, language: str, taken: list[Span]) -> list[Span]:
    """Return runs of words in another script than the language's, outside the spans that are taken.

    Latin letters never count as foreign: all languages use them for brands and abbreviations.
    """
    foreign = foreign_letter(language)
    if foreign is None or text.isascii():
        return []
    runs: list[tuple[int, int]] = []
    goes_on = False  # whether the last run may be continued
    for word in _WORD.finditer(text):
        inside = any(span.start < word.end() and word.start() < span.end for span in taken)
        letters = [character for character in word[0] if character.isalpha()]
        if inside or not all(foreign.match(one) and not _LATIN.match(one) for one in letters):
            goes_on = False
            continue
        gap = text[runs[-1][1] : word.start()] if runs else ""
        if goes_on and not gap.strip(_BETWEEN):
            runs[-1] = (runs[-1][0], word.end())
        else:
            runs.append(word.span())
        goes_on = True
    return [Span(start, end, text[start:end], "script") for start, end in runs]


# Ranges for a character class of a regular expression.
_SCRIPTS = {
    "Latin": "A-Za-zªºÀ-ÖØ-öø-\u02af\u1e00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff\ufb00-\ufb06\uff21-\uff5a",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Cyrillic": "\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f",
    "Armenian": "\u0530-\u058f\ufb13-\ufb17",
    "Hebrew": "\u0590-\u05ff\ufb1d-\ufb4f",
    "Arabic": "\u0600-\u06ff\u0750-\u077f\u0870-\u08ff\ufb50-\ufdff\ufe70-\ufeff",
    "Devanagari": "\u0900-\u097f\ua8e0-\ua8ff",
    "Bengali": "\u0980-\u09ff",
    "Tamil": "\u0b80-\u0bff",
    "Telugu": "\u0c00-\u0c7f",
    "Malayalam": "\u0d00-\u0d7f",
    "Sinhala": "\u0d80-\u0dff",
    "Thai": "\u0e00-\u0e7f",
    "Georgian": "\u10a0-\u10ff\u1c90-\u1cbf\u2d00-\u2d2f",
    "Han": "\u2e80-\u2fdf\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "Kana": "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f",
    "Hangul": "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff",
}

_LANGUAGES: dict[tuple[str, ...], str] = {
    (
        "Latin",
    ): "af az bs br ca cs cy da de en eo es et eu fi fo fr ga gd gl hr ht hu id is it la lb lt lv ms mt "
    "nb nl nn no oc pl pt ro sk sl sq sv sw tl tr uz vi zu",
    ("Cyrillic",): "be bg ky mk mn ru tg uk",
    ("Latin", "Cyrillic"): "kk sh sr tt",
    ("Greek",): "el",
    ("Armenian",): "hy",
    ("Hebrew",): "he yi",
    ("Arabic",): "ar fa ps ur",
    ("Devanagari",): "hi mr ne sa",
    ("Bengali",): "as bn",
    ("Tamil",): "ta",
    ("Telugu",): "te",
    ("Malayalam",): "ml",
    ("Sinhala",): "si",
    ("Thai",): "th",
    ("Georgian",): "ka",
    ("Han",): "zh ze",
    ("Han", "Kana"): "ja",
    ("Hangul", "Han"): "ko",
}


def scripts_of(language: str) -> tuple[str, ...]:
    """Return the scripts a language is written in; an empty tuple for an unknown language."""
    code = base_language(language)
    return next((scripts for scripts, codes in _LANGUAGES.items() if code in codes.split()), ())


@cache
def foreign_letter(language: str) -> re.Pattern[str] | None:
    """Return a pattern for one character outside a language's scripts; None for an unknown language."""
    scripts = scripts_of(language)
    return re.compile(f"[^{''.join(_SCRIPTS[script] for script in scripts)}]") if scripts else None


PLACEHOLDERS = tuple(map(chr, range(0xE010, 0xE018)))


def with_placeholders(source: str, target: str, languages: tuple[str, str]) -> tuple[str, str] | None:
    """Replace the spans that both sides of a pair have exactly once; None if there are none.

    Which placeholders are used depends on a checksum of the pair, so a model can't predict them.
    """
    sides = (source, target)
    found = [
        Counter(span.text for span in find_spans(text, language))
        for text, language in zip(sides, languages, strict=True)
    ]
    shared = [text for text, count in found[0].items() if count == 1 and found[1][text] == 1]
    if not shared:
        return None
    first = zlib.crc32("\t".join(sides).encode("utf-8", "replace"))
    chosen = {
        text: PLACEHOLDERS[(first + number) % len(PLACEHOLDERS)]
        for number, text in enumerate(shared[: len(PLACEHOLDERS)])
    }
    masked = [_replace_spans(text, language, chosen) for text, language in zip(sides, languages, strict=True)]
    return masked[0], masked[1]


def _replace_spans(text: str, language: str, chosen: Mapping[str, str]) -> str:
    written = ""
    done = 0
    for span in find_spans(text, language):
        written += text[done : span.start] + chosen.get(span.text, span.text)
        done = span.end
    return written + text[done:]
