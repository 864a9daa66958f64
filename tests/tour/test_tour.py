"""A tour of real-life files: what goes in comes out, translated, with nothing lost and nothing added.

All files are translated once, by the command and the embedded bundle; the tests look at what came out. What
they expect is computed from the input: see `tour_checks`.
"""

import gzip
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from cadec_cli.main import exit_code
from cadec_cli.text.formats import read_text_file
from tests.helpers import tour_files
from tests.helpers.marked_texts import page_shape
from tests.helpers.tour_checks import (
    SUBTITLES,
    cues_of,
    has_letters,
    junk,
    line_prefix,
    lines_of,
    lost_spans,
    white_space_around,
)

# Files that need something said about them; all others go through one command, without.
ENCODINGS = {
    "letter-latin1.txt": "latin-1",
    "russian-cp1251.txt": "cp1251",
    "notes-utf16.txt": "utf-16",
}
HUGE = ("long-sentence.txt", "large.txt")
AS_TEXT = ("table.csv",)  # whose cells are translated, whatever the columns are
OTHER_LANGUAGE = ("russian.txt", "russian-cp1251.txt")

NAMES = sorted({path.name for path in tour_files.WRITTEN.iterdir()} | set(tour_files.MADE))
JSONL = [name for name in NAMES if name.endswith(".jsonl")]
CUES = [name for name in NAMES if name.endswith(SUBTITLES)]
PAGES = [name for name in NAMES if name.endswith((".md", ".html"))]
PLAIN = [name for name in NAMES if name not in (*JSONL, *CUES, *PAGES)]

# What a person sees in a file, and simple rules might not: listed by hand.
LISTED: dict[str, list[str]] = json.loads(Path(__file__).with_name("spans.json").read_text("utf-8"))


@dataclass(frozen=True)
class Tour:
    """The directory of inputs as they were before and after, that of outputs, and how each command ended."""

    outputs: Path
    before: dict[str, bytes]
    after: dict[str, bytes]
    exits: dict[str, int]

    def source(self, name: str) -> str:
        data = self.before[name]
        if name.endswith(".gz"):
            data = gzip.decompress(data)
        return data.decode(ENCODINGS.get(name, "utf-8"))

    def written(self, name: str) -> bytes:
        """What was written for an input; a name that promises compression has to keep the promise."""
        (path,) = (path for path in self.outputs.iterdir() if path.name in _output_names(name))
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()

    def translation(self, name: str) -> str:
        """The translation as text: UTF-8, unless what was written is marked as the input's wide encoding."""
        data = self.written(name)
        return data.decode("utf-16" if data.startswith(b"\xff\xfe") else "utf-8")

    def lines(self, name: str) -> list[tuple[str, str]]:
        """Each line of a plain file with its translation."""
        source, translation = (lines_of(text) for text in (self.source(name), self.translation(name)))
        assert len(source) == len(translation)
        return list(zip(source, translation, strict=True))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("inputs")
    tour_files.lay_out(directory)
    return directory


