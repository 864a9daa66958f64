"""A pretrained language model goes on learning from documents, in the loop that trains everything else."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from cadec_cli.data.batches import NO_LABEL, SentenceWindows, WeightedShard, in_order, tokens_seen
from cadec_cli.data.shards import Shard, SideInfo, writing_shard
from cadec_cli.main import exit_code
from cadec_cli.models.huggingface import load_network
from cadec_cli.models.pretrained_lm import PretrainedLM, PretrainedLMConfig
from cadec_cli.models.pretrained_settings import read_language_settings
from cadec_cli.models.storage import fill, load_model, model_state
from cadec_cli.text.tokenizers.line_text import PLAIN, LineText
from cadec_cli.training.loop import cross_entropy
from tests.helpers import made_up_pair
from tests.helpers.made_up_models import cadec
from tests.helpers.pretrained_lms import trained_llama, write_gguf, write_lm

TINY = ("--preset", "tiny", "--threads", 1)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """llama/, which has read a little; docs/ and docs-dev/, documents in its tokens."""
    root = tmp_path_factory.mktemp("fine-tuning")
    trained_llama(root / "llama", steps=60)
    made_up_pair.write(root, count=400)
    dev = ("--dev-output", root / "docs-dev", "--dev-every", 20, "--lines", "--processes", 1)
    cadec("prepare", "text", root / "target.txt", "-p", root / "llama", "-l", "eo", "-o", root / "docs", *dev)
    return root


def train(prepared: Path, output: Path, *more: object) -> tuple[object, ...]:
    data = ("--data", prepared / "docs", "--dev", prepared / "docs-dev")
    return ("train", "lm", "--start-from", prepared / "llama", *data, "-o", output, *TINY, *more)


@pytest.fixture(scope="module")
def tuned(prepared: Path) -> Path:
    cadec(*train(prepared, prepared / "run", "--max-updates", 120))
    return prepared / "run"


# The corpus


def test_a_corpus_is_written_in_the_tokens_of_the_model(prepared: Path) -> None:
    shard = Shard(prepared / "docs-dev")
    text = LineText.load(prepared / "llama" / "tokenizer.json", boundary="\n", start="<s>")
    (side,) = shard.sides
    assert side.info.boundary == text.boundary and side.tokens[0] == text.boundary
    documents = (prepared / "target.txt").read_text().split("\n\n")
    held_out = [line for document in documents[19::20] for line in document.strip().splitlines()]
    assert [text.decode(side.sentence(index)[:-1].tolist()) for index in range(len(shard))] == held_out
    assert all(side.sentence(index)[-1] == text.boundary for index in range(len(shard)))


def test_windows_begin_with_a_sentence_after_the_beginning(prepared: Path) -> None:
    shards = [WeightedShard(Shard(prepared / "docs"))]
    (side,) = shards[0].shard.sides
    boundary = side.info.boundary
    everything = SentenceWindows(shards, 40, 16, start=7)
    starts = {int(end) for end in side.ends[:-1]} | {1}
    tokens = np.array(side.tokens)
    for seed in range(3):
        everything.epoch(seed, 0)
        for examples in in_order(everything, 2000)[:20]:
            batch = everything.batch(examples)
            (read,) = batch.inputs
            assert (read[:, 0] == 7).all()
            for row, labels in zip(read, batch.labels, strict=True):
                real = labels[labels != NO_LABEL].tolist()
                assert row[1 : len(real)].tolist() == real[:-1] and len(real) <= 40
                assert any(tokens[start : start + len(real)].tolist() == real for start in starts)
    covered = sum(int((everything.batch(e).labels != NO_LABEL).sum()) for e in in_order(everything, 2000))
    assert covered >= len(side.tokens) - 1 - len(shards[0].shard.document_ends)
    assert boundary in tokens_seen(shards)


def test_to_tell_apart_what_is_seen_is_a_softmax_over_that(prepared: Path) -> None:
    shards = [WeightedShard(Shard(prepared / "docs-dev"))]
    seen = tokens_seen(shards)
    all_examples, examples = (SentenceWindows(shards, 40, 30, start=1, among=among) for among in (None, seen))
    network = PretrainedLM.shaped_as(prepared / "llama")
    weights = model_state(load_network(prepared / "llama").model)
    fill(network, {f"model.{name}": weight for name, weight in weights.items()}, prepared)
    plain, among = all_examples.batch(np.arange(5)), examples.batch(np.arange(5))
    select = plain.labels != NO_LABEL
    logits = network(*plain.inputs, select)
    expected = torch.nn.functional.cross_entropy(
        logits[:, torch.from_numpy(seen)], among.labels[select], reduction="sum"
    )
    assert cross_entropy()(network, among).item() == pytest.approx(expected.item(), rel=1e-5)
    assert (torch.from_numpy(seen)[among.labels[select]] == plain.labels[select]).all()
    # All that transformers itself would say of the same text.
    model = transformers.AutoModelForCausalLM.from_pretrained(prepared / "llama")
    own = model(input_ids=plain.inputs[0]).logits[select]
    assert torch.allclose(logits, own, atol=1e-4)


@pytest.mark.parametrize("lengths", [(600, 5, 5), (40,) * 10, (150, 7, 49, 3, 60), (191, 2)])
def test_every_part_of_a_document_is_read(lengths: tuple[int, ...], tmp_path: Path) -> None:
    with writing_shard(tmp_path / "long", [SideInfo("en", "", 1000)]) as writer:
        for length in lengths:
            writer.add([7] * length)
        writer.end_document()
    shard = WeightedShard(Shard(tmp_path / "long"))
    windows = SentenceWindows([shard], 192, 144, start=1)
    read = np.zeros(len(shard.shard.sides[0].tokens), bool)
    for start, length in zip(windows._start, windows._length, strict=True):
        read[start + 1 : start + 1 + length] = True
    assert read[1:].all()
    assert len(set(zip(windows._start.tolist(), windows._length.tolist(), strict=True))) == len(windows)


# The run


def losses(run: Path) -> list[float]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [record["dev_loss"] for record in map(json.loads, lines) if "dev_loss" in record]


def test_it_learns_and_is_a_model_of_hugging_face_again(prepared: Path, tuned: Path) -> None:
    found = losses(tuned)
    assert found[-1] < found[0] - 0.03
    settings = read_language_settings(tuned / "model")
    assert settings.origin == "llama, fine-tuned" and settings.start == "<s>" and not settings.no_context
    model = transformers.AutoModelForCausalLM.from_pretrained(tuned / "model")
    stored = load_model(max((tuned / "checkpoints").glob("update-*")), "pretrained-lm")
    assert isinstance(stored.model, PretrainedLM)
    ours = dict(stored.model.model.named_parameters())
    if losses(tuned)[-1] == min(losses(tuned)):  # the newest checkpoint is the model
        assert all(torch.equal(weight, ours[name]) for name, weight in model.named_parameters())
    origin = transformers.AutoModelForCausalLM.from_pretrained(prepared / "llama")
    changed = {
        name
        for (name, before), after in zip(origin.named_parameters(), model.parameters(), strict=True)
        if not torch.equal(before, after)
    }
    tables = {"model.embed_tokens.weight", "lm_head.weight"}
    assert changed == {name for name, _ in model.named_parameters()} - tables


def test_all_can_learn_and_a_gguf_can_be_the_beginning(prepared: Path, tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf")
    text = tmp_path / "text"
    text.write_text("one two.\nthree.\n\nfour five six.\nseven.\n")
    cadec("prepare", "text", text, "-p", tmp_path / "tiny.gguf", "-l", "en", "-o", tmp_path / "data")
    data = ("--data", tmp_path / "data", "--dev", tmp_path / "data", "--window", 60, "--stride", 40)
    more = ("--learn", "all", "--predict", "all", "--max-updates", 3)
    run = tmp_path / "run"
    cadec("train", "lm", "--start-from", tmp_path / "tiny.gguf", *data, "-o", run, *TINY, *more)
    before, after = (
        dict(transformers.AutoModelForCausalLM.from_pretrained(run / name).float().named_parameters())
        for name in ("origin", "model")
    )
    assert all(not torch.equal(before[name], after[name]) for name in before)


@pytest.mark.slow
def test_killed_at_any_step_and_resumed_it_ends_with_the_same_weights(prepared: Path, tmp_path: Path) -> None:
    more = ("--max-updates", 40, "--checkpoint-every", 4, "--evaluate-every", 20, "--log-every", 1)
    arguments = train(prepared, tmp_path / "whole", *more, "--precision", "bfloat16")
    cadec(*arguments)
    run = tmp_path / "run"
    command = [sys.executable, "-m", "cadec_cli", *map(str, arguments)]
    command[command.index(str(tmp_path / "whole"))] = str(run)
    rng = random.Random(1)
    kills = 0
    while kills < 2:
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        goal = updates(run) + rng.randint(4, 9)
        while updates(run) < goal:
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        command = [sys.executable, "-m", "cadec_cli", "train", "lm", "-o", str(run), "--resume"]
    (prepared / "llama").rename(prepared / "moved")  # the run has all it needs
    try:
        cadec(*command[3:])
    finally:
        (prepared / "moved").rename(prepared / "llama")
    for name in ("model/model.safetensors", "model/config.json", "model/tokenizer.json"):
        assert (run / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def updates(run: Path) -> int:
    metrics = run / "metrics.jsonl"
    return metrics.read_text().count("tokens_per_second") if metrics.exists() else 0


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (("--layers", 3), 2, "a pretrained model's sizes are fixed"),
        (("--window", 5000), 1, "more than the model's positions (256)"),
        (("--learn", "nothing"), 2, "'nothing' is not one of layers, all"),
        (("--start-from", "GPT2"), 1, "not prepared with the tokenizer of the pretrained model"),
        (("--start-from", "hf:nobody/nothing-at-all"), 1, "hub"),
    ],
)
def test_what_does_not_fit_is_told(
    change: tuple[Any, ...],
    code: int,
    message: str,
    prepared: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    write_lm(tmp_path / "gpt2", "gpt2")
    change = tuple(tmp_path / "gpt2" if part == "GPT2" else part for part in change)
    assert exit_code([*map(str, train(prepared, tmp_path / "run", *change))]) == code
    assert message in " ".join(capsys.readouterr().err.split())


# Pairs


@pytest.fixture(scope="module")
def pairs(prepared: Path) -> Path:
    """pairs/ and pairs-dev/: the sources of the made-up language, each with its translation."""
    dev = ("--dev-output", prepared / "pairs-dev", "--dev-every", 20, "--columns", "1,2", "--processes", 1)
    model = ("-p", prepared / "llama", "-l", "en,eo")
    cadec("prepare", "text", prepared / "pairs.tsv", *model, "-o", prepared / "pairs", *dev)
    return prepared


def train_on_pairs(pairs: Path, output: Path, *more: object) -> tuple[object, ...]:
    data = ("--data", pairs / "pairs", "--dev", pairs / "pairs-dev", "-o", output)
    return ("train", "lm", "--start-from", pairs / "llama", *data, *TINY, *more)


def test_both_sides_of_pairs_have_the_tokens_of_the_model(pairs: Path) -> None:
    shard = Shard(pairs / "pairs-dev")
    text = LineText.load(pairs / "llama" / "tokenizer.json", boundary="\n", start="<s>")
    documents = (pairs / "pairs.tsv").read_text().split("\n\n")
    held_out = [line.split("\t") for document in documents[19::20] for line in document.strip().splitlines()]
    for number, side in enumerate(shard.sides):
        assert side.info.boundary == text.boundary and side.info.language == ("en", "eo")[number]
        found = [text.decode(side.sentence(index)[:-1].tolist()) for index in range(len(shard))]
        assert found == [pair[number] for pair in held_out]


def test_it_learns_from_pairs_what_the_source_says(pairs: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    cadec(*train_on_pairs(pairs, run, "--max-updates", 150, "--learn", "all", "--learning-rate", 4e-3))
    settings = read_language_settings(run / "model")
    assert settings.template == PLAIN and not settings.no_context
    text = LineText.load(run / "model" / "tokenizer.json", boundary="\n", start="<s>")
    model = transformers.AutoModelForCausalLM.from_pretrained(run / "model")

    def log_prob(lines: list[str], last: str) -> float:
        before = [text.start] + [token for line in lines for token in (*text.encode(line), text.boundary)]
        tokens = torch.tensor([[*before, *text.encode(last), text.boundary]])
        with torch.inference_mode():
            log_probs = model(input_ids=tokens).logits.log_softmax(-1)[0, len(before) - 1 : -1]
        return float(log_probs.gather(1, tokens[0, len(before) :, None]).sum())

    # The noun is in the source alone, the address only in what was said before.
    polite, familiar = ("good day sir.", "bondia senor."), ("hello friend.", "salu ami.")
    nouns = forms = 0
    for noun, wrong in (("lampo", "domo"), ("domo", "rivo"), ("birdo", "libro"), ("libro", "lampo")):
        source = next(one for one, other in made_up_pair.NOUNS.items() if other == noun)
        for context, form, other in ((polite, "vos videz", "tu vides"), (familiar, "tu vides", "vos videz")):
            lines = [*context, f"you see the {source}."]
            right = log_prob(lines, f"{form} la {noun}.")
            nouns += right > log_prob(lines, f"{form} la {wrong}.")
            forms += right > log_prob(lines, f"{other} la {noun}.")
    assert nouns >= 7 and forms >= 7


def test_a_run_on_pairs_goes_on_to_the_same_weights(pairs: Path, tmp_path: Path) -> None:
    more = ("--max-updates", 8, "--evaluate-every", 4, "--checkpoint-every", 4, "--schedule", "constant")
    cadec(*train_on_pairs(pairs, tmp_path / "whole", *more))
    cadec(*train_on_pairs(pairs, tmp_path / "run", *more[2:], "--max-updates", 4))
    cadec("train", "lm", "-o", tmp_path / "run", "--resume", "--max-updates", 8)
    whole, run = (tmp_path / name / "model" / "model.safetensors" for name in ("whole", "run"))
    assert whole.read_bytes() == run.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "nmt"), "`cadec train lm --start-from` reads such pairs"),
        (("train", "lm"), "is a parallel corpus, not a monolingual one"),
    ],
)
def test_pairs_in_the_tokens_of_a_model_are_for_that_model(
    arguments: tuple[str, str],
    message: str,
    pairs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = ("--data", pairs / "pairs", "--dev", pairs / "pairs-dev", "-o", tmp_path / "run")
    assert exit_code([*map(str, (*arguments, *data, "--preset", "tiny"))]) == 1
    assert message in " ".join(capsys.readouterr().err.split())


def test_pairs_and_single_sentences_are_not_mixed(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = train_on_pairs(pairs, tmp_path / "run", "--data", pairs / "docs")
    assert exit_code([*map(str, arguments)]) == 1
    assert "was prepared with other text pipelines" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("languages", ["en,fr,de", "en,en", "en,"])
def test_pairs_have_two_languages(
    languages: str, pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("prepare", "text", pairs / "pairs.tsv", "--columns", "1,2", "-p", pairs / "llama")
    assert exit_code([*map(str, (*arguments, "-l", languages, "-o", tmp_path / "out"))]) == 2
    assert "one model and two languages, such as en,fr" in " ".join(capsys.readouterr().err.split())


# What is refused


def test_flags_of_fine_tuning_are_refused_elsewhere(
    corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ("--data", corpora / "docs", "--dev", corpora / "docs-dev", "-o", tmp_path / "run", *TINY)
    assert exit_code([*map(str, ("train", "lm", *data, "--learn", "all"))]) == 2
    assert "--learn can't be used here: --start-from names no pretrained model" in " ".join(
        capsys.readouterr().err.split()
    )


def test_what_is_left_of_a_run_that_never_began_is_in_nobodys_way(
    prepared: Path, corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    wrong = ("--data", corpora / "docs", "--dev", corpora / "docs-dev", "-o", run, *TINY)
    start = ("--start-from", prepared / "llama")
    assert exit_code([*map(str, ("train", "lm", *start, *wrong))]) == 1  # another tokenizer's corpus
    more = ("--max-updates", 2, "--evaluate-every", 1)
    cadec("train", "lm", *wrong, *more)
    cadec("train", "lm", "-o", run, "--resume", "--max-updates", 3)
    cadec("convert", "--lm", run, "--target-pipeline", corpora / "tgt", "-o", tmp_path / "bundle")
    capsys.readouterr()
    # And the other way round: what is in a model's tokens is of no use without the model.
    forgotten = ("--data", prepared / "docs", "--dev", prepared / "docs-dev", "-o", tmp_path / "other", *TINY)
    assert exit_code([*map(str, ("train", "lm", *forgotten))]) == 1
    assert "name it with --start-from" in " ".join(capsys.readouterr().err.split())


def test_what_a_model_has_for_pictures_does_not_learn() -> None:
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    text = {**sizes, "head_dim": 8, "num_key_value_heads": 2, "vocab_size": 60, "sliding_window": 64}
    vision = {**sizes, "image_size": 28, "patch_size": 14}
    config = transformers.Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4)
    network = PretrainedLM(PretrainedLMConfig(config.to_dict()))
    every = {name for name, _ in network.named_parameters()}
    assert any("vision" in name for name in every)
    select = torch.ones(1, 3, dtype=torch.bool)
    torch.autograd.backward(network(torch.tensor([[5, 6, 7]]), select).sum())
    reached = {name for name, weight in network.named_parameters() if weight.grad is not None}
    assert network.read_by_text == reached < every


def test_two_processes_start_from_one_model(prepared: Path, tmp_path: Path) -> None:
    more = ("--max-updates", 4, "--evaluate-every", 4)
    arguments = map(str, train(prepared, tmp_path / "run", *more))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run([*torchrun, "-m", "cadec_cli", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert read_language_settings(tmp_path / "run" / "model").origin == "llama, fine-tuned"


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        (
            ("-p", "pipelines/rru"),
            1,
            "if it is a model on the hub, write hf:pipelines/rru",
        ),
        (("-p", "TGT", "-l", "ru"), 1, "is for 'eo', not for 'ru'"),
        (("-p", "TGT", "-p", "LLAMA", "-l", "eo"), 2, "parallel text is prepared with text pipelines"),
        (("-p", "hf:nothing"), 1, "'nothing' can't be a name on the Hugging Face hub"),
    ],
)
def test_what_a_corpus_can_not_be_prepared_with(
    given: tuple[str, ...],
    code: int,
    message: str,
    prepared: Path,
    corpora: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"TGT": str(corpora / "tgt"), "LLAMA": str(prepared / "llama")}
    told = [places.get(part, part) for part in given]
    language = [] if "-l" in told or "rru" in told[1] else ["-l", "eo"]
    text = str(prepared / "target.txt")
    assert exit_code(["prepare", "text", text, *told, *language, "-o", str(prepared / "nowhere")]) == code
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_model_needs_its_language_to_prepare_for(
    prepared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ("prepare", "text", prepared / "target.txt", "-p", prepared / "llama", "-o", prepared / "nowhere")
    assert exit_code([*map(str, told)]) == 1
    assert "name it with --language" in " ".join(capsys.readouterr().err.split())


# What comes of it


def test_it_goes_through_convert_translate_and_eval_contrastive(
    prepared: Path, tuned: Path, made_up_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "bundle"
    cadec("convert", made_up_bundle, "--lm", tuned, "-o", bundle, "--temperature", 1)
    capsys.readouterr()
    (tmp_path / "in.txt").write_text("good day sir.\nyou see the lamp.\nyou take the old boat.\n")
    cadec("translate", tmp_path / "in.txt", "-b", bundle, "--search", "rerank", "--compute-type", "float32")
    assert capsys.readouterr().out.count("\n") == 3
    group = {
        "source": "you see the lamp.",
        "context": ["salu ami."],
        "candidates": ["tu vides la lampo.", "vos videz la lampo."],
        "truth": 0,
    }
    (tmp_path / "set.jsonl").write_text(json.dumps(group) + "\n")
    scorers = ("--objective", "pmi", "--objective", "c-score", "--json", "--compute-type", "float32")
    cadec("eval-contrastive", tmp_path / "set.jsonl", "-b", bundle, *scorers)
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [result["objective"] for result in results] == ["pmi", "c-score"]
