"""The steps of every scale: commands that exist, texts that are laid out as they should be."""

import gzip
import json
import lzma
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import write_json
from cadec_cli.main import exit_code
from cadec_cli.reproduction import corpora, toy_corpora
from cadec_cli.reproduction.experiment import Experiment, start_experiment, steps_for
from cadec_cli.reproduction.measurements import collect
from cadec_cli.reproduction.scales import BY_NAME, SCALES, SYSTEMS, TUNED, ExperimentPaths
from cadec_cli.reproduction.steps import carry_out
from cadec_cli.text.documents import documents_of, is_blank
from tests.helpers.opus_samples import HEAD, film, put, sentence
from tests.helpers.shown_commands import KNOWN, command_of, unknown_options


def tuned_by_hand(places: ExperimentPaths) -> None:
    """What tuning would have found, so that commands that depend on it can be told."""
    for objective in TUNED:
        named = [["nmt", 2.5], ["back", 0.5], ["length", 0.2]] if "bayes" in objective else []
        setting = {"temperature": 2.0, "weight": 0.5, "named": named}
        point = {"setting": setting, "bleu": 10.0, "chrf": 30.0, "changed": 0.1}
        places.curve(objective).parent.mkdir(parents=True)
        write_json(places.curve(objective), {"sentence_level": point, "points": [point]})


@pytest.mark.parametrize("name", SCALES)
def test_every_command_of_every_scale_exists(name: str, tmp_path: Path) -> None:
    experiment = Experiment(BY_NAME[name], tmp_path / "work", tmp_path / "data")
    plan = experiment.plan()
    tuned_by_hand(experiment)
    lines = [step.command() if callable(step.command) else step.command for step in plan.steps]
    commands = [line for line in lines if line is not None]
    assert len(commands) > 50
    for line in commands:
        written = f"cadec {' '.join(line)}"
        assert command_of(written) in KNOWN
        assert not unknown_options(written), written
        assert not any(word.startswith("None") for word in line)
    outputs = [step.output for step in plan.steps]
    assert len(set(outputs)) == len(outputs)


@pytest.mark.parametrize("system", [system.name for system in SYSTEMS])
def test_one_system_takes_no_other_s_models(system: str, tmp_path: Path) -> None:
    plan = Experiment(BY_NAME["toy"], tmp_path).plan()
    trained = {step.name for step in steps_for(plan, [system]) if step.name.startswith("train ")}
    own = {
        "back-translation": {"train back-translation"},
        "doc-nmt": {"train doc-nmt"},
        "2-to-2": {"train 2-to-2"},
        "repair": {"train repair"},
        "rerank-fewer": {"train lm-fewer"},
    }
    assert trained == {"train nmt", "train reverse", "train lm"} | own.get(system, set())


