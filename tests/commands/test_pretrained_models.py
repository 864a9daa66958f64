"""Other toolkits' models as a person uses them: converted, and through every command that a D-LM works in.

MarianMT and Llama were trained on the made-up pair with transformers, and know nothing of cadec; what is
expected of scores is computed from text by the networks as they were before.
"""

import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import torch

import cadec_cli
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import load_models
from cadec_cli.engines.transformers_lm import TransformersLanguageModel
from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code
from tests.helpers import made_up_pair, pretrained_lms

DOCUMENTS = made_up_pair.documents(20, seed=77)
DIALOGUE = ["good day sir.", "you see the lamp.", "do you want the house?", "i think you take it."]
FLAGS = ["--compute-type", "float32", "--threads", "1"]


@dataclass(frozen=True)
class Trained:
    """Both models as transformers has them, and the bundle of them."""

    root: Path
    marian: Path

    @property
    def bundle(self) -> Path:
        return self.root / "bundle"

    @cached_property
    def network(self) -> Any:
        import transformers

        return transformers.AutoModelForCausalLM.from_pretrained(self.root / "llama").eval()

    @cached_property
    def language(self) -> TransformersLanguageModel:
        made = load_models(Bundle.open(self.bundle), compute_type="float32", threads=1).language
        assert isinstance(made, TransformersLanguageModel)
        return made

    @torch.inference_mode()
    def pmi(self, context: list[str], sentence: str) -> float:
        """PMI of texts by the network that was trained."""
        text, both = self.language.text, []
        for before in (context, []):
            tokens = [text.start]
            for line in before:
                tokens += [*text.encode(line), text.boundary]
            start = len(tokens)
            tokens += [*text.encode(sentence), text.boundary]
            log_probs = self.network(input_ids=torch.tensor([tokens[:-1]])).logits[0].log_softmax(-1)
            both.append(float(log_probs[range(start - 1, len(tokens) - 1), tokens[start:]].sum()))
        return both[0] - both[1]


