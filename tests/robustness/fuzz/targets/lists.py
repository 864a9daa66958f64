"""What commands leave for each other, and what people write for them: lists, sets, sessions, journals."""

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from cadec_cli.method.hypotheses import Hypothesis, NBest
from tests.robustness.fuzz.target import Target
from tests.robustness.fuzz.targets import parts
from tests.robustness.fuzz.targets.parts import text

NBEST = """{"source": "You know.", "hypotheses": [{"text": "Ты знаешь.", "log_prob": -2.31}, \
{"text": "Вы знаете.", "log_prob": -2.5}], "before": "- ", "after": "", "document": 1}
{"source": "Yes.", "hypotheses": [{"text": "Да.", "log_prob": -1}], "document": 1}

{"source": "", "translation": "", "document": 2}
"""
MOSES = "0 ||| Ты знаешь . ||| F0= -2.31 F1= 1 ||| -0.46\n0 ||| Вы знаете . ||| F0= -2.4 F1= 1 ||| -0.5\n"
MOSES += "1 ||| Да . ||| F0= -1 F1= 1 ||| -1\n"

VOITA = [
    {"src": "A . _eos B .", "dst": ["C . _eos D .", "C . _eos E ."], "true_ind": 0, "ctx_dist": 1},
    {"src": "A . _eos F .", "dst": ["C . _eos G .", "C . _eos H ."], "true_ind": 1, "sim": "x"},
]
CONTRAPRO = [
    {
        **{"src segment": "It is.", "ref segment": "Er ist.", "ante distance": 1, "document id": "a/b.xml"},
        **{"segment id": 3, "ref pronoun": "er", "src ante head": "dog"},
        "errors": [{"contrastive": "Sie ist.", "replacement gender": "Fem"}, {"contrastive": "Es ist."}],
    }
]
DISCEVALMT = {
    "1": {
        "examples": [
            {
                "src": ["A.", "B."],
                "trg": {"correct": ["C.", "D."], "incorrect": ["C.", "E."]},
                "type": "x",
            },
            {
                "src": ["A.", "F."],
                "trg": {"correct": ["C.", "G."], "semi-correct": ["H.", "G."], "incorrect": ["H.", "I."]},
            },
        ]
    }
}
OWN_SET = """{"source": "B.", "context": ["C."], "candidates": ["D.", "E."], "truth": 0, "source_context": []}
{"source": "F.", "context": [], "candidates": ["G.", "H."], "truth": 1, "distance": 2}
"""

GENERATIVE_SET = """{"document": ["A.", "B."], "expected": "t'", "rule": "R", "reference": "Je t'ai."}
{"document": ["C."], "expected": "vous deux", "film": 1}
"""
CTXPRO = [
    {"src segment": "B.", "ref segment": "Je t'ai.", "expected": "t'", "rule": "R", "segment id": 3},
    {"src segment": "C.", "ref segment": "Vous deux.", "expected": "vous deux", "document id": "a/b"},
]

FORMALITY = {"ru": {"formal": ["Здравствуйте."], "informal": ["Привет."]}}
NO_CONTEXT = {"fr": [["Bonjour.", "Ça va ?"], ["Oui."]]}
DOCUMENT = ("a", "", "b c", "д", "e")
TABLE = {"fuzz": "a journal"}  # what the journal and the part file say they were made of


def nbest(directory: Path) -> None:
    import math

    from cadec_cli.jobs.json_lines import read_documents

    (path,) = directory.iterdir()
    for feature in ("", "F0"):
        for document in read_documents(path, feature=feature):
            for one in document:
                scores = [hypothesis.log_prob for hypothesis in one.hypotheses]
                assert scores == sorted(scores, reverse=True) and all(map(math.isfinite, scores))
                for shown in (one.source, one.before, one.after, *(h.text for h in one.hypotheses)):
                    shown.encode()


def contrastive_set(directory: Path) -> None:
    from cadec_cli.evaluation.contrastive.sets import read_set

    (path,) = directory.iterdir()
    found = read_set(path)
    for group in found.groups:
        assert len(group.candidates) > 1 and 0 <= group.truth < len(group.candidates)
    json.dumps([str(group) for group in found.groups]).encode()
    "".join(text for group in found.groups for text in group.candidates).encode()


