"""Conversions: one way to make them, wherever they are kept; and networks are theirs who load them."""

import gc
import multiprocessing
import resource
import shutil
import weakref
from pathlib import Path

import pytest
import torch

from cadec_cli.bundle.build import BundleRequest, build_bundle
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.errors import CadecError
from cadec_cli.models.storage import save_model
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.bundle_parts import checksums, tiny_nmt, write_bundle


@pytest.fixture(scope="module")
def complete(english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with everything, int8 too."""
    return write_bundle(tmp_path_factory.mktemp("bundle"), english, russian)


@pytest.fixture
def copied(complete: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    shutil.copytree(complete, tmp_path / "bundle")
    return tmp_path / "bundle"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CADEC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_networks_are_loaded_anew_and_let_go(complete: Path, cache: Path) -> None:
    bundle = Bundle.open(complete)
    bundle.conversion("float32")
    for load in (bundle.translation_network, bundle.lm_network):
        network, again = load(), load()
        assert network is not again
        for name, tensor in network.state_dict().items():
            assert torch.equal(tensor, again.state_dict()[name])
        with torch.no_grad():  # what one does to a network no other sees
            next(network.parameters()).fill_(7)
        assert not (next(again.parameters()) == 7).all()
        references = [weakref.ref(one) for one in (network, again)]
        del network, again
        gc.collect()
        assert [reference() for reference in references] == [None, None]
    assert not any(isinstance(value, torch.nn.Module) for value in vars(bundle).values())


def test_a_bundle_and_the_cache_get_the_same_conversion(copied: Path, cache: Path) -> None:
    cached = Bundle.open(copied).conversion("float32")
    build_bundle(copied, BundleRequest(base=copied, compute_types=["float32"]))
    stored = Bundle.open(copied).conversion("float32")
    assert stored == copied / "ct2" / "float32"
    contents = [{path.name: path.read_bytes() for path in place.iterdir()} for place in (stored, cached)]
    assert contents[1].pop("cadec.json")  # the cache's own
    assert contents[0] == contents[1]


def test_a_conversion_is_noted_when_it_is_made_and_only_to_whoever_asks(
    complete: Path, cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    notes: list[str] = []
    place = Bundle.open(complete).conversion("float32", notes.append)
    converting, drift = notes
    assert converting == f"converting {complete / 'nmt'} to float32, once: {place}"
    assert drift.startswith("S-NMT in float32: log-probabilities differ by ")
    Bundle.open(complete).conversion("float32", notes.append)  # in the cache
    Bundle.open(complete).conversion("int8", notes.append)  # in the bundle
    assert len(notes) == 2
    Bundle.open(complete).conversion("bfloat16")
    assert tuple(capfd.readouterr()) == ("", "")


def test_a_conversion_that_the_cache_has_no_room_for_is_told(
    complete: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "cadec_cli.bundle.conversion_cache._temporary", {}
    )  # other tests want it in the cache
    notes: list[str] = []
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def note(message: str) -> None:
        notes.append(message)
        # A limit on the size of files is as real as a full disk; the temporary directory has none.
        limit = soft if "is not used" in "".join(notes) else 4096
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))

    try:
        place = Bundle.open(complete).conversion("float32", note)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (place / "model.bin").is_file() and not place.is_relative_to(cache)
    assert [message.split()[0] for message in notes] == ["converting", "the", "converting", "S-NMT"]
    assert "no space left" in notes[1]
    assert all(path.suffix == ".lock" for path in (cache / "ctranslate2").iterdir())


def test_a_conversion_of_another_converter_is_not_used(
    copied: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Bundle.open(copied).conversion("float32")
    monkeypatch.setattr("cadec_cli.bundle.conversion_cache.CONVERTER_VERSION", 2)
    bundle = Bundle.open(copied)
    assert bundle.conversion("int8").is_relative_to(cache)
    assert bundle.conversion("float32") != before
    (drift,) = build_bundle(copied, BundleRequest(base=copied))
    assert drift.compute_type == "int8"
    assert Bundle.open(copied).conversion("int8") == copied / "ct2" / "int8"


def test_a_missing_conversion_is_made_once(
    copied: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Bundle.open(copied).conversion("float32")
    assert first.is_relative_to(cache)
    assert (first / "model.bin").is_file()
    monkeypatch.setattr(Bundle, "convert_translation", None)  # would fail
    assert Bundle.open(copied).conversion("float32") == first


def test_another_model_has_another_conversion(
    copied: Path, cache: Path, english: TextPipeline, russian: TextPipeline
) -> None:
    first = Bundle.open(copied).conversion("float32")
    other = tiny_nmt(len(english), len(russian), activation="gelu")
    save_model(copied.parent / "nmt", other, checksums(english, russian))
    build_bundle(copied, BundleRequest(base=copied, nmt=copied.parent / "nmt"))
    assert Bundle.open(copied).conversion("float32") != first


def test_an_unknown_compute_type_is_refused(complete: Path, cache: Path) -> None:
    with pytest.raises(CadecError, match="no compute type"):
        Bundle.open(complete).conversion("int3")


def _convert_in(bundle: str) -> None:
    import ctranslate2

    model = Bundle.open(Path(bundle)).conversion("float32")
    ctranslate2.Translator(str(model), intra_threads=1)


@pytest.mark.slow
def test_two_processes_at_once(copied: Path, cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_convert_in, args=(str(copied),)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    assert len([path for path in (cache / "ctranslate2").iterdir() if path.is_dir()]) == 1
