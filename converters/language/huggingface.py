"""Pretrained causal language models as D-LMs: a Hugging Face directory, or a GGUF file.

A model is loaded, examined and compared first. One that disagrees with itself or with its tokenizer is not
written. Safetensors are copied or linked as they are. Pickled weights and GGUF are written as safetensors, in
half precision where that loses nothing (or, for a GGUF, next to nothing).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from cadec_cli.arrays import Floats
from cadec_cli.engines.transformers_lm import (
    QUICK,
    Probes,
    TransformersLanguageModel,
    check_vocabulary,
    choose_scoring,
)
from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import write_errors
from cadec_cli.fs.paths import expand_user
from cadec_cli.fs.read import read_errors, read_json
from cadec_cli.models.huggingface import (
    Network,
    load_config,
    load_network,
    quiet_transformers,
    readable_positions,
    short,
    smallest_lossless,
    transformers_library,
)
from cadec_cli.models.pretrained_settings import (
    LANGUAGE_SETTINGS,
    LanguageSettings,
    is_fine_tuning,
    read_language_settings,
    write_settings,
)
from cadec_cli.text.tokenizers.line_text import LineText, find_boundary
from converters.hub import local_model
from converters.language.gguf import gguf_tokenizer, read_gguf
from converters.language.no_context import Texts
from converters.verify import stated_licence, weights_checksum

Note = Callable[[str], None]

# How far half precision may change scores, in nats per token, of weights that were packed into a few bits.
HALF_TOLERANCE = 1e-2
# How far the scores of the written network may be from the original's, in nats per token.
STORED_TOLERANCE = 1e-3
_INDEX = "model.safetensors.index.json"


@dataclass(frozen=True)
class LanguageModelImport:
    """A language model that was read and verified. Only `write` writes anything."""

    settings: LanguageSettings
    directory: Path | None  # its files are used as they are; if None, the network is written
    files: tuple[str, ...]  # the weights in that directory
    tokenizer: str  # the content of tokenizer.json
    network: Network
    dtype: torch.dtype  # in which the network is written
    probes: Probes
    expected: Floats  # the scores of the probes

    def write(self, directory: Path, *, link: bool = False) -> Mapping[str, Path]:
        """Write all that a bundle needs into an existing directory; return the linked files by name."""
        if link and self.directory is None:
            raise CadecError(
                f"{self.settings.origin} can't be linked: only safetensors can be used as they are",
                f"leave {option('link')} out: its weights are converted",
            )
        with write_errors(directory):
            linked = self._write_files(directory, link) if self.directory is not None else {}
            if self.directory is None:
                self._write_network(directory)
            (directory / "tokenizer.json").write_text(self.tokenizer, "utf-8")
            write_settings(directory / LANGUAGE_SETTINGS, self.settings)
        return linked

    def _write_files(self, directory: Path, link: bool) -> Mapping[str, Path]:
        assert self.directory is not None
        shutil.copyfile(self.directory / "config.json", directory / "config.json")
        linked = {}
        for name in self.files:
            source = (self.directory / name).resolve()
            if link and name.endswith(".safetensors"):
                (directory / name).symlink_to(source)
                linked[name] = source
            else:
                shutil.copyfile(source, directory / name)
        return linked

    def _write_network(self, directory: Path) -> None:
        model = self.network.model
        with quiet_transformers():
            model.to(self.dtype)
            try:
                model.save_pretrained(str(directory))
            finally:
                model.to(torch.float32)
        (directory / "generation_config.json").unlink(missing_ok=True)  # nothing is generated
        for file in directory.glob("*.safetensors"):  # created with access for their owner only
            file.chmod((directory / "config.json").stat().st_mode)
        stored = _scorer(load_network(directory), self.tokenizer, self.settings)
        choose_scoring(stored, self.probes, lambda _: None)
        drift = _drift(self.probes, stored, self.expected)
        if not drift <= STORED_TOLERANCE:
            raise CadecError(
                f"the written copy of {self.settings.origin} differs from the original "
                f"by {drift:.1g} nats per token"
            )


@dataclass(frozen=True)
class _RawModel:
    """A model as it was read."""

    network: Network
    tokenizer: str  # the content of tokenizer.json
    start: str | None
    origin: str
    licence: str | None
    weights: str  # a checksum
    directory: Path | None = None  # its files of weights can be used as they are
    files: tuple[str, ...] = ()
    packed: bool = False  # whether its weights were packed into a few bits
    template: str | None = None  # how it reads pairs, if it was fine-tuned on pairs


def open_language_model(
    given: str, *, note: Note, no_context: Texts, template: str | None = None
) -> LanguageModelImport:
    """Open a language model: a directory, a GGUF file or a name on the hub.

    Anything wrong with it is a CadecError. `no_context` are the texts that stand for no context, by language;
    `template` is how it reads pairs, if that is not what it says itself.
    """
    path = _place(given)
    read = _read_gguf(path) if path.is_file() else _read_directory(path)
    if template is not None:
        read = replace(read, template=template)
    return _language_import(read, no_context, note)


def open_tokenizer(given: str) -> tuple[str, str]:
    """Return a language model's tokenizer (the content of tokenizer.json) and its sentence boundary."""
    path = _place(given)
    tokenizer = gguf_tokenizer(path) if path.is_file() else _tokenizer(path)
    boundary, _ = find_boundary(tokenizer, str(path))
    return tokenizer, boundary


