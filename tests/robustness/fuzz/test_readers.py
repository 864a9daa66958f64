"""Every reader holds against inputs that are the same in every run; `make fuzz` tries others."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from cadec_cli.text.formats import FORMATS
from tests.robustness.fuzz.cases import Case, cases
from tests.robustness.fuzz.targets import TARGETS
from tests.robustness.fuzz.trials import Trials

INPUTS = 25  # of a target, times its share: about a minute for all of them
SOURCES = Path(__file__).parents[3]

# What reads a file that is not our own.
_READS = re.compile(
    r"\b(?:read_json|read_text|read_lines|open_binary)\(|\.read_bytes\(|json\.loads\(|tomllib\.loads\("
    r"|yaml\.safe_load\(|np\.load\(|np\.memmap\(|\.open\(\"rb\"\)|\.open\(encoding="
)
# Modules that read, and why they need no target of their own.
ELSEWHERE = {
    "cadec_cli/fs/read.py": "what all others read with",
    "cadec_cli/bundle/catalogue.py": "reads a file that comes with cadec",
    "cadec_cli/models/int8/compile.py": "reads files that come with cadec",
    "cadec_cli/bundle/build.py": "reads a table of seed sentences, which is tried as such, and hands it on",
    "cadec_cli/reports/page.py": "reads files that come with cadec",
    "cadec_cli/reproduction/report.py": "reads a picture that it has drawn itself",
    "cadec_cli/reproduction/corpora.py": "reads lines as cadec_cli/data/preparation.py does",
    "cadec_cli/commands/convert.py": "reads lines as cadec_cli/data/preparation.py does",
    "cadec_cli/bundle/parts.py": "asks whether a config.json is ours: tried by Hugging Face's",
    "cadec_cli/models/pretrained_settings.py": "looks at a config.json: tried with Hugging Face's models",
    "cadec_cli/engines/pretrained_models.py": "reads an index of weights that a bundle lists by checksum",
    "converters/verify.py": "reads a README.md: tried with Hugging Face's weights",
    "converters/hub.py": "asks the network, which tests do not",
}


@pytest.fixture(scope="module")
def trials() -> Iterator[Trials]:
    with Trials() as running:
        yield running


@pytest.mark.parametrize("name", TARGETS)
def test_any_input_is_read_or_refused(name: str, trials: Trials) -> None:
    target = TARGETS[name]
    slow: list[str] = []

    @settings(
        max_examples=max(5, round(INPUTS * target.share)),
        derandomize=True,
        deadline=None,  # trials have one of their own
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(target, trials.seeds(name)))
    def attempt(case: Case) -> None:
        if slow:
            return
        verdict = trials.verdict(name, case.files)
        if verdict.took_too_long:  # to look for a smaller one would take as long again and again
            slow.append(f"{verdict.told} at {verdict.where}: {case}")
            return
        assert verdict.kind != "wrong", f"{verdict.told} at {verdict.where}"

    attempt()
    assert not slow, slow[0]


def test_every_format_is_tried() -> None:
    assert not {known.name for known in FORMATS.own} - TARGETS.keys()


def test_every_module_that_reads_files_is_tried() -> None:
    reading = {
        path.relative_to(SOURCES).as_posix()
        for top in ("cadec_cli", "converters")
        for path in (SOURCES / top).rglob("*.py")
        if _READS.search(path.read_text("utf-8"))
    }
    tried = {module for target in TARGETS.values() for module in target.modules}
    assert not reading - tried - ELSEWHERE.keys()
    assert not ELSEWHERE.keys() - reading, "no longer reads anything"
    assert all((SOURCES / module).is_file() for module in tried)
