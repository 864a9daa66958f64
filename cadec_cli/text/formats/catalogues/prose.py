"""Which values of a file without a schema are prose: in JSON and YAML, any string may be anything.

A value is translated if it has words, and if nothing says that it is for programs: its key, or its look. With
a space in it, it is prose. A single word is prose unless it looks like an identifier, or its key is one of
those that hold identifiers.
"""

import re

from cadec_cli.text.formats.catalogues.message import is_text
from cadec_cli.text.formats.catalogues.placeholders import PLACEHOLDER, TAG

# Keys whose values are for programs, if they are single words. `_` and `-` count as nothing.
_WORDS = """
    id ids key keys type kind class classname icon icons image img src href url uri link path file
    filename lang language locale charset encoding version format color colour align target rel method
    action event slug code hash token uuid guid ref anchor namespace ns module import component widget
    layout theme font email phone domain host protocol mime mimetype extension currency timezone country
    region unit variant status state mode level role scope tag tags selector template
"""
_KEYS = frozenset(_WORDS.split())
_DEFINITION = re.compile(r"[@$]")  # @@locale and the like of ARB, $schema and $ref of JSON
_URL = re.compile(r"\s*(?:[a-zA-Z][a-zA-Z0-9+.-]*:(?://)?\S+|//\S+|www\.\S+|[\w.+-]+@[\w-]+\.[\w.-]+)\s*")
_PATH = re.compile(r"\s*(?:\.{0,2}/|~/|[A-Za-z]:\\)\S*\s*|\s*[\w.-]+(?:/[\w.-]+)+/?\s*")
_COLOUR = re.compile(r"\s*(?:#[0-9a-fA-F]{3,8}|(?:rgb|hsl)a?\([^()]*\))\s*")
_CODE = re.compile(
    r"\s*(?:[<{(\[]?\w+[>})\]]?\s*(?:=>|===?|!=|&&|\|\|)|(?:function|const|var|let|import|return|SELECT|INSERT)\s)"
)
_STYLE = re.compile(r"\s*(?:[\w-]+\s*:\s*[^:;]+;\s*)+")  # CSS
_CLASSES = re.compile(r"[a-z0-9\s:/.\[\]#_-]*")  # CSS classes and selectors
_CLASS_KEYS = frozenset({"class", "classname", "style", "css", "selector", "template", "pattern", "regex"})
_TIME = re.compile(r"\s*(?:[YMDHhmsaAdE]{1,4}|LT|L{1,4})(?:[\s,./:-]+(?:[YMDHhmsaAdE]{1,4}|LT|L{1,4}))*\s*")
# What is no word: digits, signs, case in the middle, dots and underscores inside.
_IDENTIFIER = re.compile(r"\S*(?:[\d_@#$%^*+=\\<>/|~]|[a-z][A-Z]|\w[.:]\w)\S*|[a-z]+(?:-[a-z]+)+")
_ABBREVIATION = re.compile(r"[A-Z0-9]{1,8}")
_CONSTANTS = frozenset({"true", "false", "null", "undefined", "none", "nil", "nan"})
_COMMON = frozenset({"OK", "YES", "NO", "ON", "OFF", "ALL", "NEW", "ADD", "SAVE", "CANCEL", "CLOSE", "NEXT"})


def is_prose(text: str, key: str) -> bool:
    """Tell whether a value is to be translated; `key` is the name that it has."""
    if not is_text(text) or _DEFINITION.match(key):
        return False
    name = re.sub(r"[_\W]", "", key).lower()
    patterns = (_URL, _PATH, _COLOUR, _STYLE, _TIME)
    if any(pattern.fullmatch(text) for pattern in patterns) or _CODE.match(text):
        return False
    bare = PLACEHOLDER.sub(" ", TAG.sub(" ", text)).strip()
    if len(bare.split()) > 1:
        return not (name in _CLASS_KEYS and _CLASSES.fullmatch(text))
    if bare != text.strip():
        return True  # a word with a placeholder or a tag
    if name in _KEYS or bare.lower() in _CONSTANTS:
        return False
    if _ABBREVIATION.fullmatch(bare):
        return bare in _COMMON
    return not _IDENTIFIER.fullmatch(bare)
