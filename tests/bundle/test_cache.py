"""The cache: made once, whoever asks; damaged entries are made again; no cache is no catastrophe."""

import multiprocessing
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from cadec_cli.bundle.cache import converted_once
from cadec_cli.errors import CadecError
from cadec_cli.whole_files import atomic_directory


class Converter:
    """Writes a file and counts."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, directory: Path) -> None:
        self.calls += 1
        with atomic_directory(directory) as part:
            (part / "model.bin").write_text("weights")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CADEC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_it_is_made_once(cache: Path) -> None:
    convert = Converter()
    first = converted_once("key", convert)
    assert converted_once("key", convert) == first
    assert first.is_relative_to(cache)
    assert convert.calls == 1
    converted_once("other", convert)
    assert convert.calls == 2


@pytest.mark.parametrize("damage", ["changed", "removed", "unsealed", "bad seal"])
def test_what_is_damaged_is_made_again(damage: str, cache: Path) -> None:
    convert = Converter()
    directory = converted_once("key", convert)
    if damage == "changed":
        (directory / "model.bin").write_text("weighty")
    elif damage == "removed":
        (directory / "model.bin").unlink()
    elif damage == "unsealed":  # killed between writing and sealing
        (directory / "cadec.json").unlink()
    else:
        (directory / "cadec.json").write_text("[")
    assert converted_once("key", convert) == directory
    assert convert.calls == 2
    assert (directory / "model.bin").read_text() == "weights"


def test_a_failed_conversion_fails_and_leaves_nothing(cache: Path) -> None:
    def fail(directory: Path) -> None:
        raise CadecError("it does not fit")

    with pytest.raises(CadecError, match="does not fit"):
        converted_once("key", fail)
    assert not (cache / "ctranslate2" / "key").exists()


def test_without_a_writable_cache_a_temporary_one_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("CADEC_CACHE", str(tmp_path / "file" / "cache"))
    convert = Converter()
    notes: list[str] = []
    first = converted_once("only-here", convert, notes.append)
    assert (first / "model.bin").read_text() == "weights"
    assert converted_once("only-here", convert, notes.append) == first
    assert convert.calls == 1
    (note,) = notes
    assert str(tmp_path / "file" / "cache") in note
    converted_once("only-there", convert)
    assert "".join(capsys.readouterr()) == ""


def _ask(cache: str, log: str, barrier: Barrier) -> None:
    import os
    import time

    os.environ["CADEC_CACHE"] = cache

    def convert(directory: Path) -> None:
        with Path(log).open("a") as stream:
            stream.write("converted\n")
        with atomic_directory(directory) as part:
            time.sleep(0.3)
            (part / "model.bin").write_text("weights")

    barrier.wait()
    assert (converted_once("key", convert) / "model.bin").read_text() == "weights"


def test_processes_that_ask_at_once_get_one_conversion(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    arguments = (str(tmp_path / "cache"), str(tmp_path / "log"), barrier)
    processes = [context.Process(target=_ask, args=arguments) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert (tmp_path / "log").read_text() == "converted\n"
