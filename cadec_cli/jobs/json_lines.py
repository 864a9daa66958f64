"""N-best lists and translations as lines of text: what `--json` writes, and what `cadec rerank` reads.

JSON lines, one sentence per line, a blank line (or another "document") between documents:

    {"source": "You know.", "hypotheses": [{"text": "Ты знаешь.", "log_prob": -2.31}, …]}

A term that was not computed is absent, and so is the confidence of a sentence that was only copied.
The format of Moses and Marian is read too, one hypothesis per line, sentences numbered from 0:

    0 ||| Ты знаешь . ||| F0= -2.31 ||| -0.46
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cadec_cli.decoding.confidence import Confidence, Judge
from cadec_cli.decoding.glossary.outcomes import name_outcomes, term_outcomes
from cadec_cli.decoding.manner.outcomes import manner_outcomes
from cadec_cli.decoding.translation import TranslatedPart, Translation
from cadec_cli.errors import CadecError
from cadec_cli.fs.read import MAX_INPUT_BYTES, parse_json, read_lines
from cadec_cli.jobs.cue_checks import cue_record
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.text.formats.layout import MAX_ROOM, one_line
from cadec_cli.text.formats.subtitles.limits import CueProblem
from cadec_cli.text.tokenizers.line_text import whole_characters
from cadec_cli.validation import quote_value


def json_records(translation: Translation, judge: Judge | None = None) -> list[dict[str, Any]]:
    """One object per part: one, unless the sentence was too long for the model and was split."""
    judge = judge or Judge()
    return [
        {
            "document": translation.document,
            "sentence": translation.sentence,
            "source": part.source,
            "translation": part.text,
            **{side: text for side in ("before", "after") if (text := getattr(part.nbest, side))},
            **({"room": part.nbest.room} if part.nbest.room is not None else {}),
            **confidence_record(judge.of_parts(part.source, [part]), judge),
            **_terms(part),
            **_manner(part),
            **_choice(part),
        }
        for part in translation.parts
    ]


def text_record(translation: Translation, judge: Judge) -> dict[str, Any]:
    """The text of a translation and its confidence, without its hypotheses."""
    return {"text": translation.text, **confidence_record(judge.of(translation), judge)}


def journal_record(
    translation: Translation,
    judge: Judge,
    *,
    json_lines: bool,
    beside: Callable[[Translation], Any] | None = None,
) -> Any:
    """The journal's record of a sentence; with `beside`, a pair of that and what `beside` returns."""
    written: Any = (json_records if json_lines else text_record)(translation, judge)
    return written if beside is None else [written, beside(translation)]


def confidence_record(found: Confidence | None, judge: Judge) -> dict[str, Any]:
    """A confidence, with its reasons if it is low enough for a flag; {} if there is none."""
    if found is None:
        return {}
    flags = {"flags": list(found.reasons)} if judge.is_flagged(found) else {}
    return {"confidence": round(found.value, 3), **flags}


def json_bytes(translations: Iterable[Translation], judge: Judge) -> Iterator[bytes]:
    """Translations as JSON lines."""
    for translation in translations:
        for record in json_records(translation, judge):
            yield json_line(record)


def with_cues(records: Sequence[dict[str, Any]], found: Sequence[CueProblem]) -> list[dict[str, Any]]:
    """The objects of a sentence, the first of them with the problems of its cues, if there are any."""
    if not found:
        return list(records)
    first, *others = records
    return [{**first, "cues": list(map(cue_record, found))}, *others]


def json_line(record: dict[str, Any]) -> bytes:
    """An object as a line; lone surrogates, which UTF-8 can't encode, are escaped."""
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def _terms(part: TranslatedPart) -> dict[str, Any]:
    """What became of the terms of a glossary and of names that were found; {} if the source has none."""
    of_all = {"terms": term_outcomes([part]), "names": name_outcomes([part])}
    return {key: [one.to_dict() for one in outcomes] for key, outcomes in of_all.items() if outcomes}


def _manner(part: TranslatedPart) -> dict[str, Any]:
    """What became of the form of address and the gender that were asked for; {} if nothing shows them."""
    outcomes = [one.to_dict() for one in manner_outcomes([part])]
    return {"manner": outcomes} if outcomes else {}


def _choice(part: TranslatedPart) -> dict[str, Any]:
    choice = part.choice
    if choice is None:
        return {}
    terms = {**choice.terms, **({"pmi": choice.pmi} if choice.pmi is not None else {})}
    return {
        "chosen": choice.index,
        "hypotheses": [
            {
                "text": hypothesis.text,
                "log_prob": hypothesis.log_prob,
                "score": choice.scores[index],
                **{name: values[index] for name, values in terms.items()},
            }
            for index, hypothesis in enumerate(part.hypotheses)
        ],
    }


