"""Words in translations: is the expected form among them?

A rule compares a translation with an expected form. `words`, the default, compares words as the language
writes them: punctuation parts words, and an elided form is a form of the whole word, so that «te» says *t'*
and «J'accepte» says *accepte*. `ctxpro` is the rule of ctxPro's own script (Wicks & Post 2023): it deletes
punctuation, so that «J'accepte» becomes «jaccepte», and it can never find a form with an apostrophe.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass

from cadec_cli.errors import CadecError
from cadec_cli.text.address import address
from cadec_cli.text.words import words_of

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


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
