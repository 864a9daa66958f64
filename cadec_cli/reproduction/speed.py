"""Sentences a second of every system: the same sentences, models loaded and warm."""

from __future__ import annotations

import time

from cadec_cli.bundle.loading import default_options, load_models
from cadec_cli.bundle.opening import Bundle
from cadec_cli.decoding.translator import Translator
from cadec_cli.errors import CadecError
from cadec_cli.method.options import named_weights, with_flags
from cadec_cli.reproduction.document_files import read_documents
from cadec_cli.reproduction.places import ExperimentPaths
from cadec_cli.reproduction.systems import System
from cadec_cli.reproduction.tuned import tuned_flags
from cadec_cli.text.sentences import split_sentences
from cadec_cli.whole_files import write_json


def write_speed(places: ExperimentPaths, system: System) -> None:
    """Time a system on the beginning of the test text."""
    scale = places.scale
    models = load_models(
        Bundle.open(places.bundle(system.bundle)),
        compute_type=scale.compute_type,
        threads=scale.threads,
    )
    flags: dict[str, object] = {"search": system.search}
    if system.tuned:
        temperature, weight = tuned_flags(system, places.curve(system.tuned))[1::2]
        flags |= {
            "objective": system.objective,
            "temperature": float(temperature),
            "weight": named_weights(weight),
        }
    translator = Translator(models, with_flags(default_options(models.bundle), flags))
    documents = _documents(places, scale.sizes.get("speed", 64))
    list(translator.translate_documents([documents[0][:2]]))  # what has to be loaded is loaded
    began = time.perf_counter()
    count = sum(1 for _ in translator.translate_documents(documents))
    seconds = time.perf_counter() - began
    record = {"sentences": count, "seconds": round(seconds, 3), "per_second": round(count / seconds, 2)}
    write_json(places.result(f"speed-{system.name}.json"), record)


def _documents(places: ExperimentPaths, most: int) -> list[list[str]]:
    """The first so many sentences of the test text."""
    documents: list[list[str]] = []
    left = most
    for lines in read_documents(places.aligned_paths("test")[0]):
        sentences = [
            sentence
            for line in lines
            for sentence in (
                split_sentences(line, places.scale.source_language) if places.sentences_per_line else [line]
            )
        ]
        documents.append(sentences[:left])
        left -= len(documents[-1])
        if left <= 0:
            break
    if not documents:
        raise CadecError("the test text is empty")
    return documents
