"""What context costs on somebody's own text: a bundle's defaults against its sentence level."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import Models
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.benchmark.figures import MeasuredShare, SpeedRatio
from cadec_cli.evaluation.benchmark.limit import Rates, count_products
from cadec_cli.evaluation.benchmark.turns import Clock, take_turns
from cadec_cli.method.options import TranslationOptions

# Of the sentence level's speed, what we want to keep.
WANTED = 0.35
ROUNDS = 3


def translating_text(
    models: Models, options: TranslationOptions, documents: Sequence[Sequence[str]], language: str
) -> SpeedRatio:
    """Translate documents with the options, in turns with `--search sentence`."""
    sentences = sum(map(len, documents))
    if not sentences:
        raise CadecError("there is nothing to translate in this text")
    if models.language is None or not options.weighted_objective.uses_lm:
        raise CadecError(
            "this bundle translates at the sentence level: there is nothing to compare that with",
            "measure a bundle with a D-LM",
        )
    in_context = Translator(models, options, language=language)
    alone = Translator(models, replace(options, search="sentence"), language=language)
    with count_products() as products:
        list(in_context.translate_documents(documents))
    list(alone.translate_documents(documents))
    rates = Rates([products])
    whole, lists, scores = Clock(), Clock(), Clock()

    def translate() -> object:
        with (
            whole.running(),
            time_method(models.translation, "nbest", lists),
            time_method(models.language, "score", scores),
        ):
            return list(in_context.translate_documents(documents))

    jobs: dict[str, Callable[[], object]] = {
        "sentence": lambda: list(alone.translate_documents(documents)),
        options.search: translate,
        "rates": rates.measure,
    }
    seconds = take_turns(jobs, ROUNDS, warm=True)
    speed = {name: sentences / taken for name, taken in seconds.items()}
    spent = {"n-best": lists.seconds / whole.seconds, "D-LM": scores.seconds / whole.seconds}
    return SpeedRatio(
        f"{options.search}, {sentences} sentence{'s' * (sentences != 1)} / --search sentence",
        f"{speed[options.search]:.1f} / {speed['sentence']:.1f} sentences/s",
        speed[options.search] / speed["sentence"],
        WANTED,
        reached=MeasuredShare(seconds[options.search], rates.limit(products, lists.seconds / ROUNDS)),
        spent={**spent, "rest": 1 - sum(spent.values())},
    )


@contextmanager
def time_method(owner: object, method: str, clock: Clock) -> Iterator[None]:
    """Meanwhile, let a clock run whenever a method of this one object is called."""
    inner = getattr(owner, method)

    def timed_call(*args: Any, **kwargs: Any) -> Any:
        with clock.running():
            return inner(*args, **kwargs)

    setattr(owner, method, timed_call)
    try:
        yield
    finally:
        delattr(owner, method)  # the class still has it
