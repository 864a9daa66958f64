"""Where one sentence ends and the next begins.

The sentencex library proposes the boundaries; the rules here take back the ones it gets wrong (dialogue,
abbreviations, list numbers) and add a few it misses. Knows nothing of lines, files or documents: it returns
positions in the string it was given, so that callers can restore the text between sentences.
"""

import re
from itertools import pairwise

Span = tuple[int, int]

# Control characters, a BOM or a zero-width space carry no text: a line of only these counts as blank.
_INVISIBLE = "".join(map(chr, [*range(0x21), *range(0x7F, 0xA1), 0x1680, *range(0x2000, 0x200C)])) + (
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)

# The library panics (in Rust, with a backtrace on stderr) when a wide space stands before a full stop, and
# can't be given a lone surrogate. Each is replaced by one character, so that positions stay the same.
_UNSAFE = re.compile(r"[^\S \n\r]|[\ud800-\udfff]")

_BULLETS = frozenset("•‣▪●◦*")
_FIRST_WORD = re.compile(r"(?:</?[a-zA-Z][^<>]*>|\W)*")  # after tags
_CLOSING_TAGS = re.compile(r"(?:</[a-zA-Z][^<>]*>)+")
_LIST_MARKER = re.compile(r"\(?(?:\d{1,3}|[A-ZА-ЯЁ]|[IVX]{1,5})[.)]$")
_LETTERED_ITEM = re.compile(r"\W*[a-zа-яё]\)")

# “「はい。」と言った”: words that continue a sentence after a quotation with its own full stop.
_QUOTED_JA = re.compile(r"[」』]\s*$")
_QUOTING_JA = ("と", "って")

_INITIAL = re.compile(r"(?:^|[\s.])[^\W\d_a-z]\.$")

# Always followed by the rest of the sentence.
_OPEN_ABBREVIATIONS = {
    "en": "mr mrs ms mx dr prof gen sen rep gov capt cpt lt col sgt rev hon messrs mt ft e.g i.e cf viz vs",
    "ru": "т.е т.к т.н им доц проф акад тов св пл оз просп ул пер наб г-н г-жа гр напр ср",
}
# Followed by the rest of the sentence if a number comes next.
_NUMBER_ABBREVIATIONS = {
    "en": "fig figs p pp no nos vol ch sec eq art approx ca tel ext"
    " jan feb mar apr jun jul aug sep sept oct nov dec",
    "ru": "рис гл стр с п пп ст т табл разд см тел д кв корп ч кн вып ок"
    " янв февр фев мар апр авг сент сен окт нояб ноя дек",
}

# Words that open a sentence but never a name, so a full stop before them ends the sentence for certain.
_RU_OPENERS = (
    "Он|Она|Оно|Они|Это|Этот|Эта|Эти|Тот|Та|Те|Мы|Вы|Я|Ты|В|Во|На|Но|А|И|К|С|По|За|Из|От|До|При|Для|Тогда|Потом|"
    "Затем|После|Когда|Если|Однако|Так|Там|Тут|Здесь|Все|Всё|Его|Её|Их|Как|Что|Кто|Где"
)
_MISSED = {
    # “и т. д.”, “и т. п.” before a capital; “в 1999 г.”, “в XIX в.” before a word that is not a name
    "ru": re.compile(
        r"\bи т\. ?[дп]\.\s+(?=[«„\"(—–-]*\s*[А-ЯЁ])"
        rf"|(?<=[\dIVX]\s)(?:гг?|вв?)\.\s+(?=(?:{_RU_OPENERS})\b)"
    ),
}
# “(I know.) Fine.”: a sentence in brackets is a separate sentence.
_BRACKETED = re.compile(r"\s*\([^()]*[.!?…]\)\s+(?=[\W_]*[^\W\d_])")


def _endings(abbreviations: str) -> re.Pattern[str]:
    # “т.е” stands for “т. е.” as well
    words = "|".join(re.escape(word).replace(r"\.", r"\.\s?") for word in abbreviations.split())
    return re.compile(rf"(?:^|[\s(\[«„“\"'—–])(?:{words})\.\s*$", re.IGNORECASE)


_OPEN = {code: _endings(words) for code, words in _OPEN_ABBREVIATIONS.items()}
_BEFORE_NUMBER = {code: _endings(words) for code, words in _NUMBER_ABBREVIATIONS.items()}


def split_sentences(text: str, language: str) -> list[str]:
    """Return the sentences of a paragraph, without the white space between them."""
    return [text[start:end] for start, end in sentence_spans(text, language)]


