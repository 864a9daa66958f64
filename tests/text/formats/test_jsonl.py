"""JSON lines keep their objects and get a translation added."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.text.documents import Document
from cadec_cli.text.formats.jsonl import JsonlLayout, read_jsonl
from cadec_cli.text.formats.layout import Source

FILE = """\
{"text": "Hello.", "id":7}
{"text": "Bye."}

{"text": "A.", "document": "x"}
{"text": "B.", "document": "x"}
{"document": "y", "text": "C."}
{"sentences": ["D.", " ", "E."]}
{"document": ["F."], "kept": null}
{"text": "G."}
"""


def read(text: str) -> tuple[tuple[Document, ...], JsonlLayout]:
    return read_jsonl(Source(text, name="f", format="jsonl", language="en"))


def test_documents() -> None:
    documents, _ = read(FILE)
    expected = [("Hello.", "Bye."), ("A.", "B."), ("C.",), ("D.", "E."), ("F.",), ("G.",)]
    assert [document.texts for document in documents] == expected


def test_objects_are_repeated_with_their_translation() -> None:
    _, layout = read(FILE)
    lines = "".join(layout.restore("12345678X")).splitlines()
    assert lines[0] == '{"text": "Hello.", "id":7, "translation": "1"}'
    assert lines[2] == ""
    assert lines[6] == '{"sentences": ["D.", " ", "E."], "translation": ["6", "", "7"]}'
    assert lines[7] == '{"document": ["F."], "kept": null, "translation": ["8"]}'
    assert len(lines) == len(FILE.splitlines())


def test_an_old_translation_is_replaced() -> None:
    _, layout = read('{"translation": "old", "text": "Hi", "lone": "\\ud800"}\r\n')
    (line,) = layout.restore(["Привет"])
    assert json.loads(line) == {"translation": "Привет", "text": "Hi", "lone": "\ud800"}
    assert line.endswith("}\r\n")
    line.encode()


def test_blank_sentences_are_not_translated() -> None:
    documents, layout = read('{"text": "  "}\n{"sentences": []}')
    assert documents == ()
    assert "".join(layout.restore([])) == (
        '{"text": "  ", "translation": ""}\n{"sentences": [], "translation": []}'
    )


def test_half_a_surrogate_pair_can_be_encoded() -> None:
    documents, _ = read('{"text": "a\\ud800b\\nc"}')
    assert documents[0].texts == ("a\ufffdb c",)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("{", "line 2 is not JSON"),
        ("hello", "line 2 is not JSON"),
        ("[" * 100_000, "line 2 is not JSON"),
        ('["a"]', "line 2 is JSON but not an object"),
        ('{"title": "x"}', 'line 2 has neither "text" nor "sentences"'),
        ('{"text": 5}', 'line 2 has neither "text" nor "sentences"'),
        ('{"sentences": ["a", 1]}', 'line 2: "sentences" holds something that is not a string'),
        ('{"text": "a", "document": ["b"]}', 'line 2: beside "text"'),
    ],
)
def test_malformed_lines_are_named(bad: str, message: str) -> None:
    with pytest.raises(CadecError) as error:
        read('{"text": "fine"}\n' + bad + "\n")
    assert error.value.message.startswith(f"f, {message}")
    assert error.value.hint


TEXT = st.text(max_size=8)
OBJECTS = st.one_of(
    st.fixed_dictionaries({"text": TEXT}, optional={"document": TEXT | st.integers(), "x": TEXT}),
    st.fixed_dictionaries({"sentences": st.lists(TEXT, max_size=3)}, optional={"x": st.none()}),
)


@given(st.lists(OBJECTS | st.none(), max_size=6), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_lines_are_kept(objects: list[dict[str, object] | None], end: str, ascii_only: bool) -> None:
    lines = ["" if found is None else json.dumps(found, ensure_ascii=ascii_only) for found in objects]
    text = end.join(lines)
    documents, layout = read(text)
    count = sum(map(len, documents))
    output = "".join(layout.restore(["t"] * count)).split(end)
    assert len(output) == max(1, len(lines))
    for found, line in zip(objects, output, strict=False):
        repeated = json.loads(line) if line else None
        if found is not None:
            assert repeated is not None
            del repeated["translation"]
        assert repeated == found
