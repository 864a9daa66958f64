"""From which language to which a bundle translates: its own pair, or another that its models can serve."""

from __future__ import annotations

from dataclasses import dataclass

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.engines.ctranslate2 import framing_for
from cadec_cli.errors import CadecError, option
from cadec_cli.models.pretrained_settings import TranslationSettings
from cadec_cli.text.languages import is_language, iso_code


@dataclass(frozen=True)
class Languages:
    """The two languages of a translation, as its user or its bundle says; to score alone takes no first."""

    source: str | None
    target: str

    @property
    def source_code(self) -> str:
        """The first in the shortest code it has, which is how those who split and join words call it."""
        return iso_code(self.source) if self.source else ""

    @property
    def target_code(self) -> str:
        """The second likewise."""
        return iso_code(self.target)

    def __str__(self) -> str:
        return " → ".join(filter(None, (self.source, self.target)))


def chosen_languages(bundle: Bundle, source: str | None = None, target: str | None = None) -> Languages:
    """The languages that a user asked for, else the bundle's own; what its models can't serve is refused."""
    usual = Languages(bundle.source_language, bundle.target_language)
    chosen = Languages(source or usual.source, target or usual.target)
    if chosen == usual:
        return usual
    if bundle.has_translation:
        settings = bundle.translation_settings
        if settings is None or not settings.directions:
            raise CadecError(
                f"the S-NMT of {bundle.directory} translates {usual} and nothing else",
                f"leave out {option('from')} and {option('to')}, or use another bundle",
            )
        framing_for(settings, chosen.source, chosen.target)  # refuses what the model does not know
        _refuse_others(settings, chosen, usual)
    elif source is not None:
        raise CadecError(f"{bundle.directory} has no S-NMT, so there is no language that it translates from")
    return chosen


def _refuse_others(settings: TranslationSettings, chosen: Languages, usual: Languages) -> None:
    """On a side without tokens of languages: one language to translate into, any that there is to read."""
    if not settings.target_languages and chosen.target != usual.target:
        raise CadecError(
            f"{settings.origin} translates into {usual.target} and no other language",
            f"leave out {option('to')}",
        )
    if not settings.source_languages and chosen.source not in (None, usual.source):
        assert chosen.source is not None
        if not is_language(chosen.source):
            raise CadecError(f"there is no language {chosen.source!r}", "give its code, e.g. en")
