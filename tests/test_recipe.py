"""The recipe of the embedded bundle: its commands exist, and what it does to texts is what it says."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.helpers.shown_commands import command_of, unknown_options

ROOT = Path(__file__).parents[1]
DOCUMENTS = """\
Здравствуй, Анна! Ты получила моё письмо? Я писал тебе вчера. Скажи, Анна, что ты думаешь.
Я думаю об Анне и о Борисе.

Вы не видели Бориса? Вы всегда знаете, где он. Вчера мы видели Бориса в городе.

Ты идёшь? Нет, вы идите без меня. Погода хорошая. Мы ждём у реки.
"""


def run(script: str, *arguments: str | Path) -> None:
    subprocess.run([sys.executable, ROOT / "recipes" / "en-ru" / script, *arguments], check=True, cwd=ROOT)


def passages(tmp_path: Path, kind: str, text: str, *options: str, every: int = 0) -> list[list[str]]:
    source, output = tmp_path / "text.txt", tmp_path / "passages.txt"
    source.write_text(text, "utf-8")
    run("passages.py", kind, output, f"{source}={every}" if every else source, *options)
    return [passage.split("\n") for passage in output.read_text("utf-8").split("\n\n") if passage]


def test_its_commands_and_options_exist(tmp_path: Path) -> None:
    plan = subprocess.run(
        ["make", "--dry-run", "bundle", f"DATA={tmp_path}", f"BUILD={tmp_path / 'build'}"],
        check=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    lines = [line for line in re.split(r"[;\n]", plan.stdout.replace("\\\n", " ")) if "/cadec " in line]
    stages = {"train tokenizer", "prepare text", "train nmt", "train lm", "convert", "tune"}
    assert stages <= set(map(command_of, lines))
    assert {line: unknown_options(line) for line in lines if unknown_options(line)} == {}


def test_passages_address_somebody_in_one_way(tmp_path: Path) -> None:
    found = passages(tmp_path, "address", DOCUMENTS)
    assert len(found) == 2  # the third document changes from ты to вы
    assert found[0][1] == "Ты получила моё письмо?" and found[1][1] == "Вы всегда знаете, где он."


def test_sentences_that_address_alike_come_together(tmp_path: Path) -> None:
    sentences = [f"Ты {n}?\nВы {n}?\nДождь {n}." for n in range(30)]
    found = passages(tmp_path, "address", "\n".join(sentences), "--sentences")
    assert len(found) == 20
    for passage in found:
        kinds = Counter(line.split()[0] for line in passage)
        assert kinds["Дождь"] == 1 and sorted((kinds["Ты"], kinds["Вы"])) == [0, 3]


def test_a_name_is_respelt_alike_throughout_a_passage_and_otherwise_in_others(tmp_path: Path) -> None:
    text = "\n\n".join(["Это был Константин. Константина мы ждали, и Константин пришёл."] * 50)
    found = passages(tmp_path, "names", text)
    assert len(found) == 50
    spelt = [re.findall(r"\b[А-ЯЁ]\w{5,}", " ".join(passage)) for passage in found]
    assert all(names == [names[0], f"{names[0]}а", names[0]] for names in spelt)
    assert all(names[0].endswith("ин") and len(names[0]) == len("Константин") for names in spelt)
    assert len({names[0] for names in spelt}) > 20
    rest = {re.sub(r"\b[А-ЯЁ]\w{5,}", "…", " ".join(passage)) for passage in found}
    assert rest == {"Это был …. … мы ждали, и … пришёл."}


def test_documents_that_are_held_out_are_left_out(tmp_path: Path) -> None:
    text = "\n\n".join(f"Ты {number}? Ты здесь?" for number in range(1, 8))
    for every, left in ((3, "12457"), (1, "")):
        found = passages(tmp_path, "address", text, every=every)
        assert "".join(passage[0][3] for passage in found) == left


@pytest.mark.parametrize("kind", ["address", "names"])
@pytest.mark.parametrize("options", [[], ["--sentences"]])
def test_passages_are_the_same_every_time(tmp_path: Path, kind: str, options: list[str]) -> None:
    text = DOCUMENTS * 3 + "Ты видел Анну?\nМы ждём, и Анна, и Борис, и Виктор.\n" * 9
    first = passages(tmp_path, kind, text, *options)
    assert first and all(passages(tmp_path, kind, text, *options) == first for _ in range(3))


def test_tidied_text_has_no_spaces_before_punctuation(tmp_path: Path) -> None:
    source, output = tmp_path / "corpus.tsv", tmp_path / "tidy.txt"
    source.write_text("tag\tWho ?\tКто « там » ?\n", "utf-8")
    run("tidy.py", source, output, "3")
    assert output.read_text("utf-8") == "Кто «там»?\n"


def test_joined_pairs_are_the_pairs_that_are_not_held_out_each_once(tmp_path: Path) -> None:
    pairs, output = tmp_path / "pairs.tsv", tmp_path / "joined.tsv"
    pairs.write_text("".join(f"one{n} two three\tодин{n} два\n" for n in range(1, 201)), "utf-8")
    run("joined.py", output, f"{pairs}=4")
    lines = [line.split("\t") for line in output.read_text("utf-8").splitlines()]
    for source, target in lines:
        assert re.findall(r"one(\d+)", source) == re.findall(r"один(\d+)", target)
    assert all(len(source.split()) >= 15 for source, _ in lines[:-1])
    assert len({len(source.split()) for source, _ in lines}) > 3
    found = sorted(int(number) for source, _ in lines for number in re.findall(r"one(\d+)", source))
    assert found == [number for number in range(1, 201) if number % 4]
