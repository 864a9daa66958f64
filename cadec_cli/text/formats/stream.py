"""Text that is translated as it comes, in the formats whose lines need not know what comes after them.

What is held in memory is what was not translated and written yet, whatever comes before and after that. All
other formats are read whole.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

from cadec_cli.errors import CadecError, option
from cadec_cli.extensions import load
from cadec_cli.fs.read import TextStream
from cadec_cli.text.formats import format_named
from cadec_cli.text.formats.layout import Layout, Line, LineCutter, LineReader

# Lines, and characters, that are handed over together, if there are so many without a wait.
LINES, CHARACTERS = 1024, 1 << 20
# Characters that may come before anything can be handed over: what never ends must not fill the memory.
MAX_HELD = 1 << 26


def stream_lines(
    stream: TextStream,
    format: str,
    *,
    language: str,
    lines: bool = False,
    whole_documents: bool = False,
    most_held: int = MAX_HELD,
) -> Iterator[list[Line[Layout]]]:
    """The lines of a stream, all that are there at a time; or those of whole documents only.

    Where the input goes wrong, the lines before that come first.
    """
    readers = format_named(format).lines
    assert readers is not None, f"{format} can't be read line by line"
    reader = load(readers)(stream.name, language, lines)
    held: list[Line[Layout]] = []
    ready = 0  # of those held
    failure: CadecError | None = None
    characters = 0
    try:
        for found in _lines(stream, LineCutter(old_ends=reader.old_ends), reader):
            if isinstance(found, Line):
                held.append(found)
                ready = _ready(held, ready) if whole_documents else len(held)
                enough = ready >= LINES
            else:
                characters += found
                enough = characters >= CHARACTERS or not stream.waiting()
            if ready and enough:
                yield held[:ready]
                del held[:ready]
                ready = characters = 0
            elif characters > most_held:
                del held[ready:]
                raise _too_much(stream.name, "document" if whole_documents else "line", most_held)
    except CadecError as error:
        failure = error
        held += reader.end()
    if held:
        yield held
    if failure is not None:
        raise failure


def _lines(stream: TextStream, cutter: LineCutter, reader: LineReader) -> Iterator[Line[Layout] | int]:
    """Lines, and after those of a piece of text how long it was."""
    while text := stream.read():
        for line, end in cutter.cut(text):
            yield from reader.read(line, end)
        yield len(text)
    for line, end in cutter.end():
        yield from reader.read(line, end)
    yield from reader.end()


def _ready(held: list[Line[Layout]], before: int) -> int:
    """How many of the lines belong to documents that are complete, now that there is another one."""
    newest = held[-1]
    if newest.ends_after or (newest.ends_before and not newest.sentences):
        return len(held)
    return len(held) - 1 if newest.ends_before else before


def _too_much(name: str, what: str, most: int) -> CadecError:
    hint = "a blank line ends a document; files are read whole" if what == "document" else "is it text?"
    return CadecError(
        f"{name}: {most:,} characters, and the {what} they belong to has no end",
        f"{hint}; or let it be longer with {option('max-input')}",
    )


class StreamedText:
    """Lines as they come, for two: who translates them, and who puts them together again, if anybody does.

    Whoever is first waits for more. It is a layout as others are, but that of a text that is not there yet.
    """

    def __init__(self, lines: Iterator[list[Line[Layout]]]) -> None:
        self._lines = lines
        self._untranslated: deque[list[Line[Layout]]] = deque()
        self._unwritten: deque[list[Line[Layout]]] | None = None  # nobody has asked for the text so far

    def to_translate(self) -> Iterator[list[Line[Layout]]]:
        """Lines, as many at once as there are."""
        while self._untranslated or self._more():
            yield self._untranslated.popleft()

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the text with translations for sentences, as early as they come."""
        self._unwritten = deque()
        incoming = iter(translations)
        while self._unwritten or self._more():
            for line in self._unwritten.popleft():
                yield from line.layout.restore(islice(incoming, len(line.sentences)))

    def _more(self) -> bool:
        for lines in self._lines:
            self._untranslated.append(lines)
            if self._unwritten is not None:
                self._unwritten.append(lines)
            return True
        return False
