"""A translation model whose n-best lists keep spans, which must not be changed. Works with any model.

First a sentence is translated as it is, and every hypothesis is checked. If the good ones have lost a span,
the sentence is translated with stand-ins for spans: placeholders, if the model was trained to copy them, else
numbers, which models copy best. In the hypotheses that have all stand-ins, the spans are put back. If that
fails too, the texts between the spans are translated one by one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cadec_cli.decoding.protection.clauses import clauses_of, join_clauses, keep_clauses, with_marks
from cadec_cli.decoding.protection.defects import with_defects
from cadec_cli.engines.protocols import CopiesPieces, TranslationModel
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.text.protected.core import Core
from cadec_cli.text.protected.spans import PLACEHOLDERS, Span, find_spans, has_words, lost_spans

# How much less likely, in nats, a hypothesis that keeps everything may be before stand-ins are tried.
_MARGIN = 3.0
_BEAM = 4  # for clauses

# Numbers that stand in for spans; those for years look like years.
_YEARS = ("1984", "1976", "1968", "1957", "1945", "1939", "1927", "1913")
_NUMBERS = ("512", "417", "936", "845", "623", "738", "254", "189", "361", "472", "583", "694")
# Symbols of programs, tables and drawings, with the punctuation around them.
_SIGNS = re.compile(r"[\s\d]*[<>{}\[\]|\\=;*/+^~@#_$&%§][^\w\n]*")
_TIMES = ("12:30", "11:45", "10:15", "14:20", "16:40", "13:50", "15:10", "17:25")


@dataclass(frozen=True)
class _MaskedSentence:
    """A sentence with stand-ins for some of its spans."""

    text: str
    spans: dict[str, Span]  # by their stand-ins
    kept: tuple[Span, ...]  # those without stand-ins

    def restore(self, hypothesis: Hypothesis) -> Hypothesis | None:
        """Put the spans back into a hypothesis; None unless it has every stand-in exactly once."""
        text = hypothesis.text
        for stand_in in self.spans:
            if len(_whole(stand_in).findall(text)) != 1:
                return None
        if lost_spans(list(self.kept), text):
            return None
        parts = re.split("|".join(_whole(stand_in).pattern for stand_in in self.spans), text)
        found = re.findall("|".join(_whole(stand_in).pattern for stand_in in self.spans), text)
        written = parts[0]
        for stand_in, rest in zip(found, parts[1:], strict=True):
            written += self.spans[stand_in].required_text + rest
        return Hypothesis(written, hypothesis.log_prob)


@dataclass(frozen=True)
class ProtectedModel:
    """A translation model that keeps spans; the language is the one that it reads.

    `placeholders` are pieces that the model was trained to copy; without them numbers stand in for spans.
    """

    model: TranslationModel
    language: str = ""
    placeholders: tuple[str, ...] = ()

    def nbest(self, cores: Sequence[Core], count: int) -> list[NBest]:
        """Return at most `count` translations of every core, with its spans wherever possible.

        Their defects are counted. Sound translations come first, the likeliest of them first.
        """
        short = [core.text if self.model.fits(core.text) else "" for core in cores]
        lists = [
            replace(nbest, source=core.text)
            for nbest, core in zip(self.model.nbest(short, count), cores, strict=True)
        ]
        waiting = [
            number
            for number, (nbest, core) in enumerate(zip(lists, cores, strict=True))
            if core.spans and not (_keeps(nbest, core.spans) and self.model.fits(nbest.source))
        ]
        for kind in ("placeholders", "lost", "all"):
            if not waiting or (kind == "placeholders" and not self.placeholders):
                continue
            masked = {number: self._mask(kind, lists[number], cores[number].spans) for number in waiting}
            tried = {
                number: one for number, one in masked.items() if one is not None and self.model.fits(one.text)
            }
            found = self.model.nbest([one.text for one in tried.values()], count)
            for (number, one), nbest in zip(tried.items(), found, strict=True):
                restored = _distinct(one.restore(hypothesis) for hypothesis in nbest.hypotheses)
                if restored:
                    lists[number] = NBest(cores[number].text, restored)
                    waiting.remove(number)
        for number in waiting:
            lists[number] = self._in_pieces(cores[number].text, cores[number].spans, lists[number])
        return [
            _sound_first(self._sound(core, with_defects(core, self._with_clauses(core, nbest)), count))
            for core, nbest in zip(cores, lists, strict=True)
        ]

    def _with_clauses(self, core: Core, nbest: NBest) -> NBest:
        """Leave out hypotheses that have lost a clause, and mark quotations that have lost their marks.

        All stay if what would replace them has lost a span.
        """
        kept = keep_clauses(core, nbest, self.language, self._best)
        whole = kept is nbest or not lost_spans(list(core.spans), kept.hypotheses[0].text)
        return with_marks(core, kept if whole else nbest)

    def _best(self, texts: Sequence[str]) -> list[Hypothesis | None]:
        """Return the best translation of each text; None where the model can't read it."""
        if not all(map(self.model.fits, texts)):
            return [None for _ in texts]
        return [next(iter(nbest.hypotheses), None) for nbest in self.model.nbest(texts, _BEAM)]

    def _sound(self, core: Core, nbest: NBest, count: int) -> NBest:
        """Replace a list of defective hypotheses by a sound one, if there is a way to get one.

        Tries the sentence without accents, its clauses, and then the words between symbols one by one.
        """
        if not nbest.hypotheses or not all(one.defects for one in nbest.hypotheses):
            return nbest
        simple = _without_accents(core.text)
        if simple != core.text:
            without = replace(core, text=simple, spans=tuple(find_spans(simple, self.language)))
            other = with_defects(core, replace(self.nbest([without], count)[0], source=core.text))
            if any(not one.defects for one in other.hypotheses):
                return other
        if clauses := clauses_of(core.text, self.language):
            joined = join_clauses(core.text, clauses, self._best([clause.asked for clause in clauses]))
            if joined is not None:
                whole = with_defects(core, NBest(core.text, (joined,)))
                if not whole.hypotheses[0].defects:
                    return whole
        taken = {place for span in core.spans for place in range(span.start, span.end)}
        symbols = [
            Span(match.start(), match.end(), match[0], "sign")
            for match in _SIGNS.finditer(core.text)
            if taken.isdisjoint(range(*match.span()))
        ]
        if not symbols:
            return nbest
        every = sorted([*core.spans, *symbols], key=lambda span: span.start)
        pieced = self._in_pieces(core.text, every, nbest)
        if pieced is nbest:
            return nbest
        pieced = with_defects(core, pieced)
        return nbest if any(one.defects for one in pieced.hypotheses) else pieced

    def _mask(self, kind: str, nbest: NBest, spans: Sequence[Span]) -> _MaskedSentence | None:
        """Put stand-ins into a sentence: for all spans, or for those that its best hypothesis has lost."""
        missing = lost_spans(list(spans), nbest.hypotheses[0].text) if nbest.hypotheses else []
        chosen = [span for span in spans if kind == "all" or span.required_text in missing] or list(spans)
        text = ""
        done = 0
        stand_ins: dict[str, Span] = {}
        for span in chosen:
            stand_in = self._stand_in(kind, span, {*stand_ins, *re.findall(r"\d+", nbest.source)})
            if stand_in is None:
                return None
            stand_ins[stand_in] = span
            text += nbest.source[done : span.start] + stand_in + _ending(span)
            done = span.end
        text += nbest.source[done:]
        return _MaskedSentence(text, stand_ins, tuple(span for span in spans if span not in chosen))

    def _stand_in(self, kind: str, span: Span, taken: set[str]) -> str | None:
        if kind == "placeholders":
            choices: Sequence[str] = self.placeholders
        elif kind == "lost":
            choices = _YEARS if re.fullmatch(r"\d{4}", span.text) else _NUMBERS
        else:
            choices = _TIMES
        return next((one for one in choices if one not in taken), None)

    def _in_pieces(self, sentence: str, spans: Sequence[Span], before: NBest) -> NBest:
        """Translate the texts between the spans one by one; return `before` if that fails."""
        pieces = []
        done = 0
        for span in spans:
            pieces.append(sentence[done : span.start])
            done = span.end
        pieces.append(sentence[done:])
        bare = {piece: _bare(piece) for piece in pieces if has_words(piece, [])}
        asked = [piece[start:end] for piece, (start, end) in bare.items()]
        if not all(map(self.model.fits, asked)):
            return before
        found = dict(zip(bare, self.model.nbest(asked, 1), strict=True))
        text = ""
        log_prob = 0.0
        for piece, kept in zip(pieces, [*(span.text for span in spans), ""], strict=True):
            nbest = found.get(piece)
            if nbest is not None and nbest.hypotheses:
                text += _fit_piece(piece, bare[piece], nbest.hypotheses[0].text, at_start=not text)
                log_prob += nbest.hypotheses[0].log_prob
            else:
                text += piece
            text += kept
        if lost_spans(list(spans), text):
            return before
        return NBest(sentence, (Hypothesis(" ".join(text.split()), log_prob),))

    def fits(self, sentence: str, target: str = "") -> bool:
        """Tell whether the model can read a sentence, with stand-ins for its spans if necessary."""
        if self.model.fits(sentence, target):
            return True
        masked = self._mask("lost", NBest(sentence, ()), find_spans(sentence, self.language))
        return masked is not None and bool(masked.spans) and self.model.fits(masked.text, target)


