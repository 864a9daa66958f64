"""Translations as plain data, one object per sentence: JSON lines, and the records of journals.

`cadec rerank` reads the same lines. A term that was not computed is absent, and so is the confidence of a
sentence that was only copied.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cadec_cli.decoding.confidence import Confidence, Judge
from cadec_cli.decoding.translation import TranslatedPart, Translation


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
            **confidence_record(judge.of_parts(part.source, [part]), judge),
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
    """What a journal keeps of a sentence until its file is written; with `beside`, a pair with its result."""
    written: Any = (json_records if json_lines else text_record)(translation, judge)
    return written if beside is None else [written, beside(translation)]


def confidence_record(found: Confidence | None, judge: Judge) -> dict[str, Any]:
    """A confidence, and its reasons if it is low enough for a flag; {} where there is none."""
    if found is None:
        return {}
    flags = {"flags": list(found.reasons)} if judge.is_flagged(found) else {}
    return {"confidence": round(found.value, 3), **flags}


def json_bytes(translations: Iterable[Translation], judge: Judge) -> Iterator[bytes]:
    """Translations as JSON lines."""
    for translation in translations:
        for record in json_records(translation, judge):
            yield json_line(record)


def json_line(record: dict[str, Any]) -> bytes:
    """An object as a line; a lone surrogate, which UTF-8 can't encode, as an escape."""
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


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
