"""The tokens around a sentence, for a direction of a model that may serve many."""

from __future__ import annotations

from collections.abc import Sequence

from cadec_cli.engines.ctranslate2_nmt import Framing
from cadec_cli.errors import CadecError
from cadec_cli.models.pretrained import SOURCE, TARGET, TranslationSettings
from cadec_cli.text.languages import own_token


def framing_for(
    settings: TranslationSettings, source_language: str | None, target_language: str | None
) -> Framing:
    """What the model wants around sentences of a direction; a language that it does not have is an error."""
    own = {
        SOURCE: _own(source_language, settings.source_languages, "source"),
        TARGET: _own(target_language, settings.target_languages, "target"),
    }

    def fill(tokens: Sequence[str]) -> tuple[str, ...]:
        return tuple(own.get(token, token) for token in tokens)

    return Framing(
        source_begin=fill(settings.source_begin),
        source_end=fill(settings.source_end),
        target_begin=fill(settings.target_begin),
    )


def _own(language: str | None, tokens: Sequence[str], side: str) -> str:
    if not tokens:
        return ""
    if language is None:
        raise CadecError(
            f"the model serves {len(tokens)} {side} languages, and none was named", f"say --{side}-language"
        )
    return own_token(language, tokens)
