"""What a bundle knows of a pretrained model of another toolkit, beside its weights: JSON, checked when read.

No torch and no tokenizer here: these are the words in which converters tell engines how to use a model.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cadec_cli.bounds import Bound, Whole, field_misfits, misfits, quote_value, text_misfit
from cadec_cli.errors import CadecError
from cadec_cli.files import read_json
from cadec_cli.text.languages import language_misfit
from cadec_cli.text.pretrained.settings import TextSettings as TextSettings

FORMAT_VERSION = 1
# Where a run of fine-tuning keeps the model that it started from; its run.json names that too.
ORIGIN = "origin"
TRANSLATION_SETTINGS = "translation-model.json"
LANGUAGE_SETTINGS = "language-model.json"

# Where, beside the settings of an S-NMT, its network is that torch steps.
NETWORK = "network"

# More is not read at once by any model; nor has any as many tokens.
_MOST_POSITIONS, _MOST_TOKENS = 1 << 20, 1 << 24
# Of what is shown of a model: its name, its licence, how it was verified.
MAX_TEXT_LENGTH = 2000
# What is computed for every sentence, once per text.
_MOST_CONTEXTS, _MOST_CONTEXT = 64, 10_000

# Stand for the model's own tokens of the two languages, in `source_begin`, `source_end` and `target_begin`.
SOURCE, TARGET = "{source}", "{target}"


@dataclass(frozen=True, kw_only=True)
class TranslationSettings:
    """An S-NMT of another toolkit, run by CTranslate2."""

    family: str  # marian, nllb, fairseq …: what the converter took it for
    origin: str  # the name it had where it came from
    licence: str | None  # as its authors state it
    weights: str  # a checksum of the original's weights
    positions: int  # source tokens, all that frames them included
    source: TextSettings
    target: TextSettings
    source_begin: tuple[str, ...] = ()  # tokens around every source sentence, and before every translation
    source_end: tuple[str, ...] = ()
    target_begin: tuple[str, ...] = ()
    source_languages: tuple[str, ...] = ()  # the model's own tokens, where it has any
    target_languages: tuple[str, ...] = ()
    start: int | None = None  # the id that its network in torch starts from, where it can be kept
    verified: str = ""  # how it was found to say the same as the original

    def __post_init__(self) -> None:
        told = ("family", "origin", "licence", "weights", "verified")
        _check(self, {"positions": Whole(8, _MOST_POSITIONS)}, told)
        if self.start is not None:
            _check(self, {"start": Whole(0, _MOST_TOKENS)})
        for side in (self.source, self.target):
            _refuse([f"{quote_value(name)} is no file's name" for name in side.files if not _is_plain(name)])
        _refuse(
            [
                problem
                for token in (*self.source_languages, *self.target_languages)
                if (problem := language_misfit(token))
            ]
        )

    @property
    def directions(self) -> bool:
        """Tell whether it is told the languages, and so can serve many."""
        return bool(self.source_languages or self.target_languages)


@dataclass(frozen=True, kw_only=True)
class LanguageSettings:
    """A pretrained causal language model as a D-LM, run by transformers."""

    family: str  # gpt2, gemma3_text …: transformers' model_type
    origin: str
    licence: str | None
    weights: str
    positions: int  # tokens that it reads at most: within its positions and within its sliding window
    boundary: str  # the text that ends a sentence: one token, a line break
    start: str | None  # the token that begins every sequence; the boundary where there is none
    no_context: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    verified: str = ""

    def __post_init__(self) -> None:
        told = ("family", "origin", "licence", "weights", "verified")
        _check(self, {"positions": Whole(16, _MOST_POSITIONS)}, told)
        _refuse([problem for language in self.no_context if (problem := language_misfit(language))])
        for texts in self.no_context.values():
            if len(texts) > _MOST_CONTEXTS or any(sum(map(len, text)) > _MOST_CONTEXT for text in texts):
                most = f"{_MOST_CONTEXTS} texts of {_MOST_CONTEXT:,} characters"
                _refuse([f"no_context must be at most {most} in a language"])


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
        raise CadecError("these can't be the settings of a model: " + "; ".join(wrong))


def _is_plain(name: str) -> bool:
    """Tell whether a name is that of a file in the same directory."""
    return name not in ("", ".", "..") and "/" not in name and "\\" not in name


def is_fine_tuning(directory: Path) -> bool:
    """Tell whether a directory is a training run that goes on with a pretrained language model."""
    if not (directory / "run.json").is_file():
        return False
    record = read_json(directory / "run.json")
    return isinstance(record, dict) and record.get("origin") == ORIGIN


Settings = TypeVar("Settings", TranslationSettings, LanguageSettings)


def write_settings(path: Path, settings: TranslationSettings | LanguageSettings) -> None:
    """Write settings beside the files they speak of."""
    value = {"format": FORMAT_VERSION, **dataclasses.asdict(settings)}
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", "utf-8")


def read_translation_settings(directory: Path) -> TranslationSettings:
    """The settings of an S-NMT; anything odd about them is a CadecError."""

    def parse(value: dict[str, Any]) -> TranslationSettings:
        texts: dict[str, Any] = {side: _text_settings(value.pop(side)) for side in ("source", "target")}
        lists = ("source_begin", "source_end", "target_begin", "source_languages", "target_languages")
        texts.update({name: _strings(value.pop(name)) for name in lists})
        _refuse(field_misfits({**texts, **value}, TranslationSettings))
        return TranslationSettings(**texts, **value)

    return _read(directory / TRANSLATION_SETTINGS, parse)


def read_language_settings(directory: Path) -> LanguageSettings:
    """The settings of a D-LM; anything odd about them is a CadecError."""

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
            f"{path} is not of format {FORMAT_VERSION}", "upgrade cadec, or build the bundle anew"
        )
    try:
        settings = parse(value)
        _check_types(settings)
        return settings
    except CadecError as error:
        raise CadecError(f"{path}: {error.message}", "build the bundle anew with `cadec convert`") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CadecError(
            f"{path} is damaged: {type(error).__name__} {error}", "build the bundle anew with `cadec convert`"
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
    """See that texts which are none of a reader's business are texts all the same."""
    if isinstance(settings, LanguageSettings):
        _string(settings.boundary)
        if settings.start is not None:
            _string(settings.start)
