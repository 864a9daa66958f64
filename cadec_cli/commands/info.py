"""`cadec info`: describes a bundle."""

from typing import Annotated

import typer

from cadec_cli.terminal.flags import BundleArgument


def info(
    bundle: BundleArgument = None,
    json_lines: Annotated[bool, typer.Option("--json", help="Write one JSON object.")] = False,
) -> None:
    """Describe a bundle: parts, engines, languages, sizes, defaults, licences, checksums.

    Every file is checked against its checksum.

    Example: cadec info en-fr
    """
    import dataclasses
    import json
    import sys

    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.bundle.describe import describe
    from cadec_cli.bundle.find import find_bundle
    from cadec_cli.terminal.views import bundles as views

    described = describe(Bundle.open(find_bundle(bundle)))
    if json_lines:
        sys.stdout.write(json.dumps(dataclasses.asdict(described), ensure_ascii=False) + "\n")
        return
    views.show(described)
