"""`cadec evaluate` from the command line: figures, tests, PMI, and what it says when it can't."""

import json
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.main import exit_code
from cadec_cli.models.storage import save_model
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.bundle_parts import checksums, tiny_lm, write_parts

REFERENCE = "so it is, yes\nthe boy took the ship\n\nnobody sees it at all\nTom wants his keys\n"
GOOD = "so it is, yes\nthe boy took a ship\n\nnobody sees it at all\nTom wants his keys\n"
BAD = "so is\nthe ship\n\nnobody is at all\nhis keys\n"


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("ref", REFERENCE), ("good", GOOD), ("bad", BAD)):
        (tmp_path / f"{name}.txt").write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CADEC_BUNDLE", raising=False)
    return tmp_path


def evaluated(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert exit_code(["evaluate", *arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def repeat(texts: Path, times: int) -> None:
    """Make the texts longer, with more documents and the same scores."""
    for name, text in (("ref", REFERENCE), ("good", GOOD), ("bad", BAD)):
        (texts / f"{name}.txt").write_text("\n".join([text] * times), "utf-8")


def test_figures_by_json(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    repeat(texts, 2)
    command = ("good.txt", "--ref", "ref.txt", "--baseline", "bad.txt", "--baseline", "good.txt", "-l", "en")
    good, bad, same = evaluated(capsys, *command)
    assert [one["part"] for one in (good, bad, same)] == ["hypothesis", "baseline", "baseline"]
    assert (good["sentences"], good["documents"]) == (8, 4)
    # Twice: of 19 words 18 are right, of 15 pairs 13, of 11 triples 9, of 7 quadruples 5.
    expected = 100 * (18 / 19 * 13 / 15 * 9 / 11 * 5 / 7) ** 0.25
    for name in ("BLEU", "multi-BLEU"):
        assert good["figures"][name]["score"] == pytest.approx(expected)
        assert good["figures"][name]["difference"] is None
        found = bad["figures"][name]["difference"]
        assert found["delta"] == pytest.approx(expected - bad["figures"][name]["score"])
        assert found["low"] <= found["delta"] <= found["high"]
        assert found["p"] < 0.05
        assert same["figures"][name]["difference"]["p"] == 1
    assert "version:" in good["figures"]["chrF2"]["signature"]


def test_samples_repeat_and_units_matter(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("good.txt", "--ref", "ref.txt", "--baseline", "bad.txt", "--samples", "200")
    first, again = evaluated(capsys, *command), evaluated(capsys, *command)
    assert first == again
    assert "multi-BLEU" not in first[0]["figures"]  # no language to tokenise in
    by_document = evaluated(capsys, *command, "--by", "document")
    assert first[0]["figures"]["BLEU"]["score"] == by_document[0]["figures"]["BLEU"]["score"]
    assert first[1]["figures"]["chrF2"]["low"] != by_document[1]["figures"]["chrF2"]["low"]


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_too_few_units_are_said_instead_of_tested(
    seed: str, texts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["good.txt", "--ref", "ref.txt", "--baseline", "bad.txt", "--by", "document", "--seed", seed]
    for times, documents in ((1, 2), (2, 4), (3, 6)):
        repeat(texts, times)
        _, bad = evaluated(capsys, *command)
        for figure in bad["figures"].values():
            assert ({"p", "wins"} <= figure["difference"].keys()) == (documents >= 6)
            assert None not in figure["difference"].values()
        assert exit_code(["evaluate", *command]) == 0
        shown = capsys.readouterr()
        assert ("documents are too few for a test" in shown.err) == (documents < 6)
        assert ("no test: it takes 6 documents or more" in shown.out) == (documents < 6)
        assert ("p 0.0" in shown.out) == (documents >= 6)


def test_the_table_tells_how_it_was_made(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    repeat(texts, 2)
    assert exit_code(["evaluate", "good.txt", "-r", "ref.txt", "--baseline", "bad.txt", "--tokenized"]) == 0
    shown = capsys.readouterr().out
    assert "good.txt: BLEU = " in shown
    assert "smooth:exp|version:" in shown
    assert "1,000 samples by sentence, seed 1" in shown
    assert "Δ +" in shown
    assert "p 0.001" in shown


def test_lower_case(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (texts / "loud.txt").write_text(REFERENCE.upper(), "utf-8")
    command = ("loud.txt", "--ref", "ref.txt", "-l", "en", "--samples", "2")
    (mixed,), (lower,) = evaluated(capsys, *command), evaluated(capsys, *command, "--lowercase")
    assert mixed["figures"]["BLEU"]["score"] < 20
    assert [figure["score"] for figure in lower["figures"].values()] == pytest.approx([100, 100, 100])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["good.txt"], "need a reference"),
        (["good.txt", "--ref", "ref.txt", "--by", "paragraph"], "is not one of sentence, document"),
        (["good.txt", "--ref", "ref.txt", "--src", "ref.txt"], "by --pmi with --source-lm"),
        (["good.txt", "--ref", "ref.txt", "--src", "ref.txt", "--source-lm", "x"], "--pmi --src"),
        (["good.txt", "--pmi", "--source-lm", "x"], "--pmi --src"),
        (["good.txt", "--consistency"], "--consistency needs the source"),
        (["good.txt", "--pmi", "--tokenized"], "as people write it"),
    ],
)
def test_usage(arguments: list[str], told: str, texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["evaluate", *arguments]) == 2
    assert told in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_consistency(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = [
        "I met Delfador.",
        "Then Delfador left.",
        "Give it to Delfador!",
        "Who is Delfador?",
        "It rained.",
    ]
    one = ["Я встретил Дельфадора.", "Тогда Дельфадор ушёл.", "Отдай Дельфадору!", "Кто Дельфадор?", "Шло."]
    other = [*one[:2], "Отдай Делфадору!", *one[3:]]
    for name, lines in (("a.en", source), ("one.ru", one), ("other.ru", other)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", "utf-8")
    asked = ("one.ru", "--consistency", "--src", "a.en", "--baseline", "other.ru", "-l", "ru")
    alone = evaluated(capsys, *asked)
    assert [set(record["figures"]) for record in alone] == [{"names"}] * 2
    assert [round(record["figures"]["names"]["score"], 1) for record in alone] == [100.0, 33.3]
    assert alone[1]["figures"]["names"]["difference"]["delta"] == pytest.approx(66.7, abs=0.1)
    assert alone[0]["consistency"] == {"repetitions": 3, "changed": []}
    assert [
        (change["word"], change["before"], change["rendering"], change["sentence"])
        for change in alone[1]["consistency"]["changed"]
    ] == [("Delfador", "Дельфадор", "Делфадору", 2), ("Delfador", "Делфадору", "Дельфадор", 3)]
    parts = [record["part"] for record in evaluated(capsys, *asked, "--ref", "one.ru")]
    assert parts == ["hypothesis", "baseline", "reference"]
    assert exit_code(["evaluate", *asked]) == 0
    shown = capsys.readouterr().out
    assert "other.ru: 3 names and 0 terms again, 2 of them rendered otherwise than before" in shown
    assert "Delfador: Дельфадор → Делфадору  document 1, sentence 3 of the text" in shown
    (tmp_path / "short.ru").write_text("Шло.\n", "utf-8")
    (tmp_path / "short.en").write_text("It rained.\n", "utf-8")
    assert exit_code(["evaluate", "short.ru", "--consistency", "--src", "short.en"]) == 1
    assert "no name or term that recurs" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "other.txt has no sentences"),
        (b"a\nb\n\nc\n", "other.txt does not match ref.txt: document 2 has 1 sentence"),
        (b"a\n\nb\nc\nd\n", "document 1 has 1 sentence"),
        ("да\nнет\n\nя\nты\n".encode("cp1251"), "other.txt: line 1 is not utf-8"),
        (None, "no such file: other.txt"),
    ],
)
def test_bad_texts_are_one_line_and_a_hint(
    content: bytes | None, told: str, texts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (texts / "other.txt").write_bytes(content)
    assert exit_code(["evaluate", "other.txt", "--ref", "ref.txt"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert told in lines[0]
    assert len(lines) <= 2


def test_one_document_can_not_be_resampled(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("ref", "good", "bad"):
        path = texts / f"{name}.txt"
        path.write_text(path.read_text("utf-8").replace("\n\n", "\n"), "utf-8")
    command = ["evaluate", "good.txt", "--ref", "ref.txt", "--by", "document"]
    assert exit_code([*command, "--baseline", "bad.txt"]) == 1
    assert "only one unit" in capsys.readouterr().err
    assert exit_code(command) == 0


@pytest.fixture(scope="module")
def bundles(english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random D-LMs of both languages as bundles en/ and ru/; the sentence level alone as nmt/."""
    root = tmp_path_factory.mktemp("lms")
    write_parts(root / "parts", english, russian)
    save_model(root / "parts" / "en-lm", tiny_lm(len(english)), checksums(english))
    parts = root / "parts"
    for name, given in (
        ("ru", ["--lm", parts / "lm", "--target-pipeline", parts / "ru"]),
        ("en", ["--lm", parts / "en-lm", "--target-pipeline", parts / "en"]),
        (
            "nmt",
            ["--nmt", parts / "nmt", "--source-pipeline", parts / "en", "--target-pipeline", parts / "ru"],
        ),
    ):
        assert exit_code(["convert", *map(str, given), "-o", str(root / name), "-q"]) == 0
    return root


def test_pmi_needs_no_reference(bundles: Path, texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (texts / "hyp.ru").write_text("Том хочет его.\nНикто не знает!\n\nЕго.\nМальчик?\n", "utf-8")
    command = ("hyp.ru", "--pmi", "--bundle", str(bundles / "ru"), "--threads", "1")
    (alone,) = evaluated(capsys, *command)
    assert list(alone["figures"]) == ["PMI"]
    assert "context:3|" in alone["figures"]["PMI"]["signature"]
    source = ("--src", "ref.txt", "--source-lm", str(bundles / "en"))
    (correlated,) = evaluated(capsys, *command, *source)
    assert correlated["figures"] == alone["figures"]
    assert correlated["source_pmi"]["sentences"] == 2  # the first of each document have no context
    assert abs(correlated["source_pmi"]["pearson"]) == pytest.approx(1)  # of two points
    hypothesis, baseline, reference = evaluated(capsys, *command, "--ref", "hyp.ru", "--baseline", "bad.txt")
    assert list(hypothesis["figures"]) == ["BLEU", "chrF2", "multi-BLEU", "PMI"]
    assert "tok:moses[ru]" in hypothesis["figures"]["multi-BLEU"]["signature"]
    assert baseline["figures"]["PMI"]["score"] != hypothesis["figures"]["PMI"]["score"]
    assert (reference["part"], list(reference["figures"])) == ("reference", ["PMI"])
    assert reference["figures"]["PMI"]["difference"]["delta"] == 0


def test_pmi_without_a_model_for_it(bundles: Path, texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["evaluate", "good.txt", "--pmi", "--bundle", str(bundles / "nmt")]) == 1
    assert "has no D-LM" in capsys.readouterr().err
    (texts / "apart.txt").write_text("a\n\nb\n", "utf-8")
    assert exit_code(["evaluate", "apart.txt", "--pmi", "--bundle", str(bundles / "ru")]) == 1
    assert "no sentence of apart.txt has context" in capsys.readouterr().err
