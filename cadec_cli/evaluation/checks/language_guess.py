"""Which language a text is in, told by its script and by its most common words. Nothing is trained.

Only clear cases are told: a language that is not in the table, or a text of few words, is not known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache

from cadec_cli.text.protected.spans import foreign_letter, scripts_of
from cadec_cli.text.sentences import base_language

# The most common words of languages that share a script with others.
_COMMON = {
    "bg": "и не че на да се е за с това ще съм си как но от ли му като той са",
    "cs": "je se že na to jsem není jako ale jsi co si když by byl tak jak ve už mi",
    "de": "der die das und ist nicht ich sie ein eine mit auf wir den dem zu es im was auch",
    "en": "the and of is you to that was with are this have not what for it we in be they",
    "es": "el los las una que es por con para está pero como muy del en su lo se más",
    "fr": "le la les des est une vous je pas dans que qui nous avec pour ce et il un ne",
    "it": "il gli che è di per non una sono con della questo ma mi del le si lo ha",
    "nl": "de het een en is niet van ik dat je op voor zijn maar we met wat heb te",
    "pl": "nie jest się że na to do jak co jestem ale tak z po ja mnie dla tym był",
    "pt": "os uma que não é com para você do da em está um eu isso mas se por ele",
    "ro": "și nu este că să în pe un cu la ce mai am fi ca din dar asta sunt",
    "ru": "и не что на я это как он был но мы вы ты с они её его так мне от",
    "sv": "och att det är inte en jag som på för vi har du med den av ett till",
    "tr": "bir ve bu için ne değil mi ben çok var da de o ama gibi sen daha",
    "uk": "і не що на я це як він та але є ми ви ти вони її його був від цей",
}
_WORDS = {language: frozenset(words.split()) for language, words in _COMMON.items()}
# Letters of the same script that a language never has.
_STRANGE = {"bg": "ыэёіїє", "ru": "іїєґў", "uk": "ыэёъ"}
# Scripts that tell the language.
_BY_SCRIPT = {
    **{"Greek": "el", "Armenian": "hy", "Hebrew": "he", "Tamil": "ta", "Telugu": "te", "Malayalam": "ml"},
    **{"Sinhala": "si", "Thai": "th", "Georgian": "ka", "Kana": "ja", "Hangul": "ko", "Han": "zh"},
}
_WORD = re.compile(r"[^\W\d_]+")
_MOST = 20_000  # words that are looked at
_FEWEST, _SHARE, _LEAD = 6, 0.08, 1.5


def guess_language(texts: Iterable[str]) -> str:
    """The language of a text of some length; "" if that is not clear."""
    words: list[str] = []
    for text in texts:
        words += (word.lower() for word in _WORD.findall(text))
        if len(words) > _MOST:
            break
    letters = "".join(words)
    for script, language in _BY_SCRIPT.items():
        foreign = _not_of(language)
        if len(letters) >= _FEWEST and len(foreign.findall(letters)) < len(letters) / 2:
            kana = script == "Han" and re.search("[\u3041-\u30fa]", letters)
            return "ja" if kana else language
    ranked = _counts(words).most_common(2)
    if not ranked or ranked[0][1] < max(_FEWEST, _SHARE * len(words)):
        return ""
    first = ranked[0]
    clear = len(ranked) == 1 or first[1] >= _LEAD * ranked[1][1]
    return first[0] if clear else ""


def other_language(words: Iterable[str], language: str, known: frozenset[str]) -> str:
    """The language of a line that has words of another language and none of its own; "" if there is none.

    `known` are common words of the text that the line is in.
    """
    lower = [word.lower() for word in words]
    own = _WORDS.get(base_language(language))
    if own is None or len(lower) < 4:
        return ""
    ranked = [
        (len({word for word in lower if word in others}), other)
        for other, others in _WORDS.items()
        if other != base_language(language) and set(scripts_of(other)) & set(scripts_of(language))
    ]
    count, best = max(ranked)
    strange = set(_STRANGE.get(base_language(language), ""))
    if sum(bool(strange & set(word)) for word in lower) >= 2 and count:
        return best
    if any(word in own or word in known for word in lower):
        return ""
    return best if count >= 3 and 3 * count >= len(set(lower)) else ""


def common_words(language: str) -> frozenset[str]:
    """The most common words of a language; none if they are not known."""
    return _WORDS.get(base_language(language), frozenset())


@cache
def _not_of(language: str) -> re.Pattern[str]:
    found = foreign_letter(language)
    assert found is not None, f"the script of {language} is not known"
    return found


def _counts(words: Iterable[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for word, count in Counter(words).items():
        for language, common in _WORDS.items():
            if word in common:
                found[language] += count
    return found
