"""A session: documents that grow sentence by sentence, with what was chosen, picked and corrected.

What a person decides becomes context: a sentence is always translated after the target sentences as they
stand. Knows nothing of terminals, commands and files.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from cadec_cli.bundle.loading import Models
from cadec_cli.bundle.opening import Bundle
from cadec_cli.decoding.candidates import lm_encoder
from cadec_cli.decoding.search.lattice import Path, TokenScores
from cadec_cli.decoding.snapshot import DocumentState, Snapshot
from cadec_cli.decoding.translations import Chosen
from cadec_cli.decoding.translator import Translator
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context, Ids
from cadec_cli.method.hypotheses import GivenLists, Hypothesis, NBest
from cadec_cli.method.options import TranslationOptions
from cadec_cli.text.sentences import split_sentences


@dataclass(frozen=True)
class Entry:
    """A sentence of a document and its translation as it stands.

    `parts` is what the models said, one but for over-long sentences, none where only the text is known.
    `units` is the translation as context, and `window` how many sentences the D-LM saw before its last part.
    """

    source: str
    parts: tuple[Chosen, ...]
    units: tuple[Ids, ...]
    window: int
    options: TranslationOptions
    edited: str | None = None

    @property
    def text(self) -> str:
        """The translation: a person's own words go before the models'."""
        return self.edited if self.edited is not None else " ".join(part.text for part in self.parts)

    @cached_property
    def json(self) -> str:
        """The entry as JSON, made once: a session is saved at every change, and may be long."""
        data = {
            "source": self.source,
            "target": self.text,
            "edited": self.edited is not None,
            "units": self.units,
            "window": self.window,
            "options": dataclasses.asdict(self.options),
            "parts": DocumentState(beam=[], parts=list(self.parts)).to_json()["parts"],
        }
        return json.dumps(data, ensure_ascii=False)


@dataclass(frozen=True)
class ExplainedRow:
    """A translation with its log p(ỹ|x), unknown for a person's, and (conditional, free) log p a token."""

    name: str
    log_prob: float | None
    pieces: tuple[str, ...]
    scores: TokenScores

    @property
    def pmi(self) -> float:
        """PMI of the whole sentence with the context."""
        return sum(conditional - free for conditional, free in self.scores)


@dataclass(frozen=True)
class Explanation:
    """Why a translation was chosen: the context, and the tokens of the chosen and the sentence level's."""

    context: tuple[str, ...]
    rows: tuple[ExplainedRow, ...]


