"""The process in which files are read: it answers questions on standard input, one JSON line each.

    {"seed": target, "directory": …}    write valid files
    {"load": target, "directory": …}    read them

A trial that takes too much memory fails as it would on a small machine. One that takes too long is aborted
by whoever asked, and the traceback shows where it was.
"""

import contextlib
import faulthandler
import io
import json
import os
import resource
import sys
import traceback
import unicodedata
from pathlib import Path
from typing import IO, Any

from tests.robustness.fuzz.targets import TARGETS

MEMORY = 3 << 30  # that a trial may ask for
LONGEST = 3000  # characters of an error that a person is to read

Answer = dict[str, str]


def main(answers: IO[str]) -> None:
    """Answer questions until there are no more."""
    for line in sys.stdin:
        question: dict[str, str] = json.loads(line)
        seeding = "seed" in question
        answer = _seeded(question) if seeding else _tried(question["load"], Path(question["directory"]))
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _seeded(question: dict[str, str]) -> Answer:
    directory = Path(question["directory"])
    directory.mkdir(parents=True)
    TARGETS[question["seed"]].seed(directory)
    return {"kind": "read"}


def _tried(name: str, directory: Path) -> Answer:
    target = TARGETS[name]
    before = _listed(directory)
    _limit_memory()
    os.chdir(directory)
    try:
        answer = _answer(name, directory)
    finally:
        os.chdir("/")
    left = sorted(_listed(directory) - before)
    if left and not target.writes and answer["kind"] != "wrong":
        return {"kind": "wrong", "told": f"files left behind: {', '.join(left)}"}
    return answer


def _answer(name: str, directory: Path) -> Answer:
    from cadec_cli.errors import CadecError

    try:
        TARGETS[name].load(directory)
    except CadecError as error:
        return _refused(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        told = f"{type(error).__name__}: {str(error)[:300]}"
        return {"kind": "wrong", "told": told, "where": _where(error)}
    return {"kind": "read"}


def _refused(error: Any) -> Answer:
    """Judge an error as a person sees it."""
    from cadec_cli.main import _failure

    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stderr(said):
        _failure(error)
    assert isinstance(said.buffer, io.BytesIO)
    shown = said.buffer.getvalue().decode()
    wrong = message_misfit(shown) or ("an error without a message" if not error.message.strip() else "")
    if wrong:
        return {"kind": "wrong", "told": f"{wrong}: {error.message[:300]!r}", "where": _where(error)}
    return {"kind": "refused", "told": error.message[:500]}


def message_misfit(shown: str) -> str:
    """What is wrong with a message as it is shown; nothing if nothing is."""
    if commanding(shown):
        return "a message with control characters"
    return "a message that nobody reads to its end" if len(shown) > LONGEST else ""


def commanding(shown: str) -> list[str]:
    """The characters of a text that command a terminal, or that can't be written."""
    return [one for one in shown if one != "\n" and unicodedata.category(one) in ("Cc", "Cs")]


def _where(error: BaseException) -> str:
    """The innermost line of ours."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        for top in ("/cadec_cli/", "/converters/", "/fuzz/"):
            if top in frame.filename:
                return f"{top.strip('/')}/{frame.filename.rpartition(top)[2]}:{frame.lineno}"
    return ""


def _listed(directory: Path) -> set[str]:
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*")}


def _limit_memory() -> None:
    """Allow some memory more than there is in use."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))


if __name__ == "__main__":
    faulthandler.enable()
    # What libraries print is not an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    main(answers)
