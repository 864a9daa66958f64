"""The Python interface: `import cadec_cli`, then `cadec_cli.load()`.

A `Translator` translates sentences, texts and files; a `Session` is a document that grows and can be
corrected. Both return `Translation` records. docs/python.md shows every call. Other modules of the package
are internal: they may change from one version to the next.

An error that the user can act on is a `CadecError`, with a `message` and a `hint`; a mistake in the calling
code is a TypeError or an IndexError.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from cadec_cli.decoding import translator as decoding
from cadec_cli.decoding.confidence import Confidence, Judge
from cadec_cli.decoding.glossary.outcomes import TermOutcome, name_outcomes, term_outcomes
from cadec_cli.decoding.manner.outcomes import MannerOutcome, manner_outcomes
from cadec_cli.decoding.preceding_context import context_of
from cadec_cli.decoding.translation import TranslatedPart
from cadec_cli.errors import CadecError
from cadec_cli.extensions import load as load_function
from cadec_cli.jobs.found_names import NameUse, names_output
from cadec_cli.jobs.in_step import FileTranslation
from cadec_cli.jobs.job import InputOptions, TranslationJob
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.jobs.outputs import OutputRequest, check_outputs
from cadec_cli.method.context import Context
from cadec_cli.method.options import TranslationOptions
from cadec_cli.session import session as sessions
from cadec_cli.text.formats import TEXT, TextFile, format_named
from cadec_cli.text.formats.layout import Source, SubtitleStyle
from cadec_cli.text.sentences import split_sentences

__all__ = [
    "Alternative",
    "CadecError",
    "Session",
    "Translation",
    "TranslationOptions",
    "Translator",
    "load",
]


def load(
    bundle: str | PathLike[str] | None = None,
    *,
    options: Mapping[str, Any] | TranslationOptions | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    device: str = "auto",
    compute_type: str = "int8",
    threads: int = 0,
) -> Translator:
    """Open a bundle and return a translator.

    `bundle` is a directory or the name of a bundle that was pulled; None is the one that $CADEC_BUNDLE names,
    else the embedded one. `options` is a mapping of options that differ from the bundle's defaults, such as
    {"temperature": 1, "search": "lattice"}, or a complete `TranslationOptions`. The languages are the
    bundle's own unless its models know others. `threads` = 0 means all cores.

    A bundle that can't be opened, or options that it can't serve, raise a CadecError.
    """
    request = ModelRequest(
        Path(bundle) if bundle is not None else None,
        source_language,
        target_language,
        device,
        compute_type,
        threads,
    )
    return Translator(TranslationJob.open(request, options))


@dataclass(frozen=True)
class Alternative:
    """One of the translations that a sentence could have had.

    The search ranks by `score`. `log_prob` is log p(y|x) of the translation model, and `pmi` is how much
    likelier the context makes the text. `pmi` is None if the search read no context.
    """

    text: str
    score: float
    log_prob: float
    pmi: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by their names."""
        return dataclasses.asdict(self)


