"""Earlier versions' bundles still open; what nothing reads any more is checked, and dropped by a rebuild."""

import json
from pathlib import Path

import pytest

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.manifest import read_manifest, record
from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.bundle_parts import write_bundle, write_manifest

# A D-LM for CTranslate2, as `cadec convert --convert-lm` once wrote it.
CONVERTED_LM = "ct2-lm/int8"


@pytest.fixture
def earlier(english: TextPipeline, russian: TextPipeline, tmp_path: Path) -> Path:
    """A bundle with a converted D-LM and a manifest that knows no engines."""
    bundle = write_bundle(tmp_path, english, russian)
    (bundle / CONVERTED_LM).mkdir(parents=True)
    value = json.loads((bundle / "bundle.json").read_text())
    assert value.pop("engines") == {"nmt": "ctranslate2", "lm": "torch"}
    for name, content in (("model.bin", b"weights"), ("config.json", b"{}"), ("vocabulary.json", b"[]")):
        path = bundle / CONVERTED_LM / name
        path.write_bytes(content)
        value["files"][f"{CONVERTED_LM}/{name}"] = vars(record(path))
    value["parts"][CONVERTED_LM] = "ctranslate2"
    made_of = read_manifest(bundle).listing_digest("lm", "target")
    value["conversions"][CONVERTED_LM] = {
        "made_of": made_of,
        "converter": 1,
        "mean_drift": 0.01,
        "largest_drift": 0.1,
    }
    write_manifest(bundle, value)
    return bundle


def test_a_converted_lm_is_ignored(earlier: Path) -> None:
    bundle = Bundle.open(earlier)
    assert (bundle.engine("nmt"), bundle.engine("lm")) == ("ctranslate2", "torch")
    assert bundle.conversion("int8") == earlier / "ct2" / "int8"
    assert set(bundle.manifest.translation_conversions) == {"int8"}
    assert bundle.lm_network().config.vocabulary == len(bundle.lm_text)


def test_its_files_are_checked_all_the_same(earlier: Path) -> None:
    (earlier / CONVERTED_LM / "model.bin").write_bytes(b"Weights")
    with pytest.raises(CadecError, match=r"ct2-lm/int8/model\.bin \(checksum mismatch: "):
        Bundle.open(earlier)


def test_rebuilding_drops_it_and_changes_nothing_else(
    earlier: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = read_manifest(earlier)
    assert exit_code(["convert", str(earlier), "--context", "2"]) == 0
    assert "verified" not in capsys.readouterr().err  # the S-NMT's conversion is kept, not made again
    after = Bundle.open(earlier).manifest
    assert not (earlier / "ct2-lm").exists()
    assert not [name for name in (*after.parts, *after.files, *after.conversions) if "ct2-lm" in name]
    assert after.files == {
        name: entry for name, entry in before.files.items() if not name.startswith(CONVERTED_LM)
    }
    assert after.conversions == {"ct2/int8": before.conversions["ct2/int8"]}
    assert after.identity == before.identity
    assert after.defaults.context == 2


def test_what_a_conversion_depends_on_has_the_key_it_always_had(earlier: Path) -> None:
    assert exit_code(["convert", str(earlier), "--quiet"]) == 0
    (entry,) = json.loads((earlier / "bundle.json").read_text())["conversions"].values()
    assert list(entry) == ["made_of", "converter", "mean_drift", "largest_drift"]
    assert entry["made_of"] == read_manifest(earlier).listing_digest("nmt", "source", "target")
