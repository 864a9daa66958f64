"""What is typed: command lines with any value for any option, and the lines of the REPL."""

import io
import re
from pathlib import Path

from hypothesis import strategies as st

from tests.robustness.fuzz.target import Target
from tests.robustness.fuzz.targets import lists, parts
from tests.robustness.fuzz.targets.texts import SRT

# Commands that come to their work soon, with what they work on; all others are refused before they begin.
LINES: dict[str, tuple[str, ...]] = {
    "translate": ("in.txt", "-b", "bundle"),
    "beam": ("in.txt", "-b", "bundle"),
    "rerank": ("nbest.jsonl", "-b", "bundle"),
    "repair": ("in.txt", "in.txt", "-b", "bundle"),
    "eval-contrastive": ("set.jsonl", "-b", "bundle"),
    "eval-generative": ("documents.jsonl", "-b", "bundle"),
    "score-contrastive": ("set.jsonl", "-b", "bundle"),
    "evaluate": ("in.txt", "--reference", "in.txt"),
    "info": ("-b", "bundle"),
    "convert": ("bundle", "-o", "new"),
    "models list": (),
}
# Neither a value of ours nor none at all may start what takes minutes, or other processes.
_LEFT_OUT = {"--debug", "--help", "--version", "--processes", "--install-completion", "--show-completion"}
# Asks the network, goes on for minutes, or is tried below.
_NOT_RUN = {"models pull", "reproduce", "bench", "repl"}

VALUES = (
    *(
        "",
        " ",
        "0",
        "1",
        "2",
        "-1",
        "10" * 9,
        "9" * 400,
        "0.5",
        "nan",
        "inf",
        "-inf",
        "1e308",
        "1e-320",
        "1_0",
    ),
    *("٣", "0x10", "a", "a,b", "1,2", "2,1", "=", "a=b", "lm=1", "lm=nan", "--", "-", ".", "..", "missing"),
    *("in.txt", "in.srt", "set.jsonl", "bundle", "bundle/lm", "new", "new/deep/x.txt", "new.srt", "x" * 300),
    *("{", "}", "{stem}", "{stem}.{to}{ext}", "{0}", "\x1b[31mred", "a\nb", "\udcff", "ü", "\u202e", "\t"),
    *("ru", "en", "xx", "en-GB", "zh_Hant", "utf-8", "utf-16", "cp1251", "rot13", "int8", "float16", "cpu"),
    *("cuda", "auto", "formal", "informal", "pmi", "sentence", "lattice", "beam", "srt", "jsonl", "text"),
)

REPL = """Tom wants it.
/context 1
/nbest #1 3
/pick #1 2
/edit #1 Том хочет.
/redo 0
/why
/set T 4
/set context 2

The boy sees our dog!
/compare on
/formal
/auto
/undo
/new
/save here.json --force
/load here.json
/open in.srt
//text
/help
"""


def lines() -> st.SearchStrategy[bytes]:
    """A command, what it needs, and some options with values that nobody foresaw."""
    from tests.helpers.shown_commands import KNOWN

    return st.sampled_from(sorted(KNOWN.keys() - _NOT_RUN)).flatmap(lambda name: _line(name, KNOWN[name]))


def _line(name: str, command: object) -> st.SearchStrategy[bytes]:
    values = st.sampled_from(VALUES)
    known: list[st.SearchStrategy[tuple[str, ...]]] = []
    for parameter in getattr(command, "params", ()):
        for option in (*parameter.opts, *parameter.secondary_opts):
            if option.startswith("-") and option not in _LEFT_OUT:
                flag = getattr(parameter, "is_flag", False)
                known.append(st.tuples(st.just(option)) if flag else st.tuples(st.just(option), values))
    base = [*name.split(), *LINES.get(name, ("missing",))]
    more = st.lists(st.one_of([*known, *known, st.tuples(values)]), max_size=3)

    def written(drawn: list[tuple[str, ...]]) -> bytes:
        words = [*base, *(word for words in drawn for word in words)]
        return "\x00".join(words).encode("utf-8", "surrogateescape")

    return more.map(written)


def command_seed(directory: Path) -> None:
    parts.copied(parts.bundle)(directory / "bundle")
    (directory / "in.txt").write_text("Tom wants it.\nNobody took the money.\n", "utf-8")
    (directory / "in.srt").write_text(SRT, "utf-8")
    (directory / "nbest.jsonl").write_text(lists.NBEST, "utf-8")
    (directory / "set.jsonl").write_text(lists.OWN_SET, "utf-8")
    (directory / "documents.jsonl").write_text(lists.GENERATIVE_SET, "utf-8")
    (directory / "line").write_bytes(b"info\x00-b\x00bundle")


def command(directory: Path) -> None:
    """A command line ends well, or with an error that is none of ours."""
    from tests.helpers.run_in_process import cadec

    given = (directory / "line").read_bytes().decode("utf-8", "surrogateescape").split("\x00")
    ended = cadec(*given)
    assert ended.returncode in (0, 1, 2), f"exit code {ended.returncode}"
    _check_told(ended.stderr)
    assert ended.returncode == 0 or ended.stderr.strip(), "it failed and did not say why"


def repl_seed(directory: Path) -> None:
    (directory / "in.srt").write_text(SRT, "utf-8")
    (directory / "lines").write_text(REPL, "utf-8")


def repl(directory: Path) -> None:
    """Every line is obeyed or refused, and no line ends the session."""
    import contextlib

    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.commands.repl.autosave import Autosave
    from cadec_cli.commands.repl.commands import COMMANDS
    from cadec_cli.commands.repl.lines import Repl
    from cadec_cli.commands.repl.views import Output
    from cadec_cli.session.session import Session
    from tests.helpers.session_parts import OPTIONS, direction_of

    direction = direction_of(Bundle.open(parts.bundle(), verify=False))
    session = Session(lists.models(), OPTIONS, direction=direction)
    # A damaged /save must not write elsewhere, and a damaged /open not read what never ends.
    raw = re.sub(
        rb"(?m)^/(save|open|load)[^\n]*(/|\.\.)[^\n]*$", b"/help", (directory / "lines").read_bytes()
    )
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        Repl(session, Output(False), Autosave(directory / "state"), COMMANDS).read(io.BytesIO(raw))
    assert isinstance(err.buffer, io.BytesIO)
    _check_told(err.buffer.getvalue().decode())


def _check_told(told: str) -> None:
    from tests.robustness.fuzz.reading_process import commanding

    bug = re.search(r"error: (.*)\nhint: this is a bug in cadec", told)
    assert bug is None, f"a bug message: {bug[1][:200] if bug else ''}"
    assert not commanding(told), "control characters on standard error"


TARGETS = {
    "command line": Target(
        (), command_seed, command, ("line",), written=st.deferred(lines), writes=True, only_written=True
    ),
    "REPL's lines": Target((), repl_seed, repl, ("lines",), writes=True, share=0.5),
}
