"""Files of all kinds become pairs; files that do not belong together are one clear error."""

from pathlib import Path

import pytest

from cadec_cli.errors import CadecError, UsageError
from cadec_cli.evaluation.checks.findings import ERROR, CheckedText
from cadec_cli.evaluation.checks.pairs import read_pairs

LINES = ["Good evening.", "Are you alone?", "Yes, and I have waited for 20 minutes."]
TRANSLATED = ["Добрый вечер.", "Ты один?", "Да, и я жду уже 20 минут."]


def write(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(text, "utf-8")
    return path


def texts(text: CheckedText) -> list[tuple[str, str, int]]:
    return [(pair.source, pair.target, pair.document) for pair in text.pairs]


def places(text: CheckedText) -> list[tuple[str, str]]:
    return [(pair.source_place, pair.target_place) for pair in text.pairs]


def test_lines_of_text(tmp_path: Path) -> None:
    source = write(tmp_path, "a.en", "\n".join([LINES[0], "", *LINES[1:]]))
    target = write(tmp_path, "a.ru", "\r\n".join([TRANSLATED[0], "", "", *TRANSLATED[1:], ""]))
    text = read_pairs(source, target)
    numbered = zip(LINES, TRANSLATED, (1, 2, 2), strict=True)
    assert texts(text) == list(numbered)
    assert places(text) == [("line 1", "line 1"), ("line 3", "line 4"), ("line 4", "line 5")]
    assert (text.source_language, text.target_language, text.has_cues) == ("en", "ru", False)


def test_an_empty_line_is_a_sentence_without_translation(tmp_path: Path) -> None:
    source = write(tmp_path, "a.txt", "\n".join(LINES))
    target = write(tmp_path, "b.txt", f"{TRANSLATED[0]}\n\n{TRANSLATED[2]}\n")
    assert [pair.target for pair in read_pairs(source, target).pairs] == [TRANSLATED[0], "", TRANSLATED[2]]


def test_a_line_too_few(tmp_path: Path) -> None:
    source = write(tmp_path, "a.en", "\n".join(LINES))
    target = write(tmp_path, "a.ru", f"{TRANSLATED[0]}\n{TRANSLATED[2]}")
    text = read_pairs(source, target)
    assert [pair.target for pair in text.pairs] == [TRANSLATED[0], "", TRANSLATED[2]]
    (remark,) = text.remarks
    assert remark.severity == ERROR and remark.pair == 1
    assert "2 lines" in remark.message and "3" in remark.message and "line 2 of the source" in remark.message


def test_json_lines_of_each_kind(tmp_path: Path) -> None:
    source = write(
        tmp_path, "a.jsonl", '{"text": "Good evening.", "document": "a"}\n{"text": "Yes.", "document": "b"}\n'
    )
    translated = write(
        tmp_path,
        "b.jsonl",
        '{"text": "Good evening.", "document": "a", "translation": "Добрый вечер."}\n'
        '{"text": "Yes.", "document": "b", "translation": "Да."}\n',
    )
    only = write(
        tmp_path, "c.jsonl", '{"text": "Добрый вечер.", "document": 1}\n{"text": "Да.", "document": 2}\n'
    )
    lists = write(
        tmp_path,
        "d.jsonl",
        '{"sentences": ["Good evening."], "translation": ["Добрый вечер."]}\n'
        '{"document": ["Yes."], "translation": ["Да."]}',
    )
    ours = write(
        tmp_path,
        "e.jsonl",
        '{"document": 1, "sentence": 1, "source": "Good evening.", "translation": "Добрый вечер."}\n'
        '{"document": 2, "sentence": 1, "source": "Yes.", "translation": "Да.", "confidence": 0.9}\n',
    )
    wanted = [("Good evening.", "Добрый вечер.", 1), ("Yes.", "Да.", 2)]
    for both in ((source, translated), (source, only), (translated, None), (lists, None), (ours, None)):
        assert texts(read_pairs(*both)) == wanted


def test_a_table(tmp_path: Path) -> None:
    rows = "Good evening.\tДобрый вечер.\n\nYes.\tДа.\tremark\nNo.\t\n"
    for name in ("a.tsv", "a.txt"):
        text = read_pairs(write(tmp_path, name, rows))
        assert texts(text) == [("Good evening.", "Добрый вечер.", 1), ("Yes.", "Да.", 2), ("No.", "", 2)]
        assert places(text)[1] == ("line 3", "line 3")


def srt(*cues: tuple[str, str, str]) -> str:
    return "\n".join(f"{n}\n{start} --> {end}\n{text}\n" for n, (start, end, text) in enumerate(cues, 1))


CUES = [
    ("00:00:01,000", "00:00:02,000", "Good evening."),
    ("00:00:03,000", "00:00:04,000", "I have waited"),
    ("00:00:04,100", "00:00:05,000", "for <i>you</i>."),
    ("00:00:20,000", "00:00:21,000", "Who is there?"),
]
RUSSIAN = ["Добрый вечер.", "Я вас", "<i>ждал</i>.", "Кто там?"]


def test_cues_of_a_sentence_are_one_pair(tmp_path: Path) -> None:
    source = write(tmp_path, "film.en.srt", srt(*CUES))
    target = write(
        tmp_path, "film.ru.srt", srt(*((*cue[:2], line) for cue, line in zip(CUES, RUSSIAN, strict=True)))
    )
    text = read_pairs(source, target)
    assert texts(text) == [
        ("Good evening.", "Добрый вечер.", 1),
        ("I have waited for <i>you</i>.", "Я вас <i>ждал</i>.", 1),
        ("Who is there?", "Кто там?", 2),
    ]
    assert places(text)[1] == ("cues 2–3, 0:00:03", "cues 2–3, 0:00:03")
    assert (text.source_language, text.target_language, text.has_cues) == ("en", "ru", True)


def test_cues_go_together_by_their_times(tmp_path: Path) -> None:
    source = write(tmp_path, "film.en.srt", srt(*CUES))
    other = [
        ("00:00:01,100", "00:00:02,000", "Добрый вечер."),
        ("00:00:03,100", "00:00:05,000", "Я вас ждал."),
        ("00:00:30,000", "00:00:31,000", "Титры."),
    ]
    text = read_pairs(source, write(tmp_path, "film.ru.srt", srt(*other)))
    assert texts(text) == [
        ("Good evening.", "Добрый вечер.", 1),
        ("I have waited for <i>you</i>.", "Я вас ждал.", 1),
        ("Who is there?", "", 2),
        ("", "Титры.", 3),
    ]
    (remark,) = text.remarks
    assert "3 cues" in remark.message and "cue" in remark.message.partition("part at ")[2]


def test_languages_are_told_by_names_and_words(tmp_path: Path) -> None:
    source = write(tmp_path, "a.txt", "\n".join(["The man is in the house and you are not."] * 3))
    target = write(tmp_path, "b.txt", "\n".join(["Der Mann ist nicht in dem Haus und du bist es."] * 3))
    text = read_pairs(source, target)
    assert (text.source_language, text.target_language) == ("en", "de")
    given = read_pairs(source, target, languages=("", "nl"))
    assert (given.source_language, given.target_language) == ("en", "nl")
    short = read_pairs(write(tmp_path, "c.txt", "Xyz.\n"), write(tmp_path, "d.srt.txt", "Abc.\n"))
    assert (short.source_language, short.target_language) == ("", "")


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("", "Да.", "has no text"),
        ("Yes.", " \n\n", "has no text"),
        ("\n".join(LINES * 4), TRANSLATED[0], "1 line, and"),
        ("Yes.\0", "Да.", "is not text"),
    ],
)
def test_files_that_can_not_be_checked(tmp_path: Path, source: str, target: str, message: str) -> None:
    paths = write(tmp_path, "a.txt", source), write(tmp_path, "b.txt", target)
    with pytest.raises(CadecError, match=message) as raised:
        read_pairs(*paths)
    assert raised.value.hint


def test_wrong_bytes_and_kinds(tmp_path: Path) -> None:
    source = write(tmp_path, "a.txt", "Yes.")
    target = tmp_path / "b.txt"
    target.write_bytes("Да.".encode("cp1251"))
    with pytest.raises(CadecError, match="utf-8"):
        read_pairs(source, target)
    assert texts(read_pairs(source, target, encoding="cp1251")) == [("Yes.", "Да.", 1)]
    with pytest.raises(CadecError, match="has cues"):
        read_pairs(source, write(tmp_path, "c.srt", srt(*CUES)))
    with pytest.raises(UsageError, match="translation is missing"):
        read_pairs(source)
    with pytest.raises(UsageError, match="only once"):
        read_pairs(Path("-"), Path("-"))
    with pytest.raises(CadecError, match="no translations"):
        read_pairs(write(tmp_path, "d.jsonl", '{"text": "Yes."}'))
    with pytest.raises(CadecError, match="has no tab"):
        read_pairs(write(tmp_path, "e.tsv", "Yes.\n"))
    with pytest.raises(CadecError, match="is not JSON"):
        read_pairs(write(tmp_path, "f.jsonl", "{"))
