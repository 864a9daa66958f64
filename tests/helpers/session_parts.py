"""Sessions over a tiny bundle, and what a file says of one."""

from collections.abc import Sequence
from typing import Any

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import LoadedModels, load_models
from cadec_cli.method.options import TranslationOptions
from cadec_cli.session.files import StoredSession, stored_session
from cadec_cli.session.session import Direction, Entry, Session

OPTIONS = TranslationOptions(nbest=4, beam=3)
LONG = "the money and our dog and " * 8 + "a letter."


def models_of(bundle: Bundle) -> LoadedModels:
    return load_models(bundle, compute_type="float32", threads=1)


def direction_of(bundle: Bundle) -> Direction:
    return Direction(bundle.source_language or "", bundle.target_language, bundle.manifest.identity)


def new_session(
    bundle: Bundle, options: TranslationOptions = OPTIONS, documents: Sequence[Sequence[Entry]] = ()
) -> Session:
    return Session(models_of(bundle), options, direction=direction_of(bundle), documents=documents)


def stored_in(
    data: Any, bundle: Bundle, name: str = "x", options: TranslationOptions | None = None
) -> StoredSession:
    """What data says to who has this bundle."""
    return stored_session(data, direction_of(bundle), models_of(bundle).language, name, options)


def add(session: Session, *sentences: str) -> list[Entry]:
    return [entry for sentence in sentences for entry in session.translate([sentence])]
