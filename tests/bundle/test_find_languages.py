"""Bundles of other toolkits' models: which languages they translate from and to, and how that is chosen."""

from pathlib import Path

import pytest

import cadec_cli
from cadec_cli.bundle.build import BundleRequest, build_bundle
from cadec_cli.bundle.bundle import Bundle, chosen_languages
from cadec_cli.bundle.load import load_models
from cadec_cli.engines.ctranslate2 import CTranslate2Model, framing_for
from cadec_cli.errors import CadecError
from cadec_cli.jobs.job import TranslationJob
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.main import exit_code
from cadec_cli.method.lengths import LengthLimits, learnt_limits
from cadec_cli.models.pretrained_settings import TranslationSettings
from cadec_cli.text.pipeline import TextPipeline
from converters import PretrainedRequest
from tests.helpers import pretrained_models as tiny
from tests.helpers.bundle_parts import write_parts
from tests.helpers.pretrained_bundles import built_bundle, bundle_of_many_directions, convert, random_models


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def built(models: Path) -> Path:
    return built_bundle(models)


@pytest.fixture(scope="module")
def many(models: Path) -> Path:
    return bundle_of_many_directions(models)


def test_one_bundle_serves_many_directions(many: Path, tmp_path: Path) -> None:
    bundle = Bundle.open(many)
    assert str(chosen_languages(bundle)) == "en → ru"
    assert str(chosen_languages(bundle, "fr", "de")) == "fr → de"
    own = chosen_languages(bundle, "fra_Latn", "zho_Hant")
    assert (own.target, own.source_code, own.target_code) == ("zho_Hant", "fr", "zh")
    texts = {}
    for source, target in ((None, None), ("en", "ru"), ("fr", "de"), (None, "de")):
        translator = cadec_cli.load(
            many, source_language=source, target_language=target, options={"nbest": 3}, threads=1
        )
        texts[source, target] = [one.text for one in translator.translate(["you see the lamp.", "yes."])]
    assert texts[None, None] == texts["en", "ru"]
    assert len({tuple(text) for text in texts.values()}) == 3
    (tmp_path / "in.txt").write_text("you see the lamp.\n", "utf-8")
    run = ["translate", str(tmp_path / "in.txt"), "-b", str(many), "--nbest", "3", "-o"]
    for name, languages in (("usual", []), ("other", ["--from", "fr", "--to", "deu_Latn"])):
        assert exit_code([*run, str(tmp_path / name), *languages]) == 0
    assert (tmp_path / "usual").read_text() != (tmp_path / "other").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--to", "klingon"), "no language 'klingon'"),
        (("--from", "xx"), "no language 'xx'"),
        (("--to", "zh"), "several kinds of 'zh'"),
    ],
)
def test_a_language_that_the_model_lacks_is_one_clear_error(
    arguments: tuple[str, ...],
    message: str,
    many: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "in.txt").write_text("yes.\n", "utf-8")
    assert exit_code(["translate", str(tmp_path / "in.txt"), "-b", str(many), *arguments]) == 1
    shown = capsys.readouterr()
    assert message in shown.err and "hint" in shown.err and shown.out == ""


@pytest.mark.parametrize("said", ["zho_Hans", "zh-TW", "srp_Cyrl", "pt", "nob_Latn"])
def test_a_script_that_was_chosen_stays_chosen(said: str, models: Path, tmp_path: Path) -> None:
    languages = ("--source-language", "en", "--target-language", said)
    assert exit_code(convert("--nmt", models / "nllb", *languages, "-o", tmp_path / "b")) == 0
    bundle = Bundle.open(tmp_path / "b")
    settings = bundle.settings("nmt")
    assert isinstance(settings, TranslationSettings)
    kept = framing_for(settings, bundle.source_language, bundle.target_language)
    assert kept == framing_for(settings, "en", said)
    assert load_models(bundle).translation.nbest(["yes."], 1)


def test_a_region_that_was_chosen_stays_chosen(tmp_path: Path) -> None:
    tiny.tiny_marian(tmp_path / "many", targets=(">>pt<<", ">>pt_br<<", ">>fra<<"))
    for said, begin in (("pt_br", ">>pt_br<<"), ("pt", ">>pt<<"), ("fr", ">>fra<<")):
        arguments = ("--nmt", tmp_path / "many", "--source-language", "en", "--target-language", said)
        assert exit_code(convert(*arguments, "-o", tmp_path / said)) == 0
        bundle = Bundle.open(tmp_path / said)
        settings = bundle.settings("nmt")
        assert isinstance(settings, TranslationSettings)
        found = framing_for(settings, bundle.source_language, bundle.target_language)
        assert found.source_begin == (begin,)
    # Any language may be read by such a model, but it has to be one.
    assert cadec_cli.load(tmp_path / "fr", source_language="de") is not None
    with pytest.raises(CadecError, match="no language 'klingon'"):
        cadec_cli.load(tmp_path / "fr", source_language="klingon")


