"""What an installed package can add by entry points: formats, terms and objectives, for every command.

The package is a small distribution in a temporary directory, used by commands in processes of their own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.extensions import Registry, load
from cadec_cli.main import exit_code
from cadec_cli.method.objectives import OBJECTIVES
from cadec_cli.method.terms import TERMS, Term, TermOption, parse_term_options, term_origin, term_values
from cadec_cli.text.formats import FORMATS

ADDED = '''
"""Two formats, two terms and two objectives."""

from pathlib import Path

from cadec_cli.method.objectives import Objective
from cadec_cli.method.terms import Term, TermOption
from cadec_cli.text.documents import Document
from cadec_cli.text.formats import Format


class List:
    """One sentence per line, after a star."""

    def __init__(self, end=""):
        self.end = end

    def restore(self, translations):
        for text in translations:
            yield f"* {text}\\n"


def read_list(source):
    texts = [line.removeprefix("* ") for line in source.text.splitlines()]
    return (Document.of(texts),), List()


def write_list(file, wanted, name):
    return List()


LIST = Format("toy", "toy lists", (".toy", ".toys"), read_list, write=write_list)


class Packed:
    """Sentences with a zero byte after each, between two bytes that are no UTF-8."""

    def restore(self, translations):
        yield b"\\xff"
        for text in translations:
            yield text.encode("utf-16-le") + b"\\n\\0"
        yield b"\\xfe"


def read_packed(source):
    texts = source.data[1:-1].decode("utf-16-le").splitlines()
    return (Document.of(texts),), Packed()


PACKED = Format(
    "pack", "packed text", (".pack",), read_packed, binary=True, write=lambda file, wanted, name: Packed()
)


class Preferred:
    """How many of the words in a file a hypothesis has."""

    names = ("preferred",)

    def __init__(self, models, options):
        self.words = options["file"].read_text("utf-8").split()
        self.times = options["times"]

    def terms(self, lists):
        return [
            {"preferred": [self.times * sum(w in h.text for w in self.words) for h in nbest.hypotheses]}
            for nbest in lists
        ]


PREFERRED = Term(
    "preferred",
    "number of preferred words",
    Preferred,
    options=(TermOption("file", "the words", Path), TermOption("times", "a factor", float, 1.0)),
)
MINE = Objective(
    "mine",
    lambda t, w: t["nmt"] + w["preferred"] * t["preferred"],
    ("nmt", "preferred"),
    {"preferred": 1.0},
)


class Echo:
    """How many characters the sentences before have, sources and translations."""

    names = ("echo",)

    def terms_after(self, lists, contexts):
        return [
            {"echo": [float(sum(len(p.source + p.target) for p in context))] * len(nbest.hypotheses)}
            for nbest, context in zip(lists, contexts)
        ]


ECHO = Term(
    "echo",
    "length of the context",
    lambda models, options: Echo(),
    reads_context=True,
)
ECHOING = Objective("echoing", lambda t, w: t["nmt"] + t["echo"], ("nmt", "echo"))
'''
POINTS = """
[cadec.formats]
toy = cadec_added:LIST
pack = cadec_added:PACKED
srt = cadec_added:LIST
misnamed = cadec_added:LIST
lost = cadec_no_such_module:LIST
torn = cadec_torn:LIST

[cadec.terms]
preferred = cadec_added:PREFERRED
echo = cadec_added:ECHO
torn = cadec_torn:TERM

