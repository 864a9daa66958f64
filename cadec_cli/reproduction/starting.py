"""Beginning a reproduction, or going on with one: the same settings in the same directory, or none at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.files import read_json
from cadec_cli.reproduction import opensubtitles, small_corpora
from cadec_cli.reproduction.experiment import Experiment
from cadec_cli.reproduction.scales import BY_NAME
from cadec_cli.whole_files import write_json

SETTINGS = "settings.json"


def start_experiment(
    name: str,
    work: Path,
    data: Path | None,
    *,
    effort: float = 1.0,
    sizes: Mapping[str, int] | None = None,
    threads: int = 0,
    write: bool = True,
) -> Experiment:
    """An experiment in a directory that is new, or was begun with the same settings.

    Whoever asks for no sizes in particular goes on with those that it was begun with.
    """
    path = work / SETTINGS
    before: Any = read_json(path) if path.is_file() else None
    if isinstance(before, dict) and before.get("scale") == name and effort == 1 and not sizes:
        parts = [before.get("sizes"), before.get("updates")]
        sizes = {key: size for part in parts if isinstance(part, dict) for key, size in part.items()}
        if not all(isinstance(part, dict) for part in parts) or any(
            type(n) is not int for n in sizes.values()
        ):
            raise CadecError(f"{path} is damaged: its sizes are none", "give a new directory to --work")
    scale = replace(BY_NAME[name].with_sizes(effort, sizes or {}), threads=threads)
    work, data = work.absolute(), data.absolute() if data is not None else None
    experiment = Experiment(scale, work, data)
    _check_data(experiment)
    settings: dict[str, Any] = {
        "scale": name,
        "data": str(data) if data is not None else None,
        "sizes": dict(scale.sizes),
        "updates": {kind: training.updates for kind, training in scale.trainings.items()},
    }
    path = work / SETTINGS
    if before is not None:
        other = [key for key in settings if not isinstance(before, dict) or before.get(key) != settings[key]]
        if other:
            raise CadecError(
                f"{work} was begun with other settings: {', '.join(other)}",
                f"give the same ones (they are in {path}), or another --work",
            )
    elif work.exists() and any(not one.name.endswith(".part") for one in work.iterdir()):
        raise CadecError(f"{work} holds something else", "give a new directory to --work")
    elif write:
        work.mkdir(parents=True, exist_ok=True)
        write_json(path, settings)
    return experiment


def _check_data(experiment: Experiment) -> None:
    """Refuse corpora that are not there, or not all of them, before anything is begun."""
    name, data = experiment.scale.name, experiment.data
    if name == "toy":
        if data is not None:
            raise CadecError("the toy scale makes its own texts", "leave out --data")
    elif data is None:
        raise CadecError(f"the {name} scale needs corpora", "name their directory with --data")
    elif name == "small":
        small_corpora.check_corpora(data)
    else:
        opensubtitles.check_corpora(experiment)
