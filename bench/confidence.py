"""Fit the confidence of translations to chrF, and show how well it tells the good from the bad.

    python -m bench.confidence SOURCE REFERENCE [--bundle BUNDLE] [--plot PICTURE]

Both are texts, a segment per line, a blank line between documents. SOURCE may also be what `cadec translate
--lines --json` has made of it. Every other document is for fitting; all that is shown is of those in between.
Lines of several sentences and lines with markup are left aside, and shown for themselves.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from sacrebleu.metrics.chrf import CHRF

from cadec_cli.arrays import Floats
from cadec_cli.bundle.load import LoadedModels
from cadec_cli.decoding.confidence import (
    FLAG_BELOW,
    GOOD,
    INTERCEPT,
    WEIGHINGS,
    Signals,
    signals,
    weigh_signals,
)
from cadec_cli.decoding.translation import Choice, TranslatedPart
from cadec_cli.decoding.translator import Translator
from cadec_cli.fs.read import read_lines
from cadec_cli.jobs.job import TranslationJob
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.plotting import save_figure
from cadec_cli.text.documents import documents_of, is_blank
from cadec_cli.text.sentences import split_sentences

# A signal counts at least so much per standard deviation.
LEAST = 0.1
STEPS, RATE = 5000, 2.0
LIMITS = (0.3, 0.4, 0.5, 0.6, 0.7)


@dataclass(frozen=True)
class Segment:
    document: int
    part: TranslatedPart
    reference: str
    chrf: float

    @property
    def known(self) -> Signals:
        found = signals(self.part)
        assert found is not None
        return found


@dataclass(frozen=True)
class Model:
    """An intercept, and what each signal's feature is typically and counts, in the order of WEIGHINGS."""

    intercept: float
    typical: Floats
    weights: Floats

    def values(self, features: Floats) -> Floats:
        made: Floats = 1 / (1 + np.exp(-self.intercept - (features - self.typical) @ self.weights))
        return made


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--plot", type=Path)
    asked = parser.parse_args()
    translator = TranslationJob.open(ModelRequest(asked.bundle)).translator
    found = list(_segments(translator, asked.source, asked.reference))
    used = [segment for segment in found if _is_plain_sentence(segment.part.source)]
    print(f"{len(found):,} lines, {len(used):,} of them one sentence without markup")
    _say_what_is_good(used)
    fitting = [segment for segment in used if segment.document % 2 == 0]
    shown = [segment for segment in used if segment.document % 2]
    model = _fitted(_features(fitting), _chrf(fitting) >= GOOD)
    _say_model(model)
    values, chrf = model.values(_features(shown)), _chrf(shown)
    print(f"\nheld out: {len(shown):,} sentences, chrF {chrf.mean():.1f}, good {(chrf >= GOOD).mean():.0%}")
    _say_how_well(values, chrf)
    for name, column in zip(WEIGHINGS, _features(shown).T, strict=True):
        print(f"{name} alone: AUC {auc(column, chrf >= GOOD):.3f}")
    shipped = _shipped(shown)
    print(f"as shipped: AUC {auc(shipped, chrf >= GOOD):.3f}, values apart by {_apart(values, shipped):.3f}")
    others = [segment for segment in found if segment.document % 2 and segment not in shown]
    print(f"\nheld out, what was left aside: {len(others):,} lines of several sentences or with markup")
    _say_how_well(model.values(_features(others)), _chrf(others))
    if asked.plot is not None:
        _draw(values, chrf, asked.plot)


def _segments(translator: Translator, source: Path, reference: Path) -> Iterator[Segment]:
    references = _documents(reference)
    measure = CHRF()
    made = _from_json(translator, source) if source.suffix == ".jsonl" else _translated(translator, source)
    for document, sentence, part in made:
        if part.choice is not None:
            expected = references[document][sentence]
            yield Segment(document, part, expected, measure.sentence_score(part.text, [expected]).score)


