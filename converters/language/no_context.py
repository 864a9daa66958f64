"""The short neutral texts, by language, that stand for no context.

To a pretrained language model, log p(y | ⟨start⟩) means "as the beginning of a web page". Measured from
there, PMI after a line of dialogue partly says "this is dialogue", and register outweighs the form of
address. The mean of log p after texts of the same kind of document has no such bias, as long as nobody in the
texts is spoken to or spoken of. Two texts are as good as five of mixed registers, in two fifths of the time,
and better than one (docs/pretrained.md has the figures).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.read import read_json, read_lines
from cadec_cli.text.languages import iso_code

Texts = Mapping[str, tuple[tuple[str, ...], ...]]

START, TEXTS = "start", "texts"

_TEXTS: Texts = {
    "en": (
        ("It was raining all night.", "The road is closed.", "Nobody knows why."),
        ("What time is it?", "It is already noon.", "It will soon be over."),
    ),
    "fr": (
        ("Il a plu toute la nuit.", "La route est fermée.", "Personne ne sait pourquoi."),
        ("Quelle heure est-il ?", "Il est déjà midi.", "C'est bientôt fini."),
    ),
    "de": (
        ("Es hat die ganze Nacht geregnet.", "Die Straße ist gesperrt.", "Niemand weiß, warum."),
        ("Wie spät ist es?", "Es ist schon Mittag.", "Bald ist es vorbei."),
    ),
    "es": (
        ("Llovió toda la noche.", "La carretera está cerrada.", "Nadie sabe por qué."),
        ("¿Qué hora es?", "Ya es mediodía.", "Pronto se acaba."),
    ),
    "it": (
        ("Ha piovuto tutta la notte.", "La strada è chiusa.", "Nessuno sa perché."),
        ("Che ore sono?", "È già mezzogiorno.", "Tra poco è finita."),
    ),
    "pt": (
        ("Choveu a noite toda.", "A estrada está fechada.", "Ninguém sabe porquê."),
        ("Que horas são?", "Já é meio-dia.", "Está quase a acabar."),
    ),
    "nl": (
        ("Het heeft de hele nacht geregend.", "De weg is afgesloten.", "Niemand weet waarom."),
        ("Hoe laat is het?", "Het is al middag.", "Het is bijna voorbij."),
    ),
    "pl": (
        ("Całą noc padało.", "Droga jest zamknięta.", "Nikt nie wie dlaczego."),
        ("Która godzina?", "Już południe.", "Zaraz będzie koniec."),
    ),
    "uk": (
        ("Усю ніч ішов дощ.", "Дорогу перекрито.", "Ніхто не знає чому."),
        ("Котра година?", "Уже полудень.", "Скоро все закінчиться."),
    ),
    "ru": (
        ("Всю ночь шёл дождь.", "Дорога закрыта.", "Никто не знает почему."),
        ("Который час?", "Уже полдень.", "Скоро всё закончится."),
    ),
    "cs": (
        ("Celou noc pršelo.", "Silnice je zavřená.", "Nikdo neví proč."),
        ("Kolik je hodin?", "Už je poledne.", "Brzy bude konec."),
    ),
    "tr": (
        ("Bütün gece yağmur yağdı.", "Yol kapalı.", "Kimse nedenini bilmiyor."),
        ("Saat kaç?", "Öğlen oldu bile.", "Birazdan biter."),
    ),
}


def no_context_texts(choice: str, language: str | None = None) -> Texts:
    """Return the texts that stand for no context: none (`start`), those defined here (`texts`), or a file's.

    A text file holds texts of `language`, one sentence per line, a blank line between texts. A JSON file
    holds texts by language, each a list of lines: {"fr": [["Bonjour.", "Ça va ?"], …]}.
    """
    if choice == START:
        return {}
    if choice == TEXTS:
        return dict(_TEXTS)
    path = Path(choice)
    if not path.is_file():
        raise CadecError(
            f"there is no file {choice}",
            f"{option('no-context')} is {START}, {TEXTS}, or a file with texts, a blank line between them",
        )
    if path.suffix != ".json":
        return _text_file(path, language)
    given = read_json(path)
    texts = given if isinstance(given, dict) else {}
    if not texts or not all(_is_texts(value) for value in texts.values()):
        raise CadecError(
            f"{path} does not hold texts by language",
            'use the form {"fr": [["Bonjour.", "Ça va ?"]]}: texts for each language, each a list of lines',
        )
    return {iso_code(language): tuple(map(tuple, value)) for language, value in texts.items()}


def _text_file(path: Path, language: str | None) -> Texts:
    if language is None:
        raise CadecError(
            f"nothing says which language {path} is in",
            f"say it with {option('target-language')}, as in {option('target-language', 'fr')}",
        )
    texts: list[tuple[str, ...]] = []
    lines: list[str] = []
    for line in [*read_lines(path), ""]:
        if line.strip():
            lines.append(line.strip())
        elif lines:
            texts.append(tuple(lines))
            lines = []
    if not texts:
        raise CadecError(f"{path} is empty", "it should hold texts, a blank line between them")
    return {iso_code(language): tuple(texts)}


def _is_texts(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(lines, list) and lines for lines in value)
        and all(isinstance(line, str) and line.strip() for lines in value for line in lines)
    )
