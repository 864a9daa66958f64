"""Marian's own files say what Marian's transformer says, which transformers knows too."""

import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ctranslate2.converters import marian as ctranslate2_marian

from cadec_cli.engines.ctranslate2 import CTranslate2Model, read_vocabularies
from cadec_cli.errors import CadecError
from cadec_cli.text.tokenizers import load_text
from converters import PretrainedRequest
from converters.translation.base import WeightsImport
from converters.translation.marian import open_marian
from converters.translation.tokenizer_files import sentencepiece_pieces
from tests.helpers.foreign_models import (
    MARIAN_OPTIONS,
    OTHERS,
    SENTENCES,
    PieceText,
    marian_arrays,
    marian_network,
    marian_sinusoids,
    original_log_probs,
    train_spm,
    write_marian,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, list[str]]:
    """A directory as OPUS-MT's, the network it was made of, and its vocabulary."""
    directory = tmp_path_factory.mktemp("opus")
    pieces = [*train_spm(directory / "source.spm", SENTENCES), *train_spm(directory / "target.spm", OTHERS)]
    vocabulary = ["</s>", "<unk>", *dict.fromkeys(pieces)]
    network = marian_network(len(vocabulary))
    write_marian(directory, marian_arrays(network, len(vocabulary)), vocabulary)
    return directory, network, vocabulary


@pytest.fixture
def copied(model: tuple[Path, Any, list[str]], tmp_path: Path) -> Path:
    """A copy to spoil."""
    shutil.copytree(model[0], tmp_path / "opus")
    return tmp_path / "opus"


def expected(model: tuple[Path, Any, list[str]], source: str, target: str) -> float:
    _, network, vocabulary = model
    ids = [[vocabulary.index(token) for token in text.split()] for text in (source, target)]
    size = len(vocabulary)
    return sum(original_log_probs(network, [*ids[0], 0], ids[1], start=size, end=0, tokens=size))


def test_the_engine_says_what_the_original_says(model: tuple[Path, Any, list[str]], tmp_path: Path) -> None:
    opened = open_marian(model[0], PretrainedRequest(source_language="en", target_language="ru"))
    assert opened.convert(tmp_path / "nmt", "float32").largest < 1e-4
    assert (opened.framing.source_size, opened.languages) == (0, ("en", "ru"))
    text = PieceText(model[2], 0)
    engine = CTranslate2Model(
        tmp_path / "nmt",
        text,
        text,
        framing=opened.framing,
        positions=opened.settings.positions,
        compute_type="float32",
    )
    source = " ".join(model[2][5:12])
    found = engine.nbest([source], 4)[0]
    assert len(found.hypotheses) >= 3  # an empty one is left out
    for hypothesis in found.hypotheses:
        assert hypothesis.log_prob == pytest.approx(expected(model, source, hypothesis.text), abs=1e-3)
        assert engine.log_probs([source], [hypothesis.text])[0] == pytest.approx(
            hypothesis.log_prob, abs=1e-3
        )


def test_an_end_of_ours_after_the_source_would_be_one_too_many(
    model: tuple[Path, Any, list[str]], tmp_path: Path
) -> None:
    """CTranslate2 adds it by itself."""
    open_marian(model[0], PretrainedRequest()).convert(tmp_path / "nmt", "float32")
    text = PieceText(model[2], 0)
    twice = CTranslate2Model(tmp_path / "nmt", text, text, positions=100, compute_type="float32")
    source, target = " ".join(model[2][5:12]), " ".join(model[2][20:25])
    assert abs(twice.log_probs([source], [target])[0] - expected(model, source, target)) > 0.01


def test_sinusoids_are_those_of_marian_not_of_ctranslate2(model: tuple[Path, Any, list[str]]) -> None:
    """CTranslate2's converter computes others, which says something else without an error."""
    ours = open_marian(model[0], PretrainedRequest()).network.weights["encoder.positions"]
    assert np.allclose(ours[:60], marian_sinusoids(60), atol=1e-6)
    theirs = ctranslate2_marian._make_sinusoidal_position_encodings(16)
    assert np.abs(ours[:60].numpy() - theirs[:60]).max() > 0.5