def generative_set(directory: Path) -> None:
    from cadec_cli.evaluation.generative.forms import Judging
    from cadec_cli.evaluation.generative.sets import read_set, read_system

    path = next(path for path in directory.iterdir() if path.suffix in (".json", ".jsonl"))
    found = read_set(path)
    if (system := directory / "system.txt").exists():
        assert len(read_system(system, found, "fr")) == len(found.items)
    for item in found.items:
        assert item.document and all(sentence.strip() for sentence in item.document)
        for judging in (Judging("words", "fr"), Judging("ctxpro", "fr")):
            judging.says(item.source, item.expected)
            judging.address(item.reference or "")
    json.dumps([str(item) for item in found.items]).encode()
    "".join(text for item in found.items for text in (*item.document, item.expected, item.rule)).encode()


def ctxpro_seed(directory: Path) -> None:
    (directory / "set.json").write_text(json.dumps(CTXPRO, indent=1), "utf-8")
    (directory / "set").write_text("A.<eos> B.\nC.\n", "utf-8")
    (directory / "system.txt").write_text("Oui. Je t'ai.\nOui.<eos> Vous deux.\n", "utf-8")


def evaluated(directory: Path) -> None:
    from cadec_cli.evaluation.quality.comparison import Sampling, StringOptions, evaluate, read_texts

    names = ("hypothesis", "baseline", "reference", "source")
    hypothesis, baseline, reference, source = (directory / f"{name}.txt" for name in names)
    texts = read_texts(hypothesis, [baseline], reference, source)
    found = evaluate(texts, StringOptions(language="ru"), sampling=Sampling(samples=5))
    assert found.sentences == len(texts.hypotheses.sentences)
    assert texts.hypotheses.shape == texts.baselines[0].shape


def evaluated_seed(directory: Path) -> None:
    for name in ("hypothesis", "baseline", "reference", "source"):
        (directory / f"{name}.txt").write_text(f"Раз {name}.\nДва.\n\nТри.\nЧетыре и {name}\n", "utf-8")


@cache
def models() -> Any:
    from cadec_cli.bundle.bundle import Bundle
    from tests.helpers.session_parts import models_of

    return models_of(Bundle.open(parts.bundle()))


def session_seed(directory: Path) -> None:
    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.session.files import session_json
    from tests.helpers.repl_parts import SENTENCES
    from tests.helpers.session_parts import add, new_session

    session = new_session(Bundle.open(parts.bundle()))
    add(session, *SENTENCES[:2])
    session.new()
    add(session, SENTENCES[2])
    session.edit("Том.")
    (directory / "session.json").write_text(session_json(session), "utf-8")


def session(directory: Path) -> None:
    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.fs.read import read_json
    from cadec_cli.method.options import TranslationOptions
    from cadec_cli.session.files import session_json, stored_session
    from cadec_cli.session.session import Session
    from tests.helpers.session_parts import direction_of

    path = directory / "session.json"
    direction = direction_of(Bundle.open(parts.bundle(), verify=False))
    stored = stored_session(read_json(path), direction, models().language, str(path))
    options = stored.options or TranslationOptions(nbest=4, beam=3)
    again = Session(models(), options, direction=direction, documents=stored.documents)
    session_json(again).encode()
    if options.nbest * options.beam <= 1000:
        list(again.translate(["Tom wants it."]))


def session_log_seed(directory: Path) -> None:
    """A session as a REPL leaves it when it is killed."""
    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.session.files import SessionLog
    from tests.helpers.repl_parts import SENTENCES
    from tests.helpers.session_parts import add, new_session

    session = new_session(Bundle.open(parts.bundle()))
    log = SessionLog(directory / "session.log", session)
    for sentence in SENTENCES[:3]:
        add(session, sentence)
        log.save(session)
    session.edit("Том.")
    log.save(session)
    log.close()


def session_log(directory: Path) -> None:
    """Whatever is damaged, sentences are in the order in which they were said, and none is another."""
    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.session.files import read_session
    from tests.helpers.repl_parts import SENTENCES
    from tests.helpers.session_parts import direction_of

    direction = direction_of(Bundle.open(parts.bundle(), verify=False))
    stored = read_session(directory / "session.log", direction, models().language)
    found = [entry.source for document in stored.documents for entry in document]
    assert found == list(SENTENCES[: len(found)]), f"nobody said that: {found}"


def journal_seed(directory: Path) -> None:
    """A journal as a translation leaves it when it is killed."""
    from cadec_cli.decoding.state import State
    from cadec_cli.jobs.journal import SAVE_EVERY, Journal

    slow = itertools.count(step=SAVE_EVERY).__next__
    with Journal.begin(directory / "journal", TABLE, slow) as journal:
        for sentence in range(3):
            journal.keep(str(sentence), [_list(sentence)])
            journal.add(0, sentence, _output(0, sentence))
            journal.checkpoint(State.at_start(2))
        journal.add(1, 0, _output(1, 0))


