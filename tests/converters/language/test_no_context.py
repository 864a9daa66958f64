"""What stands for no context: texts that come with cadec, or a user's own."""

from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.text.languages import is_language
from converters.language.no_context import START, TEXTS, no_context_texts


def test_the_texts_that_come_with_cadec() -> None:
    texts = no_context_texts(TEXTS)
    assert {"en", "fr", "de", "ru"} <= set(texts)
    assert all(is_language(language) for language in texts)
    counts = {len(of_language) for of_language in texts.values()}
    assert len(counts) == 1  # as many for one language as for another
    for of_language in texts.values():
        for lines in of_language:
            assert len(lines) == 3 and all(line == line.strip() != "" for line in lines)
    assert no_context_texts(START) == {}


def test_texts_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_text("Bonjour.\n Ça va ?\n\n\nIl pleut.\n", "utf-8")
    assert no_context_texts(str(path), "fr") == {"fr": (("Bonjour.", "Ça va ?"), ("Il pleut.",))}
    assert list(no_context_texts(str(path), "fra_Latn")) == ["fr"]  # as it is looked for
    with pytest.raises(CadecError, match="which language"):
        no_context_texts(str(path))
    path = tmp_path / "own.json"
    path.write_text('{"fr": [["Bonjour."]], "de": [["Hallo.", "Ja."]]}', "utf-8")
    assert no_context_texts(str(path)) == {"fr": (("Bonjour.",),), "de": (("Hallo.", "Ja."),)}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", " \n\n"),
        ("a.json", "[]"),
        ("a.json", "{}"),
        ("a.json", '{"fr": []}'),
        ("a.json", '{"fr": ["Bonjour."]}'),
        ("a.json", '{"fr": [[" "]]}'),
        ("a.json", "{"),
    ],
)
def test_what_is_no_text_is_one_clear_error(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(CadecError):
        no_context_texts(str(tmp_path / name), "fr")
    with pytest.raises(CadecError, match="there is no file") as caught:
        no_context_texts("neutral")
    assert START in caught.value.hint