def test_a_model_of_both_directions_is_its_own_backward_model(many: Path, built: Path) -> None:
    options = {"nbest": 3, "objective": "bayes"}
    request = ModelRequest(many, compute_type="float32", threads=1)
    (translation,) = TranslationJob.open(request, options).translator.translate(["you see the lamp."])
    (part,) = translation.parts
    assert part.choice is not None
    reverse = TranslationJob.open(ModelRequest(many, "ru", "en", compute_type="float32"))
    texts = [hypothesis.text for hypothesis in part.hypotheses]
    back = reverse.models.translation.log_probs(texts, ["you see the lamp."] * len(texts))
    assert part.choice.terms["back"] == pytest.approx(back, abs=1e-3)
    with pytest.raises(CadecError, match="needs a backward model"):
        cadec_cli.load(built, options=options)


def test_lengths_are_learnt_in_its_own_tokens_and_hold_in_its_own_direction(
    many: Path, tmp_path: Path
) -> None:
    for name, line in (("en", "you see the lamp."), ("ru", "vi vidas la lampon, kaj la lampo vidas vin.")):
        (tmp_path / name).write_text(f"{line}\n" * 300)
    given = ("--lengths-from", tmp_path / "en", tmp_path / "ru")
    assert exit_code(convert(many, *given, "-o", tmp_path / "b")) == 0
    bundle = Bundle.open(tmp_path / "b")
    pairs = zip(*((tmp_path / name).read_text().splitlines() for name in ("en", "ru")), strict=True)
    texts = load_models(bundle, threads=1).translation
    assert isinstance(texts, CTranslate2Model)
    assert bundle.manifest.lengths == learnt_limits(
        (len(texts._source.encode(one)), len(texts._target.encode(other))) for one, other in pairs
    )
    assert bundle.lengths != LengthLimits()
    for source, target, limits in (("en", "ru", bundle.lengths), ("en", "fr", LengthLimits())):
        models = load_models(bundle, source_language=source, target_language=target, threads=1)
        model = models.translation
        assert isinstance(model, CTranslate2Model) and model._limits == limits
    # A bundle that is changed keeps them, but not for another direction.
    assert exit_code(convert(tmp_path / "b", "--context", 2)) == 0
    assert Bundle.open(tmp_path / "b").manifest.lengths == bundle.manifest.lengths
    assert exit_code(convert(tmp_path / "b", "--target-language", "fr")) == 0
    assert Bundle.open(tmp_path / "b").manifest.lengths is None


def test_another_direction_becomes_the_usual_one(many: Path, tmp_path: Path) -> None:
    assert exit_code(convert(many, "--target-language", "fr", "-o", tmp_path / "b")) == 0
    assert str(chosen_languages(Bundle.open(tmp_path / "b"))) == "en → fr"
    assert exit_code(convert(many, "--target-language", "xx", "-o", tmp_path / "c")) == 1


def test_a_bundle_of_one_direction_says_so(built: Path, tmp_path: Path) -> None:
    with pytest.raises(CadecError, match="translates en → eo and nothing else"):
        cadec_cli.load(built, target_language="ru")
    assert cadec_cli.load(built, source_language="en", target_language="eo") is not None


def test_a_d_lm_of_ours_has_one_language(
    models: Path, tmp_path: Path, english: TextPipeline, russian: TextPipeline
) -> None:
    write_parts(tmp_path, english, russian)
    languages = ("--source-language", "en", "--target-language", "ru")
    ours = ("--lm", tmp_path / "lm", "--target-pipeline", tmp_path / "ru")
    assert exit_code(convert("--nmt", models / "nllb", *ours, *languages, "-o", tmp_path / "b")) == 0
    with pytest.raises(CadecError, match="is for 'ru', not for 'de'") as caught:
        _ = load_models(Bundle.open(tmp_path / "b"), target_language="de").language
    assert "sentence" in caught.value.hint
    with pytest.raises(CadecError, match="the D-LM is for 'ru', the S-NMT translates into 'de'"):
        build_bundle(
            tmp_path / "c",
            BundleRequest(
                nmt=models / "nllb",
                lm=tmp_path / "lm",
                target=tmp_path / "ru",
                pretrained=PretrainedRequest(source_language="en", target_language="de"),
            ),
        )
