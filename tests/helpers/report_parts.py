"""What is in a report, as its script reads it."""

import json
from pathlib import Path
from typing import Any


def data_of(page: str | Path) -> dict[str, Any]:
    """The data of a page."""
    text = page.read_text("utf-8") if isinstance(page, Path) else page
    _, _, after = text.partition('<script type="application/json" id="data">')
    found: dict[str, Any] = json.loads(after.partition("</script>")[0])
    return found


def text_of(runs: list[Any]) -> str:
    """The text that was cut into runs."""
    return "".join(run if isinstance(run, str) else run[0] for run in runs)
