"""A D-LM with a vocabulary of its own: between it and the S-NMT travels text, and nothing else changes.

What is expected is computed from text alone: every hypothesis is encoded with the D-LM's own pipeline and
scored by itself, in one pass over the whole sequence.
"""

import io
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pytest
import sacrebleu
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.bundle.build import BundleRequest, build_bundle
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import LoadedModels, default_options, load_models
from cadec_cli.decoding.translator import Translator
from cadec_cli.jobs import job
from cadec_cli.main import exit_code
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.options import TranslationOptions
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.models.storage import save_model
from cadec_cli.session.session import Session
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.subwords import EOS
from tests.conftest import RUSSIAN, sentences, trained_pipeline
from tests.helpers.bundle_parts import checksums, tiny_lm
from tests.helpers.repl_parts import SENTENCES, tiny_bundle

OPTIONS = TranslationOptions(nbest=4, beam=3, protect=False)  # the paper's formula and nothing else
FLAGS = ["--compute-type", "float32", "--threads", "1"]
TOLERANCE = 2e-3
SHARP = 0.2  # a temperature at which so small a D-LM changes choices


@dataclass(frozen=True)
class Naive:
    """The method, straight from its definition."""

    models: LoadedModels

    @cached_property
    def network(self) -> DocumentLM:
        return self.models.bundle.lm_network()

    @torch.inference_mode()
    def log_prob(self, context: Sequence[str], text: str, temperature: float) -> float:
        """log p(ỹ | c̃) of texts."""
        encode = self.models.bundle.lm_text.encode
        before = [EOS, *(token for sentence in context for token in [*encode(sentence), EOS])]
        tokens = torch.tensor([[*before, *encode(text), EOS]])
        log_probs = (self.network(tokens[:, :-1])[0].double() / temperature).log_softmax(-1)
        scores = log_probs[torch.arange(tokens.size(1) - 1), tokens[0, 1:]]
        return float(scores[len(before) - 1 :].sum())

    def pmi(self, context: Sequence[str], text: str, temperature: float = 1.0) -> float:
        return self.log_prob(context, text, temperature) - self.log_prob((), text, temperature)

    def scores(self, context: Sequence[str], nbest: NBest, temperature: float = 1.0) -> list[float]:
        """log p(y|x) + PMI of every hypothesis."""
        return [h.log_prob + self.pmi(context, h.text, temperature) for h in nbest.hypotheses]

    def reranked(self, document: Sequence[str], context: int, temperature: float) -> list[tuple[str, int]]:
        """Each sentence's translation, and which hypothesis it is."""
        chosen: list[tuple[str, int]] = []
        for nbest in self.models.translation.nbest(document, OPTIONS.nbest):
            before = [text for text, _ in chosen[-context:]] if context else []
            scores = self.scores(before, nbest, temperature)
            index = scores.index(max(scores))
            chosen.append((nbest.hypotheses[index].text, index))
        return chosen


@pytest.fixture(scope="module")
def bundle(english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("other")
    other = trained_pipeline("ru", sentences(RUSSIAN, 300), vocabulary_size=330)
    other.save(root / "other-ru")
    save_model(root / "other-lm", tiny_lm(len(other), seed=2, positions=200), checksums(other))
    base = tiny_bundle(root, english, russian)
    build_bundle(root / "made", BundleRequest(base=base, lm=root / "other-lm", lm_pipeline=root / "other-ru"))
    return root / "made"


@pytest.fixture(scope="module")
def models(bundle: Path) -> LoadedModels:
    return load_models(Bundle.open(bundle), compute_type="float32", threads=1)


@pytest.fixture(scope="module")
def naive(models: LoadedModels) -> Naive:
    return Naive(models)


def test_the_two_vocabularies_have_nothing_in_common_but_the_language(models: LoadedModels) -> None:
    target, own = models.bundle.target, models.bundle.lm_text
    assert models.language is not None and models.language.text is own
    assert target.identity != own.identity and len(target) != len(own)
    (nbest,) = models.translation.nbest([SENTENCES[1]], 1)
    assert nbest.vocabulary == target.identity
    assert nbest.ids_for(target) == (nbest.hypotheses[0].ids,)
    assert nbest.ids_for(own) == (tuple(own.encode(nbest.hypotheses[0].text)),) != nbest.ids_for(target)


documents = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=5)


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_every_score_is_that_computed_from_texts(
    models: LoadedModels, naive: Naive, data: st.DataObject
) -> None:
    options = replace(
        OPTIONS,
        search=data.draw(st.sampled_from(["rerank", "lattice"])),
        context=data.draw(st.integers(0, 3)),
        rolling=data.draw(st.booleans()),
        temperature=data.draw(st.sampled_from([SHARP, 1.0, 2.5])),
    )
    before: list[str] = []
    for item in Translator(models, options).translate(data.draw(documents)):
        (part,) = item.parts
        assert part.choice is not None
        read = before if options.rolling else before[len(before) - min(options.context, len(before)) :]
        assert part.choice.context == tuple(tuple(models.bundle.lm_text.encode(text)) for text in read)
        expected = naive.scores(read, part.nbest, options.temperature)
        assert part.choice.scores == pytest.approx(expected, abs=TOLERANCE)
        if options.search == "rerank":
            assert part.choice.scores[part.choice.index] == max(part.choice.scores)
        before.append(item.text)


