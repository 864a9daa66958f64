"""The families of Hugging Face translation models: tokens around a sentence, and languages.

Everything here is read from a model's files: its configuration, its tokenizer's class and its vocabulary.
Our tokenizer is checked against the original: it encodes and decodes texts in several scripts as that does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cadec_cli.engines.ctranslate2 import Framing
from cadec_cli.errors import CadecError, option
from cadec_cli.models.pretrained_settings import SOURCE, TARGET
from cadec_cli.text.languages import LANGUAGE_TOKENS, code_of, is_language, iso_code, own_token
from cadec_cli.text.tokenizers import PretrainedText, load_text
from cadec_cli.text.tokenizers.vocabulary import TextSettings, VocabularyText

# The token that Marian's decoder starts from if that is not a zero vector; it is never generated.
START = "<start>"

_TASK = re.compile(r"translation_([a-z]{2,3})_to_([a-z]{2,3})")
_NAMED = re.compile(r"(?:.*[-_/])?([a-z]{2,3})[-_](?:to[-_])?([a-z]{2,3})")


@dataclass(frozen=True, kw_only=True)
class Direction:
    """How the models of a family take their languages, and the default direction."""

    family: str
    source_begin: tuple[str, ...] = ()
    source_end: tuple[str, ...] = ("</s>",)
    target_begin: tuple[str, ...] = ()
    start: str | None = None  # where the decoder starts from; None leaves it to the converter
    text_prefix: str = ""  # written before a sentence for the original, instead of `source_begin`
    source_languages: tuple[str, ...] = ()
    target_languages: tuple[str, ...] = ()
    source_token: str = ""  # the languages' tokens of the default direction, if any
    target_token: str = ""
    languages: tuple[str | None, str | None]


def start_of(direction: Direction, ids: Mapping[str, int]) -> int:
    """The id that a translation starts from."""
    if direction.start is None:  # Marian's padding, after all tokens
        return len(ids)
    return ids[direction.start]


@dataclass(frozen=True)
class ModelDescription:
    """What a directory says about its model, apart from the weights."""

    name: str
    config: Mapping[str, Any]
    tokenizer_config: Mapping[str, Any]
    tokenizer: Any  # transformers'
    tokens: Sequence[str]
    source_language: str | None  # as the user named it
    target_language: str | None


def family_of(config: Mapping[str, Any], directory: Path) -> str:
    """Return the model type of a configuration; an unsupported one is a CadecError."""
    kind = config.get("model_type")
    if kind not in _DIRECTIONS:
        what = f"a {kind} model" if kind else "a model without a model_type"
        raise CadecError(
            f"{directory} is {what}, which can't be converted as a translation model",
            "MarianMT, M2M100, NLLB, mBART and T5 (MADLAD) models of Hugging Face can",
        )
    return str(kind)


def direction_of(described: ModelDescription) -> Direction:
    """Return how a model takes its languages; a language that it does not have is a CadecError."""
    return _DIRECTIONS[described.config["model_type"]](described)


def _marian(described: ModelDescription) -> Direction:
    languages = _languages(described, "marian")
    source, target = _language_or_default(described, one_direction=not languages)
    if not languages:
        return Direction(family="marian", languages=(source, target))
    if target is None:
        raise CadecError(
            f"{described.name} translates into {len(languages)} languages: the target is not given",
            f"say {option('target-language')}; it has "
            f"{' '.join(languages[:12])}{' …' if len(languages) > 12 else ''}",
        )
    token = own_token(target, languages)
    return Direction(
        family="marian",
        source_begin=(TARGET,),
        text_prefix=f"{token} ",
        target_languages=languages,
        target_token=token,
        languages=(source, code_of(token, languages)),
    )


def _m2m100(described: ModelDescription) -> Direction:
    nllb = _languages(described, "nllb")
    languages = nllb or _languages(described, "m2m100")
    source, target = _both(described, languages)
    # How transformers framed NLLB's sources before 4.30, and how some models were fine-tuned.
    legacy = bool(nllb) and bool(getattr(described.tokenizer, "legacy_behaviour", False))
    return Direction(
        family="nllb" if nllb else "m2m100",
        source_begin=() if legacy else (SOURCE,),
        source_end=("</s>", SOURCE) if legacy else ("</s>",),
        target_begin=(TARGET,),
        start=_start(described, "</s>"),
        source_languages=languages,
        target_languages=languages,
        source_token=source,
        target_token=target,
        languages=(code_of(source, languages), code_of(target, languages)),
    )


def _mbart(described: ModelDescription) -> Direction:
    languages = _languages(described, "mbart50")
    if type(described.tokenizer).__name__.startswith("MBart50"):
        source, target = _both(described, languages)
        return Direction(
            family="mbart50",
            source_begin=(SOURCE,),
            target_begin=(TARGET,),
            start=_start(described, "</s>"),
            source_languages=languages,
            target_languages=languages,
            source_token=source,
            target_token=target,
            languages=(code_of(source, languages), code_of(target, languages)),
        )
    # The decoder starts from the language's token: CTranslate2 has one start token per model, not per call.
    start = _start(described, "")
    source, target = _both(described, languages, target_default=start if start in languages else None)
    return Direction(
        family="mbart",
        source_end=("</s>", source),
        start=target,
        source_token=source,
        target_token=target,
        languages=(code_of(source, languages), code_of(target, languages)),
    )


def _t5(described: ModelDescription) -> Direction:
    languages = _languages(described, "madlad")
    start = _start(described, "<pad>")
    if languages:
        source, target = _language_or_default(described, one_direction=False)
        if target is None:
            raise CadecError(
                f"{described.name} translates into {len(languages)} languages: the target is not given",
                f"say {option('target-language')}",
            )
        token = own_token(target, languages)
        pieces = _before(described.tokenizer, f"{token} ")
        return Direction(
            family="t5",
            source_begin=tuple(TARGET if piece == token else piece for piece in pieces),
            start=start,
            text_prefix=f"{token} ",
            target_languages=languages,
            target_token=token,
            languages=(source, code_of(token, languages)),
        )
    prefixes = _tasks(described.config)
    source, target = _language_or_default(described, one_direction=not prefixes)
    if not prefixes:
        return Direction(family="t5", start=start, languages=(source, target))
    given = (source and iso_code(source), target and iso_code(target))
    if given not in prefixes:
        raise CadecError(
            f"{described.name} does not say how to translate from {source or '?'} to {target or '?'}",
            f"say {option('source-language')} and {option('target-language')}; it has "
            + ", ".join(f"{one} to {other}" for one, other in prefixes),
        )
    prefix = prefixes[given]
    return Direction(
        family="t5",
        source_begin=tuple(_before(described.tokenizer, prefix)),
        start=start,
        text_prefix=prefix,
        languages=given,
    )


_DIRECTIONS = {"marian": _marian, "m2m_100": _m2m100, "mbart": _mbart, "t5": _t5, "mt5": _t5}


def _languages(described: ModelDescription, family: str) -> tuple[str, ...]:
    return tuple(token for token in described.tokens if LANGUAGE_TOKENS[family].fullmatch(token))


def _start(described: ModelDescription, otherwise: str) -> str:
    index = described.config.get("decoder_start_token_id")
    if type(index) is int and 0 <= index < len(described.tokens):
        return described.tokens[index]
    return otherwise


def _before(tokenizer: Any, prefix: str) -> list[str]:
    """The tokens of a text that is written before a sentence."""
    ids = tokenizer(prefix.strip(), add_special_tokens=False).input_ids
    return list(tokenizer.convert_ids_to_tokens(ids))


def _tasks(config: Mapping[str, Any]) -> dict[tuple[str | None, str | None], str]:
    """T5's prefixes, by direction."""
    tasks = config.get("task_specific_params")
    found: dict[tuple[str | None, str | None], str] = {}
    for name, task in (tasks if isinstance(tasks, dict) else {}).items():
        match = _TASK.fullmatch(name)
        if match and isinstance(task, dict) and isinstance(task.get("prefix"), str):
            found[iso_code(match[1]), iso_code(match[2])] = task["prefix"]
    return found


