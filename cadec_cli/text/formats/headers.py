"""What the head of a subtitle file says of its language."""

import re

_BLANK_LINE = re.compile(r"\r\n\r\n|\n\n|\r\r")
_LANGUAGE = re.compile(r"(?<=[\r\n])(Language[ \t]*:[ \t]*)[\w-]+")


def with_language(text: str, language: str) -> str:
    """Name another language in a WebVTT header, if it names one; nothing else is changed."""
    blank = _BLANK_LINE.search(text)
    header = text[: blank.start()] if blank else text
    if not header.lstrip("\ufeff").startswith("WEBVTT"):
        return text
    return _LANGUAGE.sub(lambda found: found[1] + language, header) + text[len(header) :]
