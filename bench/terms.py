"""What share of the terms of a glossary is kept in a translation, before and after.

    python -m bench.terms [--bundle B] [--to ru] [--weight W …] [--all]

The text is bench/texts/terms.en.txt, a sentence a line, and the glossary terms.en-ru.tsv or terms.en-fr.tsv
beside it; few of its terms are what a model would say by itself. A sentence that has a term counts as kept if
its translation has one of the term's forms. Terms that are in a translation without being in its source are
listed too. Of a text that has none of the terms it is counted how much is translated otherwise than before.
With --all every sentence is listed, else those that lost a term. Several weights are compared.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import cadec_cli
from cadec_cli.decoding.glossary.outcomes import count_outcomes
from cadec_cli.text.glossary.entries import Glossary, find_form
from cadec_cli.text.glossary.reader import read_glossary

OTHERS = 40  # sentences without terms
TEXTS = Path(__file__).parent / "texts"


def kept(glossary: Glossary, sources: Sequence[str], translations: Sequence[str]) -> tuple[int, int]:
    """Count the terms that translations respect, and all."""
    found = [
        mention.rendering(text) is not None
        for source, text in zip(sources, translations, strict=True)
        for mention in glossary.mentions(source)
    ]
    return sum(found), len(found)


def uncalled_for(glossary: Glossary, sources: Sequence[str], translations: Sequence[str]) -> list[str]:
    """Return the terms that translations have and their sources do not."""
    return [
        f"{entry} in {text}"
        for source, text in zip(sources, translations, strict=True)
        for entry in glossary.entries
        if entry not in {mention.entry for mention in glossary.mentions(source)}
        for rest in [_without_terms(glossary, source, text)]
        if any(find_form(target, rest, entry.is_form) for target in entry.targets)
    ]


def _without_terms(glossary: Glossary, source: str, text: str) -> str:
    """Return a translation without the terms that it should have."""
    for mention in glossary.mentions(source):
        text = text.replace(mention.rendering(text) or "\n", "")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--to", default="ru", choices=("ru", "fr"))
    parser.add_argument("--weight", type=float, action="append")
    parser.add_argument("--all", action="store_true")
    given = parser.parse_args()
    path = TEXTS / f"terms.en-{given.to}.tsv"
    glossary = read_glossary([str(path)], "en")
    sources = (TEXTS / "terms.en.txt").read_text("utf-8").splitlines()
    others = [line for line in (TEXTS / "film.en.txt").read_text("utf-8").splitlines() if line.strip()]
    others = others[:OTHERS]
    documents = [[source] for source in sources]  # without context, which is of no use here

    started = time.monotonic()
    plain = cadec_cli.load(given.bundle)
    before = [one.text for one in sorted(plain.translate_documents(documents), key=lambda one: one.document)]
    print(
        f"before: {'{} of {}'.format(*kept(glossary, sources, before))}, {time.monotonic() - started:.0f} s"
    )
    of_others = [one.text for one in plain.translate(others)]
    for weight in given.weight or [None]:
        weights = {} if weight is None else {"weight": {"glossary": weight}}
        started = time.monotonic()
        translator = cadec_cli.load(given.bundle, options={"glossary": path, **weights})
        found = sorted(translator.translate_documents(documents), key=lambda one: one.document)
        after = [one.text for one in found]
        outcomes = count_outcomes(term for one in found for term in one.terms)
        counted = ", ".join(f"{number} {name}" for name, number in outcomes.items())
        share = "{} of {}".format(*kept(glossary, sources, after))
        weight = translator.options.glossary_weight
        print(f"weight {weight:g}: {share} ({counted}), {time.monotonic() - started:.0f} s")
        for one, text in zip(found, before, strict=True):
            if given.all or any(term.rendering is None for term in one.terms):
                print(f"  {one.source}\n    {text}\n    {one.text}  [{'; '.join(map(str, one.terms))}]")
        print("uncalled for:", "; ".join(uncalled_for(glossary, sources, after)) or "none")
        differ = sum(
            one.text != text for one, text in zip(translator.translate(others), of_others, strict=True)
        )
        print(f"of {len(others)} sentences without a term, {differ} are translated otherwise than before")


if __name__ == "__main__":
    main()
