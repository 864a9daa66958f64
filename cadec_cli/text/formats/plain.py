"""Plain text: sentences, and exactly what stands between them.

A line is a paragraph, split into sentences; with `lines` a line is one sentence. Lines are never joined,
because hard-wrapped lines can't be told from poems, lists and headings, and joining them would lose the line
breaks that have to be put back. A blank line ends a document. What stands between two lines of ``` is code,
and no sentence.

Lines end with LF, CRLF, or CR where the file has no LF at all. Knows nothing of files and encodings.
"""

import itertools
import operator
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cadec_cli.text.documents import Document, Sentence, documents_of
from cadec_cli.text.formats.layout import Source, finish, one_line, take
from cadec_cli.text.sentences import Span, sentence_spans, visible_span

# Settings at the head of a Markdown page, between two lines of ---.
_FRONT_MATTER = re.compile(r"\ufeff?---[ ]*\n(?:[\w-]+:.*\n|[ ]+.*\n|- .*\n|#.*\n|\n){1,60}?---[ ]*(?:\n|$)")
_FENCE = re.compile(r"\s{0,3}(?:```+|~~~+)[^`]*$")


@dataclass(frozen=True)
class PlainLayout:
    """The text before each sentence of a file, and after the last one."""

    gaps: tuple[str, ...]

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the text with translations for sentences, as soon as each translation is there."""
        incoming = iter(translations)
        for gap in self.gaps[:-1]:
            # what stands before a sentence may be shown while the sentence is still being translated
            if gap:
                yield gap
            yield one_line(take(incoming))
        if self.gaps[-1]:
            yield self.gaps[-1]
        finish(incoming)


def read_plain(source: Source) -> tuple[tuple[Document, ...], PlainLayout]:
    """Read plain text into documents and the layout that puts it together again."""
    text = source.text
    end_of_line = "\n" if "\n" in text else "\r"
    sentences: list[list[Sentence]] = []  # of each line
    gaps: list[str] = []
    done = 0
    start = 0
    in_code = False
    header = _FRONT_MATTER.match(text.replace("\r", "")) is not None
    for number, line in enumerate(text.split(end_of_line)):
        fence = bool(_FENCE.match(line)) or (header and line.strip("\r\ufeff ") == "---")
        header = header and not (fence and number)
        in_code ^= fence
        if in_code or fence:
            start += len(line) + 1
            continue
        spans = _spans(line, source.language, source.lines)
        sentences.append([Sentence(line[first:last], f"line {number + 1}") for first, last in spans])
        for first, last in spans:
            gaps.append(text[done : start + first])
            done = start + last
        start += len(line) + 1
    documents = documents_of(sentences, operator.not_)
    return (
        tuple(Document(tuple(itertools.chain.from_iterable(lines))) for lines in documents),
        PlainLayout((*gaps, text[done:])),
    )


def _spans(line: str, language: str, whole: bool) -> list[Span]:
    if not whole:
        return sentence_spans(line, language)
    start, end = visible_span(line, 0, len(line))
    return [(start, end)] if start < end else []
