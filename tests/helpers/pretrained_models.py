"""Tiny translation models of other toolkits, as directories like those on the Hugging Face hub.

Random weights, real tokenizers: SentencePiece models trained on the made-up pair and some lines of other
scripts, with the normalisation that such models have, and the files that a hub directory of their family has.
Weights are shaken so that probabilities differ by several nats and no bias or norm is a no-op.
"""

import functools
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from tests.helpers import made_up_pair
from tests.helpers.spm_files import precompiled_charsmap

LINES = (
    'The captain doesn\'t know 1,234.50 words; is it "so"? (67, 89)',
    "MRS. GRAY: I can't find Tom's keys!",
    "Моя сестра не знает, где ключи! Её старый друг ждёт.",
    "Ça va où ? Très naïve, l'été.",
    "Größe, Übung; ¿qué señor?",
    "我们明天见。",
    "Καλημέρα σας.",
    "مرحبا بكم.",
)
DIRECTIONS = ("en", "eo")
README = "---\nlicense: {licence}\nlanguage:\n- en\n- eo\n---\n# A tiny model\n"


def pairs(count: int = 300, seed: int = 1) -> list[made_up_pair.Pair]:
    """Sentence pairs of the made-up languages."""
    return [pair for document in made_up_pair.documents(count, seed) for pair in document]


@functools.cache
def subwords(
    side: int | None = None, *, size: int = 260, kind: str = "unigram", symbols: tuple[str, ...] = ()
) -> bytes:
    """A SentencePiece model of one side of the pair, or of both."""
    lines = [text for pair in pairs() for text in (pair if side is None else pair[side : side + 1])]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter([*lines, *LINES * 5]),
        model_writer=model,
        model_type=kind,
        vocab_size=size,
        hard_vocab_limit=False,
        character_coverage=1.0,
        user_defined_symbols=list(symbols),
        # T5's order where there are symbols of languages, as in MADLAD; fairseq's and Marian's otherwise.
        pad_id=0 if symbols else -1,
        eos_id=1 if symbols else 2,
        unk_id=2 if symbols else 0,
        bos_id=-1 if symbols else 1,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


def scored_pieces(model: bytes) -> list[tuple[str, float]]:
    """The pieces of a SentencePiece model with their scores."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [
        (processor.IdToPiece(index), processor.GetScore(index)) for index in range(processor.GetPieceSize())
    ]


def tiny_marian(
    directory: Path,
    *,
    languages: tuple[str, str] = DIRECTIONS,
    targets: Sequence[str] = (),
    seed: int = 1,
    positions: int = 64,
) -> Path:
    """A MarianMT model; with targets such as `>>rus<<`, one for many languages."""
    from transformers import MarianConfig, MarianMTModel

    source, target = subwords(0), subwords(1)
    texts = [piece for model in (source, target) for piece, _ in scored_pieces(model)[3:]]
    tokens = list(dict.fromkeys(["</s>", "<unk>", *texts, *targets, "<pad>"]))
    config = MarianConfig(
        vocab_size=len(tokens),
        decoder_vocab_size=len(tokens),
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_position_embeddings=positions,
        activation_function="swish",
        scale_embedding=True,
        static_position_embeddings=True,
        share_encoder_decoder_embeddings=True,
        pad_token_id=len(tokens) - 1,
        decoder_start_token_id=len(tokens) - 1,
        bos_token_id=0,
        eos_token_id=0,
        forced_eos_token_id=0,
    )
    torch.manual_seed(seed)
    model = shaken(MarianMTModel(config), seed)
    with torch.no_grad():
        model.final_logits_bias.normal_()
        model.model.shared.weight[-1] = 0  # the padding's: where the decoder starts from
    _save(model, directory, "apache-2.0")
    (directory / "source.spm").write_bytes(source)
    (directory / "target.spm").write_bytes(target)
    _json(directory / "vocab.json", {token: index for index, token in enumerate(tokens)})
    named = {"source_lang": languages[0], "target_lang": "mul" if targets else languages[1]}
    _json(directory / "tokenizer_config.json", {**named, "tokenizer_class": "MarianTokenizer"})
    return directory


def trained_marian(directory: Path, *, steps: int = 350, seed: int = 1) -> Path:
    """A MarianMT model that translates the made-up pair right, but for what only context tells.

    Trained as people train such models with transformers: the padding, which the decoder starts from, is
    among the outputs and so does not stay zero, as it is in Marian's own.
    """
    import torch.nn.functional as F
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tiny_marian(directory, seed=seed)
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForSeq2SeqLM.from_pretrained(directory)
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.1)
            else:
                torch.nn.init.constant_(parameter, float(name.endswith("norm.weight")))
        model.final_logits_bias.zero_()
        model.model.shared.weight[-1] = 0
    padding = model.config.pad_token_id
    examples = pairs()
    sources = tokenizer([one for one, _ in examples], padding=True, return_tensors="pt")
    targets = tokenizer(
        text_target=[other for _, other in examples], padding=True, return_tensors="pt"
    ).input_ids
    optimiser = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, total_steps=steps, pct_start=0.2)
    model.train()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # two wait for each other more than they work
    for _ in range(steps):
        rows = torch.randint(len(examples), (48,))
        wanted = targets[rows]
        shifted = torch.cat([torch.full((len(rows), 1), padding), wanted[:, :-1]], dim=1)
        logits = model(
            input_ids=sources.input_ids[rows],
            attention_mask=sources.attention_mask[rows],
            decoder_input_ids=shifted,
        ).logits
        loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=padding)
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        schedule.step()
    torch.set_num_threads(threads)
    model.eval().save_pretrained(directory)
    return directory


def tiny_m2m100(directory: Path, *, seed: int = 1, positions: int = 64) -> Path:
    """An M2M100 model: `__en__` first, a vocabulary of its own beside the SentencePiece model."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

    model = subwords(kind="bpe")
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *(piece for piece, _ in scored_pieces(model)[3:])]
    languages = [f"__{code}__" for code in FAIRSEQ_LANGUAGE_CODES["m2m100"]]
    made_up_words = 8
    config = M2M100Config(
        vocab_size=len(tokens) + len(languages) + made_up_words,
        **_bart_sizes(positions),
        activation_function="relu",
        decoder_start_token_id=2,
    )
    torch.manual_seed(seed)
    _save(shaken(M2M100ForConditionalGeneration(config), seed), directory, "mit")
    (directory / "sentencepiece.bpe.model").write_bytes(model)
    _json(directory / "vocab.json", {token: index for index, token in enumerate(tokens)})
    specials = {**_SPECIALS, "additional_special_tokens": languages}
    _json(directory / "special_tokens_map.json", specials)
    own = {"language_codes": "m2m100", "num_madeup_words": made_up_words, "src_lang": None, "tgt_lang": None}
    _json(directory / "tokenizer_config.json", {**specials, **own, "tokenizer_class": "M2M100Tokenizer"})
    return directory


