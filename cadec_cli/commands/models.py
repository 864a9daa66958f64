"""`cadec models`: models by name, from the catalogue or from a directory."""

from pathlib import Path
from typing import Annotated

import typer

from cadec_cli.terminal.app import new_app
from cadec_cli.terminal.flags import FOR_BEAM

models_app = new_app("Get models by name, and manage the local ones.")

Name = Annotated[
    str, typer.Argument(help="The name of a bundle that was pulled or added.", show_default=False)
]


@models_app.command("list")
def list_models(
    json_lines: Annotated[bool, typer.Option("--json", help="Write one JSON object per model.")] = False,
) -> None:
    """List the models that can be pulled, and the local bundles.

    Any OPUS-MT pair can be pulled, listed or not: opus-mt-SOURCE-TARGET.

    Example: cadec models list
    """
    import json
    import sys

    from cadec_cli.bundle.catalogue import language_models, translation_models
    from cadec_cli.bundle.find import named_bundles
    from cadec_cli.terminal.views import bundles as views
    from converters.hub import fetched_before

    listed = (translation_models().values(), language_models().values())
    fetched = fetched_before()
    if json_lines:
        for record in views.catalogue_records(*listed, fetched):
            sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
        for name, directory in named_bundles().items():
            record = {"kind": "bundle", "name": name, "directory": str(directory)}
            sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
        return
    views.show_catalogue(*listed, named_bundles(), fetched)


@models_app.command("pull")
def pull_models(
    name: Annotated[
        str,
        typer.Argument(
            help="A translation model, a language model, or both: opus-mt-en-ru+gemma-3-270m.",
            show_default=False,
        ),
    ],
    source_language: Annotated[
        str | None,
        typer.Option("--from", metavar="LANGUAGE", help="Language to translate from, if the model has many."),
    ] = None,
    target_language: Annotated[
        str | None,
        typer.Option("--to", metavar="LANGUAGE", help="Language to translate to; or the language model's."),
    ] = None,
    called: Annotated[str, typer.Option("--name", help="Name for the bundle.", show_default="NAME")] = "",
    for_beam: Annotated[
        bool,
        typer.Option(
            "--for-beam",
            help=FOR_BEAM,
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a bundle of that name.")] = False,
) -> None:
    """Fetch models from the Hugging Face hub, convert and verify them; the bundle is then used by its name.

    Files in the hub's cache are not fetched again, and an interrupted transfer continues. HF_ENDPOINT,
    HF_TOKEN and HF_HUB_OFFLINE work as in the hub's own client.

    Example: cadec models pull opus-mt-en-ru+gemma-3-270m

    Example: cadec translate film.srt --bundle opus-mt-en-ru+gemma-3-270m

    Example: cadec models pull nllb-600m+qwen3-0.6b --from en --to ru
    """
    from cadec_cli.bundle.catalogue import find_models, pull
    from cadec_cli.terminal import console

    chosen = find_models(name)
    for entry in chosen.entries:
        size = f", about {entry.megabytes:,} MB" if entry.megabytes is not None else ""
        console.note(f"{entry.name}: {entry.repository}{size}, licence {entry.licence}")
    pulled = pull(
        chosen,
        source=source_language,
        target=target_language,
        name=called,
        force=force,
        for_beam=for_beam,
        note=console.note,
    )
    for drift in pulled.drifts:
        console.note(f"verified: {drift}")
    console.note(f"{pulled.directory.name} is ready: cadec translate FILE --bundle {pulled.directory.name}")


@models_app.command("add")
def add_model(
    bundle: Annotated[
        Path, typer.Argument(help="A bundle, as `cadec convert` makes them.", show_default=False)
    ],
    called: Annotated[
        str, typer.Option("--name", help="Name for the bundle.", show_default="the directory's name")
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace a bundle of that name.")] = False,
) -> None:
    """Copy a bundle to the directory of named bundles, so that it can be used by its name.

    Example: cadec models add build/en-ru --name mine
    """
    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.bundle.find import path_of
    from cadec_cli.bundle.integrity import copy_files
    from cadec_cli.bundle.manifest import MANIFEST
    from cadec_cli.errors import CadecError
    from cadec_cli.fs.atomic import atomic_directory
    from cadec_cli.terminal import console

    opened = Bundle.open(bundle)
    directory = path_of(called or bundle.resolve().name)
    if directory.exists() and not force:
        raise CadecError(
            f"{directory.name} is there already", "choose another --name, or replace it with --force"
        )
    with atomic_directory(directory, marker=MANIFEST) as part:
        copy_files(opened.directory, opened.manifest, opened.manifest.files, part)
        (part / MANIFEST).write_bytes(opened.manifest.content())
    console.note(f"{directory.name} is ready: cadec translate FILE --bundle {directory.name}")


@models_app.command("info")
def model_info(
    name: Annotated[str, typer.Argument(help="A bundle's name, or a model's.", show_default=False)],
    json_lines: Annotated[bool, typer.Option("--json", help="Write one JSON object.")] = False,
) -> None:
    """Show the details of a local bundle, or of a model that can be pulled.

    Example: cadec models info opus-mt-en-ru
    """
    import dataclasses
    import json
    import sys

    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.bundle.catalogue import find_models
    from cadec_cli.bundle.describe import describe
    from cadec_cli.bundle.find import named_bundles
    from cadec_cli.terminal.views import bundles as views

    here = named_bundles()
    if name in here:
        described = describe(Bundle.open(here[name]))
        if json_lines:
            sys.stdout.write(json.dumps(dataclasses.asdict(described), ensure_ascii=False) + "\n")
        else:
            views.show(described)
        return
    chosen = find_models(name)
    if json_lines:
        sys.stdout.write(json.dumps([dataclasses.asdict(one) for one in chosen.entries]) + "\n")
    else:
        views.show_entries(chosen.entries)


@models_app.command("remove")
def remove_model(name: Name) -> None:
    """Delete a bundle that was pulled or added. The hub's own cache is left alone.

    Example: cadec models remove opus-mt-en-ru+gemma-3-270m
    """
    from cadec_cli.bundle.find import remove_named
    from cadec_cli.terminal import console

    console.note(f"removed: {remove_named(name)}")
