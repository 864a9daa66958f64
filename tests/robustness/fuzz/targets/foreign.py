"""Other toolkits' models and tokenizers, as people download them: nothing in them is to be trusted."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.robustness.fuzz.packing import SAFETENSORS, member
from tests.robustness.fuzz.target import Target
from tests.robustness.fuzz.targets.parts import copied, made, text

if TYPE_CHECKING:
    from cadec_cli.text.tokenizers.vocabulary import Vocabulary

SENTENCE = "The cat sat — «кот»? \U0001f600"


def marian_files(directory: Path) -> None:
    from tests.helpers.foreign_models import (
        OTHERS,
        SENTENCES,
        marian_arrays,
        marian_network,
        train_spm,
        write_marian,
    )

    pieces = [*train_spm(directory / "source.spm", SENTENCES), *train_spm(directory / "target.spm", OTHERS)]
    vocabulary = ["</s>", "<unk>", *dict.fromkeys(pieces)]
    network = marian_network(len(vocabulary))
    write_marian(directory, marian_arrays(network, len(vocabulary)), vocabulary)


def fairseq_files(directory: Path) -> None:
    import argparse

    from tests.helpers.foreign_models import (
        FAIRSEQ_SPECIAL,
        OTHERS,
        SENTENCES,
        fairseq_network,
        fairseq_options,
        fairseq_state,
        made_to_end,
        train_spm,
        write_fairseq,
    )

    pieces = train_spm(directory / "sentencepiece.bpe.model", [*SENTENCES, *OTHERS], 100)
    vocabulary = [*FAIRSEQ_SPECIAL, *pieces]
    network = made_to_end(fairseq_network("m2m_100", len(vocabulary)), 2)
    options = argparse.Namespace(**fairseq_options("m2m_100"))
    write_fairseq(directory, {"args": options, "model": fairseq_state(network)}, vocabulary)


def opennmt_files(directory: Path) -> None:
    import torch

    from tests.helpers.foreign_models import (
        OPENNMT_SPECIAL,
        OTHERS,
        SENTENCES,
        opennmt_checkpoint,
        opennmt_network,
        train_spm,
    )

    source = [*OPENNMT_SPECIAL, *train_spm(directory / "source.spm", SENTENCES)]
    target = [*OPENNMT_SPECIAL, *train_spm(directory / "target.spm", OTHERS, 66)]
    vocabulary = {"src": source, "tgt": target, "data_task": "seq2seq"}
    torch.save(
        opennmt_checkpoint(opennmt_network(len(source), len(target)), vocabulary), directory / "model.pt"
    )


def ctranslate2_files(directory: Path) -> None:
    import shutil

    from converters import PretrainedRequest
    from converters.translation.marian import open_marian

    place = marian()
    open_marian(place, PretrainedRequest(source_language="en", target_language="ru")).convert(
        directory / "a", "float32"
    )
    for path in (directory / "a").iterdir():
        path.rename(directory / path.name)
    (directory / "a").rmdir()
    for name in ("source.spm", "target.spm"):
        shutil.copyfile(place / name, directory / name)


def huggingface_files(directory: Path) -> None:
    from tests.helpers.pretrained_models import tiny_marian

    tiny_marian(directory)


def language_files(directory: Path) -> None:
    from tests.helpers.pretrained_lms import write_lm

    write_lm(directory, "llama", "byte-level")


def gguf_files(directory: Path) -> None:
    from tests.helpers.pretrained_lms import write_gguf

    write_gguf(directory / "model.gguf")


def stored_language_files(directory: Path) -> None:
    from converters.language.huggingface import open_language_model

    open_language_model(str(language()), note=_silent, no_context={"fr": (("Oui.",),)}).write(directory)


def fitted_language_files(directory: Path) -> None:
    from unittest.mock import patch

    from converters.language.fit import fit_language_model

    stored_language_files(directory)
    with patch("converters.language.fit._MOST", 1.0):  # tiny vocabularies hardly become smaller
        fit_language_model(directory, [f" {word}" for word in SENTENCE.split()], "fr", _silent)


def stored_translation_files(directory: Path) -> None:
    """What a bundle keeps of another toolkit's S-NMT."""
    import shutil

    from cadec_cli.models.pretrained_settings import TRANSLATION_SETTINGS, write_settings

    found: Any = _opened("marian")(marian())
    for name, path in found.files.items():
        shutil.copyfile(path, directory / name)
    write_settings(directory / TRANSLATION_SETTINGS, found.settings)


def _silent(_: str) -> None:
    pass


def _part(name: str, make: Callable[[Path], None]) -> Callable[[], Path]:
    return cache(lambda: made(name, make))


marian = _part("marian", marian_files)
language = _part("language-model", language_files)


