"""Settings of a pretrained model in a bundle: JSON that converters write and engines read, checked when read.

Also checks the sizes in other toolkits' configurations, before a network of these sizes is built. Nothing
here imports torch or a tokenizer.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import read_json
from cadec_cli.text.languages import language_misfit
from cadec_cli.text.tokenizers.line_text import PairTemplate
from cadec_cli.text.tokenizers.vocabulary import TextSettings as TextSettings
from cadec_cli.validation import Bound, Number, Whole, field_misfits, misfits, quote_value, text_misfit

LAYERS, HEADS = Whole(1, 1024), Whole(1, 1 << 12)
# For tables that are computed, and therefore not in a file.
POSITIONS = Whole(1, 1 << 16)
_WIDTH, _TOKENS = Whole(1, 1 << 20), Whole(1, 1 << 24)
_LABELS = Whole(0, 1 << 16)  # each label gets a name
_MORE_LAYERS, _MORE = Whole(0, LAYERS.most), Whole(-1, 1 << 24)

# The names of sizes in configurations. No other field makes a network take more memory.
_SIZES: Mapping[Whole, tuple[str, ...]] = {
    LAYERS: ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers"),
    _MORE_LAYERS: ("num_decoder_layers", "num_encoder_layers", "num_nextn_predict_layers", "num_mem_blocks"),
    HEADS: (
        "num_attention_heads",
        "n_head",
        "num_heads",
        "encoder_attention_heads",
        "decoder_attention_heads",
    ),
    _WIDTH: (
        *("hidden_size", "n_embd", "d_model", "intermediate_size", "ffn_dim", "d_ff", "d_kv", "head_dim"),
        *("encoder_ffn_dim", "decoder_ffn_dim", "word_embed_proj_dim", "embedding_size", "n_inner"),
    ),
    _TOKENS: ("vocab_size", "decoder_vocab_size"),
    _LABELS: ("num_labels",),
    _MORE: (
        *("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length", "sliding_window"),
        *("num_experts", "num_local_experts", "n_routed_experts", "num_key_value_heads", "num_buckets"),
    ),
}
_BOUNDS = {name: bound for bound, names in _SIZES.items() for name in names}

# The most numbers in tables that are computed when a network is built, such as sinusoids.
_MAX_COMPUTED = 1 << 28

# The fields that logits are multiplied or divided by.
_SCALES = ("logit_scale", "lm_head_multiplier", "logits_scaling", "final_logit_softcapping")
_SCALE = Number(-1e6, 1e6)

# The fields that could name code to run.
_CODE = ("attn_implementation", "_attn_implementation")


def check_configuration(config: Any, origin: str) -> None:
    """Refuse a configuration of transformers with implausible sizes, or one that names code to download."""
    wrong = []
    for name, value in _fields(config if isinstance(config, Mapping) else config.to_dict()):
        bound = _BOUNDS.get(name)
        several = value if isinstance(value, list | tuple) else [value]  # some have one value per layer
        if bound is not None and not all(one is None or bound.allows(one) for one in several):
            wrong.append(f"{name} must be {bound}, not {quote_value(value)}")
        if name in _SCALES and value is not None and not _SCALE.allows(value):
            wrong.append(f"{name} must be {_SCALE}, not {quote_value(value)}")
        if name in _CODE and isinstance(value, str) and "/" in value:
            wrong.append(f"{name} must not be code from elsewhere, as {quote_value(value)} is")
    if wrong:
        raise CadecError(f"the configuration of {origin} is not valid: {'; '.join(wrong[:8])}")


def check_stored_configuration(directory: Path) -> None:
    """Check the stored configuration of a model before transformers builds tables of these sizes."""
    path = directory / "config.json"
    config = read_json(path) if path.is_file() else {}
    if isinstance(config, Mapping):
        check_configuration(config, str(directory))


def check_room(outline: Any, most: int, origin: str) -> None:
    """Refuse a network with more weights than its files can hold. `outline` has no memory yet."""
    weights = sum(weight.numel() for weight in outline.parameters())
    if weights > most:
        raise CadecError(
            f"the configuration of {origin} asks for {weights:,} weights, which its files can't hold",
            "it belongs to another model, or the files are not complete",
        )
    computed = sum(table.numel() for table in outline.buffers())
    if computed > _MAX_COMPUTED:
        raise CadecError(f"the configuration of {origin} asks for tables of {computed:,} numbers")


def weight_bytes(files: Iterable[Path]) -> int:
    """The total size of files of weights; missing and hidden files do not count."""
    return sum(path.stat().st_size for path in files if path.is_file() and not path.name.startswith("."))


def _fields(value: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """All fields of a configuration, nested ones included, such as the text part of a multimodal model."""
    for name, inner in value.items():
        yield str(name), inner
        if isinstance(inner, Mapping):
            yield from _fields(inner)


FORMAT_VERSION = 1
# The directory in which a fine-tuning run keeps its original model; its run.json names it too.
ORIGIN = "origin"
_AGAIN = "build the bundle again with `cadec convert`"
TRANSLATION_SETTINGS = "translation-model.json"
LANGUAGE_SETTINGS = "language-model.json"
# The tokens that a D-LM predicts and its int8 weights, if it is fitted to an S-NMT (`models.fitted_lm`).
FITTED = "fitted.safetensors"

# The directory of the network that torch steps, beside the settings of an S-NMT.
NETWORK = "network"

# More than any model reads at once, and more than any vocabulary has.
_MOST_POSITIONS, _MOST_TOKENS = 1 << 20, 1 << 24
# The longest text that is shown of a model: its name, its licence, how it was verified.
MAX_TEXT_LENGTH = 2000
# The most texts that stand for no context, and their characters: each sentence is scored after every text.
_MOST_CONTEXTS, _MOST_CONTEXT = 64, 10_000

# Placeholders for the two languages' tokens, in `source_begin`, `source_end` and `target_begin`.
SOURCE, TARGET = "{source}", "{target}"


@dataclass(frozen=True, kw_only=True)
class TranslationSettings:
    """An S-NMT of another toolkit, run by CTranslate2."""

    family: str  # marian, nllb, fairseq …, as the converter recognised it
    origin: str  # the name it had where it came from
    licence: str | None  # as its authors state it
    weights: str  # a checksum of the original's weights
    positions: int  # the most source tokens, those around the sentence included
    source: TextSettings
    target: TextSettings
    source_begin: tuple[str, ...] = ()  # tokens around every source sentence, and before every translation
    source_end: tuple[str, ...] = ()
    target_begin: tuple[str, ...] = ()
    source_languages: tuple[str, ...] = ()  # the model's own tokens, where it has any
    target_languages: tuple[str, ...] = ()
    start: int | None = None  # the id that its network in torch starts from, if it can be kept
    verified: str = ""  # how its output was compared with the original's

    def __post_init__(self) -> None:
        shown = ("family", "origin", "licence", "weights", "verified")
        _check(self, {"positions": Whole(8, _MOST_POSITIONS)}, shown)
        if self.start is not None:
            _check(self, {"start": Whole(0, _MOST_TOKENS)})
        for side in (self.source, self.target):
            _refuse([f"{quote_value(name)} is not a file name" for name in side.files if not _is_plain(name)])
        _refuse(
            [
                problem
                for token in (*self.source_languages, *self.target_languages)
                if (problem := language_misfit(token))
            ]
        )

    def details(self) -> dict[str, str]:
        """The texts that `cadec info` shows, by name."""
        shown = _details(self)
        for side, languages in (("from", self.source_languages), ("to", self.target_languages)):
            if languages:
                shown[side] = f"{len(languages)} languages: {' '.join(languages)}"
        return _with_verification(shown, self)


@dataclass(frozen=True, kw_only=True)
class LanguageSettings:
    """A pretrained causal language model as a D-LM, run by transformers."""

    family: str  # gpt2, gemma3_text …: transformers' model_type
    origin: str
    licence: str | None
    weights: str
    positions: int  # the most tokens that it reads: within its positions and its sliding window
    boundary: str  # the text that ends a sentence: one token, a line break
    start: str | None  # the token that begins every sequence; None: the boundary
    no_context: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    verified: str = ""
    vocabulary: int | None = None  # the number of tokens that the softmax is over; None: all of them
    template: str | None = None  # how it reads pairs of sentences; None: nobody said that it should

    source_languages: ClassVar[tuple[str, ...]] = ()  # a language model is not asked for a language
    target_languages: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        shown = ("family", "origin", "licence", "weights", "verified")
        _check(self, {"positions": Whole(16, _MOST_POSITIONS)}, shown)
        if self.vocabulary is not None:
            _check(self, {"vocabulary": Whole(1, _MOST_TOKENS)})
        if self.template is not None:
            if len(self.template) > MAX_TEXT_LENGTH:
                _refuse([f"template has more than {MAX_TEXT_LENGTH:,} characters"])
            PairTemplate(self.template)
        _refuse([problem for language in self.no_context if (problem := language_misfit(language))])
        for texts in self.no_context.values():
            if len(texts) > _MOST_CONTEXTS or any(sum(map(len, text)) > _MOST_CONTEXT for text in texts):
                most = f"{_MOST_CONTEXTS} texts of {_MOST_CONTEXT:,} characters"
                _refuse([f"no_context must be at most {most} per language"])

    def details(self) -> dict[str, str]:
        """The texts that `cadec info` shows, by name."""
        texts = ", ".join(sorted(self.no_context))
        shown = {
            **_details(self),
            "boundary": repr(self.boundary),
            "no context": f"the mean over texts in {texts}" if texts else "the start alone",
            "vocabulary": "all tokens" if self.vocabulary is None else f"{self.vocabulary:,} tokens that fit",
            **({} if self.template is None else {"pairs": repr(self.template)}),
        }
        return _with_verification(shown, self)


def _details(settings: TranslationSettings | LanguageSettings) -> dict[str, str]:
    return {"family": settings.family, "positions": str(settings.positions), "weights": settings.weights}


def _with_verification(
    shown: dict[str, str], settings: TranslationSettings | LanguageSettings
) -> dict[str, str]:
    return {**shown, "verified": settings.verified} if settings.verified else shown


def _check(
    settings: TranslationSettings | LanguageSettings, bounds: Mapping[str, Bound], texts: tuple[str, ...] = ()
) -> None:
    """Refuse numbers out of their bounds and texts that can't be shown."""
    values = {name: getattr(settings, name) for name in texts}
    wrong = misfits(settings, bounds)
    wrong += [
        f"{name}: {problem}"
        for name, value in values.items()
        if (value is not None or name != "licence") and (problem := text_misfit(value, MAX_TEXT_LENGTH))
    ]
    _refuse(wrong)


