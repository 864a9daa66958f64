"""Bundles of other toolkits' models: built, described, changed, linked; and what keeps one from it."""

import dataclasses
import json
import re
import shutil
from pathlib import Path

import pytest

from cadec_cli.bundle.build import SHORT_NBEST, VOTED_WEIGHTS, BundleRequest, build_bundle
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import load_models
from cadec_cli.bundle.manifest import read_manifest
from cadec_cli.bundle.parts import is_fitted, is_pretrained
from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code
from cadec_cli.method.options import with_flags
from cadec_cli.models.pretrained_settings import LanguageSettings, TranslationSettings
from cadec_cli.text.pipeline import TextPipeline
from converters import PretrainedRequest
from tests.helpers.bundle_parts import sign_again, write_parts
from tests.helpers.pretrained_bundles import built_bundle, bundle_of_many_directions, convert, random_models

NOT_GIVEN = PretrainedRequest()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def built(models: Path) -> Path:
    return built_bundle(models)


@pytest.fixture(scope="module")
def many(models: Path) -> Path:
    return bundle_of_many_directions(models)


def test_parts_engines_and_settings(built: Path) -> None:
    bundle = Bundle.open(built)
    assert bundle.manifest.parts == {"nmt": "nmt", "lm": "lm", "ct2/int8": "ctranslate2"}
    assert bundle.manifest.engines == {"nmt": "ctranslate2-pretrained", "lm": "transformers"}
    assert (bundle.source_language, bundle.target_language) == ("en", "eo")
    settings, language = bundle.settings("nmt"), bundle.settings("lm")
    assert (
        isinstance(settings, TranslationSettings)
        and settings.family == "marian"
        and settings.licence == "apache-2.0"
    )
    assert isinstance(language, LanguageSettings) and language.family == "gpt2" and language.origin == "gpt2"


