"""N-best translations by CTranslate2, with exact log p(ỹ|x), and the settings in a CTranslate2 directory.

For its scores to be log p(ỹ|x), CTranslate2 gets no length penalty and no minimum length (which would take
EOS out of the first softmax), and hypotheses that were cut off are scored again. A token that every
translation is forced to begin with, such as the language's, is not the model's choice. The beam does not
count it; `score_batch` does, so its score is left out there.

The translation of a sentence must not depend on the other sentences of its batch. Products of int8 weights
are sums of integers, exact in any order, and attention stays within a sentence. But padding changes how many
numbers attention adds up, and so the last digits. Therefore a batch has sentences of one length, and nothing
is padded. (With float32 weights the products depend on the size of the batch, in the fifth decimal.)
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cadec_cli.engines.compute_types import usable_compute_type
from cadec_cli.engines.engine import language_token
from cadec_cli.errors import CadecError
from cadec_cli.fs.read import read_errors, read_json
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.models.pretrained_settings import SOURCE, TARGET, TranslationSettings
from cadec_cli.parallel import available_cores
from cadec_cli.text.token_text import TokenText

# The keys of config.json that CTranslate2 reads; it notices most wrong types only when it translates.
_SETTINGS: Mapping[str, tuple[type, ...]] = {
    "add_source_bos": (bool,),
    "add_source_eos": (bool,),
    "bos_token": (str,),
    "eos_token": (str,),
    "unk_token": (str,),
    "decoder_start_token": (str, type(None)),
    "layer_norm_epsilon": (float, int, type(None)),
    "multi_query_attention": (bool,),
}
# If these are missing, it uses uninitialised memory.
_REQUIRED = ("add_source_bos", "add_source_eos")


def read_settings(directory: Path) -> dict[str, Any]:
    """Read a config.json; settings of types that CTranslate2 does not accept are a CadecError."""
    path = directory / "config.json"
    stored = read_json(path)
    if not isinstance(stored, dict):
        raise CadecError(f"{path} is not a CTranslate2 configuration")
    wrong = [
        name
        for name, kinds in _SETTINGS.items()
        if (name in stored or name in _REQUIRED) and type(stored.get(name)) not in kinds
    ]
    if wrong:
        raise CadecError(f"{path} is damaged: {', '.join(wrong)} missing or of a wrong type")
    return stored


def read_vocabularies(directory: Path) -> tuple[list[str], list[str]]:
    """The tokens of the source and of the target; a missing or damaged file is a CadecError."""
    shared = _read(directory, "shared_vocabulary")
    if shared is not None:
        return shared, shared
    source, target = _read(directory, "source_vocabulary"), _read(directory, "target_vocabulary")
    if source is None or target is None:
        raise CadecError(
            f"{directory} has no vocabulary: neither shared_vocabulary.json nor one for each side",
            "is it the directory of a translation model of CTranslate2?",
        )
    return source, target


def _read(directory: Path, name: str) -> list[str] | None:
    if (path := directory / f"{name}.json").is_file():
        tokens = read_json(path)
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens) or not tokens:
            raise CadecError(f"{path} is not a vocabulary: a list of tokens")
        return tokens
    # The format of CTranslate2 before version 3.
    if (path := directory / f"{name}.txt").is_file():
        with read_errors(path):
            raw = path.read_bytes()
        try:
            # Not splitlines(): tokens may hold characters that Python takes for ends of lines.
            tokens = raw.decode("utf-8").removesuffix("\n").split("\n")
        except UnicodeDecodeError:
            raise CadecError(f"{path} is not a vocabulary: it is not UTF-8") from None
        return [token.removesuffix("\r") for token in tokens]
    return None


_DAMAGED = "its weights or vocabulary are damaged, or another model's: copy or download the bundle again"

# Padded source tokens of one of CTranslate2's batches, times the beam.
BATCH_TOKENS = 2048
# Sentences of a call that keep every core busy, or a GPU.
SENTENCES_PER_WORKER, SENTENCES_ON_GPU = 16, 256
LIMIT_STEP = 16  # tokens by which the limits of calls differ


@dataclass(frozen=True)
class Framing:
    """The tokens that a model needs around a sentence: an EOS, and for some the token of a language."""

    source_begin: tuple[str, ...] = ()
    source_end: tuple[str, ...] = ()
    target_begin: tuple[str, ...] = ()

    def frame(self, source: Sequence[str]) -> list[str]:
        """A source sentence as the model reads it."""
        return [*self.source_begin, *source, *self.source_end]

    @property
    def source_size(self) -> int:
        """The number of tokens around a source sentence."""
        return len(self.source_begin) + len(self.source_end)


class CTranslate2Model:
    """A CTranslate2 S-NMT between the texts of two languages.

    `positions` is the most tokens that it reads or writes, EOS and all framing included. The default framing
    is that of our models: an EOS after the source. `limits` cut off translations that do not end.
    """

    def __init__(
        self,
        model: Path,
        source: TokenText,
        target: TokenText,
        *,
        framing: Framing | None = None,
        positions: int = 512,
        limits: LengthLimits | None = None,
        device: str = "cpu",
        device_index: int = 0,
        compute_type: str = "int8",
        threads: int = 0,
    ) -> None:
        import ctranslate2

        # CTranslate2 wrote no config.json before version 3.
        if (model / "config.json").is_file() and read_settings(model).get("decoder_start_token") is None:
            raise CadecError(f"the model in {model} has no token to start translations with")
        self._source, self._target = source, target
        self._source_pieces, self._target_pieces = source.vocabulary, target.vocabulary
        self._framing = framing or Framing(source_end=(self._source_pieces[source.boundary],))
        self._target_ids = {piece: index for index, piece in enumerate(self._target_pieces)}
        self._limits = limits or LengthLimits()
        # For the pieces of the sentence; the framing is not counted.
        self._source_room = positions - self._framing.source_size
        self._target_room = positions - 1 - len(self._framing.target_begin)
        # One batch per core: several cores that share a batch wait for each other more than they compute.
        workers = min(threads or available_cores(), available_cores()) if device == "cpu" else 1
        self.batch_size = SENTENCES_PER_WORKER * workers if device == "cpu" else SENTENCES_ON_GPU
        load = partial(
            ctranslate2.Translator,
            str(model),
            device=device,
            device_index=device_index,
            compute_type=usable_compute_type(compute_type, device),
            inter_threads=workers,
            intra_threads=1,
        )
        try:
            # CTranslate2 sets OpenMP's number of threads for the thread that loads it: in this thread, torch
            # would compute with one core from then on.
            with ThreadPoolExecutor(1) as other:
                self._translator = other.submit(load).result()
        except (RuntimeError, ValueError) as error:
            raise CadecError(f"CTranslate2 can't load {model}: {error}") from None

    def fits(self, sentence: str, target: str = "") -> bool:
        """Tell whether the model has positions for the whole sentence, and for a translation of it."""
        return _has_room(sentence, self._source, self._source_room) and _has_room(
            target, self._target, self._target_room
        )

    def split(self, sentence: str) -> list[str]:
        """Cut an over-long sentence into pieces that fit: after punctuation if possible, else at a space."""
        if self.fits(sentence) or len(sentence) < 2:
            return [sentence]
        middle = len(sentence) // 2
        for pattern in (r"[;:.!?…]\s+", r"[,)—-]\s+", r"\s+"):
            cuts = [match.end() for match in re.finditer(pattern, sentence.strip())]
            cuts = [cut for cut in cuts if len(sentence) // 8 < cut < len(sentence) - len(sentence) // 8]
            if cuts:
                middle = min(cuts, key=lambda cut: abs(cut - len(sentence) // 2))
                break
        halves = (sentence[:middle].strip(), sentence[middle:].strip())
        return [piece for half in halves if half for piece in self.split(half)]

    def nbest(self, sentences: Sequence[str], count: int) -> list[NBest]:
        """The `count` best translations of every sentence; repeated sentences are translated once.

        A result depends only on the arguments of the call, so that a resumed translation continues exactly as
        if it had not been interrupted.
        """
        distinct = list(dict.fromkeys(sentences))
        found = dict(zip(distinct, self._translate(distinct, count), strict=True))
        return [found[text] for text in sentences]

    def best(self, beam: int) -> Callable[[Sequence[str]], list[str]]:
        """Return a function that translates texts of any length by beam search."""

        def translate(texts: Sequence[str]) -> list[str]:
            return self._whole(texts, lambda pieces: [_first(nbest) for nbest in self.nbest(pieces, beam)])

        return translate

    def sampler(self, seed: int, temperature: float = 1.0) -> Callable[[Sequence[str]], list[str]]:
        """Return a function that translates texts of any length with words drawn by their probability.

        A temperature below 1 favours likely words.
        """
        import ctranslate2

        ctranslate2.set_random_seed(seed)
        return lambda texts: self._whole(texts, lambda pieces: self._sample(pieces, temperature))

    def _whole(self, texts: Sequence[str], translate: Callable[[list[str]], list[str]]) -> list[str]:
        """Cut texts into pieces that fit, translate all pieces at once, and join them again."""
        pieces = [self.split(text) for text in texts]
        found = iter(translate([piece for of_text in pieces for piece in of_text]))
        return [" ".join(next(found) for _ in of_text) for of_text in pieces]

    def _sample(self, sentences: Sequence[str], temperature: float) -> list[str]:
        pieces = self._pieces(sentences)
        begin = list(self._framing.target_begin)
        results = self._translator.translate_batch(
            [self._framing.frame(source) for source in pieces],
            target_prefix=[begin] * len(pieces) if begin else None,
            beam_size=1,
            sampling_topk=0,  # of all words
            sampling_temperature=temperature,
            max_decoding_length=max(map(self._limit, pieces), default=1) + len(begin),
            max_input_length=0,
            max_batch_size=BATCH_TOKENS,
            batch_type="tokens",
        )
        return [
            self._target.decode([self._target_ids[token] for token in result.hypotheses[0][len(begin) :]])
            for result in results
        ]

    def log_probs(self, sentences: Sequence[str], targets: Sequence[str]) -> list[float]:
        """log p(ỹ|x) of given translations, one per sentence.

        Texts with the same pieces are scored once, so that their scores are equal in any batch.
        """
        distinct = list(dict.fromkeys(sentences))
        sources = dict(zip(distinct, self._pieces(distinct), strict=True))
        written = {text: tuple(self._target.encode(text)) for text in dict.fromkeys(targets)}
        for text, ids in written.items():
            if len(ids) > self._target_room:
                raise CadecError(
                    f"a translation has {len(ids):,} tokens, too many for the model: {text[:60]!r}…"
                )
        pairs = [(source, written[target]) for source, target in zip(sentences, targets, strict=True)]
        asked = list(dict.fromkeys(pairs))
        scores = self._log_probs(
            [sources[source] for source, _ in asked],
            [[self._target_pieces[index] for index in ids] for _, ids in asked],
        )
        known = dict(zip(asked, scores, strict=True))
        return [known[pair] for pair in pairs]

    def token_log_probs(
        self, sentences: Sequence[str], targets: Sequence[str]
    ) -> list[list[tuple[int, float]]]:
        """The log p of every token of given translations, after the number of the word it belongs to."""
        begin = self._framing.target_begin
        encoded = {target: self._target.encode(target) for target in dict.fromkeys(targets)}
        ids = [encoded[target] for target in targets]
        results = self._translator.score_batch(
            [self._framing.frame(source) for source in self._pieces(sentences)],
            [[*begin, *(self._target_pieces[index] for index in own)] for own in ids],
            max_input_length=0,
            batch_type="tokens",
            max_batch_size=BATCH_TOKENS,
        )
        # Detokenisation may join any tokens: only the text up to a token tells which word the token is in.
        words = {
            target: [
                max(0, len(self._target.decode(own[: place + 1]).split()) - 1) for place in range(len(own))
            ]
            for target, own in encoded.items()
        }
        return [
            list(zip(words[target], result.log_probs[len(begin) :], strict=False))
            for target, result in zip(targets, results, strict=True)
        ]

    @property
    def target_text(self) -> TokenText:
        """The text of the target language: its tokenizer and ids."""
        return self._target

    def completions(self, sentence: str, beginnings: Sequence[str], count: int) -> list[list[str]]:
        """At most `count` translations of a sentence with each beginning, best first.

        A beginning has no punctuation at its end. Its last word may go on.
        """
        (source,) = self._pieces([sentence])
        begin = list(self._framing.target_begin)
        limit = self._limit(source)
        forced = [[self._target_pieces[index] for index in self._target.encode(text)] for text in beginnings]
        asked = [number for number, pieces in enumerate(forced) if len(pieces) < limit]
        begun = self._translator.translate_batch(
            [self._framing.frame(source)] * len(asked),
            target_prefix=[[*begin, *forced[number]] for number in asked],
            beam_size=count,
            num_hypotheses=count,
            length_penalty=0,
            max_decoding_length=limit + len(begin),
            max_input_length=0,
            max_batch_size=1,  # so that a result does not depend on the others
            asynchronous=True,
        )
        found: list[list[str]] = [[] for _ in beginnings]
        for number, awaited in zip(asked, begun, strict=True):
            written = [tokens[len(begin) :] for tokens in awaited.result().hypotheses]
            found[number] = [self._target.decode(self._ids(tokens)) for tokens in written]
        return found

    def avoid(
        self, sentences: Sequence[str], count: int, words: Sequence[str], endings: Sequence[str]
    ) -> list[list[str]]:
        """At most `count` translations of every sentence, best first, without words and endings of words.

        A word that the tokenizer cuts in another way may come nevertheless. Their probabilities would not be
        comparable: `log_probs` gives the right ones.
        """
        pieces = self._pieces(sentences)
        without = self._sequences(words, endings)
        groups = [group for group in _of_one_size(map(len, pieces)) if pieces[group[0]]]
        begun = [
            self._begin_up_to(self._limit(pieces[group[0]]), [pieces[one] for one in group], count, without)
            for group in groups
        ]
        found: list[list[str]] = [[] for _ in sentences]
        for group, results in zip(groups, begun, strict=True):
            for index, scored in zip(group, self._collect_results(results), strict=True):
                limit = self._limit(pieces[index])
                texts = [
                    self._target.decode(self._ids(tokens)) for tokens, _ in scored if len(tokens) < limit
                ]
                found[index] = list(dict.fromkeys(filter(None, texts)))
        return found

    def _sequences(self, words: Sequence[str], endings: Sequence[str]) -> list[list[str]]:
        """The pieces of words, at the beginning of a sentence too, and the pieces with certain endings."""
        written = [form for word in words for form in dict.fromkeys((word, word[:1].upper() + word[1:]))]
        encoded = (tuple(self._target.encode(form)) for form in written)
        pieces = [[self._target_pieces[index] for index in ids] for ids in dict.fromkeys(encoded) if ids]
        ended = tuple(endings)
        return pieces + [[piece] for piece in self._target_pieces if ended and piece.endswith(ended)]

    def copies(self, pieces: Sequence[str]) -> bool:
        """Tell whether both vocabularies have all of these pieces, as our models have for placeholders."""
        return set(pieces) <= set(self._source_pieces) & set(self._target_pieces)

    def _pieces(self, sentences: Sequence[str]) -> list[list[str]]:
        pieces = [[self._source_pieces[index] for index in self._source.encode(text)] for text in sentences]
        for text, source in zip(sentences, pieces, strict=True):
            if len(source) > self._source_room:
                raise CadecError(
                    f"a sentence has {len(source):,} tokens, the model reads {self._source_room:,}: "
                    f"{text[:60]!r}…"
                )
        return pieces

    def _translate(self, sentences: Sequence[str], count: int) -> list[NBest]:
        pieces = self._pieces(sentences)
        lists = [NBest(text, ()) for text in sentences]
        groups = [group for group in _of_one_size(map(len, pieces)) if pieces[group[0]]]
        # CTranslate2 has one limit per call; all sentences of a call have the same length.
        limits = [self._limit(pieces[group[0]]) for group in groups]
        begun = [
            self._begin_up_to(limit, [pieces[index] for index in group], count)
            for limit, group in zip(limits, groups, strict=True)
        ]
        for limit, group, results in zip(limits, groups, begun, strict=True):
            for index, scored in zip(group, self._collect_results(results), strict=True):
                # A hypothesis that reaches the limit has no EOS yet.
                if any(len(tokens) >= limit for tokens, _ in scored):
                    scored = self._rescore(pieces[index], [tokens for tokens, _ in scored])
                lists[index] = NBest(sentences[index], self._hypotheses(scored), self._target.identity)
        return lists

    def _limit(self, source: Sequence[str]) -> int:
        """The most tokens of a translation, rounded up to a few values, for large batches."""
        most = self._limits.most(len(source))
        return min(self._target_room, most + -most % LIMIT_STEP)

    def _begin_up_to(
        self, limit: int, sources: Sequence[list[str]], count: int, without: list[list[str]] | None = None
    ) -> list[Any]:
        """Begin to translate sources of one length: often one batch, which one core computes.

        Translations have none of the sequences in `without`.
        """
        begin = list(self._framing.target_begin)
        begun: list[Any] = self._translator.translate_batch(
            [self._framing.frame(source) for source in sources],
            target_prefix=[begin] * len(sources) if begin else None,
            beam_size=count,
            num_hypotheses=count,
            length_penalty=0,
            min_decoding_length=0,
            max_decoding_length=limit + len(begin),
            max_input_length=0,
            max_batch_size=max(BATCH_TOKENS // count, 1) * 4,
            batch_type="tokens",
            suppress_sequences=without,
            return_scores=True,
            asynchronous=True,
        )
        return begun

    def _collect_results(self, begun: Sequence[Any]) -> Iterator[list[tuple[list[str], float]]]:
        forced = len(self._framing.target_begin)
        for awaited in begun:
            try:
                result = awaited.result()
            except ValueError as error:  # the arguments are always valid: the model must be at fault
                raise CadecError(f"CTranslate2 can't translate with this model: {error}", _DAMAGED) from None
            written = [tokens[forced:] for tokens in result.hypotheses]
            yield list(zip(written, result.scores, strict=True))

    def _rescore(self, source: list[str], hypotheses: list[list[str]]) -> list[tuple[list[str], float]]:
        log_probs = self._log_probs([source] * len(hypotheses), hypotheses)
        return sorted(zip(hypotheses, log_probs, strict=True), key=lambda item: -item[1])

    def _log_probs(self, sources: Sequence[list[str]], hypotheses: Sequence[list[str]]) -> list[float]:
        begin = self._framing.target_begin
        groups = _of_one_size(zip(map(len, sources), map(len, hypotheses), strict=True))
        begun = [
            self._translator.score_batch(
                [self._framing.frame(sources[index]) for index in group],
                [[*begin, *hypotheses[index]] for index in group],
                max_input_length=0,
                batch_type="tokens",
                max_batch_size=BATCH_TOKENS,
                asynchronous=True,
            )
            for group in groups
        ]
        log_probs = [0.0] * len(sources)
        for group, results in zip(groups, begun, strict=True):
            for index, awaited in zip(group, results, strict=True):
                log_probs[index] = sum(awaited.result().log_probs[len(begin) :])
        return log_probs

    def _hypotheses(self, scored: Iterable[tuple[list[str], float]]) -> tuple[Hypothesis, ...]:
        """Hypotheses, best first; of equal texts the best is kept, and empty ones only if all are empty."""
        found: dict[str, Hypothesis] = {}
        for tokens, score in scored:
            if math.isnan(score):
                raise CadecError("the S-NMT's scores are not numbers: it is damaged", _DAMAGED)
            ids = self._ids(tokens)
            text = self._target.decode(ids)
            if text not in found:
                found[text] = Hypothesis(text, float(score), ids)
        written = [hypothesis for text, hypothesis in found.items() if text]
        return tuple(written or found.values())

    def _ids(self, tokens: Sequence[str]) -> tuple[int, ...]:
        try:
            return tuple(self._target_ids[piece] for piece in tokens)
        except KeyError as error:
            raise CadecError(
                f"the translation model writes {error}, which its text pipeline does not know",
                _DAMAGED,
            ) from None


def _of_one_size(sizes: Iterable[Any]) -> list[list[int]]:
    """Groups of places with equal sizes, the largest first: the slowest work must not come last."""
    places: dict[Any, list[int]] = {}
    for place, size in enumerate(sizes):
        places.setdefault(size, []).append(place)
    return [places[size] for size in sorted(places, reverse=True)]


def _first(nbest: NBest) -> str:
    return nbest.hypotheses[0].text if nbest.hypotheses else ""


def _has_room(sentence: str, text: TokenText, room: int) -> bool:
    # A character is at most four tokens: rare ones are split into bytes.
    return 4 * len(sentence) <= room or len(text.encode(sentence)) <= room


def framing_for(
    settings: TranslationSettings, source_language: str | None, target_language: str | None
) -> Framing:
    """The tokens around sentences of a direction; a language unknown to the model is a CadecError."""
    own = {
        SOURCE: language_token(source_language, settings.source_languages, "source"),
        TARGET: language_token(target_language, settings.target_languages, "target"),
    }

    def fill(tokens: Sequence[str]) -> tuple[str, ...]:
        return tuple(own.get(token, token) for token in tokens)

    return Framing(
        source_begin=fill(settings.source_begin),
        source_end=fill(settings.source_end),
        target_begin=fill(settings.target_begin),
    )
