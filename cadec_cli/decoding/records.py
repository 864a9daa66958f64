"""Translations as plain data, one object per sentence: what --json writes and `cadec rerank` reads.

A term that was not computed is absent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from cadec_cli.decoding.translations import TranslatedPart, Translation


def records(translation: Translation) -> list[dict[str, Any]]:
    """One object per part, that is one, unless the sentence was too long."""
    return [
        {
            "document": translation.document,
            "sentence": translation.sentence,
            "source": part.source,
            "translation": part.text,
            **{side: text for side in ("before", "after") if (text := getattr(part.nbest, side))},
            **_choice(part),
        }
        for part in translation.parts
    ]


def json_bytes(translations: Iterable[Translation]) -> Iterator[bytes]:
    """Translations as lines."""
    for translation in translations:
        for record in records(translation):
            yield json_line(record)


def json_line(record: dict[str, Any]) -> bytes:
    """An object as a line."""
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


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
