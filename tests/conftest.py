"""What several tests need: a tiny text pipeline for each of two languages, trained once a session."""

import itertools
from pathlib import Path

import pytest

from cadec_cli.text.moses import MosesText, Truecaser
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.subwords import train_subwords

ENGLISH = (
    ("The captain", "My sister", "Her old friend", "The doctor", "Tom", "Mrs. Gray", "Nobody", "The boy"),
    ("sees", "doesn't know", "has lost", "wants", "can't find", "will bring", "is looking for", "took"),
    ("the ship", "a letter", "his keys", "the money", "our dog", "some bread", "the door", "it"),
    (".", "!", "?", "...", ", I think.", ", doesn't he?", " (again).", ' - "really?"'),
)
RUSSIAN = (
    ("Капитан", "Моя сестра", "Её старый друг", "Доктор", "Том", "Госпожа Грей", "Никто", "Мальчик"),
    ("видит", "не знает", "ищет", "хочет", "не найдёт", "принесёт", "всё ещё ждёт", "взял"),
    ("корабль", "письмо", "ключи", "деньги", "нашу собаку", "хлеб", "дверь", "его"),
    (".", "!", "?", "...", ", я думаю.", ", правда?", " (опять).", " - «неужели?»"),
)


def sentences(parts: tuple[tuple[str, ...], ...], count: int) -> list[str]:
    """Make `count` sentences, spread evenly over all that the parts can say."""
    everything = list(itertools.product(*parts))
    step = len(everything) / count
    chosen = (everything[int(index * step)] for index in range(count))
    return [f"{who} {does} {what}{end}" for who, does, what, end in chosen]


def trained_pipeline(language: str, lines: list[str], vocabulary_size: int = 400) -> TextPipeline:
    """Train all of a language's text processing on some lines."""
    moses = MosesText(language)
    tokenised = [moses.tokenise(moses.normalise(line)) for line in lines]
    truecaser = Truecaser.train(tokenised)
    cased = (" ".join(truecaser.truecase(tokens)) for tokens in tokenised)
    return TextPipeline(language, truecaser, train_subwords(cased, vocabulary_size=vocabulary_size))


@pytest.fixture(scope="session")
def english() -> TextPipeline:
    return trained_pipeline("en", sentences(ENGLISH, 400))


@pytest.fixture(scope="session")
def russian() -> TextPipeline:
    return trained_pipeline("ru", sentences(RUSSIAN, 400))


@pytest.fixture(scope="session")
def english_directory(english: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pipelines") / "en"
    english.save(directory)
    return directory


@pytest.fixture(scope="session")
def russian_directory(russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pipelines") / "ru"
    russian.save(directory)
    return directory