def _both(
    described: ModelDescription, languages: Sequence[str], target_default: str | None = None
) -> tuple[str, str]:
    """Return the tokens of both languages, which the user or the model's files name."""
    source, target = _language_or_default(described, one_direction=False)
    target = described.target_language or target_default or target
    missing = [
        option(f"{side}-language") for side, said in (("source", source), ("target", target)) if not said
    ]
    if missing or source is None or target is None:
        raise CadecError(
            f"{described.name} translates between {len(languages)} languages: the direction is not given",
            f"say {' and '.join(missing)}; it has {' '.join(languages[:6])} …",
        )
    return own_token(source, languages), own_token(target, languages)


def _language_or_default(
    described: ModelDescription, *, one_direction: bool
) -> tuple[str | None, str | None]:
    """Return the languages that the user named, or else those in the files or in the model's name.

    For a model of one direction, another language is a CadecError.
    """
    settings = described.tokenizer_config
    named = _NAMED.fullmatch(described.name.lower())
    told = []
    for index, keys in enumerate((("source_lang", "src_lang"), ("target_lang", "tgt_lang"))):
        codes = [settings.get(key) for key in keys] + [named[index + 1] if named else None]
        told.append(next((code for code in codes if isinstance(code, str) and _language(code)), None))
    said = (described.source_language, described.target_language)
    for wanted, known in zip(said, told, strict=True):
        if one_direction and wanted and known and iso_code(wanted) != iso_code(known):
            raise CadecError(
                f"{described.name} translates from {told[0] or '?'} to {told[1] or '?'}, not {wanted}",
                "leave the languages out, or take another model",
            )
    source, target = (
        wanted or (iso_code(known) if one_direction and known else known)
        for wanted, known in zip(said, told, strict=True)
    )
    return source, target


