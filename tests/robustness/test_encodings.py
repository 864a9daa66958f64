"""A file in another encoding: every command says what to do, and names --encoding only where there is one."""

from pathlib import Path

import pytest

from cadec_cli.main import exit_code
from tests.helpers.shown_commands import KNOWN

# {bad} is not UTF-8, {good} is text, {out} does not exist, {here} is the directory they are in.
COMMANDS = {
    "translate": "{bad}",
    "beam": "{bad}",
    "evaluate": "{good} --ref {bad}",
    "analyze pmi": "{good} {bad} --source-lm {here} --target-lm {here} --csv {out}",
    "prepare text": "{bad} -p cadec_cli/embedded/source -o {out} --processes 1",
    "train truecaser": "{bad} -l en -o {out} --processes 1",
    "train tokenizer": "{bad} -l en -o {out} --processes 1",
    "tune": "{good} --ref {bad} --no-save --no-plot",
    "rerank": "{bad}",
    "augment back-translate": "{bad} -o {out}",
    "augment round-trip": "{bad} -o {out}",
    "repair": "{bad}",
    "check": "{good} {bad}",
    "eval-contrastive": "{bad}",
    "eval-generative": "{bad}",
    "score-contrastive": "{bad}",
    "convert": "--nmt {here} --probes {bad} -o {out}",
    "prepare opensubtitles": "{here} --language en --exclude-movies {bad} -o {out}",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_hint_is_one_that_can_be_followed(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    bad, good = tmp_path / "bad.txt", tmp_path / "good.txt"
    bad.write_bytes("Кто там?\n".encode("cp1251"))
    good.write_text("Who is there?\n", "utf-8")
    arguments = COMMANDS[command].format(bad=bad, good=good, here=tmp_path, out=tmp_path / "out")
    assert exit_code([*command.split(), *arguments.split()]) == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert f"{bad}: line 1 is not utf-8" in shown
    has_option = any("--encoding" in parameter.opts for parameter in KNOWN[command].params)
    assert ("--encoding cp1251" in shown) == has_option
    assert ("convert the file to UTF-8" in shown) == (not has_option)


def test_commands_with_and_without_the_option_are_among_them() -> None:
    with_it = {name for name, command in KNOWN.items() if any("--encoding" in p.opts for p in command.params)}
    assert with_it - {"repl"} <= set(COMMANDS)  # its files are opened inside: see test_repl
    assert len(set(COMMANDS) - with_it) > 3
