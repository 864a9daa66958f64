"""Which pretrained models a bundle is asked to be made of: given anew, or those that it has already.

All that is wrong with them is collected, to be told at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cadec_cli.bundle.cache import Note
from cadec_cli.bundle.opening import Bundle
from cadec_cli.bundle.pretrained_parts import (
    PretrainedLanguage,
    PretrainedModelRequest,
    PretrainedTranslation,
    import_language,
    import_translation,
    is_pretrained,
    reuse_language,
    reuse_translation,
)
from cadec_cli.errors import CadecError
from cadec_cli.text.pipeline import TextPipeline


@dataclass
class Misfits:
    """All that keeps a bundle from being built."""

    problems: list[str] = field(default_factory=list)
    hint: str = ""

    def add(self, error: CadecError) -> None:
        """Remember why something failed."""
        self.problems.append(error.message)
        self.hint = self.hint or error.hint

    def check(self) -> None:
        """Refuse, if there is anything."""
        if self.problems:
            raise CadecError(
                "this bundle can't be built: " + "; ".join(dict.fromkeys(self.problems)), self.hint
            )


def check_paths(
    nmt: Path | str | None, lm: Path | str | None, other: PretrainedModelRequest, wrong: Misfits
) -> None:
    """Refuse models that are neither here nor names on the hub."""
    for part, model in (("nmt", nmt), ("lm", lm)):
        if model is not None and not (Path(model).exists() or is_pretrained(part, model, other)):
            wrong.problems.append(f"no such file or directory: {model}")
    wrong.check()


def pretrained_translation(
    nmt: Path | str | None,
    kept: Bundle | None,
    other: PretrainedModelRequest,
    compute_types: Sequence[str],
    wrong: Misfits,
    note: Note,
) -> PretrainedTranslation | None:
    """The pretrained S-NMT that is given, or that the bundle has; None where it is one of ours."""
    try:
        if nmt is not None and is_pretrained("nmt", nmt, other):
            return import_translation(str(nmt), other, compute_types, note)
        if nmt is None and kept is not None and kept.translation_settings is not None:
            return reuse_translation(kept, other, compute_types)
    except CadecError as error:
        wrong.add(error)
    return None


def pretrained_language(
    lm: Path | str | None,
    kept: Bundle | None,
    other: PretrainedModelRequest,
    written_in: str | None,
    output: Path,
    wrong: Misfits,
    note: Note,
) -> PretrainedLanguage | None:
    """The pretrained D-LM that is given, or that the bundle has; None where it is one of ours."""
    try:
        if lm is not None and is_pretrained("lm", lm, other):
            # Where the S-NMT itself is wrong, its language is not known, and that is said already.
            if written_in is None and not wrong.problems:
                raise CadecError(
                    "nothing says which language this is for",
                    "say it with --target-language, as in --target-language fr",
                )
            if other.link and Path(lm).resolve().is_relative_to(output.resolve()):
                raise CadecError(f"{lm} is in the bundle to be written, and can't be linked from there")
            return import_language(str(lm), other, written_in, note)
        if lm is None and kept is not None and kept.language_settings is not None:
            return reuse_language(kept, other)
    except CadecError as error:
        wrong.add(error)
    return None


def lm_language(
    translation: PretrainedTranslation | None,
    other: PretrainedModelRequest,
    kept: Bundle | None,
    pipeline: Path | None,
) -> str | None:
    """The language that a pretrained D-LM is to read, as far as it is known before anything is loaded."""
    if translation is not None:
        return translation.languages()[1]
    if other.target_language is not None:
        return other.target_language
    if pipeline is not None and (pipeline / "pipeline.json").is_file():
        return TextPipeline.load(pipeline).language
    return kept.target_language if kept is not None else None


def without_effect(
    other: PretrainedModelRequest,
    *,
    nmt: Path | str | None,
    lm: Path | str | None,
    language: PretrainedLanguage | None,
) -> list[str]:
    """What was asked for of a model that is not there."""
    wrong = []
    for flag, value in (
        ("--nmt-kind", other.nmt_kind),
        ("--source-tokenizer", other.source_tokenizer),
        ("--target-tokenizer", other.target_tokenizer),
    ):
        if value is not None and nmt is None:
            wrong.append(f"{flag} is about --nmt, which is not given")
    if other.for_beam and (nmt is None or not is_pretrained("nmt", nmt, other)):
        wrong.append("--for-beam is about a pretrained --nmt, and none is given")
    if other.link and lm is None:
        wrong.append("--link is about --lm, which is not given")
    # Where the D-LM itself is wrong, that is said already.
    if language is None and (lm is None or not is_pretrained("lm", lm, other)):
        if other.no_context is not None:
            wrong.append("--no-context is for a pretrained D-LM, and there is none")
        if other.link and lm is not None:
            wrong.append("--link is for a pretrained D-LM, and this one was trained here")
    return wrong
