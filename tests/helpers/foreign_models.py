"""Models in the layouts of Marian, fairseq and OpenNMT-py, from networks of transformers.

The networks are another implementation of the same transformers: what a converted model has to say comes from
them, not from our own reading of the weights.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
import yaml
from torch import Tensor, nn

WIDTH, HEADS, LAYERS, INNER = 16, 2, 2, 24
SHAPE = {
    "d_model": WIDTH,
    "encoder_layers": LAYERS,
    "decoder_layers": LAYERS,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
    "encoder_ffn_dim": INNER,
    "decoder_ffn_dim": INNER,
    "max_position_embeddings": 70,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
}

SENTENCES = [
    f"{who} {does} {what}."
    for who in ("the captain", "my sister", "her old friend", "nobody")
    for does in ("sees", "has lost", "wants", "will bring")
    for what in ("the ship", "a letter", "his keys", "some bread")
]
OTHERS = [
    f"{who} {does} {what}."
    for who in ("капитан", "моя сестра", "её старый друг", "никто")
    for does in ("видит", "потерял", "хочет", "принесёт")
    for what in ("корабль", "письмо", "ключи", "хлеб")
]


def train_spm(
    path: Path, lines: Sequence[str], size: int = 60, specials: Sequence[str] = ("<unk>", "<s>", "</s>")
) -> list[str]:
    """Train a SentencePiece model; its pieces, special ones left out."""
    names = {"<s>": "bos_id", "</s>": "eos_id", "<unk>": "unk_id"}
    ids: Any = {name: specials.index(token) if token in specials else -1 for token, name in names.items()}
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        minloglevel=2,
        hard_vocab_limit=False,
        **ids,
    )
    path.write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [processor.id_to_piece(index) for index in range(len(specials), processor.get_piece_size())]


@dataclass(frozen=True)
class PieceText:
    """Text whose words are tokens of a vocabulary, separated by spaces."""

    vocabulary: Sequence[str]
    boundary: int
    identity: str = "pieces"

    def encode(self, text: str) -> list[int]:
        return [self.vocabulary.index(word) for word in text.split()]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.vocabulary[index] for index in ids)

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        return [f" {self.vocabulary[index]}" for index in ids]


def randomised(network: nn.Module, *, epsilon: float) -> nn.Module:
    """Weights that leave no part of a network without effect, and an epsilon that can be seen."""
    torch.manual_seed(3)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "embed_positions" not in name:
                parameter.copy_(torch.randn_like(parameter) * 0.35 + (1.0 if "norm" in name else 0.0))
    for part in network.modules():
        if isinstance(part, nn.LayerNorm):
            part.eps = epsilon
    return network.eval()


def made_to_end(network: Any, end: int) -> Any:
    """Let an M2M100 of random weights come to an end, whose logit its last norm then raises everywhere."""
    with torch.no_grad():
        bias = network.model.decoder.layer_norm.bias
        bias *= 3
        network.model.shared.weight[end] = bias * 12 / bias.square().sum()
    return network


@torch.inference_mode()
def original_log_probs(
    network: Any, source: Sequence[int], target: Sequence[int], *, start: int, end: int, tokens: int
) -> list[float]:
    """log p of every target token and of the end, of the first `tokens` of the vocabulary."""
    output = network(
        input_ids=torch.tensor([list(source)]),
        decoder_input_ids=torch.tensor([[start, *target]]),
        use_cache=False,
    )
    log_probs = output.logits[0, :, :tokens].log_softmax(-1)
    return [float(row[token]) for row, token in zip(log_probs, [*target, end], strict=True)]


# ---- Marian ----------------------------------------------------------------------------------------------

MARIAN_OPTIONS = {
    "type": "transformer",
    "enc-depth": LAYERS,
    "dec-depth": LAYERS,
    "transformer-heads": HEADS,
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "",
    "transformer-ffn-activation": "swish",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-no-projection": False,
    "transformer-guided-alignment-layer": "last",
    "tied-embeddings-all": True,
}


def marian_network(tokens: int) -> Any:
    """Marian's transformer: its start is a vector of zeros, which here is the embedding of one token more."""
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=tokens + 1,
        pad_token_id=tokens,
        decoder_start_token_id=tokens,
        eos_token_id=0,
        forced_eos_token_id=None,
        activation_function="swish",
        scale_embedding=True,
        **SHAPE,
    )
    network: Any = randomised(MarianMTModel(config), epsilon=1e-6)
    with torch.no_grad():
        network.model.shared.weight[tokens] = 0
        network.final_logits_bias.copy_(torch.randn_like(network.final_logits_bias))
        network.final_logits_bias[0, 0] += 7  # so that translations come to an end
        for side in (network.model.encoder, network.model.decoder):
            side.embed_tokens.weight = network.model.shared.weight
            side.embed_positions.weight.copy_(marian_sinusoids(side.embed_positions.weight.shape[0]))
        network.lm_head.weight = network.model.shared.weight
    return network


