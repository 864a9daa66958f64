"""How often a name in a chapter is called what it is called most of the time, without --names and with it.

    python -m bench names [BUNDLE]

The chapter is bench/texts/chapter.en.txt: 310 sentences, 13 names that recur 5 to 39 times. What a name is
called is found by counting: the word with a capital, in all its forms, that fits best to the sentences of the
name. A sentence without it counts as one in which the name is called otherwise, even if a pronoun stands for
it. The ratio is that of CPU time with one thread, so that other work hardly counts.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import cadec_cli
from bench.rows import Row
from cadec_cli.text.name_memory import untagged_words
from cadec_cli.text.word_forms import are_name_forms

CHAPTER = Path(__file__).parent / "texts" / "chapter.en.txt"
NAMES = (
    *("Aurelia", "Tobias", "Okonkwo", "Hargreave", "Ysolde", "Quillon", "Kestrel", "Ravenmoor", "Marianne"),
    *("Brannock", "Petronella", "Wexcombe", "Dunmere"),
)
GOAL, SLOWEST = 0.97, 1.15


def majority(name: str, sources: Sequence[str], translations: Sequence[str], language: str) -> list[bool]:
    """For every sentence with a name, tell whether its translation has what the name is mostly called."""
    here = [re.search(rf"\b{name}\b", source) is not None for source in sources]
    words = [
        {word.text.lower() for word in untagged_words(text, language) if word.text[0].isupper()}
        for text in translations
    ]
    counts = Counter(word for has, said in zip(here, words, strict=True) if has for word in said)
    groups: list[list[str]] = []
    for word, _ in counts.most_common():
        for group in groups:
            if are_name_forms(group[0], word, language):
                group.append(word)
                break
        else:
            groups.append([word])

    def fit(group: Sequence[str]) -> float:
        has = [not said.isdisjoint(group) for said in words]
        both = sum(one and other for one, other in zip(has, here, strict=True))
        return 2 * both / (sum(has) + sum(here))

    best = max(groups, key=fit, default=[])
    return [not said.isdisjoint(best) for has, said in zip(here, words, strict=True) if has]


def measure(directories: Sequence[str]) -> list[Row]:
    """Translate the chapter with a bundle, the embedded one if none is named."""
    rows = []
    sources = CHAPTER.read_text("utf-8").splitlines()
    for directory in directories or [""]:
        shares, seconds, each = [], [], []
        for names in (False, True):
            translator = cadec_cli.load(directory or None, options={"names": names}, threads=1)
            list(translator.translate(sources[:10]))
            began = time.process_time()
            translations = [one.text for one in translator.translate(sources)]
            seconds.append(time.process_time() - began)
            found = {
                name: majority(name, sources, translations, translator.target_language) for name in NAMES
            }
            each.append({name: f"{sum(same)}/{len(same)}" for name, same in found.items()})
            total = [one for same in found.values() for one in same]
            shares.append(sum(total) / len(total))
        for name in NAMES:
            print(f"{name:>12} {each[0][name]:>7} {each[1][name]:>7}")
        ratio = seconds[1] / seconds[0]
        rows.append(
            Row(
                f"names, {Path(directory).name or 'embedded'}",
                f"{shares[0]:.1%} → {shares[1]:.1%}; {seconds[0]:.1f} s → {seconds[1]:.1f} s",
                ratio,
                f"≥ {GOAL:.0%}, ≤ {SLOWEST}",
                shares[1] >= GOAL and ratio <= SLOWEST,
            )
        )
    return rows
