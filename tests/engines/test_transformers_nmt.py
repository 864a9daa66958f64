"""Translation models of Hugging Face, stepped in torch: token for token what scoring a translation gives."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import cadec_cli
from cadec_cli.bundle.build import BundleRequest, build_bundle
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import load_models
from cadec_cli.decoding.search.beam import BeamOptions, BeamSearch
from cadec_cli.engines.ctranslate2 import CTranslate2Model
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.engines.transformers_nmt import TransformersSteps, TransformersTranslationModel
from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code
from cadec_cli.method.context import Context
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.method.objectives import NMT, objective
from cadec_cli.models.transformer import Transformer
from converters import PretrainedRequest
from tests.helpers.huggingface_parts import FAMILIES, SENTENCES, Converted
from tests.helpers.made_up_models import cadec
from tests.helpers.pretrained_lms import write_lm
from tests.helpers.pretrained_models import tiny_marian

TOLERANCE = 2e-3


@pytest.fixture(scope="module", params=FAMILIES)
def stepped(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[TransformersTranslationModel, CTranslate2Model]]:
    """A family's network read back from where it was written, and the same model in CTranslate2."""
    from cadec_cli.engines.ctranslate2 import framing_for
    from cadec_cli.models.huggingface import load_translation_network

    root = tmp_path_factory.mktemp("stepped")
    one = Converted(request.param, root)
    one.found.write_network(root / "network")
    settings = one.found.settings
    assert settings.start is not None
    yield (
        TransformersTranslationModel(
            load_translation_network(root / "network"),
            one.model._source,
            one.model._target,
            framing=framing_for(settings, *one.found.languages),
            start=settings.start,
            positions=settings.positions,
        ),
        one.model,
    )


@torch.inference_mode()
def test_steps_sum_up_to_the_score_of_the_translation(
    stepped: tuple[TransformersTranslationModel, CTranslate2Model],
) -> None:
    model, converted = stepped
    lists = converted.nbest(SENTENCES, 3)
    sources = [model.encode(sentence) for sentence in SENTENCES]
    for rank in range(min(len(one.hypotheses) for one in lists)):
        # All in step, those that are done among the others: rows of several lengths.
        written = [list(one.hypotheses[rank].ids) for one in lists]
        steps = model.steps(sources)
        log_probs = steps.log_probs(None)
        totals = [0.0] * len(written)
        longest = max(map(len, written))
        for place in range(longest + 1):
            tokens = [ids[place] if place < len(ids) else model.text.boundary for ids in written]
            for row, ids in enumerate(written):
                if place <= len(ids):
                    totals[row] += float(log_probs[row, tokens[row]])
            if place < longest:
                steps.keep(torch.arange(len(written)), same_sources=True)
                log_probs = steps.log_probs(torch.tensor(tokens)[:, None])
        expected = [one.hypotheses[rank].log_prob for one in lists]
        assert totals == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize(("int8", "tolerance"), [(False, 1e-4), (True, 0.2)])
@torch.inference_mode()
def test_a_marian_is_stepped_as_a_network_of_ours(tmp_path: Path, int8: bool, tolerance: float) -> None:
    from cadec_cli.engines.ctranslate2 import framing_for
    from cadec_cli.models.huggingface import load_translation_network

    one = Converted("marian", tmp_path)
    one.found.write_network(tmp_path / "network")
    network, settings = load_translation_network(tmp_path / "network"), one.found.settings
    assert settings.start is not None
    model = TransformersTranslationModel(
        network,
        one.model._source,
        one.model._target,
        framing=framing_for(settings, *one.found.languages),
        start=settings.start,
        positions=settings.positions,
        int8=int8,
    )
    assert isinstance(model.network, Transformer)
    sources = [model.encode(sentence) for sentence in SENTENCES]
    framed = [[*model._begin, *source, *model._end] for source in sources]
    theirs = TransformersSteps(network, framed, model._target_begin, len(model.text.vocabulary))
    ours = model.steps(sources)
    tokens = None
    for _ in range(4):
        found, expected = ours.log_probs(tokens), theirs.log_probs(tokens)
        assert torch.equal(found.isfinite(), expected.isfinite())  # what is never written has no probability
        written = expected.isfinite()
        assert float((found[written] - expected[written]).abs().mean()) < tolerance
        tokens = expected.argmax(-1)[:, None]
        for steps in (ours, theirs):
            steps.keep(torch.arange(len(sources)), same_sources=True)


