"""`python -m cadec_cli` is `cadec`."""

from cadec_cli.main import run

run()
