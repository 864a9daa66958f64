import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.text.moses import MARKS, Truecaser
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.subwords import SPECIAL_PIECES

TRICKY = st.text(
    st.sampled_from(
        "aA'bЯя .,-\"<>/&;:!?()[]|«»“”’„…019%$#@*_\u2581\uffed\u2423\u00a0\u200b\u0301ßİıŉﬁ½ǅ\u3000日"
    ),
    max_size=25,
)
TEXTS = st.one_of(st.text(max_size=40), TRICKY)


@given(text=TEXTS)
@settings(max_examples=300, deadline=None)
def test_every_text_comes_back_canonical(english: TextPipeline, russian: TextPipeline, text: str) -> None:
    for pipeline in (english, russian):
        assert pipeline.decode(pipeline.encode(text)) == pipeline.canonical(text)


@given(text=TEXTS)
@settings(max_examples=200, deadline=None)
def test_a_canonical_text_is_its_own_canonical_text(english: TextPipeline, text: str) -> None:
    # Moses' rules are applied once, in turn; a text that they would change again is not at rest yet.
    normal = english.moses.normalise(text)
    assume(english.moses.normalise(normal) == normal)
    canonical = english.canonical(text)
    assert english.canonical(canonical) == canonical


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The captain doesn't know it.", "The captain doesn't know it."),
        ("the captain", "The captain"),
        ("  The\tcaptain ", "The captain"),
        ("“The captain”", '"The captain"'),
        ("THE CAPTAIN", "THE CAPTAIN"),
        ("the [red]ship[/red] </s> <unk>", "The [red]ship[/red] </s> <unk>"),
        ("x日本語🙂", "X日本語🙂"),
        ("", ""),
        (" \n", ""),
    ],
)
def test_canonical(english: TextPipeline, text: str, expected: str) -> None:
    assert english.canonical(text) == expected
    assert english.decode(english.encode(text)) == expected


def test_the_case_of_a_first_word_costs_nothing(english: TextPipeline) -> None:
    assert english.tokenise("The captain took it.") == "the captain took it ."
    assert english.encode("The captain took it.") == english.encode("the captain took it.")


def test_text_never_becomes_a_special_id(english: TextPipeline) -> None:
    ids = english.encode(" ".join(SPECIAL_PIECES) + "".join(MARKS) + "<0x41>")
    assert min(ids) >= len(SPECIAL_PIECES)


def test_an_empty_text_has_no_ids(english: TextPipeline) -> None:
    assert english.encode("") == english.encode(" \t ") == []
    assert english.decode([]) == ""


def test_a_very_long_sentence_comes_back(russian: TextPipeline) -> None:
    text = "Капитан не знает, " * 3333 + "да."
    assert len(text.split()) == 10_000
    assert russian.decode(russian.encode(text)) == text


@pytest.mark.parametrize("language", ["xx", "et"])
def test_a_language_without_moses_rules_works(english: TextPipeline, language: str, tmp_path: Path) -> None:
    TextPipeline(language, english.truecaser, english.subwords).save(tmp_path / "p")
    loaded = TextPipeline.load(tmp_path / "p")
    text = "Tõesti, härra Tamm?"
    assert loaded.decode(loaded.encode(text)) == text


def test_a_language_is_no_path(english: TextPipeline, tmp_path: Path) -> None:
    english.save(tmp_path / "p")
    for language in ("/../../pwned", "..", "", "e\x1bn", 3, None):
        settings = json.dumps({"format": 1, "language": language})
        (tmp_path / "p" / "pipeline.json").write_text(settings)
        with pytest.raises(CadecError, match="does not name a language"):
            TextPipeline.load(tmp_path / "p")
    with pytest.raises(CadecError, match="not a language code"):
        TextPipeline("a/b", english.truecaser, english.subwords)


def test_a_saved_pipeline_is_the_same_pipeline(english: TextPipeline, tmp_path: Path) -> None:
    english.save(tmp_path / "p")
    loaded = TextPipeline.load(tmp_path / "p")
    assert loaded.checksum == english.checksum
    assert loaded.language == "en"
    assert loaded.truecaser == english.truecaser
    assert loaded.encode("The captain has lost it!") == english.encode("The captain has lost it!")
    loaded.save(tmp_path / "again")
    assert {path.name: path.read_bytes() for path in (tmp_path / "p").iterdir()} == {
        path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()
    }


def test_another_process_sees_the_same_checksum_and_ids(
    english: TextPipeline, english_directory: Path
) -> None:
    text = "The captain's ship: 日本!"
    code = (
        "import sys; from pathlib import Path; from cadec_cli.text.pipeline import TextPipeline\n"
        "p = TextPipeline.load(Path(sys.argv[1])); print(p.checksum, *p.encode(sys.argv[2]))"
    )
    seen = subprocess.run(
        [sys.executable, "-c", code, str(english_directory), text],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "7", "PYTHONUTF8": "1", "PATH": ""},
    )
    assert seen.stdout.split() == [english.checksum, *map(str, english.encode(text))]


def test_other_pipelines_have_other_checksums(english: TextPipeline, russian: TextPipeline) -> None:
    others = [
        russian,
        TextPipeline("de", english.truecaser, english.subwords),
        TextPipeline("en", Truecaser(english.truecaser.lowered | {"tom"}), english.subwords),
        TextPipeline("en", english.truecaser, russian.subwords),
    ]
    assert len({english.checksum, *(other.checksum for other in others)}) == 5


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("subwords.model", None),
        ("subwords.model", b""),
        ("subwords.model", b"just some text\n"),
        ("truecaser.json", None),
        ("truecaser.json", b"the dog\n"),
        ("truecaser.json", b"\xff\xfe\x00"),
        ("truecaser.json", b"[]"),
        ("truecaser.json", b'{"lowered": [1]}'),
        ("truecaser.json", b'{"lowered": "abc"}'),
        ("truecaser.json", b'{"lowered": ["\\ud800"]}'),
        ("pipeline.json", None),
        ("pipeline.json", b""),
        ("pipeline.json", b"{"),
        ("pipeline.json", b"null"),
        ("pipeline.json", b'{"format": 99, "language": "en"}'),
        ("pipeline.json", b'{"format": 1}'),
        ("pipeline.json", b'{"format": 1, "language": 7}'),
        ("pipeline.json", b"[" * 100_000),
    ],
)
def test_a_damaged_pipeline_is_an_error(
    english_directory: Path, tmp_path: Path, name: str, content: bytes | None
) -> None:
    damaged = tmp_path / "p"
    shutil.copytree(english_directory, damaged)
    if content is None:
        (damaged / name).unlink()
    else:
        (damaged / name).write_bytes(content)
    with pytest.raises(CadecError):
        TextPipeline.load(damaged)


def test_what_is_no_pipeline_at_all_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(json.dumps({"format": 1, "language": "en"}))
    for path in (tmp_path, tmp_path / "nothing", tmp_path / "file"):
        with pytest.raises(CadecError, match="not a text pipeline"):
            TextPipeline.load(path)
