"""Random models of other toolkits, and bundles of them."""

from pathlib import Path

from cadec_cli.main import exit_code
from tests.helpers import pretrained_models as tiny
from tests.helpers.pretrained_lms import write_gguf, write_lm


def random_models(root: Path) -> Path:
    """Random models: marian/ (one direction), nllb/ (many), gpt2/ and llama.gguf."""
    tiny.tiny_marian(root / "marian")
    tiny.tiny_nllb(root / "nllb")
    write_lm(root / "gpt2", "gpt2")
    write_gguf(root / "llama.gguf")
    return root


def built_bundle(models: Path) -> Path:
    """marian/ and gpt2/ as a bundle."""
    assert (
        exit_code(convert("--nmt", models / "marian", "--lm", models / "gpt2", "-o", models / "built")) == 0
    )
    return models / "built"


def bundle_of_many_directions(models: Path) -> Path:
    """nllb/ and a GGUF file as a bundle, from English to Russian by default."""
    languages = ("--source-language", "en", "--target-language", "ru", "--compute-type", "float32")
    parts = ("--nmt", models / "nllb", "--lm", models / "llama.gguf")
    assert exit_code(convert(*parts, *languages, "-o", models / "many")) == 0
    return models / "many"


def convert(*arguments: object) -> list[str]:
    """The command line that makes a bundle."""
    return ["convert", *map(str, arguments), "-q"]
