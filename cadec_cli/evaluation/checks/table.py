"""The table of checks, and how they are run.

A check is a row of CHECKS: its name, the gravest severity that it gives, a few words of help, and the
function that finds. To add one, such as a check against a glossary, write the function and enter it here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cadec_cli.errors import UsageError
from cadec_cli.evaluation.checks import document_checks, line_checks
from cadec_cli.evaluation.checks.findings import (
    ERROR,
    WARNING,
    CheckedText,
    CheckResults,
    Finding,
    Remark,
)
from cadec_cli.text.address import ADDRESS_LANGUAGES
from cadec_cli.text.protected.spans import scripts_of
from cadec_cli.text.sentences import base_language

Find = Callable[[CheckedText], Iterable[Remark]]


def _nothing_lacks(text: CheckedText) -> str:
    return ""


def _needs_script(text: CheckedText) -> str:
    if scripts_of(text.target_language):
        return ""
    return _unknown(text.target_language, "its script is not known")


def _needs_forms(text: CheckedText) -> str:
    if base_language(text.target_language) in ADDRESS_LANGUAGES:
        return ""
    return _unknown(text.target_language, "its forms of address are not known")


def _unknown(language: str, why: str) -> str:
    return f"{language}: {why}" if language else "the language of the translation is not known"


@dataclass(frozen=True)
class Check:
    """A kind of finding; `lacks` returns why a text can't be checked, and "" if it can."""

    name: str
    severity: str
    help: str
    find: Find
    lacks: Callable[[CheckedText], str] = _nothing_lacks


CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        Check("aligned", ERROR, "lines shifted, swapped, lost or joined", document_checks.misaligned_lines),
        Check("empty", ERROR, "lines without a translation, or without a source", line_checks.empty_lines),
        Check("untranslated", ERROR, "lines and phrases left as they were", line_checks.untranslated_lines),
        Check(
            "language",
            ERROR,
            "lines in another language or script",
            line_checks.foreign_lines,
            _needs_script,
        ),
        Check(
            "copied",
            ERROR,
            "URLs, e-mail, placeholders, code, file names",
            line_checks.copied_parts,
        ),
        Check("tags", ERROR, "tags lost or added", line_checks.changed_tags),
        Check("numbers", ERROR, "numbers, dates and times", line_checks.changed_numbers),
        Check("damage", ERROR, "loops, characters that are no text, brackets", line_checks.damaged_lines),
        Check("repeated", ERROR, "one translation for different lines", document_checks.repeated_lines),
        Check("length", WARNING, "far too long or short, broken off", line_checks.odd_lengths),
        Check(
            "names", WARNING, "names and terms rendered in two ways", document_checks.renderings_that_differ
        ),
        Check(
            "address",
            WARNING,
            "familiar and polite address mixed",
            document_checks.changed_address,
            _needs_forms,
        ),
    )
}
# Made by a D-LM (`pmi_check`), and only if asked for: it takes a bundle, and time.
PMI = "pmi"
PMI_HELP = "lines that are likely elsewhere, but not where they stand"
NAMES = (*CHECKS, PMI)


def choose_checks(
    only: Sequence[str] = (), skip: Sequence[str] = (), *, pmi: bool = False
) -> tuple[str, ...]:
    """The names of the checks to make; unknown names, and no check at all, are a usage error."""
    for name in (*only, *skip):
        if name not in NAMES:
            raise UsageError(f"no check {name!r}", f"there are {', '.join(NAMES)}")
    wanted = set(only) or set(CHECKS)
    wanted |= {PMI} if pmi else set()
    names = tuple(name for name in NAMES if name in wanted and name not in skip)
    if not names:
        raise UsageError("no check is left", f"there are {', '.join(NAMES)}")
    return names


def run_checks(text: CheckedText, names: Sequence[str], pmi: Find | None = None) -> CheckResults:
    """Make the named checks; `pmi` is the one that a D-LM makes.

    Lines that are misaligned are named by one check only: what else is odd there follows from that.
    """
    clear = document_checks.with_shifts(text)
    found: list[tuple[int, int, Finding]] = []
    skipped, made = [], []
    for rank, name in enumerate(NAMES):
        check = CHECKS.get(name)
        find = pmi if check is None else check.find
        if name not in names or find is None:
            continue
        if check is not None and (reason := check.lacks(text)):
            skipped.append((name, reason))
            continue
        made.append(name)
        for remark in find(clear):
            pair = text.pairs[remark.pair] if remark.pair >= 0 else None
            parts = remark.source_part, remark.target_part
            found.append((remark.pair, rank, Finding(name, remark.severity, remark.message, pair, *parts)))
    found.sort(key=lambda one: one[:2])
    return CheckResults(text, tuple(made), tuple(finding for *_, finding in found), tuple(skipped))