def tiny_nllb(directory: Path, *, seed: int = 1, positions: int = 64) -> Path:
    """An NLLB model: `eng_Latn` first, BPE in `tokenizer.json` and as a SentencePiece model."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

    model = subwords(kind="bpe")
    tokens = [(piece, 0.0) for piece in _FAIRSEQ] + scored_pieces(model)[3:]
    languages = list(FAIRSEQ_LANGUAGE_CODES)
    config = M2M100Config(
        vocab_size=len(tokens) + len(languages) + 1 + 2,  # the mask, and rows that nothing uses
        **_bart_sizes(positions),
        activation_function="relu",
        decoder_start_token_id=2,
    )
    torch.manual_seed(seed)
    _save(shaken(M2M100ForConditionalGeneration(config), seed), directory, "cc-by-nc-4.0")
    (directory / "sentencepiece.bpe.model").write_bytes(model)
    _tokenizer_json(directory, model, tokens, added=[*languages, "<mask>"], bpe=True)
    specials = {**_SPECIALS, "cls_token": "<s>", "mask_token": "<mask>"}
    specials["additional_special_tokens"] = languages
    _json(directory / "special_tokens_map.json", specials)
    _json(directory / "tokenizer_config.json", {**specials, "tokenizer_class": "NllbTokenizer"})
    return directory


def tiny_mbart(directory: Path, *, fifty: bool = True, seed: int = 1, positions: int = 64) -> Path:
    """An mBART-50 model: `en_XX` first; or an mBART one: the language last, and where the decoder starts."""
    from transformers import MBartConfig, MBartForConditionalGeneration
    from transformers.models.mbart.tokenization_mbart import FAIRSEQ_LANGUAGE_CODES as TWENTY_FIVE
    from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES as FIFTY

    model = subwords()
    languages = list(FIFTY if fifty else TWENTY_FIVE)
    tokens = [(piece, 0.0) for piece in _FAIRSEQ] + scored_pieces(model)[3:]
    tokens += [(language, 0.0) for language in [*languages, "<mask>"]]
    tokenizer_class = "MBart50Tokenizer" if fifty else "MBartTokenizer"
    config = MBartConfig(
        vocab_size=len(tokens),
        **_bart_sizes(positions),
        activation_function="gelu",
        normalize_before=True,
        decoder_start_token_id=2 if fifty else [token for token, _ in tokens].index("ru_RU"),
        tokenizer_class=tokenizer_class,
    )
    torch.manual_seed(seed)
    _save(shaken(MBartForConditionalGeneration(config), seed), directory, "mit")
    (directory / "sentencepiece.bpe.model").write_bytes(model)
    _tokenizer_json(directory, model, tokens, added=[*languages, "<mask>"])
    specials = {**_SPECIALS, "cls_token": "<s>", "mask_token": "<mask>"}
    specials["additional_special_tokens"] = languages
    _json(directory / "special_tokens_map.json", specials)
    own = {} if fifty else {"src_lang": "en_XX", "tgt_lang": "ru_RU"}
    _json(directory / "tokenizer_config.json", {**specials, **own, "tokenizer_class": tokenizer_class})
    return directory


def tiny_t5(directory: Path, *, tied: bool = True, madlad: bool = True, seed: int = 1) -> Path:
    """A T5 model: with MADLAD's `<2ru>`, or with the task in words; untied ones as T5 v1.1 and MADLAD are."""
    from transformers import T5Config, T5ForConditionalGeneration

    languages = ("<2en>", "<2eo>", "<2ru>", "<2fr>")
    model = subwords(symbols=languages if madlad else ("<unused>",))
    tokens = scored_pieces(model)
    extra = 0 if madlad else 100
    tokens += [(f"<extra_id_{index}>", 0.0) for index in reversed(range(extra))]
    config = T5Config(
        vocab_size=len(tokens) + 5,  # rows that nothing uses
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=20,
        feed_forward_proj="relu" if tied else "gated-gelu",
        tie_word_embeddings=tied,
        decoder_start_token_id=0,
    )
    torch.manual_seed(seed)
    network = T5ForConditionalGeneration(config)
    if not tied:
        network.lm_head.weight = torch.nn.Parameter(network.shared.weight.detach().clone())
    shaken(network, seed)
    if not tied:
        with torch.no_grad():
            network.lm_head.weight *= 0.3  # nothing scales its outputs down
    _save(network, directory, "apache-2.0")
    # transformers 5 writes that they are tied, whatever they are: a directory on the hub says how it is.
    said = json.loads((directory / "config.json").read_text("utf-8"))
    said.pop("scale_decoder_outputs", None)
    if not madlad:
        said["task_specific_params"] = {
            "translation_en_to_fr": {"prefix": "translate English to French: "},
            "translation_en_to_de": {"prefix": "translate English to German: "},
            "summarization": {"prefix": "summarize: "},
        }
    _json(directory / "config.json", {**said, "tie_word_embeddings": tied})
    (directory / "spiece.model").write_bytes(model)
    added = [token for token, _ in tokens if token.startswith("<extra")]
    _tokenizer_json(directory, model, tokens, added=added, unknown=2, first=("<pad>", "</s>", "<unk>"))
    specials = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "extra_ids": extra}
    _json(
        directory / "tokenizer_config.json",
        {**specials, "additional_special_tokens": added, "tokenizer_class": "T5Tokenizer"},
    )
    return directory


