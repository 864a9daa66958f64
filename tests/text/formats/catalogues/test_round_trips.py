"""Every catalogue, table and subtitle format: what comes in goes out, and only what is text is translated."""

import csv
import io
import itertools
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import polib
import pysubs2
import pytest
import yaml

from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.formats import FORMATS, format_of, read_text_file
from cadec_cli.text.formats.layout import RatedText
from tests.helpers import catalogue_files
from tests.helpers.catalogue_files import FILES, FILLED, read, sentences, translate

EVERY = pytest.mark.parametrize(
    ("name", "format", "content", "columns"), FILES, ids=[one[0] for one in FILES]
)
# A translation with everything that some format has to escape.
CHANGED = 'd\'œuvre \\ "{}" & été'


@EVERY
def test_names_promise_formats(name: str, format: str, content: str, columns: tuple[str, ...]) -> None:
    found = format_of(Path(name))
    assert found == format
    assert FORMATS[format].has_columns == bool(columns)


@EVERY
@pytest.mark.parametrize("tags", [True, False])
def test_sentences_that_stay_give_the_same_bytes(
    name: str, format: str, content: str, columns: tuple[str, ...], tags: bool, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode())
    file = read_text_file(path, language="en", columns=columns, tags=tags)
    assert file.format == format
    written = b"".join(file.restore(one.given or one.text for doc in file.documents for one in doc.sentences))
    if format not in FILLED:
        assert written == path.read_bytes()
    again = read_text_file(path, language="en", columns=columns, tags=tags)
    assert [one.texts for one in again.documents] == [one.texts for one in file.documents]


@EVERY
def test_translations_are_all_that_changes(
    name: str, format: str, content: str, columns: tuple[str, ...]
) -> None:
    written = translate(content, format, CHANGED, to="fr", columns=columns)
    documents, _ = read(written, format, columns=columns)
    if format in (*FILLED, "ttml", "sbv", "sub", "android"):  # the tests below look at these
        return
    shown = [CHANGED.replace("{}", one) for one in sentences(read(content, format, columns=columns)[0])]
    assert "".join("".join(sentences(documents)).split()) == "".join("".join(shown).split())


@EVERY
def test_a_translation_that_lost_a_placeholder_is_not_used(
    name: str, format: str, content: str, columns: tuple[str, ...]
) -> None:
    documents, layout = read(content, format, columns=columns)
    texts = [one for document in documents for one in document.sentences]
    marked = [bool(re.search(r"[{<%]", one.text)) for one in texts]
    if format in ("ttml", "sbv", "sub") or not any(marked):
        return
    written = "".join(
        map(
            str,
            layout.restore(
                "lost" if is_marked else (one.given or one.text)
                for one, is_marked in zip(texts, marked, strict=True)
            ),
        )
    )
    if format in FILLED:
        assert "lost" not in written
    else:
        assert written == content


# ---- as the libraries of the formats see it


def with_changes(entries: "list[polib.POEntry]", change: str) -> list[tuple[str, ...]]:
    return [
        (one.msgctxt or "", one.msgid, one.msgid_plural, change.replace("{}", one.msgid)) for one in entries
    ]


@pytest.mark.parametrize("content", [catalogue_files.PO, catalogue_files.POT, catalogue_files.PO_CRLF])
def test_po_as_polib_sees_it(content: str) -> None:
    before = polib.pofile(content)
    after = polib.pofile(translate(content, "po", "Voici {}", to="fr"))
    assert [one.msgid for one in after] == [one.msgid for one in before]
    assert [one.msgctxt for one in after] == [one.msgctxt for one in before]
    assert [one.occurrences for one in after] == [one.occurrences for one in before]
    assert [one.comment for one in after] == [one.comment for one in before]
    assert [one.obsolete for one in after] == [one.obsolete for one in before]
    for old, new in zip(before, after, strict=True):
        if old.translated() or old.obsolete or old.msgid in ("translator-credits", "%d%%"):
            assert (new.msgstr, new.flags) == (old.msgstr, old.flags)
            continue
        assert "fuzzy" in new.flags and set(old.flags) <= set(new.flags)
        assert not new.previous_msgid
        if new.msgid_plural:
            expected = {0: f"Voici {new.msgid}", 1: f"Voici {new.msgid_plural}"}
            assert new.msgstr_plural == expected
        else:
            assert new.msgstr.replace("Voici ", "").replace("Voici &", "&") == new.msgid.replace("&", "") or (
                new.msgstr.replace("Voici ", "") == new.msgid
            )
    if "PACKAGE" in content or "gedit" in content:
        assert after.metadata["Language"] == "fr"
        assert after.metadata["Plural-Forms"] == "nplurals=2; plural=(n > 1);"