class Translation:
    """A translated sentence, as `Translator` and `Session` return it.

    `document` and `sentence` count from 0. `edited` is True if `text` was typed by a person.
    """

    def __init__(
        self,
        document: int,
        sentence: int,
        source: str,
        text: str,
        *,
        parts: Sequence[TranslatedPart],
        translator: decoding.Translator,
        judge: Judge,
        edited: bool = False,
    ) -> None:
        self.document = document
        self.sentence = sentence
        self.source = source
        self.text = text
        self.edited = edited
        self._parts = parts
        self._translator = translator
        self._judge = judge

    @cached_property
    def _judgement(self) -> Confidence | None:
        return None if self.edited else self._judge.of_parts(self.source, self._parts)

    @property
    def confidence(self) -> float | None:
        """How far to trust the translation, from 0 to 1; None if it was copied or edited."""
        return None if self._judgement is None else round(self._judgement.value, 3)

    @property
    def flags(self) -> tuple[str, ...]:
        """Why a person should look at the sentence; empty unless the confidence is below 0.5."""
        found = self._judgement
        return found.reasons if found is not None and self._judge.is_flagged(found) else ()

    @property
    def terms(self) -> tuple[TermOutcome, ...]:
        """What became of the terms of the glossary; empty if the source has none, or if it was edited."""
        return () if self.edited else term_outcomes(self._parts)

    @property
    def manner(self) -> tuple[MannerOutcome, ...]:
        """What became of the form of address, and of the speaker's gender, that were asked for.

        Empty if nothing was asked for, if the translation shows neither form, or if it was edited.
        """
        return () if self.edited else manner_outcomes(self._parts)

    @property
    def names(self) -> tuple[TermOutcome, ...]:
        """What became of the names that were found in the text; empty without the option `names`."""
        return () if self.edited else name_outcomes(self._parts)

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The hypotheses the translation was chosen from, best first; empty if the sentence was copied.

        If a sentence was too long for the model and was translated in parts, only the last part varies.
        """
        if not self._parts or (choice := self._parts[-1].choice) is None:
            return ()
        *first, last = self._parts
        start = [part.text for part in first]
        return tuple(
            Alternative(
                " ".join([*start, self._translator.with_hypothesis(last, index).text]),
                choice.scores[index],
                last.hypotheses[index].log_prob,
                None if choice.pmi is None else choice.pmi[index],
            )
            for index in choice.ranking
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON. An unknown value is None.

        `terms` are there if there is a glossary, `names` if they are looked for, `manner` if a formality or a
        cast is given.
        """
        options = self._translator.options
        terms = {"terms": [term.to_dict() for term in self.terms]} if options.glossary else {}
        names = {"names": [name.to_dict() for name in self.names]} if options.finds_names else {}
        asked = {"manner": [one.to_dict() for one in self.manner]} if options.asks_for_manner else {}
        return {
            "document": self.document,
            "sentence": self.sentence,
            "source": self.source,
            "text": self.text,
            "edited": self.edited,
            "confidence": self.confidence,
            "flags": list(self.flags),
            **terms,
            **names,
            **asked,
            "alternatives": [alternative.to_dict() for alternative in self.alternatives],
        }

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Translation({_shorten(self.source)} → {_shorten(self.text)})"


