"""A bundle's models on the device they are to run on, in the precision asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from cadec_cli.decoding.nbest import NBestGenerator
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.models.quantised import quantised
from cadec_cli.workers import available_cores

if TYPE_CHECKING:
    from cadec_cli.bundle import Bundle

# Compute types that mean int8 weights for the D-LM on a CPU.
_INT8 = ("int8", "int8_float32")


def torch_device(device: str) -> str:
    """`auto` is a GPU where there is one."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device


def use_threads(threads: int) -> None:
    """Let torch use so many threads; 0 is all cores."""
    torch.set_num_threads(threads or available_cores())


def load_generator(bundle: Bundle, device: str, compute_type: str, threads: int) -> NBestGenerator:
    """The bundle's S-NMT in CTranslate2."""
    return NBestGenerator(
        bundle.ctranslate2_model(compute_type),
        bundle.source,
        bundle.target,
        positions=bundle.translation_positions,
        device="cuda" if torch_device(device).startswith("cuda") else "cpu",
        compute_type=compute_type,
        threads=threads,
    )


def load_language_model(bundle: Bundle, device: str, compute_type: str) -> DocumentLM:
    """The bundle's D-LM in torch: half precision on a GPU, int8 weights on a CPU, if the type says so."""
    lm = bundle.language_model()
    if torch_device(device).startswith("cuda"):
        return lm.to("cuda", torch.bfloat16 if "float16" in compute_type else torch.float32)
    return quantised(lm) if compute_type in _INT8 else lm