def _opened(kind: str | None, target: str = "ru") -> Callable[[Path], object]:
    def load(directory: Path) -> object:
        from converters import PretrainedRequest, open_translation

        request = PretrainedRequest(kind=kind, source_language="en", target_language=target)
        found = open_translation(str(directory), request)
        for name, path in found.files.items():
            assert "/" not in name and path.is_file()
        return found

    return load


def _converted(target: str) -> Callable[[Path], object]:
    """What was opened is converted too, into a directory that goes again."""

    def load(directory: Path) -> None:
        import tempfile

        found: Any = _opened(None, target)(directory)
        with tempfile.TemporaryDirectory() as place:
            found.convert(Path(place) / "ct2", "float32")

    return load


def opened_language(name: str = "") -> Callable[[Path], None]:
    def load(directory: Path) -> None:
        from converters.language.huggingface import open_language_model

        found = open_language_model(str(directory / name), note=_silent, no_context={"fr": (("Oui.",),)})
        assert found.settings.positions >= 16

    return load


def stored_language(directory: Path) -> None:
    import torch

    from cadec_cli.engines.transformers_lm import load_language_model

    model = load_language_model(
        directory, language="fr", device=torch.device("cpu"), compute_type="float32", note=_silent
    )
    ids = model.text.encode(SENTENCE)
    assert all(0 <= index < len(model.text.vocabulary) for index in ids)


def fitted_language(directory: Path) -> None:
    import torch

    from cadec_cli.engines.transformers_lm import load_language_model

    model = load_language_model(
        directory, language="fr", device=torch.device("cpu"), compute_type="int8", note=_silent
    )
    assert model.network.fitted is not None and len(model.network.fitted) > 0


def stored_translation(directory: Path) -> None:
    from cadec_cli.engines.ctranslate2 import read_vocabularies
    from cadec_cli.models.pretrained_settings import read_translation_settings
    from cadec_cli.text.tokenizers import load_text

    settings = read_translation_settings(directory)
    tokens, _ = read_vocabularies(_converted_marian())
    for side in (settings.source, settings.target):
        _tried_text(load_text(directory, side, tokens, "en"))


_converted_marian = _part("ctranslate2", ctranslate2_files)


def _tried_text(found: Any) -> None:
    ids = found.encode(SENTENCE)
    assert all(0 <= index < len(found.vocabulary) for index in ids)
    found.decode(ids).encode()
    assert len(found.display_tokens(ids)) == len(ids) and found.identity and found.pieces


def line_text(directory: Path) -> None:
    from cadec_cli.text.tokenizers.line_text import LineText

    found = LineText.load(directory / "tokenizer.json", boundary="\n", start=None)
    ids = found.encode(SENTENCE)
    assert all(0 <= index < len(found) for index in ids)
    found.decode(ids).encode()
    assert len(found.vocabulary) == len(found)
    found.display_tokens(ids)


def line_text_seed(directory: Path) -> None:
    from tests.helpers.pretrained_lms import tokenizer_json

    (directory / "tokenizer.json").write_text(tokenizer_json("spm-bpe"), "utf-8")


def tokenizers_text(directory: Path) -> None:
    from cadec_cli.text.tokenizers.vocabulary import TokenizersText

    _tried_text(TokenizersText(directory / "tokenizer.json", _vocabulary()))


def sentencepiece_text(directory: Path) -> None:
    from cadec_cli.text.tokenizers.vocabulary import SentencePieceText

    _tried_text(SentencePieceText(directory / "source.spm", _vocabulary()))


def bpe_text(directory: Path) -> None:
    from cadec_cli.text.tokenizers.moses_bpe import MosesBpeText, MosesOptions

    _tried_text(MosesBpeText(directory / "codes.bpe", _vocabulary(), "en", MosesOptions()))


def vocabularies(directory: Path) -> None:
    from cadec_cli.engines.ctranslate2 import read_vocabularies
    from cadec_cli.text.tokenizers.vocabulary import Vocabulary

    for tokens in read_vocabularies(directory):
        known = Vocabulary.of(tokens, {})
        assert known.texts(known.ids(["a", "b"])) is not None
        known.identity()


def _vocabulary() -> "Vocabulary":
    from cadec_cli.text.tokenizers.vocabulary import Vocabulary

    return Vocabulary.of(["</s>", "<unk>", "\u2581", "\u2581t", "h", "e", "c@@", "a@@", "t"], {})


def opened(
    modules: tuple[str, ...],
    seed: Callable[[Path], None],
    damaged: tuple[str, ...],
    packed: Mapping[str, Any] | None = None,
    *,
    load: Callable[[Path], object] | None = None,
    share: float = 0.4,
) -> Target:
    """A model of another toolkit."""
    return Target(modules, seed, load or _opened(None), damaged, packed=packed or {}, share=share)


