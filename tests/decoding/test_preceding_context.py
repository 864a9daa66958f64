"""What a user knows is context: a seed stays at the head of the window, what comes before slides out."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.decoding.preceding_context import context_of, context_policy, readable
from cadec_cli.decoding.state import State
from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.errors import CadecError, Interrupted, UsageError
from cadec_cli.jobs.in_step import FileTranslation
from cadec_cli.jobs.outputs import OutputPlan
from cadec_cli.method.context import Context, ContextPolicy
from cadec_cli.method.options import TranslationOptions
from cadec_cli.session.session import Session
from cadec_cli.text.formats import read_text_file
from tests.helpers.fakes import TableLM, TableNMT, WordText

NMT = TableNMT(
    {
        "you see": {"tu vides": -1.0, "vos videz": -1.2},
        "you go": {"tu vades": -0.8, "vos vadez": -1.4},
        "yes": {"si": -0.1},
    }
)
LM = {("senor", "vos"): 0.9, ("vos", "vos"): 0.2, ("amico", "tu"): 0.9, ("senor", "videz"): 0.2}
SEEDS = {"formal": ["senor bon", "senor"], "informal": ["amico"]}
DOCUMENTS = [["you see", "yes", "yes", "yes", "yes", "you go"], ["yes"], ["you go", "you see"]]


def models(positions: int = 32) -> ModelSet:
    return ModelSet(NMT, TableLM(LM, WordText(), positions), seeds=SEEDS)


def translations(
    options: TranslationOptions,
    documents: Sequence[Sequence[str]] = DOCUMENTS,
    positions: int = 32,
    **given: Any,
) -> list[Translation]:
    found = Translator(models(positions), options).translate_documents(documents, **given)
    return sorted(found, key=lambda one: (one.document, one.sentence))


def texts(found: Sequence[Translation]) -> list[str]:
    return [one.text for one in found]


ids = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)
sentences = st.lists(ids, max_size=6).map(tuple)


@given(
    st.lists(st.sampled_from(["senor", "vos bon senor", " ", "", "…"]), max_size=40),
    st.integers(1, 4),
    st.booleans(),
    st.integers(4, 24),
    st.booleans(),
)
def test_what_could_be_read_of_a_long_text_is_its_end(
    before: list[str], count: int, rolling: bool, positions: int, known: bool
) -> None:
    options = TranslationOptions(context=count, rolling=rolling)
    kept = readable(options, before, positions if known else None)
    reader = models(positions)
    assert context_of(reader, options, kept).sentences == context_of(reader, options, before).sentences
    if known or not rolling:
        most = max(count, positions) if rolling else count
        assert sum(text.isascii() and text.strip() != "" for text in kept) <= most


@given(sentences, sentences, st.integers(0, 4), st.booleans(), st.integers(1, 40))
def test_the_window_is_the_seed_and_what_would_be_read_without_it(
    seed: tuple[tuple[int, ...], ...],
    before: tuple[tuple[int, ...], ...],
    count: int,
    rolling: bool,
    room: int,
) -> None:
    policy = ContextPolicy(count, rolling, seed)
    read = policy.read(Context(before), room)
    assert read.length <= room or not read.sentences
    assert policy.read(read, room).sentences == read.sentences  # what is read is read again, the seed once
    of_seed, own = read.sentences[: read.pinned], read.own
    assert of_seed == seed[len(seed) - len(of_seed) :] and own == before[len(before) - len(own) :]
    # The document's own sentences make room first: where one of them is left, the seed is whole.
    assert of_seed == seed or not own
    if 1 + sum(len(one) + 1 for one in (*seed, *before)) <= room:
        assert own == (before if rolling else before[-count:] if count else ())
    if not seed:  # all as it is without: the last few, the oldest of which make room
        window = before[-count:] if count else ()
        while window and 1 + sum(len(one) + 1 for one in window) > room:
            window = window[1:]
        fits = 1 + sum(len(one) + 1 for one in before) <= room
        assert read.sentences == (before if rolling and fits else window)


def test_without_a_seed_the_context_is_the_very_same_with_what_is_remembered() -> None:
    before = Context(((1, 2), (3,)), memory=object(), remembered=4)
    assert ContextPolicy(3, rolling=True).read(before, 32) is before
    seeded = Context(((7,), (1, 2)), memory=object(), remembered=3, pinned=1)
    assert ContextPolicy(3, rolling=True, seed=((7,),)).read(seeded, 32) is seeded
    other = ContextPolicy(3, rolling=True, seed=((8,), (9,))).read(seeded, 32)
    assert (other.sentences, other.pinned, other.memory) == (((8,), (9,), (1, 2)), 2, None)


@pytest.mark.parametrize("rolling", [False, True])
@pytest.mark.parametrize(("search", "paths"), [("rerank", 5), ("lattice", 1), ("lattice", 4)])
def test_address_follows_the_seed_however_far_a_document_goes(search: str, paths: int, rolling: bool) -> None:
    options = TranslationOptions(search=search, paths=paths, rolling=rolling, context=1)
    formal = translations(dataclasses.replace(options, formality="formal"))
    assert texts(formal) == ["vos videz", *["si"] * 4, "vos vadez", "si", "vos vadez", "vos videz"]
    informal = translations(dataclasses.replace(options, formality="informal"))
    assert texts(informal) == ["tu vides", *["si"] * 4, "tu vades", "si", "tu vades", "tu vides"]
    for translation in formal:
        (choice,) = (part.choice for part in translation.parts)
        assert choice is not None and choice.pinned == 2 and choice.pmi is not None
        own = len(choice.context) - 2
        assert own == (translation.sentence if rolling else min(translation.sentence, 1))


def test_a_seed_is_the_same_as_these_sentences_chosen_before() -> None:
    """As long as all of it is in the window, it does not matter who put it there."""
    greeting = TableNMT({**NMT.table, "a": {"senor bon": -0.1}, "b": {"senor": -0.1}})
    given = ModelSet(greeting, TableLM(LM), seeds=SEEDS)
    options = TranslationOptions(context=5, formality="formal")
    seeded = list(Translator(given, options).translate(["you see", "yes", "you go"]))
    plain = Translator(given, dataclasses.replace(options, formality="auto"))
    chosen = list(plain.translate(["a", "b", "you see", "yes", "you go"]))[2:]
    for one, other in zip(seeded, chosen, strict=True):
        (part,), (expected,) = one.parts, other.parts
        assert part.choice is not None and expected.choice is not None
        assert part.choice == dataclasses.replace(expected.choice, pinned=2)


def test_what_comes_before_counts_until_it_has_left_the_window() -> None:
    options = TranslationOptions(context=2)
    document = ["you see", "yes", "yes", "you go"]
    given = models()
    before = context_of(given, options, ["nunca", "senor bon", "", "senor"])
    assert [given.language.text.decode(one) for one in before.sentences] == ["senor bon", "senor"]  # type: ignore[union-attr]
    found = list(Translator(given, options).translate_documents([document], contexts=[before]))
    assert texts(found) == ["vos videz", "si", "si", "tu vades"]
    assert texts(translations(options, [document])) == ["tu vides", "si", "si", "tu vades"]
    for search in ({"search": "sentence"}, {"objective": "shallow-fusion"}, {"search": "doc-nmt"}):
        with pytest.raises(UsageError, match="reads none"):
            context_of(given, dataclasses.replace(options, **search), ["senor"])  # type: ignore[arg-type]


def test_it_stands_before_the_first_document_of_every_file(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("you see\nyes\n\nyou go\n")
    files = [read_text_file(tmp_path / name, language="en") for name in ("a.txt", "b.txt")]
    given = models()
    options = TranslationOptions()
    before = context_of(given, options, ["senor"])
    outputs = tuple(tmp_path / "out" / name for name in ("a.txt", "b.txt"))
    plan = OutputPlan(outputs, tmp_path / "out" / ".cadec-journal")
    work = FileTranslation(Translator(given, options), files, (), plan, before=before)
    assert texts(list(work.in_order())) == ["vos videz", "si", "tu vades"] * 2
    work.to_files(json_lines=False, resume=False)
    assert (tmp_path / "out" / "b.txt").read_text() == "vos videz\nsi\n\ntu vades\n"
    # Unfinished work is gone on with only after the same.
    output = tmp_path / "c.txt"
    plan = OutputPlan((output,), tmp_path / "c.txt.cadec-journal")
    one = dataclasses.replace(work, files=files[:1], plan=plan)
    with pytest.raises(Interrupted):
        one.to_files(json_lines=False, resume=False, track=interrupted)
    other = dataclasses.replace(one, before=Context())
    with pytest.raises(CadecError, match="differs in: context before"):
        other.to_files(json_lines=False, resume=True)
    one.to_files(json_lines=False, resume=True)
    assert output.read_text() == "vos videz\nsi\n\ntu vades\n"


def interrupted(found: Any, total: int | None) -> Any:
    yield next(iter(found))
    raise KeyboardInterrupt


@pytest.mark.parametrize("rolling", [False, True])
@pytest.mark.parametrize("search", ["rerank", "lattice"])
def test_resumed_is_uninterrupted(search: str, rolling: bool) -> None:
    options = TranslationOptions(search=search, rolling=rolling, context=1, formality="formal")
    document = ["you see", "yes", "you go", "yes"] * 40
    stored: list[tuple[int, Any]] = []
    whole: list[Translation] = []
    for one in Translator(models(), options).translate_documents(
        [document], checkpoint=lambda state: stored.append((len(whole), state.to_json()))
    ):
        whole.append(one)
    assert len(stored) > 1
    for done, state in stored:
        again = Translator(models(), options).translate_documents([document], start=State.from_json(state))
        assert texts(list(again)) == texts(whole[done:])


def test_where_positions_run_out_the_seed_is_the_last_to_go() -> None:
    options = TranslationOptions(context=3, formality="formal")
    for positions, read in ((32, (2, 1)), (11, (2, 1)), (10, (2, 0)), (8, (2, 0)), (7, (1, 0)), (4, (0, 0))):
        found = translations(options, [["you see", "you go"]], positions)
        choice = found[1].parts[0].choice
        assert choice is not None and (choice.pinned, len(choice.context) - choice.pinned) == read
        assert (choice.pmi == (0.0, 0.0)) == (not choice.context)


def test_a_session_says_it_sentence_by_sentence_and_can_switch() -> None:
    for rolling in (False, True):
        options = TranslationOptions(formality="formal", context=1, rolling=rolling)
        session = Session(models(), options)
        document = DOCUMENTS[0]
        found = [entry for sentence in document for entry in session.translate([sentence])]
        assert [entry.text for entry in found] == texts(translations(options, [document]))
        assert [len(entry.read) - entry.pinned for entry in found] == (
            list(range(6)) if rolling else [0, 1, 1, 1, 1, 1]
        )
        assert len(session.in_use.own) == (6 if rolling else 1) and session.in_use.pinned == 2
        assert session.explain().context[:2] == ("senor bon", "senor")
        session.configure(dataclasses.replace(options, formality="informal"))
        assert session.in_use.pinned == 1
        (entry,) = session.translate(["you see"])
        assert entry.text == "tu vides" and entry.pinned == 1


def test_what_comes_before_a_session_comes_before_its_first_document() -> None:
    session = Session(models(), TranslationOptions(context=2), after=["nunca", "senor bon", "senor"])
    first = [entry.text for entry in session.translate(["you see", "yes"])]
    session.new()
    second = [entry.text for entry in session.translate(["you see", "yes"])]
    assert (first, second) == (["vos videz", "si"], ["tu vides", "si"])
    session.undo(), session.undo(), session.undo(), session.undo(), session.undo()
    assert len(session.in_use.sentences) == 2


def test_what_reads_no_context_has_no_formality() -> None:
    """Lists need no context, but forms that are known in the target language."""
    with pytest.raises(UsageError, match="formality"):
        TranslationOptions(formality="formal", search="doc-nmt")
    for options in ({"search": "sentence"}, {"objective": "shallow-fusion"}):
        asked = TranslationOptions(formality="formal", **options)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="formality"):
            Translator(models(), asked)
    with pytest.raises(CadecError, match="formality must be one of auto, formal, informal"):
        TranslationOptions(formality="rude")
    with pytest.raises(CadecError, match="formal"):
        context_policy(ModelSet(NMT, TableLM(LM)), TranslationOptions(formality="formal"))
    assert context_policy(models(), TranslationOptions()) == ContextPolicy(3)


def test_a_text_about_the_text_stays_before_all_sentences(tmp_path: Path) -> None:
    about = tmp_path / "about.txt"
    about.write_text("senor\n\nsenor bon\n", "utf-8")
    options = TranslationOptions(context=1, about=str(about))
    found = translations(options)
    assert texts(found) == ["vos videz", *["si"] * 4, "vos vadez", "si", "vos vadez", "vos videz"]
    policy = context_policy(models(), options)
    assert len(policy.seed) == 2 and policy.seed_pairs == () and policy.seed_sources == ("", "")
    both = context_policy(models(), dataclasses.replace(options, formality="informal"))
    assert len(both.seed) == 3 and [pair.target for pair in both.seed_pairs] == ["amico"]
    session = Session(models(), options)
    assert [entry.text for entry in session.translate(DOCUMENTS[0])] == texts(found)[:6]
    assert len(context_policy(models(10), options).seed) == 1  # most positions are the text's own
    with pytest.raises(CadecError, match="too long for the D-LM"):
        context_policy(models(4), options)
    about.write_text(" \n", "utf-8")
    with pytest.raises(CadecError, match="no sentences"):
        context_policy(models(), options)
