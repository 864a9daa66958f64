"""A bundle's models behind the protocols of `engines`, on the device and in the precision asked for."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING

from cadec_cli.bundle.cache import Note, silence
from cadec_cli.engines.ctranslate2_nmt import CTranslate2Model
from cadec_cli.errors import CadecError
from cadec_cli.method.options import TranslationOptions
from cadec_cli.workers import available_cores

if TYPE_CHECKING:
    import torch

    from cadec_cli.bundle.opening import Bundle
    from cadec_cli.engines.torch_lm import TorchLanguageModel
    from cadec_cli.engines.torch_nmt import TorchTranslationModel

# Compute types that mean int8 weights for the D-LM on a CPU.
_INT8 = ("int8",)


def load_models(
    bundle: Bundle,
    *,
    device: str = "auto",
    compute_type: str = "int8",
    threads: int = 0,
    note: Note = silence,
) -> LoadedModels:
    """A bundle's models; `threads` are torch's as well as CTranslate2's, 0 is all cores.

    That a model has to be converted first, which takes its time, is said through `note`.
    """
    import torch

    from cadec_cli.models.devices import choose_device

    torch.set_num_threads(threads or available_cores())
    return LoadedModels(bundle, choose_device(device), compute_type, threads, note)


class LoadedModels:
    """A bundle's models, each loaded when it is first asked for, and then kept."""

    def __init__(
        self,
        bundle: Bundle,
        device: torch.device,
        compute_type: str,
        threads: int,
        note: Note = silence,
    ) -> None:
        self.bundle = bundle
        self._note = note
        self._device = device
        self._compute_type = compute_type
        self._threads = threads

    @cached_property
    def translation(self) -> CTranslate2Model:
        """The S-NMT in CTranslate2."""
        bundle = self.bundle
        if not bundle.has_translation:
            raise CadecError(f"{bundle.directory} has no S-NMT and can't translate")
        return CTranslate2Model(
            bundle.ctranslate2_model(self._compute_type, self._note),
            bundle.source,
            bundle.target,
            positions=bundle.translation_positions,
            device=self._device.type,
            device_index=self._device.index or 0,
            compute_type=self._compute_type,
            threads=self._threads,
        )

    @cached_property
    def language(self) -> TorchLanguageModel | None:
        """The D-LM in torch: half precision on a GPU, int8 weights on a CPU, if the compute type says so."""
        import torch

        from cadec_cli.engines.torch_lm import TorchLanguageModel
        from cadec_cli.models.quantised import quantised

        if not self.bundle.has_lm:
            return None
        network = self.bundle.lm_network()
        if self._device.type == "cuda":
            half = "float16" in self._compute_type
            network = network.to(self._device, torch.bfloat16 if half else torch.float32)
        elif self._compute_type in _INT8:
            network = quantised(network)  # of float weights nothing is kept
        return TorchLanguageModel(network, self.bundle.lm_pipeline)

    @cached_property
    def stepped(self) -> TorchTranslationModel:
        """The S-NMT in torch, for the C-aware beam."""
        from cadec_cli.engines.torch_nmt import TorchTranslationModel

        network = self.bundle.translation_network().to(self._device)
        return TorchTranslationModel(network, self.bundle.source, self.bundle.target)


def default_options(bundle: Bundle) -> TranslationOptions:
    """What the bundle's makers found best."""
    options = TranslationOptions(**dataclasses.asdict(bundle.defaults))
    return options if bundle.has_lm else dataclasses.replace(options, search="sentence")
