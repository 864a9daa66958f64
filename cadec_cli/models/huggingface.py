"""Networks of the transformers library: causal language models and translation models, loaded and run.

Models are read from local files only, and never with code that came with a model. For each architecture this
module knows what happens to the logits after the output layer. `engines.transformers_lm` tests whether that
is complete, and whether the architecture supports our masks. transformers is an optional package: without it,
every function here raises one clear error.
"""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn

from cadec_cli.errors import CadecError
from cadec_cli.models import parts_attention
from cadec_cli.models.fitted_output import Finish, FittedOutput, Single
from cadec_cli.models.int8.linear import FineInt8Linear, int8_available
from cadec_cli.models.layers import Cache, Part
from cadec_cli.models.output_layer import TokenLogProbs, logit_log_probs
from cadec_cli.models.pretrained_settings import (
    check_configuration,
    check_room,
    check_stored_configuration,
    weight_bytes,
)


def transformers_library() -> Any:
    """Import and return the transformers library; a CadecError if it is not installed."""
    try:
        import transformers
    except ImportError:
        raise CadecError(
            "models of Hugging Face and GGUF files need the transformers package",
            "pip install 'cadec[huggingface]'",
        ) from None
    return transformers


_quiet_lock = Lock()
_quiet: list[contextlib.ExitStack] = []  # one for each context that is open, in any thread


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """A context without its progress bars, warnings and advice: cadec checks and reports what matters.

    All threads share one: the first that enters it changes the library's settings, the last puts them back.
    """
    with _quiet_lock:
        _quiet.append(contextlib.ExitStack() if _quiet else _silence_transformers())
    try:
        yield
    finally:
        with _quiet_lock:
            # The first holds the settings, and is left last.
            _quiet.pop().close()


def _silence_transformers() -> contextlib.ExitStack:
    """Silence the library until the result is closed."""
    logging = transformers_library().utils.logging
    undo = contextlib.ExitStack()
    undo.callback(logging.set_verbosity, logging.get_verbosity())
    if logging.is_progress_bar_enabled():
        undo.callback(logging.enable_progress_bar)
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    undo.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    return undo


# The most tokens read at once: a D-LM reads a few sentences, and the cost of attention grows quadratically.
MAX_POSITIONS = 1024


