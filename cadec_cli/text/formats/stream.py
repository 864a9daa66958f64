"""Text that is translated while it is still being read, in formats whose lines can be read one by one.

Only lines that are not yet translated and written are held in memory. All other formats are read whole.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

from cadec_cli.errors import CadecError, option
from cadec_cli.extensions import load
from cadec_cli.fs.read import TextStream
from cadec_cli.text.formats import format_named
from cadec_cli.text.formats.layout import Layout, Line, LineCutter, LineReader

# The most lines, and about the most characters, that are yielded at once.
LINES, CHARACTERS = 1024, 1 << 20
# The most characters of one line or document. More are an error, so that endless input can't fill the memory.
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
    """Yield the lines of a stream, all that are available at a time; or only those of whole documents.

    If reading fails, the lines before the failure are yielded before the error is raised.
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
    """Yield the lines of each piece of text, and then the length of the piece."""
    while text := stream.read():
        for line, end in cutter.cut(text):
            yield from reader.read(line, end)
        yield len(text)
    for line, end in cutter.end():
        yield from reader.read(line, end)
    yield from reader.end()


def _ready(held: list[Line[Layout]], before: int) -> int:
    """Return how many lines belong to complete documents, now that another line has come."""
    newest = held[-1]
    if newest.ends_after or (newest.ends_before and not newest.sentences):
        return len(held)
    return len(held) - 1 if newest.ends_before else before


def _too_much(name: str, what: str, most: int) -> CadecError:
    hint = "a blank line ends a document; files are read whole" if what == "document" else "is it text?"
    return CadecError(
        f"{name}: after {most:,} characters, the {what} still has no end",
        f"{hint}; or raise the limit with {option('max-input')}",
    )


class StreamedText:
    """The lines of a stream for two readers: one translates them, the other restores the text around them.

    The reader that is ahead waits for more input. To the other it is a layout like that of any file.
    """

    def __init__(self, lines: Iterator[list[Line[Layout]]]) -> None:
        self._lines = lines
        self._untranslated: deque[list[Line[Layout]]] = deque()
        self._unwritten: deque[list[Line[Layout]]] | None = None  # None until `restore` is called

    def to_translate(self) -> Iterator[list[Line[Layout]]]:
        """Yield lines, as many at once as are available."""
        while self._untranslated or self._more():
            yield self._untranslated.popleft()

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the text with translations for sentences, each as soon as its translation is there."""
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