def sentence_spans(text: str, language: str) -> list[Span]:
    """Return where each sentence of a paragraph starts and ends, white space left outside.

    `language` is a code such as `ru` or `ru-RU`; an unknown language gets rules that fit most.
    """
    code = base_language(language)
    boundaries = _propose_boundaries(text, code)
    if len(boundaries) > 1:
        boundaries = _join_segments(text, boundaries, code)
    if "</" in text:
        boundaries = [_after_closing_tags(text, end) for end in boundaries]
    spans = []
    start = 0
    for end in boundaries:
        span = visible_span(text, start, end)
        if span[0] < span[1]:
            spans.append(span)
        start = end
    return spans


def _after_closing_tags(text: str, end: int) -> int:
    """Return the end of a sentence, with the tags that close what was opened in it."""
    closing = _CLOSING_TAGS.match(text, end)
    return closing.end() if closing else end


def base_language(language: str) -> str:
    """Return `pt` for `pt-BR`, `pt_BR` or `PT`."""
    return re.split(r"[-_]", language.strip().lower(), maxsplit=1)[0]


def stays_open(text: str, language: str) -> bool:
    """Tell whether a text ends in an abbreviation or an initial that the rest of the sentence follows."""
    code = base_language(language)
    tail = text[-16:]
    return bool((code in _OPEN and _OPEN[code].search(tail)) or _INITIAL.search(tail))


def visible_span(text: str, start: int, end: int) -> Span:
    """Shrink a span so that no white space or control character is at its ends."""
    part = text[start:end]
    end = start + len(part.rstrip(_INVISIBLE))
    return min(end, start + len(part) - len(part.lstrip(_INVISIBLE))), end


def _propose_boundaries(text: str, code: str) -> list[int]:
    """Return the ends of the library's segments, and of those it should have made."""
    ends: list[int] = []
    position = 0
    for piece in _segments(text, code):
        stop = position + len(piece)
        missed: list[int] = []
        if code in _MISSED and ". " in piece[:-2]:
            missed += [match.end() for match in _MISSED[code].finditer(text, position, stop)]
        if ")" in piece and (bracketed := _BRACKETED.match(text, position, stop)) and bracketed.end() < stop:
            missed.append(bracketed.end())
        ends += sorted(missed)
        ends.append(stop)
        position = stop
    return ends


def _segments(text: str, code: str) -> list[str]:
    from sentencex import segment

    safe = _UNSAFE.sub(lambda match: " " if match[0].isspace() else "\ufffd", text)
    try:
        segments: list[str] = segment(code, safe)
    except BaseException as error:  # a panic in Rust is not an Exception
        if type(error).__name__ != "PanicException":
            raise
        return [text]
    return segments if sum(map(len, segments)) == len(text) else [text]


def _join_segments(text: str, boundaries: list[int], code: str) -> list[int]:
    """Leave out the boundaries that fall inside a sentence."""
    kept: list[int] = []
    cased = text != text.lower()  # in a text without capitals, lower case means nothing
    numbered = bool(_LIST_MARKER.match(text[: boundaries[0]].strip()))
    start = 0
    for boundary, following in pairwise(boundaries):
        # the end of the preceding text is enough, and keeps a long paragraph from taking quadratic time
        tail = text[max(start, boundary - 16) : boundary]
        marker = numbered and len(tail) < 8 and _LIST_MARKER.match(tail.strip())
        if not (marker or _continues(tail, text[boundary:following], code, cased)):
            kept.append(boundary)
            start = boundary
    kept.append(boundaries[-1])
    return kept


def _continues(tail: str, after: str, code: str, cased: bool) -> bool:
    """Tell whether `after` belongs to the sentence that ends in `tail`."""
    skipped = _FIRST_WORD.match(after)
    first = skipped.end() if skipped else 0
    if first == len(after):
        return True  # punctuation alone is not a sentence
    letter = after[first]
    if cased and letter.islower():
        # a bulleted or lettered list item, or a name such as iPhone, may begin a sentence; nothing else may
        camel = after[first + 1 : first + 2].isupper()
        listed = not _BULLETS.isdisjoint(after[:first]) or _LETTERED_ITEM.match(after)
        return not (camel or listed)
    if code in _OPEN and _OPEN[code].search(tail):
        return True
    if letter.isdigit() and code in _BEFORE_NUMBER:
        return bool(_BEFORE_NUMBER[code].search(tail))
    return code == "ja" and after.startswith(_QUOTING_JA) and bool(_QUOTED_JA.search(tail))
