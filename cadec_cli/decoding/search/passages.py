"""Translation by models that read passages of the source, so that no sentence waits for an earlier choice.

DocTransformer, 2-to-2 and DocRepair differ in their passages and in how these become n-best lists; the rest
is one search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from cadec_cli.decoding.state import State
from cadec_cli.decoding.translation import Choice, TranslatedPart
from cadec_cli.decoding.units import Wave
from cadec_cli.engines.protocols import AnyTerm, DocumentModel, Models, Passage, PassageTranslation
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.objectives import NMT, objective
from cadec_cli.method.options import TranslationOptions


@dataclass(frozen=True)
class PassageSearch:
    """Translates documents passage by passage, all passages of a wave at once."""

    model: DocumentModel
    translate: Callable[[Sequence[Passage]], list[NBest]]

    def run(self, waves: Iterable[Wave[Passage]], state: State) -> Iterator[tuple[int, TranslatedPart]]:
        """Translate the sentence in question of every passage, and choose its likeliest hypothesis."""
        for wave in waves:
            lists = self.translate([passage for _, passage in wave])
            for (number, _), nbest in zip(wave, lists, strict=True):
                yield number, _best(nbest)


def two_to_two(models: Models, options: TranslationOptions, extra_terms: Sequence[AnyTerm]) -> PassageSearch:
    """The search with the 2-to-2 model, which CTranslate2 runs."""
    return _listing(_require_model(models, "2-to-2"), options)


def repair(models: Models, options: TranslationOptions, extra_terms: Sequence[AnyTerm]) -> PassageSearch:
    """The search with DocRepair after the S-NMT; CTranslate2 runs both."""
    return _listing(_require_model(models, "repair"), options)


def doc_nmt(models: Models, options: TranslationOptions, extra_terms: Sequence[AnyTerm]) -> PassageSearch:
    """The search with the DocTransformer, decoded by our own beam search."""
    from cadec_cli.decoding.search.beam import TOGETHER, BeamOptions, BeamSearch
    from cadec_cli.engines.torch_nmt import TorchDocumentModel

    model = cast(TorchDocumentModel, _require_model(models, "doc-nmt"))

    def translate(passages: Sequence[Passage]) -> list[NBest]:
        sources = [model.encode(passage.sentence) for passage in passages]
        lists = [NBest(passage.sentence, ()) for passage in passages]
        filled = [index for index, source in enumerate(sources) if source]
        filled.sort(key=lambda index: len(sources[index]))
        for first in range(0, len(filled), TOGETHER):
            part = filled[first : first + TOGETHER]
            stepped = model.after([passages[index] for index in part])
            search = BeamSearch(stepped, None, objective("sentence"), options=BeamOptions(options.beam))
            found = search.search([sources[index] for index in part], [Context()] * len(part))
            for index, hypotheses in zip(part, found, strict=True):
                texts = (
                    Hypothesis(model.text.decode(one.ids), one.terms[NMT], one.ids) for one in hypotheses
                )
                lists[index] = NBest(passages[index].sentence, tuple(texts), model.text.identity)
        return lists

    return PassageSearch(model, translate)


def _listing(model: DocumentModel, options: TranslationOptions) -> PassageSearch:
    listing = cast(PassageTranslation, model)
    return PassageSearch(model, lambda passages: listing.nbest(passages, options.beam))


def _require_model(models: Models, name: str) -> DocumentModel:
    model = models.document(name)
    if model is None:
        raise CadecError(
            f"this bundle has no {name} model",
            f"train one with `cadec train {name}` and add it with `cadec convert BUNDLE --{name} RUN`",
        )
    return model


def _best(nbest: NBest) -> TranslatedPart:
    if not nbest.hypotheses:
        return TranslatedPart(nbest, None)
    return TranslatedPart(nbest, Choice(0, tuple(one.log_prob for one in nbest.hypotheses)))