class Translator:
    """The models of a bundle and the options to translate with. `cadec_cli.load` makes one.

    Wherever `after` is accepted, it is the text before the input, in the target language: a sequence of
    sentences, or a string, which is split into sentences. The first document is translated in that context.
    """

    def __init__(self, job: TranslationJob) -> None:
        job.check_translates()
        self._job = job
        self._core = job.translator

    @property
    def options(self) -> TranslationOptions:
        """The options: the bundle's defaults, and those passed to `load`."""
        return self._job.options

    @property
    def source_language(self) -> str:
        """The code of the language to translate from."""
        return self._job.languages.source_code

    @property
    def target_language(self) -> str:
        """The code of the language to translate into."""
        return self._job.languages.target_code

    def translate(
        self, sentences: Sequence[str], *, after: str | Sequence[str] = ()
    ) -> Iterator[Translation]:
        """Translate one document, and yield the translation of each sentence as soon as it is chosen.

        Sentences are not split; see `translate_text` for that. A bare string is a TypeError.
        """
        if isinstance(sentences, str):
            raise TypeError(
                "translate() takes a sequence of sentences, not a string: "
                f"translate([{_shorten(sentences)}]), or translate_text() for running text"
            )
        return self._translate([sentences], [self._context(after)])

    def translate_documents(self, documents: Sequence[Sequence[str]]) -> Iterator[Translation]:
        """Translate several documents at once, which is faster than one after the other.

        Sentences of a document are yielded in order, those of different documents in turn: `document` and
        `sentence` of a translation tell which is which.
        """
        return self._translate(documents, None)

    def _translate(
        self, documents: Sequence[Sequence[str]], contexts: Sequence[Context] | None
    ) -> Iterator[Translation]:
        judge = self._job.judge
        found = self._core.translate_documents(documents, contexts=contexts)  # checks its arguments at once
        return (
            Translation(
                one.document,
                one.sentence,
                one.source,
                one.text,
                parts=one.parts,
                translator=self._core,
                judge=judge,
            )
            for one in found
        )

    def translate_text(
        self,
        text: str,
        *,
        after: str | Sequence[str] = (),
        format: str = TEXT,
        lines: bool = False,
        columns: Sequence[str] = (),
        retranslate: bool = False,
    ) -> str:
        """Translate running text, and return it in its layout: paragraphs, blank lines and markup stay.

        Sentences are found by the rules of the language; with `lines`, every line is one sentence. A blank
        line ends a document. `format` is the name of a text format, such as "srt". Tables need `columns`, by
        name or number; with `retranslate`, what a catalogue has a translation of is translated again.
        """
        if not isinstance(text, str):
            raise TypeError(f"translate_text() takes a string, not {type(text).__name__}")
        known = format_named(format)
        if known.binary:
            raise CadecError(f"{format} is not a text format", "use translate_file()")
        source = Source(
            text,
            name="the text",
            format=format,
            language=self.source_language,
            lines=lines,
            tags=self.options.protect,
            screen=SubtitleStyle(language=self.target_language, fit=self.options.fits),
            columns=tuple(columns),
            retranslate=retranslate,
        )
        documents, layout = load_function(known.read)(source)
        file = TextFile(documents, layout, "utf-8", format)
        work = FileTranslation(self._core, [file], before=self._context(after))
        return b"".join(work.restore(work.in_order())).decode("utf-8")

    def translate_file(
        self,
        path: str | PathLike[str],
        output: str | PathLike[str] | None = None,
        *,
        after: str | Sequence[str] = (),
        format: str | None = None,
        lines: bool = False,
        columns: Sequence[str] = (),
        retranslate: bool = False,
        encoding: str = "utf-8",
        output_encoding: str = "utf-8",
        force: bool = False,
        resume: bool = False,
        terms: str | PathLike[str] | None = None,
    ) -> Path:
        """Translate a file in its format, and return the path of the translation.

        `output` is a file or a directory; None puts `film.ru.srt` beside `film.en.srt` or `film.srt`. A file
        with another ending is converted to the format of that ending. The output appears whole or not at
        all. An existing one is a CadecError unless `force` is True. Work done before an interruption is kept
        in a journal beside the output, from which `resume` continues.

        `format` overrides the ending of the input; with `lines`, every line of it is one sentence. Tables
        need `columns`, by name or number; with `retranslate`, what a catalogue has a translation of is
        translated again. `terms` is a file for the names that were found, which can be used as a glossary; it
        needs the option `names`.
        """
        given = Path(path)
        table = None
        if terms is not None:
            if not self.options.finds_names:
                raise CadecError("no names are looked for", 'load(options={"names": True}) does')
            check_outputs([Path(terms)], inputs=[given], force=force or resume)
            table = names_output(Path(terms), [given.name])
        escaped = str(given.parent if output is None else output).replace("{", "{{").replace("}", "}}")
        if output is None:
            escaped = str(Path(escaped) / "{stem}.{to}{ext}")
        before = self._context(after)
        work = self._job.translation_of(
            [given],
            InputOptions(encoding, lines, format, columns=tuple(columns), retranslate=retranslate),
            OutputRequest(escaped, output_encoding, force=force, resume=resume),
            side_output=table,
            before=before,
        )
        assert isinstance(work, FileTranslation) and work.plan is not None, "it goes to a file"
        work.to_files(json_lines=False, resume=resume)
        return work.plan.paths[0]

    def _context(self, after: str | Sequence[str]) -> Context:
        sentences = _sentences(after, self.target_language)
        return context_of(self._job.models, self.options, sentences) if sentences else Context()

    def __repr__(self) -> str:
        options = self.options
        return (
            f"Translator({self._job.bundle.name!r}, {self.source_language}→{self.target_language}, "
            f"search={options.search!r})"
        )


