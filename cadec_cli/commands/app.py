"""What all Typer apps of the command line have in common."""

import typer

EPILOG = "[dim]--quiet (-q) silences notes and progress, --debug shows tracebacks; both go anywhere.[/dim]"


def new_app(text: str) -> typer.Typer:
    """Make an app in the project's style."""
    return typer.Typer(
        help=text,
        epilog=EPILOG,
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
