"""Translation memories, good and bad: TMX, tables, and a text with its translation."""

from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.text.translation_memory import (
    memory_files,
    memory_lines,
    memory_origin,
    preceding_text,
    read_memory,
)

TMX = """<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx version="1.4">
<header srclang="EN-us" datatype="xml"/><body>
<tu><tuv xml:lang="en-GB"><seg>The <bpt i="1">&lt;b&gt;</bpt>lamp<ept i="1">&lt;/b&gt;</ept>,
 <hi>now</hi><ph/>.</seg></tuv><tuv xml:lang="ru"><seg>Лам&#1087;а.</seg></tuv></tu>
<tu><prop>x</prop><tuv xml:lang="en"><seg>no partner</seg></tuv></tu>
<tu><tuv lang="ru-RU"><seg>Дом.</seg></tuv><tuv lang="EN"><seg>A house.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg> </seg></tuv><tuv xml:lang="ru"><seg>пусто</seg></tuv></tu>
</body></tmx>"""
PAIRS = (("The lamp, now.", "Лампа."), ("A house.", "Дом."))


def written(directory: Path, **files: str | bytes) -> list[Path]:
    paths = []
    for name, content in files.items():
        paths.append(directory / name.replace("_", "."))
        paths[-1].write_bytes(content.encode() if isinstance(content, str) else content)
    return paths


@pytest.mark.parametrize("languages", [("en", "ru"), ("", "ru"), ("en-US", ""), ("", "")])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_tmx(tmp_path: Path, languages: tuple[str, str], encoding: str) -> None:
    (path,) = written(tmp_path, a_tmx=TMX.encode(encoding))
    assert read_memory([str(path)], *languages) == PAIRS


def test_tmx_is_read_in_the_direction_that_is_asked_for(tmp_path: Path) -> None:
    (path,) = written(tmp_path, a_TMX=TMX)
    assert read_memory([str(path)], "ru", "en") == tuple((other, one) for one, other in PAIRS)
    with pytest.raises(CadecError, match="has segments in these languages: en, ru") as error:
        read_memory([str(path)], "en", "fr")
    assert error.value.hint == "it needs en and fr"


