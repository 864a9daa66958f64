"""XML from anybody: parsed, or refused with one error."""

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.text.safe_xml import MAX_DEPTH, walk_xml


def test_events() -> None:
    data = '<?xml version="1.0"?><a b="1">x<c/>&amp;é</a>'.encode()
    seen: list[object] = []
    walk_xml(data, "a.xml", start=lambda *both: seen.append(both), end=seen.append, text=seen.append)
    assert seen == [("a", {"b": "1"}), "x", ("c", {}), "c", "&", "é", "a"]


def test_entities_that_are_declared_nowhere_stay() -> None:
    data = b'<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://localhost/a.dtd"><p>a&nbsp;b</p>'
    seen: list[str] = []
    walk_xml(data, "a.xml", text=seen.append)
    assert seen == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "a.xml is not XML: no element found"),
        (b"<a>", "a.xml is not XML: no element found"),
        (b"<a></b>", "a.xml is not XML: mismatched tag"),
        (b"<a>&b;</a>", "a.xml is not XML: undefined entity"),
        (b'<?xml version="1.0" encoding="none"?><a/>', "a.xml is not XML"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "declares XML entities"),
        (b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "declares XML entities"),
        (b'<!DOCTYPE a [<!ENTITY % b SYSTEM "http://localhost/b"> %b;]><a/>', "declares XML entities"),
        (b"<a>" * (MAX_DEPTH + 1), f"nested more than {MAX_DEPTH} levels"),
    ],
)
def test_what_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(CadecError, match=said):
        walk_xml(data, "a.xml")
