"""The scripts that languages are written in."""

import re
from functools import cache

from cadec_cli.text.sentences import base_language

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
