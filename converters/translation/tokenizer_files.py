"""Finds a model's tokenizer files, beside it or named by the user, and checks them against its vocabulary.

Here a tokenizer is a file of some kind with a list of pieces; `text.tokenizers` applies it to text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.read import read_errors, read_json
from cadec_cli.models.pretrained_settings import TextSettings
from converters.request import PretrainedRequest

# The share of a tokenizer's most frequent pieces that a model's vocabulary may lack. Many BPE merges are only
# steps towards longer ones, and are in no vocabulary.
_MAX_MISSING = {"sentencepiece": 0.2, "tokenizers": 0.2, "moses-bpe": 0.5}
_FREQUENT = 1000


@dataclass(frozen=True)
class TokenizerFiles:
    """The tokenizer settings of both sides, and the files by the names that the settings use."""

    source: TextSettings
    target: TextSettings
    files: Mapping[str, Path]


def tokenizers_of(
    directory: Path,
    request: PretrainedRequest,
    source_vocabulary: Sequence[str],
    target_vocabulary: Sequence[str],
    languages: Sequence[str] = (),
) -> TokenizerFiles:
    """Find the tokenizers of a model; a missing one, or another model's, is a CadecError.

    `languages` are the model's own language tokens, which are not text.
    """
    given = (request.source_tokenizer, request.target_tokenizer)
    source, target = (
        given[side]
        or given[1 - side]  # one is enough for both
        or _find_tokenizer_file(directory, name, language)
        for side, name, language in (
            (0, "source", request.source_language),
            (1, "target", request.target_language),
        )
    )
    same_name = source.name == target.name and source != target
    names = (f"source-{source.name}", f"target-{target.name}") if same_name else (source.name, target.name)
    settings = []
    for path, name, vocabulary, side in (
        (source, names[0], source_vocabulary, "source"),
        (target, names[1], target_vocabulary, "target"),
    ):
        kind = kind_of_tokenizer(path)
        _check_pieces(path, kind, vocabulary, side)
        options = {**(_moses(vocabulary) if kind == "moses-bpe" else {}), **_special(vocabulary, languages)}
        settings.append(TextSettings(kind=kind, files=(name,), options=options))
    return TokenizerFiles(settings[0], settings[1], dict(zip(names, (source, target), strict=True)))


def _moses(vocabulary: Sequence[str]) -> dict[str, str]:
    """Infer the steps before BPE from a vocabulary: & as &amp;, a-b as a @-@ b."""
    escaped = any(token.startswith(("&apos;", "&quot;", "&amp;")) for token in vocabulary)
    dashes = "@-@" in set(vocabulary)
    said = {"lowercase": False, "escape": escaped, "split_dashes": dashes}
    return {name: "yes" if value else "no" for name, value in said.items()}


def _special(vocabulary: Sequence[str], languages: Sequence[str]) -> dict[str, str]:
    """Return the options for tokens that are not text, if they do not have their usual names."""
    said = {}
    if languages:
        usual = ("<s>", "</s>", "<unk>", "<pad>", "<blank>", "<mask>")
        said["special"] = " ".join([*(token for token in usual if token in set(vocabulary)), *languages])
    if "</s>" not in vocabulary and "<blank>" in vocabulary:
        # OpenNMT-py's sources have no end token. A text must have one, and this one is never generated.
        said["end"] = "<blank>"
    return said


def _find_tokenizer_file(directory: Path, side: str, language: str | None) -> Path:
    own = [f"{side}.spm", f"{side}.model", f"{side}.bpe", f"{side}.codes"]
    if language:
        own += [f"spm.{language}.model", f"{language}.spm", f"{language}.model", f"{language}.spm.model"]
        own += [f"bpecodes.{language}", f"codes.{language}", f"{language}.codes", f"{language}.bpe"]
    shared = ["sentencepiece.bpe.model", "sentencepiece.model", "spm.model", "spiece.model", "tokenizer.json"]
    shared += ["bpecodes", "bpe.codes", "bpe.code", "bpe_codes", "codes.bpe", "codes", "code"]
    for name in (*own, *shared):
        if (directory / name).is_file():
            return directory / name
    for pattern in ("*.spm", "*.model", "*.bpe", "*.codes", "*.bpecodes"):
        found = sorted(directory.glob(pattern))
        if len(found) == 1:
            return found[0]
        if found:
            raise CadecError(
                f"several files may be the model's tokenizer: {', '.join(one.name for one in found)}",
                f"say which with {option('source-tokenizer')} and {option('target-tokenizer')} (this "
                f"is about the {side})",
            )
    raise CadecError(
        f"no tokenizer of the {side} in {directory}: neither a SentencePiece model ({side}.spm, *.model), "
        f"nor a tokenizer.json, nor BPE codes ({side}.bpe, bpecodes)",
        f"name its file with {option('source-tokenizer')} and {option('target-tokenizer')}; one is "
        "enough if both sides share it",
    )


def kind_of_tokenizer(path: Path) -> str:
    """Detect the kind of a tokenizer file, by its name and its first bytes."""
    with read_errors(path), path.open("rb") as stream:
        start = stream.read(4096)
    if path.suffix == ".json":
        return "tokenizers"
    # A SentencePiece model begins with the field of its first piece; merges are lines of two pieces.
    if not start.startswith(b"\n"):
        lines = start.decode("utf-8", errors="ignore").split("\n")[:-1]
        merges = [line.split() for line in lines if not line.startswith("#version")]
        if merges and all(len(merge) in (2, 3) for merge in merges):
            return "moses-bpe"
    return "sentencepiece"


def _check_pieces(path: Path, kind: str, vocabulary: Sequence[str], side: str) -> None:
    known = set(vocabulary)
    frequent = list(islice(_pieces(path, kind), _FREQUENT))
    if not frequent:
        raise CadecError(f"{path} is a tokenizer without pieces")
    missing = [piece for piece in frequent if piece not in known]
    if len(missing) > _MAX_MISSING[kind] * len(frequent):
        raise CadecError(
            f"{path} is not the tokenizer of the model's {side}: {len(missing)} of its {len(frequent):,} "
            f"most frequent pieces are not in the vocabulary, {', '.join(map(repr, missing[:3]))} among them",
            f"name the right file with {option('source-tokenizer')} or {option('target-tokenizer')}",
        )


def _pieces(path: Path, kind: str) -> Iterator[str]:
    """The pieces of a tokenizer, the most frequent first, without special tokens."""
    if kind == "sentencepiece":
        return sentencepiece_pieces(path)
    return _json_pieces(path) if kind == "tokenizers" else _merged_pieces(path)


def sentencepiece_pieces(path: Path, *, special: bool = False) -> Iterator[str]:
    """Yield the pieces of a SentencePiece model in the order of their ids; special ones if `special`."""
    from cadec_cli.text.subwords import open_sentencepiece

    with read_errors(path):
        model = path.read_bytes()
    processor = open_sentencepiece(model, str(path))
    for index in range(processor.get_piece_size()):
        if special or not (
            processor.is_control(index)
            or processor.is_unknown(index)
            or processor.is_byte(index)
            or processor.is_unused(index)
        ):
            yield processor.id_to_piece(index)


def _json_pieces(path: Path) -> Iterator[str]:
    value = read_json(path)
    try:
        special = {token["content"] for token in value["added_tokens"]}
        vocabulary = value["model"]["vocab"]
        # A unigram model has pairs of a piece and its score; others have ids by piece.
        pieces = (
            [pair[0] for pair in vocabulary]
            if isinstance(vocabulary, list)
            else sorted(vocabulary, key=vocabulary.__getitem__)
        )
    except (KeyError, TypeError, IndexError):
        raise CadecError(f"{path} is not a tokenizer of the tokenizers library") from None
    return (piece for piece in pieces if piece not in special)


def _merged_pieces(path: Path) -> Iterator[str]:
    with read_errors(path):
        lines = path.read_text("utf-8", errors="replace").split("\n")
    for line in lines:
        merge = line.split()
        if len(merge) >= 2 and not line.startswith("#version"):
            piece = merge[0] + merge[1]
            yield piece.removesuffix("</w>") if piece.endswith("</w>") else f"{piece}@@"