@pytest.fixture(scope="module")
def tour(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Tour:
    outputs = tmp_path_factory.mktemp("outputs")
    before = _contents(inputs)
    plain = [name for name in NAMES if name not in (*ENCODINGS, *HUGE, *AS_TEXT)]
    exits = {"plain": _translate(inputs, plain, outputs, "--nbest", "4")}
    exits["huge"] = _translate(inputs, HUGE, outputs, "--nbest", "1")
    exits["text"] = _translate(inputs, AS_TEXT, outputs, "--nbest", "4", "--format", "text")
    for name, encoding in ENCODINGS.items():
        exits[name] = _translate(inputs, [name], outputs / name, "--nbest", "4", "--encoding", encoding)
    return Tour(outputs, before, _contents(inputs), exits)


def _output_names(name: str) -> set[str]:
    """What a translation may be called: as its input is, or with the language before the ending."""
    path = Path(name.removesuffix(".gz"))
    return {name, path.name, f"{path.stem}.ru{path.suffix}"}


def _translate(directory: Path, names: list[str] | tuple[str, ...], output: Path, *flags: str) -> int:
    paths = [str(directory / name) for name in names]
    return exit_code(["translate", *paths, "-o", str(output), *flags, "--threads", "1", "--quiet"])


def _contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_there_is_something_to_see() -> None:
    assert len(NAMES) >= 40 and len(CUES) >= 8


def test_every_command_succeeded(tour: Tour) -> None:
    assert set(tour.exits.values()) == {0}, tour.exits


def test_inputs_are_untouched(tour: Tour) -> None:
    digests = [
        {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
        for contents in (tour.before, tour.after)
    ]
    assert digests[0] == digests[1]


def test_nothing_is_left_lying_about(tour: Tour) -> None:
    allowed = {output for name in NAMES for output in _output_names(name)}
    assert {path.name for path in tour.outputs.iterdir()} <= allowed


@pytest.mark.parametrize("name", PLAIN)
def test_as_many_lines_with_the_same_ends_and_margins(name: str, tour: Tour) -> None:
    source, translation = tour.source(name), tour.translation(name)
    if name not in ENCODINGS:
        assert source.startswith("\ufeff") == translation.startswith("\ufeff")
    for before, after in tour.lines(name):
        assert bool(before.strip("\ufeff \t\r\x00")) == bool(after.strip("\ufeff \t\r\x00")), before
        assert white_space_around(before.lstrip("\ufeff")) == white_space_around(after.lstrip("\ufeff"))


@pytest.mark.parametrize("name", PLAIN)
def test_lines_without_letters_are_copied_and_others_have_some(name: str, tour: Tour) -> None:
    for before, after in tour.lines(name):
        if has_letters(before):
            assert has_letters(after), before
        else:
            assert before.lstrip("\ufeff") == after.lstrip("\ufeff")


@pytest.mark.parametrize("name", PLAIN)
def test_spans_of_lines_survive(name: str, tour: Tour) -> None:
    pairs = sorted(set(tour.lines(name)))
    lost = [(before, lost_spans(before, after, Path(name).suffix)) for before, after in pairs]
    assert [(before, wrong) for before, wrong in lost if wrong] == []


@pytest.mark.parametrize("name", LISTED)
def test_spans_that_somebody_listed_survive(name: str, tour: Tour) -> None:
    source, translation = tour.source(name), _translated_only(tour.translation(name), name)
    for span in LISTED[name]:
        assert source.count(span) > 0, "the list is wrong"
    assert {span: translation.count(span) for span in LISTED[name]} == {
        span: source.count(span) for span in LISTED[name]
    }


def _translated_only(text: str, name: str) -> str:
    """Leave out what JSON lines repeat of the source."""
    if name not in JSONL:
        return text
    return "\n".join(str(json.loads(line)["translation"]) for line in text.split("\n") if line.strip())


@pytest.mark.parametrize("name", PLAIN)
def test_no_junk_in_lines(name: str, tour: Tour) -> None:
    found = [(after, junk(before, after)) for before, after in sorted(set(tour.lines(name)))]
    assert [(after, wrong) for after, wrong in found if wrong] == []


def test_headings_lists_tables_and_quotations_stay_what_they_are(tour: Tour) -> None:
    for before, after in tour.lines("mail.txt"):
        assert line_prefix(before) == line_prefix(after), before
        assert before.count("|") == after.count("|"), before


@pytest.mark.parametrize("name", PAGES)
def test_pages_keep_their_marks_and_spans(name: str, tour: Tour) -> None:
    source, translation = tour.source(name), tour.translation(name)
    kind = "html" if name.endswith(".html") else "markdown"
    assert page_shape(source, kind) == page_shape(translation, kind)
    if kind == "markdown":  # in HTML, attributes change and entities become letters
        assert lost_spans(source, translation, Path(name).suffix) == []
        assert junk(source, translation) == []
    assert has_letters(translation) and source != translation


@pytest.mark.parametrize("name", OTHER_LANGUAGE)
def test_what_is_not_english_is_left_alone(name: str, tour: Tour) -> None:
    assert tour.translation(name) == tour.source(name)


@pytest.mark.parametrize("name", CUES)
def test_as_many_cues_with_the_same_times(name: str, tour: Tour) -> None:
    suffix = Path(name).suffix
    (cues, rest), (translated, kept) = (
        cues_of(text, suffix) for text in (tour.source(name), tour.translation(name))
    )
    assert [cue.frame for cue in cues] == [cue.frame for cue in translated]
    assert [_but_for_the_language(line) for line in rest] == [_but_for_the_language(line) for line in kept]
    assert tour.source(name).startswith("\ufeff") == tour.translation(name).startswith("\ufeff")
    assert ("\r\n" in tour.source(name)) == ("\r\n" in tour.translation(name))
    for before, after in zip(cues, translated, strict=True):
        assert has_letters(before.text) == has_letters(after.text)
        if before.lines:
            assert 1 <= len(after.lines) <= max(2, len(before.lines))
        else:
            assert not after.lines


def _but_for_the_language(line: str) -> str:
    """A header that names the language follows the translation."""
    return "Language:" if line.startswith("Language:") else line


@pytest.mark.parametrize("name", CUES)
def test_cues_keep_their_dashes_speakers_sounds_and_notes(name: str, tour: Tour) -> None:
    suffix = Path(name).suffix
    (cues, _), (translated, _) = (
        cues_of(text, suffix) for text in (tour.source(name), tour.translation(name))
    )
    for before, after in zip(cues, translated, strict=True):
        assert (before.dashes, before.speakers, before.signs) == (after.dashes, after.speakers, after.signs)
        if not has_letters(before.text):
            assert before.lines == after.lines


@pytest.mark.parametrize("name", CUES)
def test_spans_of_cues_survive_and_nothing_strange_comes_in(name: str, tour: Tour) -> None:
    source, translation = tour.source(name), tour.translation(name)
    assert lost_spans(source, translation, Path(name).suffix) == []
    assert junk(source, translation) == []


@pytest.mark.parametrize("name", JSONL)
def test_objects_keep_their_keys_and_gain_a_translation(name: str, tour: Tour) -> None:
    for before, after in tour.lines(name):
        if not before.strip():
            assert before == after
            continue
        found, wanted = json.loads(after), json.loads(before)
        translation = found.pop("translation")
        wanted.pop("translation", None)
        assert found == wanted and list(found) == list(wanted)
        texts = wanted["text"] if isinstance(wanted.get("text"), str) else None
        sources = [texts] if texts is not None else wanted.get("sentences", wanted.get("document"))
        translations = [translation] if texts is not None else translation
        for source, translated in zip(sources, translations, strict=True):
            assert has_letters(source) == has_letters(translated)
            assert lost_spans(source, translated, ".jsonl") == [] and junk(source, translated) == []


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ENCODINGS and name not in JSONL])
def test_a_file_that_is_translated_into_itself_is_the_same_file(name: str, inputs: Path) -> None:
    """No model: what is read of a file and put back is all of it, and the checks find nothing wrong."""
    file = read_text_file(inputs / name, language="en", format="text" if name in AS_TEXT else None)
    written = b"".join(file.restore(text for document in file.documents for text in document.texts))
    data = (inputs / name).read_bytes()
    assert written == (gzip.decompress(data) if name.endswith(".gz") else data)
    text = written.decode()
    assert lost_spans(text, text, Path(name).suffix) == [] and junk(text, text) == []


