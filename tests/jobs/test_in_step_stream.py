"""Text translated as it comes: the same bytes as from a file, however it is cut, and as early as can be."""

import codecs
import gc
import io
import itertools
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.errors import CadecError, UsageError
from cadec_cli.fs.read import TextStream, decode
from cadec_cli.jobs.in_step import FileTranslation, StreamTranslation
from cadec_cli.jobs.json_lines import json_bytes
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.options import TranslationOptions
from cadec_cli.method.searches import search_kind
from cadec_cli.text.formats import LINES, StreamedText, TextFile, read_text_file, stream_lines
from cadec_cli.text.formats.conversion import as_it_comes_in_encoding, in_encoding
from cadec_cli.text.formats.layout import Layout, Line
from tests.helpers.fakes import TableLM


class ShoutingNMT:
    """Three ways to say a sentence, all of the same probability: the context decides."""

    def nbest(self, sentences: Sequence[str], count: int) -> list[NBest]:
        return [
            NBest(
                sentence,
                tuple(
                    Hypothesis(" ".join(word + end for word in sentence.split()), -1.0)
                    for end in ("!", "?", "…")
                    if sentence.split()
                )[:count],
            )
            for sentence in sentences
        ]

    def log_probs(self, sentences: Sequence[str], targets: Sequence[str]) -> list[float]:
        return [-1.0 for _ in targets]

    def fits(self, sentence: str, target: str = "") -> bool:
        return len(sentence.split()) <= 6

    def split(self, sentence: str) -> list[str]:
        words = sentence.split()
        return [" ".join(words[start : start + 6]) for start in range(0, len(words), 6)]


class Calls(dict[tuple[str, str], float]):
    """Every word calls for every other, by a number that stands for nothing."""

    def get(self, key: Any, default: Any = None) -> float:
        return zlib.crc32(" ".join(key).encode("utf-8", "replace")) % 1000 / 1000


def translator(search: str) -> Translator:
    models = ModelSet(translation=ShoutingNMT(), language=TableLM(Calls()))
    return Translator(models, TranslationOptions(search=search, protect=False, paths=3), language="en")


class Bits(io.RawIOBase):
    """A stream of given reads; `asked` is called before each."""

    def __init__(self, bits: Iterable[bytes], asked: Any = lambda: None) -> None:
        self._bits, self._asked = iter(bits), asked

    def read(self, size: int = -1) -> bytes:
        self._asked()
        return next(self._bits, b"")


class Trickle(TextStream):
    """A stream that is told whether more is there, again and again."""

    def __init__(
        self, stream: Bits, name: str, encoding: str | None = None, there: Sequence[bool] = (False,)
    ):
        super().__init__(stream, name, encoding)
        self._there, self._times = there, 0

    def waiting(self) -> bool:
        self._times += 1
        return self._there[self._times % len(self._there)]


def streaming(
    stream: TextStream,
    search: str = "rerank",
    format: str = "text",
    lines: bool = False,
    before: Context | None = None,
    written: str = "utf-8",
) -> StreamTranslation:
    whole = not search_kind(search).is_greedy
    text = StreamedText(stream_lines(stream, format, language="en", lines=lines, whole_documents=whole))
    file = as_it_comes_in_encoding(TextFile((), text, stream.encoding, format), written)
    return StreamTranslation(translator(search), text, file, before=before or Context())


def result(work: FileTranslation | StreamTranslation, as_json: bool) -> bytes:
    return b"".join(json_bytes(work.in_order(), work.judge) if as_json else work.restore(work.in_order()))