def _output(document: int, sentence: int) -> dict[str, object]:
    return {"text": f"Ответ {document} {sentence}", "parts": []}


def _list(sentence: int) -> NBest:
    return NBest(
        f"Sentence {sentence}", (Hypothesis("Ответ", -0.5, (1, 2), defects=0), Hypothesis("Да", -2.0))
    )


def journal(directory: Path) -> None:
    """Damage costs what it damages: what is taken up is what was written."""
    from cadec_cli.jobs.journal import Journal

    with Journal.resume(directory / "journal", TABLE) as found:
        for (document, sentence), output in found.outputs.items():
            assert output == _output(document, sentence), f"a wrong line: {output}"
        for sentence in range(3):
            kept = found.recall(str(sentence))
            assert kept in (None, [_list(sentence)]), f"a wrong list: {kept}"


def done_seed(directory: Path) -> None:
    """What a translation in bulk leaves when it is killed."""
    from cadec_cli.jobs.done import DoneDocuments

    with DoneDocuments.begin(directory / "journal", TABLE) as done:
        for number in range(3):
            done.add(f"document {number}", [_output(number, sentence) for sentence in range(2)])
        done.note_output("film.ru.srt", "0123456789abcdef")


def done_documents(directory: Path) -> None:
    """Likewise, by what the documents are."""
    from cadec_cli.jobs.done import DoneDocuments

    with DoneDocuments.resume(directory / "journal", TABLE) as found:
        for number in range(3):
            if (key := f"document {number}") in found:
                made = found.sentences(key, 2)
                assert made == [_output(number, sentence) for sentence in range(2)], f"wrong lines: {made}"
        assert not found.is_own("film.ru.srt", "")


FINISHED = [("a.ru.srt", "0" * 64, "a.srt", "1" * 64), ("b.ru.srt", "2" * 64, "b.srt", "3" * 64)]


def finished_seed(directory: Path) -> None:
    """What a translation in bulk leaves when it has ended."""
    from cadec_cli.jobs.done import RECORD, FinishedFile, FinishedFiles

    FinishedFiles(directory / RECORD, TABLE).add(FinishedFile(*fields) for fields in FINISHED)


def finished_files(directory: Path) -> None:
    """Damage costs knowledge: no file is known that was not written; then others are put on record."""
    from cadec_cli.jobs.done import RECORD, FinishedFile, FinishedFiles

    files = FinishedFiles(directory / RECORD, TABLE)
    known = files.read()
    assert known <= {FinishedFile(*fields) for fields in FINISHED}, f"never written: {known}"
    files.add([FinishedFile("c.ru.srt", "4", "c.srt", "5")])
    assert files.read() == {*known, FinishedFile("c.ru.srt", "4", "c.srt", "5")}


def part_seed(directory: Path) -> None:
    from cadec_cli.jobs.back_translation import PairFile

    with contextlib.suppress(KeyboardInterrupt):
        PairFile(directory / "pairs.tsv", TABLE).write(_interrupted())


def _interrupted() -> Iterator[list[str]]:
    yield _paired(DOCUMENT[:2])
    yield _paired(DOCUMENT[2:4])
    raise KeyboardInterrupt


def _paired(lines: Sequence[str]) -> list[str]:
    return [f"<{line}>\t{line}" if line else "" for line in lines]


def _translated(lines: Sequence[str]) -> list[str]:
    return [f"<{line}>" for line in lines]


def part_file(directory: Path) -> None:
    """Damage costs what it damages: in the end there is what there would have been."""
    from cadec_cli.jobs.back_translation import PairFile, pair_lines

    pairs = PairFile(directory / "pairs.tsv", TABLE)
    done = pairs.progress(resume=True)
    if done.damage:
        pairs.repair(DOCUMENT, _translated, done)
    pairs.write(pair_lines(DOCUMENT[done.lines :], _translated), done.lines)
    written = pairs.output.read_text("utf-8")
    assert written == "".join(f"{line}\n" for line in _paired(DOCUMENT)), f"wrong lines: {written}"


def template(directory: Path) -> None:
    """Names of outputs come from files and the command line; here, from a file of both."""
    from cadec_cli.errors import CadecError
    from cadec_cli.jobs.outputs import Languages, TemplateError, plan_outputs

    raw = (directory / "names").read_bytes().split(b"\n")
    output, *inputs = [line.decode("utf-8", "surrogateescape") for line in raw]
    paths = [Path(name.replace("/", "_") or "x") for name in inputs or ["film.en.srt"]]
    try:
        plan = plan_outputs(output, paths, Languages("en", "ru"))
    except TemplateError as error:
        raise CadecError(str(error)) from None
    assert len(plan.paths) == len(set(plan.paths)) == len(paths)


