"""Affixes: dashes, bullets, brackets, names of speakers and music notes around the words of a sentence.

They are kept unchanged. Only in subtitles does a name before a colon say who is speaking, does a description
in brackets come before what is said, and does a `#` mean music; callers say whether a sentence is from
subtitles. Ellipses and quotation marks are not affixes: models know how to translate them.
"""

import re
from dataclasses import dataclass

from cadec_cli.text.sentences import visible_span

_NAME_WORDS = 3
_NAME = re.compile(r"([^\s:][^:\n]{0,58}?)\s?:(?=\s|$)\s*")
_ASIDE = re.compile(r"\s*(?:\([^()]*\)|\[[^][]*\])$")  # JOHN (quietly):
_NAME_WORD = re.compile(r"[^\W\d_](?:[^\W_]|['’.-])*$|#?\d{1,3}$|&$")
_SPEECH = re.compile(r"[\"'“”‘’«„(\[¿¡♪♫—–…. -]*([^\W_])")
# First words before a colon that are not names.
_NOBODY_WORDS = {
    "en": "note notes warning caution attention important tip hint example examples question answer"
    " remember listen look see chapter part episode season volume book section step act scene day week"
    " rule lesson title ps update yes no well okay ok so and but or because first second third finally"
    " conclusion result reason problem fact point plan option verdict score time date place address"
    " email phone subject re from to cc today tomorrow tonight the a an my your his her our their its"
    " this that these those here there what why how when where who which it he she we they you i if"
    " then now also one two three figure table source sources summary contents",
    "ru": "внимание примечание глава часть серия сезон шаг вопрос ответ пример итог вывод это он она они мы"
    " вы ты но и",
}
_NOBODY = frozenset(word for words in _NOBODY_WORDS.values() for word in words.split())

_LEADING = (
    re.compile(r"[-–—―‐*+] \[[ xX]\]\s+"),  # a task: - [ ]
    re.compile(r"#{1,6}\s+"),
    re.compile(r"\[\^[^\]\s]+\]:\s*"),  # a footnote
    re.compile(r"[-–—―‐]{1,2}\s+"),
    re.compile(r"[*+]\s+"),
    re.compile(r"[•‣▪●◦○■□◆·∙]\s*"),
    re.compile(r"(?:>\s*)+(?![=\d])"),
    re.compile(r"\(?\d{1,3}[.)]\s+"),
    re.compile(r"\|\s*"),
    re.compile(r"[♪♫♬♩]+\s*"),
)
_LEADING_IN_SUBTITLES = (
    re.compile(r"[-–—―‐]{1,2}(?=[^\W\d_a-z])"),  # -h is a flag
    re.compile(r"(?:\([^()]*\)|\[[^][]*\])\s+"),
)
_TRAILING = (re.compile(r"\s*[♪♫♬♩]+$"), re.compile(r"\s*\|$"))
_TRAILING_IN_SUBTITLES = (re.compile(r"\s+#{1,3}$"),)
_AROUND = (
    re.compile(r"([(\[【（])[^][()【】（）]*([)\]】）])$"),
    re.compile(r"(\*\*|__|~~)(?=\S)(?:(?![*_~]).)*(?<=\S)(\1)$", re.DOTALL),
    re.compile(r"([*_])(?=[^\s*_])[^*_]*(?<=\S)(\1)$"),
)
_MATCHING = {"(": ")", "[": "]", "【": "】", "（": "）"}


@dataclass(frozen=True)
class Affixes:
    """A sentence in three parts that make it up exactly; only `inner` is for translating."""

    before: str
    inner: str
    after: str


def affixes(text: str, *, speakers: bool = False) -> Affixes:
    """Split a sentence into its affixes and its words; `speakers` says that it comes from subtitles."""
    start, end = visible_span(text, 0, len(text))
    while start < end:
        before, after = _outermost(text[start:end], speakers)
        if not before and not after:
            break
        start, end = visible_span(text, start + before, end - after)
    return Affixes(text[:start], text[start:end], text[end:])


def speaker_name(text: str) -> int:
    """Return the length of a speaker's name with its colon and the space after it; 0 if there is none."""
    found = _NAME.match(text)
    if not found:
        return 0
    words = _ASIDE.sub("", found[1]).split()
    if not 1 <= len([word for word in words if word != "&"]) <= _NAME_WORDS:
        return 0
    letters = [letter for word in words for letter in word if letter.isalpha()]
    if len(letters) < 2 or not words[0][0].isalpha() or not all(map(_NAME_WORD.match, words)):
        return 0
    if words[0].strip(".").lower() in _NOBODY:
        return 0
    if all(letter.isupper() or not letter.islower() for letter in letters):
        return found.end() if any(letter.isupper() for letter in letters) else 0
    # A name that is not in capitals counts only if a sentence begins after it.
    named = all(word[0].isupper() or not word[0].isalpha() for word in words)
    speech = _SPEECH.match(text, found.end())
    return found.end() if named and speech and not speech[1].islower() else 0


def _outermost(text: str, speakers: bool) -> tuple[int, int]:
    """Return the lengths of the outermost affix at the beginning and at the end of a text."""
    for around in _AROUND:
        pair = around.match(text)
        if pair and _MATCHING.get(pair[1], pair[1]) == pair[2]:
            return len(pair[1]), len(pair[2])
    for leading in (*_LEADING, *(_LEADING_IN_SUBTITLES if speakers else ())):
        if found := leading.match(text):
            return found.end(), 0
    if speakers and (name := speaker_name(text)):
        return name, 0
    for trailing in (*_TRAILING, *(_TRAILING_IN_SUBTITLES if speakers else ())):
        if found := trailing.search(text):
            return 0, len(text) - found.start()
    return 0, 0