def marian_sinusoids(positions: int, width: int = WIDTH) -> Tensor:
    """As Marian's C++ computes them, number by number."""
    table = torch.zeros(positions, width)
    scales = width / 2
    increment = math.log(10000.0) / (scales - 1)
    for position in range(positions):
        for index in range(int(scales)):
            angle = position * math.exp(index * -increment)
            table[position, index] = math.sin(angle)
            table[position, int(scales) + index] = math.cos(angle)
    return table


def marian_arrays(network: Any, tokens: int) -> dict[str, np.ndarray[Any, Any]]:
    """The network's weights under Marian's names."""
    arrays = {
        "Wemb": network.model.shared.weight[:tokens],
        "decoder_ff_logit_out_b": network.final_logits_bias[:, :tokens],
    }
    for side in ("encoder", "decoder"):
        for index, layer in enumerate(getattr(network.model, side).layers):
            prefix = f"{side}_l{index + 1}"
            attentions = {"self": (layer.self_attn, layer.self_attn_layer_norm)}
            if side == "decoder":
                attentions["context"] = (layer.encoder_attn, layer.encoder_attn_layer_norm)
            for kind, (attention, norm) in attentions.items():
                for letter, part in (("q", "q_proj"), ("k", "k_proj"), ("v", "v_proj"), ("o", "out_proj")):
                    linear = getattr(attention, part)
                    arrays[f"{prefix}_{kind}_W{letter}"] = linear.weight.T
                    arrays[f"{prefix}_{kind}_b{letter}"] = linear.bias[None]
                arrays[f"{prefix}_{kind}_Wo_ln_scale"] = norm.weight[None]
                arrays[f"{prefix}_{kind}_Wo_ln_bias"] = norm.bias[None]
            for number, linear in (("1", layer.fc1), ("2", layer.fc2)):
                arrays[f"{prefix}_ffn_W{number}"] = linear.weight.T
                arrays[f"{prefix}_ffn_b{number}"] = linear.bias[None]
            arrays[f"{prefix}_ffn_ffn_ln_scale"] = layer.final_layer_norm.weight[None]
            arrays[f"{prefix}_ffn_ffn_ln_bias"] = layer.final_layer_norm.bias[None]
    return {name: tensor.detach().numpy().copy() for name, tensor in arrays.items()}


def write_marian(
    directory: Path,
    arrays: dict[str, np.ndarray[Any, Any]],
    vocabulary: Sequence[str],
    options: dict[str, Any] = MARIAN_OPTIONS,
) -> None:
    """Marian's files, as OPUS-MT's archives have them."""
    config = yaml.safe_dump(options).encode() + b"\0"
    stored: dict[str, Any] = {**arrays, "special:model.yml": np.frombuffer(config, np.int8)}
    np.savez(directory / "model.npz", **stored)
    lines = [f'"{token}": {index}' for index, token in enumerate(vocabulary)]
    (directory / "vocab.yml").write_text("\n".join(lines) + "\n", "utf-8")
    decoder = {"models": ["/elsewhere/model.npz"], "vocabs": ["vocab.yml", "vocab.yml"], "beam-size": 6}
    (directory / "decoder.yml").write_text(yaml.safe_dump(decoder))


# ---- fairseq ---------------------------------------------------------------------------------------------