[cadec.objectives]
mine = cadec_added:MINE
echoing = cadec_added:ECHOING
torn = cadec_torn:OBJECTIVE
"""
SENTENCES = ("Who are you?", "I saw you.")


def install(place: Path, name: str, points: str) -> None:
    metadata = place / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    (metadata / "entry_points.txt").write_text(points, "utf-8")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    install(place, "cadec-added", POINTS)
    (place / "cadec_added.py").write_text(ADDED, "utf-8")
    (place / "cadec_torn.py").write_text("raise RuntimeError('it is torn')\n", "utf-8")
    return place


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "a.toy"
    path.write_text("".join(f"* {sentence}\n" for sentence in SENTENCES), "utf-8")
    return path


def cadec(installed: Path, *arguments: object, code: int = 0) -> str:
    """Run a command with the package on the path; its standard output, or if it fails what it says."""
    run = subprocess.run(
        [sys.executable, "-m", "cadec_cli", *map(str, arguments)],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "200", "NO_COLOR": "1"},
    )
    said = run.stderr.decode()
    assert run.returncode == code, said
    return said if code else run.stdout.decode("utf-8", "replace")


@dataclass(frozen=True)
class Thing:
    name: str


OURS = {"ours": Thing("ours")}


def test_a_table_is_ours_then_what_packages_add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "one", "[cadec.things]\nours = things:OURS\nb = things:B\nboth = things:B\n")
    install(tmp_path, "two", "[cadec.things]\na = things:A\nboth = things:B\n")
    (tmp_path / "things.py").write_text(
        "from tests.test_extensions import Thing\nA, B, OURS = Thing('a'), Thing('b'), Thing('taken')\n",
        "utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    table: Registry[Thing] = Registry("cadec.things", Thing, OURS)
    assert set(table) == {"ours", "a", "b", "both"} and len(table) == 4
    assert table["ours"] is OURS["ours"]
    assert table["a"] == Thing("a")
    assert "a" in table and "c" not in table
    assert table.get("c") is None
    with pytest.raises(CadecError, match="the packages one and two both add 'both'"):
        table["both"]
    assert [one.name for one in table.usable()] == ["ours", *sorted("ab", key=list(table).index)]
    table["mine"] = Thing("mine")
    assert table["mine"] in table.usable()
    del table["mine"]
    assert "mine" not in table
    with pytest.raises(CadecError, match="'ours' is a built-in name of cadec"):
        table["ours"] = Thing("ours")


def test_our_own_names_need_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: str) -> Iterator[None]:
        raise AssertionError("installed packages were searched")

    monkeypatch.setattr("importlib.metadata.entry_points", refuse)
    table: Registry[Thing] = Registry("cadec.things", Thing, OURS)
    assert "ours" in table and table["ours"] in table.own
    with pytest.raises(AssertionError, match="searched"):
        list(table)


def test_a_reference_is_imported() -> None:
    assert load("cadec_cli.extensions:Registry") is Registry
    assert load(Registry) is Registry


def test_help_lists_what_is_installed(installed: Path) -> None:
    shown = " ".join(cadec(installed, "translate", "--help").replace("│", " ").split())
    assert ", csv, tsv, toy, pack" in shown
    assert "text, jsonl, markdown, html, docx, odt, epub, srt" in shown
    assert ".toy, .pack" in shown
    assert "conditional, mine, echoing" in shown
    assert "preferred.file (the words), preferred.times (a factor; 1.0 if omitted)" in shown
    assert "mine" in cadec(installed, "eval-contrastive", "--help")
    assert "torn" not in cadec(installed, "--help")


def test_formats_of_text_and_of_bytes(installed: Path, text: Path) -> None:
    packed, lists, plain = (text.with_name(name) for name in ("b.pack", "c.toys", "d.txt"))
    cadec(installed, "translate", text, "-o", lists)
    assert lists.read_text("utf-8").startswith("* ")
    cadec(installed, "translate", text, "-o", packed)
    data = packed.read_bytes()
    assert (data[:1], data[-1:]) == (b"\xff", b"\xfe")
    assert data[1:-1].decode("utf-16-le").splitlines() == [
        line.removeprefix("* ") for line in lists.read_text("utf-8").splitlines()
    ]
    packed.write_bytes(b"\xff" + "".join(f"{one}\n" for one in SENTENCES).encode("utf-16-le") + b"\xfe")
    cadec(installed, "translate", packed, "--format", "pack", "-o", plain)
    assert plain.read_text("utf-8").splitlines() == [
        line.removeprefix("* ") for line in lists.read_text("utf-8").splitlines()
    ]
    assert "can't become .srt subtitles" in cadec(
        installed, "translate", packed, "-o", text.with_name("e.srt"), code=1
    )


def test_a_term_with_options_and_an_objective_that_uses_it(installed: Path, text: Path) -> None:
    alone = [json.loads(line) for line in cadec(installed, "translate", text, "--json").splitlines()]
    word = alone[1]["hypotheses"][5]["text"].split()[0]  # a word of a translation that isn't chosen
    words = text.with_name("words.txt")
    words.write_text(word, "utf-8")
    given = ["--term", f"preferred.file={words}", "--term", "preferred.times=50"]
    lines = cadec(installed, "translate", text, "--json", "--objective", "mine", *given).splitlines()
    for record in map(json.loads, lines):
        for hypothesis in record["hypotheses"]:
            assert hypothesis["preferred"] == 50 * (word in hypothesis["text"])
            assert hypothesis["score"] == pytest.approx(hypothesis["log_prob"] + hypothesis["preferred"])
    assert word in json.loads(lines[1])["translation"]
    out = text.with_name("out")
    cadec(installed, "translate", text, "-o", f"{out}/", "--workers", 1, "--objective", "mine", *given)
    assert word in (out / "a.ru.toy").read_text("utf-8").splitlines()[1]


def test_a_term_that_reads_the_context(installed: Path, text: Path) -> None:
    found = cadec(installed, "translate", text, "--json", "--objective", "echoing").splitlines()
    first, second = map(json.loads, found)
    assert {hypothesis["echo"] for hypothesis in first["hypotheses"]} == {0}
    assert {hypothesis["echo"] for hypothesis in second["hypotheses"]} == {
        len(first["source"] + first["translation"])
    }


def test_contrastive_tests_score_with_them(installed: Path, tmp_path: Path) -> None:
    group = {
        "source": "You see.",
        "context": ["Привет."],
        "context_source": ["Hello."],
        "candidates": ["Ты видишь.", "Вы видите."],
        "truth": 1,
    }
    (tmp_path / "set.jsonl").write_text(json.dumps(group) + "\n", "utf-8")
    (tmp_path / "words.txt").write_text("Вы", "utf-8")
    asked = [tmp_path / "set.jsonl", "--term", f"preferred.file={tmp_path / 'words.txt'}"]
    objectives = ["--objective", "mine", "--objective", "echoing"]
    assert "mine" in cadec(installed, "eval-contrastive", *asked, *objectives)
    mine = cadec(installed, "score-contrastive", *asked, "--objective", "mine").splitlines()
    assert [json.loads(line)["preferred"] for line in mine] == [0, 1]
    echo = cadec(installed, "score-contrastive", *asked[:1], "--objective", "echoing").splitlines()
    assert [json.loads(line)["echo"] for line in echo] == [len("Hello.Привет.")] * 2


@pytest.fixture
def added(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package, installed for this process."""

    def forget() -> None:
        for table in (FORMATS, TERMS, OBJECTIVES):
            vars(table).pop("_points", None)
            vars(table)["_loaded"].clear()

    monkeypatch.syspath_prepend(installed)
    forget()
    yield
    forget()


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["--objective", "mine"], "the term preferred needs preferred.file", 2),
        (["--term", "preferred.file=a"], "c-score does not use preferred, so --term preferred.file", 2),
        (["--objective", "mine", "--term", "preferred.x=1"], "no term has the option 'preferred.x'", 2),
        (["--objective", "mine", "--term", "preferred.times=x"], "preferred.times can't be 'x'", 2),
        (
            ["--objective", "torn"],
            "'torn' of the package cadec-added can't be used: RuntimeError: it is torn",
            2,
        ),
        (
            ["--format", "torn"],
            "'torn' of the package cadec-added can't be used: RuntimeError: it is torn",
            1,
        ),
        (
            ["--format", "misnamed"],
            "'misnamed' of the package cadec-added can't be used: it is not a Format",
            1,
        ),
        (
            ["--format", "lost"],
            "can't be used: ModuleNotFoundError: No module named 'cadec_no_such_module'",
            1,
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    added: None, text: Path, arguments: list[str], said: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["translate", str(text), *arguments]) == code
    shown = capsys.readouterr().err
    assert said in " ".join(shown.split()) and "Traceback" not in shown


