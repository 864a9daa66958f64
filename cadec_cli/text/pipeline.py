"""All of a language's text processing in one object: a sentence to ids and back.

normalise → tokenise → truecase → subwords → ids, and the inverse of each.

decode(encode(text)) == canonical(text)     for every text

A `JoinedText` is several sentences as one text, one per line: the input of models that read passages.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_directory, restore_directory
from cadec_cli.fs.read import parse_json, read_errors, read_json
from cadec_cli.text.languages import check_language, language_misfit
from cadec_cli.text.moses import MosesText, Truecaser, recase
from cadec_cli.text.subwords import BOS, EOS, Subwords

FORMAT_VERSION = 1
FILES = ("pipeline.json", "truecaser.json", "subwords.model")


class TextPipeline:
    """The text processing of one language, as trained; saved in a directory of three files."""

    kind = "pipeline"

    def __init__(
        self, language: str, truecaser: Truecaser | Callable[[], Truecaser], subwords: Subwords
    ) -> None:
        check_language(language)
        self.language = language
        self.moses = MosesText(language)
        self._truecaser = truecaser
        self.subwords = subwords

    @cached_property
    def truecaser(self) -> Truecaser:
        """The truecaser, parsed when it is first needed: decoding ids does not need it."""
        return self._truecaser if isinstance(self._truecaser, Truecaser) else self._truecaser()

    def __len__(self) -> int:
        """The size of the vocabulary."""
        return len(self.subwords)

    def encode(self, text: str) -> list[int]:
        """Turn a sentence into ids, without EOS. An empty sentence has none."""
        return self.subwords.encode(self.tokenise(text))

    def decode(self, ids: Sequence[int]) -> str:
        """Turn ids into a sentence."""
        return self.moses.detokenise(recase(self.subwords.decode(ids).split()))

    @property
    def identity(self) -> str:
        """Two pipelines with the same identity write the same ids."""
        return self.checksum

    @property
    def boundary(self) -> int:
        """The id between two sentences."""
        return EOS

    @property
    def vocabulary(self) -> Sequence[str]:
        """All pieces, in the order of their ids."""
        return self.subwords.pieces

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        """Each piece as a person reads it, a space where a word begins."""
        return [self.subwords.pieces[index].replace("\u2581", " ") for index in ids]

    def tokenise(self, text: str) -> str:
        """The sentence as the subword model sees it: normalised, tokenised, truecased."""
        return " ".join(self.truecaser.truecase(self.moses.tokenise(self.moses.normalise(text))))

    def canonical(self, text: str) -> str:
        """The sentence as it comes back from a round trip: normalised, with a capital at its start."""
        return self.moses.detokenise(recase(self.moses.tokenise(self.moses.normalise(text))))

    @cached_property
    def checksum(self) -> str:
        """The checksum that a model stores of the pipeline it was trained with."""
        return _checksum(self._files())

    def save(self, directory: Path) -> None:
        """Write the pipeline, whole or not at all."""
        with atomic_directory(directory, marker=FILES[0]) as part:
            for name, content in self._files().items():
                (part / name).write_bytes(content)

    @classmethod
    def load(cls, directory: Path, *, checked: bool = False) -> TextPipeline:
        """Load a pipeline; anything missing, damaged or of another format is a CadecError.

        `checked` means that the files' checksums were just verified. The truecaser is then parsed only when
        it is first needed: that of a large corpus takes longer than all the rest.
        """
        restore_directory(directory)
        if not (directory / "pipeline.json").is_file():
            raise CadecError(
                f"{directory} is not a text pipeline (it has no pipeline.json)",
                "make one with `cadec train tokenizer`",
            )
        settings = read_json(directory / "pipeline.json")
        if not isinstance(settings, dict) or settings.get("format") != FORMAT_VERSION:
            raise CadecError(f"{directory}/pipeline.json is not of format {FORMAT_VERSION}")
        if problem := language_misfit(settings.get("language")):
            raise CadecError(f"{directory}/pipeline.json does not name a language: {problem}")
        words = directory / "truecaser.json"
        truecaser = None if checked else load_truecaser(words)
        subwords = Subwords.load(directory / "subwords.model")
        with read_errors(directory):
            contents = {name: (directory / name).read_bytes() for name in FILES}
        later = partial(_parse_truecaser, contents[words.name], words)
        pipeline = cls(settings["language"], truecaser or later, subwords)
        # From the files as read: serialising the truecaser again takes longer than all the rest of loading.
        pipeline.checksum = _checksum(contents)
        return pipeline

    def _files(self) -> dict[str, bytes]:
        settings = {"format": FORMAT_VERSION, "language": self.language}
        contents = (_json(settings), truecaser_json(self.truecaser), self.subwords.serialised)
        return dict(zip(FILES, contents, strict=True))


def _checksum(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def load_truecaser(path: Path) -> Truecaser:
    """Load a truecaser saved as JSON."""
    return _truecaser(read_json(path), path)


def _parse_truecaser(raw: bytes, path: Path) -> Truecaser:
    try:
        return _truecaser(parse_json(raw), path)
    except ValueError as error:
        raise CadecError(f"{path} is not valid JSON: {error}") from None


def _truecaser(value: object, path: Path) -> Truecaser:
    words = value.get("lowered") if isinstance(value, dict) else None
    if not isinstance(words, list) or not set(map(type, words)) <= {str}:
        raise CadecError(f"{path} is not a truecaser", "make one with `cadec train truecaser`")
    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        raise CadecError(f"{path} is damaged: a word has half a surrogate pair") from None
    return Truecaser(frozenset(words))


def truecaser_json(truecaser: Truecaser) -> bytes:
    """The truecaser as JSON, the same bytes for the same truecaser."""
    return _json({"lowered": sorted(truecaser.lowered)})


def _json(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=0) + "\n").encode()


# Between the sentences of a passage.
SEPARATOR = "\n"


@dataclass(frozen=True)
class JoinedText:
    """A language's text pipeline, for passages.

    Sentences are separated by the token that a target begins with, which no sentence contains.
    """

    pipeline: TextPipeline

    @property
    def identity(self) -> str:
        """The pipeline's identity, as the ids are the same."""
        return self.pipeline.identity

    @property
    def boundary(self) -> int:
        """The id that ends a passage."""
        return self.pipeline.boundary

    @property
    def vocabulary(self) -> Sequence[str]:
        """The pipeline's vocabulary."""
        return self.pipeline.vocabulary

    def encode(self, text: str) -> list[int]:
        """Turn a passage into ids, without its end."""
        ids: list[int] = []
        for number, sentence in enumerate(text.split(SEPARATOR)):
            ids += [BOS] if number else []
            ids += self.pipeline.encode(sentence)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Turn ids into a passage."""
        sentences: list[list[int]] = [[]]
        for index in ids:
            if index == BOS:
                sentences.append([])
            else:
                sentences[-1].append(index)
        return join_passage(self.pipeline.decode(sentence) for sentence in sentences)

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        """Each token as a person reads it."""
        return self.pipeline.display_tokens(ids)


def join_passage(sentences: Iterable[str]) -> str:
    """Join sentences to a passage; line breaks inside a sentence become spaces."""
    return SEPARATOR.join(" ".join(sentence.split()) for sentence in sentences)


def split_passage(passage: str) -> list[str]:
    """Split a passage into its sentences."""
    return passage.split(SEPARATOR)