class Session:
    """A bundle at work on documents; the last one is the current."""

    def __init__(
        self,
        bundle: Bundle,
        options: TranslationOptions,
        *,
        device: str = "auto",
        compute_type: str = "int8",
        threads: int = 0,
        documents: Sequence[Sequence[Entry]] = (),
    ) -> None:
        if not bundle.has_translation:
            raise CadecError(f"{bundle.directory} has no S-NMT and can't translate")
        self.bundle = bundle
        self.options = options
        self.documents = [list(document) for document in documents] or [[]]
        self._models = Models(bundle, device=device, compute_type=compute_type, threads=threads)
        self._translator = Translator.load(self._models, options)
        self._lm_ids = lm_encoder(bundle.target, bundle.lm_pipeline if bundle.has_lm else bundle.target)
        self._sentence_level: Translator | None = None  # made when the beam is compared with it

    @property
    def current(self) -> list[Entry]:
        """The sentences of the current document."""
        return self.documents[-1]

    @property
    def last(self) -> Entry:
        """The newest sentence of the current document."""
        if not self.current:
            raise CadecError("there is no sentence yet in this document")
        return self.current[-1]

    @property
    def in_use(self) -> Context:
        """What the D-LM will read before the next sentence."""
        if self.options.search == "sentence" or not self.bundle.has_lm:
            return Context()
        return self._seen(_context(self.current, self.options), [(0,)], self.options)

    def configure(self, options: TranslationOptions) -> None:
        """Translate with other options from now on; those that can't be used change nothing."""
        if options != self.options:
            self._translator = Translator.load(self._models, options)
            self.options = options
            self._sentence_level = None

    def sentences(self, line: str) -> list[str]:
        """The sentences of a line; what no encoding can write is replaced."""
        clean = line.encode("utf-8", "replace").decode("utf-8")
        return split_sentences(clean, self.bundle.source_language or "")

    def translate(self, sentences: Sequence[str]) -> Iterator[Entry]:
        """Go on with the current document; each sentence is part of it when it is yielded."""
        current = self.current
        start = Snapshot.at_start(1)
        start.documents[0].beam = [Path(context=_context(current, self.options))]
        for translation in self._translator.translate_documents([sentences], start=start):
            entry = self._entry(translation.source, translation.parts, current, self.options)
            current.append(entry)
            yield entry

    def pick(self, rank: int) -> Entry:
        """Take another hypothesis of the newest sentence: the first is the one with the best score.

        Of an over-long sentence the last part is meant.
        """
        entry = self.last
        part = ranked_part(entry)
        order = ranked(part)
        if not 1 <= rank <= len(order):
            raise CadecError(
                f"there is no hypothesis {rank}", f"there are 1 to {len(order)}; /nbest shows them"
            )
        assert part.choice is not None
        # The tokens' scores were those of another hypothesis; `explain` computes them anew.
        choice = dataclasses.replace(part.choice, index=order[rank - 1], chosen_tokens=())
        parts = (*entry.parts[:-1], dataclasses.replace(part, choice=choice))
        self.current[-1] = self._entry(entry.source, parts, self.current[:-1], entry.options)
        return self.current[-1]

    def edit(self, text: str) -> Entry:
        """Put a person's own words in the place of the newest translation."""
        entry = self.last
        text = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
        ids = tuple(self.bundle.lm_pipeline.encode(text))
        if not ids:
            raise CadecError("a translation can't be empty", "/undo removes the sentence")
        before = _context(self.current[:-1], entry.options)
        window = len(self._seen(before, [ids], entry.options).sentences)
        self.current[-1] = dataclasses.replace(entry, edited=text, units=(ids,), window=window)
        return self.current[-1]

    def undo(self) -> Entry | None:
        """Remove the newest sentence; from an empty document, go back to the one before."""
        if self.current:
            return self.current.pop()
        if len(self.documents) == 1:
            raise CadecError("there is nothing to undo")
        self.documents.pop()
        return None

    def new(self) -> None:
        """Begin a new document, unless the current one is still empty."""
        if self.current:
            self.documents.append([])

    def sentence_level(self, entry: Entry) -> tuple[Hypothesis | None, ...]:
        """What the S-NMT alone says of each part; nothing where there is nothing to translate."""
        if entry.options.search != "beam":
            return tuple(part.hypotheses[0] if part.hypotheses else None for part in entry.parts)
        if self._sentence_level is None:  # the beam's hypotheses are in context, all of them
            alone = dataclasses.replace(self.options, search="sentence")
            self._sentence_level = Translator.load(self._models, alone)
        found = []
        for part in entry.parts:
            (translation,) = self._sentence_level.translate([part.source])
            first = translation.parts[0].hypotheses
            found.append(first[0] if first else None)
        return tuple(found)

    def explain(self) -> Explanation:
        """Score the tokens of the newest translation and of the sentence level's, as the D-LM sees them.

        Of an over-long sentence that nobody edited, the last part.
        """
        entry = self.last
        if not self.bundle.has_lm:
            raise CadecError("this bundle has no document language model: context changes nothing")
        if not entry.units:
            raise CadecError("there was nothing to translate in this sentence")
        before = [ids for earlier in self.current[:-1] for ids in earlier.units] + [*entry.units[:-1]]
        window = Context(tuple(before)).last(entry.window)
        named = self._to_explain(entry)
        scores = self._token_scores([hypothesis for _, hypothesis in named], window, entry.options)
        pieces = self.bundle.lm_pipeline.subwords.pieces
        return Explanation(
            tuple(self.bundle.lm_pipeline.decode(ids) for ids in window.sentences),
            tuple(
                ExplainedRow(
                    name,
                    None if name == "edited" else hypothesis.log_prob,
                    tuple(pieces[index] for index in self._lm_ids(hypothesis)),
                    tokens,
                )
                for (name, hypothesis), tokens in zip(named, scores, strict=True)
            ),
        )

    def _to_explain(self, entry: Entry) -> list[tuple[str, Hypothesis]]:
        firsts = self.sentence_level(entry)
        if entry.edited is not None:
            ids = tuple(self.bundle.target.encode(entry.edited))
            found = [("edited", Hypothesis(entry.edited, ids, 0.0))]
            firsts = firsts if len(firsts) == 1 else ()  # an edit is of the whole, not of a part
        else:
            part = ranked_part(entry)
            assert part.choice is not None
            found = [("chosen", part.hypotheses[part.choice.index])]
        if firsts and firsts[-1] is not None and firsts[-1].text != found[0][1].text:
            found.append(("sentence level", firsts[-1]))
        return found

    def _token_scores(
        self, hypotheses: Sequence[Hypothesis], window: Context, options: TranslationOptions
    ) -> list[TokenScores]:
        """(conditional, free) log p of every token: each hypothesis is a list of one, after the window."""
        lists = GivenLists([NBest(hypothesis.text, (hypothesis,)) for hypothesis in hypotheses])
        scoring = Translator.load(
            self._models,
            TranslationOptions(
                search="rerank",
                context=len(window.sentences),
                temperature=options.temperature,
                alpha=options.alpha,
            ),
            lists,
        )
        start = Snapshot.at_start(len(hypotheses))
        for document in start.documents:
            document.beam = [Path(context=window)]
        places = [[str(number)] for number in range(len(hypotheses))]
        scored = sorted(scoring.translate_documents(places, start=start), key=lambda one: one.document)
        choices = [translation.parts[0].choice for translation in scored]
        return [choice.chosen_tokens for choice in choices if choice is not None]

    def _entry(
        self, source: str, parts: Sequence[Chosen], before: Sequence[Entry], options: TranslationOptions
    ) -> Entry:
        context = _context(before, options)
        units: list[Ids] = []
        window = 0
        for part in parts:
            if part.choice is None:
                continue
            candidates = [self._lm_ids(hypothesis) for hypothesis in part.hypotheses]
            seen = self._seen(context, candidates, options)
            window = len(seen.sentences)
            units.append(candidates[part.choice.index])
            context = (seen if options.rolls else context).followed_by(units[-1])
        return Entry(source, tuple(parts), tuple(units), window, options)

    def _seen(self, context: Context, candidates: Sequence[Ids], options: TranslationOptions) -> Context:
        """The part of a context that the D-LM reads before these candidates, as the search takes it."""
        if not self.bundle.has_lm:
            return Context()
        positions = self.bundle.lm_positions
        depth = min(max(map(len, candidates)), positions - 1)
        if options.rolls and len(context.tokens) + depth <= positions:
            return context
        return context.last(options.context).fitted(positions - depth)


def _context(entries: Sequence[Entry], options: TranslationOptions) -> Context:
    """The context after some entries: with --rolling since the window began, else all of it."""
    everything = Context(tuple(ids for entry in entries for ids in entry.units))
    if not options.rolls:
        return everything
    newest = next((entry for entry in reversed(entries) if entry.units), None)
    return everything.last(newest.window + 1 if newest is not None else 0)


def ranked_part(entry: Entry) -> Chosen:
    """The part of a sentence whose hypotheses can be ranked and picked: the last."""
    if not entry.parts:
        raise CadecError("only the text of this translation is known, not its hypotheses")
    if entry.parts[-1].choice is None:
        raise CadecError("there was nothing to translate in this sentence")
    return entry.parts[-1]


def ranked(part: Chosen) -> list[int]:
    """Hypotheses by their score in context, the best first; equal ones in the S-NMT's order."""
    scores = part.choice.scores if part.choice is not None else ()
    return sorted(range(len(scores)), key=lambda index: -scores[index])
