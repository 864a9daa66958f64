"""The bundle that comes with cadec: small enough, sound, and it speaks."""

import itertools
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.find import EMBEDDED, find_bundle
from cadec_cli.bundle.load import default_options, load_models
from cadec_cli.decoding.translator import Translator

ROOT = Path(__file__).parents[1]
EVERYDAY = {
    "Where are you going?": r"Куда (ты ид[её]шь|вы ид[её]те|ты собираешься|вы собираетесь)\?",
    "I don't know what you want.": r"(Я )?[Нн]е знаю, (чего|что) (ты хочешь|вы хотите)\.",
    "I love you.": r"Я (тебя|вас) люблю\.|Я люблю (тебя|вас)\.",
    "He is my brother.": r"Он мой брат\.",
    "Thank you, doctor.": r"Спасибо, доктор\.",
}


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.open(EMBEDDED)


def test_it_is_used_unless_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CADEC_BUNDLE", raising=False)
    assert find_bundle() == EMBEDDED


def test_it_is_small_and_tells_where_it_comes_from(bundle: Bundle) -> None:
    size = sum(path.stat().st_size for path in EMBEDDED.rglob("*") if path.is_file())
    assert size < 40_000_000
    assert bundle.has_lm and bundle.has_translation
    card = (EMBEDDED / "MODEL_CARD.md").read_text("utf-8")
    for word in ("OpenSubtitles", "Tatoeba", "RusDraCor", "CC0", "Apache-2.0", "CC-BY", "public domain"):
        assert word in card
    assert card == (ROOT / "recipes" / "en-ru" / "card.md").read_text("utf-8")


def test_everyday_sentences(bundle: Bundle) -> None:
    translator = Translator(load_models(bundle), default_options(bundle))
    documents = [[sentence] for sentence in EVERYDAY]
    found = {one.source: one.text for one in translator.translate_documents(documents)}
    assert {s: t for s, t in found.items() if not re.fullmatch(EVERYDAY[s], t)} == {}


def test_context_changes_a_translation(bundle: Bundle) -> None:
    """The same sentence after other sentences: the D-LM has a say, and only from the second on."""
    options = default_options(bundle)
    assert options.search == "rerank" and options.objective == "c-score"
    text = (ROOT / "examples" / "dialogue.txt").read_text("utf-8")
    documents = [part.split("\n") for part in text.strip().split("\n\n")]
    changed = 0
    translator = Translator(load_models(bundle), options)
    for translation in translator.translate_documents(documents):
        alone = translator.sentence_level_of(translation)
        if translation.sentence == 0:
            assert translation.text == alone
        changed += translation.text != alone
    assert changed > 0


# Each pair says one thing to a friend and to a stranger, or has two spellings of a name: whatever the D-LM
# likes better by itself is wrong in half of the groups.
ADDRESSED = [
    ("Ты меня слышишь?", "Вы меня слышите?"),
    ("Я давно тебя жду.", "Я давно вас жду."),
    ("Что тебе нужно?", "Что вам нужно?"),
    ("Я знаю, кто ты.", "Я знаю, кто вы."),
    ("Куда ты идёшь?", "Куда вы идёте?"),
]
NAMES = [("Крейг", "Крэйг"), ("Стивен", "Стефен"), ("Хадсон", "Гудзон"), ("Уотсон", "Ватсон")]
SPOKEN = [
    ("Где {}?", "Я не видел, как {} ушёл."),
    ("Это {}, мой друг.", "Сядь, {}."),
    ("Нас ждал {}.", "Почему {}?"),
]


def groups() -> Iterator[dict[str, object]]:
    for before, now in itertools.permutations(ADDRESSED, 2):
        for truth in (0, 1):
            yield {"context": [before[truth]], "candidates": now, "truth": truth}
    for names, (before_, now_) in itertools.product(NAMES, SPOKEN):
        candidates = [now_.format(name) for name in names]
        for truth in (0, 1):
            yield {"context": [before_.format(names[truth])], "candidates": candidates, "truth": truth}


def test_the_language_model_hears_the_context(tmp_path: Path) -> None:
    lines = [json.dumps({"source": "?", **group}, ensure_ascii=False) for group in groups()]
    (tmp_path / "own.jsonl").write_text("\n".join(lines), "utf-8")
    command = [sys.executable, "-m", "cadec_cli", "eval-contrastive", str(tmp_path / "own.jsonl")]
    told = subprocess.run(
        [*command, "--objective", "pmi", "--temperature", "1", "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(told.stdout)
    assert found["groups"] == len(lines) == 64 and found["chance"] == 0.5
    assert found["accuracy"] > 0.9


@pytest.mark.slow
def test_the_wheel_has_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    for name in ("bundle.json", "MODEL_CARD.md", "nmt/model.safetensors", "lm/model.safetensors"):
        assert f"cadec_cli/embedded/{name}" in held
