"""Training speed against plain Hugging Face loops of the same size on the same batches, and padding.

Both sides see the same padded batches, the same dropout (none on attention weights), Adam and clipping; what
differs is the network, the loss and the loop. They take turns, and the median of the rounds counts.
"""

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn

from bench.rows import Row
from cadec_cli.data.batches import (
    NO_LABEL,
    Batch,
    DocumentWindows,
    Examples,
    SentencePairs,
    WeightedShard,
    padding_share,
    plan_updates,
)
from cadec_cli.data.shards import Shard, SideInfo, writing_shard
from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig
from cadec_cli.models.transformer import Transformer, TransformerConfig
from cadec_cli.parallel import available_cores
from cadec_cli.text.subwords import PAD
from cadec_cli.training.loop import Processes, Stepper, Task, cross_entropy
from cadec_cli.training.presets import TrainingOptions, choices, load_preset

VOCABULARY = 8_000
ROUNDS, UPDATES = 4, 2
CPU = torch.device("cpu")


def measure(directories: list[str]) -> Iterator[Row]:
    torch.set_num_threads(available_cores())
    with _made_up_shards() as (documents, pairs):
        yield _language_model(documents)
        yield _translation_model(pairs)


def measure_padding(directories: list[str]) -> Iterator[Row]:
    """The share of padding in an epoch's batches of real shards."""
    for directory in map(Path, directories):
        shard = Shard(directory)
        parallel = len(shard.sides) == 2
        weighted = [WeightedShard(shard)]
        examples: Examples = SentencePairs(weighted, 100) if parallel else DocumentWindows(weighted, 256, 192)
        tokens = 3_000 if parallel else 4_000
        plan = plan_updates(examples, batch_tokens=tokens, update_tokens=2 * tokens, seed=1, epoch=0)
        share = padding_share(examples, [batch for update in plan for batch in update.batches])
        limit = 0.10 if parallel else 0.05
        yield Row(f"padding {directory.name}", f"{share:.1%}", share, f"< {limit:.0%}", share < limit)


def _language_model(documents: Examples) -> Row:
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = choices(DocumentLMConfig, load_preset("lm", "small")["model"])
    config = DocumentLMConfig(vocabulary=VOCABULARY, **sizes)
    theirs = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCABULARY,
            n_positions=config.positions,
            n_embd=config.width,
            n_layer=config.layers,
            n_head=config.heads,
            n_inner=config.inner,
            resid_pdrop=config.dropout,
            embd_pdrop=config.dropout,
            attn_pdrop=0.0,
            use_cache=False,
        )
    )

    def loss(batch: Batch) -> torch.Tensor:
        last = batch.labels[:, -1:]
        tokens = torch.cat([batch.inputs[0], last.masked_fill(last == NO_LABEL, PAD)], 1)
        labels = tokens.masked_fill(tokens == PAD, -100)
        found: torch.Tensor = theirs(
            input_ids=tokens, attention_mask=(tokens != PAD).long(), labels=labels
        ).loss
        return found

    return _compare("D-LM small / Hugging Face GPT-2", DocumentLM(config), documents, theirs, loss, 0.0)


def _translation_model(pairs: Examples) -> Row:
    from transformers import MarianConfig, MarianMTModel

    sizes = choices(TransformerConfig, load_preset("nmt", "small")["model"])
    config = TransformerConfig(source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, **sizes)
    theirs = MarianMTModel(
        MarianConfig(
            vocab_size=VOCABULARY,
            decoder_vocab_size=VOCABULARY,
            share_encoder_decoder_embeddings=False,
            tie_word_embeddings=True,
            d_model=config.width,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            encoder_attention_heads=config.heads,
            decoder_attention_heads=config.heads,
            encoder_ffn_dim=config.inner,
            decoder_ffn_dim=config.inner,
            dropout=config.dropout,
            attention_dropout=0.0,
            activation_dropout=0.0,
            max_position_embeddings=config.positions,
            scale_embedding=True,
            pad_token_id=0,
            eos_token_id=3,
            decoder_start_token_id=2,
            use_cache=False,
        )
    )

    def loss(batch: Batch) -> torch.Tensor:
        source, target = batch.inputs
        labels = batch.labels.masked_fill(batch.labels == NO_LABEL, -100)
        logits = theirs(
            input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=target
        ).logits
        return nn.functional.cross_entropy(
            logits.view(-1, VOCABULARY), labels.view(-1), ignore_index=-100, label_smoothing=0.1
        )

    return _compare("S-NMT small / Hugging Face Marian", Transformer(config), pairs, theirs, loss, 0.1)


def _compare(
    what: str,
    ours: DocumentLM | Transformer,
    examples: Examples,
    theirs: nn.Module,
    their_loss: Callable[[Batch], torch.Tensor],
    label_smoothing: float,
) -> Row:
    options = TrainingOptions(update_tokens=6_000, batch_tokens=3_000, clip=1.0)
    task = Task(
        model=ours,
        examples=examples,
        dev=examples,
        loss=cross_entropy(label_smoothing),
        dev_loss=cross_entropy(),
        pipelines={},
    )
    our_optimizer, their_optimizer = (
        torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
        for model in (ours, theirs)
    )
    stepper = Stepper(task, options, our_optimizer, CPU, Processes())
    theirs.train()
    plan = plan_updates(examples, batch_tokens=3_000, update_tokens=6_000, seed=1, epoch=0)
    speeds: tuple[list[float], list[float]] = ([], [])
    for number in range(ROUNDS + 1):  # the first round warms up
        updates = [next(plan) for _ in range(UPDATES)]
        tokens = sum(update.tokens for update in updates)
        start = time.perf_counter()
        for update in updates:
            stepper.step(update, 1)
        middle = time.perf_counter()
        for update in updates:
            for examples_of_batch in update.batches:
                share = their_loss(examples.batch(examples_of_batch)) / len(update.batches)
                torch.autograd.backward(share)
            nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
            their_optimizer.step()
            their_optimizer.zero_grad(set_to_none=True)
        end = time.perf_counter()
        if number:
            speeds[0].append(tokens / (middle - start))
            speeds[1].append(tokens / (end - middle))
    mine, other = (statistics.median(speed) for speed in speeds)
    return Row(what, f"{mine:,.0f} / {other:,.0f} tokens/s", mine / other, "≥ 1.00", mine >= other)


@contextlib.contextmanager
def _made_up_shards() -> Iterator[tuple[Examples, Examples]]:
    """Random ids with the lengths of dialogue: documents for the D-LM, pairs for the S-NMT."""
    random = np.random.default_rng(1)
    side = SideInfo("xx", "none", VOCABULARY)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        with writing_shard(root / "documents", [side]) as writer:
            for _ in range(600):
                for _ in range(int(random.integers(4, 60))):
                    writer.add(random.integers(4, VOCABULARY, int(random.integers(3, 25))).tolist())
                writer.end_document()
        with writing_shard(root / "pairs", [side, SideInfo("yy", "none", VOCABULARY)]) as writer:
            for _ in range(30_000):
                length = 2 + int(random.gamma(2.0, 5.0))
                other = max(1, round(length * random.normal(1.0, 0.2)))
                writer.add(*(random.integers(4, VOCABULARY, size).tolist() for size in (length, other)))
        yield (
            DocumentWindows([WeightedShard(Shard(root / "documents"))], 256, 192),
            SentencePairs([WeightedShard(Shard(root / "pairs"))], 100),
        )