@settings(max_examples=8, deadline=None)
@given(documents, st.integers(1, 4), st.booleans())
def test_a_session_picks_edits_and_explains(
    models: LoadedModels, naive: Naive, document: list[str], rank: int, rolling: bool
) -> None:
    own = models.bundle.lm_text
    assert isinstance(own, TextPipeline)
    session = Session(models, replace(OPTIONS, rolling=rolling))
    for number, sentence in enumerate(document):
        texts = [entry.text for entry in session.current]
        read = texts if rolling else texts[-3:]
        (entry,) = session.translate([sentence])
        part = entry.last_part
        assert part.choice is not None
        assert part.choice.scores == pytest.approx(naive.scores(read, part.nbest), abs=TOLERANCE)
        if number % 3 == 1:
            entry = session.pick(min(rank, len(part.hypotheses)))
        elif number % 3 == 2:
            entry = session.edit("Том ждёт его.")
        assert entry.context_ids == (tuple(own.encode(entry.text)),)
        found = session.explain()
        assert found.context == tuple(own.canonical(text) for text in read)
        for row, text in zip(found.rows, (entry.text, part.hypotheses[0].text), strict=False):
            assert row.pmi == pytest.approx(naive.pmi(read, text), abs=TOLERANCE)
            pieces = [own.subwords.pieces[index] for index in own.encode(text)]
            assert [token.text for token in row.tokens] == [
                *(piece.replace("\u2581", " ") for piece in pieces),
                "</s>",
            ]


def test_the_commands_run_through(
    bundle: Path,
    naive: Naive,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    reranked = naive.reranked(SENTENCES, 3, SHARP)
    expected = [text for text, _ in reranked]
    assert any(index for _, index in reranked)
    (tmp_path / "in.txt").write_text("\n".join(SENTENCES))
    options = ["-b", str(bundle), "--nbest", "4", "--temperature", str(SHARP), "--no-protect", *FLAGS]
    assert exit_code(["translate", str(tmp_path / "in.txt"), "--lines", "--json", *options]) == 0
    records = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [record["translation"] for record in records] == expected
    for number, record in enumerate(records):
        for hypothesis in record["hypotheses"]:
            pmi = naive.pmi(expected[max(number - 3, 0) : number], hypothesis["text"], SHARP)
            assert hypothesis["pmi"] == pytest.approx(pmi, abs=TOLERANCE)
    assert exit_code(["translate", str(tmp_path / "in.txt"), "--explain", "--compare", *options]) == 0
    assert capfd.readouterr().out.count("chosen  log p") == len(SENTENCES)
    typed = "\n".join(
        [*SENTENCES, "/nbest", "/pick 2", "/why", "/edit Том.", "/why", "/save s.json", "/quit"]
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
    assert exit_code(["repl", *options]) == 0
    told = capfd.readouterr()
    assert told.out.splitlines()[: len(SENTENCES)] == expected and "error" not in told.err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"/load s.json\n/context\n/why\n")))
    assert exit_code(["repl", *options]) == 0
    told = capfd.readouterr()
    assert "Том." in told.out and "loaded 6 sentences" in told.err and "only" not in told.err


def test_tune_chooses_as_computed_from_texts(
    bundle: Path,
    naive: Naive,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The naive computation knows nothing of defects, and the command has no option to leave them out.
    monkeypatch.setattr(
        job, "default_options", lambda opened: replace(default_options(opened), protect=False)
    )
    development = [list(SENTENCES[:4]), list(SENTENCES[2:])]
    references = [[text for text, _ in naive.reranked(document, 2, SHARP)] for document in development]
    often = 6  # what is better in so few sentences once is within noise
    for name, texts in (("dev.en", development * often), ("dev.ru", references * often)):
        (tmp_path / name).write_text("\n".join("".join(f"{t}\n" for t in one) for one in texts), "utf-8")
    arguments = ["tune", str(tmp_path / "dev.en"), "--ref", str(tmp_path / "dev.ru"), "-b", str(bundle)]
    tried = ["-T", "1", "-T", str(SHARP), "--nbest", "4", "--context", "2", "--no-save", "--no-plot"]
    assert exit_code([*arguments, *tried, "-o", str(tmp_path / "out"), *FLAGS]) == 0
    capfd.readouterr()
    curve = json.loads((tmp_path / "out" / "curve.json").read_text())
    wanted = [text for document in references for text in document]
    for point, temperature in zip(curve["points"], (1.0, SHARP), strict=True):
        found = [one for document in development for one in naive.reranked(document, 2, temperature)]
        bleu = sacrebleu.corpus_bleu([text for text, _ in found] * often, [wanted * often]).score
        assert point["setting"]["temperature"] == temperature
        assert point["bleu"] == pytest.approx(bleu)
        assert point["changed"] == pytest.approx(sum(index > 0 for _, index in found) / len(found))
    assert curve["points"][1]["bleu"] == pytest.approx(100) and curve["choice"] == curve["points"][1]
    assert curve["points"][1]["changed"] > 0


def test_the_beam_scores_its_sentences_as_reranking_does(models: LoadedModels, naive: Naive) -> None:
    before: list[str] = []
    for translation in Translator(models, replace(OPTIONS, search="beam")).translate(SENTENCES):
        (part,) = translation.parts
        assert part.choice is not None
        assert part.choice.scores == pytest.approx(naive.scores(before[-3:], part.nbest), abs=TOLERANCE)
        before.append(translation.text)
