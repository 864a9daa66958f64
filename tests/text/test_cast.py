"""A cast in a table, and who addresses whom in a conversation."""

from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.text.cast import Cast, Conversation, last_turns, read_cast
from cadec_cli.text.documents import Sentence
from cadec_cli.text.manner import Manner

CAST = """# who
name	gender	how
Anna|Mrs Reed	f	formal: Boris, *	informal: Max

Boris	m	formal: *
Max	M
Voice	-	informal: *
"""


def follow(cast: Cast | None, *texts: str, speakers: bool = True, address: str = "") -> list[Manner | None]:
    conversation = Conversation(cast, "ru", address)
    return [conversation.follow(Sentence(text), speakers=speakers)[0] for text in texts]


def demands(found: list[Manner | None]) -> list[str]:
    return ["".join(one.demands) if one is not None else "" for one in found]


def test_who_is_addressed_spoke_before() -> None:
    found = follow(
        read_cast(CAST),
        *(
            "BORIS: Hello.",
            "ANNA: Hello.",
            "I know you.",
            "MAX: Me too.",
            "Anna (quietly): And I.",
            "Boris: No.",
        ),
        *("Waiter: Sir?", "Anna: Yes.", "Mrs Reed: Please.", "VOICE: Come."),
    )
    assert demands(found) == ["Vm", "VfM", "", "mF", "TfM", "VmF", "M", "Vf", "Vf", "TF"]


def test_without_a_cast_all_sentences_are_alike() -> None:
    assert demands(follow(None, "Hello.", "ANNA: Hello.", address="V")) == ["V", "V"]
    assert follow(None, "Hello.") == [None]
    # what the cast does not say is as the user asks
    assert demands(follow(read_cast(CAST), "Hello.", "MAX: Hello.", "ANNA: Max!", address="V")) == [
        "V",
        "Vm",
        "TfM",
    ]


def test_only_names_of_the_cast_are_speakers_outside_subtitles() -> None:
    conversation = Conversation(read_cast(CAST), "ru")
    assert conversation.follow(Sentence("Note: Anna is here."), speakers=False) == (None, False)
    manner, labelled = conversation.follow(Sentence("Anna: Hello."), speakers=False)
    assert (manner, labelled) == (Manner("ru", "V", "f"), True)
    manner, labelled = conversation.follow(Sentence("How are you?", goes_on=True), speakers=False)
    assert (manner, labelled) == (Manner("ru", "V", "f"), False)
    assert conversation.follow(Sentence("It rained."), speakers=False) == (None, False)
    assert conversation.follow(Sentence("It did.", goes_on=True), speakers=False) == (None, False)


def test_names_beside_the_text() -> None:
    conversation = Conversation(read_cast(CAST), "ru")
    found = [
        conversation.follow(Sentence("Hello.", "0:00:01", speaker=speaker), speakers=True)[0]
        for speaker in ("Max", "anna", "", "Boris")
    ]
    assert demands(found) == ["m", "TfM", "", "VmF"]


def test_the_last_turns_tell_as_much_as_all() -> None:
    texts = ["BORIS: A.", "ANNA: B.", "No name.", "MAX: C.", "Mrs Reed: D.", "ANNA: E."]
    cast = read_cast(CAST)
    for last in ("ANNA: F.", "BORIS: F.", "MAX: F.", "F."):
        assert follow(cast, *texts, last)[-1] == follow(cast, *last_turns(texts), last)[-1]


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("", "has no people"),
        ("# nobody\n", "has no people"),
        ("Anna f\n", "has no people|no tab|does not exist|can't"),
        ("\tf\n", "line 1 has no name"),
        ("Anna\tx\n", "the gender is f, m or -, not 'x'"),
        ("Anna\tf\nanna \tm\n", "line 2: 'anna' is on line 1 already"),
        ("Anna\tf\tpolite: Max\n", "'polite: Max' does not say who is addressed how"),
        ("Anna\tf\tformal: Max\n", "Anna addresses 'max', who is not in the cast"),
        ("Anna\tf\tformal: *\tinformal: *\n", "both formally and informally"),
        ("A\tf\n" + "x" * 101 + "\tf\n", "line 2 is too long for a name"),
        ("Anna\tf\n\0\t\n", "NUL"),
    ],
)
def test_bad_casts_are_one_clear_error(content: str, wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "cast.tsv"
    path.write_text(content, "utf-8")
    with pytest.raises(CadecError, match=wrong):
        read_cast(str(path))


def test_another_encoding_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "cast.tsv"
    path.write_bytes("Анна\tf\n".encode("cp1251"))
    with pytest.raises(CadecError):
        read_cast(str(path))
    path.write_bytes("\ufeffАнна\tf\r\nМакс\tm\tinformal: Анна\r\n".encode())
    assert len(read_cast(str(path))) == 2


def test_a_large_cast(tmp_path: Path) -> None:
    path = tmp_path / "cast.tsv"
    path.write_text("".join(f"P{number}\tf\tformal: *\n" for number in range(10_001)), "utf-8")
    with pytest.raises(CadecError, match="more than 10,000 people"):
        read_cast(str(path))
