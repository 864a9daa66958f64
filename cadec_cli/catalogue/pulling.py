"""From a name of the catalogue to a bundle of that name: fetched, converted, verified, put in its place."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from cadec_cli.bundle.building import build_bundle
from cadec_cli.bundle.cache import Note, silence
from cadec_cli.bundle.named import path_of
from cadec_cli.bundle.pretrained_parts import PretrainedModelRequest
from cadec_cli.catalogue.entries import CatalogueMatch, TranslationEntry
from cadec_cli.errors import CadecError
from cadec_cli.method.options import DecodingDefaults
from converters.verify import Drift


@dataclass(frozen=True)
class PullResult:
    """A bundle that was made."""

    directory: Path
    drifts: list[Drift]


def check_pull(wanted: CatalogueMatch, source: str | None, target: str | None) -> None:
    """Refuse what can't be pulled before anything is fetched."""
    translation = wanted.translation
    if translation is None:
        if target is None:
            raise CadecError(
                f"{wanted.name} is a language model: nothing says which language it is for",
                "say it with --to, as in --to ru",
            )
        return
    for flag, given, known in (
        ("--from", source, translation.sources),
        ("--to", target, translation.targets),
    ):
        if not known and given is None:
            raise CadecError(
                f"{translation.name} serves many languages",
                f"say which with {flag}, as in --from en --to ru",
            )
        if known and given is not None and given not in known:
            raise CadecError(f"{translation.name} does not know {given!r}", f"{flag} {' or '.join(known)}")


def bundle_name(wanted: CatalogueMatch, source: str | None, target: str | None) -> str:
    """What the bundle is called: as it was asked for, with the languages where those are a choice."""
    many = isinstance(wanted.translation, TranslationEntry) and not wanted.translation.targets
    return f"{wanted.name}-{source}-{target}" if many else wanted.name


def pull(
    wanted: CatalogueMatch,
    *,
    source: str | None = None,
    target: str | None = None,
    name: str = "",
    force: bool = False,
    for_beam: bool = False,
    note: Note = silence,
) -> PullResult:
    """Fetch the models of a name, and make a bundle of them."""
    check_pull(wanted, source, target)
    directory = path_of(name or bundle_name(wanted, source, target))
    if directory.exists() and not force:
        raise CadecError(
            f"{directory.name} is there already", "use it with --bundle, or replace it with --force"
        )
    translation, language = wanted.translation, wanted.language
    defaults = DecodingDefaults()
    if language is not None:
        defaults = dataclasses.replace(defaults, temperature=language.temperature)
    drifts = build_bundle(
        directory,
        nmt=translation.repository if translation is not None else None,
        lm=language.repository if language is not None else None,
        pretrained=PretrainedModelRequest(
            source_language=source if translation is not None and not translation.sources else None,
            target_language=target if translation is None or not translation.targets else None,
            for_beam=for_beam,
        ),
        name=directory.name,
        defaults=defaults,
        note=note,
    )
    return PullResult(directory, drifts)
