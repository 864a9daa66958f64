"""Defects: reasons why a text can't be a sound translation, found without any context.

Loops, symbols that the source does not have, characters that are not text, an impossible length, lost spans.
As a term of the objective (`penalise_defects`) they keep a degenerate hypothesis from winning against a sound
one. Where all hypotheses are degenerate, the one with the fewest defects wins, and the sentence is flagged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cadec_cli.decoding.confidence import FLAG_BELOW, Judge, nothing_wrong
from cadec_cli.decoding.manner.outcomes import manner_flags
from cadec_cli.decoding.translation import TranslatedPart
from cadec_cli.engines.manner_term import MannerTerm
from cadec_cli.engines.protocols import AnyTerm
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.objectives import DEFECTS, GLOSSARY, NAMES
from cadec_cli.method.options import TranslationOptions
from cadec_cli.text.glossary.entries import Glossary
from cadec_cli.text.glossary.reader import read_glossary
from cadec_cli.text.protected.core import Core, core_between
from cadec_cli.text.protected.spans import lost_spans
from cadec_cli.text.punctuation import Quotation, has_half_quotation, has_quotation_marks, quotations

# A loop is a run of at most _LOOP_WORDS words, repeated at least _LOOP_TIMES times.
_LOOP_WORDS, _LOOP_TIMES = 6, 4
_STUTTER = re.compile(r"(\S)\1{7,}|(\S{2,6}?)\2{4,}")
NO_TEXT = re.compile(r"[\ufffd\ue000-\uf8ff\x00-\x08\x0e-\x1f\x7f-\x9f]|⁇|<unk>|<0x[0-9A-F]{2}>|</?s>")
# Symbols that a sentence has only if its source has them; and common ones, of which money needs a number.
_SIGNS = frozenset("<>[]{}|\\#@=_^`~*§♪♫♬")
_COMMON = frozenset("№°±×÷′″+-$€£₽₴¥₹")
_LONELY_MONEY = re.compile(r"(?<!\d)(?<!\d\s)[$€£₽₴¥₹](?!\s?\d)")
# Characters of dense scripts, in which texts have fewer characters.
_DENSE = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_DENSITY = 3
_LONG_ENOUGH = 24  # characters; lengths of shorter texts mean little
_SHORTEST, _LONGEST = 0.2, 4.0


def defects(core: Core, text: str, source: str | None = None) -> tuple[str, ...]:
    """Return what is wrong with a translation of a core, each defect in words for a person.

    With `source`, the text is the finished translation of that whole sentence: it has affixes, tags and the
    case of the source.
    """
    if not core.text:
        return ()
    spans = core.spans if source is None or not core.capitals else ()
    source = core.text if source is None else source
    found = [f"{span} is missing" for span in lost_spans(list(spans), text)]
    if not any(map(str.isalpha, text)):
        return (*found, "has no words")
    if repeats_itself(text) and not repeats_itself(core.text):
        found.append("repeats itself")
    if NO_TEXT.search(text) and not NO_TEXT.search(source):
        found.append("has characters that are not text")
    foreign = sorted({sign for sign in text if sign not in source and _is_sign(sign)})
    foreign += [sign for sign in _LONELY_MONEY.findall(text) if sign not in source]
    if foreign:
        found.append(f"has {' '.join(foreign)}, which the source does not have")
    if has_open_marks(text) and not (has_open_marks(source) or has_half_quotation(source)):
        found.append("has an unmatched bracket or quotation mark")
    if quoted_clauses(core.text) and not has_quotation_marks(text):
        found.append("has lost its quotation marks")
    ratio = text_size(text) / max(1, text_size(core.text))
    if ratio < _SHORTEST and text_size(core.text) >= _LONG_ENOUGH:
        found.append("much shorter than the source")
    if ratio > _LONGEST and text_size(text) >= _LONG_ENOUGH * 2:
        found.append("much longer than the source")
    return tuple(found)


def quoted_clauses(text: str) -> list[Quotation]:
    """Return the quotations of a sentence that say something: more than a word, or with its punctuation."""
    found = []
    for one in quotations(text):
        said = text[slice(*one.inner)].strip()
        if any(map(str.isalpha, said)) and (" " in said or not said[-1].isalnum()):
            found.append(one)
    return found


def _is_sign(character: str) -> bool:
    if character in _SIGNS:
        return True
    symbol = not character.isalnum() and unicodedata.category(character)[0] == "S"
    return symbol and character not in _COMMON and not NO_TEXT.match(character)


def has_open_marks(text: str) -> bool:
    """Tell whether a text has brackets or quotation marks without their partners."""
    pairs = (text.count(opening) != text.count(closing) for opening, closing in ("()", "[]", "«»", "{}"))
    return any(pairs) or text.count('"') % 2 == 1


def repeats_itself(text: str) -> bool:
    """Tell whether a text has a loop: the same letters or words over and over."""
    if _STUTTER.search(text):
        return True
    words = re.findall(r"\w+", text.lower())
    for size in range(1, _LOOP_WORDS + 1):
        alike = 0  # words in a row that equal the one `size` before
        for earlier, word in zip(words, words[size:], strict=False):
            alike = alike + 1 if word == earlier else 0
            if alike == size * (_LOOP_TIMES - 1):
                return True
    return False


def text_size(text: str) -> int:
    """The length of a text, in which a character of a dense script counts as several."""
    return len(text) + (_DENSITY - 1) * len(_DENSE.findall(text))


def with_defects(core: Core, nbest: NBest) -> NBest:
    """Count the defects of every hypothesis of a core's list."""
    counted = (replace(one, defects=len(defects(core, one.text))) for one in nbest.hypotheses)
    return replace(nbest, hypotheses=tuple(counted))


