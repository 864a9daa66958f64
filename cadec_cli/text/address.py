"""How a text addresses its reader: T (familiar, as French *tu*) or V (polite, as *vous*).

That is known from pronouns and possessives alone. Verb endings are not looked at, and forms that mostly mean
something else are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from cadec_cli.text.sentences import base_language
from cadec_cli.text.words import words_of


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


def address_words(form: str, language: str) -> tuple[str, ...]:
    """The pronouns and possessives of a form of address, T or V; with capitals if only these tell."""
    forms = _ADDRESS.get(base_language(language))
    if forms is None:
        return ()
    words = sorted(forms.familiar if form == "T" else forms.polite)
    return tuple(word.capitalize() if form == "V" and forms.capitals else word for word in words)


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
