"""`cadec check`: looks for mistakes in a translation that anybody made."""

from pathlib import Path
from typing import Annotated

import typer

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.terminal.flags import (
    CHECK_NAMES,
    SEVERITY_LEVELS,
    BundleOption,
    Device,
    Force,
    InputFormat,
    MaxInput,
    Report,
    Threads,
    one_of,
)

_PMI = "PMI"


def check(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="The source, or a table with both sides; - is stdin.")
    ],
    target: Annotated[
        Path | None,
        typer.Argument(
            metavar="TARGET",
            help="Its translation, by whomever: text, JSON lines or subtitles.",
            show_default=False,
        ),
    ] = None,
    source_language: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Language of the source. "
            "[dim]\\[default: the bundle's, else as the file's name or its words tell][/dim]",
            show_default=False,
            metavar="LANGUAGE",
        ),
    ] = None,
    target_language: Annotated[
        str | None,
        typer.Option(
            "--to",
            "-l",
            help="Language of the translation. [dim]\\[default: likewise][/dim]",
            show_default=False,
            metavar="LANGUAGE",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        one_of(
            CHECK_NAMES, "--only", help=f"Make only this check. Can be repeated. {', '.join(CHECK_NAMES)}."
        ),
    ] = None,
    skip: Annotated[
        list[str] | None, one_of(CHECK_NAMES, "--skip", help="Leave out this check. Can be repeated.")
    ] = None,
    fail_on: Annotated[
        str, one_of(SEVERITY_LEVELS, "--fail-on", help="Exit with 1 if anything as grave as this is found.")
    ] = "error",
    json_lines: Annotated[bool, typer.Option("--json", help="Write one JSON object per finding.")] = False,
    report: Report = None,
    force: Force = False,
    format: InputFormat = None,
    encoding: Annotated[str, typer.Option(help="Encoding of both files.")] = "utf-8",
    max_input: MaxInput = MAX_INPUT_BYTES,
    pmi: Annotated[
        bool,
        typer.Option(
            "--pmi/--no-pmi",
            help="Also hint at lines that the bundle's D-LM finds unlikely where they stand. An experiment.",
            rich_help_panel=_PMI,
        ),
    ] = False,
    bundle: BundleOption = None,
    context: Annotated[
        int,
        typer.Option(help="Number of preceding lines that count as context.", min=1, rich_help_panel=_PMI),
    ] = 3,
    device: Device = "auto",
    threads: Threads = 0,
) -> None:
    """Look for mistakes in a translation that anybody made: a person, another system, an LLM.

    Lists lines left untranslated or empty, shifted or swapped lines, numbers, URLs, placeholders and tags
    that were changed, names rendered in two ways, address that changes, lengths out of proportion, and more,
    each with its place and a severity. No reference and, but for --pmi, no model is needed.

    SOURCE and TARGET are text (line by line), JSON lines or subtitles (cue by cue). A table with tabs, or
    JSON lines with a "translation", has both sides.

    Exits with 0 if nothing as grave as --fail-on is found, with 1 if something is, with 2 for wrong usage.

    Example: cadec check book.en.txt book.ru.txt --report book.html

    Example: cadec check film.en.srt film.fr.srt --skip address --fail-on warning

    Example: cadec check pairs.tsv --from en --to de --json
    """
    import json
    import sys

    from cadec_cli.evaluation.checks.findings import at_least
    from cadec_cli.evaluation.checks.pairs import read_pairs
    from cadec_cli.evaluation.checks.table import PMI, choose_checks, run_checks
    from cadec_cli.jobs.outputs import check_outputs
    from cadec_cli.reports.checks import write_checks_page
    from cadec_cli.terminal import console
    from cadec_cli.terminal.views import checks as views
    from cadec_cli.terminal.views.translations import stdout_console

    names = choose_checks(only or (), skip or (), pmi=pmi)
    check_outputs([report], inputs=[source, target], force=force)
    languages = (source_language or "", target_language or "")
    if bundle is not None:
        from cadec_cli.bundle.find import find_bundle
        from cadec_cli.bundle.manifest import read_manifest

        manifest = read_manifest(find_bundle(bundle))
        languages = (languages[0] or manifest.source_language or "", languages[1] or manifest.target_language)
    text = read_pairs(source, target, encoding=encoding, format=format, languages=languages, most=max_input)
    by_model = None
    if PMI in names:
        from cadec_cli.bundle.find import find_bundle
        from cadec_cli.evaluation.checks.pmi_check import open_pmi_check

        by_model = open_pmi_check(
            find_bundle(bundle),
            text.target_language,
            context=context,
            device=device,
            threads=threads,
            counted=console.progress_bar,
        )
    results = run_checks(text, names, by_model)
    if report is not None:
        write_checks_page(report, results)
        console.note(f"report: {report}")
    if json_lines:
        for record in views.records(results):
            sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
    else:
        out = stdout_console()
        for line in views.lines(results):
            out.print(line, soft_wrap=True)
    if skipped := views.skipped(results):
        console.note(skipped)
    console.note(views.summary(results))
    if fail_on != "never" and any(at_least(finding.severity, fail_on) for finding in results.findings):
        raise typer.Exit(1)