def _language(code: str) -> bool:
    return is_language(code) or any(shape.fullmatch(code) for shape in LANGUAGE_TOKENS.values())


ORDINARY = (
    "Hello, world!",
    "The captain doesn't know: is it 1,234.50?",
    'He said "no" (twice); she left - at 10:30.',
    "ALL CAPS and CamelCase words, e.g. iPhone.",
    "“Quoted” – it’s so — isn’t it?",
    "Моя сестра не знает, где ключи.",
    "Où est l'été ? À bientôt, naïve garçon.",
    "Größe, Übung, ¿qué señor?",
    "我们明天见。",
    "Καλημέρα σας.",
    "مرحبا بكم.",
    "日本語のテスト。",
    "you see the big red lamp.",
)
EXOTIC = (
    "Well… so it is",
    "🙂 ok 👍🏽",
    "a\u00a0b  c\td",
    "ﬁne №1 ½",
    "a\u0301 \u200bzero\u200dwidth",
    "<b>bold</b> & [red]",
    "x\u0007y",
)

_SENTENCEPIECE = ("sentencepiece.bpe.model", "spiece.model", "sentencepiece.model", "spm.model")


@dataclass(frozen=True)
class Sides:
    """The two tokenizers of a model, with their settings."""

    source_settings: TextSettings
    target_settings: TextSettings
    source: PretrainedText
    target: PretrainedText


