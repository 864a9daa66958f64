"""A translation network as transformers runs it, and as CTranslate2's converter takes it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from ctranslate2.converters import TransformersConverter

from cadec_cli.errors import CadecError
from cadec_cli.models.huggingface import load_translation_network, smallest_lossless
from converters.translation.huggingface_families import START, Direction, start_of

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