@dataclass(frozen=True)
class DefectTerm:
    """The number of defects of each hypothesis, as it was counted when the list was made."""

    names: tuple[str, ...] = (DEFECTS,)

    def terms(self, lists: Sequence[NBest]) -> list[dict[str, Any]]:
        """Return the counts of every list; they must be known (see `with_defects`)."""
        return [{DEFECTS: [_count(one.defects) for one in nbest.hypotheses]} for nbest in lists]


def _count(counted: int | None) -> float:
    assert counted is not None, "the list was not checked for this"
    return float(counted)


def with_counted_terms(
    extra_terms: tuple[AnyTerm, ...], options: TranslationOptions, *, manner: bool = False
) -> tuple[AnyTerm, ...]:
    """Add the terms of what is known of lists when they are made.

    These are the manner of their sentences, if one is asked for, and what was counted: defects, respected
    entries of a glossary, and names.
    """
    counted: list[AnyTerm] = [MannerTerm()] if manner else []
    if options.glossary:
        counted += [DefectTerm(), GlossaryTerm()]
    elif options.protect:
        counted.append(DefectTerm())
    if options.finds_names:
        counted.append(NamesTerm())
    return (*extra_terms, *counted)


def glossary_of(options: TranslationOptions, language: str) -> Glossary | None:
    """Read the glossary that the options name; the language is that of the source. None if there is none."""
    return read_glossary(options.glossary, language) if options.glossary else None


def missing_terms(core: Core, text: str) -> tuple[str, ...]:
    """Return the terms that a translation must have and lacks, each in words for a person."""
    return tuple(
        f"{mention.entry.target} is missing, which {mention.text} must be"
        for mention in core.mentions
        if mention.entry.must and mention.span not in core.spans and mention.rendering(text) is None
    )


def with_terms(core: Core, nbest: NBest, *, protect: bool) -> NBest:
    """Count the terms that every hypothesis of a core's list respects, and its defects with those missing.

    Without `protect`, missing terms are the only defects.
    """
    counted = (
        replace(
            one,
            defects=len(missing_terms(core, one.text)) + (len(defects(core, one.text)) if protect else 0),
            respected=sum(mention.rendering(one.text) is not None for mention in core.mentions),
        )
        for one in nbest.hypotheses
    )
    return replace(nbest, hypotheses=tuple(counted))


@dataclass(frozen=True)
class GlossaryTerm:
    """The number of terms of a glossary that each hypothesis respects, as it was counted."""

    names: tuple[str, ...] = (GLOSSARY,)

    def terms(self, lists: Sequence[NBest]) -> list[dict[str, Any]]:
        """Return the counts of every list; they must be known (see `with_terms`)."""
        return [{GLOSSARY: [_count(one.respected) for one in nbest.hypotheses]} for nbest in lists]


def with_names(core: Core, nbest: NBest) -> NBest:
    """Count the names of a core that every hypothesis renders as the text does; do nothing without any."""
    if not core.names and all(one.named is None for one in nbest.hypotheses):
        return nbest
    counted = (
        replace(
            one,
            named=sum(mention.rendering(one.text) is not None for mention in core.names)
            if core.names
            else None,
        )
        for one in nbest.hypotheses
    )
    return replace(nbest, hypotheses=tuple(counted))


@dataclass(frozen=True)
class NamesTerm:
    """The number of names that each hypothesis renders as the text does; absent where there is no name."""

    names: tuple[str, ...] = (NAMES,)

    def terms(self, lists: Sequence[NBest]) -> list[dict[str, Any]]:
        """Return the counts of the lists that have some (see `with_names`)."""
        return [
            {NAMES: [_count(one.named) for one in nbest.hypotheses]}
            if any(one.named is not None for one in nbest.hypotheses)
            else {}
            for nbest in lists
        ]


def least_defective(core: Core, nbest: NBest) -> int:
    """Return the index of the first hypothesis with the fewest defects."""
    counts = [len(defects(core, one.text)) for one in nbest.hypotheses]
    return counts.index(min(counts))


def judge_for(options: TranslationOptions, language: str, below: float = FLAG_BELOW) -> Judge:
    """Return a judge that flags confidences below a limit, and defects if the options ask for protection.

    Terms that a translation must have are defects too, where they are missing. The language is that of the
    source.
    """
    if not options.protect and not options.glossary and not options.asks_for_manner:
        return Judge(below, nothing_wrong)
    glossary = glossary_of(options, language)
    finds = partial(sentence_defects, language=language, glossary=glossary, protect=options.protect)
    return Judge(below, finds)


def sentence_defects(
    source: str,
    parts: Sequence[TranslatedPart],
    *,
    language: str = "",
    glossary: Glossary | None = None,
    protect: bool = True,
) -> tuple[str, ...]:
    """Return what is wrong with the finished translation of a sentence, given its parts in order."""
    unit = parts[0].unit
    if unit is not None and unit.text == source:
        core = unit.core
    else:  # a sentence of several parts, or one that was read from a file
        core = core_between(source, parts[0].nbest.before, parts[-1].nbest.after, language)
        core = core.with_mentions(glossary)
    found = defects(core, " ".join(part.text for part in parts), source) if protect else ()
    # tags may be inside a term, so look for it where there are none
    said = " ".join(
        part.source if one is None else one.text for part in parts for one in [part.chosen_hypothesis]
    )
    return (*missing_terms(core, said), *manner_flags(parts), *found)