@dataclass(frozen=True)
class Original:
    """The tokenizer as transformers runs it, set to a direction."""

    tokenizer: Any
    direction: Direction

    def source_ids(self, text: str) -> list[int]:
        """Encode a source sentence, with its framing."""
        return list(self.tokenizer(self.direction.text_prefix + text).input_ids)

    def target_ids(self, text: str) -> list[int]:
        """Encode a translation, without its framing."""
        return list(self.tokenizer(text_target=text, add_special_tokens=False).input_ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids; spaces before punctuation are kept, since the model wrote them."""
        text = self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(text).strip()


def agreeing_sides(
    directory: Path,
    original: Original,
    tokens: Sequence[str],
    framing: Framing,
    note: Callable[[str], None],
) -> Sides:
    """Find tokenizers that encode and decode as the original does; a CadecError if there are none."""
    options = {"special": " ".join(_special(original, tokens)), "end": "</s>", "unknown": "<unk>"}
    problems = []
    for source, target in _candidates(directory, options):
        language = original.direction.languages
        sides = Sides(
            source,
            target,
            load_text(directory, source, tokens, language[0] or "en"),
            load_text(directory, target, tokens, language[1] or "en"),
        )
        _check_vocabulary(sides, tokens, directory)
        problem = next(filter(None, (_difference(original, sides, framing, text) for text in ORDINARY)), None)
        if problem is None:
            _note_exotic(original, sides, framing, note)
            return sides
        problems.append(problem)
    if not problems:
        raise CadecError(
            f"{directory} has no usable tokenizer: neither a SentencePiece model nor a tokenizer.json",
            "nothing was written",
        )
    raise CadecError(
        f"the tokenizer of {directory} can't be reproduced: {problems[0]}", "nothing was written"
    )


def _candidates(directory: Path, options: Mapping[str, str]) -> list[tuple[TextSettings, TextSettings]]:
    """List possible tokenizers, SentencePiece first: nothing else is needed to translate with it."""

    def both(kind: str, source: str, target: str) -> tuple[TextSettings, TextSettings]:
        one, other = (TextSettings(kind=kind, files=(name,), options=options) for name in (source, target))
        return one, other

    found = []
    if (directory / "source.spm").is_file() and (directory / "target.spm").is_file():
        found.append(both("sentencepiece", "source.spm", "target.spm"))
    found += [both("sentencepiece", name, name) for name in _SENTENCEPIECE if (directory / name).is_file()][
        :1
    ]
    if (directory / "tokenizer.json").is_file():
        found.append(both("tokenizers", "tokenizer.json", "tokenizer.json"))
    return found


def _special(original: Original, tokens: Sequence[str]) -> list[str]:
    direction = original.direction
    named = [*original.tokenizer.all_special_tokens, *direction.source_languages, *direction.target_languages]
    unused = [token for token in tokens if token.startswith("<unused_row_")]
    return [token for token in dict.fromkeys([*named, START, *unused]) if not any(map(str.isspace, token))]


def _check_vocabulary(sides: Sides, tokens: Sequence[str], directory: Path) -> None:
    known = set(tokens)
    for text, settings in ((sides.source, sides.source_settings), (sides.target, sides.target_settings)):
        pieces = text.pieces
        there = sum(piece in known for piece in pieces)
        if 2 * there < len(pieces):
            raise CadecError(
                f"{directory / settings.files[0]} does not belong to the model: only {there:,} of its "
                f"{len(pieces):,} pieces are in the model's vocabulary",
                "nothing was written",
            )


def _difference(original: Original, sides: Sides, framing: Framing, text: str) -> str | None:
    """Describe how the tokenizers differ on a text; None if they agree."""
    vocabulary = sides.source.vocabulary
    ids = {token: index for index, token in enumerate(vocabulary)}
    ours = [ids[token] for token in framing.frame([vocabulary[index] for index in sides.source.encode(text)])]
    theirs = original.source_ids(_as_read(sides.source, text))
    if ours != theirs:
        return (
            f"{text!r} is {_spell_ids(ours, vocabulary)} in cadec "
            f"and {_spell_ids(theirs, vocabulary)} in the original"
        )
    ours, theirs = sides.target.encode(text), original.target_ids(_as_read(sides.target, text))
    vocabulary = sides.target.vocabulary
    if ours != theirs:
        return (
            f"{text!r} is {_spell_ids(ours, vocabulary)} in cadec "
            f"and {_spell_ids(theirs, vocabulary)} in the original"
        )
    decoded, expected = sides.target.decode(theirs), original.decode(theirs)
    if decoded != expected:
        return f"{_spell_ids(theirs, vocabulary)} is {decoded!r} in cadec and {expected!r} in the original"
    return None


def _as_read(side: PretrainedText, text: str) -> str:
    """Return a text as a tokenizer reads it, which the original is to encode alike."""
    return side.with_known_marks(text) if isinstance(side, VocabularyText) else text


def _note_exotic(original: Original, sides: Sides, framing: Framing, note: Callable[[str], None]) -> None:
    different = [text for text in EXOTIC if _difference(original, sides, framing, text)]
    if different:
        note(
            "the tokenizer differs from transformers' in rare characters and spaces only, as in "
            + ", ".join(map(repr, different[:3]))
        )


def _spell_ids(ids: Sequence[int], vocabulary: Sequence[str]) -> str:
    return " ".join(vocabulary[index] if index < len(vocabulary) else f"#{index}" for index in ids)