def _documents(path: Path) -> list[list[str]]:
    return [list(lines) for lines in documents_of(read_lines(path), is_blank)]


def _translated(translator: Translator, source: Path) -> Iterator[tuple[int, int, TranslatedPart]]:
    for translation in translator.translate_documents(_documents(source)):
        if len(translation.parts) == 1:
            yield translation.document, translation.sentence, translation.parts[0]


def _from_json(translator: Translator, path: Path) -> Iterator[tuple[int, int, TranslatedPart]]:
    """The same from JSON, which has no ids: the model's text gives them again."""
    records: dict[tuple[int, int], list[Any]] = {}
    for line in read_lines(path):
        record = json.loads(line)
        records.setdefault((record["document"], record["sentence"]), []).append(record)
    text = cast(LoadedModels, translator.models).bundle.target_text
    for (document, sentence), parts in records.items():
        if len(parts) == 1 and "chosen" in parts[0]:
            yield document, sentence, _part(parts[0], text)


def _part(record: Any, text: Any) -> TranslatedPart:
    listed = record["hypotheses"]
    hypotheses = [Hypothesis(one["text"], one["log_prob"], tuple(text.encode(one["text"]))) for one in listed]
    computed = [name for name in listed[0] if name not in ("text", "log_prob", "score", "pmi")]
    terms = {name: tuple(one[name] for one in listed) for name in computed}
    choice = Choice(record["chosen"], tuple(one["score"] for one in listed), terms)
    return TranslatedPart(NBest(record["source"], tuple(hypotheses), text.identity), choice)


def _is_plain_sentence(line: str) -> bool:
    return "<" not in line and len(split_sentences(line, "en")) == 1


def _features(segments: Sequence[Segment]) -> Floats:
    """(segments, signals); what is absent is typical, and so is left out of the fit's means."""
    rows = [[one.feature(segment.known) for one in WEIGHINGS.values()] for segment in segments]
    made = np.array(rows, dtype=float)
    means = np.nanmean(made, axis=0)
    filled: Floats = np.where(np.isnan(made), means, made)
    return filled


def _chrf(segments: Sequence[Segment]) -> Floats:
    return np.array([segment.chrf for segment in segments])


def _fitted(features: Floats, good: Any) -> Model:
    """Logistic regression by gradient ascent; no weight falls below LEAST per standard deviation."""
    typical, spread = features.mean(axis=0), features.std(axis=0)
    inputs = (features - typical) / spread
    intercept, weights = 0.0, np.full(inputs.shape[1], LEAST)
    for _ in range(STEPS):
        errors = good - 1 / (1 + np.exp(-intercept - inputs @ weights))
        intercept += RATE * float(errors.mean())
        weights = np.maximum(LEAST, weights + RATE * (inputs.T @ errors) / len(inputs))
    return Model(intercept, typical, weights / spread)


def _shipped(segments: Sequence[Segment]) -> Floats:
    return np.array([weigh_signals(one.known).value for one in segments])


def _apart(ours: Floats, theirs: Floats) -> float:
    return float(np.abs(ours - theirs).max())


def auc(values: Floats, good: Any) -> float:
    """How often a good one has the higher value of two; equal values count half."""
    ranks = _ranks(values)
    count = int(good.sum())
    return float((ranks[good].sum() - count * (count - 1) / 2) / (count * (len(good) - count)))


