"""Words in translations: is the expected form among them, and how is the reader addressed?

A rule compares a translation with an expected form. `words`, the default, compares words as the language
writes them: punctuation parts words, and an elided form is a form of the whole word, so that «te» says *t'*
and «J'accepte» says *accepte*. `ctxpro` is the rule of ctxPro's own script (Wicks & Post 2023): it deletes
punctuation, so that «J'accepte» becomes «jaccepte», and it can never find a form with an apostrophe.

The form of address is T (familiar, as French *tu*) or V (polite, as *vous*), known from pronouns and
possessives alone. Verb endings are not looked at, and forms that mostly mean something else are left out.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cadec_cli.errors import CadecError
from cadec_cli.text.sentences import base_language

# What is written before an apostrophe, and the words that it stands for.
_ELISIONS: dict[str, dict[str, str]] = {
    "fr": {
        **{"c": "ce", "d": "de", "j": "je", "jusqu": "jusque", "l": "le la", "lorsqu": "lorsque", "m": "me"},
        **{"n": "ne", "puisqu": "puisque", "qu": "que", "quelqu": "quelque", "quoiqu": "quoique"},
        **{"s": "se si", "t": "te"},
    },
    "it": {
        **{"all": "allo alla", "c": "ci", "d": "di", "dall": "dallo dalla", "dell": "dello della"},
        **{"gl": "gli", "l": "lo la", "m": "mi", "nell": "nello nella", "quell": "quello quella"},
        **{"quest": "questo questa", "s": "si", "sull": "sullo sulla", "t": "ti", "un": "una", "v": "vi"},
    },
}
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'", "\uff07": "'"})
# Scripts without spaces between words, of which every letter counts as a word; then letters and digits, with
# the marks that follow them, such as vowel signs: these are no letters to `re`.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_MARKS = "".join(
    chr(code) for code in range(0x300, 0x2000) if unicodedata.category(chr(code)) in ("Mn", "Mc")
)
_WORD = re.compile(rf"([{_UNSPACED}][{_MARKS}]*|(?:(?![{_UNSPACED}])[^\W_][{_MARKS}]*)+)('?)")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
# Between two words: the second one begins a sentence or a quotation.
_BEGINS = re.compile(r"[.!?…:\"«»„“”\n–—]|(?:^|\s)-")


@dataclass(frozen=True)
class Word:
    """A word as it is written, and in lower case the words that it may stand for, itself among them."""

    text: str
    readings: frozenset[str]
    begins: bool = False  # a sentence or a quotation begins with it

    @property
    def capital(self) -> bool:
        """Tell whether it has a capital that is not due to the beginning of a sentence."""
        return self.text[0].isupper() and not self.begins


def words_of(text: str, language: str) -> Iterator[Word]:
    """The words of a text, as the language writes them."""
    text = unicodedata.normalize("NFC", text).translate(_APOSTROPHES)
    elisions = _ELISIONS.get(base_language(language), {})
    end = 0
    for number, match in enumerate(_WORD.finditer(text)):
        word = match[1].lower()
        whole = elisions.get(word, "") if match[2] else ""
        readings = {f"{word}'", *whole.split()} if whole else {word}
        begins = number == 0 or _BEGINS.search(text[end : match.start()]) is not None
        yield Word(match[1], frozenset(readings), begins)
        end = match.end()


def says_words(text: str, expected: str, language: str) -> bool:
    """Tell whether the words of the expected form follow each other in a text, elided or not."""
    wanted = [word.readings for word in words_of(expected, language)]
    said = [word.readings for word in words_of(text, language)]
    return bool(wanted) and any(
        all(one & other for one, other in zip(wanted, said[start:], strict=False))
        for start in range(len(said) - len(wanted) + 1)
    )


def says_ctxpro(text: str, expected: str, language: str = "") -> bool:
    """Tell whether ctxPro's own script finds the expected form in a text, whatever the language."""
    return f" {expected.lower()} " in f" {text.lower().translate(_NO_PUNCTUATION)} "


# (translation, expected form, language) → whether the form is said
RULES: dict[str, Callable[[str, str, str], bool]] = {"words": says_words, "ctxpro": says_ctxpro}


