"""Context that the user provides: sentences in the target language, or pairs of sentences.

Either a seed, which stays at the head of every window: sentences that show how people are addressed, and
before them a text about the text; or a preceding text, such as the last episode or a letter, which leaves the
window like any other context; or a translation memory, of which a few pairs are read where they share rare
words with a sentence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from cadec_cli.engines.protocols import Models
from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.fs.paths import is_stream
from cadec_cli.method.context import Context, ContextPolicy, Pair
from cadec_cli.method.hypotheses import Ids
from cadec_cli.method.options import AUTO, TranslationOptions
from cadec_cli.method.retrieval import EarlierSentences, TranslationMemory
from cadec_cli.text.formats import read_text_file
from cadec_cli.text.translation_memory import Pairs, read_memory

# The most names, and other words, of a translation memory that can be found.
_MOST = 200_000
# The share of the D-LM's positions that a text about the text may take.
_SHARE_OF_ABOUT = 1 / 3


def context_policy(models: Models, options: TranslationOptions) -> ContextPolicy:
    """The options' context policy, with the translation memory and the seed.

    The seed is a text about the text, and the sentences for their formality.
    """
    policy = dataclasses.replace(options.policy, translation_memory=_translation_memory(models, options))
    if not options.reads_context or (options.formality == AUTO and not options.about):
        return policy
    about = _readable_about(models, options)
    sentences, sources = list(about), [""] * len(about)
    if options.formality != AUTO:
        own, own_sources = models.seed(options.formality), models.seed_sources(options.formality)
        sentences += own
        sources += own_sources if len(own_sources) == len(own) else [""] * len(own)
    seed = _ids(models, sentences)
    # A sentence without tokens is left out; then the others' sources are not sure.
    known = tuple(sources) if len(sources) == len(seed) else ()
    # A text about the text addresses nobody in it.
    pairs = [*zip(sources, sentences, strict=True)][len(about) :]
    return dataclasses.replace(
        policy,
        seed=seed,
        seed_sources=known,
        seed_pairs=tuple(Pair(source, sentence) for source, sentence in pairs),
    )


def sentences_about(options: TranslationOptions, language: str) -> tuple[str, ...]:
    """The sentences of the text about the text, which is in the target language; none without one."""
    if not options.about:
        return ()
    path = Path(options.about)
    if str(path) == "-" or is_stream(path):
        raise UsageError(f"{option('about')} needs a file: it is read several times, and a pipe can't be")
    file = read_text_file(path, language=language)
    sentences = tuple(text for document in file.documents for text in document.texts)
    if not sentences:
        raise CadecError(f"{path} has no sentences to use as context")
    return sentences


def _readable_about(models: Models, options: TranslationOptions) -> tuple[str, ...]:
    """The first sentences about the text, as far as they leave most positions to the text itself."""
    sentences = sentences_about(options, models.target_language)
    if models.reader is None:
        return ()
    room = int(models.reader.positions * _SHARE_OF_ABOUT)
    count = 0
    for sentence in sentences:
        room -= len(models.reader.text.encode(sentence)) + 1
        if room < 0:
            break
        count += 1
    if sentences and not count:
        raise CadecError(
            f"the first sentence of {options.about} is too long for the D-LM to read beside a text",
            "a few short sentences are enough",
        )
    return sentences[:count]


def _translation_memory(models: Models, options: TranslationOptions) -> TranslationMemory | None:
    if not options.memory:  # else the D-LM would be loaded for nothing
        return None
    reader = models.reader
    if reader is None:
        return None
    pairs = read_memory(options.memory, models.source_language, models.target_language)
    text = reader.text
    return TranslationMemory(_index(pairs), lru_cache(1 << 12)(lambda sentence: tuple(text.encode(sentence))))


@lru_cache(maxsize=2)
def _index(pairs: Pairs) -> EarlierSentences:
    return EarlierSentences(most=_MOST).add((source, (), target) for source, target in pairs)


def context_of(models: Models, options: TranslationOptions, sentences: Sequence[str]) -> Context:
    """The context made of preceding sentences, limited to those that the D-LM can read."""
    check_context(options)
    pairs = tuple(Pair("", sentence) for sentence in sentences)
    whole = Context(_ids(models, sentences), pairs=pairs)
    return options.policy.read(whole, models.reader.positions) if models.reader is not None else whole


def readable(options: TranslationOptions, sentences: Sequence[str], positions: int | None) -> tuple[str, ...]:
    """The last of the preceding sentences, as many as could be read, before any tokens are counted.

    `positions` are the D-LM's, or None if unknown. A sentence without words may have no tokens, so it is kept
    but not counted.
    """
    policy = options.policy
    enough = max(policy.sentences, 1)
    if policy.rolling:
        if positions is None:
            return tuple(sentences)
        enough = max(enough, positions)  # more than fit, so that a rolling context still overflows
    found = 0
    for number in range(len(sentences) - 1, -1, -1):
        found += any(character.isalnum() for character in sentences[number])
        if found == enough:
            return tuple(sentences[number:])
    return tuple(sentences)


def check_context(options: TranslationOptions) -> None:
    """Refuse a preceding text if the options read no context."""
    if not options.reads_context:
        raise UsageError(
            f"a preceding text needs context, and {options.without_context} reads none",
            "use rerank, lattice or beam with an objective such as c-score",
        )


def _ids(models: Models, sentences: Iterable[str]) -> tuple[Ids, ...]:
    if models.reader is None:
        return ()
    encoded = (tuple(models.reader.text.encode(sentence)) for sentence in sentences)
    return tuple(filter(None, encoded))