def test_the_plain_beam_finds_what_ctranslate2_finds(
    stepped: tuple[TransformersTranslationModel, CTranslate2Model],
) -> None:
    model, converted = stepped
    search = BeamSearch(model, None, objective("sentence"), None, BeamOptions(3, LengthLimits(1.0, 4)))
    found = search.search([model.encode(sentence) for sentence in SENTENCES], [Context()] * len(SENTENCES))
    for sentence, hypotheses in zip(SENTENCES, found, strict=True):
        texts = [model.text.decode(one.ids) for one in hypotheses]
        scores = converted.log_probs([sentence] * len(texts), texts)
        for one, text, score in zip(hypotheses, texts, scores, strict=True):
            if tuple(model.text.encode(text)) == one.ids:  # otherwise the text is cut in another way
                assert one.terms[NMT] == pytest.approx(score, abs=TOLERANCE)


# In bundles


@pytest.fixture(scope="module")
def trained(trained_marian: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained Marian, kept for the beam, with a D-LM that was trained here on its own tokens."""
    from tests.helpers import made_up_pair

    root = tmp_path_factory.mktemp("own-tokens")
    made_up_pair.write(root, count=400)
    cadec("convert", "--nmt", trained_marian, "--for-beam", "--compute-type", "float32", "-o", root / "nmt")
    dev = ("--dev-output", root / "docs-dev", "--dev-every", 20, "--lines", "--processes", 1)
    cadec("prepare", "text", root / "target.txt", "-p", root / "nmt", "-o", root / "docs", *dev)
    data = ("--data", root / "docs", "--dev", root / "docs-dev", "--preset", "tiny", "--threads", 1)
    cadec("train", "lm", *data, "-o", root / "lm")
    cadec("convert", root / "nmt", "--lm", root / "lm", "-o", root / "bundle", "--temperature", 1)
    return root / "bundle"


def test_a_d_lm_on_the_tokens_of_a_pretrained_s_nmt_shares_its_vocabulary(trained: Path) -> None:
    bundle = Bundle.open(trained)
    assert set(bundle.manifest.parts) == {"nmt", "lm", "ct2/float32"}
    models = load_models(bundle, compute_type="float32", device="cpu")
    assert isinstance(models.language, TorchLanguageModel)
    assert models.language.text.identity == models.stepwise_translation.text.identity
    search = BeamSearch(models.stepwise_translation, models.language, objective("c-score"))
    assert search.by_token


def loaded(bundle: Path, search: str) -> cadec_cli.Translator:
    return cadec_cli.load(bundle, compute_type="float32", options={"search": search}, device="cpu")


def test_the_beam_follows_the_context_where_the_sentence_level_can_only_guess(trained: Path) -> None:
    for opening, form in (("hello friend.", "tu"), ("good day sir.", "vos")):
        document = [opening, "you see the lamp.", "you take the boat."]
        chosen = {
            search: [one.text for one in loaded(trained, search).translate(document)]
            for search in ("beam", "rerank")
        }
        for search, lines in chosen.items():
            assert form in " ".join(lines[1:]).lower().split(), (search, lines)


def test_without_a_network_the_beam_says_what_to_do(tmp_path: Path) -> None:
    tiny_marian(tmp_path / "marian")
    write_lm(tmp_path / "gpt2", "gpt2")
    build_bundle(tmp_path / "bundle", BundleRequest(nmt=tmp_path / "marian", lm=tmp_path / "gpt2"))
    with pytest.raises(CadecError) as failed:
        assert load_models(Bundle.open(tmp_path / "bundle"), device="cpu").stepwise_translation
    assert "for_beam" in failed.value.hint
    build_bundle(
        tmp_path / "kept",
        BundleRequest(
            nmt=tmp_path / "marian", lm=tmp_path / "gpt2", pretrained=PretrainedRequest(for_beam=True)
        ),
    )
    assert Bundle.open(tmp_path / "kept").has_network
    # What was kept stays when the bundle is changed.
    build_bundle(tmp_path / "again", BundleRequest(base=tmp_path / "kept"))
    (tmp_path / "in.txt").write_text("you see the lamp.\nthe lamp is red.\n")
    arguments = ("beam", tmp_path / "in.txt", "--bundle", tmp_path / "again", "--compute-type", "float32")
    assert exit_code([*map(str, arguments), "-q"]) == 0


def test_only_hugging_face_models_can_be_kept(tmp_path: Path) -> None:
    tiny_marian(tmp_path / "marian")
    build_bundle(tmp_path / "one", BundleRequest(nmt=tmp_path / "marian"))
    with pytest.raises(CadecError, match="only a translation model of Hugging Face"):
        build_bundle(
            tmp_path / "two",
            BundleRequest(
                nmt=tmp_path / "one" / "ct2" / "int8",
                pretrained=PretrainedRequest(
                    for_beam=True,
                    source_language="en",
                    target_language="eo",
                    source_tokenizer=tmp_path / "marian" / "source.spm",
                    target_tokenizer=tmp_path / "marian" / "target.spm",
                ),
            ),
        )