FAIRSEQ_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
FAIRSEQ_KINDS = ("fsmt", "m2m_100", "bart", "mbart")  # all of them are fairseq's transformers


def fairseq_network(kind: str, tokens: int) -> Any:
    """A fairseq transformer as transformers has it: post- or pre-norm, sinusoidal or learned positions."""
    import transformers as hf

    special = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    shape = {**SHAPE, **special, "scale_embedding": True, "forced_eos_token_id": None}
    network: Any
    if kind == "fsmt":
        sizes = {"src_vocab_size": tokens, "tgt_vocab_size": tokens, "langs": ["en", "ru"]}
        network = hf.FSMTForConditionalGeneration(
            hf.FSMTConfig(**shape, **sizes, activation_function="relu", tie_word_embeddings=False)
        )
    elif kind == "m2m_100":
        network = hf.M2M100ForConditionalGeneration(
            hf.M2M100Config(**shape, vocab_size=tokens, activation_function="relu")
        )
    elif kind == "bart":
        shape["scale_embedding"] = False
        network = hf.BartForConditionalGeneration(
            hf.BartConfig(**shape, vocab_size=tokens, activation_function="gelu")
        )
    else:
        network = hf.MBartForConditionalGeneration(
            hf.MBartConfig(**shape, vocab_size=tokens, activation_function="gelu")
        )
    return randomised(network, epsilon=1e-5)


def fairseq_state(network: Any) -> dict[str, Tensor]:
    """The network's weights under fairseq's names, with the oddments that fairseq leaves among them."""
    state = {"encoder.version": torch.tensor([3.0]), "decoder.version": torch.tensor([3.0])}
    learned = (
        isinstance(network.model.encoder.embed_positions, nn.Embedding)
        and "FSMT" not in type(network).__name__
    )
    for name, tensor in network.state_dict().items():
        renamed = name.removeprefix("model.")
        if not renamed.startswith(("encoder.", "decoder.")) or ("embed_positions" in renamed and not learned):
            continue
        state[renamed] = tensor.detach().clone()
    for side in ("encoder", "decoder"):
        table = getattr(network.model, side).embed_tokens.weight
        state[f"{side}.embed_tokens.weight"] = table.detach().clone()
        if not learned:
            state[f"{side}.embed_positions._float_tensor"] = torch.zeros(1)
    if "decoder.output_projection.weight" not in state:
        state["decoder.output_projection.weight"] = network.lm_head.weight.detach().clone()
    return state


def fairseq_options(kind: str) -> dict[str, Any]:
    """What fairseq would have been called with."""
    pre_norm = kind in ("m2m_100", "mbart")
    learned = kind in ("bart", "mbart")
    return {
        "arch": "transformer_wmt_en_de",
        "task": "translation",
        "source_lang": "en",
        "target_lang": "ru",
        "encoder_attention_heads": HEADS,
        "decoder_attention_heads": HEADS,
        "encoder_embed_dim": WIDTH,
        "decoder_embed_dim": WIDTH,
        "encoder_normalize_before": pre_norm,
        "decoder_normalize_before": pre_norm,
        "encoder_learned_pos": learned,
        "decoder_learned_pos": learned,
        "layernorm_embedding": learned,
        "activation_fn": "gelu" if learned else "relu",
        "no_scale_embedding": kind == "bart",
        "max_source_positions": 70,
        "max_target_positions": 70,
    }


def write_fairseq(directory: Path, checkpoint: dict[str, Any], vocabulary: Sequence[str]) -> None:
    """A checkpoint, and the dictionaries of two languages that share one."""
    torch.save(checkpoint, directory / "model.pt")
    for language in ("en", "ru"):
        lines = [f"{token} {1000 - index}" for index, token in enumerate(vocabulary[len(FAIRSEQ_SPECIAL) :])]
        (directory / f"dict.{language}.txt").write_text("\n".join(lines) + "\n", "utf-8")


# ---- OpenNMT-py ------------------------------------------------------------------------------------------

