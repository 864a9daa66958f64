"""`--formality` and `--after` with the embedded bundle: address follows, and what can't be is refused."""

import re
from pathlib import Path

import pytest

from cadec_cli.main import exit_code

LINES = "Where were you yesterday?\n\nDo you believe me?\n"
FLAGS = ["--threads", "1", "--quiet"]


@pytest.fixture(autouse=True)
def embedded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CADEC_BUNDLE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text(LINES)


def translated(capsys: pytest.CaptureFixture[str], *flags: str) -> list[str]:
    assert exit_code(["translate", "in.txt", *FLAGS, *flags]) == 0
    return [line for line in capsys.readouterr().out.splitlines() if line]


def test_address_follows_in_every_document(capsys: pytest.CaptureFixture[str]) -> None:
    for formality, address in (("formal", r"\bвы\b"), ("informal", r"\bты\b")):
        found = translated(capsys, "--formality", formality)
        assert len(found) == 2 and all(re.search(address, text, re.I) for text in found), found


def test_what_comes_before_is_read_before_the_first_document_only(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "before.srt").write_text(
        "1\n00:00:01,000 --> 00:00:02,000\nЯ вас давно жду.\n\n"
        "2\n00:00:02,000 --> 00:00:03,000\nВы меня слышите?\n\n"
        "3\n00:00:03,000 --> 00:00:04,000\nЧто с вами?\n"
    )
    plain = translated(capsys, "--temperature", "1")
    after = translated(capsys, "--temperature", "1", "--after", "before.srt")
    assert re.search(r"\bты\b", plain[0], re.I) and re.search(r"\bвы\b", after[0], re.I)
    assert after[1] == plain[1]


@pytest.mark.parametrize(
    ("flags", "message", "code"),
    [
        (["--formality", "formal", "--search", "doc-nmt"], "--search doc-nmt has neither", 2),
        (["--cast", "before.txt", "--search", "beam"], "--search beam can't follow a cast", 2),
        (["--cast", "before.txt"], "no tab", 1),
        (["--cast", "nowhere.tsv"], "no such file", 1),
        (["--cast", "-"], "needs a file", 2),
        (["--about", "before.txt", "--search", "sentence"], "--search sentence reads none", 2),
        (["--about", "empty.txt"], "no sentences", 1),
        (["--after", "before.txt", "--search", "sentence"], "--search sentence reads none", 2),
        (["--after", "nowhere.txt"], "no such file", 1),
        (["--after", "empty.txt"], "no sentences", 1),
    ],
)
def test_what_can_t_be_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, flags: list[str], message: str, code: int
) -> None:
    (tmp_path / "before.txt").write_text("Вы меня слышите?\n")
    (tmp_path / "empty.txt").write_text("\n")
    assert exit_code(["translate", "in.txt", *FLAGS, *flags]) == code
    captured = capsys.readouterr()
    assert captured.out == "" and message in " ".join(captured.err.split())
