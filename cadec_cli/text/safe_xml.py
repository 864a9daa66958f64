"""XML from anybody: parsed within bounds, with nothing expanded and nothing fetched.

A document that declares entities is refused, whoever reads it, and so is one that is nested too deeply. Names
of entities that are declared nowhere, such as HTML's `&nbsp;` in a book, are left as they are written.
"""

from __future__ import annotations

from collections.abc import Callable
from xml.parsers import expat

from cadec_cli.errors import CadecError

MAX_DEPTH = 120

StartHandler = Callable[[str, dict[str, str]], None]
EndHandler = Callable[[str], None]
TextHandler = Callable[[str], None]


def walk_xml(
    data: bytes,
    name: str,
    what: str = "XML",
    *,
    start: StartHandler | None = None,
    end: EndHandler | None = None,
    text: TextHandler | None = None,
) -> None:
    """Parse a document and call the handlers in its order; without handlers it is only checked.

    `name` is what messages call the file, and `what` the kind of file that it should be. A document that is
    not well-formed, is nested too deeply or declares entities is a CadecError.
    """
    parser = expat.ParserCreate()
    depth = 0

    def open_element(element: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise CadecError(f"{name} is nested more than {MAX_DEPTH} levels deep")
        if start is not None:
            start(element, attributes)

    def close_element(element: str) -> None:
        nonlocal depth
        depth -= 1
        if end is not None:
            end(element)

    def refuse(*_: object) -> None:
        raise CadecError(f"{name} declares XML entities, which are not read", "remove its <!ENTITY …> lines")

    parser.StartElementHandler, parser.EndElementHandler = open_element, close_element
    parser.EntityDeclHandler = refuse
    if text is not None:
        parser.CharacterDataHandler = text
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise CadecError(f"{name} is not {what}: {error}") from None
