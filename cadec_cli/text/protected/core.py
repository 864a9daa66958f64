"""The core of a sentence: the words that are translated, without the text that must stay unchanged.

    - JOHN: He is <i>really</i> nice.    →   “- JOHN: ”  He is really nice.

A sentence without a word to translate has an empty core. Text in capitals throughout, such as sounds and
shouting, is translated in lower case.

Affixes are dashes, bullets, brackets, names of speakers and music notes around the words of a sentence. Only
in subtitles does a name before a colon say who is speaking, does a description in brackets come before what
is said, and does a `#` mean music; callers say whether a sentence is from subtitles. Ellipses and quotation
marks are not affixes: models know how to translate them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from cadec_cli.text.glossary.entries import Glossary, Mention
from cadec_cli.text.manner import Manner
from cadec_cli.text.markup import Tag, take_out_tags
from cadec_cli.text.protected.spans import Span, find_spans, has_words
from cadec_cli.text.sentences import base_language, visible_span

_NAME_WORDS = 3
_NAME_WITHIN = 400  # characters of a sentence
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


def name_in(text: str) -> str:
    """Return the name before a colon among the affixes that a sentence has in subtitles; "" if none."""
    text = text[:_NAME_WITHIN]
    start, end = visible_span(text, 0, len(text))
    while start < end:
        before, after = _outermost(text[start:end], True)
        if not before and not after:
            break
        if before and before == speaker_name(text[start:end]):
            return text[start : start + before].strip().rstrip(":").rstrip()
        start, end = visible_span(text, start + before, end - after)
    return ""


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


_DESCRIBED = re.compile(r"(.{0,60}?)(\([^()]{1,60}\)|\[[^][]{1,60}\])\s+(?=\S)")


@dataclass(frozen=True)
class Core:
    """A sentence taken apart: before + text (with its tags, and in its case) + after is the sentence.

    `spans` are those parts of the text that a translation has to have as they are; `mentions` are the terms
    of a glossary in the text, and `names` the names in it whose renderings the document tells. `manner` is
    how it is to be said, if a user asks for that.
    """

    before: str
    text: str
    after: str
    tags: tuple[Tag, ...] = ()
    spans: tuple[Span, ...] = ()
    capitals: bool = False
    mentions: tuple[Mention, ...] = field(default=(), repr=False)
    names: tuple[Mention, ...] = field(default=(), repr=False)
    manner: Manner | None = None

    @classmethod
    def whole(cls, text: str) -> Core:
        """Return a core of which nothing is protected."""
        return cls("", text, "")

    def with_mentions(self, glossary: Glossary | None) -> Core:
        """Return the core with the terms of a glossary; those that are kept as they are become spans."""
        if glossary is None or not self.text:
            return self
        mentions = glossary.mentions(self.text, self.spans, any_case=self.capitals)
        kept = (mention.span for mention in mentions if mention.entry.keep)
        spans = sorted([*self.spans, *kept], key=lambda span: span.start)
        return replace(self, spans=tuple(spans), mentions=mentions)

    def with_manner(self, manner: Manner | None) -> Core:
        """Return the core with the manner that is asked for, unless it has nothing to say."""
        return replace(self, manner=manner) if manner is not None and self.text else self

    def with_names(self, names: Glossary | None) -> Core:
        """Return the core with the names that were found in the document, outside spans and other terms."""
        if names is None or not self.text or self.capitals:
            return self
        taken = [*self.spans, *(mention.span for mention in self.mentions)]
        return replace(self, names=names.mentions(self.text, taken))

    def case(self, translation: str) -> str:
        """Return a translation in the case of the text; a sound gets no full stop that it lacks."""
        if self.before.endswith(("[", "(")) and self.text[-1:].isalnum():
            translation = translation.removesuffix(".")
        return translation.upper() if self.capitals else translation


def parts_of(sentence: str, *, speakers: bool = False) -> list[str]:
    """Return the parts of a sentence that are translated separately; spaces join them to the sentence.

    The cells of a table row are parts, and so is what each of several speakers says in one line: “- Ready?
    - Almost.” Models often leave one of them out. With `speakers` (in subtitles), descriptions in brackets
    before what is said are parts, too: “[sighs] Hello.” has two.
    """
    if sentence.startswith("|") and sentence.count("|") > 2:
        return re.split(r"\s(?=\|)", sentence)
    parts = []
    for said in _turns(sentence):
        while speakers and (found := _after_description(said)):
            parts.append(said[: found - 1])
            said = said[found:]
        parts.append(said)
    return parts


# The dash of another speaker, after the end of what was said. In a novel, a dash and a small letter lead back
# to the narrator: “— Stop! — he cried.”
_NEXT_SPEAKER = re.compile(r"(?<=[.!?…—\"”»)\]]) (?=[-–—―‐]{1,2} ?[\"“‘«„(\[¿¡♪]*([^\W_]))")


def _turns(sentence: str) -> list[str]:
    """Cut a sentence before the dashes of all speakers but the first."""
    cased = any(map(str.isupper, sentence))  # without capitals, a small letter means nothing
    places = [
        match.start() for match in _NEXT_SPEAKER.finditer(sentence) if not (cased and match[1].islower())
    ]
    starts = [0, *(place + 1 for place in places)]
    turns = [sentence[start:end] for start, end in zip(starts, [*places, len(sentence)], strict=True)]
    return turns if all(map(str.strip, turns)) else [sentence]


def _after_description(sentence: str) -> int:
    """Return where speech begins after a description in brackets; 0 if there is no description."""
    found = _DESCRIBED.match(sentence)
    if (
        found
        and affixes(found[1] + "x", speakers=True).inner == "x"
        and sum(map(str.isalpha, found[2])) > 2
        and sentence[found.end() - 1] == " "
        and not sentence[found.end() - 2].isspace()
    ):
        return found.end()
    return 0


def core_of(sentence: str, language: str = "", *, speakers: bool = False) -> Core:
    """Take a sentence of a language apart; `speakers` says that it comes from subtitles."""
    return _core(affixes(sentence, speakers=speakers), language)


def core_between(sentence: str, before: str = "", after: str = "", language: str = "") -> Core:
    """Take a sentence apart whose affixes are known; affixes that the sentence does not have are ignored."""
    end = len(sentence) - len(after)
    if len(before) > end or not (sentence.startswith(before) and sentence.endswith(after)):
        return _core(Affixes("", sentence, ""), language)
    return _core(Affixes(before, sentence[len(before) : end], after), language)


def _core(around: Affixes, language: str) -> Core:
    before, after = around.before, around.after
    plain, tags = take_out_tags(around.inner)
    spans = find_spans(plain, language)
    if not has_words(plain, spans):
        return Core(before + around.inner + after, "", "")
    # Models know lower case better.
    capitals = plain.isupper() and _is_shouted(plain, described=bool(before))
    text = _sentence_case(plain, language) if capitals else plain
    # Some letters become two in another case; then the positions of tags would be wrong.
    if not capitals or len(text) != len(plain):
        return Core(before, plain, after, tags, tuple(spans))
    return Core(before, text, after, tags, tuple(find_spans(text, language)), capitals=True)


_WORD = re.compile(r"[^\W\d_]+")
_VOWELS = frozenset("AEIOUYÀÂÄÁÃÅÆÉÈÊËÍÎÏÓÔÖÕØÚÛÜÝАЕЁИІОУЫЭЮЯЇЄΑΕΗΙΟΥΩ")
_ABBREVIATIONS = re.compile(r"\W*[^\W\d_]{2,4}(?:\s?[,;/&+]\s?[^\W\d_]{2,4})+\W*")  # NASA, ESA
_FIRST_LETTER = re.compile(r"(?:^|(?<=[.!?…])[)\]]*\s)[\W\d_]*([^\W\d_])")
_ENGLISH_I = re.compile(r"(?<![\w'’])i(?=['’](?:m|ll|ve|d)\b|(?![\w'’.]))")


def _is_shouted(text: str, *, described: bool) -> bool:
    """Tell whether a text in capitals is words, such as a heading or shouting, and not an abbreviation.

    `described` says that it stands in brackets or after a name or a dash.
    """
    words = _WORD.findall(text)
    letters = sum(map(len, words))
    if described and letters > 3:
        return True
    if len(words) > 1:
        return letters > 4 and max(map(len, words)) > 2 and not _ABBREVIATIONS.fullmatch(text)
    spoken = len(words) == 1 and not _VOWELS.isdisjoint(words[0])
    return spoken and (letters > 4 or (letters > 1 and text.rstrip("\"'”’»)").endswith(("!", "?"))))


def _sentence_case(text: str, language: str) -> str:
    """Return a text in lower case, but for the first letters of its sentences."""
    lower = text.lower()
    if base_language(language) == "en":
        lower = _ENGLISH_I.sub("I", lower)
    return _FIRST_LETTER.sub(lambda found: found[0][:-1] + found[1].upper(), lower)
