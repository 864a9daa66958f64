"""A bundle's models on the device they are to run on, in the precision asked for."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from cadec_cli.engines.ctranslate2_nmt import NBestGenerator
from cadec_cli.method.options import TranslationOptions
from cadec_cli.models.devices import choose_device
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.models.quantised import quantised
from cadec_cli.models.transformer import Transformer
from cadec_cli.workers import available_cores

if TYPE_CHECKING:
    from cadec_cli.bundle.opening import Bundle

# Compute types that mean int8 weights for the D-LM on a CPU.
_INT8 = ("int8", "int8_float32")


class Models:
    """A bundle's models, each loaded when it is first asked for, and then kept."""

    def __init__(
        self, bundle: Bundle, *, device: str = "auto", compute_type: str = "int8", threads: int = 0
    ) -> None:
        """`threads` are torch's as well as CTranslate2's; 0 is all cores."""
        self.bundle = bundle
        self._device = choose_device(device)
        self._compute_type = compute_type
        self._threads = threads
        torch.set_num_threads(threads or available_cores())

    @cached_property
    def generator(self) -> NBestGenerator:
        """The S-NMT in CTranslate2."""
        bundle = self.bundle
        return NBestGenerator(
            bundle.ctranslate2_model(self._compute_type),
            bundle.source,
            bundle.target,
            positions=bundle.translation_positions,
            device=self._device.type,
            device_index=self._device.index or 0,
            compute_type=self._compute_type,
            threads=self._threads,
        )

    @cached_property
    def language_model(self) -> DocumentLM:
        """The D-LM in torch: half precision on a GPU, int8 weights on a CPU, if the compute type says so."""
        lm = self.bundle.language_model()
        if self._device.type == "cuda":
            return lm.to(self._device, torch.bfloat16 if "float16" in self._compute_type else torch.float32)
        return quantised(lm) if self._compute_type in _INT8 else lm

    @cached_property
    def translation_model(self) -> Transformer:
        """The S-NMT in torch, for the C-aware beam."""
        return self.bundle.translation_model().to(self._device)


def default_options(bundle: Bundle) -> TranslationOptions:
    """What the bundle's makers found best."""
    options = TranslationOptions(**dataclasses.asdict(bundle.defaults))
    return options if bundle.has_lm else dataclasses.replace(options, search="sentence")
