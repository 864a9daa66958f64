"""The table of engines: what an installed package adds to it, from its entry point to `cadec translate`."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from cadec_cli.bundle.manifest import MANIFEST, Manifest, record
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.engine import Engine, LanguageEngine, TranslationEngine
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.engines.table import ENGINES, OWN_ENGINES, language_engine, translation_engine
from cadec_cli.errors import UsageError
from cadec_cli.method.options import TranslationOptions
from tests.helpers.fakes import TableLM, TableNMT

# A package on an index: a translation model that is a phrase table, and a language model that counts words.
MODULE = '''
import json

import numpy as np

from cadec_cli.engines.engine import LanguageEngine, PlainSettings, TranslationEngine
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.trie import ScoredTrie


def read_settings(directory):
    stored = json.loads((directory / "phrases.json").read_text("utf-8"))
    return PlainSettings(origin=stored["origin"], licence="CC0-1.0")


class Phrases:
    def __init__(self, path):
        self.table = json.loads(path.read_text("utf-8"))["phrases"]

    def nbest(self, sentences, count):
        return [
            NBest(text, tuple(Hypothesis(*one) for one in self.table.get(text, [[text, -9.0]])[:count]))
            for text in sentences
        ]

    def log_probs(self, sentences, targets):
        return [dict(map(tuple, self.table[one])).get(two, -9.0) for one, two in zip(sentences, targets)]

    def fits(self, sentence, target=""):
        return True

    def split(self, sentence):
        return [sentence]


def check(part):
    return [] if "phrases.json" in part.files else ["there is no phrases.json"]


def load(part, languages, machine, note):
    note(f"{part.name} from {languages} on {machine.device}")
    return Phrases(part.directory / "phrases.json")


PHRASES = TranslationEngine(
    name="phrases", files=r"(phrases|notes)\\.json", settings=read_settings, check=check, load=load
)


class Words:
    identity, boundary = "words", 0

    def __init__(self):
        self.vocabulary = ["|"]

    def encode(self, text):
        self.vocabulary += [word for word in text.split() if word not in self.vocabulary]
        return [self.vocabulary.index(word) for word in text.split()]

    def decode(self, ids):
        return " ".join(self.vocabulary[index] for index in ids)

    def display_tokens(self, ids):
        return [f" {self.vocabulary[index]}" for index in ids]


class Repeats:
    """Finds words likely that the context has."""

    positions, fixed_temperature = 64, 1.0

    def __init__(self):
        self.text = Words()

    def score(self, tries, contexts, scoring_options, *, remember=False):
        assert scoring_options.temperatures == (1.0,)
        return [
            ScoredTrie(trie, np.array([[self._log_prob(one, context) for one in trie.edge_tokens]]))
            for trie, context in zip(tries, contexts)
        ]

    def _log_prob(self, token, context):
        return -1.0 if any(token in ids for ids in context.sentences) else -3.0


REPEATS = LanguageEngine(name="repeats", files=r"counts\\.json", load=lambda *given: Repeats())
'''
ENTRY_POINTS = """[cadec.engines]
phrases = phrase_engines:PHRASES
repeats = phrase_engines:REPEATS
"""
TABLE = {"Good day.": [["Bonan tagon.", -1.0]], "Day.": [["Tagon.", -1.5], ["tagon.", -1.2]]}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory with an installed package."""
    place = tmp_path / "site"
    metadata = place / "phrase_engines-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: phrase-engines\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    (place / "phrase_engines.py").write_text(MODULE, "utf-8")
    return place


