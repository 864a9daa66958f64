"""`cadec convert`: models trained here or elsewhere to a bundle, and a bundle's models to CTranslate2."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cadec_cli.engines.compute_types import COMPUTE_TYPES
from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.method.options import DecodingDefaults
from cadec_cli.terminal.flags import FOR_BEAM, Force, MaxInput, flags_of, one_of

# The kinds of converters.detect, repeated because importing that takes time.
NMT_KINDS = ("huggingface", "marian", "fairseq", "opennmt", "ctranslate2")

# As in converters.request.
VOCABULARIES = ("fit", "full")

_PARTS = "Parts"
_PRETRAINED = "Pretrained models"


@flags_of("bundle's", decoding_defaults_of_the_bundle=DecodingDefaults)
def convert(
    flags: dict[str, Any],
    bundle: Annotated[
        Path | None, typer.Argument(help="An existing bundle to complete or change.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The bundle to write. Without it, BUNDLE itself is changed."),
    ] = None,
    force: Force = False,
    nmt: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="The S-NMT: a model directory or training run of cadec; a directory or id of Hugging Face "
            "(MarianMT, M2M100, NLLB, mBART-50, T5, MADLAD); a Marian, fairseq, OpenNMT-py or CTranslate2 "
            "model.",
            rich_help_panel=_PARTS,
        ),
    ] = None,
    lm: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="The D-LM (optional): a model directory or training run of cadec, a directory or id of "
            "Hugging Face with a causal language model, or a GGUF file.",
            rich_help_panel=_PARTS,
        ),
    ] = None,
    source_pipeline: Annotated[
        Path | None,
        typer.Option(
            help="The source language's text pipeline, of a model trained here.", rich_help_panel=_PARTS
        ),
    ] = None,
    target_pipeline: Annotated[
        Path | None,
        typer.Option(
            help="The target language's text pipeline, of a model trained here.", rich_help_panel=_PARTS
        ),
    ] = None,
    lm_pipeline: Annotated[
        Path | None,
        typer.Option(
            help="The D-LM's text pipeline, if it is not the target language's.", rich_help_panel=_PARTS
        ),
    ] = None,
    back: Annotated[
        Path | None,
        typer.Option(
            metavar="BUNDLE",
            help="A bundle of the other direction, whose S-NMT scores the source for --objective bayes.",
            rich_help_panel=_PARTS,
        ),
    ] = None,
    doc_nmt: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="A DocTransformer, from `cadec train doc-nmt`, for --search doc-nmt.",
            rich_help_panel=_PARTS,
        ),
    ] = None,
    two_to_two: Annotated[
        Path | None,
        typer.Option(
            "--2-to-2",
            metavar="RUN",
            help="A model of two sentences joined, from `cadec train 2-to-2`, for --search 2-to-2.",
            rich_help_panel=_PARTS,
        ),
    ] = None,
    repair: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="A DocRepair model, from `cadec train repair`, for --search repair and `cadec repair`.",
            rich_help_panel=_PARTS,
        ),
    ] = None,
    card: Annotated[
        Path | None, typer.Option(help="A model card (Markdown) to include.", rich_help_panel=_PARTS)
    ] = None,
    source_language: Annotated[
        str | None,
        typer.Option(
            metavar="LANGUAGE",
            help="Language that the S-NMT translates from, e.g. en; turned into the model's own code.",
            show_default="what the model says",
            rich_help_panel=_PRETRAINED,
        ),
    ] = None,
    target_language: Annotated[
        str | None,
        typer.Option(
            metavar="LANGUAGE",
            help="Language that it translates to, and that the D-LM reads.",
            show_default="what the model says",
            rich_help_panel=_PRETRAINED,
        ),
    ] = None,
    nmt_kind: Annotated[
        str | None,
        one_of(
            NMT_KINDS,
            "--nmt-kind",
            help="Kind of the model --nmt: huggingface, marian, fairseq, opennmt or ctranslate2.",
            show_default="detected",
            panel=_PRETRAINED,
        ),
    ] = None,
    source_tokenizer: Annotated[
        Path | None,
        typer.Option(
            help="The S-NMT's tokenizer, if it is not beside the model: a SentencePiece model, "
            "tokenizer.json or BPE codes.",
            rich_help_panel=_PRETRAINED,
        ),
    ] = None,
    target_tokenizer: Annotated[
        Path | None,
        typer.Option(
            help="Its target side's tokenizer.", show_default="the same", rich_help_panel=_PRETRAINED
        ),
    ] = None,
    no_context: Annotated[
        str | None,
        typer.Option(
            help="Text that the D-LM reads if there is no context: texts (the mean over short neutral texts, "
            "which come with cadec), start (nothing), or a file with texts of your own, a blank line between "
            "them.",
            rich_help_panel=_PRETRAINED,
            show_default="texts, if cadec has some in the language",
        ),
    ] = None,
    template: Annotated[
        Path | None,
        typer.Option(
            help="File with the lines by which the D-LM reads a sentence and its translation, if it reads "
            "pairs: {source} stands in one of them, and the last one ends with {target}.",
            rich_help_panel=_PRETRAINED,
            show_default="two lines: {source}, {target}",
        ),
    ] = None,
    vocabulary: Annotated[
        str | None,
        one_of(
            VOCABULARIES,
            "--vocabulary",
            help="Tokens that the D-LM predicts: those that the S-NMT's translations can need (fit: faster, "
            "and with less memory), or all (full).",
            show_default="fit; BUNDLE's D-LM stays as it is",
            panel=_PRETRAINED,
        ),
    ] = None,
    link: Annotated[
        bool,
        typer.Option(
            "--link",
            help="Link the D-LM's weights instead of copying them: the bundle then works on this machine, as "
            "long as they stay where they are.",
            rich_help_panel=_PRETRAINED,
        ),
    ] = False,
    for_beam: Annotated[
        bool,
        typer.Option(
            "--for-beam",
            help=FOR_BEAM,
            rich_help_panel=_PRETRAINED,
        ),
    ] = False,
    compute_type: Annotated[
        list[str] | None,
        one_of(
            COMPUTE_TYPES,
            "--compute-type",
            help=f"Convert the S-NMT for CTranslate2 to {', '.join(COMPUTE_TYPES[:-1])} or "
            f"{COMPUTE_TYPES[-1]}. Can be repeated. A type that the bundle lacks is converted when it is "
            "first needed, into a cache; pretrained models are converted to int8 unless others are named.",
            show_default=False,
        ),
    ] = None,
    half: Annotated[
        bool, typer.Option("--half", help="Store the weights in float16, at half the size.")
    ] = False,
    probes: Annotated[
        Path | None,
        typer.Option(
            help="Verify conversions with the first hundred sentence pairs of this file too: source TAB "
            "target, one pair per line."
        ),
    ] = None,
    lengths_from: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="SOURCE TARGET",
            help="Learn the limits of translation lengths from two files, a text and its translation line by "
            "line, such as a development set: decoding then gives up endless sentences earlier. "
            "A thousand pairs are enough.",
            show_default="BUNDLE's, else 2 × source + 20 tokens",
        ),
    ] = None,
    max_input: MaxInput = MAX_INPUT_BYTES,
    name: Annotated[
        str,
        typer.Option(help="The bundle's display name.", show_default="BUNDLE's, else the directory's name"),
    ] = "",
) -> None:
    """Build a bundle from trained or pretrained models, or complete one.

    Nothing is written before all parts are checked. The kind of a pretrained model is detected; its tokenizer
    is included, and its conversion is compared with the original, token by token.

    Example: cadec convert --nmt opus-mt-en-fr --lm gemma-3-270m.gguf -o en-fr

    Example: cadec convert --nmt facebook/nllb-200-distilled-600M --source-language en
    --target-language ru -o nllb

    Example: cadec convert --nmt runs/nmt --lm runs/lm --source-pipeline pipelines/en
    --target-pipeline pipelines/ru -o en-ru --compute-type int8 --half

    Example: cadec convert en-ru --compute-type float32

    Example: cadec convert en-ru --lm runs/better-lm --context 2
    """
    written = output or bundle
    if written is None:
        raise typer.BadParameter("name the bundle to write", param_hint="--output")

    from cadec_cli.bundle.build import BundleRequest, build_bundle
    from cadec_cli.bundle.find import is_embedded
    from cadec_cli.bundle.manifest import read_manifest
    from cadec_cli.fs.paths import resolve_path
    from cadec_cli.jobs.outputs import check_outputs
    from cadec_cli.method.options import with_flags
    from cadec_cli.terminal import console
    from converters import PretrainedRequest

    if is_embedded(written):
        raise typer.BadParameter(
            "the bundle that came with cadec can't be changed; name another one", param_hint="--output"
        )
    # If both name the same bundle, changing it is the purpose.
    if bundle is None or resolve_path(written) != resolve_path(bundle):
        parts = [nmt, lm, source_pipeline, target_pipeline, lm_pipeline, back, doc_nmt, two_to_two, repair]
        check_outputs(
            [written],
            inputs=[bundle, *parts, card, probes, *(lengths_from or ())],
            force=force,
            directories=True,
        )
    defaults = read_manifest(bundle).defaults if bundle is not None else DecodingDefaults()
    defaults = with_flags(defaults, flags)
    with console.progress() as bar:
        bar.add_task("check, convert, verify", total=None)
        drifts = build_bundle(
            written,
            BundleRequest(
                base=bundle,
                source=source_pipeline,
                target=target_pipeline,
                nmt=nmt,
                lm=lm,
                lm_pipeline=lm_pipeline,
                back=back,
                documents={
                    kind: run
                    for kind, run in (("doc-nmt", doc_nmt), ("2-to-2", two_to_two), ("repair", repair))
                    if run is not None
                },
                pretrained=PretrainedRequest(
                    kind=nmt_kind,
                    source_language=source_language,
                    target_language=target_language,
                    source_tokenizer=source_tokenizer,
                    target_tokenizer=target_tokenizer,
                    no_context=no_context,
                    template=_template(template) if template is not None else None,
                    link=link,
                    vocabulary=vocabulary,
                    for_beam=for_beam,
                ),
                name=name,
                defaults=defaults,
                chosen=frozenset(name for name, value in flags.items() if value is not None),
                pairs=_sentence_pairs(*lengths_from, most=max_input) if lengths_from is not None else [],
                half=half,
                compute_types=compute_type or [],
                card=card,
                probes=_pairs(probes) if probes is not None else [],
            ),
            console.note,
        )
    for drift in drifts:
        console.note(f"verified: {drift}")
    console.note(f"{written}: {_summary(written)}")


def _template(path: Path) -> str:
    """The template in a file; a CadecError if it is none."""
    from cadec_cli.fs.read import read_lines
    from cadec_cli.text.tokenizers.line_text import PairTemplate

    return PairTemplate("".join(f"{line}\n" for line in read_lines(path))).text


def _summary(directory: Path) -> str:
    from cadec_cli.bundle.manifest import PART_NAMES, read_manifest

    manifest = read_manifest(directory)
    models = [what for part, what in PART_NAMES.items() if part in manifest.parts]
    languages = " → ".join(filter(None, (manifest.source_language, manifest.target_language)))
    size = sum(entry.size for entry in manifest.files.values())
    told = [languages, *models, *manifest.conversions, f"{size / 1e6:,.1f} MB"]
    if manifest.lengths is not None:
        told.append(f"translations up to {manifest.lengths}")
    return ", ".join(told)


def _sentence_pairs(source: Path, target: Path, *, most: int) -> list[tuple[str, str]]:
    """The sentence pairs of two files."""
    from cadec_cli.evaluation.aligned import read_aligned
    from cadec_cli.terminal import console

    one, other = read_aligned([source, target], warn=console.warn, most=most)
    return list(zip(one.sentences, other.sentences, strict=True))


def _pairs(path: Path) -> list[tuple[str, str]]:
    """The first hundred sentence pairs of a tab-separated file."""
    import itertools

    from cadec_cli.errors import CadecError
    from cadec_cli.fs.read import read_lines

    pairs = []
    for number, line in enumerate(itertools.islice(filter(None, read_lines(path)), 100), 1):
        columns = line.split("\t")
        if len(columns) < 2:
            raise CadecError(f"{path}: sentence {number} has no tab", "each line is source TAB target")
        pairs.append((columns[0], columns[1]))
    return pairs
