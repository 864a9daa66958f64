"""`cadec prepare`: its two commands offer the same cleaning, and say where values come from."""

import dataclasses
from pathlib import Path

import pytest

from cadec_cli.data.cleaning import CleaningOptions
from cadec_cli.data.shards import Shard
from cadec_cli.main import exit_code
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.opus_samples import film, put, sentence
from tests.helpers.run_in_process import cadec
from tests.helpers.shard_parts import document_bounds
from tests.helpers.shown_commands import KNOWN

COMMANDS = ("prepare text", "prepare opensubtitles")


def cleaning_flags(command: str) -> dict[str, tuple[object, ...]]:
    names = {field.name for field in dataclasses.fields(CleaningOptions)}
    return {
        str(option.name): (option.opts, option.secondary_opts, getattr(option, "help", None))
        for option in KNOWN[command].params
        if option.name in names
    }


def test_both_commands_have_the_same_cleaning_flags() -> None:
    text, opensubtitles = map(cleaning_flags, COMMANDS)
    assert text == opensubtitles
    assert [flag[0] for flag in text.values()] == [
        ["--max-words"],
        ["--max-characters"],
        ["--max-ratio"],
        ["--drop-duplicates"],
        ["--check-script"],
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_values_come_from_the_flags_alone(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code([*command.split(), "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "the preset's" not in shown and "the bundle's" not in shown
    assert "0 is no limit. [default: 0]" in shown


CLEANING = ("--max-words", "3", "--max-characters", "20", "--drop-duplicates", "--check-script")


def test_the_same_flags_leave_out_the_same_sentences(
    tmp_path: Path, english: TextPipeline, english_directory: Path
) -> None:
    texts = ["Tom took it.", "Nobody wants it at all.", "Том.", "The ship!", "Tom took it.", "Who knows?"]
    put(tmp_path, "en/2001/7/1.xml", film(*(sentence(n, text, n, n + 1) for n, text in enumerate(texts))))
    (tmp_path / "all.txt").write_text("\n".join(texts) + "\n", "utf-8")
    cleaned = tmp_path / "cleaned.txt"
    corpus = ("prepare", "opensubtitles", str(tmp_path), "--language", "en", "-o", str(cleaned))
    assert exit_code([*corpus, *CLEANING]) == 0
    assert cleaned.read_text("utf-8") == "Tom took it.\n\nThe ship!\n\nWho knows?\n"
    found = []
    for source, flags in ((cleaned, ()), (tmp_path / "all.txt", CLEANING)):
        output = tmp_path / f"{source.stem}-shard"
        options = ("--lines", "--processes", "1", "-p", str(english_directory), "-o", str(output))
        assert exit_code(["prepare", "text", str(source), *options, *flags]) == 0
        shard = Shard(output)
        sentences = [english.decode(shard.sides[0].sentence(n).tolist()) for n in range(len(shard))]
        found.append((sentences, document_bounds(shard)))
    assert found[0] == found[1]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", [("--max-words", "-1"), ("--max-ratio", "0.5"), ("--max-ratio", "nan")])
def test_limits_without_meaning_are_refused(
    command: str, flag: tuple[str, str], tmp_path: Path, english_directory: Path
) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "a.txt").write_text("Tom.\n")
    given = {
        "prepare text": (tmp_path / "a.txt", "-p", english_directory, "--processes", "1"),
        "prepare opensubtitles": (tmp_path, "--language", "en"),
    }[command]
    output = tmp_path / "out"
    assert exit_code([*command.split(), *map(str, given), "-o", str(output), *flag]) == 2
    assert not output.exists()


@pytest.mark.parametrize(
    ("text", "flags", "told"),
    [
        (
            "Tom.\nTom took it.\n\nThe ship!\n",
            (),
            ("only 2 documents", "one in 100", "--dev-every 2 or less"),
        ),
        ("Tom.\n\n\nTom took it.\n", ("--dev-every", "3"), ("only 2 documents", "one in 3")),
        ("Tom.\nTom took it.\n", ("--dev-every", "2"), ("only 1 document,", "--no-documents")),
        ("Tom.\nTom took it.\n", ("--dev-every", "3", "--no-documents"), ("only 2 documents",)),
    ],
)
@pytest.mark.parametrize("piped", [False, True])
def test_too_few_documents_to_hold_some_out_are_told(
    text: str,
    flags: tuple[str, ...],
    told: tuple[str, ...],
    piped: bool,
    tmp_path: Path,
    english_directory: Path,
) -> None:
    (tmp_path / "a.txt").write_text(text, "utf-8")
    output = ("-o", tmp_path / "out", "--dev-output", tmp_path / "dev", "-p", english_directory)
    given = "-" if piped else tmp_path / "a.txt"
    done = cadec("prepare", "text", given, "--lines", "--processes", 1, *output, *flags, stdin=text)
    assert done.returncode == 1
    for part in told:
        assert part in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt"]


def test_as_many_documents_as_asked_for_are_enough(tmp_path: Path, english_directory: Path) -> None:
    output = ("-o", tmp_path / "out", "--dev-output", tmp_path / "dev", "-p", english_directory)
    (tmp_path / "a.txt").write_text("Tom.\n\nTom took it.\n\nThe ship!\n", "utf-8")
    common = ("--lines", "--processes", 1, "--dev-every", 3)
    assert cadec("prepare", "text", tmp_path / "a.txt", *common, *output).returncode == 0
    assert (len(Shard(tmp_path / "out")), len(Shard(tmp_path / "dev"))) == (2, 1)
    # Nothing that was held out is left: the dev set would be empty all the same.
    (tmp_path / "b.txt").write_text("Tom.\n\nTom.\n\nTom took it.\n\nTom.\n", "utf-8")
    strict = ("--max-words", 2, "-o", tmp_path / "no", "--dev-output", tmp_path / "none")
    done = cadec("prepare", "text", tmp_path / "b.txt", *common, "-p", english_directory, *strict)
    assert done.returncode == 1 and "held out" in done.stderr
    assert not (tmp_path / "no").exists() and not (tmp_path / "none").exists()
