"""`cadec convert`, as one types it."""

from pathlib import Path

import pytest

from cadec_cli.bundle.build import BundleRequest, build_bundle
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.find import EMBEDDED
from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.bundle_parts import write_parts


@pytest.fixture
def parts(tmp_path: Path, english: TextPipeline, russian: TextPipeline) -> Path:
    write_parts(tmp_path, english, russian)
    return tmp_path


def convert(*arguments: object) -> int:
    return exit_code(["convert", *map(str, arguments)])


def from_parts(parts: Path) -> tuple[object, ...]:
    pipelines = ("--source-pipeline", parts / "en", "--target-pipeline", parts / "ru")
    return ("--nmt", parts / "nmt", "--lm", parts / "lm", *pipelines)


def test_from_models_to_a_bundle_and_on(parts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = parts / "en-ru"
    probes = parts / "probes.tsv"
    probes.write_text(
        "The boy took it.\tМальчик взял его.\n\nTom sees a letter.\tТом видит письмо.\n", "utf-8"
    )
    options = ("--compute-type", "float32", "--compute-type", "int8", "--half")
    assert convert(*from_parts(parts), "-o", bundle, *options, "--probes", probes, "--nbest", 8) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    for what in ("S-NMT in float32", "S-NMT in int8"):
        assert f"verified: {what}" in shown.err
    assert "en → ru, S-NMT, D-LM, ct2/float32, ct2/int8, " in shown.err
    assert "11 sentences" in shown.err  # nine random ones, two given

    assert convert(bundle, "--context", 2, "--name", "mine") == 0
    changed = Bundle.open(bundle)
    assert (changed.name, changed.defaults.context, changed.defaults.nbest) == ("mine", 2, 8)
    assert "verified" not in capsys.readouterr().err  # nothing was converted anew

    assert convert(bundle, "-o", parts / "copy", "--compute-type", "bfloat16") == 0
    assert "ct2/bfloat16" in Bundle.open(parts / "copy").manifest.parts
    assert "ct2/bfloat16" not in Bundle.open(bundle).manifest.parts


def test_a_conversion_that_takes_place_while_translating_is_announced(
    parts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CADEC_CACHE", str(parts / "cache"))
    (parts / "text.txt").write_text("Tom took it.\n")
    assert convert(*from_parts(parts), "-o", parts / "b") == 0
    capsys.readouterr()
    translate = ["translate", str(parts / "text.txt"), "-b", str(parts / "b"), "--search", "sentence"]
    for announced in (True, False):
        assert exit_code(translate) == 0
        shown = capsys.readouterr().err
        assert (f"converting {parts / 'b' / 'nmt'} to int8, once" in shown) == announced
        assert ("S-NMT in int8: log-probabilities differ by" in shown) == announced


@pytest.mark.parametrize("state", ["finished", "unfinished", "empty"])
def test_a_training_run_will_do(state: str, parts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = parts / "run"
    (run / "checkpoints").mkdir(parents=True)
    if state == "finished":
        (parts / "lm").rename(run / "model")
    elif state == "unfinished":
        (run / "checkpoints" / "update-00000100").mkdir()
        (parts / "lm").rename(run / "checkpoints" / "update-00000200")
        (run / "checkpoints" / ".update-00000300.part").mkdir()
    code = convert("--lm", run, "--target-pipeline", parts / "ru", "-o", parts / "b")
    shown = capsys.readouterr().err
    if state == "empty":
        assert code == 1
        assert f"{run} holds no model" in shown
        return
    assert code == 0
    assert ("taking its newest checkpoint, update-00000200" in shown) == (state == "unfinished")
    assert Bundle.open(parts / "b").has_lm


def test_misfits_are_one_line_and_a_hint(parts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    swapped = ("--source-pipeline", parts / "ru", "--target-pipeline", parts / "ru")
    assert convert("--nmt", parts / "nmt", *swapped, "-o", parts / "b") == 1
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith("error: this bundle can't be built: ")
    assert hint.startswith("hint: ")
    with pytest.raises(CadecError, match=r"this bundle can't be built: .*no compute type 'int7'"):
        ru = parts / "ru"
        build_bundle(
            parts / "b", BundleRequest(source=ru, target=ru, nmt=parts / "nmt", compute_types=["int7"])
        )
    assert not (parts / "b").exists()


def test_a_bundle_must_be_named(parts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert(*from_parts(parts)) == 2
    assert "--output" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "code", "message"),
    [
        ("--context", -1, 2, "context must be"),
        ("--search", "hope", 2, "'hope' is not one of rerank"),
        ("--compute-type", "int7", 2, "'int7' is not one of int8"),
        ("--probes", "nowhere.tsv", 1, "no such file"),
    ],
)
def test_what_can_not_be_is_refused(
    option: str, value: object, code: int, message: str, parts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert convert(*from_parts(parts), "-o", parts / "b", option, value) == code
    assert message in capsys.readouterr().err
    assert not (parts / "b").exists()


def test_the_embedded_bundle_is_never_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    link = tmp_path / "link"
    link.symlink_to(EMBEDDED)
    before = (EMBEDDED / "bundle.json").read_bytes()
    for arguments in ([str(EMBEDDED)], [str(link)], [str(EMBEDDED), "-o", str(link), "--force"]):
        assert exit_code(["convert", *arguments, "--temperature", "2"]) == 2
        assert "can't be changed" in " ".join(capsys.readouterr().err.split())
    assert (EMBEDDED / "bundle.json").read_bytes() == before
