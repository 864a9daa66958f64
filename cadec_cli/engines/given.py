"""Models that somebody has already, whatever they are: what a bundle's loaded ones are to everyone else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cadec_cli.engines.protocols import DocumentModel, LanguageModel, StepwiseTranslation, TranslationModel
from cadec_cli.errors import CadecError


class ModelSet:
    """A translation model, a language model, or both; and a translation model of the other direction."""

    def __init__(
        self,
        translation: TranslationModel | None = None,
        language: LanguageModel | None = None,
        stepped: StepwiseTranslation | None = None,
        backward: TranslationModel | None = None,
        documents: Mapping[str, DocumentModel] | None = None,
        seeds: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.language = self.reader = language
        self.backward = backward
        self._translation, self._stepped = translation, stepped
        self._documents = documents or {}
        self._seeds = seeds or {}

    @property
    def translation(self) -> TranslationModel:
        """The S-NMT."""
        if self._translation is None:
            raise CadecError("there is no translation model here")
        return self._translation

    def document(self, name: str) -> DocumentModel | None:
        """A model that reads passages of the source."""
        return self._documents.get(name)

    @property
    def stepwise_translation(self) -> StepwiseTranslation:
        """The S-NMT as the beam steps it."""
        if self._stepped is None:
            raise CadecError("this translation model can't be stepped token by token, as --search beam does")
        return self._stepped

    def seed(self, register: str) -> Sequence[str]:
        """Sentences that are formal, or informal."""
        if register not in self._seeds:
            raise CadecError(f"nobody said here what is {register}")
        return self._seeds[register]
