"""The commands that are killed: what they read and write, how they are taken up again, what must be kept."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.robustness.kills.materials import Materials

Arguments = tuple[object, ...]
Contents = dict[str, bytes]


@dataclass(frozen=True)
class Run:
    """A command that is run in a directory of its own, and writes there."""

    name: str
    command: Callable[[Materials], Arguments]
    outputs: tuple[str, ...]
    again: tuple[str, ...] = ("--resume",)  # what continues it after a kill, or begins it anew
    older: Callable[[Materials, Path], None] | None = None  # puts an older output there, for --force
    given: Callable[[Materials, Path], None] | None = None  # puts there what is changed in its place
    kept: Callable[[Path], object] = lambda work: None  # what a kill has left to go on from
    goes_on: Callable[[object, Path, str], bool] = lambda kept, work, told: True  # told that, it did
    cold: bool = False  # with a cache that has nothing
    final: bool = False  # killed during the final write alone

    def arguments(self, materials: Materials, work: Path, *, again: bool, force: bool) -> Arguments:
        """The whole command, for the first time or after a kill."""
        first = self.command(materials)
        forced = ("--force",) if force and "--force" not in self.again else ()
        if not again:
            return (*first, *(("--force",) if force else ()))
        if self.name == "train":
            begun = (work / "out" / "run.json").exists()
            return (*first[:4], "--resume") if begun else first
        return (*first, *self.again, *forced)


def contents(work: Path) -> Contents:
    """All files below a directory by their names, and what is in them but how long things took."""
    return {
        str(path.relative_to(work)): _timeless(path)
        for path in sorted(work.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def _timeless(path: Path) -> bytes:
    data = path.read_bytes()
    if path.name == "metrics.jsonl":
        records = [json.loads(line) for line in data.splitlines() if line.endswith(b"}")]
        return json.dumps([_without_times(record) for record in records]).encode()
    if path.name in ("progress.json", "checksums.json"):
        with contextlib.suppress(ValueError):  # in a part that was being written
            return json.dumps(_without_times(json.loads(data))).encode()
    return data


def _without_times(record: dict[str, object]) -> dict[str, object]:
    timed = ("seconds", "tokens_per_second", "progress.json")
    return {key: value for key, value in record.items() if key not in timed}


def _older_file(*names: str) -> Callable[[Materials, Path], None]:
    def put(materials: Materials, work: Path) -> None:
        for name in names:
            (work / name).parent.mkdir(exist_ok=True)
            (work / name).write_text("what was there before\n")

    return put


def _older_corpora(materials: Materials, work: Path) -> None:
    for name in ("out", "dev"):
        shutil.copytree(materials.corpora / "docs-dev", work / name)


def _bundle_there(materials: Materials, work: Path) -> None:
    shutil.copytree(materials.bundle, work / "out")


def translating(
    inputs: Callable[[Materials], list[Path]], output: str, *more: object
) -> Callable[[Materials], Arguments]:
    """A command that translates files."""

    def command(materials: Materials) -> Arguments:
        given = ("translate", *inputs(materials), "-o", output, "-b", materials.bundle)
        return (*given, "--lines", "--threads", 1, *more)

    return command


def _snapshot(work: Path) -> int:
    """How many sentences a journal has up to its last snapshot, as its lines look."""
    journals = [*work.rglob("*.cadec-journal"), *work.rglob(".cadec-journal")]
    kept = count = 0
    for line in journals[0].read_bytes().splitlines(keepends=True) if journals else []:
        if not line.endswith(b"\n"):
            break
        count += b'"output":' in line
        kept = count if b'"snapshot":' in line else kept
    return kept


def _documents_done(work: Path) -> int:
    """How many sentences the documents have that are done by themselves."""
    journals = [*work.rglob(".cadec-journal-*")]
    lines = journals[0].read_bytes().splitlines(keepends=True) if journals else []
    records = [json.loads(line.partition(b" ")[2]) for line in lines if line.endswith(b"\n")]
    return sum(len(record["sentences"]) for record in records if "sentences" in record)


def _lines_done(work: Path) -> int:
    part = work / "out.tsv.cadec-part"
    return max(0, part.read_bytes().count(b"\n") - 1) if part.exists() else 0


def _told_as_many(kept: object, work: Path, told: str) -> bool:
    found = re.search(r"([\d,]+) (?:sentences|of [\d,]+ lines) are done already", told)
    return (int(found[1].replace(",", "")) if found else 0) == kept


def _told_as_many_or_done(kept: object, work: Path, told: str) -> bool:
    return "nothing is left to do" in told or _told_as_many(kept, work, told)


def _logged(work: Path) -> bytes:
    """What was logged before the newest checkpoint, with times, which only what is not done again keeps."""
    checkpoints = [path.parent for path in work.glob("out/checkpoints/update-*/optimizer.safetensors")]
    newest = max((int(path.name.removeprefix("update-")) for path in checkpoints), default=0)
    metrics = work / "out" / "metrics.jsonl"
    lines = metrics.read_bytes().splitlines(keepends=True) if newest and metrics.exists() else []
    return b"".join(line for line in lines if line.endswith(b"\n") and json.loads(line)["update"] <= newest)


def _still_logged(kept: object, work: Path, told: str) -> bool:
    assert isinstance(kept, bytes)
    return (work / "out" / "metrics.jsonl").read_bytes().startswith(kept)


def _train(materials: Materials) -> Arguments:
    docs = materials.corpora / "docs"
    data = ("--data", docs, "--dev", f"{docs}-dev", "--preset", "tiny", "--threads", 1)
    often = ("--checkpoint-every", 5, "--evaluate-every", 15, "--log-every", 1, "--keep-best", 2)
    small = ("--max-updates", 30, "--update-tokens", 300, "--batch-tokens", 200, "--dropout", 0.2)
    return ("train", "lm", "-o", "out", *data, *often, *small)


def _prepare(materials: Materials) -> Arguments:
    corpora = materials.corpora
    sides = ("-p", corpora / "src", "-p", corpora / "tgt", "--columns", "1,2", "--lines")
    held_out = ("--dev-output", "dev", "--dev-every", 20, "--processes", 1)
    return ("prepare", "text", materials.pairs, *sides, "-o", "out", *held_out)


def _translation(
    name: str,
    inputs: Callable[[Materials], list[Path]],
    output: str,
    *more: object,
    written: tuple[str, ...] = (),
    cold: bool = False,
    final: bool = False,
) -> Run:
    return Run(
        f"translate-{name}",
        translating(inputs, output, *more),
        written or (output,),
        older=_older_file(*(written or (output,))),
        kept=_snapshot,
        goes_on=_told_as_many,
        cold=cold,
        final=final,
    )


_FILES = ("out/0.eo.txt", "out/1.eo.txt", "out/2.eo.txt")

RUNS = (
    _translation("text", lambda given: given.texts(1), "out.txt"),
    _translation("srt", lambda given: [given.subtitles], "out.srt"),
    _translation("files", lambda given: given.texts(3), "out/", written=_FILES),
    _translation("beam", lambda given: [given.short], "out.txt", "--search", "beam"),
    _translation("lattice", lambda given: [given.short], "out.txt", "--search", "lattice", "--json"),
    _translation("final-write", lambda given: given.texts(3), "out/", written=_FILES, final=True),
    _translation("cold-cache", lambda given: [given.short], "out.txt", cold=True),
    Run(
        "translate-by-document",
        translating(lambda given: given.texts(3), "out/", "--shard", "1/1", "--resume"),
        _FILES,
        again=(),  # as a scheduler does
        older=_older_file(*_FILES),
        kept=_documents_done,
        goes_on=_told_as_many_or_done,
    ),
    Run("train", _train, ("out",), kept=_logged, goes_on=_still_logged),
    Run("prepare", _prepare, ("out", "dev"), again=("--force",), older=_older_corpora),
    Run(
        "convert",
        lambda given: ("convert", given.bundle, "--compute-type", "int8", "-o", "out"),
        ("out",),
        again=("--force",),
        older=_bundle_there,
    ),
    Run(
        "convert-in-place",
        lambda given: ("convert", "out", "--compute-type", "int8"),
        ("out",),
        again=(),
        given=_bundle_there,
    ),
    Run(
        "augment",
        lambda given: (
            *("augment", "back-translate", given.lines, "-o", "out.tsv"),
            *("-b", given.bundle, "--threads", 1, "--beam", 2),
        ),
        ("out.tsv",),
        older=_older_file("out.tsv"),
        kept=_lines_done,
        goes_on=_told_as_many,
    ),
)