LINES_OF_TEXT = st.sampled_from(
    [
        *("Who are you? I saw you.", "you", "  we go. we stay", "Mr. X went home.", "É ß 語 🙂", "\ufeff"),
        *(
            "",
            "",
            " ",
            "\t",
            "```",
            "~~~ x",
            "---",
            "a: b",
            "- b",
            "# c",
            "a\rb",
            "one two three four five six se",
        ),
    ]
)
ENCODINGS = ["utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "gb18030"]
OBJECTS = st.sampled_from(
    [
        *('{"text": "you go"}', '{"text": "é 🙂", "document": 1}', '{"text": "go", "document": 2}'),
        *('{"sentences": ["a b", " ", "c"]}', '{"document": ["x"], "k": [1 , 2]}', '{"text": " "}'),
        *('{"text": "a", "translation": "b"}', "", "  ", '{"sentences": []}'),
    ]
)


@st.composite
def inputs(draw: st.DrawFn) -> tuple[bytes, str, str]:
    """The bytes of a file, its format and its encoding."""
    format = draw(st.sampled_from(["text", "text", "jsonl"]))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"] if format == "text" else ["\n", "\r\n"]))
    text = end.join(draw(st.lists(OBJECTS if format == "jsonl" else LINES_OF_TEXT, max_size=12)))
    text = draw(st.sampled_from(["", "\ufeff", f"---{end}"])) + text if format == "text" else text
    text += draw(st.sampled_from(["", end, end + end]))
    encoding = draw(st.sampled_from(ENCODINGS))
    return text.encode(encoding), format, encoding


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    inputs(),
    st.lists(st.integers(0, 400), max_size=12),
    st.lists(st.booleans(), min_size=1, max_size=5),
    st.sampled_from(["rerank", "lattice", "sentence"]),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_a_stream_is_translated_as_the_file_however_it_comes(
    tmp_path: Path,
    given: tuple[bytes, str, str],
    cuts: list[int],
    there: list[bool],
    search: str,
    flags: tuple[bool, bool, bool],
    written: str,
) -> None:
    data, format, encoding = given
    lines, as_json, after = flags
    path = tmp_path / "input"
    path.write_bytes(data)
    before = Context(((0,),)) if after else Context()
    file = read_text_file(path, language="en", lines=lines, encoding=encoding, format=format)
    whole = FileTranslation(translator(search), [in_encoding(file, written)], before=before)
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    bits = [data[start:stop] for start, stop in itertools.pairwise(places)]
    stream = Trickle(Bits(bits), str(path), encoding, there)
    came = streaming(stream, search, format, lines, before, written)
    assert result(came, as_json) == result(whole, as_json)
    assert came.sentences == whole.sentences
    found = [(one.document, one.sentence, one.place) for one in whole.in_order()]
    again = streaming(Trickle(Bits(bits), str(path), encoding, there), search, format, lines, before)
    assert [(one.document, one.sentence, one.place) for one in again.in_order()] == found


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.sampled_from([b"a", b"\n", b"\xc3\xa9", b"\xf0\x9f\x99\x82", b"\xff", b"\xfe", b"\0", b"\x81"])
    ).map(b"".join),
    st.lists(st.integers(0, 40), max_size=6),
    st.sampled_from([None, "utf-8", "utf-16", "utf-32", "shift_jis", "cp1251", "utf-7"]),
)
@example(b"\xff\xfe", [1], None)
@example(b"\xff\xfe\0\0", [1, 2, 3], None)
def test_bytes_are_the_same_text_or_the_same_error(
    data: bytes, cuts: list[int], encoding: str | None
) -> None:
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    bits = (data[start:stop] for start, stop in itertools.pairwise(places) if start < stop)
    stream = TextStream(Bits(bits), "f", encoding)
    text, told = "", None
    try:
        while piece := stream.read():
            text += piece
    except CadecError as error:
        told = (error.message, error.hint)
    try:
        assert (text, stream.encoding, told) == (*decode(data, encoding, "f"), None)
    except CadecError as error:
        assert told == (error.message, error.hint)
        with pytest.raises(UnicodeDecodeError) as found:
            data.decode(stream.encoding)
        assert text == data[: found.value.start].decode(stream.encoding)


@pytest.mark.parametrize("encoding", ["rot13", "no-such", "undefined", "x\0y"])
def test_an_unknown_encoding_is_a_usage_error_at_once(encoding: str) -> None:
    with pytest.raises(UsageError, match="unknown encoding"):
        TextStream(Bits([]), "f", encoding)


@pytest.mark.parametrize(
    ("search", "bits", "expected"),
    [
        # what is out when the stream is asked for more
        ("rerank", [b"you go.\nwe", b" go.\n", b"\n"], ["", "you!", "you! we!", "you! we! |"]),
        ("lattice", [b"you go.\nwe", b" go.\n", b"\n", b"they"], ["", "", "", "you! we! |", "you! we! |"]),
    ],
)
def test_what_is_complete_is_written_before_more_is_asked_for(
    search: str, bits: list[bytes], expected: list[str]
) -> None:
    out: list[bytes] = []
    seen = []
    work = streaming(Trickle(Bits(bits, lambda: seen.append(b"".join(out).decode())), "f"), search)
    out.extend(work.restore(work.in_order()))
    for text, shown in zip(seen, expected, strict=False):
        lines = text.split("\n")
        assert [bool(line) for line in lines[:-1]] == [word != "|" for word in shown.split()], seen
        assert lines[-1] == ""


