"""Which models to open, and what to compute with: plain data that can be sent to another process or machine.

Importing this module is cheap; heavy imports wait until a bundle is opened.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.bundle.load import LoadedModels


@dataclass(frozen=True)
class ModelRequest:
    """A bundle, the languages to translate between, and the device, precision and threads to compute with.

    `bundle` is a directory or the name of a bundle that was pulled; None is $CADEC_BUNDLE's, else the
    embedded one. Languages are the bundle's own unless given. `threads` = 0 means all cores.

    A request made by `for_workers` has the bundle's `identity`: a worker refuses to open any other bundle.
    """

    bundle: Path | None = None
    source_language: str | None = None
    target_language: str | None = None
    device: str = "auto"
    compute_type: str = "int8"
    threads: int = 0
    identity: str | None = None

    def open_bundle(self, *, for_lm: bool = False) -> Bundle:
        """Open the bundle; a CadecError says what is wrong with it. `for_lm`: see `Bundle.open`."""
        from cadec_cli.bundle.bundle import Bundle
        from cadec_cli.bundle.find import EMBEDDED, find_bundle
        from cadec_cli.errors import CadecError

        if self.identity is None:
            return Bundle.open(find_bundle(self.bundle), for_lm=for_lm)
        # The embedded bundle may be installed elsewhere on a worker's machine.
        opened = Bundle.open(self.bundle or EMBEDDED, for_lm=for_lm)
        if opened.manifest.identity != self.identity:
            raise CadecError(
                f"{opened.directory} is not the same bundle for all workers",
                "install the same one on all machines",
            )
        return opened

    def models_of(
        self,
        bundle: Bundle,
        *,
        note: Callable[[str], None] | None = None,
        loading: Callable[[str], AbstractContextManager[Any]] = nullcontext,
    ) -> LoadedModels:
        """The models of an open bundle; each is loaded when it is first used.

        `note` is called with messages for the user, `loading` is entered while a model is loaded.
        """
        from cadec_cli.bundle.load import load_models
        from cadec_cli.engines.engine import silence

        return load_models(
            bundle,
            source_language=self.source_language,
            target_language=self.target_language,
            device=self.device,
            compute_type=self.compute_type,
            threads=self.threads,
            note=note or silence,
            loading=loading,
        )

    def open(self) -> LoadedModels:
        """Open the bundle and return its models; nothing is printed."""
        return self.models_of(self.open_bundle())

    def for_workers(self, bundle: Bundle, threads: int) -> ModelRequest:
        """The same request for other processes and machines; `bundle` is the one it opened here."""
        from cadec_cli.bundle.find import is_embedded

        return dataclasses.replace(
            self,
            bundle=None if is_embedded(bundle.directory) else bundle.directory.absolute(),
            threads=threads,
            identity=bundle.manifest.identity,
        )