def test_a_broken_package_is_in_nobodys_way(
    added: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.torn", "a.other"):
        (tmp_path / name).write_text("Hello.\n", "utf-8")
    assert exit_code(["translate", str(tmp_path / "a.torn")]) == 1
    assert "it is torn" in capsys.readouterr().err
    assert exit_code(["translate", str(tmp_path / "a.other")]) == 0
    assert FORMATS["srt"] in FORMATS.own  # which the package would like to be


class Times:
    """What a term's options are made into."""

    @staticmethod
    def build(models: object, options: Mapping[str, object]) -> object:
        return options


def test_options_of_terms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    term = Term("words", "", Times.build, (TermOption("file", "", Path), TermOption("times", "", int, 2)))
    monkeypatch.setitem(TERMS, "words", term)
    file = tmp_path / "words.txt"
    file.write_text("a", "utf-8")
    given = parse_term_options([f"words.file={file}", "words.times=3"])
    assert given == {"words.file": str(file), "words.times": "3"}
    assert term_values(term, given) == {"file": file, "times": 3}
    assert term_values(term, {"words.file": str(file)}) == {"file": file, "times": 2}
    before = term_origin(given)
    file.write_text("b", "utf-8")
    assert term_origin(given) != before and [name for name, _ in before] == ["term words.file"]
    with pytest.raises(CadecError, match="is not an option of a term"):
        parse_term_options(["words"])


def test_nothing_is_installed_here() -> None:
    assert tuple(FORMATS) == tuple(known.name for known in FORMATS.own)