@pytest.mark.parametrize(
    ("source", "translation", "found"),
    [
        ("Call 555-1234.", "Звони 555-134.", True),
        ("Call 555-1234.", "Звони 555-1234.", False),
        ("See https://example.org/a.", "Смотри https://example.org/a.", False),
        ("See https://example.org/a.", "Смотри //u><//u>.", True),
        ("Two <b>words</b>", "Два <b>слова", True),
        ("Good 😀", "Хорошо", True),
        ("Five men", "5 человек", False),
        ("It is Αθήνα.", "Это Афины.", True),
        ("Use `a b`.", "Используй `a`.", True),
        ("Hello {name}", "Привет {имя}", True),
        ("# Heading", "♪", True),
        ("Nothing.", "Ничего\ufffd.", True),
        ("Nothing.", "Ничего<unk>.", True),
        ("“Yes,” she said — twice.", "«Да», — сказала она… дважды.", False),
    ],
)
def test_the_checks_see_what_they_are_for(source: str, translation: str, found: bool) -> None:
    assert bool(lost_spans(source, translation, ".txt") or junk(source, translation)) == found


def test_another_encoding_than_stated_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The right files given with a wrong one are not half done either."""
    names = ["letter-latin1.txt", "windows.txt", "russian-cp1251.txt"]
    for name in names:
        (tmp_path / name).write_bytes(tour_files.MADE[name])
    assert _translate(tmp_path, names, tmp_path / "out") == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert "letter-latin1.txt: line 1 is not utf-8" in shown and "--encoding" in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
