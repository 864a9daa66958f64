"""The plural forms of languages, as gettext's headers write them."""

from cadec_cli.text.sentences import base_language

_EAST_SLAVIC = (
    3,
    "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2)",
)
_FORMS: dict[str, tuple[int, str]] = {
    "id ja jv km ko lo ms my su th vi yo zh": (1, "0"),
    "ak am bn fa fil fr gu hi hy kn ln mg oc pa pt_br si ti tl wa zu": (2, "(n > 1)"),
    "be bs hr ru sh sr uk": _EAST_SLAVIC,
    "cs sk": (3, "(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2"),
    "pl": (3, "(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2)"),
    "lt": (3, "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2)"),
    "lv": (3, "(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2)"),
    "ro": (3, "(n==1 ? 0 : (n==0 || (n%100 > 0 && n%100 < 20)) ? 1 : 2)"),
    "sl": (4, "(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3)"),
    "mk is": (2, "(n%10==1 && n%100!=11 ? 0 : 1)"),
    "ar": (6, "(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5)"),
    "cy": (4, "(n==1) ? 0 : (n==2) ? 1 : (n != 8 && n != 11) ? 2 : 3"),
    "ga": (5, "(n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4)"),
    "gd": (4, "(n==1 || n==11) ? 0 : (n==2 || n==12) ? 1 : (n > 2 && n < 20) ? 2 : 3"),
    "mt": (4, "(n==1 ? 0 : n==0 || (n%100 > 1 && n%100 < 11) ? 1 : n%100 > 10 && n%100 < 20 ? 2 : 3)"),
}
_MOST = (2, "(n != 1)")
_BY_LANGUAGE = {code: forms for codes, forms in _FORMS.items() for code in codes.split()}
# Where the form for one thing is, if it is not the first.
_SINGULAR = {"ar": 1}


def plural_forms(language: str) -> tuple[int, str]:
    """Return how many plural forms a language has, and the rule; those of most languages if it is unknown."""
    whole = language.strip().lower().replace("-", "_")
    return _BY_LANGUAGE.get(whole) or _BY_LANGUAGE.get(base_language(language), _MOST)


def singular_form(language: str) -> int:
    """Return the number of the form for one thing."""
    return _SINGULAR.get(base_language(language), 0)
