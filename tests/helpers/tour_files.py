"""The files of the tour: those of tests/tour/files, and those whose bytes matter more than their words.

The latter (encodings, line ends, sizes, odd characters) are made here, so that they can be read in a review
and no editor or checkout changes them.
"""

import gzip
import shutil
from pathlib import Path

WRITTEN = Path(__file__).parents[1] / "tour" / "files"

LETTER = """Dear Zoë,

The café in the Rue Molière charges £3 for a crème brûlée.
That is 50¢ more than last year, and it is only 10 cm wide!

Yours, André
"""

RUSSIAN = """Привет! Как дела?
Мы ждём тебя в субботу.
"""

SUBTITLES = """1
00:00:01,000 --> 00:00:02,500
Good evening, everybody.

2
00:00:02,600 --> 00:00:05,000
<i>The show begins in five minutes,
so please take your seats.</i>

3
00:00:05,100 --> 00:00:07,000
- Is this seat free?
- Yes.
"""

PAGE = """The first page is short.

The second one, too. It has 2 sentences.
"""

# Form feed, vertical tab, escape, bell, backspace, delete, next line, zero-width space, soft hyphen,
# line separator, direction marks, non-breaking spaces.
CONTROL = (
    "The first page ends here.\n\x0c\nThe second\x0bpage begins here.\n"
    "\x1b[31mThis was red.\x1b[0m\nThe bell\x07 rang.\nA mis\x08take\x7f was made.\n"
    "One\x85two\u2028three\u2029four.\nzero\u200bwidth and soft\u00adhyphen\n\u200b\n"
    "\u202aFrom left to right\u202c\nIt costs 5\u00a0000\u202fdollars.\n\x01\x02\x03\n"
    "\u3000A wide space before it.\n"
)

NUL = "Nothing\x00is here.\n\x00\n\x00\x00The end.\x00\n"

# No full stop, no comma: nowhere to split but between words.
_WALK = "the man walked along the river and saw the old bridge "
LONG_SENTENCE = (_WALK * 1000).split()[:10_000]

# Many lines, few of them different, and most with nothing to translate.
LARGE = "".join(
    f"{number % 10}\n\n" if number % 50 else "***\nThe night was cold.\n\n" for number in range(5000)
)

MADE: dict[str, bytes] = {
    "letter-latin1.txt": LETTER.encode("latin-1"),
    "russian-cp1251.txt": RUSSIAN.encode("cp1251"),
    "notes-utf16.txt": ("\ufeff" + PAGE).replace("\n", "\r\n").encode("utf-16-le"),
    "windows.srt": ("\ufeff" + SUBTITLES).replace("\n", "\r\n").encode(),
    "windows.txt": ("\ufeff" + PAGE).replace("\n", "\r\n").encode(),
    "macintosh.txt": PAGE.replace("\n", "\r").encode(),
    "mixed-ends.txt": b"One line.\r\nAnother line.\n\r\n\nThe last line.\r\n",
    "empty.txt": b"",
    "empty.srt": b"",
    "only-bom.txt": "\ufeff".encode(),
    "only-space.txt": "  \t \u00a0 ".encode(),
    "control.txt": CONTROL.encode(),
    "nul.txt": NUL.encode(),
    "packed.txt.gz": gzip.compress(PAGE.encode(), mtime=0),
    "long-sentence.txt": (" ".join(LONG_SENTENCE) + "\n").encode(),
    "large.txt": LARGE.encode(),
}


def lay_out(directory: Path) -> None:
    """Put all files of the tour into a directory."""
    for path in sorted(WRITTEN.iterdir()):
        shutil.copy(path, directory)
    for name, data in MADE.items():
        (directory / name).write_bytes(data)