def test_po_for_a_language_with_other_plurals() -> None:
    after = polib.pofile(translate(catalogue_files.POT, "po", "Вот {}", to="ru"))
    assert after.metadata["Plural-Forms"].startswith("nplurals=3;")
    assert after[1].msgstr_plural == {
        0: "Вот {count} comment",
        1: "Вот {count} comments",
        2: "Вот {count} comments",
    }
    # a catalogue of another language names ours, and has our forms
    after = polib.pofile(translate(catalogue_files.PO.replace("Language: ", "Language: de"), "po", to="ja"))
    assert after.metadata["Language"] == "ja"
    assert after[2].msgstr_plural == {0: "%d files were changed."}


def test_po_low_confidence_is_a_comment_and_goes_with_the_next_translation() -> None:
    documents, layout = read(catalogue_files.POT, "po", to="fr")
    count = sum(map(len, documents))
    rated = [RatedText.of("Bonjour %(name)s !", 0.21, ["unlikely words"]), *sentences(documents)[1:]]
    assert len(rated) == count
    written = "".join(map(str, layout.restore(rated)))
    assert "# cadec: confidence 0.21 (unlikely words)\n#: blog/models.py:12\n" in written
    again = translate(written, "po", to="fr")
    assert "confidence" not in again and "%(name)s" in again


def test_xliff_low_confidence_is_a_note() -> None:
    documents, layout = read(catalogue_files.XLIFF, "xliff", to="fr")
    doubted = [RatedText.of(one, 0.2, ["a < b"]) for document in documents for one in document.texts]
    assert 'from="cadec">confidence 0.20 (a &lt; b)</note>' in "".join(map(str, layout.restore(doubted)))


def test_what_is_translated_is_context_and_stays_unless_asked() -> None:
    documents, _ = read(catalogue_files.PO, "po")
    first = documents[0].sentences
    assert first[1] == Sentence("_Save As…", given="_Enregistrer sous…")
    assert documents[0].given == {1: "_Enregistrer sous…"}
    assert "_Enregistrer sous…" in translate(catalogue_files.PO, "po", "x {}")
    again = translate(catalogue_files.PO, "po", "x {}", retranslate=True)
    assert "_Enregistrer" not in again and 'msgstr "x _Save As…"' in again
    documents, _ = read(catalogue_files.XLIFF, "xliff")
    assert documents[0].given == {1: "Annuler"}
    assert "Annuler" not in translate(catalogue_files.XLIFF, "xliff", "x {}", retranslate=True)
    documents, _ = read(catalogue_files.CSV, "csv", columns=("description=fr",))
    assert documents[-1].given == {0: "Elle éclaire"}
    filled = translate(catalogue_files.CSV, "csv", "x {}", columns=("description=fr",))
    rows = list(csv.reader(io.StringIO(filled, newline="")))
    assert [row[3] for row in rows] == [
        "fr",
        'x A comfortable, "soft" chair',
        "x Two\nx lines",
        "",
        "Elle éclaire",
        "x It is soft",
    ]


def test_only_what_precedes_an_untranslated_string_is_read() -> None:
    done = "".join(f'msgid "Text {n} is here."\nmsgstr "Texte {n}."\n\n' for n in range(50))
    documents, _ = read(done, "po")
    assert documents == ()
    documents, _ = read(done + 'msgid "A new one."\nmsgstr ""\n' + done.replace("Text", "Other"), "po")
    assert len(documents[0]) == 5
    assert documents[0].given[3] == "Texte 49."


def xml_texts(content: str) -> list[tuple[str, dict[str, str], str]]:
    root = ElementTree.fromstring(content.encode())
    return [(one.tag, dict(one.attrib), one.text or "") for one in root.iter()]