def bundle_with(directory: Path, engines: Mapping[str, str], files: Mapping[str, object]) -> Path:
    """A bundle whose manifest names engines."""
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(json.dumps(content), "utf-8")
    listed = {
        path.relative_to(directory).as_posix(): record(path)
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
    manifest = Manifest(
        name="phrases",
        source_language="en",
        target_language="eo",
        parts={part: part for part in engines},
        engines=engines,
        files=listed,
        versions={"cadec": "0.1.0"},
    )
    (directory / MANIFEST).write_bytes(manifest.content())
    return directory


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    engines = {"nmt": "phrases", "lm": "repeats"}
    phrases = {"origin": "a phrase book", "phrases": TABLE}
    return bundle_with(tmp_path / "b", engines, {"nmt/phrases.json": phrases, "lm/counts.json": {}})


def cadec(*words: object, path: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command in a process that finds the packages in a directory."""
    program = "import sys; from cadec_cli.main import exit_code; sys.exit(exit_code(sys.argv[1:]))"
    root = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        input=text,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=path,
        env={**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{root}", "CADEC_CACHE": str(path / "cache")},
    )


def test_engines_of_a_package_translate(site: Path, bundle: Path) -> None:
    done = cadec("translate", "-b", bundle, text="Good day.\nDay.\n", path=site)
    assert (done.returncode, done.stdout) == (0, "Bonan tagon.\ntagon.\n"), done.stderr
    assert "nmt from en → eo on auto" in done.stderr
    done = cadec("translate", "-b", bundle, "--json", text="Good day.\nDay.\n", path=site)
    hypotheses = json.loads(done.stdout.splitlines()[1])["hypotheses"]
    assert {one["text"]: one["pmi"] for one in hypotheses} == {"Tagon.": 0.0, "tagon.": 2.0}


def test_info_shows_them(site: Path, bundle: Path) -> None:
    done = cadec("info", bundle, path=site)
    assert done.returncode == 0, done.stderr
    assert "a phrase book" in done.stdout and "phrases" in done.stdout and "repeats" in done.stdout


def test_a_bundle_of_theirs_can_be_changed(site: Path, bundle: Path, tmp_path: Path) -> None:
    done = cadec("convert", bundle, "-o", tmp_path / "copy", "--context", "1", path=site)
    assert done.returncode == 0, done.stderr
    changed = json.loads((tmp_path / "copy" / MANIFEST).read_text("utf-8"))
    assert changed["engines"] == {"nmt": "phrases", "lm": "repeats"} and changed["defaults"]["context"] == 1
    done = cadec("translate", "-b", tmp_path / "copy", text="Good day.\n", path=site)
    assert (done.returncode, done.stdout) == (0, "Bonan tagon.\n"), done.stderr


def test_a_model_with_one_temperature_says_so(site: Path, bundle: Path) -> None:
    done = cadec("translate", "-b", bundle, "--temperature", "2", text="Day.\n", path=site)
    assert done.returncode == 2 and done.stdout == ""
    assert "can only be read at T = 1, not at T = 2" in done.stderr
    assert "--temperature 1" in done.stderr


def test_what_an_engine_does_not_offer_is_one_error(site: Path, bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("Day.\n")
    text, output = tmp_path / "in.txt", tmp_path / "out"
    for words, said in (
        (("translate", text, "-b", bundle, "--search", "beam"), "could step token by token"),
        (("augment", "back-translate", text, "-o", output, "-b", bundle), "can't make training data"),
        (("prepare", "text", text, "-p", bundle, "-o", output), "how its model cuts text"),
    ):
        done = cadec(*words, path=site)
        assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_the_engine_s_own_checks_are_heard(site: Path, tmp_path: Path) -> None:
    other = bundle_with(tmp_path / "b", {"nmt": "phrases"}, {"nmt/words.json": {}})
    done = cadec("translate", "-b", other, text="Day.\n", path=site)
    assert done.returncode == 1 and "no bundle has a file" in done.stderr
    empty = bundle_with(tmp_path / "c", {"nmt": "phrases"}, {"nmt/notes.json": {}})
    done = cadec("translate", "-b", empty, text="Day.\n", path=site)
    assert done.returncode == 1 and "nmt/: there is no phrases.json" in done.stderr


def test_an_engine_that_is_not_installed_is_named(bundle: Path, tmp_path: Path) -> None:
    done = cadec("translate", "-b", bundle, text="Day.\n", path=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    error, hint = done.stderr.splitlines()
    assert "nmt/ needs the engine 'phrases'" in error and "lm/ needs the engine 'repeats'" in error
    assert "which is not installed here" in error
    assert hint == "hint: install the package that adds it, or upgrade cadec"


def test_a_bundle_brings_no_code(site: Path, bundle: Path, tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    (site / "phrase_engines.py").write_text(f"open({str(traces)!r}, 'w')\n")
    for path in site.iterdir():
        path.rename(bundle / path.name)  # beside the parts, where anything may lie
    done = cadec("translate", "-b", bundle, text="Day.\n", path=tmp_path)
    assert done.returncode == 1 and "which is not installed here" in done.stderr
    assert not traces.exists()


def test_a_package_that_fails_is_one_error(site: Path, bundle: Path) -> None:
    (site / "phrase_engines.py").write_text("raise RuntimeError('no GPU')\n")
    done = cadec("translate", "-b", bundle, text="Day.\n", path=site)
    assert done.returncode == 1 and "phrase-engines" in done.stderr and "no GPU" in done.stderr
    assert "Traceback" not in done.stderr


def test_our_own_engines() -> None:
    assert list(ENGINES)[:4] == ["ctranslate2", "ctranslate2-pretrained", "torch", "transformers"]
    for name, engine in ENGINES.items():
        assert isinstance(engine, Engine) and engine.name == name
        find = translation_engine if engine.part == "nmt" else language_engine
        other = language_engine if engine.part == "nmt" else translation_engine
        assert find(name) is engine
        with pytest.raises(KeyError):
            other(name)
    assert isinstance(OWN_ENGINES["nmt"], TranslationEngine) and isinstance(OWN_ENGINES["lm"], LanguageEngine)


def test_every_search_refuses_other_temperatures() -> None:
    class AtOne(TableLM):
        fixed_temperature = 1.0

    models = ModelSet(TableNMT({"a": {"b": -1.0}}), AtOne({}))
    for search in ("rerank", "lattice", "beam"):
        with pytest.raises(UsageError, match="can only be read at T = 1, not at T = 4"):
            Translator(models, TranslationOptions(search=search, temperature=4.0))
    assert [one.text for one in Translator(models, TranslationOptions()).translate(["a"])] == ["b"]
    # Where no language model is read, its temperature is of no interest.
    assert Translator(models, TranslationOptions(search="sentence", temperature=4.0))
