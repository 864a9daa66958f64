"""How a corpus is cut into tokens: by a text pipeline trained here, or a pretrained model's tokenizer."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.find import named_bundle
from cadec_cli.bundle.manifest import MANIFEST
from cadec_cli.bundle.parts import is_pretrained
from cadec_cli.errors import CadecError, option
from cadec_cli.fs.paths import expand_user
from cadec_cli.text.languages import iso_code
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.token_text import CorpusText, Loader, PretrainedCorpusText
from cadec_cli.text.tokenizers.line_text import LineText
from converters import HUB, open_tokenizer


def corpus_text(given: str, language: str | None) -> Loader:
    """Find the text that a user names; return a loader for it that works in any process.

    `given` is a text pipeline; a bundle, for the target language of its S-NMT; or a pretrained language
    model, which needs a `language`.
    """
    path = expand_user(given)
    bundle = path if (path / MANIFEST).is_file() else named_bundle(path)
    if bundle is not None and not (path / "pipeline.json").is_file():
        return partial(_target_of_bundle, bundle, language)
    if (path / "pipeline.json").is_file() or (path.is_dir() and not is_pretrained("lm", given)):
        return partial(_pipeline, path, language)
    if not path.exists() and not given.startswith(HUB):
        raise CadecError(
            f"{given} is not a text pipeline here", f"if it is a model on the hub, write {HUB}{given}"
        )
    if language is None:
        raise CadecError(f"the language of {given} is not known", f"name it with {option('language')}")
    return partial(_lines, *open_tokenizer(given), language)


def _lines(tokenizer: str, boundary: str, language: str) -> CorpusText:
    text = LineText(tokenizer, boundary=boundary, start=None)
    return PretrainedCorpusText(language, text, "language model")


def _pipeline(directory: Path, language: str | None) -> CorpusText:
    return _in(language, TextPipeline.load(directory), directory)


def _target_of_bundle(directory: Path, language: str | None) -> CorpusText:
    return _in(language, Bundle.open(directory).target_text, directory)


def _in(language: str | None, text: CorpusText, origin: Path) -> CorpusText:
    if language is not None and iso_code(language) != iso_code(text.language):
        raise CadecError(
            f"{origin} is for {text.language!r}, not for {language!r}", f"leave out {option('language')}"
        )
    return text