@pytest.mark.parametrize(
    "content", [catalogue_files.XLIFF, catalogue_files.XLIFF_2, catalogue_files.XLIFF_SEGMENTED]
)
def test_xliff_as_xml_sees_it(content: str) -> None:
    after = xml_texts(translate(content, "xliff", to="de"))
    second = "oasis:names:tc:xliff:document:2" in content
    language = "trgLang" if second else "target-language"
    for where in ("xliff",) if second else ("file",):
        assert all(values[language] == "de" for tag, values, _ in after if tag.endswith("}" + where))
    # but for the targets, and the states of their segments, all is as it was
    before = [one for one in xml_texts(content) if not one[0].endswith("}target")]
    targets = [one for one in after if one[0].endswith("}target")]
    rest = [one for one in after if one[0] in {tag for tag, _, _ in before}]
    assert len(targets) >= 1 and len(rest) >= len(before)
    marks = {values.get("state") for _, values, _ in targets if values}
    assert marks <= {"needs-review-translation", "final", None}
    sources = [text for tag, _, text in after if tag.endswith("}source")]
    assert sources == [text for tag, _, text in before if tag.endswith("}source")]


def test_xliff_targets_have_the_codes_of_their_sources() -> None:
    written = translate(catalogue_files.XLIFF, "xliff", "Voici « {} »", to="fr")
    root = ElementTree.fromstring(written.encode())
    space = "{urn:oasis:names:tc:xliff:document:1.2}"
    for unit in root.iter(f"{space}trans-unit"):
        source, target = unit.find(f"{space}source"), unit.find(f"{space}target")
        if unit.get("translate") == "no":
            assert target is None
            continue
        assert source is not None and target is not None
        codes = [(one.tag, one.attrib) for one in source.iter() if one is not source]
        if target.get("state") == "needs-review-translation":
            assert [(one.tag, one.attrib) for one in target.iter() if one is not target] == codes
            assert "Voici" in "".join(target.itertext())


def test_segments_are_translated_one_by_one() -> None:
    documents, _ = read(catalogue_files.XLIFF_SEGMENTED, "xliff")
    assert [one.text for one in documents[0].sentences] == ["<g1>One sentence.</g1>", "<g3>Another one.</g3>"]
    written = translate(catalogue_files.XLIFF_SEGMENTED, "xliff", to="de")
    assert (
        '</x:seg-source><x:target state="needs-review-translation"><x:mrk mtype="seg" mid="0">One sentence.'
        '</x:mrk> <x:mrk mtype="seg" mid="1">Another one.</x:mrk></x:target>'
    ) in written


def test_android_as_xml_sees_it() -> None:
    written = translate(catalogue_files.ANDROID, "android", "L'été : {}", to="fr")
    before = ElementTree.fromstring(catalogue_files.ANDROID.encode())
    after = ElementTree.fromstring(written.encode())
    assert after.get("{http://schemas.android.com/tools}locale") == "fr"
    names = [[(one.tag, one.get("name")) for one in root.iter()] for root in (before, after)]
    assert names[0] == names[1]
    texts = {one.get("name"): "".join(one.itertext()) for one in after}
    assert texts["greeting"] == (
        "L\\'été : Don\\'t say \\\"hello\\\" to %1$s & Jerry.\\nL\\'été : A new line"
    )
    assert texts["quoted"] == "\"L'été : It's a   quoted one\""
    assert texts["html"] == '<a href="https://example.org">L\\\'été : Click</a> here' or "L\\'été" in (
        texts["html"] or ""
    )
    assert texts["app_name"] == "My App" and texts["reference"] == "@string/greeting"
    assert "<b>%1$s</b>" in written and '<xliff:g id="count" example="3">%1$d</xliff:g>' in written


