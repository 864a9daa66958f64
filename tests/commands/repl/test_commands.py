"""`cadec repl` from a pipe: every command with good and bad arguments."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import load_models
from cadec_cli.main import exit_code
from cadec_cli.method.options import TranslationOptions
from cadec_cli.session.session import Session
from tests.helpers.repl_parts import BOY, FLAGS, NOBODY, SENTENCES, TOM, Repl

pytestmark = pytest.mark.usefixtures("repl_state")


def test_every_sentence_is_a_line_as_translate_gives_them(
    repl: Repl, repl_bundle: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for lines in (SENTENCES, (*SENTENCES[:4], "", "", *SENTENCES[4:])):
        (tmp_path / "in.txt").write_text("\n".join(lines))
        assert exit_code(["translate", "-b", str(repl_bundle), *FLAGS, "in.txt"]) == 0
        expected = capfd.readouterr().out.splitlines()
        assert repl(*lines) == expected and repl.err == ""
    assert repl(" ".join(SENTENCES[:4]), "", "  ", *SENTENCES[4:], "/quit", "never read") == expected


def test_context_is_numbered_and_shows_both_sides(repl: Repl) -> None:
    first, second, *shown = repl(TOM, NOBODY, "/context", "/context 1")
    assert "source" in shown[0] and "target" in shown[0]
    assert shown[1].split() == ["1", "•", *TOM.split(), *first.split()]
    assert shown[2].split() == ["2", "•", *NOBODY.split(), *second.split()]
    assert shown[5].split()[0] == "2" and "document 1" in shown[6]
    assert repl("/context") == [] and "empty" in repl.err


def test_nbest_has_every_score_and_marks_the_choices(repl: Repl) -> None:
    _, chosen, *shown = repl(TOM, NOBODY, "/nbest", "/nbest 1")
    assert shown[0].split() == ["log", "p", "PMI", "C-score"]
    rows = [line.split(maxsplit=4) for line in shown[1:5]]
    assert [row[0] for row in rows] == ["1", "2", "3", "4"]
    broken = ["broken" in row[4] for row in rows]
    assert broken == sorted(broken)  # they are the last
    for kind in (True, False):
        scores = [float(row[3]) for row, wrong in zip(rows, broken, strict=True) if wrong == kind]
        assert scores == sorted(scores, reverse=True)
    for row in rows:
        assert float(row[1]) + float(row[2]) == pytest.approx(float(row[3]), abs=0.02)
    assert rows[0][4].startswith("chosen") and rows[0][4].endswith(chosen)
    likeliest = max(rows, key=lambda row: (("broken" not in row[4]), float(row[1])))
    assert "sentence" in likeliest[4]
    assert sum("sentence" in row[4] for row in rows) == 1
    assert any("1 of 4" in line for line in shown[5:])


def test_a_glossary_of_a_file_and_of_typed_terms(repl: Repl, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("money\t!шарманка|шарманки\n", "utf-8")
    plain = repl(NOBODY)
    assert repl("/glossary") == [] and "there is no glossary" in repl.err
    before, head, *changed, same = repl(
        NOBODY, f"/glossary {tmp_path / 'terms.tsv'}", "/redo 0", "/glossary off", NOBODY
    )
    assert [before] == plain and "before" in head and "шарманк" in " ".join(changed).lower()
    assert "1 term from the next sentence on" in repl.err and "шарманк" not in same.lower()
    text, title, shown = repl("/glossary money = !шарманка|шарманки", NOBODY, "/glossary")
    assert "шарманк" in text.lower() and title.split() == ["term", "translation"]
    assert shown.split()[0] == "money" and "glossary: money = !шарманка|шарманки" in repl.err
    assert repl("/glossary none.tsv", "/glossary a =  ", NOBODY) == plain
    assert "no such file: none.tsv" in repl.err
    saved = tmp_path / "session.json"
    repl("/glossary money = !шарманка|шарманки", NOBODY, f"/save {saved}")
    again, *_ = repl(f"/load {saved}", NOBODY)
    assert "шарманк" in again.lower()


def test_names_are_shown_taught_and_written(repl: Repl, tmp_path: Path) -> None:
    asked = ["Nobody sees Tom.", "The boy wants Tom."]
    assert repl("/terms") == [] and "/set names on" in repl.err
    assert repl("/set names on", "/terms") == [] and "no name has come up twice" in repl.err
    table = tmp_path / "terms.tsv"
    edited = ("/edit #1 Никто не видит Тома.", "/edit Мальчик хочет Тома.")
    *_, title, shown = repl("/set names on", *asked, *edited, "/terms", f"/terms {table}", f"/terms {table}")
    assert title.split()[:2] == ["name", "rendering"] and shown.split() == ["Tom", "Тома", "2"]
    assert "wrote 1 name" in repl.err and f"{table} exists already" in repl.err
    assert table.read_text("utf-8").splitlines()[1] == "Tom\tТома\t2\t0\t"
    *_, again = repl(f"/glossary {table}", "The doctor sees Tom.")
    assert "Том" in again
    saved = tmp_path / "session.json"
    lines = ("/set names on", *asked, edited[0], "/redo", "The doctor sees Tom.", "/terms")
    whole = repl(*lines)
    repl(*lines[:-2], f"/save {saved}")
    continued = repl(f"/load {saved}", *lines[-2:])
    assert continued and continued == whole[-len(continued) :]


def test_a_memory_is_read_where_it_shares_a_word(repl: Repl, tmp_path: Path) -> None:
    memory, saved = tmp_path / "memory.tsv", tmp_path / "session.json"
    memory.write_text(f"{NOBODY}\tДеньги здесь.\n", "utf-8")
    read = ["context", "1", "Деньги", "здесь."]
    _, *shown = repl(f"/set memory {memory}", NOBODY, "/why", "/set", f"/save {saved}")
    assert any(line.split() == read for line in shown)
    assert any(line.split()[:2] == ["retrieve", "2"] for line in shown)
    _, *shown = repl(f"/load {saved}", "/new", NOBODY, "/why", "/set memory off", "/new", NOBODY, "/why")
    assert [line.split() for line in shown].count(read) == 1
    _, *shown = repl("/set memory none.tsv", "/set retrieve 3", NOBODY, "/why")
    assert "no such file: none.tsv" in repl.err and not any(line.split() == read for line in shown)


def test_pick_takes_another_and_the_context_follows(repl: Repl) -> None:
    _, *shown = repl(TOM, "/nbest", "/pick 2", "/context", BOY, "/why")
    second = next(line for line in shown if line.startswith("2 ")).split(maxsplit=4)[4].strip()
    assert shown[5] == second
    assert shown[7].endswith(second)
    assert any(line.split()[:2] == ["context", "1"] and line.endswith(second) for line in shown)


def test_edit_becomes_context(repl: Repl) -> None:
    _, edited, *shown = repl(TOM, "/edit Том ждёт.", "/context", "/nbest", NOBODY, "/why")
    assert edited == "Том ждёт." and "Том ждёт. (edited)" in shown[1]
    assert any("none of these is chosen" in line for line in shown)
    assert any(line.split() == ["context", "1", "Том", "ждёт."] for line in shown)


def test_why_shows_context_and_tokens(repl: Repl) -> None:
    first, _, *shown = repl(TOM, NOBODY, "/why")
    assert shown[0].split(maxsplit=2) == ["context", "1", first]
    assert shown[1].startswith("chosen") and "PMI" in shown[2] and "log p" in shown[2]
    _, _, *shown = repl(TOM, NOBODY, "/nbest", "/why")
    ranks = [line.split() for line in shown[1:5]]
    (taken,) = (row for row in ranks if "chosen" in row[4])
    numbers = re.fullmatch(r"log p (\S+), PMI ([+-][\d.]+)(: .*)?", shown[7].strip())
    assert numbers is not None
    assert float(numbers[1]) == float(taken[1]) and float(numbers[2]) == pytest.approx(
        float(taken[2]), abs=0.011
    )
    _, *shown = repl(TOM, "/why")
    assert "none" in shown[0] and "PMI +0.00" in shown[2] and "says the same" in shown[3]


def test_undo_and_new(repl: Repl) -> None:
    first, second, again = repl(TOM, NOBODY, "/undo", NOBODY)
    assert second == again and f"removed: {NOBODY}" in repl.err
    out = repl(TOM, "/new", NOBODY, "/why", "/undo", "/undo", "/context")
    assert any("none" in line for line in out) and out[-2].endswith(first)
    assert "document 2" in repl.err and "back in the previous document" in repl.err
    repl("/undo")
    assert "nothing to undo" in repl.err


def test_set_shows_and_changes_options(repl: Repl) -> None:
    shown = repl("/set T 4", "/set beam 2", "/set nbest 3", "/set context 1", "/set search lattice", "/set")
    values = {line.split()[0]: line.split()[1] for line in shown[1:]}
    assert {name: values[name] for name in ("T", "beam", "nbest", "context", "search", "objective")} == {
        "T": "4",
        "beam": "2",
        "nbest": "3",
        "context": "1",
        "search": "lattice",
        "objective": "c-score",
    }
    names = ["/set temperature 2", "/set rolling on", "/set objective shallow-fusion", "/set weight 0.5"]
    shown = repl(*names, "/set", "/set weight default", "/set", "/set objective pmi", "/set")
    values = {line.split()[0]: line.split()[1] for line in shown[1:14]}
    assert (values["T"], values["weight"], values["rolling"], values["objective"]) == (
        "2",
        "lm=0.5",
        "on",
        "shallow-fusion",
    )
    assert any("lm=0.1 (default)" in line for line in shown[14:28])
    assert any(line.split()[:2] == ["objective", "pmi"] for line in shown[28:])


def test_a_score_is_called_what_it_is(repl: Repl) -> None:
    shown = repl(TOM, "/nbest 1", "/set search sentence", TOM, "/nbest 1")
    headings = [line.split()[-1] for line in shown if "log p" in line]
    assert headings == ["C-score", "score"]


def test_options_matter_from_the_next_sentence_on(repl: Repl) -> None:
    out = repl(TOM, "/set nbest 2", "/set search sentence", NOBODY, "/set search rerank", BOY, "/nbest")
    assert len([line for line in out[4:] if line[0].isdigit()]) == 2
    for search in ("lattice", "beam", "rerank"):
        assert len(repl(f"/set search {search}", TOM, NOBODY, "/nbest", "/why")) > 6


def test_compare(repl: Repl) -> None:
    lines = repl("/compare on", *SENTENCES, "/compare off", TOM)
    assert all(line.count("\t") == 1 for line in lines[:-1]) and "\t" not in lines[-1]
    again = repl(*SENTENCES, flags=("--compare",))
    plain = repl(*SENTENCES, flags=("--search", "sentence", "--beam", "4"))
    assert again == lines[:-1] and [line.split("\t")[1] for line in again] == plain


def test_a_saved_session_is_loaded_as_it_was(repl: Repl, tmp_path: Path) -> None:
    ending = ("/context", "/nbest", "/why", "/set", BOY)
    out = repl(TOM, "/new", TOM, "/edit Том.", NOBODY, "/pick 3", "/set T 2", "/save s.json", *ending)
    assert repl("/load s.json", *ending) == out[5:]
    stored = json.loads((tmp_path / "s.json").read_text())
    assert [[item["source"] for item in document] for document in stored["documents"]] == [
        [TOM],
        [TOM, NOBODY],
    ]
    assert stored["documents"][1][0]["target"] == "Том."
    repl("/load s.json", BOY, "/save s.json", "/save out.txt", "/save out.txt")
    text = (tmp_path / "out.txt").read_text().split("\n")
    assert text[:3] == [out[0], "", "Том."] and len(text) == 6 and text[5] == ""


def test_what_can_t_be_loaded_leaves_the_session_as_it_is(repl: Repl, tmp_path: Path) -> None:
    for name, content in (
        ("empty.json", ""),
        ("list.json", "[1, 2]"),
        ("cut.json", '{"documents": [[{"source": "Tom.'),
        ("odd.json", '{"documents": [[{"source": "Tom."}]]}'),
    ):
        (tmp_path / name).write_text(content)
        out = repl(TOM, f"/load {name}", "/context")
        assert len(out) == 4 and name in repl.err and len(repl.err.splitlines()) == 1


def test_save_does_not_overwrite_what_is_somebody_s_own(repl: Repl, tmp_path: Path) -> None:
    repl(BOY, "/save another's.json")
    another = (tmp_path / "another's.json").read_text()
    for name, content in (("film.srt", "{}"), ("letter.txt", "{}"), ("another's.json", another)):
        (tmp_path / name).write_text(content)
        repl(TOM, f"/save {name}")
        assert f"{name} exists already" in repl.err and f"/save {name} --force" in repl.err
        assert (tmp_path / name).read_text() == content
    repl(TOM, "/save letter.txt --force", "/save letter.txt", "/save --force")
    assert (tmp_path / "letter.txt").read_text() != "{}" and repl.err.count("error:") == 1
    assert "/save needs a file" in repl.err
    repl(TOM, "/save nowhere.txt/s.json", "/save s.txt", "/save s.txt/x.json")
    assert repl.err.count("error:") == 1 and (tmp_path / "s.txt").exists()


def test_open_goes_on_after_a_document(repl: Repl, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{TOM}\n\n{TOM} {NOBODY}\n")
    whole = repl(TOM, NOBODY, BOY)
    out = repl(BOY, "/open a.txt", BOY, "/context")
    assert out[1] == whole[2]
    assert [line.split()[0] for line in out[3:6]] == ["1", "2", "3"] and "document 3" in out[6]
    (tmp_path / "a.srt").write_text(f"1\n00:00:01,000 --> 00:00:02,000\n{TOM}\n")
    assert len(repl("/open a.srt", "/context")) == 3


def test_open_reads_other_encodings_if_told(repl: Repl, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{TOM} да\n", "cp1251")
    told = ("--encoding", "cp1251")
    assert TOM in " ".join(repl("/open a.txt", "/context", flags=told))
    repl("/open a.txt")
    assert " ".join(told) in " ".join(repl.err.split())
    repl("/open a.txt", flags=("--encoding", "utf-99"))
    assert "unknown encoding" in repl.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/udno", "did you mean /undo?"),
        ("/Context", "did you mean /context?"),
        ("/xyzzy", "/help lists all"),
        ("/", "unknown command"),
        ("/pick", "/pick needs a number"),
        ("/pick two", "not 'two'"),
        ("/pick 0", "number from 1"),
        ("/pick 9", "there is no hypothesis 9"),
        ("/nbest -1", "number from 1"),
        ("/context all", "number from 1"),
        ("/edit", "/edit needs the text"),
        ("/why not", "takes no argument"),
        ("/undo 2", "takes no argument"),
        ("/new one", "takes no argument"),
        ("/quit now", "takes no argument"),
        ("/help me", "takes no argument"),
        ("/set T", "needs a value"),
        ("/set T hot", "needs a number"),
        ("/set T nan", "needs a number"),
        ("/set T 0", "temperature must be"),
        ("/set T 1e-40", "temperature must be"),
        ("/set weight 1e308", "weight must be"),
        ("/set beam 1.5", "a whole number"),
        ("/set nbest 0", "nbest must be"),
        ("/set context -1", "context must be"),
        ("/set search luck", "one of rerank"),
        ("/set objective c-scor", "did you mean c-score?"),
        ("/set rolling maybe", "on or off"),
        ("/set tempreture 4", "did you mean T?"),
        ("/set luck 4", "no option 'luck'"),
        ("/compare", "/compare on"),
        ("/compare maybe", "on or off"),
        ("/save", "/save needs a file"),
        ("/load", "/load needs a file"),
        ("/load nowhere.json", "no such file"),
        ("/load .", "directory"),
        ("/open", "/open needs a file"),
        ("/open nowhere.txt", "no such file"),
        ("/open -", "needs a file"),
        ("/save \x00", "invalid file name"),
        ("/load ~nobody-at-all/x.json", "can't expand the ~ in ~nobody-at-all/x.json"),
        ("/save " + "x" * 300, "too long"),
        ("/load " + "x" * 300, "too long"),
        ("/open \x1b[31mred", "␛[31mred"),
        (b"/undo \xff", "not UTF-8"),
    ],
)
def test_a_mistake_is_one_clear_line_and_the_session_goes_on(
    repl: Repl, line: str | bytes, message: str
) -> None:
    out = repl(TOM, line, NOBODY, "/context")
    assert len(out) == 6
    errors = [text for text in repl.err.splitlines() if text.startswith("error:")]
    assert len(errors) == 1 and message in repl.err and "\x1b" not in repl.err


@pytest.mark.parametrize("line", ["/nbest", "/pick 1", "/edit Том.", "/why"])
def test_there_is_nothing_to_act_on_in_an_empty_document(repl: Repl, line: str) -> None:
    assert repl(line) == [] and "no sentence yet" in repl.err


def test_help_lists_everything_and_two_slashes_are_text(repl: Repl) -> None:
    shown = "\n".join(repl("/help"))
    names = ("context", "nbest", "pick", "edit", "why", "undo", "new", "set", "compare", "save", "load")
    for name in (*names, "open", "help", "quit"):
        assert f"/{name}" in shown
    assert len(repl("//etc is lost.", "/context")) == 4 and repl.err == ""


def test_an_answer_costs_one_list_and_two_readings_however_long_the_session(
    repl_bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = load_models(Bundle.open(repl_bundle), compute_type="float32", threads=1)
    assert models.language is not None
    asked: list[tuple[str, int]] = []

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counting(items: Sequence[Any], *rest: Any, **named: Any) -> Any:
            asked.append((name, len(items)))
            return function(items, *rest, **named)

        return counting

    monkeypatch.setattr(models.translation, "nbest", counted("list", models.translation.nbest))
    monkeypatch.setattr(models.language, "score", counted("reading", models.language.score))
    session = Session(models, TranslationOptions(protect=False))
    for sentence in (TOM, *SENTENCES, *SENTENCES):
        asked.clear()
        list(session.translate([sentence]))
        assert asked.count(("list", 1)) == 1 and asked.count(("reading", 1)) <= 2
        assert len(asked) <= 3