def _refuse(wrong: list[str]) -> None:
    if wrong:
        raise CadecError("these settings of a model are not valid: " + "; ".join(wrong))


def _is_plain(name: str) -> bool:
    """Tell whether a name is a plain file name, without a path."""
    return name not in ("", ".", "..") and "/" not in name and "\\" not in name


def is_fine_tuning(directory: Path) -> bool:
    """Tell whether a directory is a training run that fine-tunes a pretrained language model."""
    if not (directory / "run.json").is_file():
        return False
    record = read_json(directory / "run.json")
    return isinstance(record, dict) and record.get("origin") == ORIGIN


Settings = TypeVar("Settings", TranslationSettings, LanguageSettings)


def write_settings(path: Path, settings: TranslationSettings | LanguageSettings) -> None:
    """Write settings as JSON, beside the files that they describe."""
    value = {"format": FORMAT_VERSION, **dataclasses.asdict(settings)}
    if value.get("template", "") is None:  # earlier settings are written back unchanged
        del value["template"]
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", "utf-8")


def read_translation_settings(directory: Path) -> TranslationSettings:
    """Read the settings of an S-NMT; invalid ones are a CadecError."""

    def parse(value: dict[str, Any]) -> TranslationSettings:
        texts: dict[str, Any] = {side: _text_settings(value.pop(side)) for side in ("source", "target")}
        lists = ("source_begin", "source_end", "target_begin", "source_languages", "target_languages")
        texts.update({name: _strings(value.pop(name)) for name in lists})
        _refuse(field_misfits({**texts, **value}, TranslationSettings))
        return TranslationSettings(**texts, **value)

    return _read(directory / TRANSLATION_SETTINGS, parse)


