"""The networks that are measured: of the paper's size, with random weights, for a made-up language of words.

They translate nothing well, but take as long as trained ones. They never end a sentence, so all translations
are given the same length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from cadec_cli.errors import CadecError
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig
from cadec_cli.models.int8.block import quantise
from cadec_cli.models.transformer import Transformer, TransformerConfig
from cadec_cli.parallel import available_cores
from cadec_cli.text.subwords import EOS, SPECIAL_PIECES
from converters.own_networks import convert_translation_model

VOCABULARY = 16_000
LENGTH = 11  # tokens of a sentence
NBEST, BEAM, CONTEXT = 20, 4, 3


@dataclass(frozen=True)
class WordText:
    """A made-up language whose words are the pieces of a vocabulary."""

    size: int

    @property
    def identity(self) -> str:
        """The same for texts of the same size, which have the same words."""
        return f"words {self.size}"

    @property
    def boundary(self) -> int:
        """The id of the end of a sentence."""
        return EOS

    @cached_property
    def vocabulary(self) -> Sequence[str]:
        """All words."""
        return [*SPECIAL_PIECES, *(f"piece{number}" for number in range(len(SPECIAL_PIECES), self.size))]

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.vocabulary)}

    def encode(self, text: str) -> list[int]:
        """Words to ids."""
        return [self._ids[word] for word in text.split()]

    def decode(self, ids: Sequence[int]) -> str:
        """Ids to words."""
        return " ".join(self.vocabulary[index] for index in ids)

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        """The words."""
        return [f" {self.vocabulary[index]}" for index in ids]


@dataclass(frozen=True)
class Networks:
    """An S-NMT and a D-LM over one target vocabulary, and both with int8 weights."""

    translation: Transformer
    lm: DocumentLM
    translation_int8: Transformer
    lm_int8: DocumentLM

    @classmethod
    def of(cls, translation: Transformer, lm: DocumentLM) -> Networks:
        """Add copies of both with int8 weights."""
        if translation.config.target_vocabulary != lm.config.vocabulary:
            raise CadecError(
                "this D-LM has a vocabulary of its own, and the beam steps both models token by token",
                "measure a bundle whose models share the target vocabulary",
            )
        return cls(translation, lm, quantise(translation), quantise(lm))

    @classmethod
    def random(cls) -> Networks:
        """Make networks of the paper's sizes with random weights."""
        torch.manual_seed(1)
        translation = Transformer(TransformerConfig(VOCABULARY, VOCABULARY)).eval()
        return cls.of(translation, DocumentLM(DocumentLMConfig(VOCABULARY)).eval())

    @property
    def source(self) -> WordText:
        """The words that the S-NMT reads."""
        return WordText(self.translation.config.source_vocabulary)

    @property
    def target(self) -> WordText:
        """The words that the S-NMT writes and the D-LM reads."""
        return WordText(self.lm.config.vocabulary)


class FixedLength:
    """The S-NMT in CTranslate2; every translation has LENGTH tokens, since random weights never end one."""

    def __init__(self, networks: Networks, directory: Path) -> None:
        import ctranslate2

        self._source, self._target = networks.source, networks.target
        source, target = self._source.vocabulary, self._target.vocabulary
        convert_translation_model(networks.translation, source, target, directory, "int8")
        self._engine = ctranslate2.Translator(
            str(directory), compute_type="int8", intra_threads=available_cores()
        )

    def nbest(self, sentences: Sequence[str], count: int) -> list[NBest]:
        """`count` translations of every sentence."""
        results = self._engine.translate_batch(
            [[*sentence.split(), SPECIAL_PIECES[EOS]] for sentence in sentences],
            beam_size=count,
            num_hypotheses=count,
            length_penalty=0,
            min_decoding_length=LENGTH,
            max_decoding_length=LENGTH,
            max_batch_size=2048,
            batch_type="tokens",
            return_scores=True,
        )
        return [
            NBest(
                sentence,
                tuple(
                    Hypothesis(text := " ".join(tokens), score, tuple(self._target.encode(text)))
                    for tokens, score in zip(result.hypotheses, result.scores, strict=True)
                ),
                self._target.identity,
            )
            for sentence, result in zip(sentences, results, strict=True)
        ]