def test_info_tells_it_all(built: Path, many: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["info", str(built)]) == 0
    shown = capsys.readouterr().out
    for told in (
        *("en → eo", "S-NMT", "D-LM", "ctranslate2-pretrained", "transformers", "apache-2.0", "gpt2"),
        *("against transformers", "many hypotheses in one pass", "objective c-score", "checksum", "kB"),
    ):
        assert told in shown, told
    assert exit_code(["info", str(many), "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    told_json = json.loads(line)
    parts = {part["part"]: part for part in told_json["parts"]}
    assert parts["nmt"]["details"]["from"].startswith("202 languages: ace_Arab")
    assert parts["lm"]["licence"] == "mit" and parts["nmt"]["licence"] == "cc-by-nc-4.0"
    assert told_json["target_language"] == "ru" and told_json["defaults"]["context"] == 3


def test_info_of_the_embedded_bundle(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["info"]) == 0
    shown = capsys.readouterr().out
    assert "trained with cadec" in shown and "en → ru" in shown and "text pipeline" in shown
    assert "translations up to 1.75 × source + 13 tokens" in shown


def test_info_of_nothing_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["info", str(tmp_path)]) == 1
    assert "is not a bundle" in capsys.readouterr().err


def test_a_bundle_is_completed_and_changed(built: Path, models: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    assert exit_code(convert(built, "-o", copy, "--context", 2, "--name", "mine")) == 0
    changed, original = Bundle.open(copy), Bundle.open(built)
    assert (changed.name, changed.defaults.context) == ("mine", 2)
    assert changed.manifest.identity == original.manifest.identity
    assert changed.manifest.digest("ct2/int8") == original.manifest.digest("ct2/int8")
    # Another D-LM, another way to read without context.
    assert exit_code(convert(copy, "--lm", models / "llama.gguf")) == 0
    language = Bundle.open(copy).settings("lm")
    assert isinstance(language, LanguageSettings) and language.family == "llama"
    (tmp_path / "own.txt").write_text("Salu.\n\nBondia.\n", "utf-8")
    assert exit_code(convert(copy, "--no-context", tmp_path / "own.txt")) == 0
    language = Bundle.open(copy).settings("lm")
    assert isinstance(language, LanguageSettings) and language.no_context == {
        "eo": (("Salu.",), ("Bondia.",))
    }


def test_other_compute_types_need_the_original(built: Path, models: Path, tmp_path: Path) -> None:
    with pytest.raises(CadecError, match="does not hold the original weights"):
        build_bundle(tmp_path / "a", BundleRequest(base=built, compute_types=["float32"]))
    assert not (tmp_path / "a").exists()
    types = ["--compute-type", "float32", "--compute-type", "int8"]
    assert exit_code(convert("--nmt", models / "marian", *types, "-o", tmp_path / "b")) == 0
    assert sorted(Bundle.open(tmp_path / "b").manifest.translation_conversions) == ["float32", "int8"]
    notes: list[str] = []
    opened = Bundle.open(tmp_path / "b")
    assert opened.conversion("float32", notes.append).name == "float32" and not notes
    # What is not stored is computed with all the same.
    assert opened.conversion("bfloat16", notes.append).name == "float32" and "stored as" in notes[0]


def test_large_weights_are_linked(models: Path, tmp_path: Path) -> None:
    source = tmp_path / "gpt2"
    shutil.copytree(models / "gpt2", source)
    bundle = tmp_path / "linked"
    arguments = ("--nmt", models / "marian", "--lm", source, "--link", "-o", bundle)
    assert exit_code(convert(*arguments)) == 0
    link = bundle / "lm" / "model.safetensors"
    assert link.is_symlink() and link.stat().st_size
    assert read_manifest(bundle).links == {"lm/model.safetensors": str((source / link.name).resolve())}
    assert load_models(Bundle.open(bundle), compute_type="float32").language is not None
    # A copy of the bundle keeps the link; one that leads nowhere, or elsewhere, is found.
    assert exit_code(convert(bundle, "-o", tmp_path / "copy")) == 0
    assert (tmp_path / "copy" / "lm" / link.name).is_symlink()
    (source / link.name).rename(source / "gone")
    with pytest.raises(CadecError, match=r"is missing \(it was linked to"):
        Bundle.open(bundle)
    link.unlink()
    shutil.copy(source / "gone", link)
    with pytest.raises(CadecError, match="is not a link to"):
        Bundle.open(bundle)


def test_what_is_whose(models: Path, tmp_path: Path, english: TextPipeline, russian: TextPipeline) -> None:
    write_parts(tmp_path, english, russian)
    assert is_pretrained("nmt", models / "marian", NOT_GIVEN) and is_pretrained(
        "lm", models / "gpt2", NOT_GIVEN
    )
    assert is_pretrained("lm", models / "llama.gguf", NOT_GIVEN)
    assert is_pretrained("nmt", "Helsinki-NLP/opus-mt-en-fr", NOT_GIVEN)
    (tmp_path / "gguf").mkdir()
    shutil.copy(models / "llama.gguf", tmp_path / "gguf")
    assert is_pretrained("lm", tmp_path / "gguf", NOT_GIVEN)
    assert not is_pretrained("nmt", tmp_path / "nmt", NOT_GIVEN)
    assert not is_pretrained("lm", tmp_path / "lm", NOT_GIVEN)
    assert not is_pretrained("nmt", "no/such/path", NOT_GIVEN)
    assert not is_pretrained("nmt", "./nothing", NOT_GIVEN)
    assert is_pretrained("nmt", tmp_path / "nmt", dataclasses.replace(NOT_GIVEN, kind="huggingface"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--nmt", "nllb"), "the direction is not given"),
        (("--nmt", "nllb", "--source-language", "en", "--target-language", "xx"), "no language 'xx'"),
        (("--nmt", "marian", "--target-language", "fr"), "translates from en to eo, not fr"),
        (("--nmt", "marian", "--nmt-kind", "tensorflow"), "'tensorflow' is not one of"),
        (("--nmt", "marian", "--nmt-kind", "marian"), r"has one \.npz file"),
        (("--nmt", "gpt2"), "is a gpt2 model, which can't be converted as a translation model"),
        (("--lm", "marian", "--target-language", "fr"), "is an encoder-decoder"),
        (("--lm", "gpt2"), "the target language is not known"),
        (
            ("--lm", "gpt2", "--target-language", "fr", "--no-context", "nothing.txt"),
            "there is no file",
        ),
        (("--lm", "llama.gguf", "--target-language", "fr", "--link"), "can't be linked"),
        (("--nmt", "marian", "--half"), "half precision is for models trained here"),
        (("--nmt", "marian", "--compute-type", "int4"), "int4"),
        (("--nmt", "marian", "--source-tokenizer", "marian/source.spm"), "has its own tokenizer"),
        (("--nmt", "marian", "--lm", "nowhere.gguf"), "nowhere.gguf"),
        (("--nmt", "nowhere", "--lm", "gpt2"), "no such file or directory: nowhere"),
    ],
)
def test_what_does_not_fit_is_one_clear_error(
    arguments: tuple[str, ...],
    message: str,
    models: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(models)
    choice = "tensorflow" in arguments or "int4" in arguments  # no value that the flag has
    assert exit_code(["convert", *arguments, "-o", str(tmp_path / "out" / "bundle")]) == (2 if choice else 1)
    shown = capsys.readouterr()
    assert re.search(message, " ".join(shown.err.split())), shown.err
    assert "Traceback" not in shown.err and shown.out == ""
    assert not (tmp_path / "out" / "bundle").exists()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--nmt-kind", "marian"), "--nmt-kind is about --nmt"),
        (("--source-tokenizer", "x"), "--source-tokenizer is about --nmt"),
        (("--link",), "--link is about --lm"),
        (("--lm", "built/lm", "--link", "-o", "built"), "is in the bundle to be written"),
    ],
)
def test_what_was_asked_for_in_vain_is_said(
    arguments: tuple[str, ...],
    message: str,
    built: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(built.parent)
    before = read_manifest(built).content()
    assert exit_code(["convert", "built", *arguments]) == 1
    assert message in " ".join(capsys.readouterr().err.split())
    assert Bundle.open(built).manifest.content() == before


def test_a_language_that_is_not_known_is_asked_for_before_anything_is_read(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cadec_cli.bundle.build.import_language", lambda *_: pytest.fail("it was read"))
    with pytest.raises(CadecError, match="the target language is not known"):
        build_bundle(tmp_path / "b", BundleRequest(lm=models / "gpt2"))


def test_both_models_misfits_are_told_at_once(models: Path, tmp_path: Path) -> None:
    with pytest.raises(CadecError) as caught:
        build_bundle(tmp_path / "b", BundleRequest(nmt=models / "nllb", lm=models / "marian"))
    assert "the direction is not given" in caught.value.message
    assert "encoder-decoder" in caught.value.message


def test_settings_of_an_s_n_m_t_are_checked(built: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(built, copy)
    path = copy / "nmt" / "translation-model.json"
    good = json.loads(path.read_text("utf-8"))
    changes: list[dict[str, object]] = [
        {"positions": 3},
        {"source": {"kind": "sentencepiece", "files": "source.spm", "options": {}}},
        {"source": {"kind": "unheard-of", "files": ["source.spm"], "options": {}}},
        {"target": {"kind": "sentencepiece", "files": ["missing.spm"], "options": {}}},
        {"source_begin": "x"},
    ]
    for change in changes:
        path.write_text(json.dumps({**good, **change}), "utf-8")
        sign_again(copy)
        with pytest.raises(CadecError):
            _ = load_models(Bundle.open(copy)).translation


# What the D-LM reads


def test_a_model_that_was_trained_on_pairs_reads_pairs(models: Path, tmp_path: Path) -> None:
    """Unless the user says otherwise; and a bundle says nothing of it if only the target is read."""
    plain, pairs, trained = (tmp_path / name for name in ("plain", "pairs", "trained"))
    pair = ("--nmt", models / "marian", "--lm", models / "gpt2")
    assert exit_code(convert(*pair, "-o", plain)) == 0
    assert (
        "reads" not in (plain / "bundle.json").read_text()
        and "template" not in (plain / "lm" / "language-model.json").read_text()
    )
    (tmp_path / "template").write_text("> {source}\n{target}\n", "utf-8")
    assert (
        exit_code(convert(plain, "--reads", "pairs", "--template", tmp_path / "template", "-o", pairs)) == 0
    )
    opened = Bundle.open(pairs)
    settings = opened.settings("lm")
    assert isinstance(settings, LanguageSettings) and settings.template == "> {source}\n{target}\n"
    assert (
        opened.defaults.reads == "pairs" and opened.manifest.identity != Bundle.open(plain).manifest.identity
    )
    # A fine-tuning run writes such a template beside its weights.
    again = ("--nmt", models / "marian", "--lm", pairs / "lm")
    assert exit_code(convert(*again, "-o", trained)) == 0
    assert Bundle.open(trained).defaults.reads == "pairs"
    assert exit_code(convert(*again, "--reads", "both", "-o", tmp_path / "both")) == 0
    assert Bundle.open(tmp_path / "both").defaults.reads == "both"
    # Another D-LM, another way to read.
    assert exit_code(convert(trained, "--lm", models / "llama.gguf")) == 0
    assert Bundle.open(trained).defaults.reads == "target"


def test_our_own_language_models_read_the_target_only(
    made_up_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for flags in (("--reads", "pairs"), ("--template", tmp_path / "template")):
        (tmp_path / "template").write_text("{source}\n{target}\n", "utf-8")
        assert exit_code(convert(made_up_bundle, *flags, "-o", tmp_path / "out")) == 1
        assert f"{flags[0]} is for a pretrained D-LM" in capsys.readouterr().err
    text = tmp_path / "in.txt"
    text.write_text("hello friend.\n", "utf-8")
    assert exit_code(["translate", str(text), "-b", str(made_up_bundle), "--reads", "pairs", "-q"]) == 2
    assert "reads the target language only" in capsys.readouterr().err


# Weights


def test_a_pretrained_d_lm_has_votes_on_address_beside_it(models: Path, tmp_path: Path) -> None:
    language = ("--lm", models / "gpt2")
    # No forms of address are known in Esperanto, the target language of this Marian.
    assert exit_code(convert("--nmt", models / "marian", *language, "-o", tmp_path / "eo")) == 0
    assert dict(Bundle.open(tmp_path / "eo").defaults.weight) == {}
    languages = ("--source-language", "en", "--target-language", "ru")
    pair = ("--nmt", models / "nllb", *languages, *language)
    assert exit_code(convert(*pair, "-o", tmp_path / "new")) == 0
    assert dict(Bundle.open(tmp_path / "new").defaults.weight) == VOTED_WEIGHTS
    # Whoever gives weights gets these, and whoever changes a bundle keeps what it has.
    assert exit_code(convert(*pair, "--weight", "lm=1", "-o", tmp_path / "own")) == 0
    assert dict(Bundle.open(tmp_path / "own").defaults.weight) == {"lm": 1}
    assert exit_code(convert(tmp_path / "own", "--context", 2, "-o", tmp_path / "changed")) == 0
    assert dict(Bundle.open(tmp_path / "changed").defaults.weight) == {"lm": 1}
    # The beam scores tokens, which have no address.
    beam = with_flags(Bundle.open(tmp_path / "new").defaults, {"search": "beam"})
    assert dict(beam.weight) == {"lm": VOTED_WEIGHTS["lm"]}
    assert exit_code(convert(*pair, "--search", "beam", "--for-beam", "-o", tmp_path / "beam")) == 0
    assert dict(Bundle.open(tmp_path / "beam").defaults.weight) == {}


# Fitting a D-LM to its S-NMT


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit tiny vocabularies too, although they hardly become smaller."""
    monkeypatch.setattr("converters.language.fit._MOST", 1.0)


@pytest.mark.usefixtures("fits")
def test_a_pretrained_pair_is_fitted_and_its_lists_are_short(models: Path, tmp_path: Path) -> None:
    pair = ("--nmt", models / "marian", "--lm", models / "gpt2")
    assert exit_code(convert(*pair, "-o", tmp_path / "fit")) == 0
    fitted = Bundle.open(tmp_path / "fit")
    language = fitted.settings("lm")
    assert isinstance(language, LanguageSettings) and language.vocabulary is not None
    assert is_fitted(fitted) and fitted.defaults.nbest == SHORT_NBEST
    assert exit_code(convert(*pair, "--nbest", 20, "-o", tmp_path / "long")) == 0
    assert Bundle.open(tmp_path / "long").defaults.nbest == 20
    assert exit_code(convert(*pair, "--vocabulary", "full", "-o", tmp_path / "full")) == 0
    full = Bundle.open(tmp_path / "full")
    assert not is_fitted(full) and full.defaults.nbest == 20
    # From one to the other, and back: the same files.
    assert exit_code(convert(tmp_path / "full", "--vocabulary", "fit", "-o", tmp_path / "again")) == 0
    assert Bundle.open(tmp_path / "again").manifest.files == fitted.manifest.files
    assert exit_code(convert(tmp_path / "fit", "--vocabulary", "full", "-o", tmp_path / "back")) == 0
    assert Bundle.open(tmp_path / "back").manifest.files == full.manifest.files


@pytest.mark.usefixtures("fits")
def test_a_fitted_model_stays_so_and_fits_a_new_translation_model(models: Path, tmp_path: Path) -> None:
    pair = ("--nmt", models / "marian", "--lm", models / "gpt2")
    assert exit_code(convert(*pair, "-o", tmp_path / "a")) == 0
    assert exit_code(convert(tmp_path / "a", "--context", 2, "-o", tmp_path / "b")) == 0
    first, second = Bundle.open(tmp_path / "a"), Bundle.open(tmp_path / "b")
    assert second.manifest.files == first.manifest.files and second.defaults.nbest == SHORT_NBEST
    languages = ("--source-language", "en", "--target-language", "ru")
    assert exit_code(convert(tmp_path / "a", "--nmt", models / "nllb", *languages, "-o", tmp_path / "c")) == 0
    third = Bundle.open(tmp_path / "c")
    assert (
        is_fitted(third)
        and third.manifest.files["lm/fitted.safetensors"] != first.manifest.files["lm/fitted.safetensors"]
    )


def test_vocabulary_is_about_a_pretrained_language_model(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(convert("--nmt", models / "marian", "--vocabulary", "fit", "-o", tmp_path / "a")) == 1
    assert "--vocabulary is for a pretrained D-LM" in capsys.readouterr().err
    assert exit_code(convert("--nmt", models / "marian", "--vocabulary", "half", "-o", tmp_path / "a")) == 2


@pytest.mark.usefixtures("fits")
def test_info_tells_the_vocabulary(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = ("--nmt", models / "marian", "--lm", models / "gpt2")
    assert exit_code(convert(*pair, "-o", tmp_path / "fit")) == 0
    assert exit_code(["info", str(tmp_path / "fit")]) == 0
    assert "tokens that fit" in capsys.readouterr().out
