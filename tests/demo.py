"""`make demo`: learn a made-up language pair in a minute, then translate a document with it.

The sentence-level model can't know whether `you` is the familiar `tu` or the polite `vos`; the document
language model, which has seen the sentences before, can.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import made_up
import torch

from cadec_cli.decoding.greedy import greedy
from cadec_cli.main import exit_code
from cadec_cli.models.storage import load_model
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.specials import EOS


def cadec(*arguments: object) -> None:
    words = [str(argument) for argument in arguments]
    print("\n$ cadec " + " ".join(words), flush=True)
    if code := exit_code(words):
        sys.exit(code)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        made_up.write(root, count=1000)
        pairs, target = root / "pairs.tsv", root / "target.txt"
        size = ("--vocab-size", 120, "--no-byte-fallback")
        cadec("train", "tokenizer", pairs, "--column", 1, "-l", "en", "-o", root / "src", *size)
        cadec("train", "tokenizer", pairs, "--column", 2, "-l", "eo", "-o", root / "tgt", *size)
        dev = ("--lines", "--dev-every", 20, "--dev-output")
        both = ("--columns", "1,2", "-p", root / "src", "-p", root / "tgt")
        cadec("prepare", "text", pairs, *both, "-o", root / "pairs", *dev, root / "pairs-dev")
        cadec("prepare", "text", target, "-p", root / "tgt", "-o", root / "docs", *dev, root / "docs-dev")
        tiny = ("--preset", "tiny", "-o")
        cadec("train", "nmt", "--data", root / "pairs", "--dev", root / "pairs-dev", *tiny, root / "nmt")
        cadec("train", "lm", "--data", root / "docs", "--dev", root / "docs-dev", *tiny, root / "lm")
        show(root)


def show(root: Path) -> None:
    nmt, lm = (load_model(root / kind / "model", kind).model for kind in ("nmt", "lm"))
    source, target = (TextPipeline.load(root / side) for side in ("src", "tgt"))
    document = made_up.documents(1, seed=8)[0]
    context: list[int] = [EOS]
    print("\nA document, sentence by sentence; p(tu) is what the D-LM expects after the sentences before:\n")
    for original, reference in document:
        translation = target.decode(greedy(nmt, [source.encode(original)])[0])
        with torch.inference_mode():
            probability = lm(torch.tensor([context]))[0, -1].softmax(-1)
        familiar = float(probability[target.encode("tu")[0]])
        polite = float(probability[target.encode("vos")[0]])
        print(f"  {original:32} {translation:32} p(tu) {familiar / (familiar + polite):4.0%}   ({reference})")
        context += [*target.encode(reference), EOS]


if __name__ == "__main__":
    main()
