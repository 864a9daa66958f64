"""What the S-NMT does alone needs CTranslate2: no command waits for torch that asks no network of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.helpers import made_up_pair
from tests.helpers.run_in_process import cadec

# Each of these takes longer to import than a sentence to translate.
HEAVY = ("torch", "transformers", "safetensors", "matplotlib")

# All in one process: what one command imports, those after it have too.
PROGRAM = """
import json, sys
from cadec_cli.main import exit_code
lines, heavy = json.loads(sys.argv[1])
told = []
for line in lines:
    code = exit_code(line)
    told.append((line[:2], code, [name for name in heavy if name in sys.modules]))
print(json.dumps(told))
"""


def commands(bundle: Path, pipeline: Path, place: Path) -> list[list[str]]:
    """Command lines that no network in torch has a part in, those that convert a model first."""
    (document,) = made_up_pair.documents(1, seed=5, length=4)
    (place / "source.txt").write_text("".join(f"{source}\n" for source, _ in document), "utf-8")
    (place / "target.txt").write_text("".join(f"{target}\n" for _, target in document), "utf-8")
    (place / "film.srt").write_text(f"1\n00:00:01,000 --> 00:00:02,000\n{document[0][0]}\n", "utf-8")
    candidates = ["tu vides la lampo.", "vos videz la lampo."]
    group = {"source": "you see the lamp.", "context": [], "candidates": candidates, "truth": 0}
    (place / "set.jsonl").write_text(json.dumps(group) + "\n", "utf-8")
    item = {"document": [document[0][0], "you see the lamp."], "expected": "tu"}
    (place / "documents.jsonl").write_text(json.dumps(item) + "\n", "utf-8")
    source, target, of_set = (place / name for name in ("source.txt", "target.txt", "set.jsonl"))
    models = ["-b", bundle, "--compute-type", "float32", "--threads", 1, "-q"]
    lines: list[list[object]] = [
        ["translate", source, "--search", "sentence", *models],
        ["translate", source, "--search", "2-to-2", *models],
        ["translate", source, "--search", "repair", *models],
        ["augment", "round-trip", target, "-o", place / "trips.tsv", *models],
        ["augment", "back-translate", source, "-o", place / "pairs.tsv", *models],
        ["translate", source, "--objective", "sentence", "--json", *models],
        ["translate", place / "film.srt", "--search", "sentence", "--report", place / "film.html", *models],
        ["repl", "--search", "sentence", *models],
        ["eval-contrastive", of_set, "--objective", "sentence", *models],
        ["eval-generative", place / "documents.jsonl", "--search", "sentence", *models],
        ["score-contrastive", of_set, "--objective", "sentence", *models],
        ["evaluate", target, "--ref", target],
        ["info", bundle],
        ["models", "list"],
        ["prepare", "text", target, "-p", pipeline, "-o", place / "data", "--processes", 1],
    ]
    return [list(map(str, line)) for line in lines]


def test_what_ctranslate2_does_alone_imports_no_torch(
    document_bundle: Path, corpora: Path, tmp_path: Path
) -> None:
    places = [tmp_path / name for name in ("first", "again")]
    for place in places:
        place.mkdir()
    converting, lines = (commands(document_bundle, corpora / "tgt", place) for place in places)
    for line in converting[:4]:  # to convert a model, once, takes torch
        assert cadec(*line).returncode == 0
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([lines, HEAVY])],
        input="you see the lamp.\n/context\n/quit\n",
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},  # where the REPL saves its session
    )
    told = json.loads(done.stdout.splitlines()[-1])
    assert told == [[line[:2], 0, []] for line in lines], done.stderr
