"""Tiny Hugging Face translation models of every family, as transformers runs them and as converted."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from cadec_cli.engines.ctranslate2 import CTranslate2Model, Framing, framing_for, read_vocabularies
from cadec_cli.text.tokenizers import load_text
from converters import PretrainedRequest
from converters.translation.huggingface import HuggingFaceImport, open_huggingface
from converters.verify import Probes, drift_from
from tests.helpers import pretrained_models as tiny

SENTENCES = ("you see the big red lamp.", "do you hide the book?", "The captain doesn't know 1,234.50 words")


@dataclass(frozen=True)
class Family:
    make: Callable[[Path], Path]
    languages: tuple[str | None, str | None]
    framing: Framing  # of the direction
    prefix: str = ""  # what a user of transformers writes before a sentence
    codes: tuple[str, str] | None = None  # what one tells transformers' tokenizer
    forced: str | None = None  # the token that transformers' generate is told to begin with
    start: str | None = None  # what the decoder starts from, where it is not the model's own


FAMILIES = {
    "marian": Family(tiny.tiny_marian, (None, None), Framing((), ("</s>",))),
    "marian-many": Family(
        lambda path: tiny.tiny_marian(path, targets=(">>rus<<", ">>epo<<", ">>fra<<")),
        ("en", "ru"),
        Framing((">>rus<<",), ("</s>",)),
        prefix=">>rus<< ",
    ),
    "m2m100": Family(
        tiny.tiny_m2m100,
        ("en", "ru"),
        Framing(("__en__",), ("</s>",), ("__ru__",)),
        codes=("en", "ru"),
        forced="__ru__",
    ),
    "nllb": Family(
        tiny.tiny_nllb,
        ("en", "ru"),
        Framing(("eng_Latn",), ("</s>",), ("rus_Cyrl",)),
        codes=("eng_Latn", "rus_Cyrl"),
        forced="rus_Cyrl",
    ),
    "mbart50": Family(
        tiny.tiny_mbart,
        ("en", "ru"),
        Framing(("en_XX",), ("</s>",), ("ru_RU",)),
        codes=("en_XX", "ru_RU"),
        forced="ru_RU",
    ),
    "mbart": Family(
        lambda path: tiny.tiny_mbart(path, fifty=False),
        (None, None),
        Framing((), ("</s>", "en_XX")),
        codes=("en_XX", "ru_RU"),
        start="ru_RU",
    ),
    "t5": Family(
        lambda path: tiny.tiny_t5(path, madlad=False),
        ("en", "fr"),
        Framing((), ("</s>",)),  # and the words of the task
        prefix="translate English to French: ",
    ),
    "madlad": Family(
        lambda path: tiny.tiny_t5(path, tied=False),
        (None, "ru"),
        Framing(("▁", "<2ru>"), ("</s>",)),
        prefix="<2ru> ",
    ),
}


class Converted:
    """A family's tiny model, as it is and converted."""

    def __init__(self, name: str, root: Path) -> None:
        self.family = FAMILIES[name]
        self.directory = self.family.make(root / name)
        self.found = self.opened()
        self.drift = self.found.convert(root / f"{name}-converted", "float32")
        self.output = root / f"{name}-converted"

    def opened(self, *notes: str) -> HuggingFaceImport:
        source, target = self.family.languages
        request = PretrainedRequest(source_language=source, target_language=target, note=list(notes).append)
        return open_huggingface(self.directory, request)

    @cached_property
    def network(self) -> Any:
        from transformers import AutoModelForSeq2SeqLM

        return AutoModelForSeq2SeqLM.from_pretrained(self.directory).eval()

    @cached_property
    def tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(self.directory)
        if self.family.codes:
            tokenizer.src_lang, tokenizer.tgt_lang = self.family.codes
        return tokenizer

    @cached_property
    def model(self) -> CTranslate2Model:
        settings = self.found.settings
        vocabularies = read_vocabularies(self.output)
        source = load_text(self.directory, settings.source, vocabularies[0], "en")
        target = load_text(self.directory, settings.target, vocabularies[1], "ru")
        framing = framing_for(settings, *self.found.languages)
        return CTranslate2Model(
            self.output,
            source,
            target,
            framing=framing,
            positions=settings.positions,
            compute_type="float32",
            threads=1,
        )

    @torch.inference_mode()
    def log_probs(self, sentence: str, ids: tuple[int, ...]) -> list[float]:
        """Each token's as transformers says, the forced one's included, by its own tokenizer."""
        tokenizer, family = self.tokenizer, self.family
        config = self.network.config
        read = tokenizer(family.prefix + sentence, return_tensors="pt").input_ids
        forced = [tokenizer.convert_tokens_to_ids(family.forced)] if family.forced else []
        start = config.decoder_start_token_id
        if family.start:
            start = tokenizer.convert_tokens_to_ids(family.start)
        written = [*forced, *ids]
        logits = self.network(input_ids=read, decoder_input_ids=torch.tensor([[start, *written]])).logits[0]
        if config.model_type == "marian":
            logits[:, config.pad_token_id] = -torch.inf  # as its bad_words_ids say
        chosen = torch.tensor([*written, tokenizer.eos_token_id])
        found: list[float] = logits.log_softmax(-1).gather(1, chosen[:, None])[:, 0].tolist()
        return found


_CONVERTED: dict[tuple[str, Path], Converted] = {}


def by_name(name: str, root: Path) -> Converted:
    """A family's model, made and converted once under a directory."""
    if (name, root) not in _CONVERTED:
        _CONVERTED[name, root] = Converted(name, root)
    return _CONVERTED[name, root]


def open_in(directory: Path, source: str | None = None, target: str | None = None) -> HuggingFaceImport:
    return open_huggingface(directory, PretrainedRequest(source_language=source, target_language=target))


def plainly_converted(directory: Path, output: Path) -> Path:
    """As CTranslate2's converter does it, left to itself."""
    from ctranslate2.converters import TransformersConverter

    TransformersConverter(str(directory)).convert(str(output), quantization="float32")
    return output


def drift_of(one: Converted, output: Path) -> Any:
    return drift_between(one.directory, one.found, output)


def drift_between(directory: Path, found: HuggingFaceImport, output: Path) -> Any:
    from converters.translation.huggingface import TransformersNetwork

    network = TransformersNetwork.read(directory, found.direction, found.tokens)
    pieces = [piece for piece in found.tokens if piece.startswith("▁")]
    probes = Probes(found.framing, [pieces[:4], pieces[2:9]], [pieces[5:8], pieces[:3]])
    begin = found.framing.target_begin
    return drift_from(
        lambda framed, targets: network.log_probs(framed, targets, begin), output, "float32", probes
    )
