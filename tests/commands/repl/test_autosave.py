"""Sessions of `cadec repl` that outlive the process: saved as they go, taken up again, private."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cadec_cli.session.files import read_session
from cadec_cli.session.session import Direction
from tests.helpers.repl_parts import BOY, FLAGS, NOBODY, TOM, Repl

pytestmark = pytest.mark.usefixtures("repl_state")


def test_an_interrupted_session_goes_on_with_resume(repl: Repl, repl_bundle: Path, repl_state: Path) -> None:
    command = [sys.executable, "-m", "cadec_cli", "repl", "-b", str(repl_bundle), *FLAGS]
    root = str(Path(__file__).parents[3])
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert process.stdin is not None and process.stdout is not None
    seen = []
    for line in (TOM, "/pick 2", "/new", NOBODY):
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        if line != "/new":
            seen.append(process.stdout.readline().rstrip("\n"))
    # A second one does not touch the session of the first.
    assert len(repl(BOY)) == 1 and "another cadec repl" in repl.err
    process.send_signal(signal.SIGKILL)
    process.wait()
    out = repl("/context", BOY, "/new", "/undo", "/undo", "/undo", "/undo", "/context", flags=("--resume",))
    assert out[1].endswith(seen[2]) and NOBODY in out[1] and out[3] == repl(NOBODY, BOY)[1]
    assert out[5].endswith(seen[1]) and TOM in out[5]


def test_a_new_session_takes_the_place_of_the_last_only_with_a_sentence(repl: Repl, repl_state: Path) -> None:
    repl(TOM)
    repl("/help", "/set T 2")
    assert len(repl("/context", flags=("--resume",))) == 3
    repl(NOBODY, "/load nowhere")
    saved, previous = (
        saved_sources(repl_state / name) for name in ("repl-pipe.log", "repl-pipe-previous-1.log")
    )
    assert (saved, previous) == ([[NOBODY]], [[TOM]])
    repl(BOY)
    assert saved_sources(repl_state / "repl-pipe-previous-2.log") == [[TOM]]


def test_what_a_loaded_session_takes_the_place_of_is_kept_to_the_last_sentence(
    repl: Repl, repl_state: Path
) -> None:
    repl(BOY, "/save s.json")
    repl(TOM, NOBODY, TOM, "/load s.json")
    assert saved_sources(repl_state / "repl-pipe-previous-1.log") == [[TOM, NOBODY, TOM]]
    repl(f"/load {repl_state / 'repl-pipe-previous-1.log'}", "/context", flags=("--resume",))
    assert "3 sentences" in repl.err


def test_resumed_options_give_way_to_flags(repl: Repl) -> None:
    repl("/set T 2", "/set context 1", TOM)
    shown = repl("/set", flags=("--resume", "--temperature", "3"))
    values = {line.split()[0]: line.split()[1] for line in shown[1:]}
    assert (values["T"], values["context"]) == ("3", "1")


def test_without_a_session_resume_starts_a_new_one(repl: Repl, repl_state: Path) -> None:
    assert len(repl(TOM, flags=("--resume",))) == 1 and "no session to resume" in repl.err
    (repl_state / "repl-pipe.log").write_text('{"documents": 7}')
    assert len(repl(TOM, flags=("--resume",))) == 1 and "this is a new session" in repl.err
    assert (repl_state / "repl-pipe-previous-1.log").read_text() == '{"documents": 7}'


def test_a_session_of_an_earlier_version_is_named(repl: Repl, repl_state: Path) -> None:
    repl(TOM, f"/save {repl_state / 'repl-pipe.json'}")
    (repl_state / "repl-pipe.log").unlink()
    repl(NOBODY, flags=("--resume",))
    assert f"/load {repl_state / 'repl-pipe.json'}" in repl.err.replace("\n", " ").replace("  ", " ")
    repl(f"/load {repl_state / 'repl-pipe.json'}", flags=("--resume",))
    assert saved_sources(repl_state / "repl-pipe.log") == [[TOM]]


def test_of_a_damaged_session_what_was_before_the_damage_is_taken_up(repl: Repl, repl_state: Path) -> None:
    path = repl_state / "repl-pipe.log"
    repl(TOM, NOBODY, BOY)
    damaged = path.read_bytes().replace(b'"number": 4', b'"number": 5', 1)
    path.write_bytes(damaged)
    shown = repl("/context", BOY, flags=("--resume",))
    assert "is damaged: the session was restored up to the damage" in " ".join(repl.err.split())
    assert any(TOM in line for line in shown) and not any(NOBODY in line for line in shown)
    assert saved_sources(path) == [[TOM, BOY]]
    assert (repl_state / "repl-pipe-previous-1.log").read_bytes() == damaged


def saved_sources(path: Path) -> list[list[str]]:
    stored = read_session(path, Direction(), None)
    return [[entry.source for entry in document] for document in stored.documents]


def test_where_nothing_can_be_saved_it_is_said_once(
    repl: Repl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert len(repl(TOM, NOBODY)) == 2
    assert repl.err.count("not saved as you go") == 1


def test_sessions_are_for_their_owner_alone(repl: Repl, repl_state: Path, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        for _ in range(3):  # the first of which becomes a previous one
            repl(TOM, "/save s.json --force", "/save t.txt --force")
        kept = {path.name: path for path in repl_state.iterdir()}
        assert {"repl-pipe.log", "repl-pipe.lock", "repl-pipe-previous-1.log"} <= set(kept)
        written = [*kept.values(), tmp_path / "s.json", tmp_path / "t.txt"]
        assert {mode(path) for path in written} == {0o600} and mode(repl_state) == 0o700
        for path in kept.values():
            path.chmod(0o644)
        (repl_state / "repl-history").touch(0o644)
        repl_state.chmod(0o755)
        (tmp_path / "s.json").chmod(0o664)
        repl(TOM, "/save s.json --force")
    finally:
        os.umask(before)
    assert {mode(path) for path in repl_state.iterdir()} == {0o600} and mode(repl_state) == 0o700
    assert mode(tmp_path / "s.json") == 0o664  # as the user has it


def test_a_lock_that_is_a_link_is_not_followed(repl: Repl, repl_state: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    repl_state.mkdir(parents=True)
    (repl_state / "repl-pipe.lock").symlink_to(tmp_path / "precious")
    assert len(repl(TOM)) == 1
    assert "not saved as you go" in repl.err and (tmp_path / "precious").read_text() == "mine"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_bundle_that_does_not_load_ends_it(repl: Repl, tmp_path: Path) -> None:
    repl.bundle = tmp_path
    assert repl(TOM) == [] and repl.err.startswith("error:")
