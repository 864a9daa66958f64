"""An S-NMT and a D-LM with random weights and strong opinions, for the beam."""

from dataclasses import dataclass

import torch

from cadec_cli.decoding.search.beam import BeamOptions, BeamSearch
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.engines.torch_nmt import TorchTranslationModel
from cadec_cli.method.objectives import Objective, objective
from cadec_cli.method.options import ScoringOptions
from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig
from cadec_cli.models.transformer import Transformer, TransformerConfig
from cadec_cli.text.subwords import EOS
from tests.helpers.token_texts import NumberText

PLAIN = ScoringOptions()


@dataclass(frozen=True)
class Pair:
    """An S-NMT and a D-LM over one target vocabulary."""

    nmt: Transformer
    lm: DocumentLM

    def search(
        self, wanted: Objective, options: BeamOptions | None = None, scoring_options: ScoringOptions = PLAIN
    ) -> BeamSearch:
        return BeamSearch(self.translation, self.language, wanted, scoring_options, options)

    def plain(self, options: BeamOptions | None = None) -> BeamSearch:
        """The S-NMT alone."""
        return BeamSearch(self.translation, None, objective("sentence"), None, options)

    @property
    def translation(self) -> TorchTranslationModel:
        config = self.nmt.config
        source, target = NumberText(config.source_vocabulary), NumberText(config.target_vocabulary)
        return TorchTranslationModel(self.nmt, source, target)

    @property
    def language(self) -> TorchLanguageModel:
        return TorchLanguageModel(self.lm, NumberText(self.lm.config.vocabulary))


def models(vocabulary: int = 20, positions: int = 64, seed: int = 1, lm_vocabulary: int = 0) -> Pair:
    """A pair with opinions: random weights, scaled up so that choices are clear and ends come early.

    Those of bundle_parts would end all sentences at once, or none.
    """
    torch.manual_seed(seed)
    nmt = Transformer(
        TransformerConfig(
            vocabulary,
            vocabulary,
            encoder_layers=1,
            decoder_layers=2,
            width=16,
            heads=2,
            inner=24,
            positions=positions,
            tied=False,
        )
    )
    lm = DocumentLM(
        DocumentLMConfig(
            lm_vocabulary or vocabulary,
            layers=2,
            width=16,
            heads=2,
            inner=24,
            positions=positions,
            tied=False,
        )
    )
    with torch.no_grad():
        for model in (nmt, lm):
            model.output.weight.mul_(2)
            model.output.bias[EOS] += 1
        lm.embedding.weight.mul_(30)
        lm.position.weight.mul_(30)
    return Pair(nmt.eval(), lm.eval())