def read_documents(path: Path, *, feature: str = "", most: int = MAX_INPUT_BYTES) -> list[list[NBest]]:
    """The n-best lists of a file, grouped by document; see `read_nbest`."""
    documents: list[list[NBest]] = [[]]
    for nbest in read_nbest(path, feature=feature, most=most):
        if nbest is None:
            documents.append([])
        else:
            documents[-1].append(nbest)
    return [document for document in documents if document]


def read_nbest(path: Path, *, feature: str = "", most: int = MAX_INPUT_BYTES) -> Iterator[NBest | None]:
    """Yield the n-best lists of a file; None is a document boundary. Hypotheses have no ids.

    The score of a `|||` line is its last field, or the named feature (Marian's F0 is the sum of log p).
    A file of more than `most` bytes is refused.
    """
    lines = read_lines(path, most=most)
    first = next((line for line in lines if line.strip()), "")
    if not first:
        raise CadecError(f"{path} has no n-best lists")
    with_first = _again(first, lines)
    if "|||" in first and not first.lstrip().startswith("{"):
        yield from _moses(path, with_first, feature)
    else:
        yield from _json_lines(path, with_first)


def _again(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _json_lines(path: Path, lines: Iterator[str]) -> Iterator[NBest | None]:
    document: object = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            yield None
            continue
        try:
            record: Any = parse_json(line)
            hypotheses = [(_text(item["text"]), float(item["log_prob"])) for item in _hypotheses(record)]
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            raise CadecError(
                f"{path}: entry {number} is not an n-best list",
                'one object per line: {"source": …, "hypotheses": [{"text": …, "log_prob": …}, …]}',
            ) from None
        if number > 1 and record.get("document") != document:
            yield None
        document = record.get("document")
        nbest = _nbest(f"{path}: entry {number}", _sentence(str(record.get("source", ""))), hypotheses)
        # the untranslated text around the hypotheses, as `translate --json` writes it
        yield replace(
            nbest,
            before=_sentence(str(record.get("before", ""))),
            after=_sentence(str(record.get("after", ""))),
            room=_room(f"{path}: entry {number}", record.get("room")),
        )


def _room(where: str, value: Any) -> int | None:
    """The room that subtitles have for a sentence, in characters."""
    if value is not None and (type(value) is not int or not 0 <= value <= MAX_ROOM):
        raise CadecError(f"{where} has a room that is not a number of characters: {quote_value(value)}")
    return value


def _hypotheses(record: Any) -> Any:
    """A record's hypotheses; `translate --json` writes none if there was nothing to translate."""
    return record.get("hypotheses", []) if "translation" in record else record["hypotheses"]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a hypothesis is text")
    return _sentence(value)


def _sentence(text: str) -> str:
    """A text as one line, as outputs have one per sentence, without incomplete characters."""
    return one_line(whole_characters(text))


def _moses(path: Path, lines: Iterator[str], feature: str) -> Iterator[NBest | None]:
    current = ""
    hypotheses: list[tuple[str, float]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        fields = [part.strip() for part in line.split("|||")]
        if len(fields) < 3:
            raise CadecError(f"{path}: line {number} is not «number ||| text ||| features ||| score»")
        if hypotheses and fields[0] != current:
            yield _nbest(f"{path}: sentence {current}", "", hypotheses)
            hypotheses = []
        current = fields[0]
        hypotheses.append((_sentence(fields[1]), _score(f"{path}: line {number}", fields, feature)))
    if hypotheses:
        yield _nbest(f"{path}: sentence {current}", "", hypotheses)


def _score(where: str, fields: list[str], feature: str) -> float:
    words = fields[2].split() if feature else [fields[-1]]
    if feature:
        names = [word.rstrip("=") for word in words]
        words = words[names.index(feature) + 1 :] if feature in names else []
    try:
        return float(words[0])
    except (IndexError, ValueError):
        raise CadecError(f"{where} has no score" + (f" {feature}" if feature else "")) from None


def _nbest(where: str, source: str, hypotheses: list[tuple[str, float]]) -> NBest:
    """Sort hypotheses, best first, and keep the best of those with equal texts."""
    if any(not math.isfinite(score) for _, score in hypotheses):
        raise CadecError(f"{where} has a score that is not a number")
    found: dict[str, Hypothesis] = {}
    for text, score in sorted(hypotheses, key=lambda item: -item[1]):
        if text not in found:
            found[text] = Hypothesis(text, score)
    return NBest(source, tuple(found.values()))
