"""The made-up pair, prepared once a session through the real commands."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import made_up

from cadec_cli.main import exit_code


def cadec(*arguments: object) -> None:
    assert exit_code([str(argument) for argument in arguments] + ["--quiet"]) == 0, arguments


@pytest.fixture(scope="session")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with pipelines src/ and tgt/, corpora pairs/, pairs-dev/, docs/ and docs-dev/."""
    root = tmp_path_factory.mktemp("made-up")
    made_up.write(root, count=600)
    size = ("--vocab-size", 120, "--no-byte-fallback", "--processes", 1)
    cadec("train", "tokenizer", root / "pairs.tsv", "--column", 1, "-l", "en", "-o", root / "src", *size)
    cadec("train", "tokenizer", root / "pairs.tsv", "--column", 2, "-l", "eo", "-o", root / "tgt", *size)
    dev = ("--dev-every", 20, "--lines", "--processes", 1)
    both = ("-p", root / "src", "-p", root / "tgt", "--columns", "1,2")
    cadec(
        "prepare",
        "text",
        root / "pairs.tsv",
        *both,
        "-o",
        root / "pairs",
        "--dev-output",
        root / "pairs-dev",
        *dev,
    )
    one = ("-p", root / "tgt", "-o", root / "docs", "--dev-output", root / "docs-dev")
    cadec("prepare", "text", root / "target.txt", *one, *dev)
    return root
