"""What a corpus is prepared with: a text pipeline trained here, or a pretrained model's tokenizer."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from cadec_cli.bundle.manifest import MANIFEST
from cadec_cli.bundle.opening import Bundle
from cadec_cli.bundle.pretrained_parts import PretrainedGiven, is_pretrained
from cadec_cli.errors import CadecError
from cadec_cli.text.corpus_text import CorpusText, Loader, PretrainedCorpusText
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.pretrained.line_text import LineText


def corpus_text(given: str, language: str | None) -> Loader:
    """How to load the text that a user names: it is found now, and can be loaded in any process.

    A text pipeline; a bundle, for the target language of its S-NMT; or a pretrained language model, whose
    language has to be said.
    """
    path = Path(given).expanduser()
    if (path / MANIFEST).is_file():
        return partial(_target_of_bundle, path)
    if not (path / "pipeline.json").is_file() and is_pretrained("lm", given, PretrainedGiven()):
        from converters.language.huggingface import open_tokenizer

        if language is None:
            raise CadecError(f"nothing says which language {given} is used for", "say it with --language")
        return partial(_lines, *open_tokenizer(given), language)
    return partial(TextPipeline.load, path)


def _lines(tokenizer: str, boundary: str, language: str) -> CorpusText:
    return PretrainedCorpusText(language, LineText(tokenizer, boundary=boundary, start=None))


def _target_of_bundle(directory: Path) -> CorpusText:
    return Bundle.open(directory, verify=False).target_text
