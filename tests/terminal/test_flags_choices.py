"""Options that are one of a few names: shown, completed, and nothing else let through; flags show no type."""

import re
from typing import Any

import pytest
import typer

from cadec_cli.commands import convert
from cadec_cli.main import exit_code
from cadec_cli.terminal import flags
from tests.helpers.shown_commands import KNOWN

# What can't be a list of names for good: files, languages, numbers of other kinds.
CHOSEN = {
    *("--search", "--objective", "--context-from", "--long", "--device", "--compute-type", "--format"),
    *("--protocol", "--by", "--scale", "--only", "--nmt-kind", "--schedule", "--stop-on", "--precision"),
    *("--activation", "--learn", "--predict"),
}
FLAGS = [
    (command, parameter)
    for command, known in KNOWN.items()
    for parameter in known.params
    if parameter.opts[0] in CHOSEN
]


def completions(command: str, parameter: Any, begun: str = "") -> list[str]:
    context = typer.Context(KNOWN[command], info_name=command)
    return [item.value for item in parameter.shell_complete(context, begun)]


def test_there_are_choices_in_most_commands() -> None:
    assert {parameter.opts[0] for _, parameter in FLAGS} == CHOSEN
    assert len({command for command, _ in FLAGS}) > 10


@pytest.mark.parametrize(("command", "parameter"), FLAGS, ids=lambda one: getattr(one, "name", one))
def test_a_choice_is_shown_completed_and_checked(
    command: str, parameter: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    names = completions(command, parameter)
    assert len(names) >= 2
    assert completions(command, parameter, names[0][:2])[0] == names[0]
    for name in names:
        assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", f"{parameter.metavar} {parameter.help}")
    wrong = names[-1] + "x"
    assert exit_code([*command.split(), parameter.opts[0], wrong]) == 2
    shown = " ".join(re.sub("[│╭╮╰╯─]", " ", capsys.readouterr().err).split())
    assert f"{wrong!r} is not one of {', '.join(names)}. Did you mean {names[-1]}?" in shown


def test_one_of_several_wrong_names_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--objective", "c-score", "--objective", "all", "--objective", "luck"]
    assert exit_code(["eval-contrastive", "set.json", *given]) == 2
    assert "'luck' is not one of" in capsys.readouterr().err
    assert exit_code(["eval-contrastive", "no-such-set.json", *given[:4], "-b", "no-such-bundle"]) == 1


def test_a_numbered_gpu_is_a_device() -> None:
    for device, code in (("cuda:1", 1), ("cuda:x", 2), ("gpu", 2)):  # of the first, the bundle is missing
        assert exit_code(["translate", "-b", "no-such-bundle", "--device", device]) == code


def test_names_that_stand_here_to_be_quick_are_those_of_the_tables() -> None:
    from cadec_cli.evaluation.contrastive.sets import LAYOUTS
    from cadec_cli.evaluation.tuning.search import PROTOCOLS
    from converters.detect import KINDS

    assert tuple(LAYOUTS) == flags.LAYOUTS
    assert flags.PROTOCOLS == PROTOCOLS
    assert sorted(convert.NMT_KINDS) == sorted(KINDS)


@pytest.mark.parametrize("command", KNOWN)
def test_no_name_is_cut_at_80_columns(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert exit_code([*command.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    names = [
        name for parameter in KNOWN[command].params for name in (*parameter.opts, *parameter.secondary_opts)
    ]
    assert not [
        name
        for name in names
        if name.startswith("--") and not re.search(rf"{re.escape(name)}(?![\w-])", shown)
    ]


@pytest.mark.parametrize("command", ["", "train", *KNOWN])
def test_a_flag_that_is_given_or_not_shows_no_type(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code([*command.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--help" in shown
    assert not re.search(r"<bool>|BOOLEAN", shown)
