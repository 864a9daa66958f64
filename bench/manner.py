"""How many sentences are said as is asked for: formally or informally, and in the gender of the speaker.

    python -m bench.manner [--bundle B] [--formality formal|informal] [--cast] [--all] [--nbest N] [-T 4]

Without --cast the text is examples/address.txt, of which 39 lines have to choose between two forms of
address. With it, it is the dialogues of bench/texts/cast.en.txt, with the people of cast.tsv beside it; all
of them say *I*, and most sentences would tell the speaker's gender in Russian. Sentences are counted by what
their translations show: T and V are forms of address, m and f genders of the speaker, M and F of who is
addressed, and - is nothing. With --all every sentence is listed, else those that are not as is asked for.
"""

import argparse
import time
from collections import Counter
from pathlib import Path
from typing import Any

import cadec_cli
from cadec_cli.text.manner import shown

TEXTS = Path(__file__).parent / "texts"
ADDRESS = Path(__file__).parents[1] / "examples" / "address.txt"


def documents(path: Path) -> list[list[str]]:
    """Return the documents of a text with a sentence per line, and blank lines between them."""
    return [part.splitlines() for part in path.read_text("utf-8").strip().split("\n\n")]


def forms(translation: cadec_cli.Translation, language: str) -> str:
    """Return the forms that a translation shows, in view of the others that it could have been."""
    texts = (translation.text, *(one.text for one in translation.alternatives))
    return "".join(sorted(shown(texts, language)[0])) or "-"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--formality", default="auto")
    parser.add_argument("--cast", action="store_true")
    parser.add_argument("--without", action="store_true", help="the dialogues, without their cast")
    parser.add_argument("--nbest", type=int)
    parser.add_argument("-T", "--temperature", type=float)
    parser.add_argument("--all", action="store_true")
    given = parser.parse_args()
    options: dict[str, Any] = {"formality": given.formality, "cast": TEXTS / "cast.tsv" if given.cast else ""}
    options |= {
        name: value for name in ("nbest", "temperature") if (value := getattr(given, name)) is not None
    }
    translator = cadec_cli.load(given.bundle, options=options)
    started = time.monotonic()
    read = documents(TEXTS / "cast.en.txt" if given.cast or given.without else ADDRESS)
    found = sorted(translator.translate_documents(read), key=lambda one: (one.document, one.sentence))
    counts: Counter[str] = Counter()
    for one in found:
        counts[form := forms(one, translator.target_language)] += 1
        if given.all or any(not outcome.is_met for outcome in one.manner):
            print(f"{form:3} {one.source}\n    {one.text}  {'; '.join(map(str, one.manner))}")
    shares = ", ".join(f"{count} {form}" for form, count in counts.most_common())
    print(f"{shares}; {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main()
