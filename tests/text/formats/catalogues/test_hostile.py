"""Catalogues from anybody: bombs, depths, damage. One clear error or a sensible result, and soon."""

import csv
import io

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.text.formats.catalogues import po
from cadec_cli.text.formats.catalogues.json_strings import json_strings
from tests.helpers import catalogue_files
from tests.helpers.catalogue_files import read, sentences, translate

LAUGHS = """<?xml version="1.0"?><!DOCTYPE resources [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
]><resources><string name="x">&b;</string></resources>"""
FETCHED = '<!DOCTYPE tt SYSTEM "file:///etc/passwd"><tt><body><p begin="1s" end="2s">&x; here</p></body></tt>'


@pytest.mark.parametrize(
    ("format", "content", "said"),
    [
        ("android", LAUGHS, "declares XML entities"),
        ("ttml", FETCHED, "entit"),
        ("xliff", "<xliff>" + "<group>" * 300, "levels deep"),
        ("xliff", "<xliff><file></xliff>", "not well-formed XML"),
        ("android", "<html><body>Hello.</body></html>", "no string resources"),
        ("xliff", "<tt/>", "is not XLIFF"),
        ("ttml", "<xliff/>", "is not TTML"),
        ("ttml", '<tt><body><p begin="soon">Now.</p></body></tt>', "is not a time"),
        ("json", "[" * 5000, "levels deep"),
        ("json", "[" * 200 + "]" * 200, "levels deep"),
        ("json", '{"a": "b",}', "line 1 is not JSON"),
        ("json", '{"a": "b"}\n{"a": "c"}', "is .jsonl"),
        ("yaml", "a: [" * 200, "a.yaml"),
        ("yaml", "a: 'open", "is not YAML"),
        ("yaml", "\x00", "is not YAML"),
        ("yaml", "a: *nowhere", "a.yaml"),
        ("po", 'msgid "a"\nmsgid "b"', "no msgid or no msgstr"),
        ("po", 'msgid "a"\nmsgstr "b\n', "line 2 is not as gettext writes it"),
        ("po", 'msgstr "a"\nmsgid "b"\n', "no msgid or no msgstr"),
        ("po", "Hello.", "line 1"),
        ("strings", '"a" = "b"', "line 1"),
        ("strings", "/* never ends", "line 1"),
        ("strings", "<?xml version='1.0'?><plist/>", "line 1"),
        ("sbv", "Hello.", "there are no times"),
        ("sub", "[INFORMATION]\n", "is not MicroDVD"),
    ],
)
def test_what_is_not_in_its_format_is_refused(format: str, content: str, said: str) -> None:
    try:
        documents, _ = read(content, format)
    except CadecError as error:
        assert said in error.message + error.hint
    else:
        assert format == "yaml" and said == "a.yaml" and not sentences(documents)


def test_tables_name_their_columns() -> None:
    with pytest.raises(CadecError, match="which columns to translate is not known") as error:
        read(catalogue_files.CSV, "csv")
    assert "id, name, description, fr" in error.value.hint
    for asked in ("titel", "0", "99999", "²"):
        with pytest.raises(CadecError, match="has no column"):
            read(catalogue_files.CSV, "csv", columns=(asked,))
    for twice in (("name", "2"), ("name=fr", "fr")):
        with pytest.raises(CadecError, match="translated only once"):
            read(catalogue_files.CSV, "csv", columns=twice)