def load_config(directory: Path) -> Any:
    """The configuration of a causal language model; that of any other model is a CadecError."""
    check_stored_configuration(directory)
    with quiet_transformers():
        try:
            config = transformers_library().AutoConfig.from_pretrained(
                str(directory), local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # a damaged file can make the library raise anything
            raise CadecError(f"{directory} can't be read as a Hugging Face model: {short(error)}") from None
    check_causal(config, str(directory))
    check_configuration(config, str(directory))
    return config


def check_causal(config: Any, origin: str) -> None:
    """Refuse a configuration that is not of a causal language model."""
    known = transformers_library().models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    names = {name for given in known.values() for name in ([given] if isinstance(given, str) else given)}
    architectures = getattr(config, "architectures", None) or []
    if not isinstance(architectures, list) or not all(isinstance(name, str) for name in architectures):
        raise CadecError(f"{origin}/config.json does not name the architectures of its model in a list")
    what = ", ".join(architectures) or config.model_type
    if getattr(config, "is_encoder_decoder", False):
        raise CadecError(
            f"{origin} is an encoder-decoder ({what}), not a language model",
            "a D-LM is a causal language model: GPT-2, Llama, Gemma, Qwen …",
        )
    if config.model_type not in known or (architectures and not names & set(architectures)):
        raise CadecError(
            f"{origin} is not a causal language model that transformers supports ({what})",
            "a D-LM predicts the next token from those before it: GPT-2, Llama, Gemma, Qwen …",
        )


def load_network(directory: Path, *, pickled: bool = False) -> Network:
    """Load the network in a directory, in float32. `pickled` weights are of an older format.

    Only tensors are ever unpickled.
    """
    config = load_config(directory)
    # A weight takes half a byte and more.
    files = directory.glob("*.bin" if pickled else "*.safetensors")
    check_room(empty_network(config), 2 * weight_bytes(files), str(directory))
    with quiet_transformers():
        try:
            model, report = transformers_library().AutoModelForCausalLM.from_pretrained(
                str(directory),
                config=config,
                dtype=torch.float32,
                attn_implementation=_attention(config),
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=not pickled,
                weights_only=True,
                output_loading_info=True,
            )
        except Exception as error:  # a damaged file can make the library raise anything
            raise CadecError(f"{directory} can't be loaded: {short(error)}") from None
    # transformers would fill missing weights with random numbers, without an error.
    _refuse_missing([*report["missing_keys"], *report["mismatched_keys"]], str(directory))
    check_finite(model, str(directory))
    return Network(model.eval().requires_grad_(False))


def empty_network(config: Any) -> Any:
    """A model of this shape, to be filled: no memory is taken for its weights."""
    with torch.device("meta"):
        try:
            return new_model(config)
        except Exception as error:  # an invalid configuration can make the library raise anything
            raise CadecError(f"no model can be built from this configuration: {short(error)}") from None


def new_model(config: Any) -> Any:
    """A model of this shape with random weights."""
    with quiet_transformers():
        return transformers_library().AutoModelForCausalLM.from_config(
            config, dtype=torch.float32, attn_implementation=_attention(config), trust_remote_code=False
        )


def network_from_weights(config: Any, state: dict[str, Tensor], origin: str) -> Network:
    """A network of this shape with these weights."""
    # Not on "meta": values that are computed and not stored, such as rotary frequencies, must be real.
    model = new_model(config)
    try:
        found = model.load_state_dict(state, strict=False, assign=True)
    except RuntimeError as error:
        raise CadecError(f"the weights in {origin} do not fit: {short(error)}") from None
    model.tie_weights()
    tied = set(getattr(model, "all_tied_weights_keys", None) or ())
    _refuse_missing([name for name in found.missing_keys if name not in tied], origin)
    check_finite(model, origin)
    return Network(model.eval().requires_grad_(False))


def smallest_lossless(weights: Sequence[Tensor]) -> torch.dtype:
    """The smallest type that stores all of these weights without loss."""
    for dtype in (torch.bfloat16, torch.float16):
        if all(torch.equal(weight.to(dtype).float(), weight) for weight in weights):
            return dtype
    return torch.float32


def _refuse_missing(names: Iterable[Any], origin: str) -> None:
    missing = sorted(map(str, names))
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise CadecError(
            f"{origin} lacks weights, or has them in other shapes: {', '.join(missing[:5])}{more}"
        )


def check_finite(model: nn.Module, origin: str) -> None:
    """Refuse NaN and infinite weights."""
    for name, weight in model.named_parameters():
        # The sum of plausible weights is finite if all of them are; a mask of all weights would take as much
        # memory again.
        if not torch.isfinite(weight.sum()):
            raise CadecError(f"the weights of {origin} hold NaN or infinite values: {name}")


def readable_positions(config: Any) -> int:
    """The most tokens that can be read with a mask of ours: within its positions and any window."""
    text = config.get_text_config()
    limits = [MAX_POSITIONS]
    for name in ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"):
        limits.append(getattr(text, name, None) or MAX_POSITIONS)
    if getattr(text, "use_sliding_window", True):
        limits.append(getattr(text, "sliding_window", None) or MAX_POSITIONS)
    for name in ("attention_chunk_size", "window_size"):
        limits.append(getattr(text, name, None) or MAX_POSITIONS)
    return min(limit for limit in limits if isinstance(limit, int) and limit > 0)


class Network:
    """A causal language model of transformers: hidden states, their logits, and its own forward pass."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.config = model.config.get_text_config()
        self.dtype = torch.float32  # of the values between its layers
        self.fitted: FittedOutput | None = None  # if the softmax is over a part of the vocabulary
        self._keeps = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._scale = _logit_scale(self.config)

    def quiet(self) -> contextlib.AbstractContextManager[None]:
        """A context in which the library that runs it says nothing."""
        return quiet_transformers()

    @property
    def vocabulary(self) -> int:
        """The rows of the output layer; some may have no token."""
        return int(self.config.vocab_size)

    @property
    def predicted(self) -> int:
        """The number of tokens that the softmax is over."""
        return self.vocabulary if self.fitted is None else len(self.fitted)

    @property
    def token_log_probs(self) -> TokenLogProbs:
        """log p of given tokens after rows of the last layer."""
        return logit_log_probs(self.logits) if self.fitted is None else self.fitted.log_probs

    @property
    def token_log_probs_of_logits(self) -> TokenLogProbs:
        """The same after rows of `own_logits`."""
        # A copy, which may be divided in place.
        return logit_log_probs(torch.clone) if self.fitted is None else self.fitted.log_probs_of_logits

    def fit(self, tokens: Tensor) -> None:
        """Predict only these tokens (rising ids), and any other as one more.

        Their rows of the output layer are copied; to int8, they become int8 too.
        """
        output = self.model.get_output_embeddings()
        bias = getattr(output, "bias", None)
        part = nn.Linear(output.weight.size(1), len(tokens), bias=bias is not None, device="meta")
        part.weight = nn.Parameter(output.weight.detach()[tokens], requires_grad=False)
        if bias is not None:
            part.bias = nn.Parameter(bias.detach()[tokens], requires_grad=False)
        self.fitted = FittedOutput(
            tokens,
            part,
            single_logits(lambda: output.weight, lambda: getattr(output, "bias", None)),
            self.finish,
        )

    @property
    def attends_in_parts(self) -> bool:
        """Whether the parts of a row attend to themselves only, without a mask for the whole row."""
        return bool(self.config._attn_implementation == parts_attention.NAME)

    def attend_in_parts(self, wanted: bool) -> None:
        """Choose whether parts of a row attend to themselves only. Not every architecture can."""
        if wanted != self.attends_in_parts and self.config._attn_implementation in (
            "sdpa",
            parts_attention.NAME,
        ):
            self.model.set_attn_implementation(parts_attention.register() if wanted else "sdpa")

    @property
    def device(self) -> torch.device:
        """The device that it computes on."""
        return next(self.model.parameters()).device  # type: ignore[no-any-return]  # transformers is untyped

    def hidden_states(self, tokens: Tensor, positions: Tensor, seen: Tensor, cache: Cache | None) -> Tensor:
        """The last layer (1, L, D) of one row; `seen` (L, S + L) is True where a token may attend.

        The S keys of the cache come before the new ones, which are appended to it.
        """
        # A float mask: "eager" attention would add a boolean one as numbers.
        mask = torch.zeros(seen.shape, dtype=self.dtype, device=seen.device)
        mask.masked_fill_(~seen, torch.finfo(self.dtype).min)
        return self._run(tokens, positions, mask[None, None], cache)

    def _run(self, tokens: Tensor, positions: Tensor, mask: Tensor, cache: Cache | None) -> Tensor:
        # Without a configuration it keeps all keys, also of layers with a sliding window.
        keys: Any = None if cache is None else transformers_library().DynamicCache(cache.layers or None)
        made = self.model.base_model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=keys,
            use_cache=keys is not None,
        )
        if cache is not None:
            cache.layers[:] = [(layer.keys, layer.values) for layer in keys.layers]
        hidden: Tensor = made.last_hidden_state
        return hidden

    def hidden_states_of_parts(
        self, tokens: Tensor, positions: Tensor, parts: Sequence[Part], cache: Cache | None
    ) -> Tensor:
        """The same, where each part of the row attends to keys of its own."""
        # Its values are not read, but a mask of four dimensions keeps the network from making one.
        unread = torch.zeros(1, 1, 1, 1, dtype=self.dtype, device=tokens.device)
        with parts_attention.attention_in_parts(parts):
            return self._run(tokens, positions, unread, cache)

    def logits(self, hidden: Tensor) -> Tensor:
        """(rows, D) → (rows, V)."""
        return self.scale_logits(self.model.get_output_embeddings()(hidden))

    @property
    def finish(self) -> Finish | None:
        """What is done to the products of the output layer; None if they are the logits."""
        cap = getattr(self.config, "final_logit_softcapping", None)
        return self.scale_logits if cap or self._scale != 1 else None

    def scale_logits(self, logits: Tensor) -> Tensor:
        """Apply the architecture's scale and softcap to the logits of the output layer."""
        # Multiplication by 1 is skipped: copying rows as wide as the vocabulary takes as long as a product.
        cap = getattr(self.config, "final_logit_softcapping", None)  # Gemma 2
        if cap:
            logits = (logits / cap).tanh() * cap
        if self._scale != 1:
            logits = logits * self._scale
        return logits

    def own_logits(self, tokens: Tensor, real: Tensor | None, last: int) -> Tensor:
        """Logits (B, ≤ T, V) of at least the `last` positions, by the model's own forward pass.

        tokens (B, T) are padded on the right; `real` (B, T) is False for padding.
        """
        keep = {"logits_to_keep": last} if self._keeps else {}
        mask = None if real is None else real.long()
        made = self.model(input_ids=tokens, attention_mask=mask, use_cache=False, **keep)
        logits: Tensor = made.logits
        return logits

    def to_int8(self) -> None:
        """Give all linears int8 weights, for a CPU; float weights are freed one by one.

        The input embeddings stay floats, in half precision where that loses nothing.
        """
        if not int8_available():
            raise CadecError(
                "this build of torch has no int8 linears for this machine", "use float32 weights"
            )
        if self.fitted is not None:
            self.fitted.to_int8(FineInt8Linear)
        for parent, name, linear in self.linears():
            setattr(parent, name, FineInt8Linear(linear))
        table = self.model.get_input_embeddings()
        if isinstance(table, nn.Embedding):
            self.model.set_input_embeddings(HalfEmbedding.of(table))

    def linears(self) -> Iterator[tuple[nn.Module, str, nn.Linear]]:
        """The linears, each with the module it is in and its name there; without an output that is fitted."""
        conv1d = transformers_library().pytorch_utils.Conv1D
        whole = None if self.fitted is None else self.model.get_output_embeddings()
        for parent in list(self.model.modules()):
            for name, part in list(parent.named_children()):
                if part is whole:
                    continue
                if type(part) is nn.Linear:
                    yield parent, name, part
                elif type(part) is conv1d:  # GPT-2's linears, written the other way round
                    yield parent, name, _linear(part)

    def to(self, device: torch.device, dtype: torch.dtype) -> None:
        """Move it to a device, and compute in another precision."""
        self.model.to(device, dtype)
        if self.fitted is not None:
            self.fitted.to(device, dtype)
        self.dtype = dtype


def single_logits(table: Callable[[], Tensor], bias: Callable[[], Tensor | None]) -> Single:
    """A function from rows of a last layer and one token for each to the products of the output layer.

    `table` and `bias` give the weights (V, D) and (V) of that layer, in any precision.
    """

    def single(hidden: Tensor, tokens: Tensor) -> Tensor:
        made = (hidden * table()[tokens].to(hidden.dtype)).sum(-1)
        added = bias()
        return made if added is None else made + added[tokens]

    return single


def _logit_scale(config: Any) -> float:
    """The factor that an architecture multiplies its logits by."""
    scale = 1.0
    for name in ("logit_scale", "lm_head_multiplier"):  # Cohere; Falcon-H1
        scale *= float(getattr(config, name, None) or 1)
    return scale / float(getattr(config, "logits_scaling", None) or 1)  # Granite


class HalfEmbedding(nn.Module):
    """An embedding table stored in half precision that returns the same float32 rows as the original.

    It is most of a model with 262,144 tokens, and only a few of its rows are used at once.
    """

    def __init__(self, embedding: nn.Embedding, table: Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", table, persistent=False)
        # It still does what its class does to the rows (Gemma's scales them), with a table of the few in use.
        embedding.weight = nn.Parameter(table.new_empty(0, table.size(1), dtype=torch.float32), False)
        embedding.padding_idx = None
        self._embedding = embedding

    @staticmethod
    def of(embedding: nn.Embedding) -> nn.Module:
        """Make such a table; return the given one if half precision would lose something."""
        weight = embedding.weight.detach()
        starts = range(0, len(weight), 8192)
        for dtype in (torch.bfloat16, torch.float16):
            table = torch.empty(weight.shape, dtype=dtype)
            if all(_fits(weight[start : start + 8192], table[start : start + 8192]) for start in starts):
                return HalfEmbedding(embedding, table)
        return embedding

    def forward(self, tokens: Tensor) -> Tensor:
        """(…) → (…, D)."""
        used, inverse = torch.unique(tokens, return_inverse=True)
        rows = self.get_buffer("weight")[used].float()
        made: Tensor = torch.func.functional_call(self._embedding, {"weight": rows}, (inverse,))
        return made


def _fits(weight: Tensor, half: Tensor) -> bool:
    """Copy weights into a half-precision table, and tell whether nothing was lost."""
    half.copy_(weight)
    return torch.equal(half.float(), weight)


def _linear(conv1d: Any) -> nn.Linear:
    inputs, outputs = conv1d.weight.shape
    made = nn.Linear(inputs, outputs, device="meta")
    made.weight = nn.Parameter(conv1d.weight.detach().T.contiguous(), requires_grad=False)
    made.bias = nn.Parameter(conv1d.bias.detach(), requires_grad=False)
    return made


def _attention(config: Any) -> str:
    """The attention to ask for: `sdpa` if the architecture has it; Gemma 2's softcapping prevents it."""
    models = transformers_library().models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING
    return "sdpa" if getattr(models[type(config)], "_supports_sdpa", False) else "eager"


def short(error: Exception) -> str:
    """The message of another library's error, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text if len(text) < 300 else f"{text[:300]} …"


def load_translation_network(directory: Path, *, pickled: bool = False) -> Any:
    """Load the network in a directory, in float32; missing or misshapen weights are a CadecError.

    With `pickled`, weights may be of an older format; only tensors are ever unpickled.
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
    except Exception as error:  # damaged files cause errors of many kinds
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
    """Refuse a network that is larger than its files, before memory is allocated for it."""
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
    except Exception as error:  # invalid configurations cause errors of many kinds
        reason = " ".join(str(error).split())[:200]
        raise CadecError(f"transformers can't read the model in {directory}: {reason}") from None
    # A weight takes half a byte and more.
    files = [*directory.glob("*.safetensors"), *directory.glob("*.bin")]
    check_room(outline, 2 * weight_bytes(files), str(directory))
