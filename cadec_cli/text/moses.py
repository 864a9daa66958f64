"""Moses normalisation, tokenisation and truecasing of one sentence, and their inverses.

Moses tokenisation loses the positions of spaces: its detokeniser guesses them, and is wrong in one line
of twenty ("< i > so < / i >", "Капу 'е"). Here a wrong guess is corrected by a mark between the two
tokens, so that for every text

    detokenise(tokenise(normalise(text))) == normalise(text)

and without the marks the tokens are those of Moses. Truecasing and its inverse change the case of a
sentence's first word only.

Knows nothing of subwords or ids.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

# "No space here" and "a space here", wherever Moses' detokeniser would do the opposite.
JOIN = "\uffed"
SPACE = "\u2423"
MARKS = (JOIN, SPACE)

_BEFORE_FIRST_WORD = re.compile(r"""[-–—"'«»„“”‘’¿¡*]+|<[^<>]*>""")

# Reserved for the marks and for SentencePiece's own space: in a text they become look-alikes.
_RESERVED = str.maketrans({JOIN: "\u25aa", SPACE: "_", "\u2581": "_"})


class MosesText:
    """Moses for one language. A language without Moses' rules gets the default (English) ones."""

    def __init__(self, language: str) -> None:
        # Imported here: half a second of regular expressions, which models without Moses never need.
        from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

        self.language = language
        self._normaliser = MosesPunctNormalizer(lang=language)
        self._tokeniser = MosesTokenizer(lang=language)
        self._detokeniser = MosesDetokenizer(lang=language)

    def normalise(self, text: str) -> str:
        """Unify punctuation (Moses' rules) and white space, drop control characters, compose accents."""
        text = unicodedata.normalize("NFC", text)
        text = self._normaliser.normalize(_without_controls(text)).translate(_RESERVED)
        return " ".join(_without_controls(text).split())

    def tokenise(self, text: str) -> list[str]:
        """Split a normalised sentence into tokens, with marks where its spaces would not be restored."""
        tokens = self._tokeniser.tokenize(text, escape=False)
        gaps = _gaps(tokens, text)
        if gaps is None:  # Moses changed a character, which must never be silent damage
            tokens = text.split(" ") if text else []
            gaps = [False] + [True] * (len(tokens) - 1)
        return _mark(tokens, gaps, self._guessed_gaps(tokens))

    def detokenise(self, tokens: Iterable[str]) -> str:
        """Join tokens into a sentence. Any sequence is accepted, misplaced marks included."""
        words: list[str] = []
        corrections: dict[int, bool] = {}
        for token in tokens:
            if token in MARKS:
                corrections[len(words)] = token == SPACE
            elif token:
                words.append(token)
        gaps = self._guessed_gaps(words)
        return "".join(
            (" " if index and corrections.get(index, gap) else "") + word
            for index, (word, gap) in enumerate(zip(words, gaps, strict=True))
        )

    def _guessed_gaps(self, tokens: list[str]) -> list[bool]:
        """Tell before which tokens Moses' detokeniser puts a space."""
        guess = self._detokeniser.detokenize(tokens, unescape=False) if tokens else ""
        gaps = _gaps(tokens, guess)
        return gaps if gaps is not None else [index > 0 for index in range(len(tokens))]


def _gaps(tokens: list[str], text: str) -> list[bool] | None:
    """Tell before which tokens `text` has a space; None if it is not made of exactly these tokens."""
    gaps = []
    position = 0
    for token in tokens:
        gap = text.startswith(" ", position)
        position += gap
        if not text.startswith(token, position):
            return None
        gaps.append(gap)
        position += len(token)
    return gaps if position == len(text) else None


def _mark(tokens: list[str], wanted: list[bool], guessed: list[bool]) -> list[str]:
    marked: list[str] = []
    for index, token in enumerate(tokens):
        if index and wanted[index] != guessed[index]:
            marked.append(SPACE if wanted[index] else JOIN)
        marked.append(token)
    return marked


def _without_controls(text: str) -> str:
    """Drop control and format characters (Cc, Cf, lone surrogates); tabs and line ends become spaces."""
    if text.isprintable():
        return text
    return "".join(
        " " if character.isspace() else character
        for character in text
        if character.isspace() or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Cn")
    )


@dataclass(frozen=True)
class Truecaser:
    """Knows the usual form of each word; `lowered` has the words that are usually in lower case.

    Only the first word of a sentence is touched, and only when it is Capitalised and its usual form is
    lower-case: names keep their capital, shouting stays shouting, and `recase` undoes it.
    """

    lowered: frozenset[str]

    @classmethod
    def train(cls, sentences: Iterable[list[str]]) -> "Truecaser":
        """Learn the usual form of every word from tokenised sentences (Moses' recipe)."""
        from sacremoses import MosesTruecaser

        # MosesTruecaser.train would hold every token of the corpus at once; its parts do not.
        moses = MosesTruecaser()
        forms: dict[str, Counter[str]] = defaultdict(Counter)
        for tokens in sentences:
            # possibly_use_first_token: if sentences are short, their first words count too.
            for small, form, weight in moses.learn_truecase_weights(tokens, possibly_use_first_token=True):
                forms[small][form] += weight
        usual = ((small, counts.most_common(1)[0][0]) for small, counts in forms.items())
        return cls(frozenset(small for small, form in usual if form == small and small[:1].isalpha()))

    def truecase(self, tokens: list[str]) -> list[str]:
        """Write the first word in lower case if that is its usual form."""
        index = _first_word(tokens)
        if index is not None:
            word = tokens[index]
            small = word[0].lower() + word[1:]
            if word[1:] == word[1:].lower() and small in self.lowered and _capital(small) == word:
                return [*tokens[:index], small, *tokens[index + 1 :]]
        return tokens


def recase(tokens: list[str]) -> list[str]:
    """Write the first word of a tokenised sentence with a capital letter."""
    index = _first_word(tokens)
    if index is None:
        return tokens
    return [*tokens[:index], _capital(tokens[index]), *tokens[index + 1 :]]


def _first_word(tokens: list[str]) -> int | None:
    """Find the word that carries the sentence's capital, after dashes, quotes and tags.

    Return None after anything else ("... and so", "(aside)", "43-й"), where lower case is just as good.
    """
    in_tag = False
    for index, token in enumerate(tokens):
        if token == "<":
            in_tag = True
        elif token == ">":
            in_tag = False
        elif in_tag or token in MARKS or _BEFORE_FIRST_WORD.fullmatch(token):
            continue
        else:
            return index if token[0].isalpha() else None
    return None


def _capital(word: str) -> str:
    upper = word[0].upper()
    # ß, ŉ and the like have no capital of one letter that can be turned back into them.
    return upper + word[1:] if len(upper) == 1 and upper.lower() == word[0].lower() else word
