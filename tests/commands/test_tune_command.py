"""`cadec tune` on the made-up pair: context helps, the choice is kept in the bundle, nonsense is refused."""

import json
import shutil
from pathlib import Path

import made_up
import pytest

from cadec_cli.bundle.opening import Bundle
from cadec_cli.main import exit_code

DOCUMENTS = made_up.documents(12, seed=77)


@pytest.fixture
def bundle(made_up_bundle: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made_up_bundle, tmp_path / "bundle"))


@pytest.fixture
def dev(made_up_bundle: Path, tmp_path: Path) -> tuple[Path, Path]:
    target = Bundle.open(made_up_bundle).target
    source, reference = tmp_path / "dev.src", tmp_path / "dev.ref"
    for path, texts in (
        (source, [[pair[0] for pair in document] for document in DOCUMENTS]),
        (reference, [[target.canonical(pair[1]) for pair in document] for document in DOCUMENTS]),
    ):
        path.write_text("\n".join("".join(f"{text}\n" for text in document) for document in texts))
    return source, reference


def run(*arguments: object) -> int:
    return exit_code([*map(str, arguments), "--compute-type", "float32", "--threads", "1", "--quiet"])


@pytest.mark.slow
def test_the_choice_is_saved(
    bundle: Path, dev: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, reference = dev
    options = ("-T", 2, "-T", 1000, "--nbest", 4, "--context", 2, "-b", bundle)
    before = Bundle.open(bundle).defaults
    assert run("tune", source, "--ref", reference, *options, "--no-save") == 0
    assert Bundle.open(bundle).defaults == before
    assert run("tune", source, "--ref", reference, *options, "-o", tmp_path / "out") == 0
    assert "chosen" in capsys.readouterr().out
    defaults = Bundle.open(bundle).defaults
    assert (defaults.temperature, defaults.context, defaults.nbest) == (2, 2, 4)
    assert defaults.weight == {"lm": 1}
    curve = json.loads((tmp_path / "out" / "curve.json").read_text())
    near, far = curve["points"]
    assert near["bleu"] > 90 > curve["sentence_level"]["bleu"]
    # So hot a D-LM says next to nothing, and less is changed.
    assert far["changed"] < near["changed"] and curve["choice"] == near
    assert (tmp_path / "out" / "curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_paragraphs_are_split_and_measured_whole(
    bundle: Path, dev: tuple[Path, Path], tmp_path: Path
) -> None:
    for path in dev:  # two sentences a line
        documents = [document.splitlines() for document in path.read_text().split("\n\n")]
        halves = [[" ".join(one[at : at + 2]) for at in range(0, len(one), 2)] for one in documents]
        Path(f"{path}2").write_text("\n\n".join(map("\n".join, halves)) + "\n")
    curves = []
    for number, (source, reference) in enumerate((dev, [Path(f"{path}2") for path in dev])):
        given = ("tune", source, "--ref", reference, "-b", bundle, "-T", 2, "--nbest", 4, "--no-save")
        options = ("--split", "--no-plot", "-o", tmp_path / f"out{number}")
        assert run(*given, *options) == 0
        curves.append(json.loads((tmp_path / f"out{number}" / "curve.json").read_text())["points"][0])
    assert curves[0]["changed"] == curves[1]["changed"] > 0
    assert min(curve["bleu"] for curve in curves) > 90


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--objective", "sentence"), 2, "nothing to tune"),
        (("--objective", "luck"), 2, "'luck' is not one of sentence"),
        (("--protocol", "hope"), 2, "'hope' is not one of best, strongest"),
        (("-T", "0"), 2, "temperature must be"),
        (("-w", "nan"), 2, "weight must be"),
        (("-o", __file__), 1, "can't write"),
        (("--ref", "missing"), 1, "missing"),
    ],
)
def test_nonsense_is_one_error(
    bundle: Path,
    dev: tuple[Path, Path],
    arguments: tuple[str, ...],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ("tune", dev[0], "--ref", dev[1], "-b", bundle, "--no-save")
    assert run(*given, *arguments) == code
    assert message in capsys.readouterr().err
