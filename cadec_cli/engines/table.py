"""The table of engines: ours, and those that installed packages add in the entry-point group `cadec.engines`.

Opening, loading and building a bundle all use this table. A bundle names an engine and never contains one.
"""

from __future__ import annotations

from collections.abc import Mapping

from cadec_cli.engines.engine import Engine, LanguageEngine, TranslationEngine
from cadec_cli.engines.own_models import OWN_LANGUAGE, OWN_TRANSLATION
from cadec_cli.engines.pretrained_models import PRETRAINED_LANGUAGE, PRETRAINED_TRANSLATION
from cadec_cli.extensions import Registry

ENGINES: Registry[Engine] = Registry(
    "cadec.engines",
    Engine,
    {
        engine.name: engine
        for engine in (OWN_TRANSLATION, PRETRAINED_TRANSLATION, OWN_LANGUAGE, PRETRAINED_LANGUAGE)
    },
)

# The default engine of each part, if a manifest names none. Models trained here run with these.
OWN_ENGINES: Mapping[str, Engine] = {engine.part: engine for engine in (OWN_TRANSLATION, OWN_LANGUAGE)}


def translation_engine(name: str) -> TranslationEngine:
    """The engine of translation models with this name; an unknown name is a KeyError."""
    engine = ENGINES[name]
    if not isinstance(engine, TranslationEngine):
        raise KeyError(name)
    return engine


def language_engine(name: str) -> LanguageEngine:
    """The engine of language models with this name; an unknown name is a KeyError."""
    engine = ENGINES[name]
    if not isinstance(engine, LanguageEngine):
        raise KeyError(name)
    return engine