def test_json_lines_are_a_document_each_or_go_on_with_one() -> None:
    objects = [{"text": "you go", "document": 1}, {"text": "we go", "document": 1}, {"sentences": ["a", "b"]}]
    bits = [json.dumps(one).encode() + b"\n" for one in objects]
    out: list[bytes] = []
    seen = []
    work = streaming(Trickle(Bits(bits, lambda: seen.append(len(out))), "f"), format="jsonl")
    out.extend(work.restore(work.in_order()))
    assert seen == [0, 1, 2, 3] and work.sentences == 4


def test_what_comes_before_an_error_is_written_and_the_error_has_its_line() -> None:
    for search, data, told in (
        ("rerank", b"you go.\nwe go.\nth\xffey go.\n", "f: line 3 is not utf-8"),
        ("lattice", b"you go.\nwe go.\nth\xffey go.\n", "f: line 3 is not utf-8"),
        ("rerank", b"---\na: b\n\xff", "f: line 3 is not utf-8"),
    ):
        work = streaming(TextStream(Bits([data]), "f", "utf-8"), search)
        out: list[bytes] = []
        with pytest.raises(CadecError, match=told):
            out.extend(work.restore(work.in_order()))
        assert b"".join(out).count(b"\n") == 2
    work = streaming(TextStream(Bits([b'{"text": "you go"}\n', b'{"text": 3}\n']), "f"), format="jsonl")
    out = []
    with pytest.raises(CadecError, match="f, line 2 has neither"):
        out.extend(work.restore(work.in_order()))
    assert len(out) == 1 and b'"translation": "you' in out[0]


@pytest.mark.parametrize("whole", [True, False])
def test_what_never_ends_is_an_error_and_no_full_memory(whole: bool) -> None:
    forever = itertools.chain([b"we go.\n\n"], itertools.repeat(b"you go. \n" if whole else b"you go. "))
    kind = "document" if whole else "line"
    found: list[Line[Layout]] = []
    with pytest.raises(CadecError, match=f"after 10,000 characters, the {kind}"):
        for lines in stream_lines(
            TextStream(Bits(forever), "f"), "text", language="en", whole_documents=whole, most_held=10_000
        ):
            found += lines
    assert [sentence.text for line in found for sentence in line.sentences] == ["we go."]


@pytest.mark.parametrize("restored", [True, False])
def test_memory_does_not_grow_with_the_stream(restored: bool) -> None:
    stream = TextStream(Bits(b"we go there\n" * 1000 for _ in range(20)), "f")
    text = StreamedText(stream_lines(stream, "text", language="en", lines=True))
    taken = 0

    def translations() -> Iterator[str]:
        nonlocal taken
        for lines in text.to_translate():
            assert sum(type(one) is Line for one in gc.get_objects()) < 3 * LINES
            taken += len(lines)
            yield from (sentence.text for line in lines for sentence in line.sentences)

    for _ in text.restore(translations()) if restored else translations():
        pass
    assert taken == 20_000


def test_settings_at_the_head_wait_for_their_end_and_no_longer() -> None:
    for count, are_settings in ((1, True), (60, True), (61, False)):
        head = "---\n" + "a: we go\n" * count + "---\n"
        bits = [f"{line}\n".encode() for line in f"{head}you go".split("\n")]
        work = streaming(Trickle(Bits(bits), "f"))
        lines = [one.place for one in work.in_order()]
        assert (lines == [f"line {count + 3}"]) is are_settings
    read: list[None] = []
    work = streaming(
        Trickle(Bits([b"---\n", b"a: b\n", b"we go.\n", b"you go.\n"], lambda: read.append(None)), "f")
    )
    next(work.in_order())
    assert len(read) == 3  # that this line is no setting is known when it is there


def test_a_byte_order_mark_is_that_of_the_stream() -> None:
    data = codecs.BOM_UTF8 + b"you go.\n"
    kept = result(streaming(TextStream(Bits([data[:2], data[2:]]), "f")), as_json=False)
    assert kept.startswith(codecs.BOM_UTF8)
    encoded = codecs.BOM_UTF16_BE + "you go.\n".encode("utf-16-be")
    bare = result(streaming(TextStream(Bits([encoded[:1], encoded[1:]]), "f", "utf-16")), as_json=False)
    assert bare.startswith(b"you")
