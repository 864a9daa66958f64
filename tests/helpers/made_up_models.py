"""The made-up pair prepared, and models that have learnt it for some seconds, as the commands make them."""

from pathlib import Path

from cadec_cli.main import exit_code
from tests.helpers import made_up_pair


def cadec(*arguments: object) -> None:
    """Run a command that must succeed."""
    assert exit_code([str(argument) for argument in arguments] + ["--quiet"]) == 0, arguments


def make_corpora(root: Path) -> None:
    """Pipelines src/, tgt/, corpora pairs/, pairs-dev/, docs/, docs-dev/."""
    made_up_pair.write(root, count=1200)
    size = ("--vocab-size", 120, "--no-byte-fallback", "--processes", 1)
    cadec("train", "tokenizer", root / "pairs.tsv", "--column", 1, "-l", "en", "-o", root / "src", *size)
    cadec("train", "tokenizer", root / "pairs.tsv", "--column", 2, "-l", "eo", "-o", root / "tgt", *size)
    dev = ("--dev-every", 20, "--lines", "--processes", 1)
    both = ("-p", root / "src", "-p", root / "tgt", "--columns", "1,2")
    cadec(
        *("prepare", "text", root / "pairs.tsv", *both, *dev),
        *("-o", root / "pairs", "--dev-output", root / "pairs-dev"),
    )
    one = ("-p", root / "tgt", "-o", root / "docs", "--dev-output", root / "docs-dev")
    cadec("prepare", "text", root / "target.txt", *one, *dev)


def train_model(kind: str, data: str, corpora: Path, root: Path) -> None:
    """A model of some kind, trained on one of the corpora, in a directory of the kind's name."""
    corpus = ("--data", corpora / data, "--dev", corpora / f"{data}-dev")
    cadec("train", kind, "-o", root / kind, *corpus, "--preset", "tiny", "--threads", 1)


def make_bundle(corpora: Path, root: Path) -> None:
    """The bundle of the two models that are in the same directory."""
    pipelines = ("--source-pipeline", corpora / "src", "--target-pipeline", corpora / "tgt")
    models = ("--nmt", root / "nmt", "--lm", root / "lm")
    cadec("convert", *models, *pipelines, "--compute-type", "float32", "-o", root / "bundle")
