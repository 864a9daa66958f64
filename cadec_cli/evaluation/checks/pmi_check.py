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
from cadec_cli.evaluation.checks.findings import HINT, CheckedText, Remark
from cadec_cli.evaluation.pmi.analysis import TextScorer, own_scores
from cadec_cli.method.context import ContextPolicy
from cadec_cli.text.languages import iso_code
from cadec_cli.text.sentences import base_language, split_sentences

# Natural logs below 0, and robust deviations below the median, from which a PMI is far below. Longer
# sentences vary more, and those of so many letters are not judged: they are rare where D-LMs learn.
_LEAST, _DEVIATIONS, _LONGEST = -2.5, 4.5, 120
_MAD_TO_DEVIATION = 1.4826


@dataclass(frozen=True)
class PMICheck:
    """A check by the D-LM of the target language."""

    scorer: TextScorer
    policy: ContextPolicy
    counted: CountProgress = no_progress

    def __call__(self, text: CheckedText) -> Iterator[Remark]:
        """Score all translations, sentence by sentence in their documents, and remark on the outliers."""
        sentences: list[list[tuple[int, str]]] = []
        for document in text.documents:
            split = (
                (number, sentence)
                for number in document
                for sentence in split_sentences(text.pairs[number].target, text.target_language)
            )
            sentences.append([(number, sentence) for number, sentence in split if sentence.strip()])
        sentences = [document for document in sentences if document]
        if not sentences:
            return
        documents = tuple(tuple(sentence for _, sentence in document) for document in sentences)
        scores = own_scores(self.scorer, AlignedText(text.name, documents), self.policy, self.counted)
        said = [one for document in sentences for one in document]
        lengths = np.array([len(sentence) for _, sentence in said])
        judged = scores.in_context & (lengths <= _LONGEST)
        if not judged.any():
            return
        weighed = scores.pmi / np.sqrt(lengths)
        middle = float(np.median(weighed[judged]))
        deviation = _MAD_TO_DEVIATION * float(np.median(np.abs(weighed[judged] - middle)))
        likely = scores.free / lengths
        usual = float(np.median(likely[judged]))
        for place, (number, sentence) in enumerate(said):
            far = weighed[place] < middle - _DEVIATIONS * deviation and scores.pmi[place] < _LEAST
            if judged[place] and far and likely[place] >= usual:
                message = f"is unlikely after the lines before it (PMI {scores.pmi[place]:.1f})"
                yield Remark(number, HINT, message, target_part=sentence)


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
