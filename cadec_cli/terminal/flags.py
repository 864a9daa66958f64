"""The flags that several commands share, each defined once."""

import dataclasses
import difflib
import inspect
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from cadec_cli.engines.compute_types import COMPUTE_TYPES
from cadec_cli.errors import as_flags
from cadec_cli.fs.read import MAX_INPUT_BYTES, size_name
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.method.objectives import DOCUMENT_OBJECTIVES, OBJECTIVES, READINGS
from cadec_cli.method.terms import describe_term_options
from cadec_cli.parallel import JobShard
from cadec_cli.text.formats import FORMATS

# A few names, or a function that finds names: installed packages are searched only when one is needed.
Names = Iterable[str] | Callable[[], Iterable[str]]

# A longer list of names would leave too little room for the help text, which then has to list them.
_MAX_METAVAR = 34

# The names that replace placeholders in help texts: known formats, objectives and terms.
_LISTS: dict[str, Callable[[], Iterable[str]]] = {
    "{formats}": lambda: FORMATS,
    "{endings}": lambda: [ending for known in FORMATS.usable() for ending in known.endings[:1]],
    "{objectives}": lambda: OBJECTIVES,
    "{term_options}": lambda: list(describe_term_options()) or ["none"],
    "{scorers}": lambda: contrastive_objectives(),
}


def fill_lists(text: str) -> str:
    """Replace placeholders such as {formats} in a help text by the names they stand for.

    This is done when the help is shown, because it searches installed packages.
    """
    for placeholder, find_names in _LISTS.items():
        if placeholder in text:
            # the backslash keeps brackets in texts of packages from being read as markup
            text = text.replace(placeholder, ", ".join(find_names()).replace("[", r"\["))
    return text


def fill_help(command: Any) -> None:
    """Replace the placeholders in the help of all parameters of a command."""
    for parameter in command.params:
        if getattr(parameter, "help", None):
            parameter.help = fill_lists(parameter.help)


def one_of(
    names: Names,
    *declarations: str,
    help: str,
    also: str = "",
    panel: str | None = None,
    show_default: bool | str = True,
) -> Any:
    """An option that takes one of some names, or a value that matches the regular expression `also`.

    The shell completes the names, and any other value is refused. The help shows the names in place of the
    value if they fit there; else `help` has to list them.
    """
    return typer.Option(
        *declarations,
        help=help,
        metavar=metavar(names),
        callback=_check_choice(names, also),
        autocompletion=complete_from(names),
        rich_help_panel=panel,
        show_default=show_default,
    )


def metavar(names: Names) -> str:
    """The text that help shows in place of the value."""
    shown = "" if callable(names) else f"<{'|'.join(names)}>"
    return shown if 0 < len(shown) <= _MAX_METAVAR else "<name>"


def complete_from(names: Names) -> Callable[[str], list[str]]:
    """Make a function that completes the typed text to one of the names."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names_of(names) if name.startswith(incomplete)]

    return complete


def names_of(names: Names) -> tuple[str, ...]:
    """The names as a tuple."""
    return tuple(names() if callable(names) else names)


def _check_choice(names: Names, also: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        given = value if isinstance(value, list | tuple) else [] if value is None else [value]
        for one in given:
            if one not in (known := names_of(names)) and not (also and re.fullmatch(also, one)):
                near = difflib.get_close_matches(one, known, n=1)
                meant = f" Did you mean {near[0]}?" if near else ""
                raise typer.BadParameter(f"{one!r} is not one of {', '.join(known)}.{meant}")
        return value

    return check


# Command-line flags made of option dataclasses, so that an option is described in one place only.


def flags_of(source: str = "", **panels: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a flag for every field of some dataclasses; it gets the given ones as a dict `flags`.

    Each dataclass's flags are in a help panel of their own, named by the keyword. `source` is where the value
    of a missing flag comes from, before its default: "bundle's" is shown as [default: the bundle's, else 20].
    Fields without a default are not for users to set, and get no flag.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters = [p for p in inspect.signature(command).parameters.values() if p.name != "flags"]
        hints = {
            name: hint
            for name, hint in get_type_hints(command, include_extras=True).items()
            if name != "flags"
        }
        names = []
        for panel, kind in panels.items():
            for item in dataclasses.fields(kind):
                if item.default is dataclasses.MISSING:
                    continue
                title = _RARE if item.metadata.get("rare") else panel.replace("_", " ").capitalize()
                annotation = _flag(item, title, source)
                names.append(item.name)
                hints[item.name] = annotation
                parameters.append(
                    inspect.Parameter(
                        item.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
                    )
                )

        def run(**arguments: Any) -> None:
            values = ((name, arguments.pop(name)) for name in names)
            given = {name: value for name, value in values if value is not None and value != []}
            command(**arguments, flags=given)

        _take_over(run, command, parameters, hints)
        return run

    return decorate


def _take_over(
    run: Callable[..., None],
    command: Callable[..., None],
    parameters: list[inspect.Parameter],
    hints: dict[str, Any],
) -> None:
    """Make a function a command's replacement: the same name and help, with other parameters."""
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    # inspect reads this attribute; the type of functions does not have it
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = hints


