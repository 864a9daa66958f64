"""How long translations may become: what pairs tell of it, where a bundle keeps it, and what stops there."""

import itertools
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.bundle import build
from cadec_cli.bundle.build import BundleRequest, build_bundle, lengths_of_pairs
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import load_models
from cadec_cli.bundle.manifest import read_manifest, save_lengths
from cadec_cli.decoding.search.beam import BeamOptions, BeamSearch
from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code
from cadec_cli.method.context import Context
from cadec_cli.method.lengths import CUT, LengthLimits, learnt_limits
from cadec_cli.method.objectives import objective
from cadec_cli.models.storage import save_model
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.subwords import EOS
from tests.helpers.bundle_parts import checksums, tiny_lm, tiny_nmt

Pairs = list[tuple[int, int]]

USUAL = LengthLimits()
LENGTHS = st.integers(1, 400)
PAIRS = st.lists(st.tuples(LENGTHS, LENGTHS), max_size=60)


def translations(count: int, ratio: float = 1.1, spread: float = 0.25, seed: int = 1) -> Pairs:
    """Pairs as there are: some translations are longer than others, short ones vary more."""
    rng = torch.Generator().manual_seed(seed)
    sources = torch.randint(1, 60, (count,), generator=rng).tolist()
    noise = torch.randn(count, generator=rng).clamp(-3, 3).tolist()
    return [(n, max(1, round(ratio * n + spread * (n + 4) * x))) for n, x in zip(sources, noise, strict=True)]


def cut(limits: LengthLimits, pairs: Pairs) -> float:
    """The share of pairs that would not have been translated to their end."""
    return sum(target > limits.most(source) for source, target in pairs) / len(pairs)