@pytest.mark.parametrize("languages", [("en", "ru"), ("", "")])
def test_entities_are_refused_and_nothing_is_fetched(tmp_path: Path, languages: tuple[str, str]) -> None:
    (secret,) = written(tmp_path, secret_txt="secret")
    for declared in ('<!ENTITY a "aaaa">', f'<!ENTITY a SYSTEM "{secret.as_uri()}">', '<!ENTITY % a "b">'):
        (path,) = written(tmp_path, a_tmx=TMX.replace(' SYSTEM "tmx14.dtd"', f" [{declared}]"))
        with pytest.raises(CadecError, match="declares XML entities"):
            read_memory([str(path)], *languages)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tmx", "<tmx><tu>", "is not TMX: no element found"),
        ("a.tmx", "", "is not TMX: no element found"),
        ("a.tmx", '<?xml version="1.0" encoding="klingon"?><tmx/>', "is not TMX: unknown encoding"),
        ("a.tmx", "<tmx/>", "has segments in these languages: none"),
        ("a.tsv", "a\tb\nc d\n", "line 2 has no tab: 'c d'"),
        ("a.tsv", b"a\tb\0\n", "it has NUL characters"),
        ("a.tsv", b"\xff\xfe\x00", "a.tsv"),
    ],
)
def test_bad_files_are_one_clear_error(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(CadecError) as error:
        read_memory([str(tmp_path / name)], "en", "ru")
    assert message in str(error.value)


def test_a_table(tmp_path: Path) -> None:
    content = "\ufeffA  lamp\t лампа \tby me\r\n\r\nx\u2028y\tz\r\tonly a target\nonly a source\t\n"
    (path,) = written(tmp_path, a_tsv=content)
    assert read_memory([str(path)]) == (("A lamp", "лампа"), ("x y", "z"))
    (path,) = written(tmp_path, empty_tsv="\n")
    assert read_memory([str(path)]) == ()


PO = """msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

msgid "Open the harbour. Now."
msgstr "Ouvrez le port. Maintenant."

#, fuzzy
msgid "Leave it."
msgstr "Feuille."

msgid "Close"
msgstr ""
"""


def test_a_catalogue(tmp_path: Path) -> None:
    """What is translated, unless a person is still to look at it."""
    (path,) = written(tmp_path, a_po=PO)
    assert read_memory([str(path)], "en", "fr") == (
        ("Open the harbour.", "Ouvrez le port."),
        ("Now.", "Maintenant."),
    )
    assert preceding_text(path) == (None, (str(path),))
    (path,) = written(tmp_path, b_po=PO.partition("#")[0].replace("Ouvrez le port. Maintenant.", ""))
    with pytest.raises(CadecError, match=r"b\.po has no translations"):
        read_memory([str(path)], "en", "fr")


def test_in_python() -> None:
    pairs = [("A\tlamp\n", "лампа"), ("b", "б")]
    assert read_memory([memory_lines(pairs)]) == (("A lamp", "лампа"), ("b", "б"))
    assert read_memory([memory_lines([])]) == ()


def test_two_files_line_by_line(tmp_path: Path) -> None:
    """A line may have several sentences; what one of them lacks belongs to the line before."""
    ours = "One. Two.\n\nThree.\nFour.\n"
    theirs = "Un. Deux. Encore.\n\nTrois.\nQuatre.\n"
    paths = written(tmp_path, a_txt=ours, b_txt=theirs)
    pairs = read_memory(["=".join(map(str, paths))])
    assert pairs == (("One. Two.", "Un. Deux. Encore."), ("Three.", "Trois."), ("Four.", "Quatre."))


CUES = "1\n00:00:01,000 --> 00:00:02,000\n{}\n\n2\n00:00:03,000 --> 00:00:04,000\n{}\n\n"
CUES += "3\n00:00:05,000 --> 00:00:06,000\n{}\n"


def test_two_files_cue_by_cue(tmp_path: Path) -> None:
    """A sentence of two cues in one language may be two sentences in the other."""
    paths = written(
        tmp_path,
        a_srt=CUES.format("I saw her", "in the house.", "<i>Good!</i> Go on."),
        b_srt=CUES.format("Je l'ai vue.", "Dans la maison.", "Bien ! Allez."),
    )
    assert read_memory(["=".join(map(str, paths))]) == (
        ("I saw her in the house.", "Je l'ai vue. Dans la maison."),
        ("Good! Go on.", "Bien ! Allez."),
    )


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    paths = written(
        tmp_path,
        a_srt=CUES.format("Go on.", "Stay here.", "Run."),
        b_srt=CUES.format("Go on.", "Stay here.", "Run.").replace(":00:", ":09:"),
    )
    with pytest.raises(CadecError, match="have only 0 lines or cues in common, of 3 and 3"):
        read_memory(["=".join(map(str, paths))])
    (empty,) = written(tmp_path, c_txt="\n")
    with pytest.raises(CadecError, match=r"c\.txt has no sentences"):
        read_memory([f"{paths[0]}={empty}"])
    with pytest.raises(CadecError, match="missing"):
        read_memory([f"{paths[0]}={tmp_path / 'missing.srt'}"])
    with pytest.raises(CadecError, match="needs a file"):
        read_memory(["-"])


def test_what_a_preceding_text_is(tmp_path: Path) -> None:
    one, other, odd, memory = written(tmp_path, a_txt="A.\n", b_txt="B.\n", **{"a=b_txt": "C.\n"}, m_tmx=TMX)
    both = f"{one}={other}"
    assert preceding_text(other) == (other, ())
    assert preceding_text(Path(both)) == (other, (both,))
    assert preceding_text(odd) == (odd, ())  # a file with that name comes first
    assert preceding_text(memory) == (None, (str(memory),))
    assert preceding_text(tmp_path / "m.tsv.gz") == (None, (str(tmp_path / "m.tsv.gz"),))
    assert preceding_text(Path(f"{odd}={other}")) == (other, (f"{odd}={other}",))
    assert memory_files([both, str(memory), "a\tb\n"]) == [one, other, memory]
    assert [name for name, _ in memory_origin([both, str(memory)])] == ["memory 1", "memory 2"]
    before = memory_origin([both])
    other.write_text("D.\n")
    assert memory_origin([both]) != before
