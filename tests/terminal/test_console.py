"""What a terminal shows while work goes on, and that nothing is drawn elsewhere."""

import io

import pytest

from cadec_cli.terminal import console


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    written = io.StringIO()
    terminal = console.SafeConsole(file=written, force_terminal=True, width=100, highlight=False)
    monkeypatch.setattr(console, "stderr", terminal)
    return written


def work() -> None:
    with console.loading("the D-LM, 536 MB"):
        pass
    for number in console.track(range(3), "translate", 3, "sentences"):
        console.preparing("n-best", number, 2)
        console.stderr.file.flush()


def test_a_terminal_shows_what_is_loaded_and_what_is_prepared(screen: io.StringIO) -> None:
    work()
    assert "loading the D-LM, 536 MB" in screen.getvalue() and "0:00:00" in screen.getvalue()
    with console.progress("sentences"):
        console.preparing("n-best", 1, 2)  # no bar of `track`: nothing to say it in


def test_the_bar_says_what_is_prepared_until_all_of_it_is(
    screen: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for number in console.track(range(3), "translate", 3, "sentences"):
        console.preparing("n-best", number, 2)
        bar, task, _ = console._bar[-1]
        said.append(bar.tasks[task].description.strip())
    assert said == ["n-best 0/2", "n-best 1/2", "translate"]


@pytest.mark.parametrize("quiet", [False, True])
def test_nothing_is_drawn_if_nobody_watches(quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    terminal = console.SafeConsole(file=written, force_terminal=quiet, highlight=False)
    monkeypatch.setattr(console, "stderr", terminal)
    monkeypatch.setitem(console._state, "quiet", quiet)
    work()
    assert written.getvalue() == ""