def protect(model: TranslationModel, language: str) -> ProtectedModel:
    """Protect a model; placeholders are used if both of its vocabularies have them."""
    learnt = isinstance(model, CopiesPieces) and model.copies(PLACEHOLDERS)
    return ProtectedModel(model, language, PLACEHOLDERS if learnt else ())


def _sound_first(nbest: NBest) -> NBest:
    """Put sound hypotheses first: the first of a list is what the S-NMT alone would say."""
    if not any(one.defects for one in nbest.hypotheses):
        return nbest
    return replace(nbest, hypotheses=tuple(sorted(nbest.hypotheses, key=lambda one: bool(one.defects))))


def _without_accents(text: str) -> str:
    """Return a text without accents on Latin letters, which some vocabularies lack."""
    return "".join(
        unicodedata.normalize("NFKD", one)[0] if "\u00c0" <= one < "\u0250" else one for one in text
    )


def _keeps(nbest: NBest, spans: Sequence[Span]) -> bool:
    """Tell whether a hypothesis about as likely as the best has all spans."""
    best = nbest.hypotheses[0].log_prob if nbest.hypotheses else 0.0
    return not nbest.hypotheses or any(
        not lost_spans(list(spans), one.text) for one in nbest.hypotheses if one.log_prob >= best - _MARGIN
    )


def _distinct(hypotheses: Iterable[Hypothesis | None]) -> tuple[Hypothesis, ...]:
    found: dict[str, Hypothesis] = {}
    for one in hypotheses:
        if one is not None:
            found.setdefault(one.text, one)
    return tuple(found.values())


def _ending(span: Span) -> str:
    """Return the ending of a stand-in: ordinals and decades keep theirs."""
    if span.kind != "ordinal":
        return ""
    return "s" if span.text.endswith("s") else "th"


def _whole(stand_in: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\d:]){re.escape(stand_in)}(?![\d:])")


def _bare(piece: str) -> tuple[int, int]:
    """Return where the words of a piece begin and end."""
    words = list(re.finditer(r"\w", piece))
    return words[0].start(), words[-1].end()


def _fit_piece(piece: str, place: tuple[int, int], translation: str, *, at_start: bool) -> str:
    """Fit a piece's translation into the sentence: no capital and no full stop that the piece lacks."""
    start, end = place
    translation = translation.strip(".!?…,;: ")
    if piece[start].islower() and not at_start:
        translation = translation[:1].lower() + translation[1:]
    return piece[:start] + translation + piece[end:]
