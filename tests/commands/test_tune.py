"""`cadec tune` on the made-up pair: context helps, the choice is kept in the bundle, nonsense is refused."""

import dataclasses
import json
import re
import shutil
from pathlib import Path

import pytest

from cadec_cli.bundle import find
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.find import is_embedded
from cadec_cli.bundle.manifest import MANIFEST, read_manifest, save_defaults
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.tuning.trials import may_save
from cadec_cli.main import exit_code
from cadec_cli.method.lengths import LengthLimits
from tests.helpers import made_up_pair

DOCUMENTS = made_up_pair.documents(12, seed=77)


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
    # So hot a D-LM says next to nothing: what is better than that is more than noise.
    save_defaults(bundle, dataclasses.replace(Bundle.open(bundle).defaults, temperature=1000.0))
    before = Bundle.open(bundle).defaults
    assert run("tune", source, "--ref", reference, *options, "--no-save") == 0
    assert Bundle.open(bundle).defaults == before and read_manifest(bundle).lengths is None
    assert run("tune", source, "--ref", reference, *options, "-o", tmp_path / "out") == 0
    assert "chosen" in capsys.readouterr().out
    defaults = Bundle.open(bundle).defaults
    assert (defaults.temperature, defaults.context, defaults.nbest) == (2, 2, 4)
    assert defaults.weight == {"lm": 1}
    curve = json.loads((tmp_path / "out" / "curve.json").read_text())
    near, far = curve["points"]
    assert near["bleu"] > 90 > curve["sentence_level"]["bleu"]
    assert far["changed"] < near["changed"] and curve["choice"] == near
    assert near["over_sentence_level"]["low"] > 0 and curve["difference"]["p"] < 0.05
    assert (tmp_path / "out" / "curve.png").read_bytes().startswith(b"\x89PNG")
    # Now it is what is used, and a neighbour is no better.
    written = (bundle / MANIFEST).read_bytes()
    # So few pairs tell little, but they do tell something.
    assert read_manifest(bundle).lengths not in (None, LengthLimits())
    near_by = ("-T", 2.01, "--nbest", 4, "--context", 2, "-b", bundle)
    assert run("tune", source, "--ref", reference, *near_by) == 0
    assert "T = 2, weight 1 stays" in capsys.readouterr().out
    assert (bundle / MANIFEST).read_bytes() == written


@pytest.mark.slow
def test_accuracies_are_those_of_eval_contrastive(
    bundle: Path, dev: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = []
    for document in DOCUMENTS:
        true = document[-1][1]
        other = re.sub(r"(es|ez)\b", lambda found: {"es": "ez", "ez": "es"}[found[0]], true)
        if other != true:
            context = [before for _, before in document[-4:-1]]
            group = {"source": document[-1][0], "context": context, "candidates": [true, other], "truth": 0}
            groups.append(json.dumps(group))
    (tmp_path / "first.jsonl").write_text("\n".join(groups[::2]), "utf-8")
    (tmp_path / "second.jsonl").write_text("\n".join(groups[1::2]), "utf-8")
    sets = [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    options = ("-T", 1, "-T", 1000, "-w", 1, "-w", 0.5, "--nbest", 3, "--no-save", "-o", tmp_path / "out")
    named = [part for path in sets for part in ("--contrastive", path)]
    assert run("tune", dev[0], "--ref", dev[1], "-b", bundle, *options, *named) == 0
    assert "Pareto" in capsys.readouterr().out
    curve = json.loads((tmp_path / "out" / "curve.json").read_text())
    assert (tmp_path / "out" / "pareto.png").read_bytes().startswith(b"\x89PNG")
    assert curve["contrastive"] == ["first", "second"]
    assert any(point["pareto"] for point in curve["points"])
    for point in curve["points"]:
        setting = ("--temperature", point["setting"]["temperature"], "--weight", point["setting"]["weight"])
        assert run("eval-contrastive", *sets, "-b", bundle, "--objective", "c-score", *setting, "--json") == 0
        alone = [json.loads(line)["accuracy"] for line in capsys.readouterr().out.splitlines()]
        assert list(point["accuracies"].values()) == alone


def test_the_bundle_that_comes_with_cadec_is_never_written(
    bundle: Path,
    dev: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    save_defaults(bundle, dataclasses.replace(Bundle.open(bundle).defaults, temperature=1000.0))
    monkeypatch.setattr(find, "EMBEDDED", bundle)
    monkeypatch.delenv("CADEC_BUNDLE", raising=False)
    (tmp_path / "link").symlink_to(bundle)
    written = (bundle / MANIFEST).read_bytes()
    options = ["-T", "2", "--nbest", "4", "--compute-type", "float32", "--threads", "1"]
    assert exit_code(["tune", str(dev[0]), "--ref", str(dev[1]), *options]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "never changed" in told and "cadec translate --nbest 4 --temperature 2 --weight 1" in told
    assert re.search(r"cadec convert \S+bundle --nbest 4 --temperature 2 --weight 1 -o my-bundle", told)
    for path in (bundle, tmp_path / "link", bundle / "nmt" / ".."):
        assert is_embedded(path) and not may_save(path, None) and not may_save(path, False)
        with pytest.raises(CadecError, match="never changed"):
            may_save(path, True)
    assert exit_code(["tune", str(dev[0]), "--ref", str(dev[1]), "-b", str(tmp_path / "link"), "--save"]) == 2
    assert "never changed" in capsys.readouterr().err
    assert (bundle / MANIFEST).read_bytes() == written
    own = Path(shutil.copytree(bundle, tmp_path / "own"))
    assert may_save(own, None) and may_save(own, True) and not may_save(own, False)


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
