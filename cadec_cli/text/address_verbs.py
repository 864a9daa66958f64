"""Verbs that show how a text addresses its reader, and what they become in the other form of address.

Pronouns (`text.address`) don't tell in imperatives, nor where a language leaves the pronoun out: «Не уходи»,
«Знаешь, …», « Venez. ». Known for Russian, Ukrainian and French:

- endings that nothing but such a verb has, or hardly anything: -ешь, -ете, -ez;
- the imperatives that are most common;
- of any other imperative, its counterpart: «уходи» is one if a text beside it says «уходите».

What is not sure counts as neither form. `other_forms` proposes imperatives of the other form; a translation
model has to say which of these are words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from cadec_cli.text.sentences import base_language

FAMILIAR, POLITE = "T", "V"

_WORD = re.compile(r"[^\W\d_]+")

# Nouns with the endings of verbs that need no preposition before them, and other words with such endings.
_NO_VERBS = {
    "ru": (
        "лишь ишь вишь брешь плешь тете тёте газете планете ракете котлете конфете монете карете"
        " диете анкете смете комете свете рите никите лолите маргарите элите свите орбите защите сюите"
    ),
    "uk": "лиш книш газеті",
    "fr": "chez assez nez rez lez",
}
_SLAVIC_FAMILIAR = {
    "ru": re.compile(r"(?:[еёи]|да)шь(?:ся)?$"),
    "uk": re.compile(r"[єеїи]ш(?:ся)?$"),
}
_SLAVIC_POLITE = {
    "ru": re.compile(r"[^\W\d_]{2}(?:[йиеёь]те(сь)?)$"),
    "uk": re.compile(r"[^\W\d_]{2}(?:[йиеєїь]те(ся|сь)?)$"),
}
# After one of these, or one word later, what looks like a polite verb is a noun: «в этом кабинете».
_PREPOSITIONS = {"ru": "в во на о об обо при по", "uk": "в у на о об при по"}
_SLAVIC_IMPERATIVES = {
    "ru": (
        "дай иди скажи покажи подожди послушай посмотри смотри слушай прости извини позвони помоги"
        " возьми уходи приходи заходи садись сядь встань стой беги держи будь забудь поверь бойся"
        " беспокойся волнуйся успокойся плачь открой закрой оставь перестань прекрати думай подумай"
        " говори молчи расскажи объясни останься вернись знай принеси отдай отпусти давай входи пойми"
        " помни спроси ответь поезжай пусти попробуй представь убирайся проходи выходи поторопись"
        " осторожничай жди убей следуй прими сдайся собери собирай веди держись поверни избавь руби"
        " помолчи пройди пойди засунь предложи прочитай читай пиши напиши бери верни спаси защити"
        " помилуй стань постой купи передай найди ищи сделай делай посиди сиди отойди подойди отвали"
        " подними опусти смирись надейся постарайся старайся поздравляй начни закончи включи выключи"
        " проверь выбери реши спи усни пей кушай"
    ),
    "uk": (
        "дай іди йди скажи покажи зачекай послухай подивись дивись слухай пробач вибач зателефонуй"
        " подзвони допоможи візьми приходь сідай сядь встань стій біжи тримай будь забудь повір бійся"
        " хвилюйся заспокойся плач відкрий закрий залиш перестань думай подумай говори мовчи розкажи"
        " поясни повернись знай принеси віддай відпусти давай зрозумій"
    ),
}
# Endings of infinitives, of other forms of verbs, and of adjectives; then words that end as imperatives do.
_NO_ENDING = re.compile(r"(?:[тчш]ь|шься|ться|[аоую]сь|лись|ли|[ыи]й|ым[иі]|ами|ями)$")
_NO_IMPERATIVES = {
    "ru": (
        "если или они мои твои свои при дети люди чай мой твой свой какой такой который этой той"
        " одной самой другой ни ли и й очень опять здесь теперь есть быть жизнь день ночь дочь мать"
        " часть пять шесть семь восемь девять десять кровь любовь смерть дверь помощь речь весь мной"
        " тобой собой ей ней чей эй пожалуй домой три пусть хоть ведь ими ними всеми нами вами эти"
        " почти твоей моей своей вашей нашей сейчас случай край герой строй"
    ),
    "uk": (
        "якщо або вони мої твої свої при діти люди мій твій свій який такий цей той ні чи і й тут"
        " тепер бути життя день ніч дочка мати частина хоч ними нами вами ці майже"
    ),
}

# A familiar imperative, a slash, the polite one.
_FRENCH_PAIRS = (
    "viens/venez reviens/revenez va/allez vas/allez dis/dites fais/faites prends/prenez"
    " apprends/apprenez comprends/comprenez mets/mettez sois/soyez aie/ayez sache/sachez pars/partez"
    " sors/sortez dors/dormez tiens/tenez suis/suivez écris/écrivez lis/lisez bois/buvez crois/croyez"
    " vois/voyez assieds/asseyez cours/courez appelle/appelez rappelle/rappelez jette/jetez"
    " lève/levez amène/amenez emmène/emmenez essaie/essayez envoie/envoyez paie/payez finis/finissez"
    " choisis/choisissez réfléchis/réfléchissez attends/attendez réponds/répondez rends/rendez"
    " descends/descendez entends/entendez achète/achetez promets/promettez permets/permettez"
    " souviens/souvenez ouvre/ouvrez offre/offrez"
)
_FRENCH_IRREGULAR = {
    familiar: polite for familiar, _, polite in (pair.partition("/") for pair in _FRENCH_PAIRS.split())
}
_FRENCH_REGULAR = (
    "regarde écoute montre donne laisse arrête parle reste oublie cherche trouve pense imagine"
    " demande raconte excuse pardonne aide ferme pose rentre monte garde touche bouge mange joue"
    " continue commence quitte apporte téléphone explique tire pousse saute coupe lâche jure tourne"
    " embrasse signe calme dépêche approche avance recule ramène prépare habille amuse repose"
)
_FRENCH_IMPERATIVES = frozenset((*_FRENCH_IRREGULAR, *_FRENCH_REGULAR.split()))
_FRENCH_FAMILIAR_OF = {
    polite: familiar for familiar, polite in _FRENCH_IRREGULAR.items() if familiar != "vas"
}
# What ends a clause, and words before the verb that begins the next one.
_FRENCH_ENDS = re.compile(r"[.!?…,;:«»\"“”()—–]|(?:^|\s)-\s")
_FRENCH_LINKS = {"fr": "et mais alors puis donc maintenant"}
_FRENCH_NEGATIONS = {"fr": "ne n"}


# Endings of tokens that a translation in the other form of address seldom needs.
_ENDINGS = {
    ("ru", FAMILIAR): ("ешь", "ёшь", "ишь", "шься"),
    ("ru", POLITE): ("ете", "ёте", "ите", "йте", "етесь", "итесь"),
    ("uk", FAMILIAR): ("єш", "еш", "иш", "їш", "шся"),
    ("uk", POLITE): ("єте", "ете", "ите", "їте", "йте"),
    ("fr", POLITE): ("ez",),
}


def verb_endings(form: str, language: str) -> tuple[str, ...]:
    """Endings of the verbs of a form of address; none in languages whose verbs are not known."""
    return _ENDINGS.get((base_language(language), form), ())


@dataclass(frozen=True)
class VerbForms:
    """What the verbs of a text show: forms of address, and the imperatives that only a counterpart explains.

    `familiar` and `polite` are such words in lower case; `forms` what is sure without any other text.
    """

    forms: frozenset[str]
    words: frozenset[str]
    counterparts: frozenset[str]  # familiar imperatives that its polite verbs belong to


@lru_cache(8192)
def verb_forms(text: str, language: str) -> VerbForms:
    """Return what the verbs of a text show; nothing in languages whose verbs are not known."""
    language = base_language(language)
    if language in _SLAVIC_POLITE:
        return _slavic(text, language)
    return _french(text) if language == "fr" else VerbForms(frozenset(), frozenset(), frozenset())


def _slavic(text: str, language: str) -> VerbForms:
    words = [match[0].lower() for match in _WORD.finditer(text)]
    no_verbs, imperatives = _set(_NO_VERBS, language), _set(_SLAVIC_IMPERATIVES, language)
    found: set[str] = set()
    counterparts: set[str] = set()
    for place, word in enumerate(words):
        if word in imperatives or (_SLAVIC_FAMILIAR[language].search(word) and word not in no_verbs):
            found.add(FAMILIAR)
        polite = _SLAVIC_POLITE[language].search(word)
        after = _set(_PREPOSITIONS, language).intersection(words[max(0, place - 2) : place])
        if polite and word not in no_verbs and (polite[1] or not after):
            found.add(POLITE)
            counterparts.update(_slavic_familiar(word))
    return VerbForms(frozenset(found), frozenset(words), frozenset(counterparts))


def _french(text: str) -> VerbForms:
    begins = frozenset(match[0].lower() for match in _clauses(text))
    no_verbs = _set(_NO_VERBS, "fr")
    found: set[str] = set()
    counterparts: set[str] = set()
    if begins & _FRENCH_IMPERATIVES:
        found.add(FAMILIAR)
    for match in _WORD.finditer(text):
        word = match[0].lower()
        name = match[0][0].isupper() and word not in begins
        if word == "êtes" or (word.endswith("ez") and word not in no_verbs and not name):
            found.add(POLITE)
        if word in begins and word in ("dites", "faites"):
            found.add(POLITE)
        if word in begins and word.endswith(("ez", "tes")):
            counterparts.update(_french_familiar(word))
    return VerbForms(frozenset(found), begins, frozenset(counterparts))


@dataclass(frozen=True)
class Proposal:
    """Another word at characters `start` to `end` of a text; `known` if the one there is an imperative."""

    start: int
    end: int
    word: str
    known: bool


def other_forms(text: str, language: str, wanted: str) -> Iterator[Proposal]:
    """Propose what words of a text would be in the wanted form of address if they were imperatives.

    Many proposals are no words at all: those for words that are no imperatives.
    """
    language = base_language(language)
    if language in _SLAVIC_POLITE:
        matches: Iterable[re.Match[str]] = _WORD.finditer(text)
        change = _slavic_polite if wanted == POLITE else _slavic_familiar
        left_out = _set(_NO_IMPERATIVES, language) | _set(_NO_VERBS, language)
        imperatives = _set(_SLAVIC_IMPERATIVES, language)
    elif language == "fr":
        matches = _clauses(text)
        change = _french_polite if wanted == POLITE else _french_familiar
        left_out = _set(_NO_VERBS, language)
        imperatives = _FRENCH_IMPERATIVES
    else:
        return
    for match in matches:
        word = match[0].lower()
        known = word in imperatives
        if known or not (word in left_out or _NO_ENDING.search(word)):
            for other in change(word):
                # a polite imperative is known by its familiar one
                sure = known or (wanted == FAMILIAR and other in imperatives)
                shown = other[:1].upper() + other[1:] if match[0][0].isupper() else other
                yield Proposal(*match.span(), shown, sure)


def _clauses(text: str) -> Iterator[re.Match[str]]:
    """Yield the first words of clauses, which have no subject if they are verbs."""
    begins, end = True, 0
    links, negations = _set(_FRENCH_LINKS, "fr"), _set(_FRENCH_NEGATIONS, "fr")
    for match in _WORD.finditer(text):
        word = match[0].lower()
        begins = begins or _FRENCH_ENDS.search(text, end, match.start()) is not None
        end = match.end()
        if word in links:
            begins = True
        elif begins and word not in negations:
            yield match
            begins = False


def _slavic_polite(word: str) -> list[str]:
    if len(word) < 3:
        return []
    if word.endswith(("йся", "ься", "ись")):
        return [f"{word[:-2]}тесь"]
    return [f"{word}те"] if word[-1] in "йиь" else []


def _slavic_familiar(word: str) -> list[str]:
    if word.endswith("тесь"):
        return [word[:-4] + ("ся" if word[-5:-4] in "йь" else "сь")]
    return [word[:-2]] if re.search("[йиь]те$", word) else []


def _french_polite(word: str) -> list[str]:
    if word in _FRENCH_IRREGULAR:
        return [_FRENCH_IRREGULAR[word]]
    if word.endswith("e") and len(word) > 3:
        return [f"{word[:-1]}ez"]
    if word.endswith("is") and len(word) > 4:
        return [f"{word[:-1]}ssez"]
    return [f"{word[:-1]}ez"] if word.endswith(("ds", "ts")) else []


def _french_familiar(word: str) -> list[str]:
    if word in _FRENCH_FAMILIAR_OF:
        return [_FRENCH_FAMILIAR_OF[word]]
    if word.endswith("issez"):
        return [f"{word[:-4]}s"]
    if word.endswith("ez") and len(word) > 4:
        return [f"{word[:-2]}e", f"{word[:-2]}s"]
    return []


@lru_cache(16)
def _set_of(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _set(table: dict[str, str], language: str) -> frozenset[str]:
    return _set_of(table.get(language, ""))
