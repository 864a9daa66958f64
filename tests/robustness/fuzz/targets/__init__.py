"""Every reader there is, by name. To add one, write a line in the table of its kind."""

from tests.robustness.fuzz.target import Target
from tests.robustness.fuzz.targets import bundles, commands, corpora, foreign, lists, runs, texts

TARGETS: dict[str, Target] = {
    **texts.TARGETS,
    **lists.TARGETS,
    **corpora.TARGETS,
    **bundles.TARGETS,
    **runs.TARGETS,
    **foreign.TARGETS,
    **commands.TARGETS,
}
