"""What stands for no context: short texts of dialogue, by language, in the registers that dialogues have.

log p(y | ⟨start⟩) of a pretrained language model means "as the beginning of a web page"; measured from there,
PMI after a line of dialogue partly says "this is dialogue", and register wins over address. The mean of log p
over several texts of the same kind of document has no such opinion, if the texts have none together: of each
five, two are formal, two familiar and one is neither, and women and men speak and are spoken of alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cadec_cli.errors import CadecError
from cadec_cli.files import read_json, read_lines

Texts = Mapping[str, tuple[tuple[str, ...], ...]]

START, TEXTS = "start", "texts"

_TEXTS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "en": (
        ("Good evening, madam.", "Would you like to sit down?", "Thank you, that is very kind."),
        ("Hey, are you coming?", "Give me a minute.", "Okay, but hurry up."),
        ("It was raining all night.", "The road is closed.", "Nobody knows why."),
        ("Excuse me, sir, is this yours?", "Yes, it is mine.", "I am so glad you found it."),
        ("I told her everything.", "You did what?", "Don't worry, he already knew."),
    ),
    "fr": (
        ("Bonsoir, madame.", "Voulez-vous vous asseoir ?", "Merci, c'est très gentil à vous."),
        ("Hé, tu viens ?", "Attends une minute.", "D'accord, mais dépêche-toi."),
        ("Il a plu toute la nuit.", "La route est fermée.", "Personne ne sait pourquoi."),
        (
            "Pardon, monsieur, c'est à vous ?",
            "Oui, elle est à moi.",
            "Je suis ravie que vous l'ayez trouvée.",
        ),
        ("Je lui ai tout dit.", "Tu as fait quoi ?", "T'inquiète pas, il était déjà au courant."),
    ),
    "de": (
        (
            "Guten Abend, gnädige Frau.",
            "Möchten Sie sich setzen?",
            "Danke, das ist sehr freundlich von Ihnen.",
        ),
        ("He, kommst du?", "Warte einen Moment.", "Gut, aber beeil dich."),
        ("Es hat die ganze Nacht geregnet.", "Die Straße ist gesperrt.", "Niemand weiß, warum."),
        ("Verzeihung, mein Herr, ist das Ihre?", "Ja, sie gehört mir.", "Ich bin froh, dass Sie ihn fanden."),
        ("Ich habe ihr alles erzählt.", "Was hast du getan?", "Keine Sorge, er wusste es schon."),
    ),
    "es": (
        ("Buenas noches, señora.", "¿Quiere usted sentarse?", "Gracias, es usted muy amable."),
        ("Oye, ¿vienes?", "Espera un minuto.", "Vale, pero date prisa."),
        ("Llovió toda la noche.", "La carretera está cerrada.", "Nadie sabe por qué."),
        ("Perdone, señor, ¿es suyo esto?", "Sí, es mía.", "Estoy encantada de que la haya encontrado."),
        ("Se lo conté todo a ella.", "¿Que hiciste qué?", "No te preocupes, él ya lo sabía."),
    ),
    "it": (
        ("Buonasera, signora.", "Vuole accomodarsi?", "Grazie, è molto gentile da parte sua."),
        ("Ehi, vieni?", "Aspetta un minuto.", "Va bene, ma sbrigati."),
        ("Ha piovuto tutta la notte.", "La strada è chiusa.", "Nessuno sa perché."),
        ("Mi scusi, signore, è suo questo?", "Sì, è mia.", "Sono contenta che lei l'abbia trovata."),
        ("Le ho detto tutto.", "Che cosa hai fatto?", "Non preoccuparti, lui lo sapeva già."),
    ),
    "pt": (
        ("Boa noite, minha senhora.", "A senhora quer sentar-se?", "Obrigada, é muito gentil."),
        ("Ei, vens?", "Espera um minuto.", "Está bem, mas despacha-te."),
        ("Choveu a noite toda.", "A estrada está fechada.", "Ninguém sabe porquê."),
        ("Desculpe, senhor, isto é seu?", "Sim, é minha.", "Estou contente por tê-la encontrado."),
        ("Contei-lhe tudo a ela.", "O que é que fizeste?", "Não te preocupes, ele já sabia."),
    ),
    "nl": (
        ("Goedenavond, mevrouw.", "Wilt u gaan zitten?", "Dank u, dat is heel vriendelijk van u."),
        ("Hé, kom je?", "Wacht even.", "Goed, maar schiet op."),
        ("Het heeft de hele nacht geregend.", "De weg is afgesloten.", "Niemand weet waarom."),
        ("Pardon, meneer, is dit van u?", "Ja, die is van mij.", "Ik ben blij dat u hem gevonden hebt."),
        ("Ik heb haar alles verteld.", "Wat heb je gedaan?", "Maak je geen zorgen, hij wist het al."),
    ),
    "pl": (
        ("Dobry wieczór pani.", "Czy zechce pani usiąść?", "Dziękuję, to bardzo miło z pana strony."),
        ("Hej, idziesz?", "Poczekaj chwilę.", "Dobra, ale pospiesz się."),
        ("Całą noc padało.", "Droga jest zamknięta.", "Nikt nie wie dlaczego."),
        ("Przepraszam pana, czy to pańskie?", "Tak, to moja.", "Cieszę się, że pan ją znalazł."),
        ("Wszystko jej powiedziałem.", "Co zrobiłeś?", "Nie martw się, ona już wiedziała."),
    ),
    "uk": (
        ("Добрий вечір, пані.", "Чи не бажаєте сісти?", "Дякую, ви дуже люб'язні."),
        ("Гей, ти йдеш?", "Зачекай хвилинку.", "Гаразд, тільки не барися."),
        ("Усю ніч ішов дощ.", "Дорогу перекрито.", "Ніхто не знає чому."),
        ("Перепрошую, пане, це ваше?", "Так, вона моя.", "Я рада, що ви її знайшли."),
        ("Я їй усе розповів.", "Що ти зробив?", "Не хвилюйся, вона вже знала."),
    ),
    "ru": (
        ("Добрый вечер, сударыня.", "Не хотите ли присесть?", "Благодарю, вы очень любезны."),
        ("Эй, ты идёшь?", "Подожди минутку.", "Ладно, только поторопись."),
        ("Всю ночь шёл дождь.", "Дорога закрыта.", "Никто не знает почему."),
        ("Простите, сэр, это ваше?", "Да, она моя.", "Я рада, что вы её нашли."),
        ("Я ей всё рассказал.", "Что ты сделал?", "Не волнуйся, она уже знала."),
    ),
    "cs": (
        ("Dobrý večer, paní.", "Nechcete se posadit?", "Děkuji, jste velmi laskavý."),
        ("Hej, jdeš?", "Počkej chvilku.", "Dobře, ale pospěš si."),
        ("Celou noc pršelo.", "Silnice je zavřená.", "Nikdo neví proč."),
        ("Promiňte, pane, je tohle vaše?", "Ano, je moje.", "Jsem ráda, že jste ji našel."),
        ("Všechno jsem jí řekl.", "Cos to udělal?", "Neboj se, ona už to věděla."),
    ),
    "tr": (
        ("İyi akşamlar, hanımefendi.", "Oturmak ister misiniz?", "Teşekkür ederim, çok naziksiniz."),
        ("Hey, geliyor musun?", "Bir dakika bekle.", "Tamam ama acele et."),
        ("Bütün gece yağmur yağdı.", "Yol kapalı.", "Kimse nedenini bilmiyor."),
        ("Affedersiniz beyefendi, bu sizin mi?", "Evet, benim.", "Bulduğunuza çok sevindim."),
        ("Ona her şeyi anlattım.", "Ne yaptın sen?", "Merak etme, zaten biliyordu."),
    ),
}


def no_context_texts(choice: str, language: str | None = None) -> Texts:
    """What stands for no context: `start` (the beginning alone), `texts` (those here), or a file.

    A text file holds texts of `language`, one sentence per line, a blank line between texts; a JSON file
    texts by language: {"fr": [["Bonjour.", "Ça va ?"], …]}, each a list of lines.
    """
    if choice == START:
        return {}
    if choice == TEXTS:
        return dict(_TEXTS)
    path = Path(choice)
    if not path.is_file():
        raise CadecError(
            f"no such file, and no way to read a sentence without context: {choice}",
            f"give {START}, {TEXTS}, or a file with texts, a blank line between them",
        )
    if path.suffix != ".json":
        return _text_file(path, language)
    given = read_json(path)
    texts = given if isinstance(given, dict) else {}
    if not texts or not all(_is_texts(value) for value in texts.values()):
        raise CadecError(
            f"{path} does not hold texts by language",
            'as {"fr": [["Bonjour.", "Ça va ?"]]}: for each language some texts, each a list of lines',
        )
    return {language: tuple(tuple(lines) for lines in value) for language, value in texts.items()}


def _text_file(path: Path, language: str | None) -> Texts:
    if language is None:
        raise CadecError(
            f"nothing says which language {path} is in",
            "say it with --target-language, as in --target-language fr",
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
    return {language: tuple(texts)}


def _is_texts(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(lines, list) and lines for lines in value)
        and all(isinstance(line, str) and line.strip() for lines in value for line in lines)
    )
