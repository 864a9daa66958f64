"""What several tests need, made once a run: tiny text pipelines, the made-up pair and its models."""

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from cadec_cli.terminal import console
from cadec_cli.text.moses import MosesText, Truecaser
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.subwords import train_subwords
from tests.helpers.made_up_models import cadec, make_bundle, make_corpora, train_model
from tests.helpers.make_once import make_once, run_directory
from tests.helpers.ray_cluster import RayCluster, started_cluster

if TYPE_CHECKING:
    from tests.helpers.repl_parts import Repl

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


# The same examples in every run, so that a failure is of the change; --hypothesis-profile=fresh draws others.
# However long they take: the machine may be at work on other things.
settings.register_profile(
    "fresh", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("same", parent=settings.get_profile("fresh"), derandomize=True)
settings.load_profile("same")


def keep_to_one_core() -> None:
    """Give each of several test processes a core: threads on the same ones wait more than they work."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})


keep_to_one_core()


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


# Fixtures that train networks or start a cluster: what uses one is not part of `make quick`.
TRAINING = {"corpora", "made_up_bundle", "document_bundle", "repl_bundle", "trained_marian", "ray_cluster"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and TRAINING & set(item.fixturenames):
            item.add_marker("trains")


@pytest.fixture(autouse=True)
def not_quiet() -> None:
    """A command run with --quiet before, by a fixture perhaps, must not silence the tests after it."""
    console.set_quiet(False)


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


@pytest.fixture(scope="session")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The made-up pair, prepared: pipelines src/, tgt/, corpora pairs/, pairs-dev/, docs/, docs-dev/."""
    root = run_directory(tmp_path_factory, "made-up")
    make_once(root, {"corpora": lambda: make_corpora(root)})
    return root


@pytest.fixture(scope="session")
def sound(english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of random weights that is as it should be."""
    from tests.helpers.bundle_parts import write_bundle  # which imports torch

    return write_bundle(tmp_path_factory.mktemp("sound"), english, russian)


@pytest.fixture
def theirs(sound: Path, tmp_path: Path) -> Path:
    """The same from a stranger, to be tampered with; it is alone in its directory."""
    shutil.copytree(sound, tmp_path / "download" / "theirs")
    return tmp_path / "download" / "theirs"


@pytest.fixture(scope="session")
def made_up_bundle(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """S-NMT and D-LM of the made-up pair, trained for some seconds, as a bundle."""
    root = run_directory(tmp_path_factory, "bundle")
    models = {"nmt": "pairs", "lm": "docs"}
    make_once(root, {kind: partial(train_model, kind, data, corpora, root) for kind, data in models.items()})
    make_once(root, {"bundle": lambda: make_bundle(corpora, root)})
    return root / "bundle"


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[RayCluster]:
    """A Ray cluster of two nodes of one core each, joined by address on loopback."""
    pytest.importorskip("ray")
    cluster = started_cluster()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def trained_marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A MarianMT model of Hugging Face that has learnt the made-up pair."""
    from tests.helpers import pretrained_models  # which imports transformers

    root = run_directory(tmp_path_factory, "pretrained")
    make_once(root, {"marian": lambda: pretrained_models.trained_marian(root / "marian")})
    return root / "marian"


@pytest.fixture(scope="session")
def document_bundle(corpora: Path, made_up_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The made-up bundle with a backward model, a DocTransformer, a 2-to-2 model and DocRepair.

    They are trained for a few seconds each, and know little: what they do is what is tested.
    """
    root = run_directory(tmp_path_factory, "documents")
    tiny = ("--preset", "tiny", "--threads", 1, "--max-updates", 60, "--evaluate-every", 60)
    backward = (corpora / "tgt", corpora / "src")

    def prepared(text: Path, name: str, pipelines: tuple[Path, Path], columns: str) -> tuple[object, ...]:
        both = ("-p", pipelines[0], "-p", pipelines[1], "--columns", columns, "--lines", "--processes", 1)
        dev = ("--dev-output", root / f"{name}-dev", "--dev-every", 20)
        cadec("prepare", "text", text, *both, *dev, "-o", root / name)
        return ("--data", root / name, "--dev", root / f"{name}-dev")

    def repaired() -> None:
        reverse = prepared(corpora / "pairs.tsv", "reverse-pairs", backward, "2,1")
        cadec("train", "nmt", "-o", root / "reverse", *reverse, *tiny)
        pipelines = ("--source-pipeline", backward[0], "--target-pipeline", backward[1])
        cadec("convert", "--nmt", root / "reverse", *pipelines, "-o", root / "reverse-bundle")
        cadec("convert", made_up_bundle, "--back", root / "reverse-bundle", "-o", root / "both")
        cadec("augment", "round-trip", corpora / "target.txt", "-b", root / "both", "-o", root / "trips.tsv")
        trips = prepared(root / "trips.tsv", "trips", (backward[0], backward[0]), "1,2")
        cadec("train", "repair", "-o", root / "repair", *trips, *tiny)

    def in_context(kind: str) -> Callable[[], None]:
        corpus = ("--data", corpora / "pairs", "--dev", corpora / "pairs-dev")
        start = ("--start-from", made_up_bundle.parent / "nmt")
        return lambda: cadec("train", kind, "-o", root / kind, *corpus, *start, *tiny)

    def convert() -> None:
        models = ("--doc-nmt", root / "doc-nmt", "--2-to-2", root / "2-to-2", "--repair", root / "repair")
        cadec("convert", root / "both", *models, "-o", root / "bundle")

    make_once(root, {"repair": repaired, "doc-nmt": in_context("doc-nmt"), "2-to-2": in_context("2-to-2")})
    make_once(root, {"bundle": convert})
    return root / "bundle"


@pytest.fixture(scope="session")
def repl_bundle(
    english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A bundle that is made in some seconds, for the REPL."""
    from tests.helpers.repl_parts import tiny_bundle  # which takes its sentences from here

    return tiny_bundle(tmp_path_factory.mktemp("repl"), english, russian)


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where sessions and unfinished evaluations are kept, which is this test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "cadec"


@pytest.fixture
def repl_state(own_state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a REPL keeps sessions, which is this test's own."""
    monkeypatch.chdir(tmp_path)
    yield own_state
    console.set_quiet(False)


@pytest.fixture
def repl(
    repl_bundle: Path,
    repl_state: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> "Repl":
    """A REPL at the end of a pipe."""
    from tests.helpers.repl_parts import Repl

    return Repl(repl_bundle, monkeypatch, capfd)
