"""N-best lists of any toolkit: one line per sentence comes out, whatever is in a hypothesis."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.jobs.json_lines import read_documents

BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
TEXTS = st.text(st.sampled_from(BREAKS + "ab \x00\x1b\ud800\U0001f600"), max_size=12)


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_sentence_is_one_line(tmp_path: Path, sentences: list[tuple[str, str, str]]) -> None:
    path = tmp_path / "a.jsonl"
    records = [
        {"source": source, "hypotheses": [{"text": text, "log_prob": -1}], "before": before, "after": before}
        for source, text, before in sentences
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    (document,) = read_documents(path)
    assert len(document) == len(sentences)
    for nbest in document:
        for text in (nbest.source, nbest.before, nbest.after, *(one.text for one in nbest.hypotheses)):
            assert len(f"{text}.".splitlines()) == 1
            text.encode("utf-8")


def test_line_breaks_become_spaces(tmp_path: Path) -> None:
    path = tmp_path / "a.nbest"
    path.write_text("0 ||| a\u2028b\x85 c ||| F0= -1 ||| -1\n", "utf-8")
    ((nbest,),) = read_documents(path)
    assert [one.text for one in nbest.hypotheses] == ["a b c"]


@pytest.mark.parametrize(
    "line",
    [
        '{"source": "a", "hypotheses": [{"text": "b", "log_prob": -1' + "0" * 400 + "}]}",
        '{"source": "a", "hypotheses": [{"text": "b", "log_prob": -1' + "0" * 5000 + "}]}",
        '{"source": "a", "hypotheses": [{"text": "b", "log_prob": NaN}]}',
        '{"source": "a", "hypotheses": [{"text": "b", "log_prob": -Infinity}]}',
        '{"source": "a", "hypotheses": [{"text": "b", "log_prob": 1e400}]}',
        '{"source": "a", "hypotheses": [{"text": "b", "log_prob": ["0"]}]}',
        '{"source": "a", "hypotheses": [{"text": ["b"], "log_prob": 0}]}',
        '{"source": "a", "x": ' + "[" * 500 + "]" * 500 + ', "hypotheses": [{"text": "b", "log_prob": 0}]}',
        "[" * 100_000,
        "0 ||| a ||| F0= -1 ||| " + "9" * 400,
        "0 ||| a ||| F0= -1 ||| nan",
        "0 ||| a",
    ],
)
def test_an_invalid_list_is_one_error(line: str, tmp_path: Path) -> None:
    path = tmp_path / "a.nbest"
    path.write_text(f"{line}\n", "utf-8")
    with pytest.raises(CadecError, match=r"a\.nbest: (entry|line|sentence) [01]"):
        read_documents(path)
