"""What a page is told of a sentence: all of its text, cut where words differ and where tokens begin."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.main import exit_code
from cadec_cli.method.objectives import DEFECT_COST
from cadec_cli.reports.page import (
    Page,
    ReportPart,
    ReportSegment,
    ReportToken,
    changed_words,
    page_pieces,
    plain,
)
from tests.helpers import made_up_pair
from tests.helpers.report_parts import data_of, text_of

WORDS = st.lists(st.sampled_from(["ты", "Вы", "один", "?", "", "a\u2028b"]), max_size=6).map(" ".join)


@given(WORDS, WORDS)
def test_versions_are_cut_but_not_changed(before: str, after: str) -> None:
    left, right = changed_words(before, after)
    assert "".join(stretch.text for stretch in left) == before
    assert "".join(stretch.text for stretch in right) == after
    kept = [" ".join(s.text.strip(" ") for s in side if not s.changed).split() for side in (left, right)]
    assert kept[0] == kept[1]
    segment = plain(ReportSegment("d", "1", "x", after, before))
    assert text_of(segment["text"]) == after and text_of(segment["compared"]) == before
    assert segment["changed"] == (before != after)
    if before == after:
        assert all(isinstance(run, str) for run in segment["text"])


def test_tokens_lie_over_the_text_as_people_write_it() -> None:
    tokens = (" вы", " чита", "ли", ' "', "Да", '"', "?", "</s>")
    part = ReportPart(tokens=tuple(ReportToken(text, place / 8) for place, text in enumerate(tokens)))
    segment = plain(ReportSegment("d", "1", "x", "Вы читали «да»?", "Ты читали «да»?", parts=(part,)))
    assert segment["text"][:4] == [["Вы", 1, 0.0], " ", ["чита", 0, 0.125], ["ли", 0, 0.25]]
    assert [run[0] for run in segment["text"][5:]] == ["«", "да", "»", "?"]
    spoken = plain(ReportSegment("d", "1", "x", "– Вы читали «да»? ♪", parts=(part,)))
    assert spoken["text"][:3] == ["– ", ["Вы", 0, 0.0], " "] and spoken["text"][-2:] == [["?", 0, 0.75], " ♪"]
    # Tokens of something else are not laid over it.
    other = plain(ReportSegment("d", "1", "x", "Кто там?", "Ты там?", parts=(part,)))
    assert other["text"] == [["Кто", 1], " там?"]
    assert other["parts"][0]["tokens"][-1] == ["</s>", 0.875]


def test_what_was_not_computed_is_absent_and_what_no_json_knows_is_null() -> None:
    assert plain(ReportSegment("d", "1", "\x1b[31m", "b")) == {
        "group": "d",
        "label": "1",
        "source": "␛[31m",
        "text": ["b"],
    }
    tokens = (ReportToken("b", float("-inf")), ReportToken("</s>", 0))
    assert plain(ReportSegment("d", "1", "a", "b", parts=(ReportPart(tokens=tokens),)))["text"] == [
        ["b", 0, None]
    ]


@given(st.text(alphabet=st.sampled_from("</script>&\u2028\u2029'\"\\{}data!-\ud800\x00é"), max_size=30))
def test_no_text_ends_the_data_block(text: str) -> None:
    page = "".join(page_pieces(Page(text, text, (text,) * 3, {text: text}), [{"source": text}]))
    page.encode()
    assert data_of(page)["segments"] == [{"source": text}]
    assert page.count("<script") == page.count("</script>") == 2


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "in.txt"
    documents = made_up_pair.documents(12, seed=5)
    path.write_text("\n".join("".join(f"{source}\n" for source, _ in document) for document in documents))
    return path


def test_a_report_says_what_json_says(
    made_up_bundle: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fast = ["-b", str(made_up_bundle), "--nbest", "4", "--compute-type", "float32", "--threads", "1"]
    page = tmp_path / "page.html"
    command = ["translate", str(text), "--lines", *fast, "--json", "--report", str(page)]
    assert exit_code(command) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    content = page.read_text("utf-8")
    segments = data_of(content)["segments"]
    assert len(segments) == len(records)
    assert any(segment["changed"] for segment in segments)
    for segment, record in zip(segments, records, strict=True):
        assert (segment["source"], text_of(segment["text"])) == (record["source"], record["translation"])
        assert text_of(segment["compared"]) == record["hypotheses"][0]["text"]
        (part,) = segment["parts"]
        shown = {hypothesis[0]: hypothesis[1:5] for hypothesis in part["hypotheses"]}
        for number, one in enumerate(record["hypotheses"]):
            score = one["score"] + DEFECT_COST * one["defects"]
            expected = [score, one["log_prob"], one["pmi"], int(number == record["chosen"])]
            assert shown[one["text"]] == pytest.approx(expected, abs=1e-3)
        chosen = record["hypotheses"][record["chosen"]]
        assert sum(pmi for _, pmi in part["tokens"]) == pytest.approx(chosen["pmi"], abs=0.02)
        # There is no character but spaces that no token wrote.
        uncoloured = [run for run in segment["text"] if isinstance(run, str) or len(run) < 3]
        assert not text_of(uncoloured).strip()
    assert exit_code(command) == 1  # it is there already
    assert page.read_text("utf-8") == content
    assert "exists" in capsys.readouterr().err
    page.unlink()
    assert exit_code([*command, "-o", str(page)]) == 2  # one file for both
    assert exit_code([*command, "-o", str(page.parent / "x" / ".." / page.name)]) == 2
    page.write_text("something else")
    assert exit_code([*command, "--force"]) == 0
    assert page.read_text("utf-8") == content


def test_a_resumed_report_is_that_of_an_uninterrupted_translation(
    made_up_bundle: Path,
    text: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # So that something is kept of a text of 84 sentences.
    for module in ("decoding.translator", "jobs.journal"):
        monkeypatch.setattr(f"cadec_cli.{module}.WAVE", 16)

    def command(output: str, *more: str) -> int:
        files = ["-o", str(tmp_path / output), *more]
        return exit_code(
            ["translate", str(text), "-b", str(made_up_bundle), "--threads", "1", "--quiet", *files]
        )

    assert command("whole.txt", "--report", str(tmp_path / "whole.html")) == 0
    page = tmp_path / "page.html"
    made: list[ReportSegment] = []
    redone: list[ReportSegment] = []

    def stopped_in_the_second_wave(segment: ReportSegment) -> dict[str, Any]:
        made.append(segment)
        if len(made) == 40:
            raise KeyboardInterrupt
        return plain(segment)

    def counted(segment: ReportSegment) -> dict[str, Any]:
        redone.append(segment)
        return plain(segment)

    with monkeypatch.context() as patched:
        patched.setattr("cadec_cli.reports.explained.plain", stopped_in_the_second_wave)
        assert command("out.txt", "--report", str(page)) == 130
    assert not page.exists()
    capsys.readouterr()
    assert command("out.txt", "--resume") == 1  # what is there belongs to a translation with a report
    assert "differs in: output format" in " ".join(capsys.readouterr().err.split())
    with monkeypatch.context() as patched:
        patched.setattr("cadec_cli.reports.explained.plain", counted)
        assert command("out.txt", "--resume", "--report", str(page)) == 0
    assert 0 < len(redone) < len(data_of(page)["segments"])  # the rest was in the journal
    assert page.read_bytes() == (tmp_path / "whole.html").read_bytes()
    assert (tmp_path / "out.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()