def _ranks(values: Floats) -> Floats:
    """From 0; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    shared: Floats = (ends - (counts + 1) / 2)[inverse]
    return shared


def _say_what_is_good(segments: Sequence[Segment]) -> None:
    """What chrF the reference of another sentence, of about the same length, has."""
    measure = CHRF()
    by_length = sorted(segments, key=lambda segment: len(segment.reference))
    wrong = [
        measure.sentence_score(one.part.text, [other.reference]).score
        for one, other in zip(by_length, by_length[7:], strict=False)
    ]
    share = np.mean(np.array(wrong) >= GOOD)
    print(f"against another sentence's reference: chrF {np.mean(wrong):.1f}, {share:.1%} reach {GOOD}")


def _say_model(model: Model) -> None:
    print(f"\nINTERCEPT = {model.intercept:.2f} (shipped: {INTERCEPT})")
    for (name, shipped), typical, weight in zip(WEIGHINGS.items(), model.typical, model.weights, strict=True):
        print(f"{name:18} {typical:6.2f} {weight:6.2f} (shipped: {shipped.typical} {shipped.weight})")


def _say_how_well(values: Floats, chrf: Floats) -> None:
    good = chrf >= GOOD
    correlation = np.corrcoef(_ranks(values), _ranks(chrf))[0, 1]
    print(f"AUC {auc(values, good):.3f}, rank correlation with chrF {correlation:.2f}")
    print("confidence  good really  chrF  (by tenths)")
    for tenth in np.array_split(np.argsort(values), 10):
        print(f"{values[tenth].mean():10.2f} {good[tenth].mean():12.2f} {chrf[tenth].mean():5.1f}")
    print("below  flagged  bad among them  of the bad  chrF of them and of the others")
    for limit in LIMITS:
        flagged = values < limit
        if flagged.any() and not flagged.all():
            print(
                f"{limit:5.1f} {flagged.mean():8.1%} {(~good[flagged]).mean():15.0%} "
                f"{(flagged & ~good).sum() / (~good).sum():11.0%}  "
                f"{chrf[flagged].mean():.1f} {chrf[~flagged].mean():.1f}"
            )


def _draw(values: Floats, chrf: Floats, path: Path) -> None:
    from matplotlib.figure import Figure

    good = chrf >= GOOD
    figure = Figure(figsize=(11, 3.6), dpi=130, layout="constrained")
    axes: Any = figure.subplots(1, 3)
    order = np.argsort(values)
    tenths = np.array_split(order, 10)
    confidence = [values[tenth].mean() for tenth in tenths]
    errors = [1.96 * chrf[tenth].std() / len(tenth) ** 0.5 for tenth in tenths]
    axes[0].errorbar(confidence, [chrf[tenth].mean() for tenth in tenths], errors, fmt="o-", capsize=3)
    axes[0].axhline(chrf.mean(), color="#999999", linewidth=0.8, linestyle="--")
    axes[0].set(xlabel="confidence (tenths of the sentences)", ylabel="mean chrF", ylim=(0, None))
    axes[1].plot([0, 1], [0, 1], color="#999999", linewidth=0.8, linestyle="--")
    axes[1].plot(confidence, [good[tenth].mean() for tenth in tenths], "o-")
    axes[1].set(xlabel="confidence", ylabel=f"share with chrF ≥ {GOOD}", xlim=(0, 1), ylim=(0, 1))
    flagged = np.arange(1, len(order) + 1) / len(order)
    caught = np.cumsum(~good[order]) / (~good).sum()
    axes[2].plot([0, 1], [0, 1], color="#999999", linewidth=0.8, linestyle="--")
    axes[2].plot(flagged, caught)
    place = int((values < FLAG_BELOW).sum())
    if place:
        axes[2].plot(flagged[place - 1], caught[place - 1], "o", color="#d94801")
        axes[2].annotate(
            f"below {FLAG_BELOW}",
            (flagged[place - 1], caught[place - 1]),
            (6, -12),
            textcoords="offset points",
        )
    axes[2].set(xlabel="share flagged", ylabel="share of the bad that is flagged", xlim=(0, 1), ylim=(0, 1))
    for one, title in zip(axes, ("quality by confidence", "calibration", "what a look finds"), strict=True):
        one.set_title(title)
        one.grid(alpha=0.3)
    save_figure(figure, path)


if __name__ == "__main__":
    main()