def own_no_context(given: str) -> Texts | None:
    """Return a model's own texts for no context, if it was fine-tuned here or is part of a bundle."""
    path = _of_run(expand_user(given))
    return read_language_settings(path).no_context if (path / LANGUAGE_SETTINGS).is_file() else None


def _of_run(path: Path) -> Path:
    """Return the model of a fine-tuning run, which must be finished; return any other path unchanged."""
    if not is_fine_tuning(path):
        return path
    if not (path / "model" / LANGUAGE_SETTINGS).is_file():
        raise CadecError(
            f"the run in {path} is not finished",
            f"finish it with {option('resume')}; a lower {option('max-updates')} ends it sooner",
        )
    return path / "model"


def _place(given: str) -> Path:
    """Return the path of the GGUF file, or of the directory with config.json."""
    path = _of_run(local_model(given))
    if path.is_file() or (path / "config.json").is_file():
        return path
    ggufs = sorted(path.glob("*.gguf"))
    if len(ggufs) == 1:
        return ggufs[0]
    raise CadecError(
        f"{path} is not a Hugging Face model (it has no config.json)",
        f"give one of its files: {', '.join(file.name for file in ggufs)}" if ggufs else "",
    )


def _read_directory(path: Path) -> _RawModel:
    config = load_config(path)
    tokenizer = _tokenizer(path)
    files = _weight_files(path)
    pickled = any(name.endswith(".bin") for name in files)
    tuned = read_language_settings(path) if (path / LANGUAGE_SETTINGS).is_file() else None
    return _RawModel(
        network=load_network(path, pickled=pickled),
        tokenizer=tokenizer,
        start=tuned.start
        if tuned
        else _start(tokenizer, _named_bos(path), config.get_text_config().bos_token_id),
        origin=tuned.origin if tuned else path.resolve().name,
        licence=tuned.licence if tuned else stated_licence(path),
        weights=weights_checksum([path / name for name in files]),
        directory=None if pickled else path,
        files=files,
        template=tuned.template if tuned else None,
    )


def _read_gguf(path: Path) -> _RawModel:
    found = read_gguf(path)
    return _RawModel(
        network=found.network,
        tokenizer=found.tokenizer,
        start=_start(found.tokenizer, found.bos, found.network.config.bos_token_id),
        origin=found.name,
        licence=found.licence,
        weights=weights_checksum([path]),
        packed=True,
    )


def _language_import(read: _RawModel, texts: Texts, note: Note) -> LanguageModelImport:
    boundary, apart = find_boundary(read.tokenizer, read.origin)
    if not apart:
        note(
            f"the tokenizer of {read.origin} joins line breaks to the preceding text: "
            "scores at the ends of sentences are slightly off"
        )
    network = read.network
    settings = LanguageSettings(
        family=str(network.model.config.model_type),
        origin=read.origin,
        licence=read.licence,
        weights=read.weights,
        positions=readable_positions(network.model.config),
        boundary=boundary,
        start=read.start,
        no_context=texts,
        template=read.template,
    )
    model = _scorer(network, read.tokenizer, settings)
    check_vocabulary(model, read.origin)
    verified = [_agree(model, note)]
    probes = Probes.of(model)
    dtype = torch.float32
    if read.directory is None:
        dtype, said = _stored_dtype(model, probes, packed=read.packed)
        verified.append(said)
    return LanguageModelImport(
        settings=replace(settings, positions=model.positions, verified="; ".join(verified)),
        directory=read.directory,
        files=read.files,
        tokenizer=read.tokenizer,
        network=network,
        dtype=dtype,
        probes=probes,
        expected=probes.scores(model),
    )


def _scorer(network: Network, tokenizer: str, settings: LanguageSettings) -> TransformersLanguageModel:
    text = LineText(tokenizer, boundary=settings.boundary, start=settings.start, origin=settings.origin)
    return TransformersLanguageModel(network, text, positions=settings.positions)


def _agree(model: TransformersLanguageModel, note: Note) -> str:
    """Limit the positions to a length on which all ways of scoring agree; return a line that says how well.

    Attention may be local without a setting that says so: then fewer tokens are read. If no length is short
    enough, neither is that of the test at loading, and both take the slow way.
    """
    readable = model.positions
    length = readable
    while length >= min(QUICK, readable):
        model.positions = length
        difference = choose_scoring(model, Probes.of(model, length), lambda _: None)
        if difference is not None:
            if length < readable:
                note(f"this language model reads less than its settings say: {length} tokens are used")
            exact = f"to {difference:.0e} nats per token, of up to {length}"
            return f"many hypotheses in one pass score as each alone, {exact}"
        length //= 2
    model.positions = readable
    choose_scoring(model, Probes.of(model), note)
    return "hypotheses are scored one by one: this architecture can't take many in one pass"