class Session:
    """A document that grows, sentence by sentence. Corrections become context for later sentences.

    Sentences are counted from 0, and negative indices count from the end; the default is the newest
    sentence.
    """

    def __init__(
        self,
        translator: Translator | str | PathLike[str] | None = None,
        *,
        after: str | Sequence[str] = (),
    ) -> None:
        """Begin a session with a translator, or with a bundle as `load` takes it.

        `after` is the text before the first sentence, in the target language.
        """
        if not isinstance(translator, Translator):
            translator = load(translator)
        job = translator._job
        self._session = sessions.Session(
            job.models,
            job.options,
            direction=sessions.Direction(job.languages.source or "", job.languages.target),
            after=_sentences(after, translator.target_language),
        )
        self._translator = translator

    def translate(self, sentences: str | Sequence[str]) -> list[Translation]:
        """Translate the next sentences, and add them to the document. A string is split into sentences."""
        if isinstance(sentences, str):
            sentences = self._session.sentences(sentences)
        first = len(self)
        for _ in self._session.translate(sentences):
            pass
        return self.sentences[first:]

    @property
    def sentences(self) -> list[Translation]:
        """The sentences of the current document, with their translations as they are now."""
        return [self._translation(index) for index in range(len(self))]

    @property
    def text(self) -> str:
        """The translation of the current document, one sentence per line."""
        return "\n".join(entry.text for entry in self._session.current)

    @property
    def names(self) -> list[NameUse]:
        """The names that came up, what they are called, how often, and which sentences differ.

        It is empty without the option `names`. Picked and edited translations decide what a name is called.
        """
        return self._session.name_uses()

    def alternatives(self, sentence: int = -1) -> tuple[Alternative, ...]:
        """Return the hypotheses that a translation was chosen from, best first; see `pick`."""
        return self._translation(self._index(sentence)).alternatives

    def pick(self, alternative: int, sentence: int = -1) -> Translation:
        """Replace a translation by one of its alternatives, given as an index of `alternatives`."""
        index = self._index(sentence)
        count = len(self._translation(index).alternatives)
        if not 0 <= alternative < count:
            raise IndexError(f"there is no alternative {alternative}: the sentence has {count}")
        self._session.pick(alternative + 1, index + 1)
        return self._translation(index)

    def edit(self, text: str, sentence: int = -1) -> Translation:
        """Replace a translation by a text of your own; an empty text is a CadecError."""
        index = self._index(sentence)
        self._session.edit(text, index + 1)
        return self._translation(index)

    def redo(self, sentence: int | None = None) -> list[Translation]:
        """Choose the translations after a sentence again, or all of them, in the context as it is now.

        Picked and edited translations stay. Returns the translations that changed.
        """
        first = 0 if sentence is None else self._index(sentence) + 1
        return [self._translation(change.number - 1) for change in self._session.redo(first)]

    def undo(self) -> None:
        """Remove the newest sentence; in an empty document, return to the document before it."""
        self._session.undo()

    def new_document(self) -> None:
        """Begin another document: the sentences so far are no longer context."""
        self._session.new()

    def _index(self, sentence: int) -> int:
        count = len(self)
        if not -count <= sentence < count:
            raise IndexError(f"there is no sentence {sentence}: the document has {count}")
        return sentence % count

    def _translation(self, index: int) -> Translation:
        session = self._session
        entry = session.current[index]
        return Translation(
            len(session.documents) - 1,
            index,
            entry.source,
            entry.text,
            parts=entry.parts,
            translator=self._translator._core,
            judge=session.judge,
            edited=entry.edited is not None,
        )

    def __len__(self) -> int:
        return len(self._session.current)

    def __repr__(self) -> str:
        count = len(self)
        return f"Session({self._translator!r}, {count} sentence{'' if count == 1 else 's'})"


def _sentences(text: str | Sequence[str], language: str) -> list[str]:
    return split_sentences(text, language) if isinstance(text, str) else list(text)


def _shorten(text: str, most: int = 40) -> str:
    return repr(text if len(text) <= most else f"{text[: most - 1]}…")