def shaken(model: Any, seed: int) -> Any:
    """The model with weights that all matter, ready to be read."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.15 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


_FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")
_SPECIALS: dict[str, Any] = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "sep_token": "</s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
}


def _bart_sizes(positions: int) -> dict[str, Any]:
    return {
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "max_position_embeddings": positions,
        "scale_embedding": True,
        "bos_token_id": 0,
        "pad_token_id": 1,
        "eos_token_id": 2,
    }


def _save(model: Any, directory: Path, licence: str) -> None:
    model.save_pretrained(directory)
    (directory / "README.md").write_text(README.format(licence=licence), "utf-8")


def _json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2), "utf-8")


def _tokenizer_json(
    directory: Path,
    model: bytes,
    tokens: list[tuple[str, float]],
    *,
    added: Iterable[str],
    bpe: bool = False,
    unknown: int = 3,
    first: Sequence[str] = _FAIRSEQ,
) -> None:
    """A SentencePiece model as transformers' converters write it for the `tokenizers` library."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    from transformers.convert_slow_tokenizer import generate_merges

    ids = {token: index for index, (token, _) in enumerate(tokens)}
    if bpe:
        merges = generate_merges(ids, tokens, skip_tokens=first)
        tokenizer = Tokenizer(models.BPE(ids, merges, unk_token="<unk>", fuse_unk=True))
    else:
        tokenizer = Tokenizer(models.Unigram(tokens, unk_id=unknown, byte_fallback=False))
    charsmap = normalizers.Precompiled(precompiled_charsmap(model))
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence([charsmap, normalizers.Strip(left=False, right=True), spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in (*first, *added)])
    tokenizer.save(str(directory / "tokenizer.json"))
