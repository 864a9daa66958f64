"""What preferring shorter hypotheses does: how many cues it brings under the limits, and what it costs.

    python -m bench.fit FILM.srt … [--bundle B] [--weight W …]
    python -m bench.fit SOURCE.en --reference TARGET.ru [--share 0.9] [--lines N] [--bundle B] [--weight W …]

Of subtitles it counts the cues that are too fast or too long for their lines. A text, a sentence a line,
becomes subtitles whose cues can be read at 15 characters per second in its own language. With --reference,
each sentence has room for that share of its reference's characters, and chrF tells what is lost. The lists
are made once, with every weight the same.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import sacrebleu

from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.jobs.job import TranslationJob
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.options import with_flags
from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.formats import TextFile, read_text_file
from cadec_cli.text.formats.layout import LINE_WIDTH, MAX_CPS, USUAL_LINES, CueLimits, SubtitleStyle
from cadec_cli.text.formats.subtitles.limits import problems

WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
SPOKEN = 15.0  # characters per second of a made-up film


class Lists(dict[str, list[NBest]]):
    """N-best lists in memory."""

    def recall(self, key: str) -> list[NBest] | None:
        return self.get(key)

    def keep(self, key: str, lists: list[NBest]) -> None:
        self[key] = lists


def time(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02},{int(seconds % 1 * 1000):03}"


def as_subtitles(lines: Sequence[str]) -> str:
    """A text as subtitles, a line a cue, a blank line a pause."""
    now, cues = 0.0, list[str]()
    for line in lines:
        if not line.strip():
            now += 8
            continue
        end = now + max(1.0, len(line) / SPOKEN)
        cues.append(f"{len(cues) + 1}\n{time(now)} --> {time(end)}\n{line}\n")
        now = end + 0.1
    return "\n".join(cues)


def read(path: Path, job: TranslationJob) -> TextFile:
    style = SubtitleStyle(fit=True, language=job.languages.target_code)
    return read_text_file(path, language=job.languages.source_code, tags=True, screen=style)


def documents_of(
    source: Path, reference: Path, share: float, most: int
) -> Iterator[tuple[Document, list[str]]]:
    """Documents whose sentences have room for a share of their references, and these."""
    sentences: list[Sentence] = []
    references: list[str] = []
    pairs = zip(*(path.read_text("utf-8").split("\n") for path in (source, reference)), strict=True)
    for left, right in [*list(pairs)[:most], ("", "")]:
        if left.strip():
            sentences.append(Sentence(left.strip(), room=share * len(right)))
            references.append(right.strip())
        elif sentences:
            yield Document(tuple(sentences)), references
            sentences, references = [], []


def in_order(translator: Translator, documents: Sequence[Document], store: Lists) -> list[Translation]:
    found = translator.translate_documents(documents, store=store)
    return sorted(found, key=lambda one: (one.document, one.sentence))


def log_prob(found: Sequence[Translation]) -> float:
    parts = [part for one in found for part in one.parts if part.chosen_hypothesis is not None]
    return sum(part.chosen_hypothesis.log_prob for part in parts if part.chosen_hypothesis) / max(
        1, len(parts)
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("inputs", type=Path, nargs="+")
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--share", type=float, default=0.9)
    parser.add_argument("--lines", type=int, default=10**9)
    parser.add_argument("--weight", type=float, action="append")
    given = parser.parse_args()
    job = TranslationJob.open(ModelRequest(given.bundle))
    store = Lists()
    weights = given.weight or WEIGHTS
    translators = [
        Translator(
            job.models,
            with_flags(job.options, {"weight": {"fit": weight}}),
            language=job.languages.source_code,
        )
        for weight in weights
    ]
    if given.reference is not None:
        pairs = list(documents_of(given.inputs[0], given.reference, given.share, given.lines))
        documents = [document for document, _ in pairs]
        references = [text for _, texts in pairs for text in texts]
        for weight, translator in zip(weights, translators, strict=True):
            found = in_order(translator, documents, store)
            rooms = [one.room or 0 for document in documents for one in document.sentences]
            over = sum(len(one.text) > room for one, room in zip(found, rooms, strict=True))
            beyond = sum(max(0, len(one.text) - room) for one, room in zip(found, rooms, strict=True))
            chrf = sacrebleu.corpus_chrf([one.text for one in found], [references]).score
            bleu = sacrebleu.corpus_bleu([one.text for one in found], [references]).score
            length = sum(len(one.text) for one in found) / sum(map(len, references))
            print(
                f"{given.inputs[0].name} × {given.share:g}, weight {weight:g}: "
                f"{over} of {len(found)} beyond by {beyond:.0f} characters, length {length:.3f}, "
                f"chrF {chrf:.2f}, BLEU {bleu:.2f}, log p {log_prob(found):.2f}",
                flush=True,
            )
        return
    for path in given.inputs:
        if path.suffix == ".txt":
            made = Path("/tmp") / f"{path.stem}.srt"
            made.write_text(as_subtitles(path.read_text("utf-8").splitlines()), "utf-8")
            path = made
        file = read(path, job)
        assert file.cues is not None
        plain: list[Translation] = []
        for weight, translator in zip(weights, translators, strict=True):
            found = in_order(translator, file.documents, store)
            plain = plain or found
            cues = list(file.cues.shown_cues(one.text for one in found))
            wrong = problems(cues, CueLimits(MAX_CPS, LINE_WIDTH, USUAL_LINES))
            fast, wide = sum(one.too_fast for one in wrong), sum(one.too_long for one in wrong)
            shorter = sum(len(one.text) < len(before.text) for one, before in zip(found, plain, strict=True))
            others = sum(one.text != before.text for one, before in zip(found, plain, strict=True))
            print(
                f"{path.name}, weight {weight:g}: of {len(cues)} cues {fast} too fast, {wide} too long, "
                f"{len(wrong)} either; of {len(found)} sentences {shorter} shorter, {others} others; "
                f"log p {log_prob(found):.2f}",
                flush=True,
            )
            if weight in (0.2, 0.3):
                for one, before in zip(found, plain, strict=True):
                    if one.text != before.text:
                        print(f"    {one.source}\n      {before.text}\n      {one.text}")


if __name__ == "__main__":
    main()
