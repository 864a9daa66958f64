"""One text, one outcome: every command that translates, and Python, say the same of the same sentences.

Text, log p, scores, terms, confidence and flags; where something can't be shown or can't be the same, the
test says why.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cadec_cli
from cadec_cli.decoding.confidence import DEFECTIVE, WEIGHINGS
from cadec_cli.decoding.protection import defects as defects_module
from cadec_cli.decoding.state import part_of
from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.evaluation.generative.run import DocumentTranslators, rows_of
from cadec_cli.jobs.job import TranslationJob
from cadec_cli.jobs.json_lines import json_records
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.main import exit_code
from cadec_cli.method.objectives import LM_TERMS, READINGS
from tests.helpers.pretrained_bundles import built_bundle, convert, random_models
from tests.helpers.run_in_process import cadec

DOCUMENTS = [
    [
        "hello friend.",
        "you see the lamp.",
        "you take 25 of it.",
        "you see the <b>red</b> house.",
        "SMITH: you see the river.",
        "YOU SEE THE BIG OLD TREE.",
        "you see https://example.org/a?b=1 now.",
    ],
    [
        "good day sir.",
        "do you want the boat?",
        "- i think you take it.",
        "12:30",
        "you see Привет and the stone.",
        "1. you love the bird.",
    ],
]
TEXT = "\n\n".join("\n".join(document) for document in DOCUMENTS) + "\n"
OPTIONS = {"nbest": 5, "beam": 3, "context": 2, "temperature": 2.0}
FLAGS = [part for name, value in OPTIONS.items() for part in (f"--{name}", str(value))]
MACHINE = ["--compute-type", "float32", "--threads", "1", "--quiet"]
SEARCHES = ("rerank", "lattice", "beam", "sentence")
ROUNDING = 1e-3
Record = dict[str, Any]


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random models of other toolkits as a bundle; they say nonsense, which must agree as well."""
    return built_bundle(random_models(tmp_path_factory.mktemp("agreement")))


@pytest.fixture(scope="module")
def of_pairs(pretrained: Path) -> Path:
    """The same models, and the D-LM reads pairs; the beam steps them word by word."""
    directory, models = pretrained.parent / "pairs", pretrained.parent
    made = convert(
        *("--nmt", models / "marian", "--lm", models / "gpt2", "--for-beam"),
        *("--reads", "pairs", "--vocabulary", "full", "-o", directory),
    )
    assert exit_code(made) == 0
    return directory


@pytest.fixture(scope="module")
def of_both(of_pairs: Path) -> Path:
    """The same models, and the D-LM reads the target and pairs."""
    directory = of_pairs.with_name("both")
    assert exit_code(convert(of_pairs, "--reads", "both", "--weight", "pairs=0.5", "-o", directory)) == 0
    return directory


@pytest.fixture(params=["made_up_bundle", "pretrained", "of_pairs", "of_both"])
def bundle(request: pytest.FixtureRequest) -> Path:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Path)
    return found


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "in.txt"
    path.write_text(TEXT, "utf-8")
    return path


@pytest.fixture
def pedantic(monkeypatch: pytest.MonkeyPatch) -> None:
    """A translation a little shorter than its source is defective: tiny models make few real mistakes.

    Without a defect in the text, a command that looks for none would agree by chance.
    """
    monkeypatch.setattr(defects_module, "_SHORTEST", 0.97)
    monkeypatch.setattr(defects_module, "_LONG_ENOUGH", 10)


