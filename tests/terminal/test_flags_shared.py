"""A flag that several commands have is the same in all of them: name, type, default and help."""

from typing import Any

import pytest

from tests.helpers.shown_commands import KNOWN

# Flags that say something else in a sibling, on purpose.
OTHERWISE = {
    ("translate", "rerank"): {"--json"},  # of a rerank, the text alone is the other form
    ("translate", "beam"): set(),
    ("translate", "repair"): {"--resume", "--compare", "--beam"},  # of another work
    ("translate", "repl"): {"--encoding", "--resume", "--compare"},  # of sessions and opened files
    ("eval-contrastive", "score-contrastive"): {"--objective", "--temperature"},  # several, or one
    ("prepare text", "prepare opensubtitles"): {"--language"},  # for a pretrained model, or to find subtitles
}
SIBLINGS = [
    *OTHERWISE,
    ("rerank", "beam"),
    ("train nmt", "train lm"),
]


def flags(name: str) -> dict[str, Any]:
    return {parameter.opts[0]: parameter for parameter in KNOWN[name].params if parameter.opts[0][0] == "-"}


def described(parameter: Any) -> tuple[object, ...]:
    return (
        parameter.opts,
        parameter.secondary_opts,
        str(parameter.display_type),
        parameter.default,
        parameter.multiple,
        parameter.help,
    )


@pytest.mark.parametrize(("first", "second"), SIBLINGS)
def test_siblings_share_their_flags(first: str, second: str) -> None:
    ours, theirs = flags(first), flags(second)
    shared = (ours.keys() & theirs.keys()) - OTHERWISE.get((first, second), set())
    sizes = {"--width", "--heads", "--inner", "--pre-norm", "--tied", "--activation", "--positions"}
    if first.startswith("train"):
        shared -= sizes  # each network has its own
    shared -= {"--output"}  # what is written differs
    differing = [name for name in shared if described(ours[name]) != described(theirs[name])]
    assert not differing
    assert len(shared) >= 3


def test_flags_of_one_name_have_one_meaning_everywhere() -> None:
    for name in ("--bundle", "--threads", "--alpha", "--lines"):
        having = {command: flags(command)[name] for command in KNOWN if name in flags(command)}
        decoding = {c: p for c, p in having.items() if not c.startswith(("train", "prepare", "bench"))}
        helps = {parameter.help.lower().rstrip(".") for parameter in decoding.values()}
        if name == "--alpha":  # as an option of a search, and of a measurement
            helps = {text.split(" [dim]")[0].rstrip(".") for text in helps}
        assert len(helps) == 1, (name, helps)
        assert len(decoding) >= 2


def test_every_command_has_an_example_and_every_flag_a_help() -> None:
    for name, command in KNOWN.items():
        assert "Example: cadec" in (command.help or ""), name
        for flag, parameter in flags(name).items():
            assert parameter.help, (name, flag)
            assert "�" not in parameter.help
