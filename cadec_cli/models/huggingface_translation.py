"""Translation networks of the transformers library, read from files that are here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from cadec_cli.errors import CadecError
from cadec_cli.models.foreign_sizes import check_configuration, check_room, weight_bytes
from cadec_cli.models.transformers_library import transformers_library


def load_translation_network(directory: Path, *, pickled: bool = False) -> Any:
    """The network in a directory, in float32; weights that are missing or misshapen are a CadecError.

    With `pickled`, weights may be of an older format, of which nothing but tensors is ever unpickled.
    """
    _check_sizes(directory)
    try:
        network, report = transformers_library().AutoModelForSeq2SeqLM.from_pretrained(
            str(directory),
            dtype=torch.float32,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=None if pickled else True,
            weights_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are in the report
        )
    except Exception as error:  # of many kinds, as damaged files are
        reason = " ".join(str(error).split())[:200]
        raise CadecError(f"transformers can't read the model in {directory}: {reason}") from None
    missing = sorted([*report["missing_keys"], *(name for name, *_ in report["mismatched_keys"])])
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise CadecError(
            f"weights of {directory} are missing or of another size: {', '.join(missing[:3])}{more}",
            "download the whole model again",
        )
    return network.eval().requires_grad_(False)


def _check_sizes(directory: Path) -> None:
    """See that the network is no larger than its files, before there is room for it."""
    library = transformers_library()
    try:
        config = library.AutoConfig.from_pretrained(
            str(directory), local_files_only=True, trust_remote_code=False
        )
        check_configuration(config, str(directory))
        with torch.device("meta"):
            outline = library.AutoModelForSeq2SeqLM.from_config(config, trust_remote_code=False)
    except CadecError:
        raise
    except Exception as error:  # of many kinds, as configurations are
        reason = " ".join(str(error).split())[:200]
        raise CadecError(f"transformers can't read the model in {directory}: {reason}") from None
    # A weight takes half a byte and more.
    files = [*directory.glob("*.safetensors"), *directory.glob("*.bin")]
    check_room(outline, 2 * weight_bytes(files), str(directory))
