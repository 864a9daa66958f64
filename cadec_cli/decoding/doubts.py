"""Which sentences of a translation are worth a look: collected as they come, or from what a journal has.

Knows nothing of how a confidence is made, and nothing of terminals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cadec_cli.decoding.confidence import Judge
from cadec_cli.decoding.translations import Translation
from cadec_cli.text.documents import Document


@dataclass(frozen=True)
class FlaggedSentence:
    """A sentence that is worth a look, and why."""

    document: int
    sentence: int
    source: str
    text: str
    confidence: float
    reasons: tuple[str, ...]
    place: str = field(default="", compare=False)  # where a person finds it


@dataclass
class FlagCollector:
    """The doubtful ones among translations that pass by, in the order in which they pass."""

    judge: Judge
    found: list[FlaggedSentence] = field(default_factory=list)
    sentences: int = 0

    def watch(self, translations: Iterable[Translation]) -> Iterator[Translation]:
        """Yield translations as they are, and remember the doubtful ones."""
        for translation in translations:
            self.sentences += 1
            confidence = self.judge.of(translation)
            if confidence is not None and self.judge.is_flagged(confidence):
                self.found.append(
                    FlaggedSentence(
                        translation.document,
                        translation.sentence,
                        translation.source,
                        translation.text,
                        confidence.value,
                        confidence.reasons,
                        translation.place,
                    )
                )
            yield translation


def flagged_sentences(
    outputs: Mapping[tuple[int, int], Any], documents: Sequence[Document]
) -> Iterator[FlaggedSentence]:
    """The doubtful ones of a journal's outputs, text or JSON, in the order of the documents."""
    for (document, sentence), output in sorted(outputs.items(), key=lambda item: item[0]):
        parts = output if isinstance(output, list) else [output]
        flagged = [part for part in parts if "flags" in part]
        if flagged:
            weakest = min(flagged, key=lambda part: float(part["confidence"]))
            text = " ".join(part["translation"] if "translation" in part else part["text"] for part in parts)
            source = documents[document].sentences[sentence]
            reasons, confidence = tuple(weakest["flags"]), weakest["confidence"]
            yield FlaggedSentence(document, sentence, source.text, text, confidence, reasons, source.place)
