"""Tiny language models of other people's architectures, with tokenizers of every usual kind.

Weights are random and large enough to matter; tokenizers are trained here on some sentences.

    write_lm(directory, "llama", "spm-bpe")     a Hugging Face directory
    write_gguf(path)                            a Llama in a GGUF file, and the network that it was made from
    trained_llama(directory)                    a Llama that has read documents of the made-up pair's target
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from cadec_cli.text.tokenizers.line_text import PROBES
from tests.helpers import made_up_pair

transformers.utils.logging.disable_progress_bar()

SENTENCES = (
    *("Where is the key?", "It is on the table.", "Thank you!", "Il est rouge.", "Elle était très vieille."),
    *("Vous avez faim ?", "Tu as lu ma lettre ?", "Да, конечно.", "Что ты делаешь?", "Wir gehen nach Hause."),
    *("« Non », dit-il.", "Wait... I know (maybe).", 'He said "no" 12 times', "Ça va… bien", "Room 101"),
    *("salu ami.", "bondia senor.", "tu vides la lampo.", "vos videz la ruga domo."),
)
# Text of lines with either end, some of them apart by more.
LINES = "".join(f"{one}{end}" for one in (*SENTENCES, *PROBES) for end in ("\n", " \n", "\n", "\n\n", " \n"))
# As Llama 3 and Qwen cut text: what follows punctuation of line breaks stays with it.
GLUED = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SPECIAL = ["<unk>", "<s>", "</s>"]

TOKENIZERS = ("byte-level", "glued", "spm-bpe", "gemma", "unigram")


@cache
def tokenizer_json(kind: str) -> str:
    """A tokenizer of this kind, as the content of tokenizer.json."""
    made: Tokenizer = {
        "byte-level": _byte_level,
        "glued": _glued,
        "spm-bpe": _spm_bpe,
        "gemma": _gemma,
        "unigram": _unigram,
        "no-lines": _no_lines,
    }[kind]()
    text: str = made.to_str()
    return text


def tokenizer_size(kind: str) -> int:
    return int(Tokenizer.from_str(tokenizer_json(kind)).get_vocab_size())


def _byte_level() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator([LINES], _bpe_trainer(["<|endoftext|>"]))
    return made


def _glued() -> Tokenizer:
    made = Tokenizer(models.BPE(ignore_merges=True))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(GLUED), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator([LINES], _bpe_trainer(["<|begin|>", "<|end|>"]))
    made.post_processor = processors.TemplateProcessing(
        single="<|begin|> $A", special_tokens=[("<|begin|>", made.token_to_id("<|begin|>"))]
    )
    return made


def _bpe_trainer(special: list[str]) -> trainers.BpeTrainer:
    return trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )


def _spm_bpe(line_breaks: tuple[str, ...] = ()) -> Tokenizer:
    """As Llama 2's: SentencePiece's BPE with bytes for what has no piece; a dummy blank at the beginning."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=[*SPECIAL, *BYTES, *line_breaks], show_progress=False
    )
    trained.train_from_iterator(SENTENCES, trainer)
    state = json.loads(trained.to_str())["model"]
    merges = [(one, two) for one, two in state["merges"]]
    made = Tokenizer(
        models.BPE(vocab=state["vocab"], merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    made.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL])
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", made.token_to_id("<s>"))]
    )
    return made


def _gemma() -> Tokenizer:
    """As Gemma's: line breaks are pieces, and so are several; no dummy blank, no template."""
    made = _spm_bpe(("\n", "\n\n"))
    made.add_tokens([AddedToken(token, normalized=False) for token in ("\n", "\n\n")])
    made.normalizer = normalizers.Replace(" ", "▁")
    made.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    made.post_processor = processors.TemplateProcessing(single="$A", special_tokens=[])
    return made


def _unigram() -> Tokenizer:
    made = Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    made.train_from_iterator([*SENTENCES, *PROBES], trainer)
    made.add_tokens([AddedToken("\n", normalized=False)])
    return made


