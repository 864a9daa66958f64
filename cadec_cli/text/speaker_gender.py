"""The gender of who says *I* and of who is called *you*, as verbs and adjectives show it.

Known for Russian («я знала», «ты рада») and French (« je suis allée », « tu es prête »). What a rule can't
tell is neither: « je suis triste », «вы знали», a verb whose subject is another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from cadec_cli.text.sentences import base_language

FEMININE, MASCULINE = "f", "m"
SPEAKER, ADDRESSEE = "I", "you"


@dataclass(frozen=True)
class GenderedWord:
    """A word that agrees with a person: where it is, its gender, and how it is in the other one."""

    start: int
    end: int
    gender: str
    other: str


def person_genders(text: str, language: str, person: str = SPEAKER) -> frozenset[str]:
    """The genders that the words for a person have in a text: none, one, or both."""
    return frozenset(word.gender for word in gendered_words(text, language, person))


def in_gender(text: str, language: str, gender: str, person: str = SPEAKER) -> str:
    """Return a text with all words that agree with a person in a gender."""
    pieces, end = [], 0
    for word in gendered_words(text, language, person):
        pieces += [
            text[end : word.start],
            text[word.start : word.end] if word.gender == gender else word.other,
        ]
        end = word.end
    return "".join(pieces) + text[end:]


@lru_cache(8192)
def gendered_words(text: str, language: str, person: str = SPEAKER) -> tuple[GenderedWord, ...]:
    """The words of a text that agree with a person; none in languages that are not known."""
    found = {"ru": _russian, "fr": _french}.get(base_language(language))
    return tuple(found(text, person)) if found is not None else ()


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _pairs(words: str) -> dict[str, str]:
    """Words and their counterparts, from pairs with a slash."""
    return dict(pair.split("/", 1) for pair in words.split())


# Russian: past tense and short adjectives of the clause that has я or ты

_CLAUSE = re.compile(r"[^.!?…,;:()«»\"„“”—–\n]+")
_RUSSIAN_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
# Another subject in the clause, near enough: then a verb may be its own.
_SUBJECTS = _words("я ты он она оно мы вы они кто что это всё все никто ничто")
_OBJECTS = _words("что это всё все кто никто")  # which may be objects as well
_LINKS = _words("и но а потом не что как когда чтобы так поэтому")
_PREPOSITIONS = _words("с со из до от без для около после против ради вокруг")
_SHORT = _pairs(
    "рад/рада готов/готова должен/должна уверен/уверена сам/сама согласен/согласна счастлив/счастлива"
    " голоден/голодна благодарен/благодарна прав/права виноват/виновата жив/жива болен/больна"
    " занят/занята влюблён/влюблена влюблен/влюблена женат/замужем знаком/знакома один/одна"
    " способен/способна обязан/обязана свободен/свободна удивлён/удивлена удивлен/удивлена"
    " вынужден/вынуждена намерен/намерена пьян/пьяна здоров/здорова спокоен/спокойна"
    " расстроен/расстроена"
)
_LONG = _pairs(
    "уставший/уставшая голодный/голодная первый/первая такой/такая глупый/глупая старый/старая"
    " молодой/молодая больной/больная пьяный/пьяная"
)
_RUSSIAN_ADJECTIVES = {**_SHORT, **_LONG}
_RUSSIAN_MASCULINE_OF = {other: own for own, other in _RUSSIAN_ADJECTIVES.items() if other != "замужем"}
# Words that end as a past tense does and are none.
_NO_PAST = _words(
    "дела тела сила стола угла зла села школа скала пола пила игла смола вокзал зал бал идеал"
    " оригинал сигнал канал журнал материал адмирал генерал капитал финал скандал металл балл стол"
    " угол пол ангел дел тел сил мал мала мила бела цела смела светла кресла масла числа стекла весла"
    " крыла мыла хвала похвала хила мол вал мел"
)
# The masculine of verbs that do not end in -л before the -ла of the feminine.
_WITHOUT_L = _pairs(
    "мог/могла смог/смогла помог/помогла нёс/несла нес/несла принёс/принесла принес/принесла"
    " вёз/везла привёз/привезла привез/привезла лёг/легла лег/легла берёг/берегла сберёг/сберегла"
    " спас/спасла рос/росла вырос/выросла умер/умерла замёрз/замёрзла замерз/замерзла привык/привыкла"
    " исчез/исчезла погиб/погибла ошибся/ошиблась унёс/унесла промок/промокла отвык/отвыкла"
    " запер/заперла стёр/стёрла вытер/вытерла"
)
_WITH_LA = {other: own for own, other in _WITHOUT_L.items() if "ё" in own or other not in ("легла", "несла")}


_PRONOUNS = {SPEAKER: "я", ADDRESSEE: "ты"}


def _russian(text: str, person: str) -> Iterator[GenderedWord]:
    pronoun = _PRONOUNS[person]
    others = _SUBJECTS - _OBJECTS - {pronoun}
    spoken = False  # the pronoun was the subject of the clause before, which goes on after a comma
    for clause in _CLAUSE.finditer(text):
        words = list(_RUSSIAN_WORD.finditer(text, clause.start(), clause.end()))
        lower = [word[0].lower() for word in words]
        spoken = spoken and text[clause.start() - 1] not in ".!?…\n"
        if pronoun in lower:
            spoken = True
            if others.isdisjoint(lower):
                yield from _russian_words(words)
        elif spoken:  # …, и пошла; …, что смогла
            rest = next((place for place, word in enumerate(lower) if word not in _LINKS), len(lower))
            spoken = rest < len(lower) and _russian_word(lower[rest]) is not None
            if spoken and others.isdisjoint(lower[rest:]):
                yield from _russian_words(words[rest:])


def _russian_words(words: list[re.Match[str]]) -> Iterator[GenderedWord]:
    lower = [word[0].lower() for word in words]
    for place, word in enumerate(words):
        found = _russian_word(lower[place])
        if found is not None and not _is_noun(lower[max(0, place - 2) : place]):
            gender, changed = found
            yield GenderedWord(*word.span(), gender, _in_case(changed, word[0]))


def _is_noun(before: list[str]) -> bool:
    """Tell whether a word must be a noun after these: «с начала», «из самого начала»."""
    adjective = len(before) > 1 and before[-1].endswith(("ого", "его")) and before[-2] in _PREPOSITIONS
    return adjective or (bool(before) and before[-1] in _PREPOSITIONS)


def _russian_word(own: str) -> tuple[str, str] | None:
    """The gender of a word that agrees with я or ты, and the other form; None if it does not agree."""
    if own in _RUSSIAN_ADJECTIVES:
        return MASCULINE, _RUSSIAN_ADJECTIVES[own]
    if own in _RUSSIAN_MASCULINE_OF:
        return FEMININE, _RUSSIAN_MASCULINE_OF[own]
    if own in _WITHOUT_L:
        return MASCULINE, _WITHOUT_L[own]
    if own in _WITH_LA:
        return FEMININE, _WITH_LA[own]
    if own in _NO_PAST or len(own) < 3:
        return None
    if own.endswith("шла"):
        return FEMININE, own[:-2] + ("ел" if own.startswith("вы") else "ёл")
    if own.endswith(("шёл", "шел")):
        return MASCULINE, f"{own[:-2]}ла"
    if re.search("[аеёиоуыюя]лся$", own):
        return MASCULINE, f"{own[:-2]}ась"
    if re.search("[аеёиоуыюя]лась$", own):
        return FEMININE, f"{own[:-3]}ся"
    if re.search("[аеёиоуыюя]л$", own):
        return MASCULINE, f"{own}а"
    if re.search("[аеёиоуыюя]ла$", own):
        return FEMININE, own[:-1]
    return None


# French: participles and adjectives after a form of être

_ADVERBS = _words(
    "pas plus très si trop vraiment déjà toujours bien tellement aussi encore jamais presque juste"
    " complètement absolument tout toute un peu assez même seulement enfin donc parfaitement"
)
_FRENCH_I = re.compile(
    r"\b(?:je|j['’])\s*(?:ne\s+|n['’])?(?:me\s+|m['’]\s*|y\s+|en\s+)*"
    r"(?:suis|étais|serai|serais|fus|ai\s+été|avais\s+été|(?:me\s+)?sens|deviens|reste)\b",
    re.IGNORECASE,
)
_FRENCH_YOU = re.compile(
    r"(?:\b(?:tu|t['’])\s*(?:ne\s+|n['’])?(?:te\s+|t['’]\s*|y\s+|en\s+)*"
    r"(?:es|étais|seras|serais|as\s+été|deviens|restes)"
    r"|\b(?:es|étais|seras|serais)-tu"
    r"|\bvous\s+(?:n['’]\s*|ne\s+)?(?:vous\s+|y\s+|en\s+)*(?:êtes|étiez|serez|seriez|avez\s+été)"
    r"|\b(?:êtes|étiez|serez|seriez)-vous)\b",
    re.IGNORECASE,
)
_FRENCH_SUBJECTS = {SPEAKER: _FRENCH_I, ADDRESSEE: _FRENCH_YOU}
_FRENCH_WORD = re.compile(r"\s+([^\W\d_]+)")
# Endings by gender, the first that fits; what no row has agrees with both.
_FRENCH_ENDINGS = (
    ("ée", "é"),
    ("euse", "eux"),
    ("ienne", "ien"),
    ("onne", "on"),
    ("ère", "er"),
    ("ève", "ef"),
    ("ive", "if"),
    ("ète", "et"),
    ("elle", "el"),
    ("eule", "eul"),
    ("aine", "ain"),
    ("ine", "in"),
    ("ente", "ent"),
    ("ante", "ant"),
    ("inte", "int"),
    ("erte", "ert"),
    ("orte", "ort"),
    ("ête", "êt"),
    ("aite", "ait"),
    ("ite", "it"),
    ("ise", "is"),
    ("ue", "u"),
    ("ie", "i"),
    ("ûre", "ûr"),
    ("ande", "and"),
    ("onde", "ond"),
    ("aude", "aud"),
    ("oite", "oit"),
    ("ale", "al"),
    ("ate", "at"),
)
_FRENCH_IRREGULAR = _pairs(
    "folle/fou vieille/vieux jalouse/jaloux grosse/gros belle/beau surprise/surpris nue/nu douce/doux"
    " fausse/faux rousse/roux"
)
_FRENCH_EITHER = _words(
    "triste malade libre riche pauvre jeune timide calme sage coupable capable incapable responsable"
    " ici aussi ainsi parmi en dans avec sans chez pour par sur à au aux celui celle comment souvent"
    " maintenant avant devant pendant cependant quand ne facile difficile fidèle tranquille utile"
    " homme femme et ou mais que qui où un une le la les son mon ton ce cette là là-bas loin hier"
    " demain tard tôt debout plus moins rentre moi toi lui elle comme votre notre leur sympathique"
    " célèbre de du des bientôt vite ensuite tout toute depuis puis mieux"
)


def _french(text: str, person: str) -> Iterator[GenderedWord]:
    for subject in _FRENCH_SUBJECTS[person].finditer(text):
        end = subject.end()
        while (word := _FRENCH_WORD.match(text, end)) is not None and word[1].lower() in _ADVERBS:
            end = word.end()
        while word is not None:
            found = _french_word(word[1].lower())
            if found is None:
                break
            gender, other = found
            yield GenderedWord(*word.span(1), gender, _in_case(other, word[1]))
            # “je suis contente et fière”
            following = re.compile(r"(?:,|\s+et|\s+ou)(?=\s)").match(text, word.end())
            word = _FRENCH_WORD.match(text, following.end()) if following else None


def _french_word(own: str) -> tuple[str, str] | None:
    if own in _FRENCH_EITHER or len(own) < 3 or own.endswith("ment"):
        return None
    for feminine, masculine in _FRENCH_IRREGULAR.items():
        if own == feminine:
            return FEMININE, masculine
        if own == masculine:
            return MASCULINE, feminine
    for feminine, masculine in _FRENCH_ENDINGS:
        if own.endswith(feminine):
            return FEMININE, own[: len(own) - len(feminine)] + masculine
    for feminine, masculine in _FRENCH_ENDINGS:
        if own.endswith(masculine):
            return MASCULINE, own[: len(own) - len(masculine)] + feminine
    return None


def _in_case(word: str, like: str) -> str:
    return word[:1].upper() + word[1:] if like[:1].isupper() else word