OPENNMT_SPECIAL = ["<unk>", "<blank>", "<s>", "</s>"]
OPENNMT_OPTIONS = {
    "encoder_type": "transformer",
    "decoder_type": "transformer",
    "heads": HEADS,
    "enc_layers": LAYERS,
    "dec_layers": LAYERS,
    "position_encoding": True,
    "pos_ffn_activation_fn": "gelu",
    "self_attn_type": "scaled-dot",
    "max_relative_positions": 0,
    "share_embeddings": False,
}


def opennmt_sinusoids(positions: int) -> Tensor:
    """As OpenNMT-py has them: sine and cosine by turns."""
    table = torch.zeros(positions, WIDTH)
    angles = torch.arange(positions)[:, None] * torch.exp(
        torch.arange(0, WIDTH, 2) * -(math.log(10000.0) / WIDTH)
    )
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
    return table


def opennmt_network(source_tokens: int, target_tokens: int) -> Any:
    """OpenNMT-py's transformer, pre-norm, with separate embeddings: M2M100 is one, given its positions."""
    import transformers as hf

    special = {"bos_token_id": 2, "pad_token_id": 1, "eos_token_id": 3, "decoder_start_token_id": 2}
    config = hf.M2M100Config(
        **SHAPE, **special, vocab_size=target_tokens, scale_embedding=True, activation_function="gelu"
    )
    network: Any = hf.M2M100ForConditionalGeneration(config)
    scale = math.sqrt(WIDTH)
    embedding = type(network.model.encoder.embed_tokens)
    network.model.encoder.embed_tokens = embedding(source_tokens, WIDTH, 1, embed_scale=scale)
    network.model.decoder.embed_tokens = embedding(target_tokens, WIDTH, 1, embed_scale=scale)
    network.lm_head = nn.Linear(WIDTH, target_tokens)
    for side in (network.model.encoder, network.model.decoder):
        # M2M100 leaves the rows of the padding and before it unused.
        side.embed_positions.weights[2:] = opennmt_sinusoids(side.embed_positions.weights.shape[0] - 2)
    return randomised(network, epsilon=1e-6)


def opennmt_checkpoint(network: Any, vocabulary: Any) -> dict[str, Any]:
    """The network's weights under OpenNMT-py's names."""
    import argparse

    attention = {
        "q_proj": "linear_query",
        "k_proj": "linear_keys",
        "v_proj": "linear_values",
        "out_proj": "final_linear",
    }
    state = {}
    for side, layers in (("encoder", "transformer"), ("decoder", "transformer_layers")):
        stack = getattr(network.model, side)
        table = f"{side}.embeddings.make_embedding"
        state[f"{table}.emb_luts.0.weight"] = stack.embed_tokens.weight
        state[f"{table}.pe.pe"] = opennmt_sinusoids(100)[:, None]
        parts = {f"{side}.layer_norm": stack.layer_norm}
        for index, layer in enumerate(stack.layers):
            name = f"{side}.{layers}.{index}"
            for ours, theirs in attention.items():
                parts[f"{name}.self_attn.{theirs}"] = getattr(layer.self_attn, ours)
                if side == "decoder":
                    parts[f"{name}.context_attn.{theirs}"] = getattr(layer.encoder_attn, ours)
            if side == "decoder":
                parts[f"{name}.layer_norm_1"] = layer.self_attn_layer_norm
                parts[f"{name}.layer_norm_2"] = layer.encoder_attn_layer_norm
            else:
                parts[f"{name}.layer_norm"] = layer.self_attn_layer_norm
            parts[f"{name}.feed_forward.layer_norm"] = layer.final_layer_norm
            parts[f"{name}.feed_forward.w_1"], parts[f"{name}.feed_forward.w_2"] = layer.fc1, layer.fc2
        state.update({f"{name}.weight": part.weight for name, part in parts.items()})
        state.update({f"{name}.bias": part.bias for name, part in parts.items()})
    return {
        "model": {name: tensor.detach().clone() for name, tensor in state.items()},
        "generator": {name: tensor.detach().clone() for name, tensor in network.lm_head.state_dict().items()},
        "vocab": vocabulary,
        "opt": argparse.Namespace(**OPENNMT_OPTIONS),
        "optim": {"training_step": 3},
    }
