"""Passages in which a form of address or a name carries over from sentence to sentence.

    python recipes/en-ru/passages.py address|names OUTPUT TEXT[=N]… [--sentences]

Most sentences of a document say little about the next one, and a small D-LM has no time to waste. From the
documents of the texts, only short passages are kept in which

    address  somebody is addressed in two sentences or more, always as ты or always as вы
    names    a name comes back; and every passage spells its names its own way, the same throughout,
             as different translators would: the spelling of a name is learnt from the context alone

With --sentences, texts have no documents, and lines that share an address or a name are joined. TEXT=N omits
every Nth document, which `cadec prepare text --dev-every N` holds out.
"""

import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from cadec_cli.fs.atomic import atomic_file
from cadec_cli.fs.read import read_lines
from cadec_cli.text.documents import documents_of, is_blank

LONGEST = 420  # letters of a passage: about a hundred tokens
SENTENCE = re.compile(r"[^.!?…]+[.!?…]*")
# Pronouns, and verbs by their endings; nouns that look like such verbs are excluded.
NOUNS = r"(?!(?:лишь|мышь|\w*(?:вет|билет|секрет|мет|пакет|газет|планет|кабинет|итет|рет)е)\b)"
ADDRESS = {
    "ты": re.compile(rf"\b{NOUNS}(?:ты|теб[яе]|тобо[йю]|тво[йяеёюи]\w*|\w{{2,}}шь(?:ся)?)\b", re.IGNORECASE),
    "вы": re.compile(rf"\b{NOUNS}(?:вы|вас|вами?|ваш\w*|\w{{3,}}[еий]те(?:сь)?)\b", re.IGNORECASE),
}
WORD = re.compile(r"[А-ЯЁ][а-яё]{2,}")
INSIDE = re.compile(r"(?<=[а-яё,] )[А-ЯЁ][а-яё]{2,}")
LOWER = re.compile(r"\b[а-яё]{3,}")
# Letters that stand for each other when a foreign name is spelt.
ALIKE = dict(
    re.findall(
        r"(\w):(\w+)",
        "а:оэя о:ау е:эия э:еа и:ыеэ ы:и у:юво ю:уё я:аэ ё:еоэ б:пв в:фуб г:хк д:тз ж:зш з:сц й:и к:гх л:р "
        "м:н н:м п:бф р:л с:зш т:дс ф:вп х:гк ц:сч ч:шц ш:щж",
    )
)
KEY = 4  # letters that forms of a name have in common
CHANGED = 0.3  # share of the letters a passage spells in its own way

Keys = Callable[[str], set[str]]  # the parts of a sentence that may carry over


def main(kind: str, output: str, *rest: str) -> None:
    """Write the passages, a blank line after each; whole or not at all."""
    sentences = "--sentences" in rest
    texts = [documents(text, sentences) for text in rest if text != "--sentences"]
    chance = random.Random(1)
    names = names_of(texts) if kind == "names" else set()
    keys = names_in(names) if kind == "names" else address
    with atomic_file(Path(output)) as stream:
        for text in texts:
            for passage in together(text, keys, chance) if sentences else passages(text):
                shared = Counter(key for line in passage for key in keys(line))
                if max(shared.values(), default=0) < 2 or (kind == "address" and len(shared) > 1):
                    continue
                joined = "\n".join(passage)
                stream.write((respelled(joined, names, chance) if names else joined).encode() + b"\n\n")


def documents(text: str, sentences: bool) -> list[list[str]]:
    """Read the documents of a TEXT[=N], lists of lines; without documents every line is one."""
    name, _, every = text.partition("=")
    lines = read_lines(Path(name))
    if sentences:
        kept = [[line] for line in lines if not is_blank(line)]
    else:
        kept = [list(document) for document in documents_of(lines, is_blank)]
    if every:
        del kept[int(every) - 1 :: int(every)]
    return kept


def passages(text: list[list[str]]) -> Iterator[list[str]]:
    """Cut documents, at ends of sentences, into pieces of at most LONGEST letters."""
    for document in text:
        piece: list[str] = []
        for sentence in (found.strip() for line in document for found in SENTENCE.findall(line)):
            if piece and sum(map(len, piece)) + len(sentence) > LONGEST:
                yield piece
                piece = []
            piece.append(sentence)
        yield piece


def together(text: list[list[str]], keys: Keys, chance: random.Random) -> Iterator[list[str]]:
    """Join four sentences: up to three that share a key, and one without keys."""
    sharing = defaultdict[str, list[str]](list)
    neutral = []
    for (line,) in text:
        found = keys(line)
        for key in sorted(found):
            sharing[key].append(line)
        if not found:
            neutral.append(line)
    passages = []
    for lines in sharing.values():
        chance.shuffle(lines)
        for start in range(0, len(lines) - 1, 3):
            passage = [*lines[start : start + 3], *chance.sample(neutral, min(1, len(neutral)))]
            chance.shuffle(passage)
            passages.append(passage)
    chance.shuffle(passages)
    yield from passages


def address(sentence: str) -> set[str]:
    """The forms of address in a sentence: ты, вы, both or none."""
    return {key for key, pattern in ADDRESS.items() if pattern.search(sentence)}


def names_of(texts: list[list[list[str]]]) -> set[str]:
    """The names in texts: words with a capital inside sentences that hardly ever occur without one."""
    capital: Counter[str] = Counter()
    lower: Counter[str] = Counter()
    for line in (line for text in texts for document in text for line in document):
        capital.update(INSIDE.findall(line))
        lower.update(LOWER.findall(line))
    return {word for word, count in capital.items() if count > 5 * lower[word.lower()]}


def names_in(names: set[str]) -> Keys:
    """A function that finds the names in a sentence, by the first KEY letters that their forms share."""
    return lambda sentence: {word[:KEY] for word in WORD.findall(sentence) if word in names}


def respelled(passage: str, names: set[str], chance: random.Random) -> str:
    """Change letters of the names, the same ones throughout, but not their endings, which are grammar."""
    changed = [letter for letter in ALIKE if chance.random() < CHANGED]
    alphabet = {letter: chance.choice(ALIKE[letter]) for letter in changed}
    stems: dict[str, int] = {}  # all forms of a name have one stem: Борис, Бориса
    for word in WORD.findall(passage):
        if word in names:
            stem = len(word) - (2 if len(word) > KEY else 1)
            stems[word[:KEY]] = min(stem, stems.get(word[:KEY], stem))

    def spell(match: re.Match[str]) -> str:
        word = match[0]
        stem = stems.get(word[:KEY], 0)
        return (
            "".join(alphabet.get(letter, letter) for letter in word[:stem].lower()).capitalize() + word[stem:]
        )

    return WORD.sub(spell, passage)


if __name__ == "__main__":
    main(*sys.argv[1:])
