"""Flags that several commands have: each is written once."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cadec_cli.commands.choices import one_of
from cadec_cli.commands.sizes import size_in_bytes
from cadec_cli.crews.shares import Shard
from cadec_cli.engines.compute_types import COMPUTE_TYPES
from cadec_cli.files import MAX_INPUT_BYTES, size_name
from cadec_cli.method.objectives import DOCUMENT_OBJECTIVES, OBJECTIVES

# What the tables in text.formats, evaluation.contrastive and evaluation.tuning hold, without the time that
# importing those takes: --help has to be quick.
FORMATS = ("text", "jsonl", "srt", "vtt", "ass", "ssa")
LAYOUTS = ("voita", "contrapro", "discevalmt", "jsonl")
PROTOCOLS = ("best", "strongest")

POOL_ENGINES = ("processes", "ray")

DEVICES = ("auto", "cpu", "cuda")
NUMBERED_GPU = r"cuda:\d+"

BundleOption = Annotated[
    Path | None,
    typer.Option(
        "--bundle",
        "-b",
        help="The bundle to use. [dim]\\[default: CADEC_BUNDLE, else the embedded one][/dim]",
        show_default=False,
    ),
]
BundleArgument = Annotated[
    Path | None,
    typer.Argument(
        help="The bundle to look at. [dim]\\[default: CADEC_BUNDLE, else the embedded one][/dim]",
        show_default=False,
    ),
]
SourceLanguage = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="Language to translate from, if the S-NMT knows several. [dim]\\[default: the bundle's][/dim]",
        show_default=False,
        metavar="LANGUAGE",
    ),
]
TargetLanguage = Annotated[
    str | None,
    typer.Option(
        "--to",
        help="Language to translate to, if the models know several. [dim]\\[default: the bundle's][/dim]",
        show_default=False,
        metavar="LANGUAGE",
    ),
]
Device = Annotated[
    str,
    one_of(DEVICES, "--device", help="Device to compute on; cuda:1 is the second GPU.", also=NUMBERED_GPU),
]
ComputeType = Annotated[
    str,
    one_of(
        COMPUTE_TYPES,
        "--compute-type",
        help="Number format: int8 or float32; on a GPU also int8_float16, float16 or bfloat16.",
    ),
]
ExactComputeType = Annotated[
    str,
    one_of(
        COMPUTE_TYPES,
        "--compute-type",
        help="Number format: float32, or int8 (faster; scores vary by about 0.01); on a GPU also "
        "int8_float16, float16 or bfloat16.",
    ),
]
InputFormat = Annotated[
    str | None, one_of(FORMATS, "--format", help="Format of the input, whatever its name.")
]
Threads = Annotated[
    int, typer.Option(help="Number of CPU threads; 0 means all cores, and one for each worker.", min=0)
]
_MANY = "Many documents"


def _workers(does: str, alone: str = "this process alone") -> Any:
    """--workers of those who each do something."""
    return typer.Option(
        "--workers",
        help=f"Number of processes that each hold the models and {does}; the result is the same for any "
        f"number. 0 is {alone}. With ray, 0 is as many as the cluster has room for.",
        min=0,
        max=10_000,
        rich_help_panel=_MANY,
    )


Workers = Annotated[
    int, _workers("take document after document", "this process alone, all documents in step")
]
ScoringWorkers = Annotated[int, _workers("score a part of the groups")]
LineWorkers = Annotated[int, _workers("translate a part of the lines")]
Engine = Annotated[
    str,
    one_of(
        POOL_ENGINES, "--engine", help="Where workers run: on this machine, or on a Ray cluster.", panel=_MANY
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        help="The Ray cluster: host:port, ray://…, or auto for the one on this machine. "
        "[dim]\\[default: one is started here, for as long as it takes][/dim]",
        show_default=False,
        metavar="ADDRESS",
        rich_help_panel=_MANY,
    ),
]
ShardOption = Annotated[
    Shard | None,
    typer.Option(
        "--shard",
        help="Translate one part of the files, the second of eight with 2/8: a job for each part does all of "
        "them. Parts are about equal in size.",
        parser=Shard.parse,
        show_default=False,
        metavar="I/N",
        rich_help_panel=_MANY,
    ),
]
After = Annotated[
    Path | None,
    typer.Option(
        "--after",
        help="What comes before, in the target language: the last episode, a letter. Its last sentences are "
        "the context of the first ones here.",
        show_default=False,
        metavar="FILE",
    ),
]
Lines = Annotated[bool, typer.Option("--lines", help="Every line is one sentence: do not split lines.")]
TranslationOutput = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="File to write, in the format of its name (.srt, .vtt, .ass, .txt, .jsonl); a directory, for "
        "names such as film.ru.srt; or a template: '{stem}.{to}{ext}', '{from}', '{name}'. stdout if "
        "omitted.",
    ),
]
OutputEncoding = Annotated[
    str, typer.Option(help="Encoding of the output. A byte order mark in UTF-8 stays.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace outputs that exist already.")]
Encoding = Annotated[str, typer.Option(help="Encoding of the input.")]
MaxInput = Annotated[
    int,
    typer.Option(
        "--max-input",
        help="Refuse texts that are larger than this when decompressed, e.g. 500MB or 2GB. "
        f"[dim]\\[default: {size_name(MAX_INPUT_BYTES)}][/dim]",
        parser=size_in_bytes,
        metavar="SIZE",
        show_default=False,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        help="Weights of the objective by name, as lm=0.5; a bare number is the D-LM's. "
        "[dim]\\[default: the bundle's for its own objective, else c-score 1, the fusions 0.1][/dim]",
        show_default=False,
    ),
]
Alpha = Annotated[float, typer.Option(help="Add-alpha smoothing of the D-LM's probabilities.", min=0)]
ContextSize = Annotated[
    int | None,
    typer.Option(
        help="Number of target sentences before that count as context. [dim]\\[default: the bundle's][/dim]",
        min=0,
        show_default=False,
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        help="Also write a page to look at in a browser: one HTML file that needs nothing else.",
        metavar="FILE.html",
    ),
]
SetLayout = Annotated[
    str | None, one_of(LAYOUTS, "--format", help="Layout of the sets. Detected if omitted.")
]

# what contrastive tests can score with
CONTRASTIVE_OBJECTIVES = (*OBJECTIVES, *DOCUMENT_OBJECTIVES)
OBJECTIVE_NAMES = ", ".join(CONTRASTIVE_OBJECTIVES)

# Help of --for-beam, which stands in different panels.
FOR_BEAM = (
    "Also keep the S-NMT's original network, which --search beam needs (Hugging Face models only). "
    "This makes the bundle larger."
)
