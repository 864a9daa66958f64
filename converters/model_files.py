"""What the files around a model's weights say of it: its licence, and one checksum of all weights."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from cadec_cli.bounds import showable
from cadec_cli.files import sha256
from cadec_cli.models.pretrained import MAX_TEXT_LENGTH


def stated_licence(directory: Path) -> str | None:
    """The licence that a model card states in its front matter, if there is one."""
    card = directory / "README.md"
    if not card.is_file():
        return None
    front = re.match(r"---\s*\n(.*?)\n---", card.read_text("utf-8", errors="replace"), re.DOTALL)
    stated = re.search(r"^license:[ \t]*(\S.*?)[ \t]*$", front[1], re.MULTILINE) if front else None
    return showable(stated[1].strip("\"'"), MAX_TEXT_LENGTH) if stated else None


def weights_checksum(files: Sequence[Path]) -> str:
    """Of one file its own; of several, of their names and checksums."""
    if len(files) == 1:
        return sha256(files[0])
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name} {sha256(path)}\n".encode())
    return digest.hexdigest()
