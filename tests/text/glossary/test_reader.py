"""Glossary files, good and bad."""

import time
from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.text.glossary.entries import Entry
from cadec_cli.text.glossary.reader import glossary_lines, glossary_origin, read_glossary

TBX = """<?xml version="1.0"?><tbx type="TBX-Basic"><text><body>
<{entry}><{lang} xml:lang="en-GB"><x><term>lamp</term></x><x><term>lantern</term></x></{lang}>
<{lang} xml:lang="ru"><x><term>лам&#1087;а</term></x></{lang}></{entry}>
<{entry}><{lang} xml:lang="en"><x><term>no partner</term></x></{lang}></{entry}>
</body></text></tbx>"""


def entries(tmp_path: Path, content: str | bytes, name: str = "terms.tsv") -> list[Entry]:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_glossary([str(path)], "en").entries)


def test_a_table(tmp_path: Path) -> None:
    written = (
        "\ufeffsource\ttarget\n# a comment\n\nlamp\tлампа\r\nmage \t маг| волшебник |маг\tnoun\n"
        "Black  Knight\t!Чёрный рыцарь\nsword\tмеч!\nRosebud\t=\nGIMP\t!=\nHurrah!\tУра!\n"
    )
    assert entries(tmp_path, written) == [
        Entry("lamp", ("лампа",)),
        Entry("mage", ("маг", "волшебник")),
        Entry("Black Knight", ("Чёрный рыцарь",), must=True),
        Entry("sword", ("меч",), must=True),
        Entry("Rosebud", ("Rosebud",), keep=True),
        Entry("GIMP", ("GIMP",), must=True, keep=True),
        Entry("Hurrah!", ("Ура!",)),
    ]


@pytest.mark.parametrize("separator", [",", ";"])
def test_csv(tmp_path: Path, separator: str) -> None:
    written = (
        f'source{separator}target\r\n"say ""hi"", now"{separator}"скажи, привет"\r\nlamp{separator}!лампа'
    )
    assert entries(tmp_path, written, "terms.csv") == [
        Entry('say "hi", now', ("скажи, привет",)),
        Entry("lamp", ("лампа",), must=True),
    ]


@pytest.mark.parametrize("names", [("termEntry", "langSet"), ("conceptEntry", "langSec")])
def test_tbx(tmp_path: Path, names: tuple[str, str]) -> None:
    written = TBX.format(entry=names[0], lang=names[1])
    assert entries(tmp_path, written, "terms.tbx") == [
        Entry("lamp", ("лампа",)),
        Entry("lantern", ("лампа",)),
    ]


def test_one_term_twice(tmp_path: Path) -> None:
    assert entries(tmp_path, "lamp\tлампа\nlamp\tлампа\n") == [Entry("lamp", ("лампа",))]
    assert entries(tmp_path, "lamp\tлампа\nlamp\t!фонарь\n") == [
        Entry("lamp", ("лампа", "фонарь"), must=True)
    ]
    assert entries(tmp_path, "lamp\t=\nlamp\tлампа\n") == [Entry("lamp", ("lamp", "лампа"))]


def test_the_later_file_decides(tmp_path: Path) -> None:
    for name, target in (("a.tsv", "лампа"), ("b.tsv", "фонарь")):
        (tmp_path / name).write_text(f"lamp\t{target}\n", "utf-8")
    files = [str(tmp_path / "a.tsv"), str(tmp_path / "b.tsv")]
    assert read_glossary(files).entries == (Entry("lamp", ("фонарь",)),)
    assert read_glossary(files[::-1]).entries == (Entry("lamp", ("лампа",)),)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("lamp\tлампа\nmage маг\n", "line 2 has no tab: 'mage маг'"),
        ("lamp\t \n", "line 1 has no translation"),
        ("lamp\t|\n", "line 1 has no translation"),
        ("lamp\t!\n", "line 1 has no translation"),
        ("\tлампа\n", "line 1 has no term"),
        ("lamp\tлам\0па\n", "it has NUL characters"),
        ("lamp\tлампа\n".encode("cp1251"), "line 1 is not utf-8"),
        ("", "has no terms"),
        ("# nothing\n", "has no terms"),
        (f"{'long ' * 200}\tx\n", "line 1 is too long for a term"),
    ],
)
def test_bad_tables_are_one_clear_error(tmp_path: Path, written: str | bytes, message: str) -> None:
    with pytest.raises(CadecError, match=message) as caught:
        entries(tmp_path, written)
    assert "terms.tsv" in caught.value.message


@pytest.mark.parametrize(
    ("name", "written", "message"),
    [
        ("terms.csv", 'lamp,"лампа\n', "line 2 is not CSV"),
        ("terms.csv", "lamp\n", "line 1 has one column: 'lamp'"),
        ("terms.tbx", "<tbx>", "is not TBX: no element found"),
        ("terms.tbx", "<tbx/>", "has terms in these languages: none"),
        ("terms.tbx", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "declares XML entities"),
        (
            "terms.tbx",
            '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///a">]><a>&b;</a>',
            "declares XML entities",
        ),
        ("terms.tbx", TBX.format(entry="termEntry", lang="langSet").replace("en", "de"), "languages: de, ru"),
    ],
)
def test_other_bad_files(tmp_path: Path, name: str, written: str, message: str) -> None:
    with pytest.raises(CadecError, match=message):
        entries(tmp_path, written, name)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(CadecError, match="no such file"):
        read_glossary([str(tmp_path / "none.tsv")])
    with pytest.raises(CadecError, match="a pipe can't be"):
        read_glossary(["-"])


def test_terms_of_python() -> None:
    lines = glossary_lines({"lamp": "лампа", "mage": ["маг", "волшебник"]})
    assert read_glossary([lines]).entries == (Entry("lamp", ("лампа",)), Entry("mage", ("маг", "волшебник")))


def test_the_content_is_the_origin(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("lamp\tлампа\n", "utf-8")
    before = glossary_origin([str(path)])
    path.write_text("lamp\tфонарь\n", "utf-8")
    assert glossary_origin([str(path)]) != before
    assert len(dict(glossary_origin([str(path)] * 2))) == 2


def test_a_hundred_thousand_entries_are_read_once(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("".join(f"word{n}\tслово{n}\n" for n in range(100_000)), "utf-8")
    first = read_glossary([str(path)], "en")
    assert len(first) == 100_000
    started = time.process_time()
    assert read_glossary([str(path)], "en") is first
    assert time.process_time() - started < 0.5
