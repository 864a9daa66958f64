"""What else happens to processes: a full disk, a directory that may not be written to, another process.

The disk is a file system in memory of a given size, in a namespace of its own, where that is allowed; a limit
on the size of files, which anyone may set, is a full disk to whoever writes one.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import resource
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from tests.robustness.kills import forked
from tests.robustness.kills.runs import contents
from tests.robustness.kills.trials import Bench, Outcome

_NEW_NAMESPACE, _PRIVATE, _REMOUNT = 0x00020000, 0x40000 | 0x4000, 0x20
_CAPABILITIES_3, _MAY_OVERRIDE_PERMISSIONS = 0x20080522, 0b110
_AMPLE = 256 << 20
_NO_SUCH_DISK = 3
# What a second process may be told.
_NOT_ALONE = ("another process", "exists already", "exist already", "already holds", "unfinished")


def full_disk(bench: Bench, rng: random.Random, outcome: Outcome) -> None:
    """With no room, a little, or nearly enough: one clear error, and with room all is as expected."""
    outcome.trials += 1
    older = bench.run.older is not None and rng.random() < 0.5
    size = sum(map(len, bench.expected.values()))
    rooms = (0, rng.randint(1, 16) << 12, rng.randint(size // 4, size), rng.randint(size, 2 * size))
    room = rng.choice(rooms)
    ending = forked.start(lambda: _on_a_disk_of(bench, room, older)).ended()
    if ending.code != _NO_SUCH_DISK:
        _note(outcome, f"a disk with room for {room:,} bytes", [ending.told.strip()] if ending.code else [])
        return
    limit = rng.randint(4096, max(8192, *map(len, bench.expected.values())))
    bench.clear(older=older)
    burdens = [lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))]
    ending = bench.started(bench.arguments(force=older), burdens).ended()
    wrong = _refused(ending, ["no space left"]) + bench.lost(older=older)
    _note(outcome, f"files of at most {limit:,} bytes", wrong + _with_room(bench, ending, older=older))


def read_only(bench: Bench, rng: random.Random, outcome: Outcome) -> None:
    """Where nothing may be written: one clear error, and nothing is changed."""
    older = bench.run.older is not None and rng.random() < 0.5
    outcome.trials += 1
    bench.clear(older=older)
    before = contents(bench.work)
    # Where outputs go into a directory that is there already, that is the one which counts.
    closed = [bench.work, *(path for path in bench.work.rglob("*") if path.is_dir())]
    for path in closed:
        path.chmod(0o555)
    try:
        ending = bench.started(bench.arguments(force=older), [_bound_by_permissions]).ended()
    finally:
        for path in closed:
            path.chmod(0o755)
    wrong = _refused(ending, ["Permission denied", "not allowed", "may not write"])
    if ending.code == 0:
        wrong.append("it did not notice")
    if contents(bench.work) != before:
        wrong.append("something was changed")
    _note(outcome, "a directory that is read-only", wrong + _with_room(bench, ending, older=older))


def two_at_once(bench: Bench, rng: random.Random, outcome: Outcome) -> None:
    """Two processes on one output, the second begun while the first is at work, which is killed perhaps."""
    outcome.trials += 1
    older = bench.run.older is not None and rng.random() < 0.5
    bench.clear(older=older)
    first = bench.started(bench.arguments(force=older))
    delay = rng.choice([0, 0.05, 1]) * rng.uniform(0, bench.moments.seconds)
    time.sleep(delay)
    again = rng.random() < 0.5
    second = bench.started(bench.arguments(again=again, force=older))
    killed = rng.uniform(0, bench.moments.seconds) if rng.random() < 0.4 else None
    endings = [first.ended(killed), second.ended()]
    outcome.kills += sum(ending.killed for ending in endings)
    wrong = [problem for ending in endings for problem in _refused(ending, _NOT_ALONE)]
    wrong += bench.lost(older=older)
    if not any(ending.killed or ending.code == 0 for ending in endings):
        wrong.append("neither did it")
    if bench.differences() and any(ending.killed for ending in endings):
        last = bench.carried_out(bench.arguments(again=True, force=older))
        wrong += [f"it ended with {last.code}: {last.told.strip()}"] if last.code else []
    how = f"a second {'--resume ' if again else ''}after {delay:.2f} s"
    how += ", the first killed" if endings[0].killed else ""
    how += ", an older output before" if older else ""
    _note(outcome, how, wrong + bench.differences())


def one_cache(bench: Bench, rng: random.Random, outcome: Outcome) -> None:
    """Two processes that need the same conversion at once, of which perhaps one is killed."""
    outcome.trials += 1
    bench.clear()
    other = bench.place / "other"
    shutil.rmtree(other, ignore_errors=True)
    other.mkdir()
    first = bench.started(bench.arguments())
    second = forked.start(forked.command(bench.arguments(), other, bench.cache))
    killed = rng.uniform(0, bench.moments.seconds) if rng.random() < 0.5 else None
    endings = [first.ended(killed), second.ended()]
    outcome.kills += endings[0].killed
    wrong = [f"it ended with {ending.code}: {ending.told}" for ending in endings if ending.code]
    converted = sum("converting" in ending.told for ending in endings)
    if converted != 1 and not (endings[0].killed and converted in (1, 2)):
        wrong.append(f"{converted} of them converted the model")
    if endings[0].killed and bench.differences():
        last = bench.carried_out(bench.arguments(again=True))
        wrong += [f"it ended with {last.code}: {last.told}"] if last.code else []
    for name in bench.run.outputs:
        if (other / name).read_bytes() != bench.expected[name]:
            wrong.append("the other process wrote something else")
    how = "the first killed" if endings[0].killed else "none killed"
    _note(outcome, how, wrong + bench.differences())


def _note(outcome: Outcome, how: str, wrong: Sequence[str]) -> None:
    outcome.equal += not wrong
    outcome.wrong += [f"{how}: {what}" for what in wrong]


def _refused(ending: forked.Ending, because: Sequence[str]) -> list[str]:
    """What is wrong with how it ended: done, killed, or one error that says why."""
    if ending.killed or ending.code == 0:
        return []
    told = " ".join(ending.told.split())
    if ending.code != 1 or told.count("error:") != 1 or "Traceback" in told:
        return [f"it ended with {ending.code}: {ending.told.strip()}"]
    return [] if any(reason in told for reason in because) else [f"another error: {ending.told.strip()}"]


def _with_room(bench: Bench, ending: forked.Ending, *, older: bool) -> list[str]:
    """What is wrong when a command that failed is run again, with nothing in its way."""
    if ending.code != 0:
        last = bench.carried_out(bench.arguments(again=True, force=older))
        if last.code != 0:
            return [f"again, it ended with {last.code}: {last.told.strip()}"]
    return bench.differences()


def _on_a_disk_of(bench: Bench, room: int, older: bool) -> int:
    """Fill such a disk, then make room; says what was wrong, if there can be such a disk at all."""
    try:
        _system("unshare", _NEW_NAMESPACE)
        _mount(b"none", Path("/"), _PRIVATE, b"")
        _mount(b"tmpfs", bench.work, 0, b"size=%d" % _AMPLE)
    except OSError:
        return _NO_SUCH_DISK
    bench.clear(older=older)
    used = os.statvfs(bench.work)
    taken = (used.f_blocks - used.f_bfree) * used.f_frsize
    _mount(b"tmpfs", bench.work, _REMOUNT, b"size=%d" % (taken + max(room, 4096)))
    filler = bench.work / "filler"
    if not room:
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as stream:
            stream.write(bytes(4096))
    ending = bench.carried_out(bench.arguments(force=older))
    wrong = _refused(ending, ["no space left"]) + bench.lost(older=older)
    if ending.code == 0 and not room:
        wrong.append("there was room where there is none")
    filler.unlink(missing_ok=True)
    _mount(b"tmpfs", bench.work, _REMOUNT, b"size=%d" % _AMPLE)
    wrong += _with_room(bench, ending, older=older)
    print("\n".join(wrong))
    return 1 if wrong else 0


def _mount(kind: bytes, place: Path, flags: int, options: bytes) -> None:
    _system("mount", kind, os.fsencode(place), kind, flags, options)


def _system(name: str, *arguments: object) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.c_ulong(one) if isinstance(one, int) else one for one in arguments]
    if getattr(library, name)(*given) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _bound_by_permissions() -> None:
    """Give up what lets root write anywhere."""
    if os.geteuid() != 0:
        return
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    data = (ctypes.c_uint32 * 6)()
    _system("capget", header, data)
    for word in (0, 1):  # effective and permitted
        data[word] &= ~_MAY_OVERRIDE_PERMISSIONS
    _system("capset", header, data)