def test_json_as_json_sees_it() -> None:
    written = translate(catalogue_files.JSON, "json", 'Voici "{}"', to="fr")
    pairs = [
        list(leaves(json.loads(one, object_pairs_hook=Pairs, parse_int=str, parse_float=str)))
        for one in (catalogue_files.JSON, written)
    ]
    assert len(pairs[0]) == len(pairs[1])
    for (keys, old), (other, new) in zip(*pairs, strict=True):
        assert keys == other
        if isinstance(old, str) and new != old:
            assert "Voici" in str(new)
        if keys[-1] in ("type", "url", "icon", "date", "color", "count", "tiny"):
            assert new == old
    assert "\\u00e9" in written and "\\/tea" in written  # as they were written


class Pairs(list):  # type: ignore[type-arg]
    """An object, with keys that occur twice."""


def leaves(value: object, keys: tuple[str, ...] = ()) -> "list[tuple[tuple[str, ...], object]]":
    if isinstance(value, Pairs):
        return [leaf for key, inner in value for leaf in leaves(inner, (*keys, key))]
    if isinstance(value, list):
        return [leaf for number, inner in enumerate(value) for leaf in leaves(inner, (*keys, str(number)))]
    return [(keys, value)]


def test_plurals_and_selects_keep_their_syntax() -> None:
    written = json.loads(translate(catalogue_files.JSON, "json", "l'{}", to="fr"))
    assert written["home"]["subtitle"] == (
        "l’You have {count, plural, one {l’# message} other {l’# messages}} from <b>{sender}</b>."
    ).replace("l’You", "l'You")
    assert json.loads(translate(catalogue_files.ARB, "arb", "({})", to="fr-CA")) == {
        "@@locale": "fr_CA",
        "hello": "(Hello {userName}!)",
        "@hello": json.loads(catalogue_files.ARB)["@hello"],
        "pronoun": "{gender, select, male {(he is here)} female {(she is here)} other {(they are here)}}",
        "url": "https://example.org",
    }


def test_yaml_as_yaml_sees_it() -> None:
    written = translate(catalogue_files.YAML, "yaml", 'l\'{}: "#"', to="fr")
    after = yaml.safe_load(written)["fr"]
    assert after["hello"] == 'l\'Hello %{name}, how are you?: "#"'
    assert after["literal"] == 'l\'First line here.: "#"\nl\'Second line: here.: "#"\n'
    assert after["folded"] == 'l\'Folded text goes on here.: "#"\nl\'Another paragraph.: "#"'
    assert after["sequence"][1] == after["sequence"][2] == 'l\'Item two: "#"'
    assert (after["number"], after[False], after["other"]["tagged"]) == (12, False, 3)
    assert "# with a comment" in written


def test_csv_as_csv_sees_it() -> None:
    written = translate(catalogue_files.CSV, "csv", 'a, "{}"', columns=("name", "3"))
    before, after = (list(csv.reader(io.StringIO(one, newline=""))) for one in (catalogue_files.CSV, written))
    for old, new in itertools.islice(zip(before, after, strict=True), 1, None):
        assert [new[0], new[3]] == [old[0], old[3]]
        assert new[1] == (f'a, "{old[1]}"' if old[1] else "")
    assert after[1][2] == 'a, "A comfortable, "soft" chair"'
    assert before[0] == after[0]


@pytest.mark.parametrize(
    ("content", "known"), [(catalogue_files.SUB, "microdvd"), (catalogue_files.TTML, "ttml")]
)
def test_subtitles_as_pysubs2_sees_them(content: str, known: str) -> None:
    format = {"microdvd": "sub", "ttml": "ttml"}[known]
    content = content.replace('dur="2s"', 'end="00:00:32.000"')  # pysubs2 knows no dur
    before = pysubs2.SSAFile.from_string(content, format_=known)
    after = pysubs2.SSAFile.from_string(translate(content, format, "Oh, {}", to="fr"), format_=known)
    assert [(one.start, one.end) for one in after] == [(one.start, one.end) for one in before]
    assert all("Oh" in one.text for one in after)


def test_documents_are_sections() -> None:
    documents, _ = read(catalogue_files.PO, "po")
    assert len(documents) == 2  # by source file
    documents, _ = read(catalogue_files.XLIFF_2, "xliff")
    assert [len(one) for one in documents] == [3, 2]
    documents, _ = read(catalogue_files.JSON, "json")
    assert [document.sentences[0].place for document in documents] == ["home.title", "again"]
    assert isinstance(documents[0], Document)