@pytest.mark.parametrize("missing", ["positions", "epsilon", "scale"])
def test_a_converted_model_that_says_something_else_is_refused(
    model: tuple[Path, Any, list[str]], missing: str, tmp_path: Path
) -> None:
    opened = open_marian(model[0], PretrainedRequest())

    def spoiled() -> Any:
        spec = opened.spec()
        if missing == "positions":
            spec.encoder.position_encodings.encodings = (
                ctranslate2_marian._make_sinusoidal_position_encodings(16)
            )
        elif missing == "epsilon":
            spec.config.layer_norm_epsilon = 1e-2
        else:
            spec.decoder.scale_embeddings = False
        return spec

    values = {name: getattr(opened, name) for name in opened.__dataclass_fields__}
    with pytest.raises(CadecError, match="disagrees"):
        WeightsImport(**{**values, "spec": spoiled}).convert(tmp_path / "nmt", "int8")
    assert not list(tmp_path.iterdir())


def test_int8_is_written_and_close(model: tuple[Path, Any, list[str]], tmp_path: Path) -> None:
    drift = open_marian(model[0], PretrainedRequest()).convert(tmp_path / "nmt", "int8")
    assert 0 < drift.mean < 0.3
    assert (tmp_path / "nmt" / "shared_vocabulary.json").is_file()


def test_settings_name_the_tokenizers(model: tuple[Path, Any, list[str]]) -> None:
    opened = open_marian(model[0] / "model.npz", PretrainedRequest())
    assert (opened.settings.source.kind, opened.settings.source.files) == ("sentencepiece", ("source.spm",))
    assert opened.settings.target.files == ("target.spm",)
    assert opened.files == {"source.spm": model[0] / "source.spm", "target.spm": model[0] / "target.spm"}
    assert opened.settings.positions == 512


def test_trained_positions_leave_embeddings_unscaled(
    copied: Path, model: tuple[Path, Any, list[str]]
) -> None:
    arrays = marian_arrays(model[1], len(model[2]))
    write_marian(copied, {**arrays, "Wpos": marian_sinusoids(40).numpy()}, model[2])
    opened = open_marian(copied, PretrainedRequest())
    assert not opened.network.encoder.scaled
    assert opened.settings.positions == 39
    assert opened.convert(copied / "nmt", "float32").largest < 1e-4


def test_old_models_have_codes_of_bpe(copied: Path, model: tuple[Path, Any, list[str]]) -> None:
    for side in ("source", "target"):
        (copied / f"{side}.spm").unlink()
        pieces = ["e@@", "a@@", "th@@", "the"]
        (copied / f"{side}.bpe").write_text("#version: 0.2\nt h\nth e</w>\n", "utf-8")
    vocabulary = ["</s>", "<unk>", *pieces, *model[2][6:]]
    write_marian(copied, marian_arrays(model[1], len(vocabulary)), vocabulary)
    opened = open_marian(copied, PretrainedRequest())
    assert (opened.settings.source.kind, opened.settings.source.files) == ("moses-bpe", ("source.bpe",))
    assert opened.settings.source.options == {"lowercase": "no", "escape": "no", "split_dashes": "no"}
    # What was done before BPE shows in what came of it.
    vocabulary[-2:] = ["&apos;t", "@-@"]
    write_marian(copied, marian_arrays(model[1], len(vocabulary)), vocabulary)
    text = open_marian(copied, PretrainedRequest()).settings.source
    assert text.options == {"lowercase": "no", "escape": "yes", "split_dashes": "yes"}


def test_pre_norm_is_checked_as_a_whole(copied: Path, model: tuple[Path, Any, list[str]]) -> None:
    options = {
        **MARIAN_OPTIONS,
        "type": "s2s",
        "transformer-preprocess": "n",
        "transformer-ffn-activation": "elu",
        "transformer-decoder-autoreg": "rnn",
    }
    arrays = {**marian_arrays(model[1], len(model[2])), "encoder_bi_W": np.zeros((2, 2))}
    write_marian(copied, arrays, model[2], options)
    with pytest.raises(CadecError) as caught:
        open_marian(copied, PretrainedRequest())
    for reason in ("s2s", "'n' before", "elu", "rnn", "encoder_bi_W"):
        assert reason in caught.value.message


def without_vocabulary(directory: Path) -> None:
    (directory / "vocab.yml").unlink()


def short_vocabulary(directory: Path) -> None:
    lines = (directory / "vocab.yml").read_text("utf-8").splitlines()
    (directory / "vocab.yml").write_text("\n".join(lines[:-1]) + "\n", "utf-8")


