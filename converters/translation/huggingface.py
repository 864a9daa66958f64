"""Converts a Hugging Face translation model with CTranslate2's own converter, and verifies the result.

CTranslate2's converter trusts the configuration, and takes the vocabulary from transformers' tokenizer; both
can mislead it. So the network is read once, in float32; the vocabulary is made here; and the converted model
is compared with the network before anything is written.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from ctranslate2.converters import TransformersConverter

from cadec_cli.engines.compute_types import check_compute_type
from cadec_cli.engines.ctranslate2 import Framing, framing_for
from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import atomic_directory, write_errors
from cadec_cli.fs.read import read_json
from cadec_cli.models.huggingface import (
    load_translation_network,
    quiet_transformers,
    short,
    smallest_lossless,
    transformers_library,
)
from cadec_cli.models.pretrained_settings import TextSettings, TranslationSettings, check_configuration
from converters.request import PretrainedRequest
from converters.translation.huggingface_families import (
    ORDINARY,
    START,
    Direction,
    ModelDescription,
    Original,
    Sides,
    agreeing_sides,
    direction_of,
    family_of,
    start_of,
)
from converters.verify import Drift, stated_licence, weights_checksum

_NEVER = -1e4  # a bias that rules a token out, also in float16


@dataclass(frozen=True)
class TransformersNetwork:
    """A network in float32 with the tokens of its vocabulary."""

    network: Any
    directory: Path
    direction: Direction
    tokens: Sequence[str]

    @classmethod
    def read(cls, directory: Path, direction: Direction, tokens: Sequence[str]) -> TransformersNetwork:
        """Read the weights; missing weights, or weights of the wrong size, are a CadecError."""
        network = load_translation_network(directory, pickled=True)
        rows = network.get_input_embeddings().weight.shape[0]
        expected = len(tokens) + (direction.family == "marian")  # plus the padding's row
        if rows != expected:
            raise CadecError(
                f"the tokenizer of {directory} does not belong to the model: it has {expected:,} tokens, the "
                f"model's embedding {rows:,} rows",
                "nothing was written",
            )
        return cls(network, directory, direction, tokens)

    @property
    def starts_from_zero(self) -> bool:
        """Tell whether the decoder starts from a zero vector, as Marian's own does.

        Fine-tuning a MarianMT model with transformers changes the row of its padding, which the decoder
        starts from: outputs are tied to embeddings, and the padding is among the outputs.
        """
        return self.direction.family == "marian" and not self.network.get_input_embeddings().weight[-1].any()

    @torch.inference_mode()
    def log_probs(
        self,
        framed: Sequence[Sequence[str]],
        targets: Sequence[Sequence[str]],
        begin: Sequence[str],
    ) -> list[list[float]]:
        """Return log p of every token of each target, and of its end, after the tokens `begin`."""
        ids = {token: index for index, token in enumerate(self.tokens)}
        end = ids["</s>"]
        first = [self._start(ids), *(ids[token] for token in begin)]
        found = []
        for source, target in zip(framed, targets, strict=True):
            read = torch.tensor([[ids[token] for token in source]])
            written = [ids[token] for token in target]
            logits = self.network(
                input_ids=read,
                attention_mask=torch.ones_like(read),
                decoder_input_ids=torch.tensor([[*first, *written]]),
            ).logits[0, len(begin) :]
            # Marian's padding is not in its vocabulary: transformers never generates it either.
            log_probs = logits[:, : len(self.tokens)].float().log_softmax(-1)
            found.append(log_probs.gather(1, torch.tensor([*written, end])[:, None])[:, 0].tolist())
        return found

    def spec(self) -> Any:
        """Build CTranslate2's specification of the network, with settings that configurations leave out."""
        if self.direction.family == "marian" and not self.starts_from_zero:
            return self._spec_with_start()
        spec = _Converter(self.network, self.directory, self.tokens).build_spec()
        if self.direction.start is not None:
            spec.config.decoder_start_token = self.direction.start
        return spec

    def _spec_with_start(self) -> Any:
        """Build Marian's specification, with the padding's row as a start token."""
        network = copy.deepcopy(self.network)
        start = len(self.tokens)
        # The converter removes the last row, so one that nothing uses is added.
        network.resize_token_embeddings(start + 2, mean_resizing=False)
        with torch.no_grad():
            network.final_logits_bias[0, start] = _NEVER
        spec = _Converter(network, self.directory, [*self.tokens, START]).build_spec()
        spec.decoder.start_from_zero_embedding = False
        spec.config.decoder_start_token = START
        return spec

    def save(self, directory: Path) -> None:
        """Write the network itself, in the smallest type that keeps its weights."""
        weights = [weight for weight in self.network.parameters() if weight.dim()]
        self.network.to(smallest_lossless(weights))
        try:
            self.network.save_pretrained(str(directory))
        finally:
            self.network.float()
        (directory / "generation_config.json").unlink(missing_ok=True)  # the beam is ours
        for file in directory.glob("*.safetensors"):  # created with access for their owner only
            file.chmod((directory / "config.json").stat().st_mode)

    def _start(self, ids: Mapping[str, int]) -> int:
        return start_of(self.direction, ids)


class _Converter(TransformersConverter):  # type: ignore[misc]  # ctranslate2 is not typed
    """CTranslate2's converter for a network in memory, with our vocabulary."""

    def __init__(self, network: Any, directory: Path, tokens: Sequence[str]) -> None:
        super().__init__(str(directory))
        self._network, self._tokens = network, tokens

    def build_spec(self) -> Any:
        """Build the specification, not yet quantised."""
        try:
            return self._load()
        except (ValueError, NotImplementedError, KeyError, AttributeError) as error:
            reason = " ".join(str(error).split())
            raise CadecError(
                f"CTranslate2 can't convert this model: {reason}", "nothing was written"
            ) from None

    def load_model(self, model_class: Any, model_name_or_path: str, **kwargs: Any) -> Any:
        """Return the network in memory."""
        config = self._network.config
        if hasattr(config, "scale_decoder_outputs"):
            # transformers 5 declares the embeddings of every T5 as tied, from which CTranslate2 concludes
            # that outputs are scaled: those of T5 v1.1 and MADLAD are not.
            config.tie_word_embeddings = config.scale_decoder_outputs
        return self._network

    def load_tokenizer(self, tokenizer_class: Any, model_name_or_path: str, **kwargs: Any) -> Any:
        """Return the vocabulary, which is all that the converter asks of a tokenizer."""
        return _Tokens(self._tokens)


class _Tokens:
    """A vocabulary in the form in which CTranslate2's converter asks for it."""

    bos_token, eos_token, unk_token, pad_token = "<s>", "</s>", "<unk>", "<pad>"
    special_tokens_map: Mapping[str, Any] = {}
    num_madeup_words = 0

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self.unk_token_id = list(tokens).index(self.unk_token)

    def get_vocab(self) -> dict[str, int]:
        """Tokens with their ids."""
        return {token: index for index, token in enumerate(self._tokens)}

    def convert_ids_to_tokens(self, index: int) -> str:
        """Return the token of an id; an id beyond the vocabulary is Marian's padding."""
        return self._tokens[index] if index < len(self._tokens) else self.pad_token


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
