"""Words that a line of subtitles should not end with, because they belong to the word after them.

Articles, prepositions, conjunctions, pronouns that cling to a verb, and titles before a name, per language.
Guidelines of subtitling ask that a line is not broken after these. In a language without a table, only short
words are avoided.
"""

from __future__ import annotations

from cadec_cli.text.sentences import base_language

_WORDS = {
    "en": "a an the my your his her its our their this that these those of to in on at by for from with "
    "without into onto over under about after before between through during against among around "
    "behind beside as than and or but nor so if when while because that which who whom whose where "
    "whether although though unless until since i we they he she you it not no very too is are was "
    "were be been am do does did have has had will would can could shall should may might must mr. "
    "mrs. ms. dr. st. prof. mr mrs ms dr",
    "fr": "le la les un une des du de au aux à en dans sur sous par pour sans avec chez vers entre contre "
    "depuis pendant avant après dès et ou mais donc or ni car que qui quoi dont où si comme quand "
    "lorsque puisque parce afin je tu il elle on nous vous ils elles ne me te se lui leur y mon ton "
    "son ma ta sa mes tes ses notre votre nos vos leurs ce cet cette ces quel quelle très trop plus "
    "moins pas est sont a ont ai as avez avons m. mme mlle dr",
    "de": "der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner mein "
    "meine meinen meinem meiner dein deine deinen deinem deiner sein seine seinen seinem seiner ihr "
    "ihre ihren ihrem ihrer unser unsere unseren euer eure dieser diese dieses diesen diesem in im an "
    "am auf aus bei beim mit nach seit von vom zu zum zur für durch gegen ohne um über unter vor "
    "hinter neben zwischen und oder aber denn dass weil wenn als ob damit obwohl wie wo wer was "
    "welcher welche sehr zu nicht ich du er wir hr. fr. dr. herr frau",
    "es": "el la los las un una unos unas lo de del a al en con sin por para sobre entre hasta desde hacia "
    "según contra tras ante bajo y e o u pero sino ni que quien quienes cuyo cuya donde cuando como "
    "si porque aunque mientras pues me te se nos os le les mi tu su mis tus sus nuestro nuestra "
    "vuestro vuestra este esta ese esa estos estas esos esas no muy más tan sr. sra. srta. dr. dra. "
    "don doña",
    "it": "il lo la i gli le un uno una di del dello della dei degli delle a al allo alla ai agli alle da "
    "dal dallo dalla dai dagli dalle in nel nello nella nei negli nelle con su sul sullo sulla sui "
    "sugli sulle per tra fra e ed o ma né che chi cui dove quando come se perché anche mentre quindi "
    "mi ti si ci vi ne mio mia tuo tua suo sua nostro nostra vostro vostra loro questo questa quel "
    "quella non più molto sig. sig.ra dott. signor",
    "pt": "o a os as um uma uns umas de do da dos das em no na nos nas num numa a ao à aos às por pelo pela "
    "pelos pelas para com sem sob sobre entre até desde contra e ou mas nem que quem cujo cuja onde "
    "quando como se porque embora enquanto pois me te se lhe lhes nos vos meu minha teu tua seu sua "
    "nosso nossa este esta esse essa aquele aquela não muito mais tão sr. sra. dr. dra. dom dona",
    "ru": "а и но или либо да что чтобы как если когда пока хотя потому поэтому где куда откуда который "
    "которая которое которые которого которой в во на к ко с со у о об обо от ото из изо за под подо "
    "над надо перед передо при про для до без безо через между среди около после по ради из-за из-под "
    "не ни же мой моя моё мои твой твоя твоё твои свой своя своё свои наш наша наше наши ваш ваша "
    "ваше ваши его её их этот эта это эти тот та те очень слишком я ты он она мы вы они г-н г-жа",
    "uk": "а і й та але або чи що щоб як якщо коли поки хоча бо де куди звідки який яка яке які у в на до з "
    "із зі о об від за під над перед при про для без через між серед біля після по не ні ж мій моя "
    "моє мої твій твоя твоє твої свій своя своє свої наш наша ваш ваша його її їх цей ця це ці той "
    "дуже я ти він вона ми ви вони пан пані",
    "nl": "de het een 't en of maar want dat die wie wat waar als toen omdat hoewel terwijl of in op aan "
    "bij met naar van voor door over onder tussen tegen zonder om te tot uit na mijn jouw je zijn "
    "haar ons onze hun uw deze dit geen niet zeer heel ik jij hij zij wij we ze dhr. mevr. dr.",
    "pl": "a i oraz ale lub albo czy że żeby jak jeśli gdy kiedy bo ponieważ choć gdzie który która które w "
    "we na do z ze o od za pod nad przed przy dla bez przez między po u ku nie ani mój moja moje twój "
    "twoja twoje swój swoja swoje nasz nasza wasz wasza jego jej ich ten ta to te bardzo pan pani",
}  # fmt: skip
_TABLES = {language: frozenset(words.split()) for language, words in _WORDS.items()}


def function_words(language: str) -> frozenset[str] | None:
    """Return the words of a language that should not end a line, in lower case; None if there is no table."""
    return _TABLES.get(base_language(language)) if language else None