CODES = "#version: 0.2\nt h\nth e</w>\nc a\nca t</w>\n"
FILES = "converters/translation/tokenizer_files.py"
LANGUAGE = ("converters/language/huggingface.py", "cadec_cli/models/huggingface.py")
TEXTS = "cadec_cli/text/tokenizers/"

TARGETS = {
    "Marian": opened(
        ("converters/translation/marian.py", FILES),
        copied(marian),
        ("decoder.yml", "vocab.yml", "source.spm", "model.npz"),
        {"model.npz": member("model.yml.npy")},
    ),
    "fairseq": opened(
        ("converters/translation/fairseq.py", FILES, "converters/translation/torch_checkpoints.py"),
        copied(_part("fairseq", fairseq_files)),
        ("dict.en.txt", "model.pt", "sentencepiece.bpe.model"),
        {"model.pt": member("data.pkl")},
    ),
    "OpenNMT": opened(
        ("converters/translation/opennmt.py", "converters/translation/torch_checkpoints.py"),
        copied(_part("opennmt", opennmt_files)),
        ("model.pt", "target.spm"),
        {"model.pt": member("data.pkl")},
    ),
    "CTranslate2 directory": opened(
        ("converters/translation/ctranslate2_models.py", "converters/translation/ctranslate2_models.py"),
        copied(_converted_marian),
        ("config.json", "shared_vocabulary.json", "model.bin"),
    ),
    "CTranslate2 directory, converted": opened(
        ("converters/translation/ctranslate2_models.py",),
        copied(_converted_marian),
        ("config.json", "shared_vocabulary.json", "model.bin"),
        load=_converted("ru"),
        share=0.2,
    ),
    "Hugging Face translation": opened(
        ("converters/translation/huggingface.py", "converters/detect.py", FILES),
        copied(_part("huggingface", huggingface_files)),
        ("config.json", "generation_config.json", "tokenizer_config.json", "vocab.json", "source.spm"),
        load=_opened(None, "eo"),
    ),
    "Hugging Face weights": opened(
        ("converters/translation/huggingface.py",),
        copied(_part("huggingface", huggingface_files)),
        ("model.safetensors", "README.md"),
        {"model.safetensors": SAFETENSORS},
        load=_converted("eo"),
        share=0.2,
    ),
    "language model": opened(
        LANGUAGE,
        copied(language),
        ("config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json", "README.md"),
        load=opened_language(),
    ),
    "language model's weights": opened(
        LANGUAGE,
        copied(language),
        ("model.safetensors",),
        {"model.safetensors": SAFETENSORS},
        load=opened_language(),
        share=0.2,
    ),
    "gguf": opened(
        ("converters/language/gguf.py",),
        copied(_part("gguf", gguf_files)),
        ("model.gguf",),
        load=opened_language("model.gguf"),
    ),
    "language model of a bundle": opened(
        ("cadec_cli/models/pretrained_settings.py",),
        copied(_part("stored-language", stored_language_files)),
        ("language-model.json", "config.json", "tokenizer.json"),
        load=stored_language,
    ),
    "fitted language model of a bundle": opened(
        ("cadec_cli/models/fitted_lm.py",),
        copied(_part("fitted-language", fitted_language_files)),
        ("fitted.safetensors",),
        {"fitted.safetensors": SAFETENSORS},
        load=fitted_language,
        share=0.2,
    ),
    "translation model of a bundle": opened(
        ("cadec_cli/models/pretrained_settings.py", f"{TEXTS}vocabulary.py"),
        copied(_part("stored-translation", stored_translation_files)),
        ("translation-model.json",),
        load=stored_translation,
        share=1.0,
    ),
    "tokenizer.json of lines": Target((f"{TEXTS}line_text.py",), line_text_seed, line_text),
    "tokenizer.json": Target((f"{TEXTS}vocabulary.py",), line_text_seed, tokenizers_text),
    "SentencePiece of others": Target(
        (f"{TEXTS}vocabulary.py",), copied(marian), sentencepiece_text, ("source.spm",), share=1.5
    ),
    "BPE codes": Target((f"{TEXTS}moses_bpe.py",), text("codes.bpe", CODES), bpe_text),
    "CTranslate2 vocabularies": Target(
        ("cadec_cli/engines/ctranslate2.py",),
        text("shared_vocabulary.json", json.dumps(["<unk>", "<s>", "</s>", "a", "\u2581b"])),
        vocabularies,
    ),
    "CTranslate2 vocabularies, old": Target(
        ("cadec_cli/engines/ctranslate2.py",),
        text("shared_vocabulary.txt", "<unk>\n<s>\n</s>\na\n"),
        vocabularies,
    ),
}
