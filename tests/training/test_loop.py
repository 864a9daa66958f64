"""What a run learns, keeps and refuses."""

import json
import math
import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch

from cadec_cli.data.shards import Shard
from cadec_cli.main import exit_code
from cadec_cli.models.storage import load_model
from cadec_cli.models.transformer import Transformer
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.training.checkpoints import Evaluation, Progress
from cadec_cli.training.loop import greedy


def run(kind: str, corpora: Path, output: Path, *options: object) -> int:
    data = {"lm": "docs", "nmt": "pairs"}[kind]
    arguments = (
        "--data",
        corpora / data,
        "--dev",
        corpora / f"{data}-dev",
        "--preset",
        "tiny",
        "--threads",
        1,
        *options,
    )
    return exit_code([str(part) for part in ("train", kind, "-o", output, *arguments, "--quiet")])


def records(output: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_the_document_model_learns_that_a_document_keeps_to_one_form(
    corpora: Path, made_up_bundle: Path
) -> None:
    stored = load_model(made_up_bundle.parent / "lm" / "model", "lm")
    pipeline = TextPipeline.load(corpora / "tgt")
    assert stored.pipelines["eo"] == pipeline.checksum

    def log_prob(context: list[str], text: str) -> float:
        ids = [
            3,
            *(i for sentence in context for i in (*pipeline.encode(sentence), 3)),
            *pipeline.encode(text),
            3,
        ]
        scored = len(pipeline.encode(text)) + 1
        tokens = torch.tensor([ids])
        with torch.inference_mode():
            scores = stored.model(tokens[:, :-1]).log_softmax(-1)[0]
        return float(scores[torch.arange(len(ids) - 1), tokens[0, 1:]][-scored:].sum())

    for opening, right, wrong in (
        ("salu ami.", "tu vides", "vos videz"),
        ("bondia senor.", "vos videz", "tu vides"),
    ):
        context = [opening, "la lampo esta ruga."]
        pmi = {
            form: log_prob(context, f"{form} la domo.") - log_prob([], f"{form} la domo.")
            for form in (right, wrong)
        }
        assert pmi[right] > pmi[wrong] + 1, pmi


@pytest.mark.slow
def test_the_translation_model_learns_all_but_the_form(corpora: Path, tmp_path: Path) -> None:
    bleu = ("--stop-on", "bleu", "--pipeline", corpora / "tgt")
    few = ("--max-updates", 200, "--evaluate-every", 100)
    assert run("nmt", corpora, tmp_path / "nmt", *few, *bleu, "--plot") == 0
    figures = [record["dev_bleu"] for record in records(tmp_path / "nmt") if "dev_bleu" in record]
    assert max(figures) > 60
    assert (tmp_path / "nmt" / "curves.png").read_bytes().startswith(b"\x89PNG")
    model = load_model(tmp_path / "nmt" / "model", "nmt").model
    assert isinstance(model, Transformer)
    source, target = (TextPipeline.load(corpora / name) for name in ("src", "tgt"))
    texts = ["the lamp is red.", "you see the river.", "hello friend."]
    translated = [target.decode(ids) for ids in greedy(model, [source.encode(text) for text in texts])]
    assert translated[0] == target.canonical("la lampo esta ruga.")
    assert translated[1] in [target.canonical(f"{form} la rivo.") for form in ("tu vides", "vos videz")]
    assert translated[2] == target.canonical("salu ami.")


def test_the_finished_model_is_the_mean_of_the_best_checkpoints(corpora: Path, tmp_path: Path) -> None:
    few = ("--max-updates", 60, "--evaluate-every", 10, "--keep-best", 3, "--update-tokens", 500)
    assert run("lm", corpora, tmp_path, *few) == 0
    evaluations = sorted((r["dev_loss"], r["update"]) for r in records(tmp_path) if "dev_loss" in r)
    best = [update for _, update in evaluations[:3]]
    kept = sorted((tmp_path / "checkpoints").iterdir())
    assert {int(path.name[-8:]) for path in kept} == {*best, 60}
    weights = [
        safetensors.torch.load_file(tmp_path / "checkpoints" / f"update-{update:08d}" / "model.safetensors")
        for update in best
    ]
    mean = safetensors.torch.load_file(tmp_path / "model" / "model.safetensors")
    for name, tensor in mean.items():
        torch.testing.assert_close(tensor, sum(w[name] for w in weights) / 3, atol=1e-6, rtol=1e-5)
    assert [path.name[-8:] for path in kept if (path / "optimizer.safetensors").exists()] == ["00000060"]
    assert load_model(kept[0], "lm").pipelines  # any checkpoint is a model directory


def test_training_stops_when_nothing_gets_better(corpora: Path, tmp_path: Path) -> None:
    # A learning rate of almost nothing can't improve the loss beyond noise for long.
    options = ("--learning-rate", 1e-12, "--evaluate-every", 1, "--patience", 3, "--update-tokens", 300)
    assert run("lm", corpora, tmp_path, *options, "--max-updates", 200) == 0
    assert max(record["update"] for record in records(tmp_path)) < 200


def test_half_precision_and_other_schedules_run(corpora: Path, tmp_path: Path) -> None:
    options = (
        "--precision",
        "bfloat16",
        "--schedule",
        "inverse-sqrt",
        "--max-updates",
        5,
        "--update-tokens",
        300,
    )
    assert run("nmt", corpora, tmp_path, *options, "--label-smoothing", 0.1, "--log-every", 1) == 0
    losses = [record["loss"] for record in records(tmp_path) if "loss" in record]
    assert len(losses) == 5 and all(map(math.isfinite, losses))


def test_a_loss_that_is_no_number_stops_with_advice(
    corpora: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = (
        "--learning-rate",
        1e9,
        "--warmup",
        0,
        "--clip",
        0,
        "--max-updates",
        50,
        "--schedule",
        "constant",
    )
    assert run("lm", corpora, tmp_path, *options, "--update-tokens", 300) == 1
    assert "--learning-rate" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("--schedule", "sawtooth"), 2, "'sawtooth' is not one of inverse-sqrt, cosine"),
        (("--update-tokens", 0), 2, "update_tokens must be a whole number from 1"),
        (("--preset", "gigantic"), 2, "no preset 'gigantic'"),
        (("--device", "abacus"), 2, "'abacus' is not one of auto, cpu, cuda"),
        (("--width", 63), 1, "not a multiple"),
        (("--stride", 1000), 1, "stride"),
        (("--data", "nowhere"), 1, "not a prepared corpus"),
    ],
)
def test_impossible_runs_are_refused_and_leave_nothing(
    arguments: tuple[object, ...],
    code: int,
    told: str,
    corpora: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run("lm", corpora, tmp_path / "run", *arguments) == code
    assert told in capfd.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "run").exists()


