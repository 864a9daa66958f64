"""Does a text about the text help? Words with two meanings, after texts that are about the one or the other.

    python -m bench.about [--bundle B] [-T 1]

Every sentence has an English word with two Russian ones, and stands alone. Counted is how often its
translation has the word that the text calls for: without it, with it, and with the text about the other
meaning.
"""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cadec_cli


@dataclass(frozen=True)
class Item:
    """A sentence; then for each meaning a text about it, and how the word begins in Russian."""

    sentence: str
    first: tuple[str, str]
    second: tuple[str, str]


ITEMS = (
    Item("He lost the match.", ("Это рассказ о футболистах.", "матч|игр"), ("Они разводят костёр.", "спичк")),
    Item("Where is the bank?", ("Это история об ограблении.", "банк"), ("Рыбаки идут к реке.", "берег")),
    Item("She broke her glasses.", ("Она плохо видит.", "очки"), ("Гости пьют вино.", "стакан|бокал")),
    Item(
        "I like this spring.",
        ("Снег растаял, пришёл апрель.", "весн"),
        ("Вода здесь чистая.", "источник|родник"),
    ),
    Item("Look at the crane.", ("Это книга о птицах.", "журавл"), ("Рабочие строят дом.", "кран")),
    Item("The keys are old.", ("Это история о пианисте.", "клавиш"), ("Вор открывает двери.", "ключ")),
    Item(
        "Give me the bow.", ("Охотники стреляют оленей.", "лук"), ("Девочка наряжается на праздник.", "бант")
    ),
    Item(
        "It was a long trunk.",
        ("Это рассказ о слоне.", "хобот"),
        ("Путешественники собирают вещи.", "сундук|чемодан"),
    ),
    Item("He saw the tank.", ("Это фильм о войне.", "танк"), ("Рыбки живут у него дома.", "аквариум|бак")),
    Item("The seal was there.", ("Животные живут на льду.", "тюлен"), ("Король пишет письмо.", "печат")),
    Item("They need a bat.", ("Это история о бейсболе.", "бит"), ("Учёные изучают пещеры.", "летуч")),
    Item(
        "I can't find the file.",
        ("Программист чинит компьютер.", "файл"),
        ("Слесарь работает в гараже.", "напильник"),
    ),
    Item("The plant is big.", ("Садовник поливает цветы.", "растени"), ("Рабочие бастуют.", "завод|фабрик")),
)


def said(translator: cadec_cli.Translator, texts: Sequence[str]) -> list[str]:
    """Return the translation of each sentence after its text, which is as good as a text about it."""
    return [
        one.text
        for item, text in zip(ITEMS, texts, strict=True)
        for one in translator.translate([item.sentence], after=text)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("-T", "--temperature", type=float)
    given = parser.parse_args()
    options = {} if given.temperature is None else {"temperature": given.temperature}
    translator = cadec_cli.load(given.bundle, options=options)
    plain = said(translator, [""] * len(ITEMS))
    counts = [0, 0, 0]
    for meaning in ("first", "second"):
        asked = [getattr(item, meaning) for item in ITEMS]
        others = [item.second if meaning == "first" else item.first for item in ITEMS]
        helped = said(translator, [text for text, _ in asked])
        misled = said(translator, [text for text, _ in others])
        for (text, word), *found in zip(asked, plain, helped, misled, strict=True):
            has = [re.search(rf"\b(?:{word})", one, re.IGNORECASE) is not None for one in found]
            counts = [count + one for count, one in zip(counts, has, strict=True)]
            print(f"{text}  {' | '.join(found)}  {has}")
    print("without {}, with {}, with the other {}, of {}".format(*counts, 2 * len(ITEMS)))


if __name__ == "__main__":
    main()