def read_language_settings(directory: Path) -> LanguageSettings:
    """Read the settings of a D-LM; invalid ones are a CadecError."""

    def parse(value: dict[str, Any]) -> LanguageSettings:
        texts = {
            str(language): tuple(_strings(text) for text in contexts)
            for language, contexts in value.pop("no_context").items()
        }
        _refuse(field_misfits({**value, "no_context": texts}, LanguageSettings))
        return LanguageSettings(no_context=texts, **value)

    return _read(directory / LANGUAGE_SETTINGS, parse)


def _read(path: Path, parse: Callable[[dict[str, Any]], Settings]) -> Settings:
    value = read_json(path, strict=True)
    if not isinstance(value, dict) or value.pop("format", None) != FORMAT_VERSION:
        raise CadecError(
            f"{path} is not of format {FORMAT_VERSION}", "upgrade cadec, or build the bundle again"
        )
    try:
        settings = parse(value)
        _check_types(settings)
        return settings
    except CadecError as error:
        raise CadecError(f"{path}: {error.marked_message}", _AGAIN) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CadecError(
            f"{path} is damaged: {type(error).__name__} {error}",
            _AGAIN,
        ) from None


def _text_settings(value: Mapping[str, Any]) -> TextSettings:
    options = {str(name): _string(given) for name, given in value["options"].items()}
    return TextSettings(kind=_string(value["kind"]), files=_strings(value["files"]), options=options)


def _strings(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise ValueError(f"{quote_value(values)} is not a list")
    return tuple(_string(value) for value in values)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{quote_value(value)} is not a text")
    return value


def _check_types(settings: TranslationSettings | LanguageSettings) -> None:
    """Check the types of texts that parsing does not check."""
    if isinstance(settings, LanguageSettings):
        _string(settings.boundary)
        for text in (settings.start, settings.template):
            if text is not None:
                _string(text)