def test_sizes_and_effort_change_what_they_say(tmp_path: Path) -> None:
    scale = BY_NAME["small"].with_sizes(0.5, {"lm": 7, "fewer": 3})
    assert scale.trainings["nmt"].updates == BY_NAME["small"].trainings["nmt"].updates // 2
    assert (scale.trainings["lm"].updates, scale.sizes["fewer"]) == (7, 3)
    with pytest.raises(CadecError, match="no size xyz"):
        scale.with_sizes(1.0, {"xyz": 1})
    with pytest.raises(CadecError, match="needs corpora"):
        start_experiment("small", tmp_path / "w", None)
    with pytest.raises(CadecError, match=r"has no train/parallel.*, contrastive/"):
        start_experiment("small", tmp_path / "w", tmp_path)
    with pytest.raises(CadecError, match=r"has no en, ru, en-ru\.xml\.gz, contrastive/deixis_test"):
        start_experiment("paper", tmp_path / "w", tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with pytest.raises(CadecError, match="holds something else"):
        start_experiment("toy", tmp_path / "full", None)
    assert not (tmp_path / "w").exists()


def test_a_directory_keeps_to_its_settings(tmp_path: Path) -> None:
    begun = start_experiment("toy", tmp_path / "w", None, effort=0.5, sizes={"lm": 7, "test": 3})
    again = start_experiment("toy", tmp_path / "w", None)  # no sizes in particular
    assert (again.scale.sizes, again.scale.trainings) == (begun.scale.sizes, begun.scale.trainings)
    for other in ({"effort": 0.25}, {"sizes": {"lm": 8}}):
        with pytest.raises(CadecError, match=r"other settings: .*updates"):
            start_experiment("toy", tmp_path / "w", None, **other)
    (tmp_path / "w" / "settings.json").write_text("[]", "utf-8")
    with pytest.raises(CadecError, match="other settings"):
        start_experiment("toy", tmp_path / "w", None)


def test_what_is_wrong_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["reproduce", "--work", str(tmp_path / "w"), "--scale"]
    assert exit_code([*line, "huge"]) == 2
    assert exit_code([*line, "toy", "--only", "nobody"]) == 2
    assert "'nobody' is not one of sentence," in capsys.readouterr().err
    assert exit_code([*line, "toy", "--size", "lm"]) == 2
    assert exit_code([*line, "toy", "--list", "--only", "bayes"]) == 0
    shown = capsys.readouterr().out
    assert "tune bayes" in shown
    assert "train repair" not in shown
    assert not (tmp_path / "w").exists()  # to list is not to begin


def opus(root: Path, films: int = 8, sentences: int = 14) -> None:
    """Tiny films as OPUS lays them out: two languages, and how their sentences go together."""
    rng = random.Random(1)
    groups = []
    for number in range(films):
        document = toy_corpora.document(rng, toy_corpora.world(rng), sentences)
        for side, language in enumerate(("en", "ru")):
            spoken = (
                sentence(place, pair[side], 3.0 * place, 3.0 * place + 2)
                for place, pair in enumerate(document, 1)
            )
            put(root, f"{language}/2001/{number}/1.xml.gz", film(*spoken))
        links = "".join(
            f'<link id="SL{n}" xtargets="{n};{n}" overlap="1.0" />\n' for n in range(1, sentences + 1)
        )
        names = " ".join(
            f'{side}="{language}/2001/{number}/1.xml.gz"'
            for side, language in (("fromDoc", "en"), ("toDoc", "ru"))
        )
        groups.append(f'<linkGrp targType="s" {names}>\n{links}</linkGrp>\n')
    content = f'{HEAD}<cesAlign version="1.0">\n{"".join(groups)}</cesAlign>\n'
    (root / "en-ru.xml.gz").write_bytes(gzip.compress(content.encode()))


def lines_of(path: Path) -> list[list[str]]:
    return [list(lines) for lines in documents_of(path.read_text("utf-8").splitlines(), is_blank)]


def test_the_paper_s_texts_come_from_opus_files(tmp_path: Path) -> None:
    data = tmp_path / "data"
    opus(data)
    for name in BY_NAME["paper"].contrastive:
        put(data, f"contrastive/{name}.json", "[]")
    sizes = {"tuning": 2, "test": 1, "fewer": 30, "augmented": 60}
    experiment = start_experiment("paper", tmp_path / "work", data, sizes=sizes)
    plan = experiment.plan()

    def execute(line: Sequence[str]) -> int:
        return exit_code([*line, "-q"])

    carry_out(plan, plan.with_dependencies(["texts"]), execute, lambda text: None)
    kept = lines_of(experiment.text("pairs.tsv"))
    held = {}
    for name in ("tuning", "test"):
        source, target = (lines_of(path) for path in experiment.aligned_paths(name))
        assert [len(one) for one in source] == [len(one) for one in target]
        held[name] = [
            [f"{x}\t{y}" for x, y in zip(*pair, strict=True)] for pair in zip(source, target, strict=True)
        ]
    assert (len(kept), len(held["tuning"]), len(held["test"])) == (5, 2, 1)
    whole = tmp_path / "whole.tsv"
    line = [
        "prepare",
        "opensubtitles",
        str(data),
        "--alignment",
        str(data / "en-ru.xml.gz"),
        "-o",
        str(whole),
    ]
    assert execute(line) == 0
    assert lines_of(whole) == kept + held["tuning"] + held["test"]
    # The target side of what is held back is in no training text either.
    documents = lines_of(experiment.text("documents.txt"))
    assert documents == [[pair.split("\t")[1] for pair in one] for one in kept]
    assert lines_of(experiment.text("fewer.txt")) == documents[:2]
    assert lines_of(experiment.text("augmented.txt")) == documents[:4]
    other = start_experiment("paper", tmp_path / "other", data, sizes={"tuning": 5, "test": 5})
    with pytest.raises(CadecError, match="there are 8 films, of which 10 are to be held back"):
        carry_out(other.plan(), other.plan().with_dependencies(["texts"]), execute, lambda text: None)


def test_small_texts_keep_documents_and_hold_half_of_the_aligned_ones_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for name in (*corpora.MONOLINGUAL, corpora.PAIRS, *corpora.ALIGNED):
        (data / name).parent.mkdir(parents=True, exist_ok=True)

    def packed(name: Path, text: str) -> None:
        (data / name).write_bytes(lzma.compress(text.encode()))

    packed(corpora.PAIRS, "tag\tHello !\tПривет !\ntag\tYes .\tДа .\n")
    packed(corpora.MONOLINGUAL[0], "Раз.\nДва.\nТри.\n\nОдин.\n\n")
    packed(corpora.MONOLINGUAL[1], "- Кто там? Это я.\n- Входи.\n\n")
    for name in corpora.ALIGNED:
        (data / name).write_text("1\n2\n\n3\n\n4\n5\n", "utf-8")
    out = tmp_path / "out"
    corpora.write_pairs(data, out, 10)
    assert out.read_text("utf-8") == "Hello!\tПривет!\nYes.\tДа.\n"
    corpora.write_monolingual(data, out, 100)
    assert lines_of(out) == [["Раз.", "Два.", "Три."], ["Кто там?", "Это я.", "Входи."]]
    found = []
    for part in (0, 1):
        paths = (tmp_path / f"{part}.en", tmp_path / f"{part}.ru")
        corpora.write_aligned(data, paths, part=part, most=100)
        found.append(lines_of(paths[0]))
    assert found == [[["1", "2"], ["4", "5"]], [["3"]]]
    with pytest.raises(CadecError, match="has no contrastive"):
        corpora.check_small_corpora(data)


def test_results_that_are_not_there_are_absent(tmp_path: Path) -> None:
    experiment = start_experiment("toy", tmp_path / "w", None)
    results = collect(experiment)
    assert results.rows == ()
    assert results.panels == ()
    assert json.dumps(results.record())


def test_what_the_made_up_texts_say_is_what_their_makers_say() -> None:
    for kind in toy_corpora.SETS:
        for group in toy_corpora.groups(kind, 40, seed=3):
            candidates = group["candidates"]
            context = group["context"]
            assert isinstance(candidates, list)
            assert isinstance(context, list)
            assert len(context) == 3
            assert len(set(candidates)) == len(candidates) > 1
            assert group["truth"] == 0
    # Address and names: sources of the two worlds are the same, targets are not.
    rng = random.Random(1)
    for world in ({"form": "tu"}, {"form": "vos"}):
        made = toy_corpora.World(
            spellings={"kate": "kata" if world["form"] == "tu" else "kejta"},
            drink=toy_corpora.COMMON_DRINK,
            topic=0,
            **world,
        )
        rng.seed(7)
        document = toy_corpora.document(rng, made, 12)
        if world["form"] == "tu":
            sources, targets = zip(*document, strict=True)
    again, others = zip(*document, strict=True)
    assert sources == again
    assert targets != others