@given(st.floats(0, 100), st.integers(1, 10_000), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_longer_source_may_have_a_longer_translation(ratio: float, extra: int, one: int, two: int) -> None:
    limits = LengthLimits(ratio, extra)
    assert extra <= limits.most(min(one, two)) <= limits.most(max(one, two))


@given(PAIRS)
def test_whatever_the_pairs_the_limits_make_sense(pairs: Pairs) -> None:
    """All but a few pairs are within them, or they are as generous as they ever get."""
    limits = learnt_limits(pairs)
    assert limits.most(1) >= 11
    if not pairs:
        assert limits == USUAL
        return
    typical = max(1, sorted(target / source for source, target in pairs)[len(pairs) // 2])
    assert cut(limits, pairs) <= CUT or limits.extra >= USUAL.extra
    assert limits.ratio <= math.ceil(200 * typical) / 100 and limits.extra <= math.ceil(20 * typical)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.floats(0.6, 1.4), st.floats(0.0, 0.2))
def test_true_pairs_are_kept_and_so_are_others_of_their_kind(seed: int, ratio: float, spread: float) -> None:
    limits = learnt_limits(translations(2000, ratio, spread, seed))
    assert cut(limits, translations(2000, ratio, spread, seed)) <= CUT
    assert cut(limits, translations(5000, ratio, spread, seed + 1)) <= CUT
    assert all(limits.most(n) < max(1.05, 1.05 * ratio) * USUAL.most(n) for n in range(5, 60))


def test_limits_are_much_tighter_than_the_usual_ones_where_that_is_known() -> None:
    limits = learnt_limits(translations(4000, spread=0.1))
    assert limits.most(10) <= 0.75 * USUAL.most(10) and limits.most(40) <= 0.75 * USUAL.most(40)


def test_a_few_pairs_tell_little() -> None:
    limits = [learnt_limits(translations(count, 1.0, 0.0)) for count in (1, 10, 50, 200)]
    assert limits[1].most(10) > 0.9 * USUAL.most(10)
    assert all(fewer.most(30) > more.most(30) for fewer, more in itertools.pairwise(limits))


def test_a_misaligned_pair_among_thousands_changes_nothing() -> None:
    pairs = translations(3000, spread=0.1)
    assert learnt_limits([*pairs, (3, 300), (20, 390)]) == learnt_limits(pairs)
    # And of texts that have nothing to do with each other nothing is learnt that makes it worse than before.
    sources = [source for source, _ in pairs]
    unrelated = learnt_limits(zip(sources, sorted(sources, key=lambda n: n * 7919 % 61), strict=True))
    assert unrelated.most(20) <= 1.2 * USUAL.most(20)


def test_a_language_of_many_tokens_has_more_room_than_usual() -> None:
    limits = learnt_limits(translations(3000, ratio=4.0))
    assert limits.most(20) > 80 + 20 and cut(limits, translations(3000, ratio=4.0)) <= CUT


@pytest.mark.parametrize("wrong", [{"ratio": math.nan}, {"ratio": -1}, {"extra": 0}, {"extra": 1.5}])
def test_nonsense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(CadecError, match=next(iter(wrong))):
        LengthLimits(**wrong)  # type: ignore[arg-type]


# In a bundle


@pytest.fixture(scope="module")
def parts(english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pipelines en/ and ru/, nmt/ that never ends a sentence, a D-LM, and a text with its translation."""
    root = tmp_path_factory.mktemp("endless")
    english.save(root / "en")
    russian.save(root / "ru")
    endless = tiny_nmt(len(english), len(russian), tied=False, positions=120)
    with torch.no_grad():
        endless.output.bias[EOS] -= 1000
    save_model(root / "nmt", endless, checksums(english, russian))
    save_model(root / "lm", tiny_lm(len(russian), positions=120), checksums(russian))
    (root / "dev.en").write_text("The boy took it.\nTom sees a letter.\n" * 150, "utf-8")
    (root / "dev.ru").write_text("Мальчик взял его.\nТом видит письмо.\n" * 150, "utf-8")
    return root


@pytest.fixture(scope="module")
def bundle(parts: Path) -> Path:
    """Built by `cadec convert`, and taught by it."""
    pipelines = ("--source-pipeline", parts / "en", "--target-pipeline", parts / "ru")
    learnt = ("--lengths-from", parts / "dev.en", parts / "dev.ru", "--compute-type", "float32", "-q")
    made = ("--nmt", parts / "nmt", "--lm", parts / "lm", *pipelines, *learnt, "-o", parts / "bundle")
    assert exit_code(["convert", *map(str, made)]) == 0
    return parts / "bundle"


def test_texts_to_learn_from_are_bounded(
    bundle: Path, parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learnt = ("--lengths-from", parts / "dev.en", parts / "dev.ru", "--max-input", "10B")
    assert exit_code(["convert", *map(str, (bundle, *learnt, "-o", tmp_path / "out"))]) == 1
    assert "is larger than 10B" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_convert_stores_what_it_learns(bundle: Path, parts: Path) -> None:
    opened = Bundle.open(bundle)
    lines = [(parts / name).read_text("utf-8").splitlines() for name in ("dev.en", "dev.ru")]
    encoded = zip(map(opened.source.encode, lines[0]), map(opened.target.encode, lines[1]), strict=True)
    assert opened.manifest.lengths == learnt_limits((len(one), len(other)) for one, other in encoded)
    assert opened.lengths.most(10) < USUAL.most(10)


def test_a_translation_without_an_end_stops_at_the_bundles_limit(bundle: Path) -> None:
    opened = Bundle.open(bundle)
    models = load_models(opened, compute_type="float32", threads=1)
    texts = ["The boy took it.", "Tom sees a letter, and the boy took it."]
    allowed = [opened.lengths.most(len(opened.source.encode(text))) for text in texts]
    for nbest, most in zip(models.translation.nbest(texts, 2), allowed, strict=True):
        assert {len(hypothesis.ids) for hypothesis in nbest.hypotheses} == {most + -most % 16}
        # The score is that of a whole sentence nevertheless: an end costs this model about as much.
        assert all(hypothesis.log_prob < -900 for hypothesis in nbest.hypotheses)
    sources = [models.stepwise_translation.encode(text) for text in texts]
    search = BeamSearch(
        models.stepwise_translation, models.language, objective("c-score"), None, BeamOptions(2)
    )
    for found, most in zip(search.search(sources, [Context()] * 2), allowed, strict=True):
        assert {len(made.ids) for made in found} == {most}


def test_an_earlier_manifest_has_no_limits(bundle: Path, parts: Path, tmp_path: Path) -> None:
    build_bundle(
        tmp_path / "b",
        BundleRequest(source=parts / "en", target=parts / "ru", nmt=parts / "nmt", lm=parts / "lm"),
    )
    manifest = read_manifest(tmp_path / "b")
    assert manifest.lengths is None and b"lengths" not in (tmp_path / "b" / "bundle.json").read_bytes()
    models = load_models(Bundle.open(tmp_path / "b"), compute_type="float32", threads=1)
    assert models.stepwise_translation.limits == USUAL
    # What decides where translations stop is part of what the bundle is.
    save_lengths(tmp_path / "b", LengthLimits(1.5, 12))
    assert read_manifest(tmp_path / "b").identity != manifest.identity
    assert read_manifest(tmp_path / "b").files == manifest.files


def test_limits_are_kept_until_the_model_changes(bundle: Path, parts: Path, tmp_path: Path) -> None:
    build_bundle(tmp_path / "same", BundleRequest(base=bundle, lm=parts / "lm"))
    assert read_manifest(tmp_path / "same").lengths == read_manifest(bundle).lengths
    build_bundle(tmp_path / "other", BundleRequest(base=bundle, nmt=parts / "nmt"))
    assert read_manifest(tmp_path / "other").lengths is None


def test_without_an_s_nmt_there_is_nothing_to_learn(parts: Path, tmp_path: Path) -> None:
    with pytest.raises(CadecError, match="no S-NMT"):
        build_bundle(tmp_path / "b", BundleRequest(target=parts / "ru", lm=parts / "lm", pairs=[("a", "b")]))


def test_a_large_text_is_sampled(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Bundle.open(bundle)
    short, long = ("The boy took it.", "Мальчик взял его."), ("Tom.", "Том видит письмо. " * 9)
    alone = lengths_of_pairs(opened, [short] * 10)
    mixed = [short, long, long] * 10
    assert lengths_of_pairs(opened, mixed) != alone
    monkeypatch.setattr(build, "_LOOKED_AT", 10)
    assert lengths_of_pairs(opened, mixed) == alone
    assert lengths_of_pairs(opened, []) == USUAL
