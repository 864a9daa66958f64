"""Converts a Hugging Face translation model with CTranslate2's own converter, and verifies the result.

CTranslate2's converter trusts the configuration, and takes the vocabulary from transformers' tokenizer; both
can mislead it. So the network is read once, in float32; the vocabulary is made here; and the converted model
is compared with the network before anything is written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cadec_cli.engines.compute_types import check_compute_type
from cadec_cli.engines.ctranslate2 import Framing, framing_for
from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import atomic_directory, write_errors
from cadec_cli.fs.read import read_json
from cadec_cli.models.huggingface import quiet_transformers, short, transformers_library
from cadec_cli.models.pretrained_settings import TextSettings, TranslationSettings, check_configuration
from converters.request import PretrainedRequest
from converters.translation.huggingface_families import (
    Direction,
    ModelDescription,
    direction_of,
    family_of,
    start_of,
)
from converters.translation.huggingface_tokenizers import ORDINARY, Original, Sides, agreeing_sides
from converters.verify import Drift, stated_licence, weights_checksum

_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")  # in transformers' order of preference

# More rows than tokens are normal, up to a round number: T5 has 28, others fill up to multiples of 1,024.
_MAX_UNUSED_ROWS = 1024

# How far the scores of the written network may be from the original's, in nats per token.
NETWORK_TOLERANCE = 1e-3

# Positions of models without a table of positions: how long their sentences were in training.
_RELATIVE_POSITIONS = 512


def open_huggingface(directory: Path, request: PretrainedRequest) -> HuggingFaceImport:
    """Read a directory and check that its parts fit. The network is read when it is converted."""
    library = transformers_library()
    config = _json(directory / "config.json")
    family_of(config, directory)
    weights = _weight_files(directory)
    with quiet_transformers():
        full = {**_complete_config(library, directory), **config}
        tokenizer = _tokenizer(library, directory)
        tokens = _vocabulary(tokenizer, full, directory)
        direction = direction_of(
            ModelDescription(
                name=_origin(directory, config),
                config=full,
                tokenizer_config=_json(directory / "tokenizer_config.json", optional=True),
                tokenizer=tokenizer,
                tokens=tokens,
                source_language=request.source_language,
                target_language=request.target_language,
            )
        )
        _report_languages(tokenizer, direction)
        settings_without_texts = _settings(directory, config, full, direction, weights, tokens)
        framing = framing_for(
            settings_without_texts, direction.source_token or None, direction.target_token or None
        )
        sides = agreeing_sides(directory, Original(tokenizer, direction), tokens, framing, request.note)
    settings = _with_texts(settings_without_texts, sides)
    return HuggingFaceImport(directory, settings, direction, framing, sides, tuple(tokens))


@dataclass(frozen=True)
class HuggingFaceImport:
    """A Hugging Face translation model whose tokenizer can be reproduced."""

    directory: Path
    settings: TranslationSettings
    direction: Direction
    framing: Framing
    sides: Sides
    tokens: tuple[str, ...]

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """The default direction."""
        return self.direction.languages

    @property
    def files(self) -> Mapping[str, Path]:
        """The tokenizers' files."""
        names = (*self.settings.source.files, *self.settings.target.files)
        return {name: self.directory / name for name in names}

    def convert(self, output: Path, compute_type: str) -> Drift:
        """Write it as a CTranslate2 model, after checking that it scores as the original does in float32."""
        from cadec_cli.models.storage import model_state
        from converters.own_networks import quantise, weight_misfits
        from converters.translation.huggingface_network import TransformersNetwork
        from converters.verify import drift_from

        check_compute_type(compute_type)
        with quiet_transformers():
            network = TransformersNetwork.read(self.directory, self.direction, self.tokens)
            wrong = weight_misfits(model_state(network.network), compute_type)
            if wrong:
                raise CadecError(
                    f"{self.settings.origin} can't be converted to {compute_type}: {'; '.join(wrong[:5])}",
                    "nothing was written",
                )
            probes = self._probes()
            framed = [probes.framing.frame(source) for source in probes.sources]
            # Computed before CTranslate2 touches the weights.
            expected = network.log_probs(framed, probes.targets, self.framing.target_begin)
            with atomic_directory(output) as part:
                for kind in dict.fromkeys(("float32", compute_type)):
                    for old in part.iterdir():
                        old.unlink()
                    spec = network.spec()
                    quantise(spec, kind)
                    spec.save(str(part))
                    drift = drift_from(lambda _, __: expected, part, kind, probes)
                    drift.check()
        return drift

    def write_network(self, directory: Path) -> None:
        """Write the network as transformers does; a CadecError if the written copy scores differently."""
        from converters.translation.huggingface_network import TransformersNetwork

        with quiet_transformers(), write_errors(directory):
            network = TransformersNetwork.read(self.directory, self.direction, self.tokens)
            directory.mkdir()
            probes = self._probes()
            framed = [probes.framing.frame(source) for source in probes.sources]
            expected = network.log_probs(framed, probes.targets, self.framing.target_begin)
            network.save(directory)
            del network  # before a second one is in memory
            again = TransformersNetwork.read(directory, self.direction, self.tokens)
            said = again.log_probs(framed, probes.targets, self.framing.target_begin)
        apart = max(
            abs(ours - theirs)
            for one, other in zip(said, expected, strict=True)
            for ours, theirs in zip(one, other, strict=True)
        )
        if not apart <= NETWORK_TOLERANCE:
            raise CadecError(
                f"the network of {self.settings.origin} scores differently after it is written, by "
                f"{apart:.1g} nats",
                f"leave out {option('for-beam')}: reranking does not need it",
            )

    def _probes(self) -> Any:
        from converters.verify import Probes, random_probes

        known = set(self.tokens)
        room = self.settings.positions - self.framing.source_size - len(self.framing.target_begin) - 1
        pieces = [
            [piece for piece in text.pieces if piece in known]
            for text in (self.sides.source, self.sides.target)
        ]
        texts = [
            (self._pieces(self.sides.source.encode(one)), self._pieces(self.sides.target.encode(other)))
            for one, other in zip(ORDINARY, (*ORDINARY[1:], ORDINARY[0]), strict=True)
        ]
        fitting = [pair for pair in texts if max(map(len, pair)) <= room]
        given = Probes(self.framing, [one for one, _ in fitting], [other for _, other in fitting])
        return random_probes(self.framing, pieces[0], pieces[1], room, given)

    def _pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.tokens[index] for index in ids]


