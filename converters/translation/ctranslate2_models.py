"""Imports a model in CTranslate2's format: copied as it is, with tokenizer files beside it or named.

Its configuration and its vocabulary say which tokens it needs around a sentence. There is no original to
compare it with. Instead, the scores of its beam must equal the scores of the same translations.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cadec_cli.engines.compute_types import check_compute_type
from cadec_cli.engines.ctranslate2 import Framing, framing_for, read_settings, read_vocabularies
from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_directory
from cadec_cli.fs.read import read_errors, sha256
from cadec_cli.models.pretrained_settings import SOURCE, TARGET, TranslationSettings
from cadec_cli.text.languages import LANGUAGE_TOKENS, code_of, iso_code, own_token
from converters.request import PretrainedRequest
from converters.translation.base import check_vocabulary, ordinary
from converters.translation.tokenizer_files import tokenizers_of
from converters.verify import Drift, drift_from_itself, random_probes, stated_licence

# Older formats say less about their variables.
_OLDEST_VERSION = 4

_FLOATS = {0: "float32", 4: "float16"}
_BFLOAT16 = 5


@dataclass(frozen=True)
class StoredModel:
    """A model on disk: the name of its specification, and the shapes of its variables."""

    name: str
    shapes: Mapping[str, tuple[int, ...]]


def read_stored(path: Path) -> StoredModel:
    """Read the outline of a model.bin; a damaged file, or NaN or infinite values, are a CadecError."""
    try:
        with read_errors(path), path.open("rb") as stream:
            return _read(stream, path)
    except (struct.error, UnicodeDecodeError, ValueError):
        raise CadecError(
            f"{path} is not a CTranslate2 model, or is cut short", "download or convert it again"
        ) from None


def _read(stream: BinaryIO, path: Path) -> StoredModel:
    length = os.fstat(stream.fileno()).st_size
    version = _number(stream, "I")
    if not _OLDEST_VERSION <= version < 1000:
        raise CadecError(
            f"{path} has version {version} of CTranslate2's format, which can't be read",
            "convert the original with a newer CTranslate2",
        )
    name = _text(stream)
    _number(stream, "I")  # the revision of the specification
    shapes: dict[str, tuple[int, ...]] = {}
    wrong = []
    for _ in range(_number(stream, "I")):
        variable = _text(stream)
        shapes[variable] = tuple(_number(stream, "I") for _ in range(_number(stream, "B")))
        kind, size = _number(stream, "B"), _number(stream, "I")
        if size > length - stream.tell():  # before any memory is allocated
            raise ValueError("it ends early")
        data = stream.read(size)
        if not _finite(data, kind):
            wrong.append(variable)
    for _ in range(_number(stream, "I")):
        alias, variable = _text(stream), _text(stream)
        if variable in shapes:
            shapes[alias] = shapes[variable]
    if wrong:
        raise CadecError(f"{path} holds NaN or infinite values in {', '.join(wrong[:5])}")
    return StoredModel(name, shapes)


def _finite(data: bytes, kind: int) -> bool:
    if kind in _FLOATS:
        return bool(np.isfinite(np.frombuffer(data, _FLOATS[kind])).all())
    if kind == _BFLOAT16:
        exponents = np.frombuffer(data, np.uint16) & 0x7F80
        return bool((exponents != 0x7F80).all())
    return True


def _number(stream: BinaryIO, form: str) -> int:
    value: int = struct.unpack(f"<{form}", stream.read(struct.calcsize(f"<{form}")))[0]
    return value


def _text(stream: BinaryIO) -> str:
    size = _number(stream, "H")
    data = stream.read(size)
    if len(data) != size:
        raise ValueError("it ends early")
    return data.rstrip(b"\0").decode("utf-8")


_POSITIONS = 512  # of models without a table of positions
_MAX_POSITIONS = 1024  # of sinusoids, which some converters write for far longer sentences

_PLAIN_T5 = "<extra_id_0>"
_OPENNMT_PADDING = "<blank>"


@dataclass(frozen=True, kw_only=True)
class CTranslate2Import:
    """A CTranslate2 directory; see `TranslationImport`."""

    settings: TranslationSettings
    languages: tuple[str | None, str | None]
    files: Mapping[str, Path]
    weights_files: Mapping[str, Path]  # the files that CTranslate2 reads
    framing: Framing
    source_vocabulary: Sequence[str]
    target_vocabulary: Sequence[str]

    def convert(self, output: Path, compute_type: str) -> Drift:
        """Copy it as it is; its weights are converted to the compute type when it is loaded."""
        check_compute_type(compute_type)
        probes = random_probes(
            self.framing,
            ordinary(self.source_vocabulary),
            ordinary(self.target_vocabulary),
            min(self.settings.positions - self.framing.source_size, 40),
        )
        with atomic_directory(output) as part:
            for name, path in self.weights_files.items():
                with read_errors(path):
                    shutil.copyfile(path, part / name)
            # Exact first: with fewer bits a mistake would look like rounding.
            for kind in dict.fromkeys(("float32", compute_type)):
                drift = drift_from_itself(part, kind, probes, self.settings.positions)
                drift.check()
        return drift


def open_ctranslate2(path: Path, request: PretrainedRequest) -> CTranslate2Import:
    """Read a CTranslate2 directory and check that its parts fit."""
    stored = read_stored(path / "model.bin")
    if (
        stored.name in ("TransformerDecoderSpec", "TransformerEncoderSpec")
        or "Transformer" not in stored.name
    ):
        raise CadecError(
            f"{path} is not a translation model: CTranslate2 calls it {stored.name}",
            "a translation model has an encoder and a decoder",
        )
    config = _config(path)
    source, target = read_vocabularies(path)
    _check_sizes(stored, source, target)
    framed = _family_framing(source, target, config)
    languages = tuple(dict.fromkeys((*framed.source_languages, *framed.target_languages)))
    texts = tokenizers_of(path, request, source, target, languages)
    added = sum(config.get(name) is True for name in ("add_source_bos", "add_source_eos"))
    settings = TranslationSettings(
        family=framed.family,
        origin=path.resolve().name,
        licence=stated_licence(path),
        weights=sha256(path / "model.bin"),
        positions=_positions(stored) - added,
        source=texts.source,
        target=texts.target,
        source_begin=framed.source_begin,
        source_end=framed.source_end,
        target_begin=framed.target_begin,
        source_languages=framed.source_languages,
        target_languages=framed.target_languages,
        verified="the beam's scores are those of scoring its translations; the original was not compared",
    )
    said = (
        _code(request.source_language, framed.source_languages),
        _code(request.target_language, framed.target_languages),
    )
    return CTranslate2Import(
        settings=settings,
        languages=said,
        files=texts.files,
        weights_files={
            name: path / name
            for name in sorted(one.name for one in path.iterdir())
            if name in ("model.bin", "config.json") or re.fullmatch(r"\w+_vocabulary\.(json|txt)", name)
        },
        framing=framing_for(settings, request.source_language, request.target_language),
        source_vocabulary=source,
        target_vocabulary=target,
    )


def _code(language: str | None, tokens: Sequence[str]) -> str | None:
    if language is None:
        return None
    return code_of(own_token(language, tokens), tokens) if tokens else iso_code(language)


def _config(path: Path) -> dict[str, Any]:
    if not (path / "config.json").is_file():
        raise CadecError(
            f"{path} has no config.json, which says which tokens a sentence needs around it",
            "it was made by a CTranslate2 before version 3; convert the original again",
        )
    config = read_settings(path)
    if config.get("decoder_start_token", "<s>") is None:
        raise CadecError(
            f"the model in {path} has no token to start translations with (decoder_start_token)",
            "convert the original again, with its default special tokens",
        )
    return config


def _check_sizes(stored: StoredModel, source: Sequence[str], target: Sequence[str]) -> None:
    for tokens, side, names in (
        (source, "source", ("encoder/embeddings_0/weight", "encoder/embeddings/weight")),
        (target, "target", ("decoder/embeddings/weight",)),
    ):
        rows = next((stored.shapes[name][0] for name in names if name in stored.shapes), None)
        if rows is not None:
            check_vocabulary(tokens, rows, (), f"the vocabulary of the {side}")


def _positions(stored: StoredModel) -> int:
    tables = [
        stored.shapes[name][0]
        for name in ("encoder/position_encodings/encodings", "decoder/position_encodings/encodings")
        if name in stored.shapes
    ]
    return min(_MAX_POSITIONS, *tables) if tables else _POSITIONS


@dataclass(frozen=True, kw_only=True)
class _FamilyFraming:
    family: str
    source_begin: tuple[str, ...] = ()
    source_end: tuple[str, ...] = ()
    target_begin: tuple[str, ...] = ()
    source_languages: tuple[str, ...] = ()
    target_languages: tuple[str, ...] = ()


def _family_framing(
    source: Sequence[str], target: Sequence[str], config: Mapping[str, Any]
) -> _FamilyFraming:
    """Detect the family of a vocabulary, and the tokens that it needs around a sentence."""
    eos = config.get("eos_token") or "</s>"
    start = config.get("decoder_start_token")
    end = () if config.get("add_source_eos") else (str(eos),)
    tokens = {name: _tokens(source, shape) for name, shape in LANGUAGE_TOKENS.items()}
    family, languages = next(((name, found) for name, found in tokens.items() if len(found) > 1), ("", ()))
    if family in ("marian", "madlad"):
        return _FamilyFraming(
            family=family, source_begin=(TARGET,), source_end=end, target_languages=languages
        )
    if family == "mbart50" and start in languages:  # mBART, with one model per direction
        return _FamilyFraming(family="mbart", source_end=(*end, SOURCE), source_languages=languages)
    if family:
        return _FamilyFraming(
            family=family,
            source_begin=(SOURCE,),
            source_end=end,
            target_begin=(TARGET,),
            source_languages=languages,
            target_languages=_tokens(target, LANGUAGE_TOKENS[family]),
        )
    if _PLAIN_T5 in source:
        raise CadecError(
            "this T5 model takes its task in words and has no language tokens, which is not supported",
            "convert the original from its Hugging Face directory",
        )
    if _OPENNMT_PADDING in source and start == "<s>":
        return _FamilyFraming(family="opennmt")  # sources of OpenNMT's models have no end token
    return _FamilyFraming(family="transformer", source_end=end)


def _tokens(vocabulary: Sequence[str], shape: re.Pattern[str]) -> tuple[str, ...]:
    return tuple(token for token in vocabulary if shape.fullmatch(token))