def formality(directory: Path) -> None:
    from cadec_cli.text.formality import read_seeds

    for registers in read_seeds(directory / "seeds.json").values():
        assert all(texts for texts in registers.values())


def no_context(name: str) -> Callable[[Path], None]:
    def load(directory: Path) -> None:
        from converters.language.no_context import no_context_texts

        for language, texts in no_context_texts(str(directory / name), "fr").items():
            assert texts and all(line.strip() for lines in texts for line in lines), language

    return load


def glossary(name: str) -> Callable[[Path], None]:
    """A term is found in its own text, and respected by its own target."""

    def load(directory: Path) -> None:
        from cadec_cli.text.glossary.entries import find_form
        from cadec_cli.text.glossary.reader import read_glossary

        for language in ("en", "ru"):
            found = read_glossary([str(directory / name)], language)
            assert found.entries
            for entry in found.entries:
                assert found.mentions(entry.source), entry
                for target in entry.targets:
                    assert target.strip() and find_form(target, target) is not None, entry

    return load


def cast(directory: Path) -> None:
    """Everybody of a cast is known by every name, and may be addressed."""
    from cadec_cli.text.cast import Conversation, read_cast
    from cadec_cli.text.documents import Sentence

    (path,) = directory.iterdir()
    found = read_cast(str(path))
    assert found.people
    conversation = Conversation(found, "ru")
    for person in found.people:
        for name in person.names:
            assert name in found
            manner, _ = conversation.follow(Sentence("Hello.", "", speaker=name), speakers=True)
            assert (manner.gender if manner is not None else "") == person.gender


def translation_memory(*names: str) -> Callable[[Path], None]:
    """Every pair has two sides on one line, and what is indexed is found by its own source."""

    def load(directory: Path) -> None:
        from cadec_cli.method.retrieval import NOTHING, related
        from cadec_cli.text.translation_memory import read_memory

        name = "=".join(str(directory / name) for name in names)
        pairs = read_memory([name], "en", "ru")
        for side in (side for pair in pairs for side in pair):
            assert side == " ".join(side.split()) != ""
            side.encode()
        index = NOTHING.add((source, (), target) for source, target in pairs)
        for source, _ in pairs[:50]:
            assert all((one.source, one.target) in pairs for _, one in related(source, 2, [index]))

    return load


def two_files(directory: Path) -> None:
    cue = "{}\n00:00:0{},000 --> 00:00:0{},500\n{}\n\n"
    for name, texts in (("a.srt", ("I see", "it. Yes.", "Go!")), ("b.srt", ("Вижу", "его. Да.", "Иди!"))):
        cues = (cue.format(number, number, number, text) for number, text in enumerate(texts, 1))
        (directory / name).write_text("".join(cues), "utf-8")


SETS = ("cadec_cli/evaluation/contrastive/sets.py",)
GENERATIVE = ("cadec_cli/evaluation/generative/sets.py",)
LISTS = ("cadec_cli/jobs/json_lines.py",)
MEMORIES = ("cadec_cli/text/translation_memory.py", "cadec_cli/method/retrieval.py")
TMX = """<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en"><seg>The <bpt i="1">&lt;b&gt;</bpt>lamp, Bob.</seg></tuv>
<tuv xml:lang="ru"><seg>Лам&#1087;а, Боб.</seg></tuv></tu></body></tmx>"""
GLOSSARIES = ("cadec_cli/text/glossary/reader.py", "cadec_cli/text/glossary/entries.py")
CASTS = ("cadec_cli/text/cast.py",)
CAST = "# who\nAnna|Mrs Reed\tf\tformal: Boris, *\tinformal: Max\nBoris\tm\tformal: *\nMax\tm\nВсе\t-\n"
PEOPLE = st.lists(
    st.sampled_from(
        [*"\t\t\n\n|,:*#-fm ", "Anna", "ANNA", "ß", "İ", "formal:", "informal: ", "(x)", "\u0301"]
    ),
    max_size=24,
).map(lambda parts: "".join(parts).encode())
GLOSSARY = (
    "# terms\nlamp\tлампа|лампу\nBlack Knight\t!Чёрный рыцарь\tname\nRosebud\t=\nC++ (x)\tC++\n灯\tlamp\n"
)
TERMS = st.lists(
    st.sampled_from(
        [
            "lamp",
            "Лампа",
            "灯",
            "\t",
            "\t",
            "\n",
            "\n",
            "|",
            "!",
            "=",
            "#",
            " ",
            "'s",
            "-",
            ".",
            "\u0301",
            "ß",
            "İ",
            "_",
        ]
    ),
    max_size=24,
).map(lambda drawn: f"a\tb\n{''.join(drawn)}".encode())
TBX = """<?xml version="1.0"?><!DOCTYPE martif><martif><text><body><termEntry><langSet xml:lang="en"><tig>
<term>lamp</term></tig></langSet><langSet xml:lang="ru"><tig><term>лампа</term></tig></langSet></termEntry>
</body></text></martif>"""
NAMES = st.lists(
    st.sampled_from(
        ["{", "}", "stem", "to", "ext", "name", "from", ".", "/", "\n", "a", "en", "ru", "..", "!r"]
    ),
    max_size=12,
).map(lambda drawn: "".join(drawn).encode())