def test_a_window_longer_than_the_positions_is_refused(
    corpora: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("lm", corpora, tmp_path / "run", "--window", 200, "--positions", 100) == 1
    assert "positions" in capfd.readouterr().err


def test_a_parallel_corpus_is_no_food_for_a_language_model(
    corpora: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "train",
        "lm",
        "-o",
        tmp_path / "run",
        "--data",
        corpora / "pairs",
        "--dev",
        corpora / "pairs-dev",
    ]
    assert exit_code([str(argument) for argument in arguments]) == 1
    assert "parallel" in capfd.readouterr().err


def test_corpora_of_other_pipelines_do_not_mix(
    corpora: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    meta = json.loads((corpora / "docs-dev" / "shard.json").read_text())
    other = tmp_path / "other"
    other.mkdir()
    for path in (corpora / "docs-dev").iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    meta["sides"][0]["pipeline_checksum"] = "0" * 64
    del meta["checksum"]  # which would tell that it is not as it was written
    (other / "shard.json").write_text(json.dumps(meta))
    assert run("lm", corpora, tmp_path / "run", "--dev", other) == 1
    assert "other text pipelines" in capfd.readouterr().err


def test_a_run_is_not_overwritten_and_resumed_only_as_it_was(
    corpora: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    few = ("--max-updates", 4, "--update-tokens", 300)
    assert run("lm", corpora, tmp_path, *few) == 0
    assert run("lm", corpora, tmp_path, *few) == 1
    assert "--resume" in capfd.readouterr().err
    resume = ["train", "lm", "-o", str(tmp_path), "--resume", "--quiet"]
    assert exit_code([*resume, "--width", "128"]) == 2
    assert "width can't change" in capfd.readouterr().err
    assert exit_code([*resume, "--max-updates", "8"]) == 0
    assert max(record["update"] for record in records(tmp_path)) == 8
    assert exit_code(["train", "nmt", "-o", str(tmp_path), "--resume"]) == 1
    assert exit_code(["train", "lm", "-o", str(tmp_path / "none"), "--resume"]) == 1


def test_a_run_may_start_from_the_weights_of_another(
    corpora: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    few = ("--max-updates", 4, "--update-tokens", 300)
    first, second = tmp_path / "first", tmp_path / "second"
    assert run("lm", corpora, first, *few) == 0
    still = ("--start-from", first, "--max-updates", 1, "--learning-rate", 1e-12, "--dropout", 0.3)
    assert run("lm", corpora, second, *still, "--seed", 5) == 0
    before, after = (load_model(place / "model", "lm").model.state_dict() for place in (first, second))
    for name, weights in before.items():
        torch.testing.assert_close(after[name], weights, atol=1e-9, rtol=0)
    # Killed before its first checkpoint, it still starts from there.
    shutil.rmtree(second / "checkpoints")
    shutil.rmtree(second / "model")
    assert exit_code(["train", "lm", "-o", str(second), "--resume", "--quiet"]) == 0
    again = load_model(second / "model", "lm").model.state_dict()
    assert all(torch.equal(again[name], weights) for name, weights in after.items())
    assert exit_code(["train", "lm", "-o", str(second), "--resume", "--start-from", str(first)]) == 2
    # The same shapes, and yet another network.
    assert run("lm", corpora, tmp_path / "third", "--start-from", first, "--heads", 2) == 1
    assert "other sizes: heads 4" in capfd.readouterr().err
    assert run("nmt", corpora, tmp_path / "fourth", "--start-from", first) == 1
    assert "not 'nmt'" in capfd.readouterr().err
    assert not (tmp_path / "third").exists() and not (tmp_path / "fourth").exists()


def test_the_best_are_ranked_by_loss_or_by_bleu() -> None:
    progress = Progress(
        evaluations=[Evaluation(10, 2.0, 5.0), Evaluation(20, 1.0, 4.0), Evaluation(30, 1.5, 9.0)]
    )
    assert [e.update for e in progress.best("loss", 2)] == [20, 30]
    assert [e.update for e in progress.best("bleu", 2)] == [30, 10]
    assert progress.since_best("loss") == 1
    assert progress.since_best("bleu") == 0


def test_corpora_have_what_was_made(corpora: Path) -> None:
    pairs, dev = Shard(corpora / "pairs"), Shard(corpora / "pairs-dev")
    assert 1200 * 6 < len(pairs) + len(dev) < 1200 * 7
    assert len(pairs.document_ends) + len(dev.document_ends) == 1200
