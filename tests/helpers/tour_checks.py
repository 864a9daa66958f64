"""What must be the same in a file and its translation: lines, cues, spans; and what must not be new there.

Deliberately simple-minded and apart from the product's own rules, which it is there to judge.
"""

import re
from collections import Counter
from dataclasses import dataclass

SUBTITLES = (".srt", ".vtt", ".ass", ".ssa")

_EMOJI = r"[\u2600-\u27bf\U0001f300-\U0001faff][\ufe0f\U0001f3fb-\U0001f3ff]*"

# Spans that have to be in the translation exactly as often as in the source.
_COUNTED = {
    "URL": r"(?:https?|ftp)://[^\s<>\"'()\[\]]*[^\s<>\"'()\[\].,;:!?]|www\.[\w./-]*\w",
    "e-mail": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "code": r"`[^`\n]+`",
    "placeholder": r"\{\{[^{}]*\}\}|\$?\{[\w.:>]*\}|%\(\w+\)[sd]|%(?:\d\$)?(?:\.\d)?[sdf](?!\w)|%%",
    "variable": r"\$[A-Z_]{3,}",
    "tag": r"</?[a-zA-Z][^<>\n]*>|<[\d:.]+>|<!--.*?-->|\{\\[^{}\n]*\}",
    "emoji": rf"[\U0001f1e6-\U0001f1ff]{{2}}|{_EMOJI}(?:\u200d{_EMOJI})*",
    "file": r"[\w~./-]+\.(?:txt|md|json|toml|yaml|png|jpg|db|py|html)\b",
    "handle": r"(?<![\w/&])[@#]\w[\w-]+",
    "money": r"[$€£]\d(?:[\d.,]*\d)?",
    "phone": r"\+\d[\d ()-]{7,}\d",
    "entity": r"&\w+;",
}
# Spans that may be there more often: a translation may write “five” as 5, and is itself in another script.
_CONTAINED = {
    "number": r"(?<!\w)\d+(?:[.,:/-]\d+)*(?!\w)|[¼½¾]",
    "script": r"[^\W\d_a-zA-Zªº\u00c0-\u024f]+",
}
# In WebVTT an ampersand of the text is written so, and the text may well be translated without it.
_NOT_IN = {".vtt": ("entity",), ".ass": ("placeholder",), ".ssa": ("placeholder",)}

# What Russian prose is written with; anything else has to come from the source.
_PROSE = re.compile(r"[\sa-zA-Zа-яёА-ЯЁ\d.,!?:;…\-–—―«»„“”\"'’()№]")
_BROKEN = re.compile(r"<unk>|⁇|<0x[0-9A-Fa-f]{2}>|\ufffd")
_PREFIX = re.compile(r"\s*(?:(?:[>#|*-]+|\d+\.)\s+)*(?:\[[ x]\] )?")


def lost_spans(source: str, translation: str, suffix: str) -> list[str]:
    """Return which spans are not in the translation as they should be, each with its kind."""
    wrong = []
    for kind, pattern in {**_COUNTED, **_CONTAINED}.items():
        if kind in _NOT_IN.get(suffix, ()):
            continue
        wanted, found = (Counter(re.findall(pattern, text)) for text in (source, translation))
        different = wanted - found
        if kind in _COUNTED:
            different |= found - wanted
        wrong += [f"{kind} {span!r}: {wanted[span]} → {found[span]}" for span in different]
    return wrong


def junk(source: str, translation: str) -> list[str]:
    """Return what stands in a translation and neither comes from the source nor is written in Russian."""
    strange = sorted({one for one in translation if one not in source and not _PROSE.match(one)})
    broken = Counter(_BROKEN.findall(translation)) - Counter(_BROKEN.findall(source))
    return [f"U+{ord(one):04X} {one!r}" for one in strange] + list(broken)


def has_letters(text: str) -> bool:
    """Tell whether there is anything to translate."""
    return any(character.isalpha() for character in text)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without LF, or CR where there is no LF; a CR before LF stays."""
    return text.split("\n" if "\n" in text else "\r")


def white_space_around(line: str) -> tuple[str, str]:
    """Return the indentation of a line, and what white space it ends in."""
    return line[: len(line) - len(line.lstrip())], line[len(line.rstrip()) :]


def line_prefix(line: str) -> str:
    """Return the marks of a heading, a list item, a table row or a quotation."""
    found = _PREFIX.match(line)
    return found[0] if found else ""


@dataclass(frozen=True)
class CueText:
    """A cue as a reader sees it: all that is not text, and its lines."""

    frame: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def dashes(self) -> list[str]:
        """The dashes that lines begin with, tags left out."""
        plain = [re.sub(r"<[^>]*>|\{[^}]*\}", "", line) for line in self.lines]
        return [line[0] for line in plain if line[:1] in ("-", "–")]

    @property
    def speakers(self) -> int:
        """How many lines begin with a name and a colon."""
        return sum(bool(re.match(r"[^\W\d_][^:]{1,20}: ", line)) for line in self.lines)

    @property
    def signs(self) -> Counter[str]:
        """Music notes and brackets of sounds."""
        return Counter(re.findall(r"[♪#\[\]()]", re.sub(r"<[^>]*>|\{[^}]*\}", "", self.text)))


def cues_of(text: str, suffix: str) -> tuple[list[CueText], list[str]]:
    """Return the cues of subtitles, and all lines that belong to none."""
    return _events(text) if suffix in (".ass", ".ssa") else _timed(text)


def _timed(text: str) -> tuple[list[CueText], list[str]]:
    cues: list[CueText] = []
    rest: list[str] = []
    for block in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")):
        lines = block.split("\n")
        times = next((number for number, line in enumerate(lines) if "-->" in line), None)
        if times is None:
            rest += lines
        else:
            filled = tuple(line for line in lines[times + 1 :] if line.strip())
            cues.append(CueText("\n".join(lines[: times + 1]).strip(), filled))
    return cues, rest


def _events(text: str) -> tuple[list[CueText], list[str]]:
    cues: list[CueText] = []
    rest: list[str] = []
    for line in text.split("\n"):
        if line.startswith("Dialogue:"):
            *frame, said = line.split(",", 9)
            cues.append(CueText(",".join(frame), tuple(said.split("\\N"))))
        else:
            rest.append(line)
    return cues, rest
