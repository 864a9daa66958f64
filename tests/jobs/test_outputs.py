"""Nothing is written over unasked, by any command, and nothing that is read is written over at all."""

import os
from pathlib import Path

import pytest

from cadec_cli.errors import CadecError, as_flags
from cadec_cli.jobs.outputs import check_outputs
from cadec_cli.main import exit_code
from tests.helpers.shown_commands import KNOWN

# {text} is an input, {there} and the directory {full} exist already, {tuned} holds curve.json, {here} is the
# directory they are in.
COMMANDS = {
    "translate": "{text} -o {there}",
    "repair": "{text} -o {there}",
    "convert": "--nmt {text} -o {full}",
    "tune": "{text} --ref {text} --no-save --no-plot -o {tuned}",
    "analyze pmi": "{text} {text} --source-lm {here} --target-lm {here} --csv {there}",
    "prepare text": "{text} -p cadec_cli/embedded/source -o {here}/new --dev-output {full}",
    "prepare opensubtitles": "{here}/films --language en -o {there}",
    "augment back-translate": "{text} -o {there}",
    "augment round-trip": "{text} -o {there}",
    "train truecaser": "{text} -l en -o {there} --processes 1",
    "train tokenizer": "{text} -l en -o {full} --processes 1",
}
# Commands that can be told to write over what they read.
WITH_TEXTS = [name for name in COMMANDS if name not in ("convert", "tune", "prepare opensubtitles")]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    monkeypatch.chdir(Path(__file__).parents[2])
    monkeypatch.setattr("cadec_cli.bundle.load.LoadedModels.translation", property(_loaded))
    paths = {"text": tmp_path / "text.txt", **{name: tmp_path / name for name in ("there", "full", "tuned")}}
    paths["tuned"].mkdir()
    paths["full"].mkdir()
    for path in (paths["text"], paths["there"], paths["full"] / "a", paths["tuned"] / "curve.json"):
        path.write_text("Who is there?\n")
    return {**paths, "here": tmp_path}


def _loaded(self: object) -> None:
    raise AssertionError("a model is loaded")


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_there_stays_and_force_is_named(
    command: str, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = COMMANDS[command].format(**files).split()
    assert exit_code([*command.split(), *arguments]) == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert "exists already" in shown and "--force replaces it" in shown
    assert files["there"].read_text() == (files["full"] / "a").read_text() == "Who is there?\n"
    assert not (files["here"] / "new").exists()


@pytest.mark.parametrize("command", WITH_TEXTS)
def test_an_input_is_never_written_over(
    command: str, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = COMMANDS[command].format(**{**files, "there": files["text"], "full": files["text"]}).split()
    assert exit_code([*command.split(), *arguments, "--force"]) == 1
    assert "is the input" in " ".join(capsys.readouterr().err.split())
    assert files["text"].read_text() == "Who is there?\n"


def test_every_command_that_writes_is_among_them() -> None:
    writing = {
        name for name, command in KNOWN.items() if any("--output" in option.opts for option in command.params)
    }
    runs = {name for name in writing if name.startswith("train ")} - set(COMMANDS)  # continued by --resume
    assert writing - runs == set(COMMANDS)


def test_a_run_is_not_begun_over_what_is_there(tmp_path: Path) -> None:
    from cadec_cli.training.training_run import check_new

    check_new(tmp_path)
    for name in ("run.json", "metrics.jsonl", "curves.png"):
        (tmp_path / name).touch()
        with pytest.raises(CadecError, match="already holds"):
            check_new(tmp_path)
        (tmp_path / name).unlink()


def test_links_do_not_hide_an_input(tmp_path: Path) -> None:
    text = tmp_path / "a.srt"
    text.write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "symbolic").symlink_to(text)
    os.link(text, tmp_path / "hard")
    (tmp_path / "same").symlink_to(tmp_path, target_is_directory=True)
    for name in ("a.srt", "symbolic", "hard", "folder/../a.srt", "same/a.srt"):
        with pytest.raises(CadecError, match="is the input"):
            check_outputs([tmp_path / name], inputs=[text], force=True)
    with pytest.raises(CadecError, match=r"holds the input .*a\.srt"):
        check_outputs([tmp_path], inputs=[text], force=True)


def test_all_that_is_in_the_way_is_named_at_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("x")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    outputs = [tmp_path / name for name in ("a", "b", "c", "dangling", "/dev/null")]
    with pytest.raises(CadecError, match=r"/a, .*/b and .*/dangling exist already") as caught:
        check_outputs([*outputs, None, Path("-")], inputs=[tmp_path / "missing", None])
    assert as_flags(caught.value.marked_hint) == "--force replaces them"
    check_outputs(outputs, force=True)
    check_outputs([tmp_path / "c", tmp_path / "empty"], directories=True)