def _no_lines() -> Tokenizer:
    """A line break is a blank to it, as it is to many unigram models of SentencePiece."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Replace(Regex(r"\s+"), " ")
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    made.train_from_iterator(SENTENCES, trainer)
    return made


_WIDE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
_GROUPED = {**_WIDE, "num_key_value_heads": 2, "max_position_embeddings": 128, "pad_token_id": None}
_ENDS = {"bos_token_id": 1, "eos_token_id": 2}
_GEMMA = {**_GROUPED, **_ENDS, "head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 64}


def _config(name: str, **settings: object) -> Callable[..., Any]:
    def make(vocabulary: int, **changes: object) -> Any:
        given = {"vocab_size": vocabulary, **settings, **changes}
        return getattr(transformers, name)(**given)

    return make


# By transformers' model_type. Those of the second table can't score a trie in one pass.
FAST: dict[str, Callable[..., Any]] = {
    "gpt2": _config("GPT2Config", n_embd=32, n_layer=2, n_head=4, n_positions=128, **_ENDS),
    "opt": _config(
        "OPTConfig", ffn_dim=48, word_embed_proj_dim=32, max_position_embeddings=128, **_WIDE, **_ENDS
    ),
    "gpt_neox": _config("GPTNeoXConfig", max_position_embeddings=128, **_WIDE, **_ENDS),
    "llama": _config("LlamaConfig", **_GROUPED, **_ENDS),
    "mistral": _config("MistralConfig", sliding_window=64, **_GROUPED, **_ENDS),
    "qwen2": _config("Qwen2Config", **_GROUPED, **_ENDS),
    "qwen3": _config("Qwen3Config", head_dim=8, **_GROUPED, **_ENDS),
    "phi3": _config("Phi3Config", **_GROUPED, **_ENDS),
    "gemma": _config("GemmaConfig", head_dim=8, **_GROUPED, **_ENDS),
    "gemma2": _config("Gemma2Config", **_GEMMA),
    "gemma3_text": _config("Gemma3TextConfig", **_GEMMA),
    "cohere": _config("CohereConfig", logit_scale=0.25, **_GROUPED, **_ENDS),
    "granite": _config("GraniteConfig", logits_scaling=3.0, **_GROUPED, **_ENDS),
    "falcon": _config("FalconConfig", alibi=False, max_position_embeddings=128, **_WIDE, **_ENDS),
}
SLOW: dict[str, Callable[..., Any]] = {
    "bloom": _config("BloomConfig", n_layer=2, n_head=4, hidden_size=32, **_ENDS),
    "falcon-alibi": _config(
        "FalconConfig",
        alibi=True,
        new_decoder_architecture=False,
        max_position_embeddings=128,
        **_WIDE,
        **_ENDS,
    ),
    "mpt": _config("MptConfig", d_model=32, n_heads=4, n_layers=2, max_seq_len=128, **_ENDS),
    "mamba": _config("MambaConfig", hidden_size=32, num_hidden_layers=2, state_size=8, **_ENDS),
}
FAMILIES = {**FAST, **SLOW}


def tiny_network(family: str, vocabulary: int, seed: int = 1, **changes: object) -> Any:
    """A model of transformers with random weights, in its own class."""
    config = FAMILIES[family](vocabulary, **changes)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.endswith(("A_log", ".D", "dt_proj.bias")):  # Mamba's have a meaning
                centre = 1 if parameter.dim() == 1 and "bias" not in name else 0
                noise = torch.randn(parameter.shape, generator=rng)
                parameter.copy_(centre + noise * (0.2 if parameter.dim() == 1 else 0.25))
    return model


# What tokenizers begin with, by kind; tokenizer_config.json says so.
STARTS = {
    "byte-level": "<|endoftext|>",
    "glued": "<|begin|>",
    "spm-bpe": "<s>",
    "gemma": "<s>",
    "unigram": "<s>",
    "no-lines": "<s>",
}


def write_lm(
    directory: Path, family: str = "gpt2", tokenizer: str = "byte-level", seed: int = 1, **changes: object
) -> Any:
    """Write a Hugging Face directory with a tiny model, and give the network that is in it."""
    model = tiny_network(family, tokenizer_size(tokenizer), seed, **changes)
    model.save_pretrained(directory)
    write_tokenizer(directory, tokenizer)
    (directory / "README.md").write_text("---\nlicense: apache-2.0\n---\n# tiny\n", "utf-8")
    return model


def trained_llama(directory: Path, *, steps: int = 500, seed: int = 1) -> Path:
    """A Llama trained as people pretrain such models: on texts of lines, each after a beginning."""
    import torch.nn.functional as F

    # Half of them with capitals, as our own pipelines write.
    texts = [
        "".join(f"{target.capitalize() if number % 2 else target}\n" for _, target in document)
        for number, document in enumerate(made_up_pair.documents(1500, seed=seed, opened=0.5))
    ]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, _bpe_trainer(["<s>"]))
    begin = tokenizer.get_vocab()["<s>"]
    rows = [[begin, *tokenizer.encode(text).ids] for text in texts]
    length = max(map(len, rows))
    tokens = torch.tensor([row + [-100] * (length - len(row)) for row in rows])
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        bos_token_id=begin,
        eos_token_id=begin,
        pad_token_id=None,
    )
    model = transformers.LlamaForCausalLM(config)
    optimiser = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 6e-3, total_steps=steps, pct_start=0.2)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # two wait for each other more than they work
    for _ in range(steps):
        batch = tokens[torch.randint(len(tokens), (16,))]
        logits = model(input_ids=batch.clamp(min=0)[:, :-1]).logits
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        schedule.step()
    torch.set_num_threads(threads)
    model.eval().save_pretrained(directory)
    tokenizer.save(str(directory / "tokenizer.json"))
    said = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>"}
    (directory / "tokenizer_config.json").write_text(json.dumps(said), "utf-8")
    return directory


def write_tokenizer(directory: Path, kind: str) -> None:
    (directory / "tokenizer.json").write_text(tokenizer_json(kind), "utf-8")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": STARTS[kind]}
    (directory / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")


def write_gguf(path: Path, seed: int = 1, **changes: object) -> Any:
    """Write a tiny Llama with a byte-level tokenizer as GGUF in half precision, and give its network."""
    import gguf

    state = json.loads(tokenizer_json("byte-level"))
    vocabulary = {**state["model"]["vocab"], **{one["content"]: one["id"] for one in state["added_tokens"]}}
    tokens = sorted(vocabulary, key=lambda token: vocabulary[token])
    model = tiny_network("llama", len(tokens), seed, rms_norm_eps=1e-5, **changes)
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("Tiny Llama")
    writer.add_license("mit")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token.startswith("<|") else 1 for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in state["model"]["merges"]])
    writer.add_bos_token_id(vocabulary["<|endoftext|>"])
    writer.add_eos_token_id(vocabulary["<|endoftext|>"])
    for name, weight in model.state_dict().items():
        renamed = _gguf_name(name)
        values = weight.half().float().numpy()
        with torch.no_grad():
            weight.copy_(torch.from_numpy(values))
        if renamed.endswith(("attn_q.weight", "attn_k.weight")):
            heads = config.num_attention_heads if "attn_q" in renamed else config.num_key_value_heads
            values = values.reshape(heads, 2, -1, values.shape[-1]).swapaxes(1, 2).reshape(values.shape)
        writer.add_tensor(renamed, values.astype(np.float32 if values.ndim == 1 else np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def _gguf_name(name: str) -> str:
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name in ("model.norm.weight", "lm_head.weight"):
        return "output_norm.weight" if "norm" in name else "output.weight"
    _, _, layer, *rest = name.split(".")
    parts = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    return f"blk.{layer}.{parts['.'.join(rest[:-1])]}.{rest[-1]}"