def truncated(directory: Path) -> None:
    data = (directory / "model.npz").read_bytes()
    (directory / "model.npz").write_bytes(data[: len(data) // 2])


def pickled(directory: Path) -> None:
    with np.load(directory / "model.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    np.savez(directory / "model.npz", **arrays, Wextra=np.array([{"a": 1}], dtype=object))


def weightless(directory: Path) -> None:
    with np.load(directory / "model.npz") as stored:
        arrays = {name: stored[name] for name in stored.files if name != "decoder_l2_context_Wk"}
    np.savez(directory / "model.npz", **arrays)


def headless(directory: Path) -> None:
    """An entry of the archive that says of itself what numpy can't read, or that is no array at all."""
    with zipfile.ZipFile(directory / "model.npz", "a") as archive:
        archive.writestr("Wextra.npy", b"\x93NUMPY\x01\x00\x08\x00{'a': (\n")


def arrayless(directory: Path) -> None:
    with zipfile.ZipFile(directory / "model.npz", "a") as archive:
        archive.writestr("Wextra", b"nothing")


def worded(directory: Path) -> None:
    with np.load(directory / "model.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    np.savez(directory / "model.npz", **{**arrays, "Wemb": np.array(["a", "b"])})


def nested(directory: Path) -> None:
    (directory / "decoder.yml").write_text("[" * 5000)


def dated(directory: Path) -> None:
    (directory / "decoder.yml").write_text("vocabs: 2001-13-41\n")


def long_name(directory: Path) -> None:
    (directory / "decoder.yml").write_text(f"vocabs: [vocab.yml, vocab{'x' * 300}.yml]\n")


def another_tokenizer(directory: Path) -> None:
    train_spm(directory / "source.spm", ["0123 4567 8901 2345", "9876 5432 1098", "6 7 8 9 0"] * 20, 24)


def no_tokenizer(directory: Path) -> None:
    (directory / "target.spm").unlink()
    (directory / "source.spm").unlink()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without_vocabulary, "vocab.yml"),
        (short_vocabulary, "tokens, the model's embeddings have"),
        (truncated, "can't read"),
        (pickled, "can't read"),
        (headless, "can't read"),
        (arrayless, "not numbers: Wextra"),
        (worded, "not numbers: Wemb"),
        (nested, "not valid YAML"),
        (dated, "not valid YAML"),
        (long_name, "which is not in"),
        (weightless, "no decoder.1.cross.key.weight"),
        (another_tokenizer, "is not the tokenizer of the model's source"),
        (no_tokenizer, "no tokenizer of the source"),
    ],
)
def test_what_does_not_fit_is_one_error(copied: Path, spoil: Any, message: str) -> None:
    spoil(copied)
    with pytest.raises(CadecError, match=message):
        open_marian(copied, PretrainedRequest())


def test_weights_that_are_no_numbers_are_not_written(
    copied: Path, model: tuple[Path, Any, list[str]]
) -> None:
    arrays = marian_arrays(model[1], len(model[2]))
    arrays["encoder_l1_ffn_W1"][0, 0] = np.nan
    write_marian(copied, arrays, model[2])
    with pytest.raises(CadecError, match=r"encoder\.0\.feed_forward\.inner\.weight holds NaN"):
        open_marian(copied, PretrainedRequest()).convert(copied / "nmt", "float32")
    assert not (copied / "nmt").exists()


def test_text_goes_in_and_comes_out(model: tuple[Path, Any, list[str]], tmp_path: Path) -> None:
    """With the tokenizers that the settings name, as a bundle reads them."""
    opened = open_marian(model[0], PretrainedRequest(source_language="en", target_language="ru"))
    opened.convert(tmp_path / "nmt", "float32")
    source, target = (
        load_text(model[0], settings, vocabulary, language)
        for settings, vocabulary, language in zip(
            (opened.settings.source, opened.settings.target),
            read_vocabularies(tmp_path / "nmt"),
            ("en", "ru"),
            strict=True,
        )
    )
    engine = CTranslate2Model(
        tmp_path / "nmt", source, target, framing=opened.framing, positions=512, compute_type="float32"
    )
    assert target.decode(target.encode(OTHERS[3])) == OTHERS[3]
    pieces = " ".join(model[2][index] for index in source.encode(SENTENCES[5]))
    written = " ".join(model[2][index] for index in target.encode(OTHERS[5]))
    exact = expected(model, pieces, written)
    assert engine.log_probs([SENTENCES[5]], [OTHERS[5]])[0] == pytest.approx(exact, abs=1e-3)


def test_a_model_of_many_targets_is_told_which(copied: Path, model: tuple[Path, Any, list[str]]) -> None:
    vocabulary = [*model[2][:-2], ">>fra<<", ">>rus<<"]
    write_marian(copied, marian_arrays(model[1], len(vocabulary)), vocabulary)
    opened = open_marian(copied, PretrainedRequest(source_language="en", target_language="ru"))
    assert opened.settings.source_begin == ("{target}",)
    assert opened.settings.target_languages == (">>fra<<", ">>rus<<")
    assert opened.framing.source_begin == (">>rus<<",)
    assert ">>rus<<" in opened.settings.source.options["special"].split()
    assert opened.convert(copied / "nmt", "float32").largest < 1e-4
    with pytest.raises(CadecError, match="language"):
        open_marian(copied, PretrainedRequest())
    with pytest.raises(CadecError, match="'de'"):
        open_marian(copied, PretrainedRequest(target_language="de"))


def test_a_sentencepiece_model_can_be_the_vocabulary(
    copied: Path, model: tuple[Path, Any, list[str]]
) -> None:
    """As Marian has it built in: vocab.spm, with </s> and <unk> first."""
    train_spm(copied / "vocab.spm", [*SENTENCES, *OTHERS], 90, specials=("</s>", "<unk>"))
    pieces = list(sentencepiece_pieces(copied / "vocab.spm", special=True))
    assert pieces[:2] == ["</s>", "<unk>"]
    write_marian(copied, marian_arrays(model[1], len(pieces)), pieces)
    decoder = (copied / "decoder.yml").read_text().replace("vocab.yml", "vocab.spm")
    (copied / "decoder.yml").write_text(decoder)
    opened = open_marian(copied, PretrainedRequest())
    assert opened.settings.source.files == opened.settings.target.files == ("vocab.spm",)
    assert opened.convert(copied / "nmt", "float32").largest < 1e-4


def test_pre_norm_and_separate_embeddings(copied: Path, model: tuple[Path, Any, list[str]]) -> None:
    """CTranslate2's reading of Marian's other names and ours agree; no decoder.yml has to say the files."""
    arrays = marian_arrays(model[1], len(model[2]))
    renamed = {
        f"{name}_pre" if name.endswith(("_ln_scale", "_ln_bias")) else name: array
        for name, array in arrays.items()
        if name != "Wemb"
    }
    norm = arrays["encoder_l1_ffn_ffn_ln_scale"], arrays["encoder_l1_ffn_ffn_ln_bias"]
    for side in ("encoder", "decoder"):
        renamed[f"{side}_top_ln_scale"], renamed[f"{side}_top_ln_bias"] = norm
        renamed[f"{side}_emb_ln_scale_pre"], renamed[f"{side}_emb_ln_bias_pre"] = norm
    renamed["encoder_Wemb"] = arrays["Wemb"][:-3]
    renamed["decoder_Wemb"] = arrays["Wemb"]
    renamed["decoder_ff_logit_out_W"] = np.ascontiguousarray(arrays["Wemb"][::-1].T)
    options = {
        **MARIAN_OPTIONS,
        "transformer-preprocess": "n",
        "transformer-postprocess": "da",
        "transformer-postprocess-top": "n",
        "transformer-postprocess-emb": "nd",
        "transformer-ffn-activation": "gelu",
    }
    write_marian(copied, renamed, model[2], options)
    lines = (copied / "vocab.yml").read_text("utf-8").splitlines()
    (copied / "vocab.en.yml").write_text("\n".join(lines[:-3]) + "\n", "utf-8")
    (copied / "vocab.ru.yml").write_text("\n".join(lines) + "\n", "utf-8")
    for name in ("vocab.yml", "decoder.yml"):
        (copied / name).unlink()
    with pytest.raises(CadecError, match=r"vocab\.en\.yml, vocab\.ru\.yml"):
        open_marian(copied, PretrainedRequest())
    opened = open_marian(copied, PretrainedRequest(source_language="en", target_language="ru"))
    assert opened.network.decoder.pre_norm
    assert opened.convert(copied / "nmt", "float32").largest < 1e-4


@pytest.mark.parametrize("name", ["enc-depth", "dec-depth", "transformer-heads"])
@pytest.mark.parametrize("value", [10**9, 0, True, 2.0, "2", None])
def test_sizes_have_bounds(
    model: tuple[Path, Any, list[str]], copied: Path, name: str, value: object
) -> None:
    arrays = marian_arrays(model[1], len(model[2]))
    write_marian(copied, arrays, model[2], {**MARIAN_OPTIONS, name: value})
    with pytest.raises(CadecError, match=name):
        open_marian(copied, PretrainedRequest())