def json_file(value: object) -> Callable[[Path], None]:
    return text("set.json", json.dumps(value, ensure_ascii=False, indent=1))


TARGETS = {
    "n-best lists": Target(LISTS, text("nbest.jsonl", NBEST), nbest),
    "n-best lists of Moses": Target(LISTS, text("nbest.txt", MOSES), nbest),
    "contrastive set, Voita": Target(SETS, json_file(VOITA), contrastive_set),
    "contrastive set, ContraPro": Target(SETS, json_file(CONTRAPRO), contrastive_set),
    "contrastive set, DiscEvalMT": Target(SETS, json_file(DISCEVALMT), contrastive_set),
    "contrastive set, own": Target(SETS, text("set.jsonl", OWN_SET), contrastive_set),
    "generative set, own": Target(GENERATIVE, text("set.jsonl", GENERATIVE_SET), generative_set),
    "generative set, ctxPro": Target(GENERATIVE, ctxpro_seed, generative_set),
    "evaluate's texts": Target(("cadec_cli/evaluation/aligned.py",), evaluated_seed, evaluated, share=0.5),
    "session": Target(
        (
            "cadec_cli/commands/repl/commands.py",
            "cadec_cli/commands/repl/autosave.py",
            "cadec_cli/session/files.py",
        ),
        session_seed,
        session,
        share=0.7,
    ),
    "session's log": Target(
        ("cadec_cli/session/files.py", "cadec_cli/fs/append_log.py"), session_log_seed, session_log, share=0.5
    ),
    "journal": Target(
        ("cadec_cli/fs/append_log.py", "cadec_cli/jobs/journal.py"),
        journal_seed,
        journal,
        writes=True,
    ),
    "done documents": Target(("cadec_cli/jobs/done.py",), done_seed, done_documents, writes=True, share=0.5),
    "finished files": Target(
        ("cadec_cli/jobs/done.py",), finished_seed, finished_files, writes=True, share=0.5
    ),
    "part file": Target(("cadec_cli/jobs/back_translation.py",), part_seed, part_file, writes=True),
    "output names": Target(
        (), text("names", "{stem}.{to}{ext}\nfilm.en.srt\ndev.en"), template, written=NAMES
    ),
    "glossary": Target(GLOSSARIES, text("terms.tsv", GLOSSARY), glossary("terms.tsv")),
    "glossary, any terms": Target(
        GLOSSARIES, text("terms.tsv", GLOSSARY), glossary("terms.tsv"), written=TERMS, only_written=True
    ),
    "glossary, CSV": Target(
        GLOSSARIES, text("terms.csv", 'source,target\nlamp,"лампа|лампу"\nC,!=\n'), glossary("terms.csv")
    ),
    "glossary, TBX": Target(GLOSSARIES, text("terms.tbx", TBX), glossary("terms.tbx")),
    "cast": Target(CASTS, text("cast.tsv", CAST), cast),
    "cast, any people": Target(CASTS, text("cast.tsv", CAST), cast, written=PEOPLE, only_written=True),
    "memory": Target(
        MEMORIES, text("m.tsv", "I see Bob.\tЯ вижу Боба.\tx\n灯が\tlamp\n"), translation_memory("m.tsv")
    ),
    "memory, TMX": Target(MEMORIES, text("m.tmx", TMX), translation_memory("m.tmx")),
    "memory, two files": Target(MEMORIES, two_files, translation_memory("a.srt", "b.srt"), share=0.5),
    "formality": Target(
        ("cadec_cli/text/formality.py",), text("seeds.json", json.dumps(FORMALITY)), formality
    ),
    "no context, JSON": Target(
        ("converters/language/no_context.py",),
        text("texts.json", json.dumps(NO_CONTEXT)),
        no_context("texts.json"),
    ),
    "no context, text": Target(
        ("converters/language/no_context.py",),
        text("texts.txt", "Bonjour.\nOui.\n\nNon.\n"),
        no_context("texts.txt"),
    ),
}
