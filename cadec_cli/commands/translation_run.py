"""What `cadec translate` does with its files: read, translate in step, write as sentences are chosen."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cadec_cli import console
from cadec_cli.bundle.loading import Models, default_options
from cadec_cli.bundle.opening import Bundle, find_bundle
from cadec_cli.commands.views import translations as show
from cadec_cli.console import visible
from cadec_cli.decoding.journal import Journal
from cadec_cli.decoding.translations import Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.errors import CadecError
from cadec_cli.files import whole_file
from cadec_cli.method.options import TranslationOptions
from cadec_cli.text.formats import TextFile, read_text_file


@dataclass(frozen=True)
class Display:
    """What a person wants to see beside the translation."""

    compare: bool
    explain: bool


@dataclass
class TranslationRun:
    """One call of the command."""

    inputs: Sequence[Path]
    bundle: Path | None
    flags: Mapping[str, Any]
    lines: bool
    input_format: str | None
    encoding: str
    device: str
    compute_type: str
    threads: int

    @cached_property
    def opened(self) -> Bundle:
        """The bundle."""
        opened = Bundle.open(find_bundle(self.bundle))
        if not opened.has_translation:
            raise CadecError(f"{opened.directory} has no S-NMT and can't translate")
        return opened

    @cached_property
    def options(self) -> TranslationOptions:
        """The bundle's defaults, and what was asked for."""
        return dataclasses.replace(default_options(self.opened), **self.flags)

    @cached_property
    def files(self) -> list[TextFile]:
        """The inputs as read."""
        language = self.opened.source_language or ""
        return [
            read_text_file(
                path, language=language, lines=self.lines, encoding=self.encoding, format=self.input_format
            )
            for path in self.inputs
        ]

    @cached_property
    def documents(self) -> list[tuple[str, ...]]:
        """The documents of all files."""
        return [document.texts for file in self.files for document in file.documents]

    @cached_property
    def translator(self) -> Translator:
        """The models, loaded."""
        return Translator.load(self._models, self.options)

    @cached_property
    def plain_translator(self) -> Translator:
        """The S-NMT alone."""
        return Translator.load(self._models, dataclasses.replace(self.options, search="sentence"))

    @cached_property
    def _models(self) -> Models:
        return Models(self.opened, device=self.device, compute_type=self.compute_type, threads=self.threads)

    def _sentence_level(self, translation: Translation) -> str:
        """What the S-NMT alone says; the hypotheses of a C-aware beam are in context, all of them."""
        if self.options.search != "beam":
            return translation.sentence_level
        return next(self.plain_translator.translate([translation.source])).text

    def to_stdout(self) -> None:
        """Write the files in their layout, one after the other, as sentences are chosen."""
        texts = iter(self._in_order())
        for file in self.files:
            count = sum(len(document) for document in file.documents)
            own = (next(texts).text for _ in range(count))
            for piece in file.restore(own):
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()

    def to_json(self) -> None:
        """Write an object a sentence."""
        for translation in self._in_order():
            for record in records(translation):
                sys.stdout.buffer.write(_json_line(record))
            sys.stdout.buffer.flush()

    def to_terminal(self, display: Display) -> None:
        """Show translations to a person."""
        out = show.stdout_console()
        if display.compare:
            out.print(show.heading(out.width))
        document = 0
        for translation in self._in_order():
            if translation.document != document:
                out.print()
                document = translation.document
            if display.compare:
                out.print(show.comparison(translation, self._sentence_level(translation), out.width))
            else:
                out.print(visible(translation.text))
            if display.explain:
                pieces = self.opened.lm_pipeline.subwords.pieces
                for part in translation.parts:
                    for line in show.explanation(part, pieces, self.translator.lm_ids):
                        out.print(line)

    def to_files(self, output: Path, *, json_lines: bool, resume: bool) -> None:
        """Write files, each whole or not at all; what is done so far is in a journal beside them."""
        targets = self._targets(output)
        journal_path = output / ".cadec-journal" if len(targets) > 1 else Path(f"{output}.cadec-journal")
        open_journal = Journal.resume if resume else Journal.begin
        with open_journal(journal_path, self._header(json_lines)) as journal:
            if journal.outputs:
                console.note(f"{len(journal.outputs):,} sentences are done already")
            translations = self.translator.translate_documents(
                self.documents, start=journal.start, checkpoint=journal.checkpoint
            )
            left = sum(map(len, self.documents)) - len(journal.outputs)
            for item in console.track(translations, "translate", total=left, unit="sentences"):
                done = records(item) if json_lines else item.text
                journal.add(item.document, item.sentence, done)
            first = 0
            for target, file in zip(targets, self.files, strict=True):
                outputs = [
                    journal.outputs[first + number, sentence]
                    for number, document in enumerate(file.documents)
                    for sentence in range(len(document))
                ]
                first += len(file.documents)
                _write(target, file, outputs, json_lines)
            journal.finish()

    def _in_order(self) -> Iterator[Translation]:
        """Translations document by document, although they are made in step; early ones wait."""
        arrived = [0] * len(self.documents)
        waiting: list[list[Translation]] = [[] for _ in self.documents]
        current = 0
        translations = self.translator.translate_documents(self.documents)
        if not sys.stdout.isatty():  # a bar would be drawn over the results
            total = sum(map(len, self.documents))
            translations = console.track(translations, "translate", total, "sentences")
        for translation in translations:
            arrived[translation.document] += 1
            waiting[translation.document].append(translation)
            while current < len(self.documents):
                yield from waiting[current]
                waiting[current].clear()
                if arrived[current] < len(self.documents[current]):
                    break
                current += 1

    def _targets(self, output: Path) -> list[Path]:
        if len(self.inputs) == 1:
            if output.is_dir():
                raise CadecError(f"{output} is a directory", "name the file to write")
            return [output]
        if output.exists() and not output.is_dir():
            raise CadecError(
                f"{output} is a file, and there are {len(self.inputs)} inputs", "name a directory"
            )
        names = [path.name for path in self.inputs]
        if len(set(names)) < len(names):
            raise CadecError("two of the inputs have the same name", "translate them one by one")
        return [output / name for name in names]

    def _header(self, json_lines: bool) -> dict[str, Any]:
        """All that the outcome depends on."""
        text = json.dumps(self.documents, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return {
            "input": hashlib.sha256(text).hexdigest(),
            "bundle": self.opened.manifest.identity,
            "options": dataclasses.asdict(self.options),
            "compute type": self.compute_type,
            "output format": "json" if json_lines else "text",
        }


def records(translation: Translation) -> list[dict[str, Any]]:
    """A translation as plain data: one object a part, that is one, unless the sentence was too long."""
    found = []
    for part in translation.parts:
        record: dict[str, Any] = {
            "document": translation.document,
            "sentence": translation.sentence,
            "source": part.source,
            "translation": part.text,
        }
        if part.choice is not None:
            choice = part.choice
            record["chosen"] = choice.index
            record["hypotheses"] = [
                {"text": hypothesis.text, "log_prob": hypothesis.log_prob, "score": choice.scores[index]}
                | (
                    {
                        "conditional": choice.conditional[index],
                        "free": choice.free[index],
                        "pmi": choice.conditional[index] - choice.free[index],
                    }
                    if choice.conditional
                    else {}
                )
                for index, hypothesis in enumerate(part.hypotheses)
            ]
        found.append(record)
    return found


def _json_line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _write(target: Path, file: TextFile, outputs: list[Any], json_lines: bool) -> None:
    with whole_file(target) as stream:
        if json_lines:
            for record in (record for records_ in outputs for record in records_):
                stream.write(_json_line(record))
        else:
            for piece in file.restore(outputs):
                stream.write(piece)