def ran(*arguments: object, stdin: str = "") -> str:
    done = cadec(*arguments, *FLAGS, *MACHINE, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def parsed(lines: str) -> list[Record]:
    return [json.loads(line) for line in lines.splitlines()]


def steps(bundle: Path, search: str) -> bool:
    """Tell whether a bundle can do a search: models of other toolkits are not stepped token by token."""
    return search != "beam" or bundle.name != "built"


def translated(bundle: Path, search: str, source: Path) -> list[Record]:
    """What all others are held against."""
    found = parsed(ran("translate", source, "-b", bundle, "--search", search, "--json"))
    assert [record["source"] for record in found] == [text for document in DOCUMENTS for text in document]
    assert [record["document"] for record in found] == [0] * len(DOCUMENTS[0]) + [1] * len(DOCUMENTS[1])
    (copied,) = (record for record in found if "hypotheses" not in record)
    assert copied["translation"] == "12:30"
    by_source = {record["source"]: record for record in found}
    assert by_source["- i think you take it."]["before"] == "- "
    assert "before" not in by_source["SMITH: you see the river."]
    return found


def same(found: list[Record], expected: list[Record], *, within: float = 0.0, without: str = "") -> None:
    """Hold records against others; numbers may differ by rounding, some fields may be left out by name."""
    left_out = without.split()
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        left, right = (
            {name: value for name, value in record.items() if name not in ("hypotheses", *left_out)}
            for record in (one, other)
        )
        assert left.pop("confidence", None) == pytest.approx(right.pop("confidence", None), abs=within)
        assert left == right
        assert ("hypotheses" in one) == ("hypotheses" in other)
        for mine, theirs in zip(by_text(one), by_text(other), strict=True):
            assert mine == pytest.approx(theirs, abs=within)


def by_text(record: Record) -> Iterator[Any]:
    """The texts of hypotheses, and the numbers of each."""
    hypotheses = sorted(record.get("hypotheses", []), key=lambda one: one["text"])
    yield [one["text"] for one in hypotheses]
    for one in hypotheses:
        yield {name: value for name, value in one.items() if name != "text"}


def defects_among(record: Record) -> list[str]:
    """Those flags that are defects, and not what the confidence is made of."""
    signs = {
        weighing.reason.format(compared=compared)
        for weighing in WEIGHINGS.values()
        for compared in ("longer", "shorter")
    }
    return [flag for flag in record.get("flags", []) if flag not in signs]


@pytest.mark.parametrize("search", SEARCHES)
def test_python(bundle: Path, search: str, source: Path) -> None:
    if not steps(bundle, search):
        return
    options = {**OPTIONS, "search": search}
    translator = cadec_cli.load(bundle, options=options, compute_type="float32", threads=1)
    translations = sorted(
        translator.translate_documents(DOCUMENTS), key=lambda one: (one.document, one.sentence)
    )
    expected = translated(bundle, search, source)
    for one, record in zip(translations, expected, strict=True):
        found = one.to_dict()
        assert (found["source"], found["text"]) == (record["source"], record["translation"])
        assert (found["confidence"], found["flags"]) == (record.get("confidence"), record.get("flags", []))
        figures = [
            sorted((other["log_prob"], other["score"], other.get("pmi")) for other in others)
            for others in (found["alternatives"], record.get("hypotheses", []))
        ]
        assert figures[0] == figures[1]
        assert not found["alternatives"] or found["text"] in [
            other["text"] for other in found["alternatives"]
        ]


@pytest.mark.parametrize("search", ["rerank", "lattice"])
def test_workers(bundle: Path, search: str, source: Path, tmp_path: Path) -> None:
    ran(
        *("translate", source, "-b", bundle, "--search", search, "--json"),
        *("--workers", 1, "-o", tmp_path / "out.jsonl"),
    )
    found = parsed((tmp_path / "out.jsonl").read_text("utf-8"))
    # each document by itself and not in step with the others: sums are made in another order
    same(found, translated(bundle, search, source), within=ROUNDING)


@pytest.mark.parametrize("search", SEARCHES)
def test_a_pipe_and_a_file(bundle: Path, search: str, source: Path, tmp_path: Path) -> None:
    if not steps(bundle, search):
        assert cadec("translate", source, "-b", bundle, "--search", search).returncode == 1
        return
    expected = translated(bundle, search, source)
    asked = ("-b", bundle, "--search", search)
    same(parsed(ran("translate", "-", *asked, "--json", stdin=TEXT)), expected)
    ran("translate", source, *asked, "--json", "-o", tmp_path / "out.jsonl")
    same(parsed((tmp_path / "out.jsonl").read_text("utf-8")), expected)
    plain = ran("translate", source, *asked).splitlines()
    assert [line for line in plain if line] == [record["translation"] for record in expected]


@pytest.mark.usefixtures("pedantic")
def test_the_beam_command(made_up_bundle: Path, source: Path) -> None:
    expected = translated(made_up_bundle, "beam", source)
    assert any(record.get("confidence") == DEFECTIVE for record in expected)
    same(parsed(ran("beam", source, "-b", made_up_bundle)), expected)


@pytest.mark.parametrize("search", ["rerank", "beam", "sentence"])
def test_the_repl(bundle: Path, search: str, source: Path, tmp_path: Path) -> None:
    """Sentence by sentence; not with lattice, which looks ahead, and a REPL has nothing to look at.

    A pipe shows no confidence (test_judging has a terminal's), but the session has all numbers.
    """
    if not steps(bundle, search):
        return
    expected = translated(bundle, search, source)
    saved = tmp_path / "session.json"
    shown = ran("repl", "-b", bundle, "--search", search, stdin=f"{TEXT}/save {saved}\n").splitlines()
    assert [line for line in shown if line] == [record["translation"] for record in expected]
    session = json.loads(saved.read_text("utf-8"))
    entries = [entry for document in session["documents"] for entry in document]
    assert [entry["target"] for entry in entries] == [record["translation"] for record in expected]
    options = {**OPTIONS, "search": search}
    request = ModelRequest(bundle, compute_type="float32", threads=1)
    judge = TranslationJob.open(request, options).judge
    for entry, record in zip(entries, expected, strict=True):
        (part,) = (part_of(one) for one in entry["parts"])
        place = {"document": record["document"], "sentence": record["sentence"]}
        translation = Translation(**place, source=entry["source"], parts=(part,))
        # one sentence at a time: sums are made in another order here as well
        same(json_records(translation, judge), [record], within=ROUNDING)


# A term that the models know, one that they don't, one that must be there, and one that is kept as it is.
GLOSSARY = "lamp\tлампа|лампу|лампы\nriver\tречка\nbig old tree\t!дуб|дуба\nboat\t=\n"


@pytest.mark.parametrize("search", ["rerank", "lattice", "sentence"])
def test_a_glossary(bundle: Path, search: str, source: Path, tmp_path: Path) -> None:
    """Its candidates, scores, outcomes and flags are the same everywhere."""
    (tmp_path / "terms.tsv").write_text(GLOSSARY, "utf-8")
    asked = ("-b", bundle, "--search", search, "--glossary", tmp_path / "terms.tsv")
    expected = parsed(ran("translate", source, *asked, "--json"))
    outcomes = [term for record in expected for term in record.get("terms", ())]
    assert [term["term"] for term in outcomes] == ["lamp", "river", "big old tree", "boat"]
    assert any(term["outcome"] == "changed" for term in outcomes)
    assert all("glossary" in one for record in expected for one in record.get("hypotheses", ()))
    same(parsed(ran("translate", "-", *asked, "--json", stdin=TEXT)), expected)
    if search != "sentence":
        ran("translate", source, *asked, "--json", "--workers", 1, "-o", tmp_path / "out.jsonl")
        found = parsed((tmp_path / "out.jsonl").read_text("utf-8"))
        same(found, expected, within=ROUNDING)
    options = {**OPTIONS, "search": search, "glossary": tmp_path / "terms.tsv"}
    translator = cadec_cli.load(bundle, options=options, compute_type="float32", threads=1)
    in_python = sorted(
        translator.translate_documents(DOCUMENTS), key=lambda one: (one.document, one.sentence)
    )
    for one, record in zip(in_python, expected, strict=True):
        found_here = one.to_dict()
        assert (found_here["text"], found_here["terms"]) == (record["translation"], record.get("terms", []))
        assert found_here["flags"] == record.get("flags", [])
    lists = tmp_path / "lists.jsonl"
    lists.write_text("".join(json.dumps(record) + "\n" for record in expected), "utf-8")
    again = parsed(ran("rerank", lists, *asked, "--json"))
    # the first of a sorted list need not be the S-NMT's own, which tells what was kept and what was changed
    same(again, expected, within=ROUNDING, without="confidence flags chosen terms")
    for one_again, other in zip(again, expected, strict=True):
        assert [term.get("rendering") for term in one_again.get("terms", ())] == [
            term.get("rendering") for term in other.get("terms", ())
        ]
        assert defects_among(one_again) == defects_among(other)
    if search != "lattice":
        shown = ran("repl", *asked, stdin=TEXT).splitlines()
        assert [line for line in shown if line] == [record["translation"] for record in expected]


# A woman and a man; the embedded models speak a language with two forms of address.
CAST = "ANNA\tf\tformal: BORIS\nBORIS\tm\tinformal: *\n"
CONVERSATION = [
    ["BORIS: I was so tired.", "ANNA: Don't worry about me.", "12:30", "ANNA: I knew it."],
    ["You know that.", "BORIS: Please don't go.", "ANNA: I was at home."],
]


@pytest.mark.parametrize(
    ("search", "asked_for"), [("rerank", "--formality"), ("lattice", "--cast"), ("sentence", "--cast")]
)
def test_a_manner(search: str, asked_for: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The form of address, and the gender, that are asked for: candidates, scores, outcomes and flags."""
    monkeypatch.delenv("CADEC_BUNDLE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    source, cast = tmp_path / "in.txt", tmp_path / "cast.tsv"
    text = "\n\n".join("\n".join(document) for document in CONVERSATION) + "\n"
    source.write_text(text, "utf-8")
    cast.write_text(CAST, "utf-8")
    value = "formal" if asked_for == "--formality" else str(cast)
    asked = ("--search", search, asked_for, value)
    expected = parsed(ran("translate", source, *asked, "--json"))
    outcomes = [one["outcome"] for record in expected for one in record.get("manner", ())]
    assert "changed" in outcomes and "not kept" not in outcomes
    assert all("manner" in one for record in expected for one in record.get("hypotheses", ()))
    assert ("ANNA: " in [record.get("before") for record in expected]) == (asked_for == "--cast")
    same(parsed(ran("translate", "-", *asked, "--json", stdin=text)), expected)
    if search != "sentence":
        ran("translate", source, *asked, "--json", "--workers", 1, "-o", tmp_path / "out.jsonl")
        found = parsed((tmp_path / "out.jsonl").read_text("utf-8"))
        same(found, expected, within=ROUNDING)
    options = {**OPTIONS, "search": search, asked_for.removeprefix("--"): value}
    translator = cadec_cli.load(options=options, compute_type="float32", threads=1)
    in_python = sorted(
        translator.translate_documents(CONVERSATION), key=lambda one: (one.document, one.sentence)
    )
    for one, record in zip(in_python, expected, strict=True):
        found_here = one.to_dict()
        assert (found_here["text"], found_here["manner"]) == (record["translation"], record.get("manner", []))
        assert found_here["flags"] == record.get("flags", [])
    lists = tmp_path / "lists.jsonl"
    lists.write_text("".join(json.dumps(record) + "\n" for record in expected), "utf-8")
    again = parsed(ran("rerank", lists, *asked, "--json"))
    # the first of a sorted list need not be the S-NMT's own, which tells what was kept and what was changed
    same(again, expected, within=ROUNDING, without="confidence flags chosen manner")
    for one_again, other in zip(again, expected, strict=True):
        assert defects_among(one_again) == defects_among(other)
    if search != "lattice":
        shown = ran("repl", *asked, stdin=text).splitlines()
        assert [line for line in shown if line] == [record["translation"] for record in expected]


# Words that return after the window has left them; between documents nothing is remembered but the memory.
REMEMBERED = [
    [
        "you see the river.",
        "good day sir.",
        "hello friend.",
        "you see the <b>big</b> house.",
        "do you want the river?",
        "YOU TAKE THE HOUSE.",
        "i think you see the stone.",
        "hello friend.",
        "12:30",
        "you love the river, you see the house.",
    ],
    ["you take the stone.", "good day sir.", "- i think you love the river.", "hello.", "the stone."],
]
MEMORY = "you love the stone.\tvi amas la stonon.\nthe river and the house\tla rivero kaj la domo\n"


@pytest.mark.parametrize("search", ["rerank", "lattice", "beam"])
def test_a_memory(bundle: Path, search: str, source: Path, tmp_path: Path) -> None:
    """What is retrieved, from the document or from a memory, is the same everywhere."""
    if not steps(bundle, search):
        return
    text = "\n\n".join("\n".join(document) for document in REMEMBERED) + "\n"
    source.write_text(text, "utf-8")
    (tmp_path / "memory.tsv").write_text(MEMORY, "utf-8")
    plain = ("-b", bundle, "--search", search)
    asked = (*plain, "--memory", tmp_path / "memory.tsv", "--retrieve", 2)
    expected = parsed(ran("translate", source, *asked, "--json"))
    alone = parsed(ran("translate", source, *plain, "--retrieve", 2, "--json"))
    if bundle.name not in ("built", "pairs", "both"):  # whose nonsense is too long for much context to fit
        assert expected != alone != parsed(ran("translate", source, *plain, "--json"))
    same(parsed(ran("translate", "-", *asked, "--json", stdin=text)), expected)
    same(parsed(ran("translate", source, *plain, "--json", "--after", tmp_path / "memory.tsv")), expected)
    ran("translate", source, *asked, "--json", "--workers", 1, "-o", tmp_path / "out.jsonl")
    same(parsed((tmp_path / "out.jsonl").read_text("utf-8")), expected, within=ROUNDING)
    options = {**OPTIONS, "search": search, "memory": tmp_path / "memory.tsv"}
    translator = cadec_cli.load(bundle, options=options, compute_type="float32", threads=1)
    in_python = sorted(
        translator.translate_documents(REMEMBERED), key=lambda one: (one.document, one.sentence)
    )
    assert [one.text for one in in_python] == [record["translation"] for record in expected]
    if search != "beam":
        lists = tmp_path / "lists.jsonl"
        lists.write_text("".join(json.dumps(record) + "\n" for record in expected), "utf-8")
        again = parsed(ran("rerank", lists, *asked, "--json"))
        same(again, expected, within=ROUNDING, without="confidence flags chosen")
    if search != "lattice":
        shown = ran("repl", *asked, stdin=text).splitlines()
        assert [line for line in shown if line] == [record["translation"] for record in expected]


@pytest.mark.usefixtures("pedantic")
@pytest.mark.parametrize("search", ["rerank", "lattice", "sentence"])
def test_rerank_of_what_translate_writes(bundle: Path, search: str, source: Path, tmp_path: Path) -> None:
    """Lists in a file have text and log p; token ids, which belong to one model, are not written.

    So the confidence of a reranked sentence knows less: nothing per token. Defects are seen all the same. And
    lists in files are sorted by log p, where those of a translation have what is sound first.
    """
    expected = translated(bundle, search, source)
    lists = tmp_path / "lists.jsonl"
    lists.write_text("".join(json.dumps(record) + "\n" for record in expected), "utf-8")
    found = parsed(ran("rerank", lists, "-b", bundle, "--search", search, "--json"))
    same(found, expected, within=ROUNDING, without="confidence flags chosen")
    for one, other in zip(found, expected, strict=True):
        assert ("confidence" in one) == ("confidence" in other)
        assert defects_among(one) == defects_among(other)
        assert (one.get("confidence", 1) <= DEFECTIVE) == (other.get("confidence", 1) <= DEFECTIVE)
    plain = ran("rerank", lists, "-b", bundle, "--search", search).splitlines()
    assert [line for line in plain if line] == [record["translation"] for record in expected]


def test_contrastive_tests(bundle: Path, source: Path, tmp_path: Path) -> None:
    """A list as a group, after the translations before it: what the D-LM says of it is the same."""
    records = translated(bundle, "rerank", source)[:3]
    last = records[-1]["hypotheses"]
    group = {
        "source": records[-1]["source"],
        "context_source": [record["source"] for record in records[:-1]],
        "context": [record["translation"] for record in records[:-1]],
        "candidates": [*(one["text"] for one in last), "something else"],
        "truth": len(last),
    }
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps(group) + "\n", "utf-8")
    asked = ("--context", OPTIONS["context"], "--temperature", OPTIONS["temperature"], *MACHINE)
    done = cadec("score-contrastive", path, "-b", bundle, "--objective", "pmi", *asked)
    assert done.returncode == 0, done.stderr
    names = [name for name in last[0] if name == "pmi" or name in LM_TERMS]
    assert len(names) >= 3
    for found, expected in zip(parsed(done.stdout), last, strict=False):
        assert found["text"] == expected["text"]
        figures = {name: expected[name] for name in names}
        assert {name: found[name] for name in names} == pytest.approx(figures, abs=ROUNDING)


def test_rows_of_generative_tests(of_pairs: Path) -> None:
    """Rows that read differently share lists and a pass of the D-LM, and choose as each would alone."""
    request = ModelRequest(of_pairs, compute_type="float32", threads=1)
    job = TranslationJob.open(request, {**OPTIONS})
    rows = rows_of(job.options, ["rerank", "lattice"], readings=READINGS)
    assert [row.reads for row in rows] == [*READINGS, *READINGS]
    found = DocumentTranslators(job, rows).translate(DOCUMENTS)
    for number, row in enumerate(rows):
        alone = Translator(job.models, row, language=job.languages.source_code)
        texts = [[one.text for one in alone.translate(document)] for document in DOCUMENTS]
        assert [list(one.rows[number]) for one in found] == texts
