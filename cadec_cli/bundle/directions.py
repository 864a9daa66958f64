"""From which language to which a bundle translates: its own pair, or another that its models can serve."""

from __future__ import annotations

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.engines.engine import Languages as Languages
from cadec_cli.engines.engine import ModelSettings, language_token
from cadec_cli.errors import CadecError, option
from cadec_cli.text.languages import is_language


def chosen_languages(bundle: Bundle, source: str | None = None, target: str | None = None) -> Languages:
    """The languages that a user asks for, else the bundle's own; others than its models serve are refused."""
    usual = Languages(bundle.source_language, bundle.target_language)
    chosen = Languages(source or usual.source, target or usual.target)
    if chosen == usual:
        return usual
    if bundle.has_translation:
        settings = bundle.settings("nmt")
        if not bundle.chooses_languages:
            raise CadecError(
                f"the S-NMT of {bundle.directory} translates {usual} and nothing else",
                f"leave out {option('from')} and {option('to')}, or use another bundle",
            )
        language_token(chosen.source, settings.source_languages, "source")  # refuses unknown languages
        language_token(chosen.target, settings.target_languages, "target")
        _refuse_others(settings, chosen, usual)
    elif source is not None:
        raise CadecError(f"{bundle.directory} has no S-NMT, so there is no language that it translates from")
    return chosen


def _refuse_others(settings: ModelSettings, chosen: Languages, usual: Languages) -> None:
    """On a side that the model isn't told: one language to translate into, any existing one to read."""
    if not settings.target_languages and chosen.target != usual.target:
        raise CadecError(
            f"{settings.origin} translates into {usual.target} and no other language",
            f"leave out {option('to')}",
        )
    if not settings.source_languages and chosen.source not in (None, usual.source):
        assert chosen.source is not None
        if not is_language(chosen.source):
            raise CadecError(f"there is no language {chosen.source!r}", "give its code, e.g. en")
