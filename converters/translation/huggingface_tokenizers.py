"""Checks that our tokenizer encodes and decodes as the original does, with texts in several scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cadec_cli.engines.ctranslate2 import Framing
from cadec_cli.errors import CadecError
from cadec_cli.text.tokenizers import PretrainedText, load_text
from cadec_cli.text.tokenizers.vocabulary import TextSettings
from converters.translation.huggingface_families import START, Direction

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
    theirs = original.source_ids(text)
    if ours != theirs:
        return (
            f"{text!r} is {_spell_ids(ours, vocabulary)} in cadec "
            f"and {_spell_ids(theirs, vocabulary)} in the original"
        )
    ours, theirs = sides.target.encode(text), original.target_ids(text)
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


def _note_exotic(original: Original, sides: Sides, framing: Framing, note: Callable[[str], None]) -> None:
    different = [text for text in EXOTIC if _difference(original, sides, framing, text)]
    if different:
        note(
            "the tokenizer differs from transformers' in rare characters and spaces only, as in "
            + ", ".join(map(repr, different[:3]))
        )


def _spell_ids(ids: Sequence[int], vocabulary: Sequence[str]) -> str:
    return " ".join(vocabulary[index] if index < len(vocabulary) else f"#{index}" for index in ids)
