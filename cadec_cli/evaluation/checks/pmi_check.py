"""Lines that a D-LM finds unlikely where they stand, though they would be likely elsewhere.

A line's PMI with the lines before it is usually near 0 or above. Far below, the line does not go on from
them: another one may belong here, or somebody is addressed or named in another way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cadec_cli.bundle.manifest import read_manifest
from cadec_cli.errors import CadecError, option
from cadec_cli.evaluation.aligned import AlignedText, CountProgress, no_progress
from cadec_cli.evaluation.checks.findings import WARNING, CheckedText, Remark
from cadec_cli.evaluation.pmi.analysis import TextScorer, own_scores
from cadec_cli.method.context import ContextPolicy
from cadec_cli.text.languages import iso_code
from cadec_cli.text.sentences import base_language

# Natural logs below 0, and robust deviations below the median, from which a PMI is far below.
_LEAST, _DEVIATIONS = -3.0, 4.0
_MAD_TO_DEVIATION = 1.4826


@dataclass(frozen=True)
class PMICheck:
    """A check by the D-LM of the target language."""

    scorer: TextScorer
    policy: ContextPolicy
    counted: CountProgress = no_progress

    def __call__(self, text: CheckedText) -> Iterator[Remark]:
        """Score all translations in their documents, and remark on the outliers."""
        documents = [
            [number for number in document if text.pairs[number].target] for document in text.documents
        ]
        documents = [document for document in documents if document]
        numbers = [number for document in documents for number in document]
        targets = tuple(tuple(text.pairs[number].target for number in document) for document in documents)
        scores = own_scores(self.scorer, AlignedText(text.name, targets), self.policy, self.counted)
        pmi = scores.pmi[scores.in_context]
        if not len(pmi):
            return
        middle = float(np.median(pmi))
        deviation = _MAD_TO_DEVIATION * float(np.median(np.abs(pmi - middle)))
        lengths = np.array([len(text.pairs[number].target) for number in numbers])
        per_letter = scores.free / lengths
        usual = float(np.median(per_letter))
        for place, number in enumerate(numbers):
            here = float(scores.pmi[place])
            far = here < min(_LEAST, middle - _DEVIATIONS * deviation)
            if scores.in_context[place] and far and per_letter[place] >= usual:
                yield Remark(number, WARNING, f"is unlikely after the lines before it (PMI {here:.1f})")


def open_pmi_check(
    bundle: Path,
    language: str,
    *,
    context: int = 3,
    device: str = "auto",
    threads: int = 0,
    counted: CountProgress = no_progress,
) -> PMICheck:
    """Load the D-LM of a bundle; one of another language than the translation's is a CadecError."""
    known = read_manifest(bundle).target_language
    if language and base_language(iso_code(known)) != base_language(iso_code(language)):
        raise CadecError(
            f"the D-LM of {bundle} is of {known!r}, and the translation is in {language!r}",
            f"name a bundle for that language with {option('bundle')}",
        )
    scorer = TextScorer.open(bundle, device=device, threads=threads)
    return PMICheck(scorer, ContextPolicy(context), counted)
