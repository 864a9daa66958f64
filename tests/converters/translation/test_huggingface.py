"""Hugging Face translation models of every family, converted: the same tokens, the same log-probabilities."""

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file

from cadec_cli.engines.ctranslate2 import CTranslate2Model, Framing, framing_for, read_vocabularies
from cadec_cli.errors import CadecError
from cadec_cli.models.pretrained_settings import (
    TRANSLATION_SETTINGS,
    read_translation_settings,
    write_settings,
)
from cadec_cli.text.tokenizers import load_text
from converters.verify import TOLERANCE
from tests.helpers import made_up_pair
from tests.helpers.huggingface_parts import (
    FAMILIES,
    SENTENCES,
    Converted,
    by_name,
    drift_between,
    open_in,
    plainly_converted,
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("huggingface")


@pytest.fixture(params=FAMILIES)
def converted(request: pytest.FixtureRequest, root: Path) -> Converted:
    return by_name(request.param, root)


def test_framing_is_as_the_family_wants_it(converted: Converted) -> None:
    found, expected = converted.found, converted.family.framing
    framing = framing_for(found.settings, *found.languages)
    assert framing == found.framing
    if found.settings.family == "t5" and not found.settings.target_languages:
        words = [piece.replace("▁", " ") for piece in framing.source_begin]
        # Letters that the tiny vocabulary lacks are unknown.
        assert "".join(words).replace("<unk>", "?").strip() == "translate ?nglish to ?rench:"
        framing = Framing((), framing.source_end, framing.target_begin)
    assert framing == expected


def test_tokens_are_those_of_transformers_framing_included(converted: Converted) -> None:
    source, target = converted.found.sides.source, converted.found.sides.target
    vocabulary = list(source.vocabulary)
    for text in (*SENTENCES, "Моя сестра.", "日本 unknown"):
        pieces = [vocabulary[index] for index in source.encode(text)]
        framed = [vocabulary.index(token) for token in converted.found.framing.frame(pieces)]
        assert framed == converted.tokenizer(converted.family.prefix + text).input_ids
        ids = converted.tokenizer(text_target=text, add_special_tokens=False).input_ids
        assert target.encode(text) == ids
        decoded = converted.tokenizer.decode(ids, skip_special_tokens=True)
        assert target.decode(ids) == decoded.strip()


def test_float32_says_what_transformers_says(converted: Converted) -> None:
    assert converted.drift.compute_type == "float32"
    assert converted.drift.largest < TOLERANCE / 10
    assert converted.drift.tokens > 300
    assert sorted(path.name for path in converted.output.iterdir()) == [
        "config.json",
        "model.bin",
        "shared_vocabulary.json",
    ]


def test_scores_are_exact_and_leave_forced_tokens_out(converted: Converted) -> None:
    for sentence, nbest in zip(SENTENCES, converted.model.nbest(SENTENCES, 4), strict=True):
        assert nbest.hypotheses
        for hypothesis in nbest.hypotheses:
            each = converted.log_probs(sentence, hypothesis.ids)
            forced = bool(converted.family.forced)
            assert hypothesis.log_prob == pytest.approx(sum(each[forced:]), abs=1e-3)
            # Were it counted, one would notice.
            assert not forced or each[0] < -0.1


def test_given_translations_are_scored_as_transformers_does(converted: Converted) -> None:
    targets = ("tu vides la granda lampo.", "kashez vos la libro?", "Ça va où ?")
    scored = converted.model.log_probs(SENTENCES, targets)
    for sentence, target, log_prob in zip(SENTENCES, targets, scored, strict=True):
        ids = tuple(converted.found.sides.target.encode(target))
        each = converted.log_probs(sentence, ids)
        assert log_prob == pytest.approx(sum(each[bool(converted.family.forced) :]), abs=1e-3)


def test_no_translation_is_longer_than_asked_for_whatever_it_begins_with(converted: Converted) -> None:
    # Random models rarely find an end: their translations are cut at the limit, and scored with an end.
    model = converted.model
    longest = max(len(one.ids) for nbest in model.nbest(SENTENCES, 4) for one in nbest.hypotheses)
    assert longest <= model._target_room
    source = model._pieces([SENTENCES[0]])[0]
    cut = next(model._collect_results(model._begin_up_to(5, [source], 3)))
    assert {len(tokens) for tokens, _ in cut} <= {1, 2, 3, 4, 5}
    assert max(len(tokens) for tokens, _ in cut) == 5  # the forced token takes no place of it
    for tokens, score in model._rescore(source, [tokens for tokens, _ in cut]):
        ids = tuple(converted.found.sides.target.vocabulary.index(token) for token in tokens)
        each = converted.log_probs(SENTENCES[0], ids)
        assert score == pytest.approx(sum(each[bool(converted.family.forced) :]), abs=1e-3)


def test_settings_survive_the_disk(converted: Converted, tmp_path: Path) -> None:
    settings = converted.found.settings
    write_settings(tmp_path / TRANSLATION_SETTINGS, settings)
    assert read_translation_settings(tmp_path) == settings
    assert settings.verified.startswith("against transformers")
    assert settings.licence in ("apache-2.0", "mit", "cc-by-nc-4.0")
    assert settings.origin == converted.directory.name
    assert len(settings.weights) == 64
    assert set(settings.source.files) | set(settings.target.files) == set(converted.found.files)
    assert all(path.is_file() for path in converted.found.files.values())


def test_int8_stays_near(converted: Converted, tmp_path: Path) -> None:
    drift = converted.found.convert(tmp_path / "int8", "int8")
    assert drift.compute_type == "int8"
    assert 0 < drift.mean < 0.3
    smaller = (tmp_path / "int8" / "model.bin").stat().st_size
    assert smaller < 0.6 * (converted.output / "model.bin").stat().st_size


# Languages


@pytest.mark.parametrize(
    ("name", "said", "languages", "begin"),
    [
        ("marian", (None, None), ("en", "eo"), ()),
        ("marian", ("eng", "eo"), ("eng", "eo"), ()),
        ("marian-many", (None, "fra"), ("en", "fr"), (">>fra<<",)),
        ("m2m100", ("rus", "pt-BR"), ("ru", "pt"), ("__ru__",)),
        ("nllb", ("fr", "zho_Hant"), ("fr", "zho_Hant"), ("fra_Latn",)),
        ("mbart50", ("de", "zh"), ("de", "zh"), ("de_DE",)),
        ("mbart", ("fr", "de"), ("fr", "de"), ()),
        ("madlad", ("en", "fr"), ("en", "fr"), ("▁", "<2fr>")),
    ],
)
def test_what_people_say_becomes_the_models_own_code(
    name: str,
    said: tuple[str | None, str | None],
    languages: tuple[str, str],
    begin: tuple[str, ...],
    root: Path,
) -> None:
    found = open_in(by_name(name, root).directory, *said)
    assert found.languages == languages
    assert found.framing.source_begin == begin
    chosen = found.settings.source_languages or found.settings.target_languages
    assert framing_for(found.settings, *said if chosen else (None, None)) == found.framing


@pytest.mark.parametrize(
    ("name", "said", "message"),
    [
        ("marian", (None, "ru"), "translates from en to eo, not ru"),
        ("marian-many", ("en", None), "into 3 languages"),
        ("marian-many", ("en", "de"), "no language 'de'"),
        ("m2m100", (None, "ru"), "between 100 languages"),
        ("nllb", ("en", "zh"), "several kinds of 'zh'"),
        ("nllb", ("en", "rusk"), "no language 'rusk'"),
        ("mbart50", ("en", "eo"), "no language 'eo'"),
        ("t5", ("en", "ru"), "does not say how to translate from en to ru"),
        ("madlad", ("en", None), "into 4 languages"),
    ],
)
def test_a_direction_that_is_not_there_is_one_clear_error(
    name: str, said: tuple[str | None, str | None], message: str, root: Path
) -> None:
    with pytest.raises(CadecError, match=message) as caught:
        open_in(by_name(name, root).directory, *said)
    assert caught.value.hint


def test_one_model_serves_many_directions(root: Path) -> None:
    settings = by_name("nllb", root).found.settings
    there = framing_for(settings, "fr", "de")
    assert (there.source_begin, there.target_begin) == (("fra_Latn",), ("deu_Latn",))
    with pytest.raises(CadecError, match="none was chosen"):
        framing_for(settings, None, "de")


def test_a_name_tells_the_languages_where_no_file_does(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "opus-mt-en-fr"
    shutil.copytree(by_name("marian", root).directory, copy)
    (copy / "tokenizer_config.json").write_text("{}", "utf-8")
    assert open_in(copy).languages == ("en", "fr")
    config = json.loads((copy / "config.json").read_text("utf-8"))
    config["_name_or_path"] = "/tmp/Helsinki-NLP/opus-mt-tc-big-de-it"
    (copy / "config.json").write_text(json.dumps(config), "utf-8")
    found = open_in(copy)
    assert found.languages == ("de", "it")
    assert found.settings.origin == "Helsinki-NLP/opus-mt-tc-big-de-it"
    (copy / "README.md").unlink()
    assert open_in(copy).settings.licence is None


# A trained one


@pytest.mark.slow
def test_a_trained_model_translates_the_made_up_pair(trained_marian: Path, tmp_path: Path) -> None:
    directory = trained_marian
    found = open_in(directory)
    # To train it on moved the row that the decoder starts from, which CTranslate2's converter takes for zero.
    assert load_file(directory / "model.safetensors")["model.shared.weight"][-1].abs().max() > 0.01
    found.convert(tmp_path / "converted", "int8")
    plain = plainly_converted(directory, tmp_path / "plain")
    with pytest.raises(CadecError, match="disagrees"):
        drift_between(directory, found, plain).check()
    vocabulary, _ = read_vocabularies(tmp_path / "converted")
    model = CTranslate2Model(
        tmp_path / "converted",
        load_text(directory, found.settings.source, vocabulary, "en"),
        load_text(directory, found.settings.target, vocabulary, "eo"),
        framing=found.framing,
        positions=found.settings.positions,
        threads=1,
    )
    asked = [pair for document in made_up_pair.documents(20, seed=99) for pair in document]
    lists = model.nbest([source for source, _ in asked], 4)
    # Which form of address it is, only context tells: both are among the best.
    right = [
        target in [hypothesis.text for hypothesis in nbest.hypotheses[:2]]
        for (_, target), nbest in zip(asked, lists, strict=True)
    ]
    assert sum(right) > 0.95 * len(right)
    # Its translations end by themselves: the beam's own scores are those of scoring them.
    for nbest in lists[:20]:
        texts = [hypothesis.text for hypothesis in nbest.hypotheses]
        again = model.log_probs([nbest.source] * len(texts), texts)
        for hypothesis, log_prob in zip(nbest.hypotheses, again, strict=True):
            if tuple(found.sides.target.encode(hypothesis.text)) == hypothesis.ids:
                assert hypothesis.log_prob == pytest.approx(log_prob, abs=0.05)