def test_aliases_cost_nothing() -> None:
    lines = ['a0: &a0 ["A line of text"]']
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 20)}]" for n in range(1, 30)]
    content = "\n".join(lines)
    assert sentences(read(content, "yaml")[0]) == ["A line of text"]
    assert "Une ligne" in translate(content, "yaml", "Une ligne")


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("po", 'msgid ""\n' + '"word "\n' * 40_000 + 'msgstr ""\n'),
        ("po", "#: a.c:1\n" * 40_000 + 'msgid "A word."\nmsgstr ""\n'),
        ("json", '{"a": "' + "{n, plural, " * 8_000 + '"}'),
        ("json", '["' + "{" * 100_000 + '"]'),
        ("json", '["' + "<a " * 60_000 + '"]'),
        ("json", "[" + "1" * 300_000 + ', "Two words"]'),
        ("json", "[" + '"ab", ' * 4_000 + '"Two words"]'),
        ("arb", '{"a": "' + "Hello {" * 8_000 + '"}'),
        ("android", "<resources>" + "<string>" + "<b>a word</b> " * 3_000 + "</string></resources>"),
        ("android", "<resources><string name='a'>" + "<!-- a -->" * 20_000 + "x word</string></resources>"),
        ("xliff", "<xliff>" + "<file><body/></file>" * 20_000 + "</xliff>"),
        ("strings", "/* a */" * 40_000 + '"a" = "Two words";'),
        ("strings", '"a" = "' + "\\n" * 100_000 + 'Two words";'),
        ("csv", '"a,' * 60_000),
        ("csv", '"' + '""' * 60_000),
        ("csv", ("," * 1000 + "\n") * 100),
        ("sbv", "0:00:01.000,0:00:02.000\n" * 20_000),
        ("sub", "{1}{2}" + "{y:i}" * 20_000 + "Two words|" * 10_000),
        ("yaml", "- Two words\n" * 3_000),
    ],
    ids=lambda one: str(one)[:24],
)
def test_much_of_the_same_is_read(format: str, content: str) -> None:
    """In quadratic time, these would take minutes."""
    columns = ("1",) if format == "csv" else ()
    documents, layout = read(content, format, columns=columns)
    written = "".join(map(str, layout.restore(one for doc in documents for one in doc.texts)))
    assert format in catalogue_files.FILLED or written == content


def test_numbers_of_any_size_and_keys_that_occur_twice() -> None:
    content = '{"n": ' + "9" * 10_000 + ', "a": "First one", "a": "Second one", "x": 1e999999, "y": NaN}'
    assert [one.text for one in json_strings(content, "a.json")] == ["First one", "Second one"]
    assert translate(content, "json", "x {}") == content.replace('"First', '"x First').replace(
        '"Second', '"x Second'
    )


# ---- the grammars of the formats, as their libraries see them

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=30)


@given(TEXTS)
def test_po_escapes(text: str) -> None:
    escaped = po.escape(text)
    assert po.unescape(escaped) == text and '"' not in escaped.replace('\\"', "") and "\n" not in escaped


CELLS = st.lists(st.sampled_from(["a", "Two words.", '"', ",", ";", "\n", " ", "é"]), max_size=5).map("".join)


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=6), st.sampled_from(",;\t|"))
def test_tables_are_what_csv_sees(rows: list[list[str]], delimiter: str) -> None:
    rows = [["a", "b", "c"], *rows]
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
    kind = "tsv" if delimiter == "\t" else "csv"
    assert translate(out.getvalue(), kind, columns=("b",)) == out.getvalue()
    written = translate(out.getvalue(), kind, 'x,;|\t"{}"\'', columns=("b",))
    again = list(csv.reader(io.StringIO(written, newline=""), delimiter=delimiter))
    assert [[row[0], row[2]] for row in again] == [[row[0], row[2]] for row in rows]
    assert all("Two" not in old[1] or "x,;" in new[1] for old, new in zip(rows, again, strict=True))


KEYS = st.sampled_from(["a", "type", "title", "@x", "é"])
VALUES = st.one_of(
    st.sampled_from(["Two words.", "It's: here # now", "button", "", "- a", "{n} b", "x\ny", "no", "12"]),
    st.integers(),
    st.none(),
    st.booleans(),
)
TREES = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(TREES, st.sampled_from([None, '"', "'"]), st.booleans(), st.booleans())
def test_yaml_is_what_pyyaml_sees(tree: object, style: str | None, flow: bool, mark: bool) -> None:
    content = "\ufeff" * mark + yaml.safe_dump(
        {"root": tree}, default_style=style, default_flow_style=flow, allow_unicode=True
    )
    assert translate(content, "yaml") == content
    written = translate(content, "yaml", "Voilà: '{}' # \"x\"")
    old, new = (yaml.safe_load(one.removeprefix("\ufeff")) for one in (content, written))
    assert_changed(old, new)


def assert_changed(old: object, new: object) -> None:
    if isinstance(old, dict) and isinstance(new, dict):
        assert list(old) == list(new)
        for key in old:
            assert_changed(old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list):
        assert len(old) == len(new)
        for one, other in zip(old, new, strict=True):
            assert_changed(one, other)
    elif old != new:
        assert isinstance(old, str) and isinstance(new, str) and "Voilà: '" in new
