"""`make demo`: learn a made-up language pair in a minute, then translate a document with it, in context.

The sentence level can't know whether `you` is the familiar `tu` or the polite `vos`; the sentences before
tell. Every step is a command that you can run yourself on your own text.
"""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import made_up

from cadec_cli.main import exit_code

OPENINGS = ("hello friend.", "good day sir.")


def cadec(*arguments: object) -> None:
    words = [str(argument) for argument in arguments]
    print("\n$ cadec " + " ".join(words), flush=True)
    if code := exit_code(words):
        sys.exit(code)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        made_up.write(Path(), count=1000)
        size = ("--vocab-size", 120, "--no-byte-fallback")
        cadec("train", "tokenizer", "pairs.tsv", "--column", 1, "-l", "en", "-o", "en", *size)
        cadec("train", "tokenizer", "pairs.tsv", "--column", 2, "-l", "eo", "-o", "eo", *size)
        dev = ("--lines", "--dev-every", 20, "--dev-output")
        both = ("--columns", "1,2", "-p", "en", "-p", "eo")
        cadec("prepare", "text", "pairs.tsv", *both, "-o", "pairs", *dev, "pairs-dev")
        cadec("prepare", "text", "target.txt", "-p", "eo", "-o", "docs", *dev, "docs-dev")
        cadec("train", "nmt", "--data", "pairs", "--dev", "pairs-dev", "--preset", "tiny", "-o", "nmt")
        cadec("train", "lm", "--data", "docs", "--dev", "docs-dev", "--preset", "tiny", "-o", "lm")
        models = ("--nmt", "nmt", "--lm", "lm", "--source-pipeline", "en", "--target-pipeline", "eo")
        # T = 2: at T = 1 so small a D-LM is too sure of itself, and breaks one sentence in twenty.
        cadec("convert", *models, "--compute-type", "int8", "--temperature", 2, "-o", "bundle")
        Path("letters.txt").write_text("\n".join(letters()), "utf-8")
        cadec("translate", "letters.txt", "--lines", "--bundle", "bundle", "--compare")
        print("\nThe first letter is to a friend: tu. The second is to a stranger: vos.")


def letters() -> list[str]:
    """One document in each form."""
    made = made_up.documents(20, seed=5, length=4)
    chosen = [next(one for one in made if opening in one[0]) for opening in OPENINGS]
    return ["".join(f"{source}\n" for source, _ in document) for document in chosen]


if __name__ == "__main__":
    main()
