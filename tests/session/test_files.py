"""Sessions as JSON come back as they were; of other bundles' and older ones the texts do."""

import dataclasses
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.bundle.build import BundleRequest, build_bundle
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.errors import CadecError
from cadec_cli.models.storage import load_model, save_model
from cadec_cli.session.files import SessionLog, StoredSession, read_session, session_json
from cadec_cli.session.session import Session
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.bundle_parts import checksums, shaken
from tests.helpers.damages import DAMAGES
from tests.helpers.repl_parts import SENTENCES, tiny_bundle
from tests.helpers.session_parts import LONG, OPTIONS, add, direction_of, models_of, new_session, stored_in


@pytest.fixture(scope="module")
def bundle(english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return Bundle.open(tiny_bundle(tmp_path_factory.mktemp("session"), english, russian))


def full(bundle: Bundle) -> Session:
    """Two documents with everything that can happen to a sentence."""
    session = new_session(bundle)
    add(session, SENTENCES[0], LONG, "\u0001")
    session.new()
    add(session, *SENTENCES[:3])
    session.edit("Том.")
    add(session, SENTENCES[3])
    session.pick(2)
    return session


def test_a_session_comes_back_from_its_json(bundle: Bundle) -> None:
    session = full(bundle)
    session.configure(dataclasses.replace(OPTIONS, temperature=2.0))
    stored = stored_in(json.loads(session_json(session)), bundle)
    assert [list(document) for document in stored.documents] == session.documents
    assert stored.options == session.options
    again = new_session(bundle, OPTIONS, stored.documents)
    session.configure(OPTIONS)
    assert add(again, SENTENCES[4]) == add(session, SENTENCES[4])


def test_of_another_bundle_s_session_the_texts_are_taken(bundle: Bundle, tmp_path: Path) -> None:
    session = full(bundle)
    data = json.loads(session_json(session))
    # Another D-LM makes another bundle; another conversion of the same models does not.
    weights = load_model(bundle.directory / "lm").model
    save_model(tmp_path / "lm", shaken(weights, 9), checksums(bundle.target))
    build_bundle(tmp_path / "other", BundleRequest(base=bundle.directory, lm=tmp_path / "lm"))
    build_bundle(tmp_path / "same", BundleRequest(base=bundle.directory, compute_types=["int8"]))
    assert stored_in(data, Bundle.open(tmp_path / "same")).options == session.options
    bundle = Bundle.open(tmp_path / "other")
    stored = stored_in(data, bundle, "x", OPTIONS)
    assert stored.options is None
    texts = [[(entry.source, entry.text) for entry in document] for document in stored.documents]
    assert texts == [[(entry.source, entry.text) for entry in document] for document in session.documents]
    assert stored.documents[1][2].context_ids == (tuple(bundle.lm_text.encode("Том.")),)
    by_hand = {"documents": [[{"source": "Tom.", "target": "Том."}], []]}
    (entry,), empty = stored_in(by_hand, bundle).documents
    assert (entry.source, entry.text, entry.parts, empty) == ("Tom.", "Том.", (), ())


def test_texts_without_hypotheses_are_context_as_far_as_the_options_allow(bundle: Bundle) -> None:
    bare = {"documents": [[{"source": "Tom.", "target": "Том."}] * 5]}
    for options, windows in (
        (dataclasses.replace(OPTIONS, context=2), [0, 1, 2, 2, 2]),
        (dataclasses.replace(OPTIONS, context=2, rolling=True), [0, 1, 2, 3, 4]),
    ):
        (entries,) = stored_in(bare, bundle, "x", options).documents
        assert [len(entry.read) for entry in entries] == windows
        session = new_session(bundle, options, [entries])
        assert len(session.in_use.sentences) == (5 if options.rolling else 2)


def test_of_a_session_of_format_1_the_texts_are_taken(bundle: Bundle) -> None:
    """It did not say which context a translation was chosen in; all else of it may look as it will."""
    first = {
        "format": "cadec session 1",
        "bundle": bundle.manifest.identity,
        "options": {**dataclasses.asdict(OPTIONS), "weight": None},
        "documents": [
            [
                {
                    "source": "Tom.",
                    "target": "Том.",
                    "edited": False,
                    "units": [[7, 8]],
                    "window": 0,
                    "options": {**dataclasses.asdict(OPTIONS), "weight": None},
                    "parts": [
                        {
                            "source": "Tom.",
                            "hypotheses": [{"ids": [7, 8], "text": "Том.", "log_prob": -1.0}],
                            "choice": {"index": 0, "scores": [-1.0], "conditional": [-2.0], "free": [-2.0]},
                        }
                    ],
                },
                {"source": "Tom?", "target": "Том?"},
            ],
            [],
        ],
    }
    stored = stored_in(first, bundle, "x", OPTIONS)
    assert stored.options is None
    (tom, asked), empty = stored.documents
    ids = tuple(bundle.lm_text.encode("Том."))
    assert (tom.source, tom.text, tom.parts, tom.context_ids, tom.read) == ("Tom.", "Том.", (), (ids,), ())
    assert (asked.source, asked.text, asked.read, empty) == ("Tom?", "Том?", (ids,), ())
    session = new_session(bundle, OPTIONS, stored.documents[:1])
    (entry,) = add(session, SENTENCES[0])
    assert entry.read == (ids, *asked.context_ids)
    assert stored_in(json.loads(session_json(session)), bundle).documents == tuple(
        map(tuple, session.documents)
    )


def deep(*keys: Any, value: Any) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        for key in keys[:-1]:
            data = data[key]
        data[keys[-1]] = value

    return change


ENTRY = ("documents", 1, 0)
PART = (*ENTRY, "parts", 0)


@pytest.mark.parametrize(
    "change",
    [
        deep("documents", value="none"),
        deep("documents", 0, value=3),
        deep(*ENTRY, value=None),
        deep(*ENTRY, "source", value=4),
        deep(*ENTRY, "target", value="\ud800"),
        deep(*ENTRY, "target", value="another"),
        deep(*ENTRY, "read", value="3"),
        deep(*ENTRY, "read", value=[[10**6]]),
        deep(*ENTRY, "context_ids", value=[[10**6]]),
        deep(*ENTRY, "context_ids", value=7),
        deep(*ENTRY, "parts", value=[{}]),
        deep(*PART, "choice", value=None),
        deep(*PART, "choice", "index", value=99),
        deep(*PART, "choice", "scores", value=[1.0]),
        deep(*PART, "choice", "scores", 0, value=float("nan")),
        deep(*PART, "choice", "terms", "free", value=[0.0]),
        deep(*PART, "choice", "terms", value=[]),
        deep(*PART, "choice", "context", value=[[-1]]),
        deep(*PART, "vocabulary", value=None),
        deep(*PART, "hypotheses", 0, "ids", value=[-1]),
        deep(*PART, "hypotheses", 0, "log_prob", value="low"),
        deep(*PART, "hypotheses", 0, "log_prob", value=10**400),
        deep("options", value=[]),
        deep("options", "nbest", value="many"),
        deep("options", "search", value="luck"),
        deep("options", "luck", value=1),
        deep("options", "rolling", value=1),
        deep("options", "weight", value={"lm": "much"}),
    ],
)
def test_data_that_is_no_session_is_one_clear_error(bundle: Bundle, change: Callable[[Any], None]) -> None:
    data = json.loads(session_json(full(bundle)))
    stored_in(data, bundle, "x.json")
    change(data)
    with pytest.raises(CadecError, match=r"x\.json is not a session"):
        stored_in(data, bundle, "x.json")


def test_a_damaged_file_is_one_clear_error_and_never_another_session(bundle: Bundle, tmp_path: Path) -> None:
    session, path = full(bundle), tmp_path / "session.json"
    whole, language = session_json(session).encode(), models_of(bundle).language

    def read(content: bytes) -> StoredSession:
        path.write_bytes(content)
        return read_session(path, direction_of(bundle), language)

    expected = read(whole)
    assert [list(document) for document in expected.documents] == session.documents
    assert read(whole.replace(b"\n", b"\r\n")) == expected
    rng = random.Random(2)
    refused = 0
    for number in range(6 * len(DAMAGES)):
        damage = DAMAGES[number % len(DAMAGES)]
        try:
            assert read(damage(rng, whole)) == expected, damage.__name__
        except CadecError as error:
            assert str(path) in error.message
            refused += 1
    assert refused > 4 * len(DAMAGES)
    source = json.dumps(SENTENCES[0], ensure_ascii=False)[1:-1].encode()
    assert whole.count(source) > 1
    other = whole.replace(source, source.swapcase())  # well-formed, and yet nothing that was said
    with pytest.raises(CadecError, match="is damaged") as caught:
        read(other)
    assert "by hand" in caught.value.hint
    by_hand = {key: value for key, value in json.loads(other).items() if key not in ("format", "checksum")}
    assert read(json.dumps(by_hand).encode()).documents[0][0].source == SENTENCES[0].swapcase()
    # Of sessions from before there was a checksum, the text counts.
    before = {**json.loads(whole), "format": "cadec session 2"}
    del before["checksum"]
    found = read(json.dumps(before).encode())
    assert found.options is None and expected.options is not None
    assert [[(entry.source, entry.text) for entry in document] for document in found.documents] == [
        [(entry.source, entry.text) for entry in document] for document in expected.documents
    ]


def test_a_log_has_every_change_and_only_grows_by_it(bundle: Bundle, tmp_path: Path) -> None:
    path, language = tmp_path / "session.log", models_of(bundle).language
    session = full(bundle)
    log = SessionLog(path, session)

    def check() -> int:
        before = path.stat().st_size
        log.save(session)
        stored = read_session(path, direction_of(bundle), language)
        assert [list(document) for document in stored.documents] == session.documents
        assert (stored.options, stored.after, stored.damage) == (session.options, session.after, "")
        return path.stat().st_size - before

    assert check() == 0
    whole = path.stat().st_size
    add(session, SENTENCES[4])
    assert 0 < check() < whole / 2
    session.pick(2, 1)
    session.edit("Нет.", 2)
    assert check() > 0
    session.redo(0)
    check()
    session.new()
    assert 0 < check() < 200
    for _ in range(3):
        session.undo()
        assert 0 < check() < 200
    session.configure(dataclasses.replace(OPTIONS, temperature=2.0))
    assert check() > 0
    session.begin([session.documents[0]], ["Том."])
    check()
    log.sync()
    log.close()


def test_of_a_damaged_log_a_session_is_read_that_once_was(bundle: Bundle, tmp_path: Path) -> None:
    path, language = tmp_path / "session.log", models_of(bundle).language
    session = new_session(bundle)
    log = SessionLog(path, session)
    seen: list[Any] = [[], [[]]]
    for sentence in (*SENTENCES[:3], None, SENTENCES[3]):
        if sentence is None:
            session.undo()
        else:
            add(session, sentence)
        log.save(session)
        seen.append([list(document) for document in session.documents])
    log.close()
    whole, rng, refused = path.read_bytes(), random.Random(4), 0
    for number in range(8 * len(DAMAGES)):
        damage = DAMAGES[number % len(DAMAGES)]
        path.write_bytes(damage(rng, whole))
        try:
            stored = read_session(path, direction_of(bundle), language)
        except CadecError as error:
            assert str(path) in error.message
            refused += 1
        else:
            assert [list(document) for document in stored.documents] in seen, damage.__name__
    assert refused < 2 * len(DAMAGES)
