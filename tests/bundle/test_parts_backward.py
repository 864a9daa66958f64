"""Bayes' rule: a bundle with an S-NMT of the other direction, and an objective that asks for it."""

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import cadec_cli
from cadec_cli.bundle.build import BundleRequest, build_bundle
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import LoadedModels, load_models
from cadec_cli.decoding.translator import Translator
from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code
from cadec_cli.method.objectives import DEFECT_COST
from cadec_cli.method.options import TranslationOptions
from cadec_cli.models.storage import save_model
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.bundle_parts import checksums, tiny_nmt
from tests.helpers.repl_parts import SENTENCES, tiny_bundle

FLAGS = ["--compute-type", "float32", "--threads", "1", "--nbest", "4"]
BAYES = {"nmt": 2.5, "back": 0.5, "length": 0.2}


@pytest.fixture(scope="module")
def root(english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bundle/ from English to Russian, reverse/ from Russian to English, and both/."""
    directory = tmp_path_factory.mktemp("backward")
    tiny_bundle(directory, english, russian)
    save_model(
        directory / "back", tiny_nmt(len(russian), len(english), positions=80), checksums(english, russian)
    )
    build_bundle(
        directory / "reverse",
        BundleRequest(
            source=directory / "ru",
            target=directory / "en",
            nmt=directory / "back",
            compute_types=["float32"],
        ),
    )
    arguments = [
        str(directory / "bundle"),
        "--back",
        str(directory / "reverse"),
        "-o",
        str(directory / "both"),
    ]
    assert exit_code(["convert", *arguments, "-q"]) == 0
    return directory


@pytest.fixture(scope="module")
def models(root: Path) -> LoadedModels:
    return load_models(Bundle.open(root / "both"), compute_type="float32", threads=1)


def translated(models: LoadedModels, **options: Any) -> list[Any]:
    settings = TranslationOptions(**{"nbest": 4, "search": "lattice", **options})
    return [translation.parts[0] for translation in Translator(models, settings).translate(SENTENCES)]


def test_a_bundle_holds_what_the_other_direction_takes(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = Bundle.open(root / "both")
    assert both.manifest.parts["back"] == "bundle" and both.has_backward
    reverse = both.backward
    assert reverse is not None and (reverse.source_language, reverse.target_language) == ("ru", "en")
    assert not reverse.has_lm and (root / "both" / "back" / "ct2" / "float32" / "model.bin").is_file()
    assert both.manifest.identity != Bundle.open(root / "bundle").manifest.identity
    assert exit_code(["info", str(root / "both")]) == 0
    assert "backward S-NMT" in capsys.readouterr().out
    # It stays when the bundle is changed.
    assert (
        exit_code(["convert", str(root / "both"), "-o", str(root / "changed"), "--context", "2", "-q"]) == 0
    )
    assert Bundle.open(root / "changed").has_backward


@pytest.mark.parametrize(("name", "language"), [("bayes", "conditional"), ("bayes-without-context", "free")])
@pytest.mark.parametrize("search", ["rerank", "lattice"])
def test_scores_are_the_formula_over_what_the_models_say(
    models: LoadedModels, name: str, language: str, search: str
) -> None:
    backward, lm = models.backward, models.language
    assert backward is not None and lm is not None
    for part in translated(models, objective=name, search=search):
        texts = [hypothesis.text for hypothesis in part.hypotheses]
        back = backward.log_probs(texts, [part.source] * len(texts))
        lengths = [len(hypothesis.ids) for hypothesis in part.hypotheses]
        assert part.choice.terms["back"] == pytest.approx(back, abs=1e-4)
        assert part.choice.terms["length"] == pytest.approx(lengths)
        assert set(part.choice.terms) == {"back", "length", "defects", language}
        expected = [
            part.choice.terms[language][place]
            + BAYES["nmt"] * hypothesis.log_prob
            + BAYES["back"] * back[place]
            + BAYES["length"] * lengths[place]
            - DEFECT_COST * part.choice.terms["defects"][place]
            for place, hypothesis in enumerate(part.hypotheses)
        ]
        assert part.choice.scores == pytest.approx(expected, abs=1e-3)


def chosen(parts: Sequence[Any]) -> list[tuple[int, tuple[float, ...]]]:
    return [(part.choice.index, tuple(round(score, 3) for score in part.choice.scores)) for part in parts]


@pytest.mark.parametrize("search", ["rerank", "lattice"])
@pytest.mark.parametrize(
    ("bayes", "fusion"),
    [("bayes", "conditional-shallow-fusion"), ("bayes-without-context", "shallow-fusion")],
)
def test_without_back_and_length_it_is_shallow_fusion(
    models: LoadedModels, search: str, bayes: str, fusion: str
) -> None:
    weights = {"nmt": 1.0, "back": 0.0, "length": 0.0}
    ours = translated(models, objective=bayes, weight=weights, search=search)
    theirs = translated(models, objective=fusion, weight={"lm": 1.0}, search=search)
    assert chosen(ours) == chosen(theirs)


def test_every_command_takes_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "in.txt").write_text("\n".join(SENTENCES), "utf-8")
    asked = ["-b", str(root / "both"), "--objective", "bayes", *FLAGS]
    assert exit_code(["translate", str(tmp_path / "in.txt"), "--lines", "--json", *asked]) == 0
    lists = capfd.readouterr().out
    records = [json.loads(line) for line in lists.splitlines()]
    terms = {"conditional", "back", "length", "defects"}
    assert {"text", "log_prob", "score", *terms} == set(records[1]["hypotheses"][0])
    (tmp_path / "lists.jsonl").write_text(lists, "utf-8")
    assert exit_code(["rerank", str(tmp_path / "lists.jsonl"), *asked]) == 0
    assert capfd.readouterr().out.splitlines() == [record["translation"] for record in records]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(SENTENCES).encode())))
    assert exit_code(["repl", *asked]) == 0
    assert capfd.readouterr().out.splitlines() == [record["translation"] for record in records]
    group = {
        "source": SENTENCES[0],
        "context": ["Том взял его."],
        "candidates": ["Том хочет.", "Том."],
        "truth": 0,
    }
    (tmp_path / "set.jsonl").write_text(json.dumps(group), "utf-8")
    score = [
        "score-contrastive",
        str(tmp_path / "set.jsonl"),
        "-b",
        str(root / "both"),
        "--objective",
        "bayes",
    ]
    assert exit_code(score) == 0
    for line in capfd.readouterr().out.splitlines():
        scored = json.loads(line)
        terms = (
            scored["conditional"] + 2.5 * scored["log_prob"] + 0.5 * scored["back"] + 0.2 * scored["length"]
        )
        assert scored["score"] == pytest.approx(terms)
    evaluate = ["eval-contrastive", str(tmp_path / "set.jsonl"), "-b", str(root / "both"), "--json"]
    assert exit_code(evaluate) == 0
    names = {json.loads(line)["objective"] for line in capfd.readouterr().out.splitlines()}
    assert {"bayes", "bayes-without-context", "c-score"} <= names


def test_what_is_missing_or_does_not_fit_is_said(
    root: Path, tmp_path: Path, english: TextPipeline, russian: TextPipeline
) -> None:
    with pytest.raises(CadecError, match="bayes needs a backward model") as caught:
        cadec_cli.load(root / "bundle", options={"objective": "bayes"})
    assert "back" in caught.value.hint
    with pytest.raises(CadecError, match="scores whole sentences"):
        cadec_cli.load(root / "both", options={"objective": "bayes", "search": "beam"})
    with pytest.raises(CadecError, match="translates en → ru, not ru → en"):
        build_bundle(tmp_path / "b", BundleRequest(base=root / "bundle", back=root / "bundle"))
    build_bundle(tmp_path / "lm", BundleRequest(lm=root / "lm", target=root / "ru"))
    with pytest.raises(CadecError, match="has no S-NMT"):
        build_bundle(tmp_path / "b", BundleRequest(base=root / "bundle", back=tmp_path / "lm"))
    with pytest.raises(CadecError, match="is not a bundle"):
        build_bundle(tmp_path / "b", BundleRequest(base=root / "bundle", back=tmp_path))
    assert not (tmp_path / "b").exists()
    # Of a list without a source nothing can be said.
    (tmp_path / "lists.nbest").write_text("0 ||| Том взял его. ||| F0= -1 ||| -1\n", "utf-8")
    told = exit_code(
        ["rerank", str(tmp_path / "lists.nbest"), "-b", str(root / "both"), "--objective", "bayes", *FLAGS]
    )
    assert told == 1


def test_damage_to_it_is_found(root: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(root / "both", tmp_path / "both")
    weights = tmp_path / "both" / "back" / "ct2" / "float32" / "model.bin"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(CadecError, match=r"back/ct2/float32/model\.bin is truncated"):
        Bundle.open(tmp_path / "both")
