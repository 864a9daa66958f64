"""What the README shows works."""

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def test_the_example_of_the_python_interface_runs(made_up_bundle: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(example, "README.md", "exec"), {"path": made_up_bundle})
    assert len(output.getvalue().splitlines()) == 2


def test_every_command_shown_exists_with_its_options() -> None:
    import subprocess
    import sys

    shown: dict[str, set[str]] = {}
    for line in re.findall(r"^    (?:cat \S+ \| )?cadec (.*)$", README, re.MULTILINE):
        words = re.split(r"\s{2,}", line)[0].split()
        name = " ".join(word for word in words[:2] if word.isalpha() and word in _NAMES)
        shown.setdefault(name, set()).update(word for word in words if word.startswith("--"))
    assert {"translate", "train lm", "train nmt", "prepare text", "convert"} <= shown.keys()
    for name, options in shown.items():
        done = subprocess.run(
            [sys.executable, "-m", "cadec_cli", *name.split(), "--help"],
            capture_output=True,
            text=True,
            env={"COLUMNS": "200", "PATH": "", "NO_COLOR": "1"},
        )
        assert done.returncode == 0, name
        assert {option for option in options if option not in done.stdout} == set(), name


_NAMES = {"translate", "train", "tokenizer", "nmt", "lm", "prepare", "text", "convert", "rerank", "bench"}
