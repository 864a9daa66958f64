"""Reads a GGUF file as a network and a tokenizer, with the weights unpacked to floats.

transformers does the unpacking. Its own loader is not used: it needs another package (accelerate), and reads
the header again for every query, which takes a quarter of a minute if the vocabulary is large.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import read_errors
from cadec_cli.models.huggingface import (
    Network,
    check_causal,
    empty_network,
    network_from_weights,
    quiet_transformers,
    short,
    transformers_library,
)
from cadec_cli.models.pretrained_settings import MAX_TEXT_LENGTH, check_configuration, check_room
from cadec_cli.validation import showable


@dataclass(frozen=True)
class GgufModel:
    """The content of a GGUF file."""

    network: Network
    tokenizer: str  # as the content of tokenizer.json
    bos: str | None
    name: str
    licence: str | None


def read_gguf(path: Path) -> GgufModel:
    """Read a GGUF file; one that is cut short, damaged or of another kind is a CadecError."""
    _check_magic(path)
    with _errors(path), quiet_transformers():
        reader = _reader(path)
        fields = {name: reader.get_field(name) for name in ("general.name", "general.license")}
        name, licence = (
            None if field is None else showable(str(field.contents()), MAX_TEXT_LENGTH)
            for field in fields.values()
        )
        with _read_by(reader):
            parsed = _parse_weights(path, None)
            config = transformers_library().AutoConfig.for_model(**parsed["config"])
            check_causal(config, str(path))
            check_configuration(config, str(path))
            outline = empty_network(config)
            # A weight takes more than one bit.
            check_room(outline, 8 * path.stat().st_size, str(path))
            tensors = _parse_weights(path, outline)["tensors"]
        tokenizer, bos = _tokenizer(path)
    return GgufModel(
        network_from_weights(config, tensors, str(path)), tokenizer, bos, name or path.stem, licence
    )


def gguf_tokenizer(path: Path) -> str:
    """Return only the tokenizer of a GGUF file, as the content of tokenizer.json."""
    _check_magic(path)
    with _errors(path), quiet_transformers():
        tokenizer, _ = _tokenizer(path)
    return tokenizer


def _check_magic(path: Path) -> None:
    with read_errors(path), path.open("rb") as stream:
        magic = stream.read(4)
    if magic != b"GGUF":
        raise CadecError(f"{path} is not a GGUF file, or is damaged")


def _reader(path: Path) -> Any:
    try:
        import gguf
    except ImportError:
        raise CadecError(
            "GGUF files need the gguf package, which is not installed", "pip install 'cadec[huggingface]'"
        ) from None
    return gguf.GGUFReader(path)


@contextlib.contextmanager
def _read_by(reader: Any) -> Iterator[None]:
    """Make transformers use a header that was already read, instead of reading it again at each call."""
    import gguf

    kept = gguf.GGUFReader
    gguf.GGUFReader = lambda path: reader
    try:
        yield
    finally:
        gguf.GGUFReader = kept


def _parse_weights(path: Path, model: Any) -> dict[str, Any]:
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    with contextlib.redirect_stderr(io.StringIO()):  # a progress bar that no setting turns off
        parsed: dict[str, Any] = load_gguf_checkpoint(
            str(path), return_tensors=model is not None, model_to_load=model
        )
    return parsed


def _tokenizer(path: Path) -> tuple[str, str | None]:
    """The tokenizer, and the token that begins a text."""
    try:
        from transformers.integrations.gguf import convert_gguf_tokenizer, get_gguf_tokenizer
    except ImportError:  # transformers before 5.20 has only the slow way
        made = transformers_library().AutoTokenizer.from_pretrained(
            str(path.parent), gguf_file=path.name, local_files_only=True, trust_remote_code=False
        )
        return made.backend_tokenizer.to_str(), made.bos_token
    architecture, parts, settings = get_gguf_tokenizer(str(path))
    tokenizer, _ = convert_gguf_tokenizer(architecture, parts)
    return tokenizer.to_str(), settings.get("bos_token")


@contextlib.contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except CadecError:
        raise
    except Exception as error:  # whatever a damaged file makes numpy, gguf and transformers raise
        raise CadecError(
            f"{path} can't be read as GGUF: {short(error)}",
            "the file may be cut short, or of an architecture that transformers does not know",
        ) from None