def _json(path: Path, *, optional: bool = False) -> dict[str, Any]:
    if not path.is_file():
        if optional:
            return {}
        raise CadecError(f"{path.parent} is not a Hugging Face model: it has no {path.name}")
    value = read_json(path)
    if not isinstance(value, dict):
        raise CadecError(f"{path} is not a JSON object of settings")
    return value


def _weight_files(directory: Path) -> list[Path]:
    for pattern in _WEIGHTS:
        if found := sorted(directory.glob(pattern)):
            return found
    raise CadecError(
        f"{directory} has no weights: neither model.safetensors nor pytorch_model.bin",
        "download the whole model; weights of TensorFlow or Flax can't be read",
    )


def _tokenizer(library: Any, directory: Path) -> Any:
    try:
        return library.AutoTokenizer.from_pretrained(
            str(directory), local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # unreadable tokenizers raise errors of many kinds
        reason = short(error)
        hint = "are all of its files there?"
        if "protobuf" in reason or "tiktoken" in reason:
            hint = "pip install protobuf, with which transformers reads SentencePiece models"
        raise CadecError(f"transformers can't read the tokenizer of {directory}: {reason}", hint) from None


def _complete_config(library: Any, directory: Path) -> dict[str, Any]:
    """The configuration as transformers completes it: files leave defaults out."""
    try:
        config = library.AutoConfig.from_pretrained(
            str(directory), local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # invalid settings raise errors of many kinds
        raise CadecError(
            f"transformers can't read {directory}/config.json: {short(error)}", "nothing was written"
        ) from None
    check_configuration(config, str(directory))
    settings: dict[str, Any] = config.to_dict()
    return settings


def _vocabulary(tokenizer: Any, config: Mapping[str, Any], directory: Path) -> list[str]:
    """A token for every row of the embedding, in the model's order."""
    if getattr(tokenizer, "separate_vocabs", False):
        raise CadecError(
            f"{directory} has a vocabulary for each side, which CTranslate2's converter can't take",
            "convert the original Marian model instead",
        )
    # M2M100's language tokens come after its vocabulary, which does not always include them.
    named = {**tokenizer.get_vocab(), **getattr(tokenizer, "lang_token_to_id", {})}
    rows = config.get("vocab_size")
    if type(rows) is not int or not 1 <= rows <= 1 << 24:
        raise CadecError(f"{directory}/config.json does not say how large the vocabulary is")
    if not all(type(index) is int and index >= 0 for index in named.values()):
        raise CadecError(f"the tokenizer of {directory} has tokens with invalid ids")
    special = set(tokenizer.all_special_tokens)
    # An unused mask token may come after the last row; the padding may not.
    special.discard(tokenizer.pad_token)
    beyond = [token for token, index in named.items() if index >= rows and token not in special]
    unused = rows - sum(index < rows for index in named.values())
    if beyond or unused > _MAX_UNUSED_ROWS:
        raise CadecError(
            f"the tokenizer of {directory} does not belong to the model: it has {len(named):,} tokens, "
            f"the model {rows:,}",
            "nothing was written",
        )
    by_row = {index: token for token, index in named.items()}
    tokens = [by_row.get(index, f"<unused_row_{index}>") for index in range(rows)]
    if config["model_type"] == "marian":
        return _without_padding(tokens, directory)
    return tokens


def _without_padding(tokens: list[str], directory: Path) -> list[str]:
    """Return Marian's own vocabulary, without the token that transformers adds to start the decoder from."""
    if tokens[-1] != "<pad>":
        raise CadecError(
            f"the vocabulary of {directory} does not end with <pad>, as a MarianMT model's must",
            "nothing was written",
        )
    return tokens[:-1]


def _report_languages(tokenizer: Any, direction: Direction) -> None:
    """Set transformers' tokenizer to the default direction."""
    if hasattr(tokenizer, "src_lang") and direction.source_token:
        tokenizer.src_lang = direction.source_token.strip("_")
    if hasattr(tokenizer, "tgt_lang") and direction.target_token:
        tokenizer.tgt_lang = direction.target_token.strip("_")


def _settings(
    directory: Path,
    config: Mapping[str, Any],
    full: Mapping[str, Any],
    direction: Direction,
    weights: Sequence[Path],
    tokens: Sequence[str],
) -> TranslationSettings:
    positions = full.get("max_position_embeddings") or full.get("n_positions") or _RELATIVE_POSITIONS
    nothing = TextSettings(kind="", files=())
    return TranslationSettings(
        family=direction.family,
        origin=_origin(directory, config),
        licence=stated_licence(directory),
        weights=weights_checksum(weights),
        positions=int(positions),
        source=nothing,
        target=nothing,
        source_begin=direction.source_begin,
        source_end=direction.source_end,
        target_begin=direction.target_begin,
        source_languages=direction.source_languages,
        target_languages=direction.target_languages,
        start=start_of(direction, {token: index for index, token in enumerate(tokens)}),
    )


def _with_texts(settings: TranslationSettings, sides: Sides) -> TranslationSettings:
    library = transformers_library()
    return dataclasses.replace(
        settings,
        source=sides.source_settings,
        target=sides.target_settings,
        verified=f"against transformers {library.__version__}, token by token",
    )


def _origin(directory: Path, config: Mapping[str, Any]) -> str:
    """The model's name: from the hub's cache, from its configuration, or that of the directory."""
    for part in directory.resolve().parts:
        if part.startswith("models--"):
            return part.removeprefix("models--").replace("--", "/")
    named = config.get("_name_or_path")
    if isinstance(named, str) and named.strip("/."):
        return "/".join(Path(named).parts[-2:]).lstrip("/")
    return directory.resolve().name
