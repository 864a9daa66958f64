"""Placeholders in the strings of programs: what they look like, and whether a translation has kept them.

A program that is given a string with a lost, added or swapped placeholder may fail or show garbage. So a
translation is used only if it has the placeholders, tags and braces of its source.
"""

import re
from collections import Counter
from dataclasses import dataclass

_LENGTHS = "(?:hh|h|ll|l|z|j|t|q|L)?"
# `% d` would be printf too, but “100 % des …” is text. Few conversions are followed by letters: %dpx, %sth.
PRINTF = (
    r"(?<![\d%])%(?:\d+\$)?[-+#0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?"
    rf"{_LENGTHS}(?:[ds@]|[iouxXeEfFgGaAcCSp](?![a-z])|t[A-Za-z](?![a-z]))"
)
# Placeholders of all catalogues: printf, Python, Ruby, JavaScript, Java, Qt, i18next, Vue, Laravel, Windows.
PLACEHOLDER = re.compile(
    r"%\(\w+\)[-+#0 ]*\d*(?:\.\d+)?[a-zA-Z]"  # %(name)s
    r"|[$%#]?\{\{[^{}\n]{0,200}\}\}"  # {{name}}
    r"|\$t\([^()\n]{0,200}\)"  # i18next: another string of the catalogue
    r"|@(?:\.\w+)?:(?:\([\w.]{1,100}\)|\w+(?:\.\w+)+)"  # Vue: likewise
    r"|[$%#]?\{[^{}\n]{0,200}\}"  # {name}, ${name}, %{name}, #{name}, {0:n2}, {date, date, short}
    r"|%L?\d{1,2}(?![\d%$.\w])"  # %1 of Qt
    r"|%[A-Za-z_][\w.]{1,40}%(?!%)"  # %APPDATA%, and %name% of Symfony
    rf"|{PRINTF}|(?<!\d)%%|(?<=\d)%%"
)
_UNNUMBERED = re.compile(r"%(?!\d+\$)[^({%]")
TAG = re.compile(r"</?[A-Za-z][^<>]*>")


@dataclass(frozen=True)
class Marks:
    """What a translation must have as its source has it; printf's unnumbered placeholders in their order."""

    counts: Counter[str]
    in_order: tuple[str, ...]


def marks(text: str) -> Marks:
    """Return the placeholders, tags and braces of a text."""
    found = [match[0] for match in PLACEHOLDER.finditer(text)]
    every = [*found, *TAG.findall(text), *(sign for sign in text if sign in "{}")]
    return Marks(Counter(every), tuple(one for one in found if _UNNUMBERED.match(one) and one != "%%"))


def keeps_marks(source: str, translation: str) -> bool:
    """Tell whether a translation has the placeholders, tags and braces of its source, and no others."""
    return marks(source) == marks(translation)