def _flag(item: "dataclasses.Field[Any]", panel: str, source: str) -> Any:
    kind = item.metadata.get("type", type(item.default))
    name = "--" + item.name.replace("_", "-")
    declaration = f"{name}/--no-{name[2:]}" if kind is bool else name
    text = _sentence(as_flags(item.metadata["help"]))
    if item.default not in (None, ""):
        default = item.default
        if kind is bool:
            default = "on" if item.default else "off"
        if not item.metadata.get("stored", True):
            source = ""
        # The backslash keeps the help from reading the bracket as markup.
        text += f" [dim]\\[default: {f'the {source}, else ' if source else ''}{default}][/dim]"
    if names := item.metadata.get("choices", ()):
        also = item.metadata.get("also", "")
        return Annotated[
            str | None, one_of(names, declaration, help=text, also=also, panel=panel, show_default=False)
        ]
    return Annotated[
        kind | None,
        typer.Option(
            declaration,
            help=text,
            rich_help_panel=panel,
            show_default=False,
            metavar=item.metadata.get("metavar"),
        ),
    ]


def _sentence(text: str) -> str:
    """Turn a help text, which is a phrase in tables of options, into a sentence."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "…")) else ".")


# Sizes as people write them: 64MB, 1.5GB, 200MiB.


_UNITS = {"": 1, "B": 1, **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)}}
_UNITS |= {f"{letter}IB": 1024**power for power, letter in enumerate("KMGT", 1)}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,3})?) ?([A-Za-z]{0,3})")


def size_in_bytes(text: str | int) -> int:
    """Parse a size such as 64MB into bytes; anything else is a usage error."""
    match = _SIZE.fullmatch(str(text))
    unit = _UNITS.get(match[2].upper()) if match else None
    size = int(float(match[1]) * unit) if match and unit else 0
    if size < 1:
        raise typer.BadParameter(f"invalid size {text!r}: give a number and a unit, such as 500MB or 2GB.")
    return size


# The names in tables of evaluation, repeated because importing those takes time, and --help has to be quick.
LAYOUTS = ("voita", "contrapro", "discevalmt", "jsonl")
PROTOCOLS = ("best", "strongest")
GENERATIVE_RULES = ("words", "ctxpro")
CHECK_NAMES = (
    *("aligned", "empty", "untranslated", "language", "copied", "tags", "numbers", "damage", "repeated"),
    *("length", "names", "address", "pmi"),
)
SEVERITY_LEVELS = ("error", "warning", "hint", "never")

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
    str | None,
    one_of(lambda: FORMATS, "--format", help="Format of the input, whatever its name: {formats}."),
]
Threads = Annotated[
    int, typer.Option(help="Number of CPU threads; 0 means all cores, and one for each worker.", min=0)
]
_MANY = "Many documents"
_RARE = "Rarely needed"


def _workers(does: str, alone: str = "this process alone") -> Any:
    """The option --workers; `does` says what each worker does."""
    return typer.Option(
        "--workers",
        help=f"Number of processes that each hold the models and {does}; the result is the same for any "
        f"number. 0 means {alone}; with ray, as many as the cluster has room for.",
        min=0,
        max=10_000,
        rich_help_panel=_MANY,
    )


Workers = Annotated[
    int, _workers("take document after document", "this process alone, all documents in step")
]
ScoringWorkers = Annotated[int, _workers("score a part of the groups")]
ItemWorkers = Annotated[int, _workers("translate a part of the items")]
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
        "[dim]\\[default: one that is started here for this command][/dim]",
        show_default=False,
        metavar="ADDRESS",
        rich_help_panel=_MANY,
    ),
]
ShardOption = Annotated[
    JobShard | None,
    typer.Option(
        "--shard",
        help="Translate one part of the files, e.g. with 2/8 the second of eight. Run one job per part to "
        "translate all files. Parts are about equal in size.",
        parser=JobShard.parse,
        show_default=False,
        metavar="I/N",
        rich_help_panel=_MANY,
    ),
]
After = Annotated[
    Path | None,
    typer.Option(
        "--after",
        help="A preceding text in the target language, such as the last episode or a letter. Its last "
        "sentences are the context of the first sentences here. With its source (SOURCE=TARGET), all of it "
        "is also a --memory, as is a file in .tmx, .tsv, .po or XLIFF.",
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
        help="File to write, in the format of its name ({endings}); a directory, for "
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


def weights(more: str = "") -> Any:
    """The option --weight; `more` is added to its help."""
    default = "[dim]\\[default: the bundle's for its own objective, else c-score 1, the fusions 0.1][/dim]"
    what = "Weights of the objective by name, such as lm=0.5; a bare number is the D-LM's."
    return typer.Option("--weight", help=" ".join(filter(None, (what, more, default))), show_default=False)


Weight = Annotated[str | None, weights()]
_BUNDLES = "[dim]\\[default: the bundle's][/dim]"
# What is tried: all values of an option that `tune` and the evaluations repeat for several.
Objective = Annotated[
    str | None,
    one_of(lambda: OBJECTIVES, "--objective", help=f"Objective to maximise: {{objectives}}. {_BUNDLES}"),
]
Objectives = Annotated[
    list[str] | None,
    one_of(
        lambda: OBJECTIVES,
        "--objective",
        help=f"Objective to maximise: {{objectives}}. Can be repeated. {_BUNDLES}",
    ),
]


def temperatures(help: str = f"Softmax temperature T of the D-LM. Can be repeated. {_BUNDLES}") -> Any:
    """The option --temperature, which can be repeated."""
    return typer.Option("--temperature", "-T", help=help, show_default=False)


def list_size(least: int = 1, more: str = "") -> Any:
    """The option --nbest; `more` is added to its help."""
    help = " ".join(filter(None, ("Number of hypotheses per sentence.", more, _BUNDLES)))
    return typer.Option("--nbest", help=help, min=least, show_default=False)


TermOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--term",
        help="Option of a term that an installed package adds. Can be repeated. Installed: {term_options}.",
        metavar="TERM.OPTION=VALUE",
        show_default=False,
    ),
]
Alpha = Annotated[float, typer.Option(help="Add-alpha smoothing of the D-LM's probabilities.", min=0)]
ContextSize = Annotated[
    int | None,
    typer.Option(
        help="Number of preceding target sentences to read. [dim]\\[default: the bundle's][/dim]",
        min=0,
        show_default=False,
    ),
]
Retrieved = Annotated[
    int | None,
    typer.Option(
        "--retrieve",
        help="Number of earlier sentences to read because they share rare source words with the current one. "
        "[dim]\\[default: the bundle's][/dim]",
        min=0,
        show_default=False,
    ),
]
Reads = Annotated[
    str | None,
    one_of(
        READINGS,
        "--reads",
        help="What the D-LM reads: target, pairs or both. [dim]\\[default: the bundle's][/dim]",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        help="Also write a report for the browser: one self-contained HTML file.",
        metavar="FILE.html",
    ),
]
SetLayout = Annotated[
    str | None, one_of(LAYOUTS, "--format", help="Layout of the sets. Detected if omitted.")
]

_MODEL_FLAGS: dict[str, Any] = {
    "bundle": BundleOption,
    "source_language": SourceLanguage,
    "target_language": TargetLanguage,
    "device": Device,
    "compute_type": ComputeType,
    "threads": Threads,
}
_MACHINE = ("device", "compute_type", "threads")

# Defaults of a command's `models`; contrastive tests need exact scores.
MODELS = ModelRequest()
EXACT_MODELS = ModelRequest(compute_type="float32")


def model_flags(
    *without: str, compute_type: Any = ComputeType
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the flags of a `ModelRequest`, except for some; it gets the request as `models`.

    Flags for the bundle and the languages take the place of `models` in the help; the others come last.
    Their defaults are those of the command's default for `models`. `compute_type` describes --compute-type.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        given = inspect.signature(command).parameters
        default = given["models"].default
        hints = get_type_hints(command, include_extras=True)
        del hints["models"]
        flags = {
            name: inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=getattr(default, name),
                annotation=compute_type if name == "compute_type" else annotation,
            )
            for name, annotation in _MODEL_FLAGS.items()
            if name not in without
        }
        parameters: list[inspect.Parameter] = []
        for name, parameter in given.items():
            if name == "models":
                parameters += [flag for field, flag in flags.items() if field not in _MACHINE]
            else:
                kind = inspect.Parameter.KEYWORD_ONLY
                parameters.append(parameter.replace(kind=kind, annotation=hints[name]))
        parameters += [flag for field, flag in flags.items() if field in _MACHINE]
        hints |= {name: flag.annotation for name, flag in flags.items()}

        def run(**arguments: Any) -> None:
            models = {name: arguments.pop(name) for name in flags}
            command(**arguments, models=dataclasses.replace(default, **models))

        _take_over(run, command, parameters, hints)
        return run

    return decorate


def contrastive_objectives() -> tuple[str, ...]:
    """The names of all objectives that contrastive tests can score with."""
    return (*OBJECTIVES, *DOCUMENT_OBJECTIVES)


# Help of --for-beam, which is in different panels.
FOR_BEAM = (
    "Also keep the S-NMT's original network, which --search beam needs (Hugging Face models only). "
    "This makes the bundle larger."
)
