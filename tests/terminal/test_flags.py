"""Flags made of dataclasses: what a help text says about defaults, and what has no flag."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from cadec_cli.errors import CadecError
from cadec_cli.method.options import MAX_HYPOTHESES, TranslationOptions
from cadec_cli.terminal.app import new_app
from cadec_cli.terminal.flags import flags_of
from tests.helpers.run_in_process import cadec


@dataclass(frozen=True)
class Colours:
    count: int
    shade: str = field(default="red", metadata={"help": "One of the shades."})
    bright: bool = field(default=False, metadata={"help": "as the sun"})
    loud: bool = field(default=True, metadata={"help": "as thunder"})
    chart: Path | None = field(default=None, metadata={"help": "where they stand", "type": Path})


def painting(source: str, given: list[dict[str, Any]]) -> typer.Typer:
    app = new_app("Paint.")

    @app.command("paint")
    @flags_of(source, all_colours=Colours)
    def paint(flags: dict[str, Any]) -> None:
        given.append(flags)

    return app


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("", ("[default: red]", "[default: off]", "[default: on]")),
        (
            "bundle's",
            (
                "[default: the bundle's, else red]",
                "[default: the bundle's, else off]",
                "[default: the bundle's, else on]",
            ),
        ),
    ],
)
def test_defaults_are_told_with_where_they_come_from(
    source: str, shown: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    text = CliRunner().invoke(painting(source, []), ["--help"]).stdout
    for expected in ("All colours", "One of the shades.", *shown):
        assert expected in text
    assert "--chart" in text and text.count("default") == 3  # nothing is no default
    assert "--count" not in text  # not the user's to choose


@pytest.mark.parametrize("name", ["nbest", "beam", "paths"])
def test_a_number_of_hypotheses_has_one_limit(name: str) -> None:
    """What options refuse, the command line refuses, and nothing else."""
    for value, code in ((MAX_HYPOTHESES, 1), (MAX_HYPOTHESES + 1, 2)):
        ended = cadec("translate", "nowhere.txt", f"--{name}", value)
        assert ended.returncode == code
        assert ("is more than 1,000" in ended.stderr) == (code == 2)
    most: dict[str, Any] = {name: MAX_HYPOTHESES}
    too_many: dict[str, Any] = {name: MAX_HYPOTHESES + 1}
    assert TranslationOptions(**most) != TranslationOptions()
    with pytest.raises(CadecError, match=name):
        TranslationOptions(**too_many)


def test_a_command_gets_the_flags_that_were_given() -> None:
    given: list[dict[str, Any]] = []
    app = painting("", given)
    for words in ([], ["--no-loud", "--shade", "blue"], ["--chart", "here"]):
        assert CliRunner().invoke(app, words).exit_code == 0
    assert given == [{}, {"loud": False, "shade": "blue"}, {"chart": Path("here")}]
