"""Where what was chosen goes: into a bundle of the user's own, never into the one that comes with cadec."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from cadec_cli.bundle.finding import is_embedded
from cadec_cli.bundle.lengths import lengths_of_pairs
from cadec_cli.bundle.loading import LoadedModels
from cadec_cli.bundle.manifest import MANIFEST, save_defaults, save_lengths
from cadec_cli.errors import CadecError, UsageError
from cadec_cli.evaluation.reporting import Warn
from cadec_cli.evaluation.tuning.settings import present_setting
from cadec_cli.method.options import DecodingDefaults

_UNTOUCHED = "the bundle that comes with cadec is never changed"


def may_save(directory: Path, asked: bool | None) -> bool:
    """Tell whether the choice is to be written into a bundle; what can't be is refused before the work."""
    if is_embedded(directory):
        if asked:
            raise UsageError(_UNTOUCHED, f"tune one of your own: `cadec convert {directory} -o my-bundle`")
        return False
    wanted = asked is not False
    if wanted and not os.access(directory / MANIFEST, os.W_OK):
        raise CadecError(f"{directory} can't be written to", "--no-save only reports the choice")
    return wanted


def save_choice(
    directory: Path, before: DecodingDefaults, after: DecodingDefaults, save: bool, note: Warn
) -> None:
    """Write what was chosen into the bundle, or say how to keep it."""
    place = shlex.quote(str(directory))
    if before == after:
        note(f"{directory} has it already: nothing to write")
    elif save:
        save_defaults(directory, after)
        note(f"written into {directory}; `cadec convert {place} --temperature …` changes it")
    else:
        flags = " ".join(_flags(before, after))
        if is_embedded(directory):
            note(f"not saved: {_UNTOUCHED}")
        note(f"to use it: `cadec translate {flags}`")
        note(f"to keep it: `cadec convert {place} {flags} -o my-bundle`")


def save_learnt_lengths(models: LoadedModels, pairs: Sequence[tuple[str, str]], note: Warn) -> None:
    """Let a bundle that does not know how long its translations may become learn it from a development set.

    One that knows has it from a text of its makers' choice, and keeps it.
    """
    bundle = models.bundle
    own = (bundle.source_language, bundle.target_language)
    if bundle.manifest.lengths is None and (models.languages.source, models.languages.target) == own:
        lengths = lengths_of_pairs(bundle, pairs)
        save_lengths(bundle.directory, lengths)
        note(f"translations may have up to {lengths}: written into {bundle.directory}")


def _flags(before: DecodingDefaults, after: DecodingDefaults) -> list[str]:
    """What was chosen, as flags of `translate` and `convert`; and what else is not as it was."""
    others = [
        part
        for name in ("objective", "context", "nbest")
        if getattr(after, name) != getattr(before, name)
        for part in (f"--{name}", str(getattr(after, name)))
    ]
    return [*others, *present_setting(after, after.objective).flags]