def _stored_dtype(
    model: TransformersLanguageModel, probes: Probes, *, packed: bool
) -> tuple[torch.dtype, str]:
    """Choose and describe the smallest lossless type; for packed weights, float16 if scores hardly change."""
    weights = [parameter for parameter in model.network.model.parameters() if parameter.dim()]
    lossless = smallest_lossless(weights)
    if lossless != torch.float32 or not packed:
        return lossless, f"stored without loss as {_name(lossless)}"
    expected = probes.scores(model)
    kept = [weight.detach().clone() for weight in weights]
    for weight in weights:
        weight.data.copy_(weight.detach().half())
    drift = _drift(probes, model, expected)
    if drift <= HALF_TOLERANCE:
        return torch.float16, f"stored as float16, which changes {drift:.0e} nats per token at most"
    for weight, own in zip(weights, kept, strict=True):
        weight.data.copy_(own)
    return torch.float32, "stored without loss as float32"


def _drift(probes: Probes, model: TransformersLanguageModel, expected: Floats) -> float:
    """Measure how far scores are from the expected ones; infinitely far if they are not numbers."""
    try:
        return float(np.abs(probes.scores(model) - expected).max())
    except CadecError:
        return float("inf")


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _weight_files(path: Path) -> tuple[str, ...]:
    """List the files of the weights; if there are several, also the index that names them."""
    for single, index in (
        ("model.safetensors", _INDEX),
        ("pytorch_model.bin", "pytorch_model.bin.index.json"),
    ):
        if (path / single).is_file():
            return (single,)
        if (path / index).is_file():
            listed = read_json(path / index)
            named = listed.get("weight_map") if isinstance(listed, dict) else None
            if not isinstance(named, dict) or not all(_plain(name) for name in named.values()):
                raise CadecError(f"{path / index} is damaged")
            files = tuple(sorted(set(named.values())))
            missing = [name for name in files if not (path / name).is_file()]
            if missing:
                raise CadecError(f"{path} lacks {', '.join(missing)}", "download the whole model")
            return (*files, index)
    raise CadecError(
        f"{path} has no weights (no model.safetensors, no pytorch_model.bin)", "download the whole model"
    )


def _plain(name: object) -> bool:
    return isinstance(name, str) and Path(name).name == name


def _tokenizer(path: Path) -> str:
    """Return the content of tokenizer.json; if there is none, make it from a tokenizer's older files."""
    if (path / "tokenizer.json").is_file():
        with read_errors(path):
            try:
                return (path / "tokenizer.json").read_text("utf-8")
            except UnicodeDecodeError:
                raise CadecError(f"{path / 'tokenizer.json'} is damaged: it is not UTF-8") from None
    if not any((path / name).is_file() for name in ("tokenizer.model", "vocab.json", "spiece.model")):
        raise CadecError(f"{path} has no tokenizer (no tokenizer.json)", "download the whole model")
    with quiet_transformers():
        try:
            made = transformers_library().AutoTokenizer.from_pretrained(
                str(path), local_files_only=True, trust_remote_code=False
            )
            serialised: str = made.backend_tokenizer.to_str()
            return serialised
        except Exception as error:  # whatever a foreign file makes a foreign library raise
            raise CadecError(
                f"the tokenizer of {path} can't be read: {short(error)}", "it needs a tokenizer.json"
            ) from None


def _named_bos(path: Path) -> str | None:
    """The token that begins a text, as the tokenizer's settings name it."""
    if not (path / "tokenizer_config.json").is_file():
        return None
    settings = read_json(path / "tokenizer_config.json")
    token = settings.get("bos_token") if isinstance(settings, dict) else None
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def _start(tokenizer: str, named: str | None, configured: object) -> str | None:
    """Return the token that begins a text: the one that the tokenizer adds, else the one that settings name.

    A GGUF's tokenizer adds none, whatever the file says.
    """
    from tokenizers import Tokenizer

    try:
        made = Tokenizer.from_str(tokenizer)
    except Exception as error:  # the library raises nothing more exact
        raise CadecError(f"tokenizer.json is damaged: {short(error)}") from None
    plain = made.encode("a", add_special_tokens=False).ids
    added = made.encode("a", add_special_tokens=True).ids
    if len(added) > len(plain) and added[1 : len(plain) + 1] == plain:
        return str(made.id_to_token(added[0]))
    if named is not None and made.token_to_id(named) is not None:
        return named
    token = made.id_to_token(configured) if isinstance(configured, int) and configured >= 0 else None
    return None if token is None else str(token)
