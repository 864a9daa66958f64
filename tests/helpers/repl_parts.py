"""A bundle that is made in some seconds, and a REPL at the end of a pipe: what sessions are tested with."""

import io
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from cadec_cli.bundle.build import BundleRequest, build_bundle
from cadec_cli.main import exit_code
from cadec_cli.models.storage import save_model
from cadec_cli.models.transformer import Transformer, TransformerConfig
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.subwords import BOS, EOS, PAD
from tests.conftest import ENGLISH, RUSSIAN, sentences
from tests.helpers.bundle_parts import checksums, tiny_lm

SENTENCES = (
    "Tom wants it.",
    "Nobody took the money.",
    "The boy sees our dog!",
    "My sister wants a letter.",
    "The doctor can't find his keys.",
    "Tom has lost the door?",
)
FLAGS = ["--nbest", "4", "--compute-type", "float32", "--threads", "1"]
TOM, NOBODY, BOY = SENTENCES[:3]


@dataclass
class Repl:
    """Runs the REPL on lines in a pipe."""

    bundle: Path
    monkeypatch: pytest.MonkeyPatch
    capfd: pytest.CaptureFixture[str]

    def __call__(self, *lines: str | bytes, flags: tuple[str, ...] = ()) -> list[str]:
        raw = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        code = exit_code(["repl", "-b", str(self.bundle), *FLAGS, *flags])
        captured = self.capfd.readouterr()
        self.err = captured.err
        assert code == ("error:" in self.err)  # whatever goes wrong, and nothing else, makes it a failure
        assert "Traceback" not in self.err and "bug in cadec" not in self.err
        return captured.out.splitlines()


def tiny_bundle(directory: Path, english: TextPipeline, russian: TextPipeline) -> Path:
    """An S-NMT that has learnt to end its sentences, and a random D-LM that a few of them fill."""
    english.save(directory / "en")
    russian.save(directory / "ru")
    save_model(directory / "nmt", hasty_nmt(english, russian), checksums(english, russian))
    save_model(directory / "lm", tiny_lm(len(russian), seed=2, positions=64), checksums(russian))
    build_bundle(
        directory / "bundle",
        BundleRequest(
            source=directory / "en",
            target=directory / "ru",
            nmt=directory / "nmt",
            lm=directory / "lm",
            compute_types=["float32"],
        ),
    )
    return directory / "bundle"


def hasty_nmt(english: TextPipeline, russian: TextPipeline, steps: int = 80) -> Transformer:
    """Random weights would go on for ever; these have seen what a sentence is."""
    torch.manual_seed(1)
    # Not one of the tiny models of bundle_parts: it has to learn, from weights as training begins with.
    config = TransformerConfig(
        len(english),
        len(russian),
        encoder_layers=1,
        decoder_layers=1,
        width=32,
        heads=2,
        inner=64,
        positions=40,
    )
    model = Transformer(config)
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    source = _padded([[*english.encode(text), EOS] for text in sentences(ENGLISH, 400)])
    target = _padded([[BOS, *russian.encode(text), EOS] for text in sentences(RUSSIAN, 400)])
    for _ in range(steps):
        some = torch.randint(len(source), (64,))
        logits = model(source[some], target[some, :-1])
        loss = cross_entropy(logits.flatten(0, 1), target[some, 1:].flatten(), ignore_index=PAD)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no type for it
        optimiser.step()
    return model.eval()


def _padded(rows: list[list[int]]) -> torch.Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)
