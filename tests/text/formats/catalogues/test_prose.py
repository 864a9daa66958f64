"""Which values of JSON and YAML are translated."""

import pytest

from cadec_cli.text.formats.catalogues.prose import is_prose


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Save", "save"),
        ("cancel", "cancel"),
        ("and", "and"),
        ("OK", "ok"),
        ("SAVE", "button"),
        ("Welcome, {{name}}!", "title"),
        ("{count} items", "items"),
        ("%{count} minutes", "other"),
        ("<b>Bold</b>", "html"),
        ("See https://example.org for more.", "help"),
        ("Ünïcödé", "x"),
        ("保存", "save"),
        ("Dark blue", "color"),
        ("state of the art", "type"),
    ],
)
def test_prose(text: str, key: str) -> None:
    assert is_prose(text, key)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", "title"),
        ("42", "n"),
        ("…", "more"),
        ("button", "type"),
        ("Save", "id"),
        ("en", "language"),
        ("https://example.org/", "title"),
        ("mailto:a@example.org", "x"),
        ("a@example.org", "x"),
        ("/usr/share/a.txt", "x"),
        ("images/logo.png", "x"),
        ("#ff0000", "x"),
        ("rgba(1, 2, 3, 0.5)", "x"),
        ("2024-01-02", "x"),
        ("2024-01-02T10:00:00Z", "x"),
        ("YYYY-MM-DD HH:mm", "x"),
        ("D MMMM YYYY", "x"),
        ("camelCase", "x"),
        ("snake_case", "x"),
        ("kebab-case", "x"),
        ("CONSTANT_NAME", "x"),
        ("HTML", "x"),
        ("v1.2.3", "x"),
        ("{name}", "x"),
        ("true", "x"),
        ("null", "x"),
        ("btn btn-primary", "class"),
        ("color: red; margin: 0;", "x"),
        ("text/html", "x"),
        ("com.example.app", "x"),
        ("A description.", "@key"),
    ],
)
def test_not_prose(text: str, key: str) -> None:
    assert not is_prose(text, key)
