"""What tuning found, as flags: by the best BLEU, or the strongest D-LM that does not lower it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.evaluation.tuning.choosing import choose
from cadec_cli.evaluation.tuning.points import Point
from cadec_cli.evaluation.tuning.settings import Setting
from cadec_cli.files import read_json
from cadec_cli.reproduction.steps import as_made, number
from cadec_cli.reproduction.systems import System


def chosen_point(curve: Path, protocol: str) -> tuple[Point, bool]:
    """The choice by a protocol, and whether it is one: where no setting keeps BLEU, the weakest D-LM."""
    stored: Any = read_json(curve)
    with as_made(curve):
        level = _point(stored["sentence_level"])
        points = [_point(one) for one in stored["points"]]
        if not points:
            raise ValueError("no setting was tried")
    try:
        return choose(protocol, level, points), True
    except CadecError:
        return min(points, key=lambda point: point.setting.strength), False


def tuned_flags(system: System, curve: Path) -> tuple[str, ...]:
    """The flags of `translate` for a system."""
    return chosen_point(curve, system.protocol)[0].setting.flags


def _point(stored: dict[str, Any]) -> Point:
    setting = stored["setting"]
    named = tuple((str(name), number(value)) for name, value in setting.get("named", ()))
    temperature = number(setting["temperature"])
    if temperature <= 0:
        raise ValueError(f"a temperature of {temperature}")
    return Point(
        Setting(temperature, number(setting["weight"]), named),
        number(stored["bleu"]),
        number(stored["chrf"]),
        number(stored["changed"]),
    )