@dataclass(frozen=True)
class Judging:
    """How translations are judged: by one of RULES, in a language."""

    rule: str
    language: str

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise CadecError(f"no rule {self.rule!r}", f"there are {', '.join(RULES)}")

    @property
    def signature(self) -> str:
        """How figures were obtained, in one word."""
        return f"rule:{self.rule}|lang:{self.language}" if self.rule == "words" else f"rule:{self.rule}"

    def says(self, text: str, expected: str) -> bool:
        """Tell whether a translation says the expected form."""
        return RULES[self.rule](text, expected, self.language)

    def can_be_said(self, expected: str) -> bool:
        """Tell whether a translation could say the form; ctxPro's rule never finds one with punctuation."""
        return self.says(expected, expected)

    def address(self, text: str) -> str | None:
        """The form of address in a translation; see `address`."""
        return address(text, self.language)


@dataclass(frozen=True)
class _Forms:
    """Familiar and polite forms; polite ones may count only where a capital tells them from other words."""

    familiar: frozenset[str]
    polite: frozenset[str]
    capitals: bool = False


def _forms(familiar: str, polite: str, *, capitals: bool = False) -> _Forms:
    return _Forms(frozenset(familiar.split()), frozenset(polite.split()), capitals)


_ADDRESS: dict[str, _Forms] = {
    "bg": _forms(
        "ти теб тебе твой твоя твоят твое твоето твои твоите",
        "вие вас ви ваш ваша ваше ваши вашия вашият вашата вашето вашите",
    ),
    "cs": _forms(
        "ty tebe tě tobě tebou tvůj tvá tvé tvoje tvoji tvého tvému tvém tvým tvou tvých tvými",
        "vy vás vám vámi váš vaše vaši vašeho vašemu vašem vaším vaší vašich vašim vašimi",
    ),
    "de": _forms(
        "du dich dir dein deine deinen deinem deiner deines euch euer eure euren eurem eurer eures",
        "sie ihnen ihr ihre ihren ihrem ihrer ihres",
        capitals=True,
    ),
    "es": _forms(
        "tú te ti contigo tu tus tuyo tuya tuyos tuyas vosotros vosotras os "
        "vuestro vuestra vuestros vuestras",
        "usted ustedes",
    ),
    "fr": _forms("tu te t' toi ton ta tes", "vous votre vos"),
    "it": _forms("tu te ti t' tuo tua tuoi tue", "lei suo sua suoi sue", capitals=True),
    "nl": _forms("je jij jou jouw jouwe jullie", "u uw uwe"),
    "pl": _forms(
        "ty ciebie cię tobie tobą twój twoja twoje twoi twojego twojej twojemu twoją twoim twoich twoimi",
        "pan pana panu panem panie pani panią panowie panów panom państwo państwa państwu państwem",
    ),
    "pt": _forms("tu te ti contigo teu tua teus tuas", "você vocês"),
    "ro": _forms("tu tine te ție îți ți tău ta tăi tale", "dumneavoastră dvs vă"),
    "ru": _forms(
        "ты тебя тебе тобой тобою твой твоя твоё твое твои твоего твоей твоему твою твоим твоих твоими "
        "твоём твоем твоею",
        "вы вас вам вами ваш ваша ваше ваши вашего вашей вашему вашу вашим ваших вашими вашем вашею",
    ),
    "tr": _forms("sen seni sana sende senden senin seninle", "siz sizi size sizde sizden sizin sizinle"),
    "uk": _forms(
        "ти тебе тобі тобою твій твоя твоє твої твого твоєї твоєму твою твоїм твоїх твоїми",
        "ви вас вам вами ваш ваша ваше ваші вашого вашої вашому вашу вашим ваших вашими",
    ),
}
ADDRESS_LANGUAGES = tuple(_ADDRESS)


def address(text: str, language: str) -> str | None:
    """The form of address in a text: "T" or "V"; None if it has neither, or both, or no forms are known."""
    found = addresses(text, language)
    return next(iter(found)) if len(found) == 1 else None


def addresses(text: str, language: str) -> frozenset[str]:
    """The forms of address in a text: "T", "V", both or neither."""
    forms = _ADDRESS.get(base_language(language))
    if forms is None:
        return frozenset()
    found = set()
    for word in words_of(text, language):
        if word.readings & forms.familiar:
            found.add("T")
        if word.readings & forms.polite and (word.capital or not forms.capitals):
            found.add("V")
    return frozenset(found)
