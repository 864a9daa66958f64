"""Files of other formats, recognised by their names and by how they begin, so that none is mangled as text.

What the table of formats reads is in the table; the hint then names the format. This module knows the others
by their endings, and how files begin that people give as text: archives, office documents, pictures, pages,
catalogues and subtitles. It knows nothing of what is in them.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.read import marked_encoding

_ENDINGS = (
    ".pdf .doc .docx .docm .odt .ott .rtf .pages .xls .xlsx .ods .ppt .pptx .odp .epub .mobi .azw .azw3 .fb2"
    " .djvu .htm .html .xhtml .mht .xml .json .json5 .arb .yaml .yml .toml .po .pot .xlf .xliff .tmx .tbx"
    " .strings .stringsdict .xcstrings .resx .properties .ini .csv .tsv"
    " .sub .idx .sup .sbv .ttml .dfxp .smi .stl .scc .lrc .usf .mpl"
    " .mp3 .mp4 .m4a .m4v .mkv .avi .mov .webm .wav .flac .ogg .opus"
    " .png .jpg .jpeg .gif .webp .svg .tif .tiff .bmp .ico .psd"
    " .zip .tar .tgz .7z .rar .bz2 .jar .apk .exe .dll .bin .iso .db .sqlite .ttf .otf .woff .woff2"
    " .safetensors .gguf .npz .npy .pickle .pkl"
)
# Endings of files that are not plain text, for as long as no format in the table has them. None is the code
# of a language: corpora are called dev.so or dev.ts.
FOREIGN_ENDINGS = frozenset(_ENDINGS.split())

# How binary files begin: an ending that they usually have.
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", ".pdf"),
    (b"{\\rtf", ".rtf"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", ".doc"),
    (b"\x89PNG\r\n\x1a\n", ".png"),
    (b"\xff\xd8\xff", ".jpg"),
    (b"GIF87a", ".gif"),
    (b"GIF89a", ".gif"),
    (b"RIFF", ".avi"),
    (b"OggS", ".ogg"),
    (b"ID3", ".mp3"),
    (b"\x1aE\xdf\xa3", ".mkv"),
    (b"\x1f\x8b\x08", ".gz"),
    (b"\xfd7zXZ\0", ".xz"),
    (b"\x28\xb5\x2f\xfd", ".zst"),
    (b"BZh", ".bz2"),
    (b"7z\xbc\xaf\x27\x1c", ".7z"),
    (b"Rar!\x1a\x07", ".rar"),
    (b"SQLite format 3\0", ".sqlite"),
    (b"\x7fELF", ".so"),
    (b"\xde\x12\x04\x95", ".mo"),
    (b"\x95\x04\x12\xde", ".mo"),
    (b"GGUF", ".gguf"),
    (b"wOF", ".woff"),
)
# These begin with letters that a text may begin with: they must have bytes that no text has.
_LIKE_TEXT = frozenset({b"RIFF", b"OggS", b"ID3", b"BZh", b"GGUF", b"wOF"})
_ZIP = b"PK\x03\x04"
_BEGINNING = 1 << 12
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_FEWEST_CONTROLS = 8

_BLANK = r"\ufeff?\s*"
_ROOT = re.compile(r"<(?:!DOCTYPE\s+)?([\w:]+)", re.IGNORECASE)
_ROOTS = {
    "html": ".html",
    "head": ".html",
    "body": ".html",
    "xliff": ".xlf",
    "tt": ".ttml",
    "tmx": ".tmx",
    "ts": ".ts",
    "resources": ".xml",
    "svg": ".svg",
}
# How text of other formats begins; each pattern is matched at the beginning only.
_TEXTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(_BLANK + r"(?:#[^\n]*\n\s*){0,99}(?:msgctxt\s+\"[^\n]*\s+)?msgid\s+\""), ".po"),
    (re.compile(_BLANK + r"\{(?:[^\n]*,)?[ ]*\"(?:text|sentences)\":[^\n]*\}[ \t\r]*(?:\n|$)"), ".jsonl"),
    (re.compile(_BLANK + r"(?:\[\s*)?\{\s*\"(?:[^\"\\\n]|\\.){0,200}\"\s*:"), ".json"),
    (re.compile(_BLANK + r"\[\s*\"(?:[^\"\\\n]|\\.){0,2000}\"\s*[,\]]"), ".json"),
    (re.compile(r"\ufeff?WEBVTT(?:\s|$)"), ".vtt"),
    (re.compile(_BLANK + r"\[Script Info\]"), ".ass"),
    (re.compile(_BLANK + r"(?:\d+[ \t\r]*\n)?[ \t]*\d{1,2}:\d\d:\d\d[,.]\d{1,3}\s*-->\s*\d"), ".srt"),
    (re.compile(_BLANK + r"\{\d+\}\{\d+\}[^\n]*\n\{\d+\}\{\d+\}"), ".sub"),
    (re.compile(_BLANK + r"\d:\d\d:\d\d\.\d{3},\d:\d\d:\d\d\.\d{3}\s*\n"), ".sbv"),
)

# (an ending) → the name of the format that reads such files; None if there is none
Known = Callable[[str], str | None]


def refuse_name(ending: str, name: str, known: Known) -> None:
    """Refuse a file whose ending says that it is not plain text and that no format reads."""
    ending = ending.lower()
    if ending in FOREIGN_ENDINGS and known(ending) is None:
        raise CadecError(
            f"{name}: {ending} files can't be read",
            f"save it as text; if it is text, {option('format', 'text')} reads every line of it",
        )


def refuse_binary(data: bytes, name: str, known: Known, encoding: str | None) -> None:
    """Refuse a file for a text format whose bytes are no text in the encoding."""
    ending = binary_kind(data)
    if ending in (".gz", ".xz", ".zst"):
        raise CadecError(
            f"{name} is compressed", f"name it so: {ending} files are decompressed when they are read"
        )
    if ending is not None:
        raise CadecError(f"{name} is a binary file{_like(ending)}, not text", _hint(ending, known))
    wide = wide_encoding(data) if encoding is None or codecs_name(encoding) == "utf-8" else None
    if wide is not None:
        raise CadecError(
            f"{name} is not utf-8, but seems to be {wide} without a byte order mark",
            f"say which encoding it is with {option('encoding')}, e.g. {option('encoding', wide)}"
            if encoding is not None
            else f"convert the file to UTF-8 first, e.g. with iconv -f {wide} -t utf-8",
        )
    wide = marked_encoding(data) or encoding
    if wide is None or not codecs_name(wide).startswith(("utf-16", "utf-32")):
        start = data[: 16 * _BEGINNING]
        controls = len(_CONTROLS.findall(start))
        if controls >= _FEWEST_CONTROLS and controls * 50 >= len(start):
            raise CadecError(f"{name} is a binary file, not text", "is it the right file?")


def refuse_text(text: str, name: str, known: Known) -> None:
    """Refuse text for the plain text format that begins as a file of another format does."""
    ending = text_kind(text)
    if ending is not None:
        raise CadecError(f"{name} is not plain text: it begins as {ending} files do", _hint(ending, known))


def binary_kind(data: bytes) -> str | None:
    """Return an ending for binary data; None if it may be text."""
    if data.startswith(_ZIP):
        return _zip_kind(data)
    for magic, ending in _MAGIC:
        if data.startswith(magic) and (magic not in _LIKE_TEXT or _CONTROLS.search(data, 0, _BEGINNING)):
            return ending
    return ".mp4" if data[4:8] == b"ftyp" and b"\0" in data[:8] else None


def _zip_kind(data: bytes) -> str:
    start = data[:200]
    for mark, ending in (
        (b"application/epub+zip", ".epub"),
        (b"application/vnd.oasis.opendocument.text", ".odt"),
        (b"application/vnd.oasis.opendocument.spreadsheet", ".ods"),
        (b"application/vnd.oasis.opendocument.presentation", ".odp"),
    ):
        if mark in start:
            return ending
    for mark, ending in ((b"word/", ".docx"), (b"xl/", ".xlsx"), (b"ppt/", ".pptx")):
        if mark in data:
            return ending
    return ".zip"


def text_kind(text: str) -> str | None:
    """Return the ending of the format that a text begins as; None if it may be plain text."""
    start = text[:_BEGINNING].lstrip("\ufeff \t\r\n")
    if start.startswith("<"):
        return _markup_kind(start)
    return next((ending for pattern, ending in _TEXTS if pattern.match(start)), None)


def _markup_kind(start: str) -> str | None:
    """Return the ending for a text that begins with a tag: that of a page, or of a file that is XML."""
    declared = start.startswith("<?xml")
    while start.startswith(("<?", "<!--")):
        end = "?>" if start.startswith("<?") else "-->"
        start = start.partition(end)[2].lstrip()
    root = _ROOT.match(start)
    ending = _ROOTS.get(root[1].lower()) if root else None
    return ending if ending == ".html" else (ending or ".xml") if declared else None


def wide_encoding(data: bytes) -> str | None:
    """Return UTF-16 in the byte order that data without a byte order mark has; None if they are not that."""
    start = data[:_BEGINNING]
    if len(start) < 4 or len(start) % 2 or b"\0" not in start or marked_encoding(start) is not None:
        return None
    zeros = start[::2].count(0), start[1::2].count(0)
    if max(zeros) * 50 < len(start) or min(zeros) * 10 > max(zeros):
        return None
    wide = "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
    try:
        text = start.decode(wide)
    except UnicodeDecodeError:
        return None
    shown = sum(character.isprintable() or character.isspace() for character in text)
    return wide if shown * 10 >= len(text) * 9 else None


def codecs_name(encoding: str) -> str:
    """Return Python's name of an encoding; of an unknown one, the name as it is."""
    try:
        return codecs.lookup(encoding).name
    except (LookupError, ValueError, TypeError):
        return encoding


def _like(ending: str) -> str:
    return f" such as {ending}"


def _hint(ending: str, known: Known) -> str:
    format = known(ending)
    if format is None:
        return "save it as plain text first"
    return f"{option('format', format)} reads it, and so does a name that ends in {ending}"