@pytest.fixture(scope="module")
def trained(trained_marian: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    root = tmp_path_factory.mktemp("pretrained")
    models = ["--nmt", str(trained_marian)]
    models += ["--lm", str(pretrained_lms.trained_llama(root / "llama"))]
    assert exit_code(["convert", *models, "-o", str(root / "bundle"), "--nbest", "6", "-q"]) == 0
    return Trained(root, trained_marian)


def right(bundle: Path, **options: object) -> float:
    """The share of sentences of the made-up pair that come out as they should.

    All of a document is context: three sentences in a row may not say which form it is in.
    """
    settings = {"nbest": 6, "context": 6, "temperature": 2, **options}
    translator = cadec_cli.load(bundle, options=settings, threads=1)
    found = [
        translation.text.lower() == target
        for document in DOCUMENTS
        for translation, (_, target) in zip(
            translator.translate([source for source, _ in document]), document, strict=True
        )
    ]
    return sum(found) / len(found)


@pytest.mark.slow
def test_the_made_up_pair_comes_out_right_in_context(trained: Trained) -> None:
    assert right(trained.bundle, search="sentence") < 0.8
    assert right(trained.bundle) > 0.95


@pytest.mark.slow
def test_pretrained_models_work_beside_ours(
    trained: Trained, made_up_bundle: Path, corpora: Path, tmp_path: Path
) -> None:
    ours = made_up_bundle.parent
    llama, marian = str(trained.root / "llama"), str(trained.marian)
    pipelines = ["--source-pipeline", str(corpora / "src"), "--target-pipeline", str(corpora / "tgt")]
    nmt = ["--nmt", str(ours / "nmt"), *pipelines]
    assert exit_code(["convert", *nmt, "--lm", llama, "-o", str(tmp_path / "a"), "-q"]) == 0
    lm = ["--lm", str(ours / "lm"), "--target-pipeline", str(corpora / "tgt")]
    assert exit_code(["convert", "--nmt", marian, *lm, "-o", str(tmp_path / "b"), "-q"]) == 0
    for name in ("a", "b"):
        assert right(tmp_path / name) > 0.95
        assert exit_code(["info", str(tmp_path / name)]) == 0


def test_json_says_what_the_networks_say(trained: Trained, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("\n".join(DIALOGUE), "utf-8")
    done = run("translate", str(tmp_path / "in.txt"), "--lines", "--json", "-b", str(trained.bundle), *FLAGS)
    records = [json.loads(line) for line in done.splitlines()]
    chosen = [record["translation"] for record in records]
    assert chosen == ["bondia senor.", "vos videz la lampo.", "volez vos la domo?", chosen[3]]
    for number, record in enumerate(records):
        before = chosen[max(0, number - 3) : number]
        for hypothesis in record["hypotheses"]:
            assert hypothesis["pmi"] == pytest.approx(trained.pmi(before, hypothesis["text"]), abs=2e-3)
    # Without context PMI is 0, and not nearly 0.
    assert {hypothesis["pmi"] for hypothesis in records[0]["hypotheses"]} == {0.0}


def test_every_command_works(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    bundle = ["-b", str(trained.bundle), *FLAGS]
    document = DOCUMENTS[0]
    (tmp_path / "in.en").write_text("".join(f"{source}\n" for source, _ in document), "utf-8")
    (tmp_path / "ref.eo").write_text("".join(f"{target}\n" for _, target in document), "utf-8")

    def ran(*arguments: str) -> str:
        assert exit_code([*arguments]) == 0, capfd.readouterr().err
        return capfd.readouterr().out

    for search in ("rerank", "lattice", "sentence"):
        written = ran("translate", "in.en", "--lines", "--search", search, *bundle)
        assert len(written.splitlines()) == len(document)
    assert "chosen  log p" in ran("translate", "in.en", "--lines", "--explain", "--compare", *bundle)
    lists = ran("translate", "in.en", "--lines", "--json", *bundle)
    (tmp_path / "lists.jsonl").write_text(lists, "utf-8")
    assert ran("rerank", "lists.jsonl", *bundle) == ran("translate", "in.en", "--lines", *bundle)
    typed = "\n".join([*DIALOGUE, "/nbest", "/why", "/pick 2", "/edit vos takez lo.", "/why", "/context"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{typed}\n".encode())))
    talked = ran("repl", *bundle)
    assert "vos videz la lampo." in talked and "⏎" in talked  # the boundary, as /why shows it
    candidates = ["vos videz la lampo.", "tu vides la lampo."]
    group = {
        "source": "you see the lamp.",
        "context": ["bondia senor."],
        "candidates": candidates,
        "truth": 0,
    }
    (tmp_path / "set.jsonl").write_text(json.dumps(group) + "\n", "utf-8")
    (report,) = map(
        json.loads, ran("eval-contrastive", "set.jsonl", "--objective", "pmi", "--json", *bundle).splitlines()
    )
    assert report["accuracy"] == 1
    scores = [json.loads(line) for line in ran("score-contrastive", "set.jsonl", *bundle).splitlines()]
    for score, candidate in zip(scores, candidates, strict=True):
        assert score["pmi"] == pytest.approx(trained.pmi(["bondia senor."], candidate), abs=2e-3)
    ran(
        "tune", "in.en", "--ref", "ref.eo", "-T", "1", "-T", "2", "--no-save", "--no-plot", "-o", "t", *bundle
    )
    assert json.loads((tmp_path / "t" / "curve.json").read_text())["points"]
    assert "PMI" in ran("evaluate", "ref.eo", "--pmi", "-b", str(trained.bundle), "--threads", "1")
    lms = ["--source-lm", str(trained.bundle), "--target-lm", str(trained.bundle)]
    texts = ("".join(f"{target}\n" for _, target in document) for document in DOCUMENTS[:6])
    (tmp_path / "several.eo").write_text("\n".join(texts), "utf-8")
    ran("analyze", "pmi", "several.eo", "several.eo", *lms, "-o", "pmi.png", "--threads", "1")
    assert (tmp_path / "pmi.png").stat().st_size > 1000


def test_the_beam_says_that_it_can_t(trained: Trained) -> None:
    with pytest.raises(CadecError, match='no S-NMT that search="beam" could step') as caught:
        cadec_cli.load(trained.bundle, options={"search": "beam"})
    assert "rerank" in caught.value.hint


def run(*arguments: str, code: int = 0, without: str = "") -> str:
    """Run cadec in a process of its own, perhaps without some package."""
    program = "import sys; sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(',')))\n"
    program += "from cadec_cli.main import exit_code; sys.exit(exit_code(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", program, without or "none", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


def test_to_translate_takes_neither_transformers_nor_its_company(trained: Trained, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("good day sir.\n", "utf-8")
    translate = ["translate", str(tmp_path / "in.txt"), "-b", str(trained.bundle), *FLAGS]
    company = "transformers,tokenizers,huggingface_hub,gguf"
    assert run(*translate, "--search", "sentence", without=company) == "bondia senor.\n"
    # A D-LM of that kind does take it, and says so.
    told = run(*translate, without=company, code=1)
    assert "pip install 'cadec[huggingface]'" in told and len(told.splitlines()) <= 3
